/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_depthwise.h"
#include "ops/conv_step.h"
#include "ops/implementation.h"

bool rnl_conv_depthwise_applies(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    (void)device;
    return problem->depthwise;
}

/*
 * Rows of taps that registers keep while pixels pass, and with them enough sums that none waits for another: where
 * registers are short, or loading a pixel takes as long as multiplying it does. Elsewhere it would be programs more for
 * little.
 */
static bool keeps_taps(const rnl_device *device, const rnl_conv_problem *problem)
{
    const int64_t taps = problem->taps[2], stride = problem->stride[2], width = device->vector_width;
    return rnl_device_is_cpu(device) && (width == 8 || (width == 16 && problem->src->dtype == RNL_BF16)) &&
           problem->groups >= width && (taps == 3 || taps == 5) && (stride == 1 || stride == 2) &&
           problem->dilation[2] == 1 && problem->dst_size[2] >= (width == 8 ? 8 : 7);
}

static int64_t most_pixels(int64_t vector, bool keeps)
{
    if (vector == 16)
        return 7;
    return vector < 8 ? 4 : keeps ? 8 : 6;
}

/* Pixels of one row, few where rows are short: two programs. */
static rnl_conv_tile choose_tile(const rnl_device *device, const rnl_conv_problem *problem)
{
    rnl_conv_tile tile = {.vector = device->vector_width, .vectors = 1};
    while (tile.vector > problem->groups)
        tile.vector /= 2;
    const int64_t most = most_pixels(tile.vector, keeps_taps(device, problem));
    tile.pixels = problem->dst_size[2] >= most ? most : 1;
    return tile;
}

/*
 * Vectors of channels that a work-item computes one after the other. On a CPU all of them: the memory of a pixel is
 * then read from end to end, and distances that are powers of two do not matter.
 */
static int64_t vectors_of_item(const rnl_device *device, int64_t vectors, int64_t others)
{
    if (!rnl_device_is_cpu(device))
        return 1;
    const int64_t parts = 16 * (int64_t)device->info.compute_units / others;
    return parts <= 1 ? vectors : parts >= vectors ? 1 : vectors / parts;
}

rnl_status rnl_conv_depthwise_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_conv_problem *problem = data;
    const rnl_conv_tile tile = choose_tile(list->device, problem);
    const int64_t runs = (problem->dst_size[2] + tile.pixels - 1) / tile.pixels;
    const int64_t rows = problem->batch * problem->dst_size[0] * problem->dst_size[1];
    const int64_t vectors = (problem->groups + tile.vector - 1) / tile.vector;
    const int64_t each = vectors_of_item(list->device, vectors, runs * rows);
    const size_t blocks = (size_t)((vectors + each - 1) / each);
    const bool blocks_last = rnl_device_is_cpu(list->device);
    const size_t first[3] = {blocks, (size_t)runs, (size_t)rows}, last[3] = {(size_t)runs, (size_t)rows, blocks};
    const size_t *grid = blocks_last ? last : first;
    size_t local[3];
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    rnl_conv_add_defines(&step, problem, &tile);
    if (keeps_taps(list->device, problem))
        rnl_step_define(&step, "ROW_TAPS=%lld -DROW_STEP=%lld", (long long)problem->taps[2],
                        (long long)problem->stride[2]);
    rnl_conv_add_arguments(&step, problem, blocks_last, rows, each, 0);
    rnl_tile_group(list->device, grid, local);
    rnl_step_range(&step, 3, grid, local);
    rnl_conv_add_cost(&step, problem);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "conv_depthwise.cl", "conv_depthwise");
}
