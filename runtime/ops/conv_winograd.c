/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_winograd.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/conv_fip.h"
#include "ops/conv_panel.h"
#include "ops/conv_step.h"
#include "ops/implementation.h"
#include "ops/processor.h"
#include "ops/shares.h"
#include "ops/tuning.h"
#include <math.h>

/* Pixels of a tile in each direction, and what parts of the work take, in cycles of one vector's multiply-adds. */
typedef struct winograd_form {
    int64_t side;
    double turning, turning_back; /* of a tile's vector of channels */
    int64_t together;             /* slabs that pass by the weights, so that these are read less often; … */
    int64_t few; /* … all of a share, where they are no more and of registers of 8 floats: slabs are small then */
    double gain, gain_over_fip; /* over plain sums and conv:fip, whose weights are smaller, to be worth the memory */
} winograd_form;

/* Variants are numbered in this order, form by form: a new one comes last. */
static const winograd_form forms[] = {{4, 300, 350, 2, 4, 1.3, 1.6}, {2, 80, 90, 4, 9, 1.15, 1.15}};
#define FORMS (sizeof forms / sizeof *forms)

/* Tiles of a slab, and vectors of channels, whose sums fit in registers of `vector` floats. Few: each is a program. */
typedef struct winograd_block {
    int64_t vector, rows, vectors;
} winograd_block;

static const winograd_block blocks[] = {{16, 7, 4}, {16, 8, 3}, {16, 14, 2}, {8, 6, 2}, {8, 4, 3}, {4, 6, 2}};
#define WORTHWHILE 0.95   /* of an earlier block's cost: a model does with fewer programs then */
#define BYTES_A_CYCLE 6.0 /* that memory gives to all threads together */
/* Part of the weights' way that is not hidden: 256 channels of 14x14 pixels on a Zen 4, before weights were asked for.
 */
#define SHOWN 0.55
#define SWIFT_SHOWN 2.3 /* as on four cores of the Xeon below, where BYTES_A_CYCLE is too much, too */
#define COMPETES 1.1    /* conv:fip, so many times as fast as plain sums, with what was measured without it */

/* How the work is cut: a work-item does some slabs, one after the other, and some blocks of channels of each. */
typedef struct winograd_plan {
    const winograd_form *form;
    const winograd_block *block;
    rnl_shares shares; /* of slabs */
    int64_t tiles, together, own_floats;
    double cost;
} winograd_plan;

static int64_t padded_channels(const rnl_conv_problem *problem)
{
    return rnl_divide_up(problem->channels, RNL_CONV_PANEL) * RNL_CONV_PANEL;
}

/* Products of each pair of channels for a tile. */
static int64_t transforms(const winograd_form *form)
{
    return (form->side + 2) * (form->side + 2);
}

typedef struct problem_in_blocks {
    const rnl_conv_problem *problem;
    const winograd_form *form;
    const winograd_block *block;
} problem_in_blocks;

/* In cycles. */
static double shares_cost(const rnl_shares *shares, int64_t threads, const void *data)
{
    const problem_in_blocks *of = data;
    const winograd_block *block = of->block;
    const double channels = (double)padded_channels(of->problem), sums = (double)(block->rows * block->vectors);
    const double turning = channels / (double)block->vector * (double)block->rows * of->form->turning;
    const double product = (double)transforms(of->form) * (channels * sums + 4 * sums + 40);
    const double turning_back = sums * of->form->turning_back;
    return (double)shares->each_rows * (turning + (double)shares->each_blocks * (product + turning_back)) *
           (double)rnl_shares_rounds(shares, threads);
}

static bool has_shape(const rnl_conv_problem *problem)
{
    for (size_t i = 0; i < 3; ++i)
        if (problem->taps[i] != (i == 0 ? 1 : 3) || problem->stride[i] != 1 || problem->dilation[i] != 1)
            return false;
    return !problem->transposed && problem->groups == 1 && problem->src_size[0] == 1 && problem->dst_size[0] == 1 &&
           problem->pad[0] == 0 && problem->weight->dtype == RNL_F32 && problem->weight->rank == 4;
}

static bool is_large_enough(const rnl_conv_problem *problem)
{
    return problem->channels >= 16 && problem->filters >= 16;
}

/* Of the device's vectors. */
static uint32_t count_blocks(const rnl_device *device)
{
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i)
        count += blocks[i].vector == device->vector_width;
    return count;
}

uint32_t rnl_conv_winograd_ways(const rnl_device *device, const rnl_conv_problem *problem)
{
    return has_shape(problem) && is_large_enough(problem) ? FORMS * count_blocks(device) : 0;
}

uint64_t rnl_conv_winograd_list(void)
{
    return rnl_hash_bytes(blocks, sizeof blocks).low;
}

/* As measured: a number below `panels` is a tile of panels, one above it a form's block. */
static uint32_t measured_variant(const rnl_device *device, const rnl_conv_problem *problem, uint32_t panels)
{
    const uint32_t own = rnl_conv_winograd_ways(device, problem);
    return own == 0 ? RNL_TUNING_NONE
                    : rnl_tuning_get((rnl_device *)(uintptr_t)device, rnl_conv_panel_hash(problem), panels + own);
}

static int64_t choose_together(const winograd_plan *plan)
{
    const winograd_form *form = plan->form;
    const int64_t most = plan->block->vector < 16 && plan->shares.each_rows <= form->few ? form->few : form->together;
    return plan->shares.each_rows < most ? plan->shares.each_rows : most;
}

static bool count_tiles(const rnl_conv_problem *problem, int64_t side, int64_t *out_tiles)
{
    const int64_t across = rnl_divide_up(problem->dst_size[2], side), down = rnl_divide_up(problem->dst_size[1], side);
    return !__builtin_mul_overflow(problem->batch, across, out_tiles) &&
           !__builtin_mul_overflow(*out_tiles, down, out_tiles) && *out_tiles >= 1 && *out_tiles <= INT32_MAX / 256;
}

/* The cheapest way, or that of `wanted`, the number of a block of the device's vectors. */
static bool plan_blocks(const rnl_device *device, const rnl_conv_problem *problem, const winograd_form *form,
                        uint32_t wanted, winograd_plan *out_plan)
{
    winograd_plan best = {0};
    uint32_t number = 0;
    int64_t tiles;
    if (!count_tiles(problem, form->side, &tiles) || problem->channels > 1 << 16 || problem->filters > 1 << 24)
        return false;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) {
        if (blocks[i].vector != device->vector_width || (wanted != RNL_TUNING_NONE && wanted != number++))
            continue;
        const problem_in_blocks in_blocks = {problem, form, &blocks[i]};
        winograd_plan plan = {.form = form, .block = &blocks[i], .tiles = tiles};
        plan.shares = rnl_choose_shares(device, rnl_divide_up(tiles, blocks[i].rows),
                                        rnl_divide_up(problem->filters, blocks[i].vector * blocks[i].vectors), 0, 0,
                                        shares_cost, &in_blocks, &plan.cost);
        if (!best.block || plan.cost < WORTHWHILE * best.cost)
            best = plan;
    }
    if (!best.block)
        return false;
    best.together = choose_together(&best);
    best.own_floats =
        transforms(form) * (RNL_CONV_PANEL + best.together * best.block->rows *
                                                 (padded_channels(problem) + best.block->vectors * best.block->vector));
    *out_plan = best;
    return true;
}

/* As measured, else as estimated. */
static bool make_plan(const rnl_device *device, const rnl_conv_problem *problem, const winograd_form *form,
                      winograd_plan *out_plan)
{
    const uint32_t count = count_blocks(device),
                   first = rnl_conv_panel_tiles(device) + (uint32_t)(form - forms) * count;
    const uint32_t variant = measured_variant(device, problem, rnl_conv_panel_tiles(device));
    const bool is_own = variant != RNL_TUNING_NONE && variant >= first && variant < first + count;
    return plan_blocks(device, problem, form, is_own ? variant - first : RNL_TUNING_NONE, out_plan);
}

/* Of the weights. */
static const winograd_form *form_of(const rnl_conv_problem *problem)
{
    for (size_t i = 0; i < FORMS; ++i)
        if (forms[i].side == problem->winograd)
            return &forms[i];
    return NULL;
}

static int64_t plan_floats(const winograd_plan *plan)
{
    return plan->shares.row_items * plan->shares.block_items * plan->own_floats;
}

/* For any way: another may be measured before the step is made. */
int64_t rnl_conv_winograd_scratch(const rnl_device *device, const rnl_conv_problem *problem)
{
    int64_t most = 0;
    winograd_plan plan;
    const winograd_form *form = form_of(problem);
    for (uint32_t i = 0; form && i < sizeof blocks / sizeof *blocks; ++i)
        if (plan_blocks(device, problem, form, i, &plan) && plan_floats(&plan) > most)
            most = plan_floats(&plan);
    return most;
}

bool rnl_conv_winograd_applies(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    const rnl_view *scratch = problem->scratch;
    const int64_t given = scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
    const winograd_form *form = form_of(problem);
    winograd_plan plan;
    return form && rnl_device_is_cpu(device) && has_shape(problem) && make_plan(device, problem, form, &plan) &&
           plan_floats(&plan) <= given;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Weights come from memory in each run: those of a model are more than caches hold. */
static double memory_cost(const rnl_conv_problem *problem, const winograd_form *form)
{
    return 4.0 * (double)transforms(form) * (double)problem->channels * (double)problem->filters / BYTES_A_CYCLE;
}

/* INFINITY where it does not apply. */
static double estimate(const rnl_device *device, const rnl_conv_problem *problem, const winograd_form *form)
{
    winograd_plan plan;
    return make_plan(device, problem, form, &plan) ? larger(plan.cost, memory_cost(problem, form)) : INFINITY;
}

/* With what weights take counted again: not all of it is hidden, and memory is for others, too. */
static double whole_cost(const rnl_device *device, const rnl_conv_problem *problem, const winograd_form *form)
{
    return estimate(device, problem, form) + memory_cost(problem, form);
}

/*
 * Few tiles of many channels are done sooner than their weights come, of which registers of 16 floats hide a part, and
 * where a cycle does two multiply-adds little: 512 channels of 7x7 pixels on a Xeon (family 6, model 207) take 1.3 ms
 * in tiles of 2x2 pixels, 0.8 of them for products, and direct sums 1.4; on four cores 256 of 14x14 0.68 and 0.55.
 */
static double exposed_cost(const rnl_device *device, const rnl_conv_problem *problem, const winograd_form *form)
{
    const double shown = form->side > 2 || device->vector_width < 16 ? 0
                         : rnl_processor_is_swift()                  ? SWIFT_SHOWN
                                                                     : SHOWN;
    winograd_plan plan;
    if (shown == 0 || !make_plan(device, problem, form, &plan))
        return estimate(device, problem, form);
    return plan.cost + shown * memory_cost(problem, form);
}

/* fip_gain: how many times as fast as plain sums conv:fip is. */
static bool form_pays(const rnl_device *device, const rnl_conv_problem *problem, const winograd_form *form,
                      double fip_gain)
{
    const double pixels = (double)problem->batch * (double)problem->dst_size[1] * (double)problem->dst_size[2];
    const double products = 9.0 * (double)problem->channels * (double)problem->filters;
    const double units = (double)rnl_device_units(device);
    const double gain = fip_gain > 1 ? form->gain_over_fip : form->gain;
    const double direct = pixels * products / (double)device->vector_width / units / fip_gain;
    const double others = larger(direct, 4 * products / BYTES_A_CYCLE) / (problem->pairs ? 2 : 1);
    return is_large_enough(problem) && gain * exposed_cost(device, problem, form) < others;
}

int64_t rnl_conv_winograd_side(const rnl_device *device, const rnl_conv_problem *problem)
{
    const uint32_t panels = rnl_conv_panel_tiles(device), variant = measured_variant(device, problem, panels);
    const winograd_form *large = &forms[0], *small = &forms[1];
    if (!rnl_device_is_cpu(device) || !has_shape(problem))
        return large->side;
    const double fip_gain = rnl_conv_fip_gain(device, problem);
    if (variant != RNL_TUNING_NONE && variant >= panels && fip_gain < COMPETES)
        return forms[(variant - panels) / count_blocks(device)].side;
    const bool large_pays = form_pays(device, problem, large, fip_gain);
    if (large_pays != form_pays(device, problem, small, fip_gain))
        return large_pays ? large->side : small->side;
    return whole_cost(device, problem, large) <= whole_cost(device, problem, small) ? large->side : small->side;
}

bool rnl_conv_winograd_pays(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    const uint32_t panels = rnl_conv_panel_tiles(device), variant = measured_variant(device, problem, panels);
    const winograd_form *form = form_of(problem);
    const double fip_gain = rnl_conv_fip_gain(device, problem);
    if (variant != RNL_TUNING_NONE && (variant < panels || fip_gain < COMPETES))
        return variant >= panels;
    return form && form_pays(device, problem, form, fip_gain);
}

static void add_own(rnl_step_builder *step, const rnl_conv_problem *problem, const winograd_plan *plan)
{
    rnl_step_slot(step, problem->scratch->slot);
    rnl_step_offsets(step, 4, &problem->scratch, 1, (const int64_t[]){plan->own_floats, plan->together}, 2);
}

rnl_status rnl_conv_winograd_append(rnl_step_list *list, const char *name, const void *data)
{
    rnl_conv_problem problem = *(const rnl_conv_problem *)data;
    winograd_plan plan;
    rnl_step_builder step;
    const winograd_form *form = form_of(&problem);
    if (!form || !make_plan(list->device, &problem, form, &plan))
        return FAIL(RNL_INTERNAL, "%s does not apply to this convolution", name);
    const int64_t floats = plan_floats(&plan);
    problem.index64 |= problem.scratch->offset + floats > INT32_MAX - 65536;
    const rnl_conv_tile tile = {.vector = plan.block->vector, .pixels = plan.block->rows};
    rnl_step_begin(&step, list, name, problem.index64);
    step.step.problem = rnl_conv_panel_hash(&problem);
    step.step.variants = rnl_conv_panel_tiles(list->device) + rnl_conv_winograd_ways(list->device, &problem);
    rnl_conv_add_defines(&step, &problem, &tile);
    rnl_step_define(&step, "NB=%lld -DSIDE=%lld", (long long)plan.block->vectors, (long long)form->side);
    add_own(&step, &problem, &plan);
    rnl_conv_add_arguments(&step, &problem, false, plan.tiles, plan.shares.each_rows, plan.shares.each_blocks);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)plan.shares.block_items, (size_t)plan.shares.row_items, 1},
                   (size_t[3]){1, 1, 1});
    rnl_conv_add_cost(&step, &problem);
    rnl_step_writes(&step, problem.dst->slot);
    rnl_step_writes(&step, problem.scratch->slot);
    return rnl_step_end(&step, "conv_winograd.cl", "conv_winograd");
}
