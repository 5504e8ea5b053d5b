/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_tiled.h"
#include "base/status.h"
#include "ops/conv_step.h"
#include "ops/tile.h"

static rnl_tile_product make_product(const rnl_conv_problem *problem)
{
    return (rnl_tile_product){.rows =
                                  problem->batch * problem->dst_size[0] * problem->dst_size[1] * problem->dst_size[2],
                              .columns = problem->filters,
                              .depth = problem->taps[0] * problem->taps[1] * problem->taps[2] * problem->channels,
                              .layers = problem->groups};
}

int64_t rnl_conv_tiled_scratch(const rnl_device *device, const rnl_conv_problem *problem)
{
    const rnl_tile_product product = make_product(problem);
    rnl_tile tile;
    return rnl_tile_choose(device, &product, problem->scratch, &tile) ? rnl_tile_scratch(&tile, &product) : 0;
}

/* Pixels and terms are counted in int. */
static bool is_countable(const rnl_conv_problem *problem)
{
    int64_t pixels = problem->batch, terms = problem->channels;
    for (size_t i = 0; i < 3; ++i)
        if (__builtin_mul_overflow(pixels, problem->dst_size[i], &pixels) ||
            __builtin_mul_overflow(terms, problem->taps[i], &terms))
            return false;
    return pixels <= INT32_MAX - 256 && terms > 0 && terms <= INT32_MAX - 256;
}

bool rnl_conv_tiled_applies(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    rnl_tile tile;
    if (problem->transposed || problem->depthwise || !is_countable(problem))
        return false;
    const rnl_tile_product product = make_product(problem);
    return rnl_tile_choose(device, &product, problem->scratch, &tile);
}

/* With few output channels in a group most of a tile would be empty. */
bool rnl_conv_tiled_pays(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    return device->info.type == RNL_DEVICE_GPU && problem->filters >= 8 && make_product(problem).depth >= 16;
}

/* The pixels are one run: nothing changes from the end of a row, plane or image to the next. */
static bool is_line(const rnl_conv_problem *problem, const int64_t stride[4])
{
    int64_t step = stride[3];
    for (size_t i = 3; i-- > 0;) {
        step *= problem->dst_size[i];
        if (stride[i] != step && (i ? problem->dst_size[i - 1] : problem->batch) != 1)
            return false;
    }
    return true;
}

static bool all_lines(const rnl_conv_problem *problem)
{
    bool lines = is_line(problem, problem->dst_stride);
    for (size_t i = 0; problem->chain && i < problem->chain->operand_count; ++i)
        lines = lines && is_line(problem, problem->operand_stride[i]);
    return lines;
}

static void add_int4(rnl_step_builder *step, const int64_t xyz[3], int64_t w)
{
    const int32_t values[4] = {(int32_t)xyz[0], (int32_t)xyz[1], (int32_t)xyz[2], (int32_t)w};
    rnl_step_value(step, values, sizeof values);
}

static void add_arguments(rnl_step_builder *step, const rnl_conv_problem *problem, const rnl_tile *tile,
                          const rnl_tile_product *product)
{
    rnl_step_view(step, problem->src);
    rnl_step_view(step, problem->weight);
    rnl_step_view(step, problem->bias);
    rnl_step_view(step, problem->dst);
    rnl_step_view(step, tile->parts > 1 ? problem->scratch : NULL);
    add_int4(step, problem->src_size, problem->channels);
    add_int4(step, problem->dst_size, problem->filters);
    add_int4(step, problem->taps, problem->groups);
    add_int4(step, problem->stride, 0);
    add_int4(step, problem->dilation, 0);
    add_int4(step, problem->pad, 0);
    rnl_step_indices(step, 4, problem->src_stride, 4, 0);
    rnl_step_indices(step, 4, problem->dst_stride, 4, 0);
    rnl_step_indices(step, 4, &problem->weight_stride[1], 2, 0);
    add_int4(step, (const int64_t[]){product->depth, tile->part_depth, tile->parts}, tile->quads);
    add_int4(step, (const int64_t[]){rnl_view_exists(problem->bias), all_lines(problem), product->rows}, 0);
    rnl_chain_arguments(step, problem->chain, 4, problem->operand_stride, 4);
}

static void begin(rnl_step_builder *step, rnl_step_list *list, const char *name, const rnl_conv_problem *problem,
                  const rnl_tile *tile, const rnl_tile_product *product)
{
    rnl_step_begin(step, list, name, problem->index64);
    rnl_step_type(step, "T_SRC", problem->src->dtype);
    rnl_step_type(step, "T_BIAS", rnl_view_exists(problem->bias) ? problem->bias->dtype : problem->src->dtype);
    rnl_step_type(step, "T_DST", problem->dst->dtype);
    rnl_tile_define(step, tile);
    if (problem->channels % 4 == 0)
        rnl_step_define(step, "QUADS");
    rnl_chain_define(step, problem->chain, problem->operand_step);
    add_arguments(step, problem, tile, product);
}

static rnl_status append_sum(rnl_step_list *list, const char *name, const rnl_conv_problem *problem,
                             const rnl_tile *tile, const rnl_tile_product *product)
{
    rnl_step_builder step;
    begin(&step, list, name, problem, tile, product);
    rnl_tile_sum_range(&step, tile, product);
    step.step.bytes = 4 * (uint64_t)rnl_tile_scratch(tile, product);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "conv_tiled.cl", "conv_sum");
}

rnl_status rnl_conv_tiled_append(rnl_step_list *list, const char *name, const void *data)
{
    rnl_conv_problem problem = *(const rnl_conv_problem *)data;
    const rnl_tile_product product = make_product(&problem);
    rnl_tile tile;
    rnl_step_builder step;
    if (!rnl_tile_choose(list->device, &product, problem.scratch, &tile))
        return FAIL(RNL_INTERNAL, "%s does not apply to this convolution", name);
    const bool parts = tile.parts > 1;
    problem.index64 |= parts && problem.scratch->offset + rnl_tile_scratch(&tile, &product) > INT32_MAX;
    begin(&step, list, name, &problem, &tile, &product);
    rnl_tile_range(&step, &tile, &product);
    rnl_conv_add_cost(&step, &problem);
    rnl_step_writes(&step, parts ? problem.scratch->slot : problem.dst->slot);
    TRY(rnl_step_end(&step, "conv_tiled.cl", "conv_tiled"));
    return parts ? append_sum(list, name, &problem, &tile, &product) : RNL_OK;
}
