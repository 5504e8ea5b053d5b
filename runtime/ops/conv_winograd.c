/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_winograd.h"
#include "base/status.h"
#include "ops/conv_step.h"
#include "ops/implementation.h"

#define TRANSFORMS 36
#define TOGETHER 2 /* slabs that pass by the weights, so that these are read half as often */
#define SIDE 4     /* pixels of a tile, in each direction */

/* Tiles of a slab, and vectors of channels, whose sums fit in registers of `vector` floats. Few: each is a program. */
typedef struct winograd_block {
    int64_t vector, rows, vectors;
} winograd_block;

static const winograd_block blocks[] = {{16, 7, 4}, {16, 8, 3}, {16, 14, 2}, {8, 6, 2}, {4, 6, 2}};
#define WORTHWHILE 0.95   /* of an earlier block's cost: a model does with fewer programs then */
#define BYTES_A_CYCLE 6.0 /* that memory gives to all threads together */
#define GAIN 1.3          /* over direct sums, to be worth weights of four times the size */

/* How the work is cut: a work-item does some slabs, one after the other, and some blocks of channels of each. */
typedef struct winograd_plan {
    const winograd_block *block;
    int64_t tiles, slabs, channel_blocks;
    int64_t share_slabs, share_blocks, together; /* of a work-item */
    int64_t slab_items, block_items, own_floats;
    double cost;
} winograd_plan;

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t unit_count(const rnl_device *device)
{
    return device->info.compute_units > 0 ? (int64_t)device->info.compute_units : 1;
}

static int64_t padded_channels(const rnl_conv_problem *problem)
{
    return divide_up(problem->channels, RNL_CONV_PANEL) * RNL_CONV_PANEL;
}

/* Cycles of a work-item, as measured where a cycle does one vector's multiply-adds. */
static double item_cost(const rnl_conv_problem *problem, const winograd_plan *plan)
{
    const winograd_block *block = plan->block;
    const double channels = (double)padded_channels(problem), sums = (double)(block->rows * block->vectors);
    const double turning = channels / (double)block->vector * (double)block->rows * 300;
    const double product = TRANSFORMS * (channels * sums + 4 * sums + 40), turning_back = sums * 350;
    return (double)plan->share_slabs * (turning + (double)plan->share_blocks * (product + turning_back));
}

/* Some work-items for each thread, which all take as long; each has memory of its own. */
static void choose_shares(const rnl_device *device, const rnl_conv_problem *problem, winograd_plan *plan)
{
    const int64_t units = unit_count(device), most = 4 * units;
    winograd_plan best = {0}, it = *plan;
    for (int64_t i = 1; i <= it.channel_blocks && i <= most; ++i)
        for (int64_t j = 1; j <= it.slabs && j <= most; ++j) {
            it.share_blocks = divide_up(it.channel_blocks, i);
            it.block_items = divide_up(it.channel_blocks, it.share_blocks);
            it.share_slabs = divide_up(it.slabs, j);
            it.slab_items = divide_up(it.slabs, it.share_slabs);
            it.cost = item_cost(problem, &it) * (double)divide_up(it.slab_items * it.block_items, units);
            if (!best.block || it.cost < 0.98 * best.cost)
                best = it;
        }
    *plan = best;
}

static bool make_plan(const rnl_device *device, const rnl_conv_problem *problem, winograd_plan *out_plan)
{
    winograd_plan best = {0};
    const int64_t across = divide_up(problem->dst_size[2], SIDE), down = divide_up(problem->dst_size[1], SIDE);
    int64_t tiles = problem->batch;
    if (__builtin_mul_overflow(tiles, across, &tiles) || __builtin_mul_overflow(tiles, down, &tiles) ||
        tiles > INT32_MAX / 256 || tiles < 1 || problem->channels > 1 << 16 || problem->filters > 1 << 24)
        return false;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) {
        if (blocks[i].vector != device->vector_width)
            continue;
        winograd_plan plan = {.block = &blocks[i], .tiles = tiles};
        plan.slabs = divide_up(tiles, blocks[i].rows);
        plan.channel_blocks = divide_up(problem->filters, blocks[i].vector * blocks[i].vectors);
        choose_shares(device, problem, &plan);
        if (!best.block || plan.cost < WORTHWHILE * best.cost)
            best = plan;
    }
    if (!best.block)
        return false;
    best.together = best.share_slabs < TOGETHER ? best.share_slabs : TOGETHER;
    best.own_floats =
        TRANSFORMS * RNL_CONV_PANEL + best.together * best.block->rows * TRANSFORMS *
                                          (padded_channels(problem) + best.block->vectors * best.block->vector);
    *out_plan = best;
    return true;
}

int64_t rnl_conv_winograd_scratch(const rnl_device *device, const rnl_conv_problem *problem)
{
    winograd_plan plan;
    return make_plan(device, problem, &plan) ? plan.slab_items * plan.block_items * plan.own_floats : 0;
}

static bool has_shape(const rnl_conv_problem *problem)
{
    for (size_t i = 0; i < 3; ++i)
        if (problem->taps[i] != (i == 0 ? 1 : 3) || problem->stride[i] != 1 || problem->dilation[i] != 1)
            return false;
    return !problem->transposed && problem->groups == 1 && problem->src_size[0] == 1 && problem->dst_size[0] == 1 &&
           problem->pad[0] == 0 && problem->src->dtype == RNL_F32 && problem->weight->rank == 4;
}

bool rnl_conv_winograd_applies(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    const rnl_view *scratch = problem->scratch;
    const int64_t given = scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
    winograd_plan plan;
    return problem->winograd && rnl_device_is_cpu(device) && has_shape(problem) && make_plan(device, problem, &plan) &&
           plan.slab_items * plan.block_items * plan.own_floats <= given;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Weights come from memory in each run: those of a model are more than caches hold. */
bool rnl_conv_winograd_pays(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    const double pixels = (double)problem->batch * (double)problem->dst_size[1] * (double)problem->dst_size[2];
    const double products = 9.0 * (double)problem->channels * (double)problem->filters;
    winograd_plan plan;
    if (problem->channels < 16 || problem->filters < 16 || !make_plan(device, problem, &plan))
        return false;
    const double direct = pixels * products / (double)device->vector_width / (double)unit_count(device);
    return GAIN * larger(plan.cost, 4 * 4 * products / BYTES_A_CYCLE) < larger(direct, 4 * products / BYTES_A_CYCLE);
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
    if (!make_plan(list->device, &problem, &plan))
        return FAIL(RNL_INTERNAL, "%s does not apply to this convolution", name);
    const int64_t floats = plan.slab_items * plan.block_items * plan.own_floats;
    problem.index64 |= problem.scratch->offset + floats > INT32_MAX - 65536;
    const rnl_conv_tile tile = {.vector = plan.block->vector, .pixels = plan.block->rows};
    rnl_step_begin(&step, list, name, problem.index64);
    rnl_conv_add_defines(&step, &problem, &tile);
    rnl_step_define(&step, "NB=%lld", (long long)plan.block->vectors);
    add_own(&step, &problem, &plan);
    rnl_conv_add_arguments(&step, &problem, false, plan.tiles, plan.share_slabs, plan.share_blocks);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)plan.block_items, (size_t)plan.slab_items, 1}, (size_t[3]){1, 1, 1});
    rnl_conv_add_cost(&step, &problem);
    rnl_step_writes(&step, problem.dst->slot);
    rnl_step_writes(&step, problem.scratch->slot);
    return rnl_step_end(&step, "conv_winograd.cl", "conv_winograd");
}
