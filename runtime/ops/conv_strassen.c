/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_strassen.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/conv_step.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include "ops/processor.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PRODUCTS 7
#define SUMS 4    /* of products, that a slab keeps */
#define PLACES 32 /* floats for places of two rows, one of each half */

/*
 * Rows of half a slab, and of half a short one, and vectors of channels, whose sums fit in registers of `vector`
 * floats. Few: each is a program.
 */
typedef struct strassen_block {
    int64_t vector, rows, short_rows, vectors;
} strassen_block;

static const strassen_block blocks[] = {{16, 8, 8, 3}, {16, 6, 6, 4}, {16, 14, 14, 2}, {8, 6, 4, 2}, {4, 6, 6, 2}};
#define MOST_SHORT 2             /* slabs of a work-item: three of 8 rows are two of 12 */
#define WORTHWHILE 0.93          /* of an earlier block's cost: a model does with fewer programs then */
#define BYTES 4.0                /* of a weight */
#define BYTES_A_CYCLE 6.0        /* that memory gives to all threads together */
#define NARROW 8                 /* floats of a register */
#define NARROW_BYTES_A_CYCLE 7.0 /* there, as measured on Zen 3 with 16 to 128 pixels of 1,024 channels */
#define GAIN 1.03                /* over plain products, to be worth more memory; … */
#define GAIN_OF_HALVES 1.11      /* … of a model that is rougher */
#define FEW_WEIGHTS (512 * 1024) /* bytes that stay in a core's cache while slabs pass one by one */
#define MANY_FLOATS (512 * 1024) /* of slabs that pass together */
#define SWIFT_PIXELS 900
#define NARROW_TOGETHER 6 /* slabs; with many more, a second cache of 512 KiB loses them to the weights */

/*
 * What parts of the work take, in cycles, where a cycle does one vector's multiply-adds. A tile of plain products
 * (conv:panel) is of plain_pixels by plain_vectors.
 */
typedef struct strassen_costs {
    double own_pixel, shared_pixel; /* copying a vector of it; the latter where several work-items copy it */
    double slab;                    /* whatever its pixels */
    double product;                 /* an added-up vector, a term */
    double block_vector, block;     /* of sums, behind their products; and each block of channels */
    double plain_pixels, plain_vectors, plain_product, plain;
} strassen_costs;

static const strassen_costs wide_costs = {15, 60, 300, 1.1, 70, 420, 7, 4, 1.06, 268};     /* measured on Zen 4 */
static const strassen_costs narrow_costs = {15, 124, 1000, 1.0, 58, 500, 6, 2, 1.04, 205}; /* on Zen 3, two a cycle */
static const strassen_costs halves_costs = {48, 124, 1000, 1.0, 58, 500, 6, 2, 1.04, 205}; /* on Zen 1 */

/*
 * How the work is cut: a work-item does some slabs of 2 * rows pixels, then some of 2 * short_rows, and some blocks of
 * channels of each.
 */
typedef struct strassen_plan {
    const strassen_block *block;
    int64_t pixels, channel_blocks;
    int64_t tall_slabs, short_slabs, share_blocks, together; /* of a work-item */
    int64_t slab_items, block_items, slab_floats;
    double cost;
} strassen_plan;

static const strassen_costs *costs_of(const rnl_device *device)
{
    if (device->vector_width != NARROW)
        return &wide_costs;
    return rnl_processor_multiplies_halves() ? &halves_costs : &narrow_costs;
}

/* Cycles of a slab of 2 * `rows` pixels. */
static double slab_cost(const strassen_costs *costs, const rnl_conv_problem *problem, const strassen_plan *plan,
                        int64_t rows)
{
    const strassen_block *block = plan->block;
    const double terms = (double)(problem->channels / 2), sums = (double)(rows * block->vectors);
    const double moving = plan->block_items > 1 ? costs->shared_pixel : costs->own_pixel;
    const double copying = terms / (double)block->vector * (double)rows * moving + costs->slab;
    const double products = PRODUCTS * costs->product * terms * sums;
    const double others = costs->block_vector * sums + costs->block;
    return copying + (double)plan->share_blocks * (products + others);
}

/* Cycles of a work-item. */
static double item_cost(const strassen_costs *costs, const rnl_conv_problem *problem, const strassen_plan *plan)
{
    const int64_t rows = plan->block->rows;
    /* At the end a slab of single rows may do with four products. */
    const int64_t rest = plan->pixels % (2 * rows);
    const bool ends_early = rest > 0 && rest <= rows && plan->slab_items == 1 && plan->short_slabs == 0;
    const double tall = (double)plan->tall_slabs - (ends_early ? 0.4 : 0);
    return tall * slab_cost(costs, problem, plan, rows) +
           (double)plan->short_slabs * slab_cost(costs, problem, plan, plan->block->short_rows);
}

static int64_t item_pixels(const strassen_plan *plan)
{
    return 2 * (plan->tall_slabs * plan->block->rows + plan->short_slabs * plan->block->short_rows);
}

/* Some work-items for each thread, which all take as long; each has memory of its own. */
static void choose_shares(const rnl_device *device, const rnl_conv_problem *problem, strassen_plan *plan)
{
    const int64_t units = rnl_device_units(device), most = 4 * units, slab = 2 * plan->block->rows;
    const int64_t most_short = plan->block->short_rows < plan->block->rows ? MOST_SHORT : 0;
    const int64_t slabs = rnl_divide_up(plan->pixels, slab);
    strassen_plan best = {0}, it = *plan;
    for (int64_t i = 1; i <= it.channel_blocks && i <= most; ++i) {
        it.share_blocks = rnl_divide_up(it.channel_blocks, i);
        it.block_items = rnl_divide_up(it.channel_blocks, it.share_blocks);
        for (int64_t j = 1; j <= slabs && j <= most; ++j)
            for (it.short_slabs = 0; it.short_slabs <= most_short; ++it.short_slabs) {
                const int64_t left = rnl_divide_up(it.pixels, j) - 2 * it.short_slabs * it.block->short_rows;
                it.tall_slabs = left > 0 ? rnl_divide_up(left, slab) : 0;
                it.slab_items = rnl_divide_up(it.pixels, item_pixels(&it));
                it.cost = item_cost(costs_of(device), problem, &it) *
                          (double)rnl_divide_up(it.slab_items * it.block_items, units);
                if (!best.block || it.cost < 0.98 * best.cost)
                    best = it;
            }
    }
    *plan = best;
}

/* Slabs pass by the weights together where these do not stay in the cache. */
static void choose_together(const rnl_conv_problem *problem, strassen_plan *plan)
{
    const strassen_block *block = plan->block;
    const int64_t terms = problem->channels / 2, width = block->vectors * block->vector;
    const int64_t weights = plan->share_blocks * width * PRODUCTS * terms * (int64_t)sizeof(float);
    plan->slab_floats = (PRODUCTS * terms + SUMS * width + PLACES) * block->rows;
    const int64_t many = MANY_FLOATS / plan->slab_floats > 0 ? MANY_FLOATS / plan->slab_floats : 1;
    const int64_t fit = block->vector == NARROW ? NARROW_TOGETHER : many;
    const int64_t slabs = plan->tall_slabs + plan->short_slabs;
    plan->together = weights <= FEW_WEIGHTS ? 1 : fit < slabs ? fit : slabs;
}

static int64_t plan_floats(const strassen_plan *plan)
{
    return plan->slab_items * plan->block_items * plan->together * plan->slab_floats;
}

static bool make_plan(const rnl_device *device, const rnl_conv_problem *problem, strassen_plan *out_plan)
{
    strassen_plan best = {0};
    int64_t pixels = problem->batch;
    for (size_t i = 0; i < 3; ++i)
        if (__builtin_mul_overflow(pixels, problem->dst_size[i], &pixels) || pixels > INT32_MAX / 256)
            return false;
    if (problem->channels > 1 << 16 || problem->filters > 1 << 24)
        return false;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) {
        if (blocks[i].vector != device->vector_width || pixels < 2 * blocks[i].rows)
            continue;
        strassen_plan plan = {.block = &blocks[i], .pixels = pixels};
        plan.channel_blocks = rnl_divide_up(rnl_divide_up(problem->filters, 2 * RNL_CONV_PANEL) * RNL_CONV_PANEL,
                                            blocks[i].vector * blocks[i].vectors);
        choose_shares(device, problem, &plan);
        if (!best.block || plan.cost < WORTHWHILE * best.cost)
            best = plan;
    }
    if (!best.block)
        return false;
    choose_together(problem, &best);
    *out_plan = best;
    return true;
}

int64_t rnl_conv_strassen_scratch(const rnl_device *device, const rnl_conv_problem *problem)
{
    strassen_plan plan;
    return make_plan(device, problem, &plan) ? plan_floats(&plan) : 0;
}

/* Single pixels, none of them padding. */
static bool has_shape(const rnl_conv_problem *problem)
{
    for (size_t i = 0; i < 3; ++i)
        if (problem->taps[i] != 1 || problem->pad[i] != 0 ||
            (problem->dst_size[i] - 1) * problem->stride[i] >= problem->src_size[i])
            return false;
    return !problem->transposed && problem->groups == 1 && problem->src->dtype == RNL_F32 && problem->channels > 0 &&
           problem->channels % (2 * RNL_CONV_PANEL) == 0;
}

bool rnl_conv_strassen_applies(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    const rnl_view *scratch = problem->scratch;
    const int64_t given = scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
    strassen_plan plan;
    return problem->strassen && rnl_device_is_cpu(device) && has_shape(problem) && make_plan(device, problem, &plan) &&
           plan_floats(&plan) <= given;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Cycles of plain products. */
static double direct_cost(const rnl_device *device, const rnl_conv_problem *problem, double pixels)
{
    const strassen_costs *costs = costs_of(device);
    const double width = (double)device->vector_width * costs->plain_vectors;
    const double tiles = ceil(pixels / costs->plain_pixels) * ceil((double)problem->filters / width);
    const double sums = costs->plain_pixels * costs->plain_vectors;
    return tiles * (sums * costs->plain_product * (double)problem->channels + costs->plain) /
           (double)rnl_device_units(device);
}

/*
 * Where a cycle does two multiply-adds of 16 floats, the seven fourths of the weights that Strassen's products read
 * take longer than a few pixels' products can hide, unless they stay in a cache: with 128 to 784 pixels 131 to 147 of
 * 181 GFLOP/s, and plain products 136 to 163; with 1,024 and more 155 to 168, and 112 to 160 (a Xeon of family 6, model
 * 207).
 */
static bool has_too_few_pixels(const rnl_device *device, const strassen_plan *plan, double weight_bytes)
{
    return device->vector_width == 16 && plan->pixels < SWIFT_PIXELS && 7 * weight_bytes / 4 > FEW_WEIGHTS &&
           rnl_processor_is_swift();
}

/*
 * Weights come from memory in each run: those of a model are more than caches hold. Where a cycle does several vectors'
 * multiply-adds, as it does with narrow registers, that is not hidden behind them.
 */
bool rnl_conv_strassen_pays(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    const char *wish = getenv("RUNNEL_STRASSEN");
    const double bytes = BYTES * (double)problem->channels * (double)problem->filters;
    strassen_plan plan;
    if (rnl_is_deterministic() || (wish && !strcmp(wish, "off")) || !make_plan(device, problem, &plan))
        return false;
    if (wish && !strcmp(wish, "on"))
        return true;
    if (has_too_few_pixels(device, &plan, bytes))
        return false;
    const double direct = direct_cost(device, problem, (double)plan.pixels);
    if (device->vector_width == NARROW &&
        GAIN * (plan.cost + 7 * bytes / 4 / NARROW_BYTES_A_CYCLE) >= direct + bytes / NARROW_BYTES_A_CYCLE)
        return false;
    const double gain = costs_of(device) == &halves_costs ? GAIN_OF_HALVES : GAIN;
    return gain * larger(plan.cost, 7 * bytes / 4 / BYTES_A_CYCLE) < larger(direct, bytes / BYTES_A_CYCLE);
}

static void add_own(rnl_step_builder *step, const rnl_conv_problem *problem, const strassen_plan *plan)
{
    const int64_t own_floats = plan->together * plan->slab_floats;
    rnl_step_slot(step, problem->scratch->slot);
    rnl_step_offsets(step, 4, &problem->scratch, 1, (const int64_t[]){own_floats, plan->together, plan->tall_slabs}, 3);
}

rnl_status rnl_conv_strassen_append(rnl_step_list *list, const char *name, const void *data)
{
    rnl_conv_problem problem = *(const rnl_conv_problem *)data;
    strassen_plan plan;
    rnl_step_builder step;
    if (!make_plan(list->device, &problem, &plan))
        return FAIL(RNL_INTERNAL, "%s does not apply to this convolution", name);
    problem.index64 |= problem.scratch->offset + plan_floats(&plan) > INT32_MAX - 65536;
    const rnl_conv_tile tile = {.vector = plan.block->vector, .pixels = plan.block->rows};
    rnl_step_begin(&step, list, name, problem.index64);
    rnl_conv_add_defines(&step, &problem, &tile);
    rnl_step_define(&step, "NB=%lld", (long long)plan.block->vectors);
    if (plan.block->short_rows < plan.block->rows) /* there may be none: one program does for all numbers of pixels */
        rnl_step_define(&step, "SHORT=%lld", (long long)plan.block->short_rows);
    add_own(&step, &problem, &plan);
    rnl_conv_add_arguments(&step, &problem, false, plan.pixels, plan.tall_slabs + plan.short_slabs, plan.share_blocks);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)plan.block_items, (size_t)plan.slab_items, 1}, (size_t[3]){1, 1, 1});
    rnl_conv_add_cost(&step, &problem);
    rnl_step_writes(&step, problem.dst->slot);
    rnl_step_writes(&step, problem.scratch->slot);
    return rnl_step_end(&step, "conv_strassen.cl", "conv_strassen");
}
