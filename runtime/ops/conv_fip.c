/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_fip.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/conv_step.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include "ops/instruction_rate.h"
#include "ops/processor.h"
#include <stdlib.h>
#include <string.h>

/* As conv_fip.cl has them: vectors of channels, rows of a slab and of a short one, floats of a slab beside its terms,
 * and those of each chunk. */
#define VECTORS 2
#define ROWS 12
#define SHORT_ROWS 8
#define OTHERS (32 + ROWS * 16)
#define CHUNK_OTHERS 16

#define MOST_SHORT 2            /* slabs of a work-item: 16 rows are two of 8 */
#define MANY_FLOATS (64 * 1024) /* of chunks that pass together, in a second cache with a block of weights, … */
#define FEWEST_TOGETHER 4       /* … which would come from memory too often for fewer */

/* What parts of the work take, in cycles. */
typedef struct fip_costs {
    double copy_vector, copy_row;  /* a vector of a row, and the rest of it */
    double pair_sum;               /* a sum, a pair of terms */
    double chunk;                  /* a block of a slab, a chunk of terms more: its weights come from far */
    double store_sum, block;       /* a sum, behind its products, and a block of channels of a slab */
    double plain_sum, plain_store; /* of conv:panel: a sum, a pair of terms, and a sum behind them */
} fip_costs;

/* Measured on a Zen 5, which does four vectors' operations in a cycle, and on a Zen 4, which does two. */
static const fip_costs swift_costs = {6, 45, 17.3 / 24, 900, 7, 100, 1.06, 3},
                       slow_costs = {4.4, 52, 1.4, 330, 7, 90, 2.04, 2.5};
#define GAIN 1.05 /* over plain sums, to be worth its rougher results */

/* How the work is cut: a work-item does some slabs of ROWS pixels, then some short ones, and some blocks of channels of
 * each. */
typedef struct fip_plan {
    const fip_costs *costs;
    int64_t vector, pixels, terms, filters, channel_blocks;
    int64_t tall_slabs, short_slabs, share_blocks, together; /* of a work-item */
    int64_t slab_items, block_items;
    double cost;
} fip_plan;

static int64_t chunks_of(const fip_plan *plan)
{
    return rnl_divide_up(plan->terms, rnl_conv_fip_chunk(plan->terms));
}

static double slab_cost(const fip_plan *plan, int64_t rows)
{
    const fip_costs *costs = plan->costs;
    const double sums = (double)(rows * VECTORS), terms = (double)plan->terms;
    const double copying = (double)rows * (terms / (double)plan->vector * costs->copy_vector + costs->copy_row);
    const double chunks = (double)(chunks_of(plan) - 1) * costs->chunk;
    return copying + (double)plan->share_blocks *
                         (sums * (terms / 2 * costs->pair_sum + costs->store_sum) + costs->block + chunks);
}

static double item_cost(const fip_plan *plan)
{
    return (double)plan->tall_slabs * slab_cost(plan, ROWS) + (double)plan->short_slabs * slab_cost(plan, SHORT_ROWS);
}

static int64_t item_pixels(const fip_plan *plan)
{
    return plan->tall_slabs * ROWS + plan->short_slabs * SHORT_ROWS;
}

/* Some work-items for each thread, which all take as long; each has memory of its own. */
static void choose_shares(const rnl_device *device, fip_plan *plan)
{
    const int64_t units = rnl_device_units(device), most = 4 * units, slabs = rnl_divide_up(plan->pixels, ROWS);
    fip_plan best = {0}, it = *plan;
    for (int64_t i = 1; i <= it.channel_blocks && i <= most; ++i) {
        it.share_blocks = rnl_divide_up(it.channel_blocks, i);
        it.block_items = rnl_divide_up(it.channel_blocks, it.share_blocks);
        for (int64_t j = 1; j <= slabs && j <= most; ++j)
            for (it.short_slabs = 0; it.short_slabs <= MOST_SHORT; ++it.short_slabs) {
                const int64_t left = rnl_divide_up(it.pixels, j) - it.short_slabs * SHORT_ROWS;
                it.tall_slabs = left > 0 ? rnl_divide_up(left, ROWS) : 0;
                if (it.tall_slabs > 0 && it.pixels < ROWS)
                    continue;
                it.slab_items = rnl_divide_up(it.pixels, item_pixels(&it));
                it.cost = item_cost(&it) * (double)rnl_divide_up(it.slab_items * it.block_items, units);
                if (best.cost == 0 || it.cost < 0.98 * best.cost)
                    best = it;
            }
    }
    *plan = best;
}

static int64_t slab_floats(const fip_plan *plan)
{
    return plan->terms * ROWS + OTHERS + chunks_of(plan) * CHUNK_OTHERS;
}

static int64_t item_floats(const fip_plan *plan)
{
    const int64_t sums = ROWS * VECTORS * plan->vector;
    const int64_t totals = chunks_of(plan) > 1 ? plan->together * plan->share_blocks * sums : 0;
    return sums + totals + plan->together * slab_floats(plan);
}

static int64_t plan_floats(const fip_plan *plan)
{
    return plan->slab_items * plan->block_items * item_floats(plan);
}

static bool make_plan(const rnl_device *device, const rnl_conv_problem *problem, fip_plan *out_plan)
{
    fip_plan plan = {.costs = rnl_processor_is_swift() ? &swift_costs : &slow_costs,
                     .vector = device->vector_width,
                     .pixels = problem->batch,
                     .terms = problem->channels};
    for (size_t i = 0; i < 3; ++i)
        if (__builtin_mul_overflow(plan.pixels, problem->dst_size[i], &plan.pixels) || plan.pixels > INT32_MAX / 256 ||
            __builtin_mul_overflow(plan.terms, problem->taps[i], &plan.terms) || plan.terms > 1 << 17)
            return false;
    plan.filters = problem->filters;
    if (problem->filters > 1 << 24 || plan.pixels < SHORT_ROWS || plan.vector < 4 || plan.vector > 16)
        return false;
    plan.channel_blocks = rnl_divide_up(problem->filters, plan.vector * VECTORS);
    choose_shares(device, &plan);
    if (plan.cost == 0)
        return false;
    const int64_t most = MANY_FLOATS / (rnl_conv_fip_chunk(plan.terms) * ROWS),
                  slabs = plan.tall_slabs + plan.short_slabs;
    plan.together = most < FEWEST_TOGETHER ? FEWEST_TOGETHER : most;
    if (plan.together > slabs)
        plan.together = slabs;
    *out_plan = plan;
    return true;
}

int64_t rnl_conv_fip_scratch(const rnl_device *device, const rnl_conv_problem *problem)
{
    fip_plan plan;
    return make_plan(device, problem, &plan) ? plan_floats(&plan) : 0;
}

bool rnl_conv_fip_applies(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    const rnl_view *scratch = problem->scratch;
    const int64_t given = scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
    fip_plan plan;
    return problem->fip && rnl_device_is_cpu(device) && !problem->transposed && problem->groups == 1 &&
           problem->src->dtype == RNL_F32 && problem->channels > 0 && problem->channels % RNL_CONV_PANEL == 0 &&
           make_plan(device, problem, &plan) && plan_floats(&plan) <= given;
}

/* Of a window's taps along dimension i, those that read no padding, which plain sums leave out. */
static double inside(const rnl_conv_problem *problem, size_t i)
{
    int64_t count = 0;
    for (int64_t k = 0; k < problem->taps[i]; ++k) {
        const int64_t shift = k * problem->dilation[i] - problem->pad[i], stride = problem->stride[i];
        const int64_t first = shift < 0 ? rnl_divide_up(-shift, stride) : 0;
        const int64_t last = shift < problem->src_size[i] ? rnl_divide_up(problem->src_size[i] - shift, stride) : 0;
        const int64_t end = last < problem->dst_size[i] ? last : problem->dst_size[i];
        count += end > first ? end - first : 0;
    }
    return (double)count / (double)(problem->dst_size[i] * problem->taps[i]);
}

/* Cycles of plain sums. */
static double direct_cost(const rnl_device *device, const rnl_conv_problem *problem, const fip_plan *plan)
{
    const double part = inside(problem, 0) * inside(problem, 1) * inside(problem, 2);
    const double sums = (double)plan->pixels * (double)rnl_divide_up(plan->filters, plan->vector);
    const double each = part * (double)plan->terms / 2 * plan->costs->plain_sum + plan->costs->plain_store;
    return sums * each / (double)rnl_device_units(device);
}

/* Times as fast as plain sums; 1 where that is not worth it. */
static double gain_of(const rnl_device *device, const rnl_conv_problem *problem, const fip_plan *plan)
{
    const double gain = direct_cost(device, problem, plan) / plan->cost;
    return gain > GAIN ? gain : 1;
}

static bool is_wished(const char *what)
{
    const char *wish = getenv("RUNNEL_FIP");
    return wish && strcmp(wish, what) == 0;
}

/* Asked before anything is planned: where it gains nothing, that would be done for each convolution. */
bool rnl_conv_fip_is_on(const rnl_device *device)
{
    return !rnl_is_deterministic() && !is_wished("off") && (is_wished("on") || rnl_device_gains_by_float_fip(device));
}

bool rnl_conv_fip_pays(const rnl_device *device, const void *data)
{
    fip_plan plan;
    return rnl_conv_fip_is_on(device) && make_plan(device, data, &plan) &&
           (is_wished("on") || gain_of(device, data, &plan) > 1);
}

double rnl_conv_fip_gain(const rnl_device *device, const rnl_conv_problem *problem)
{
    fip_plan plan;
    const rnl_view *weight = problem->weight;
    return !problem->pairs && rnl_conv_fip_is_on(device) && rnl_device_gains_by_float_fip(device) &&
                   rnl_conv_fip_takes(problem->transposed, weight->rank, weight->shape, problem->groups,
                                      weight->dtype) &&
                   make_plan(device, problem, &plan)
               ? gain_of(device, problem, &plan)
               : 1;
}

bool rnl_conv_fip_estimate(const rnl_device *device, int64_t pixels, int64_t channels, int64_t filters,
                           double *out_cycles)
{
    const rnl_conv_problem problem = {.batch = 1,
                                      .channels = channels,
                                      .filters = filters,
                                      .src_size = {1, 1, pixels},
                                      .dst_size = {1, 1, pixels},
                                      .taps = {1, 1, 1},
                                      .stride = {1, 1, 1},
                                      .dilation = {1, 1, 1}};
    fip_plan plan;
    if (!rnl_conv_fip_is_on(device) || !rnl_device_gains_by_float_fip(device) || !make_plan(device, &problem, &plan))
        return false;
    const double direct = direct_cost(device, &problem, &plan);
    *out_cycles = channels % RNL_CONV_PANEL == 0 && GAIN * plan.cost < direct ? plan.cost : direct;
    return true;
}

rnl_status rnl_conv_fip_append(rnl_step_list *list, const char *name, const void *data)
{
    rnl_conv_problem problem = *(const rnl_conv_problem *)data;
    fip_plan plan;
    rnl_step_builder step;
    if (!make_plan(list->device, &problem, &plan))
        return FAIL(RNL_INTERNAL, "%s does not apply to this convolution", name);
    problem.index64 |= problem.scratch->offset + plan_floats(&plan) > INT32_MAX - 65536;
    const rnl_conv_tile tile = {.vector = plan.vector, .pixels = ROWS};
    rnl_step_begin(&step, list, name, problem.index64);
    rnl_conv_add_defines(&step, &problem, &tile);
    rnl_step_define(&step, "NB=%d", VECTORS);
    rnl_step_define(&step, "SHORT=%d", SHORT_ROWS);
    rnl_step_slot(&step, problem.scratch->slot);
    rnl_step_offsets(&step, 4, &problem.scratch, 1,
                     (const int64_t[]){item_floats(&plan), plan.together, plan.tall_slabs}, 3);
    rnl_conv_add_arguments(&step, &problem, false, plan.pixels, plan.tall_slabs + plan.short_slabs, plan.share_blocks);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)plan.block_items, (size_t)plan.slab_items, 1}, (size_t[3]){1, 1, 1});
    rnl_conv_add_cost(&step, &problem);
    rnl_step_writes(&step, problem.dst->slot);
    rnl_step_writes(&step, problem.scratch->slot);
    return rnl_step_end(&step, "conv_fip.cl", "conv_fip");
}
