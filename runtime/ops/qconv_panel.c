/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qconv_panel.h"
#include "base/memory.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/qgemm_pack.h"
#include <stdlib.h>
#include <string.h>

#define SPATIAL RNL_MAX_SPATIAL
#define MAX_BLOCKS 16           /* of a work-item, and … */
#define MAX_CHANNELS 4096       /* … as in qconv_panel.cl */
#define MAX_TAPS 64             /* likewise */
#define MOST_PIXELS 14          /* of a tile: its sums, a row of weights and a pixel fill 32 registers */
#define BLOCK_BYTES (384 << 10) /* of weights that a work-item reads for each tile: they stay in a core's cache */
#define ITEMS 32                /* of a unit */

static const rnl_view *existing(const rnl_view *view)
{
    return rnl_view_exists(view) ? view : NULL;
}

/* The views behind weight, in the kernel's order; bits of what is there, as in qconv_panel.cl. */
enum { BIAS, ZA, A_SCALE, B_SCALE, DST_SCALE, ZD, ADDEND, ADDEND_SCALE, ADDEND_ZERO, SUM_SCALE, SUM_ZERO, VIEWS };
static const int32_t bits[VIEWS] = {[BIAS] = 4,         [ZA] = 1,         [A_SCALE] = 8,        [B_SCALE] = 16,
                                    [DST_SCALE] = 32,   [ZD] = 64,        [ADDEND_SCALE] = 256, [ADDEND_ZERO] = 512,
                                    [SUM_SCALE] = 1024, [SUM_ZERO] = 2048};

static void list_views(const rnl_qconv_params *params, const rnl_qconv_end *end, const rnl_view *out_views[VIEWS])
{
    const rnl_view *given[VIEWS] = {end->bias,      params->src_zero_point, end->a_scale,
                                    end->b_scale,   end->dst_scale,         end->dst_zero_point,
                                    end->addend,    end->addend_scale,      end->addend_zero_point,
                                    end->sum_scale, end->sum_zero_point};
    for (size_t i = 0; i < VIEWS; ++i)
        out_views[i] = existing(given[i]);
}

/* Types, and one element, or one for each of `filters` where that may be. */
static bool fits_end(const rnl_view *const *views, const rnl_view *dst)
{
    for (size_t i = 0; i < VIEWS; ++i) {
        const bool scale = i == A_SCALE || i == B_SCALE || i == DST_SCALE || i == ADDEND_SCALE || i == SUM_SCALE;
        if (!views[i] || i == ADDEND)
            continue;
        const bool many = (i == BIAS || i == B_SCALE) && views[i]->rank == 1 && views[i]->shape[0] == dst->shape[1];
        if (views[i]->dtype != (i == BIAS ? RNL_I32
                                : scale   ? RNL_F32
                                          : dst->dtype) ||
            (!many && rnl_view_elements(views[i]) != 1))
            return false;
    }
    const rnl_view *addend = views[ADDEND];
    return !addend || (addend->dtype == dst->dtype && rnl_shapes_equal(addend, dst) && addend->stride[1] == 1);
}

static bool fits_shapes(const rnl_qconv_params *params, const rnl_view *src, const rnl_view *weight,
                        const rnl_view *dst)
{
    const size_t rank = params->spatial + 2;
    int64_t taps = 1;
    bool fits = params->spatial >= 1 && params->spatial <= SPATIAL && params->groups == 1 && src->rank == rank &&
                weight->rank == rank && dst->rank == rank && src->shape[1] == weight->shape[1] &&
                dst->shape[0] == src->shape[0] && dst->shape[1] == weight->shape[0];
    for (size_t i = 0; fits && i < params->spatial; ++i)
        fits = weight->shape[2 + i] == params->kernel[i] && params->kernel[i] >= 1 && params->stride[i] >= 1 &&
               params->dilation[i] >= 1 && params->pad_begin[i] >= 0 && params->pad_begin[i] < INT32_MAX / 8 &&
               params->kernel[i] < INT32_MAX / 8 / params->dilation[i] &&
               dst->shape[2 + i] < INT32_MAX / 8 / params->stride[i] &&
               !__builtin_mul_overflow(taps, params->kernel[i], &taps);
    return fits && taps <= MAX_TAPS;
}

bool rnl_qconv_panel_applies(rnl_device *device, const rnl_qconv_params *params, const rnl_qconv_end *end,
                             const rnl_view *src, const rnl_view *weight, const rnl_view *dst)
{
    const char *mode = getenv("RUNNEL_QCONV");
    const rnl_view *views[VIEWS];
    const rnl_view *checked[2] = {src, dst};
    bool index64, index64_end;
    list_views(params, end, views);
    const bool bytes =
        (src->dtype == RNL_U8 || src->dtype == RNL_I8) && weight->dtype == RNL_I8 && dst->dtype == src->dtype;
    if (!bytes || existing(params->weight_zero_point) || (mode && strcmp(mode, "columns") == 0) ||
        rnl_device_multiplies_bytes(device) == RNL_INSTRUCTION_COUNT || !fits_shapes(params, src, weight, dst) ||
        !fits_end(views, dst) || rnl_views_check(checked, 2, &index64) != RNL_OK ||
        rnl_views_check(views, VIEWS, &index64_end) != RNL_OK)
        return false;
    const int64_t channels = src->shape[1];
    return !index64 && !index64_end && src->stride[1] == 1 && dst->stride[1] == 1 && channels % 4 == 0 &&
           channels >= 4 && channels <= MAX_CHANNELS && rnl_view_elements(weight) < INT32_MAX / 8;
}

/* ---- the step --------------------------------------------------------------------------------------------------- */

/* Images of 7 x 7 leave (almost) none over with fewer pixels a tile. */
static int64_t pixels_of_tile(int64_t most, int64_t fewer, int64_t pixels)
{
    const int64_t wide = rnl_divide_up(pixels, most) * most, narrow = rnl_divide_up(pixels, fewer) * fewer;
    if (pixels <= 4)
        return 4;
    return (wide - narrow) * 10 > pixels ? fewer : most;
}

/* Runs of pixels and blocks of channels of a work-item. */
typedef struct parts {
    int64_t runs, blocks;         /* of all */
    int64_t each_run, each_block; /* of a work-item */
} parts;

static parts split(const rnl_device *device, int64_t runs, int64_t blocks, int64_t block_bytes)
{
    parts p = {.runs = runs, .blocks = blocks};
    const int64_t items = rnl_device_items(device, ITEMS);
    int64_t most = BLOCK_BYTES / block_bytes;
    most = most < 1 ? 1 : most > MAX_BLOCKS ? MAX_BLOCKS : most;
    int64_t groups = rnl_divide_up(p.blocks, most);
    p.each_run = rnl_divide_up(p.runs * groups, items);
    if (p.each_run > p.runs)
        p.each_run = p.runs;
    while (groups < p.blocks && groups * rnl_divide_up(p.runs, p.each_run) < items / 2)
        groups = 2 * groups < p.blocks ? 2 * groups : p.blocks;
    p.each_block = rnl_divide_up(p.blocks, groups);
    p.each_run = rnl_even_share(p.runs, p.each_run);
    return p;
}

/* Spatial numbers in three dimensions, with `fill` before those of fewer. */
static void add_spatial(rnl_step_builder *step, const int64_t *values, size_t spatial, int64_t fill, int64_t last)
{
    int64_t all[4] = {fill, fill, fill, last};
    for (size_t i = 0; i < spatial; ++i)
        all[SPATIAL - spatial + i] = values[i];
    rnl_step_indices(step, 4, all, 4, 0);
}

static void add_strides(rnl_step_builder *step, const rnl_view *view, size_t spatial)
{
    int64_t strides[4] = {view->stride[0]};
    for (size_t i = 0; i < spatial; ++i)
        strides[1 + SPATIAL - spatial + i] = view->stride[2 + i];
    rnl_step_indices(step, 4, strides, 4, 0);
}

static void add_sizes(rnl_step_builder *step, const rnl_qconv_params *params, const rnl_view *src, const rnl_view *dst)
{
    const size_t spatial = params->spatial;
    add_spatial(step, &dst->shape[2], spatial, 1, dst->shape[1]);
    add_spatial(step, &src->shape[2], spatial, 1, src->shape[1]);
    add_spatial(step, params->kernel, spatial, 1, 0);
    add_spatial(step, params->stride, spatial, 1, 0);
    add_spatial(step, params->dilation, spatial, 1, 0);
    add_spatial(step, params->pad_begin, spatial, 0, 0);
    add_strides(step, dst, spatial);
    add_strides(step, src, spatial);
}

static int32_t stride_of(const rnl_view *view)
{
    return view && rnl_view_elements(view) > 1 ? (int32_t)view->stride[0] : 0;
}

static void add_views(rnl_step_builder *step, const rnl_view *const *views, int32_t *out_has)
{
    const size_t count = views[ADDEND] ? VIEWS : ADDEND;
    for (size_t i = 0; i < count; ++i) {
        rnl_step_view(step, views[i]);
        *out_has |= views[i] ? bits[i] : 0;
    }
}

rnl_status rnl_op_qconv_panel(rnl_step_list *list, const rnl_qconv_params *params, const rnl_qconv_end *end,
                              const rnl_view *src, const rnl_view *weight, const rnl_view *packed, const rnl_view *dst)
{
    const rnl_view *views[VIEWS];
    rnl_step_builder step;
    if (!rnl_qconv_panel_applies(list->device, params, end, src, weight, dst) || !rnl_view_exists(packed))
        return FAIL(RNL_INVALID_ARGUMENT, "an integer convolution does not fit the step for it");
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    const int64_t filters = dst->shape[1], pixels = rnl_view_elements(dst) / filters;
    const int64_t depth = rnl_view_elements(weight) / filters;
    const rnl_instruction instruction = rnl_device_multiplies_bytes(list->device);
    const bool halves = instruction == RNL_INSTRUCTION_MADD8; /* half the registers, of half the width */
    const int64_t panel = (1 + depth / 4) * RNL_QGEMM_PANEL, block = RNL_QGEMM_PANEL / (halves ? 2 : 1);
    const int64_t tile = halves ? pixels_of_tile(6, 5, pixels) : pixels_of_tile(MOST_PIXELS, 10, pixels);
    const parts p = split(list->device, rnl_divide_up(pixels, tile), rnl_divide_up(filters, block),
                          4 * panel * block / RNL_QGEMM_PANEL);
    list_views(params, end, views);
    rnl_step_begin(&step, list, "qconv:panel", false);
    rnl_step_define(&step, "%s -DT_A=%s -DP=%lld", rnl_instruction_define(instruction), rnl_dtype_define(src->dtype),
                    (long long)tile);
    if (views[ADDEND])
        rnl_step_define(&step, "SUM");
    int32_t flags[8] = {0,
                        (int32_t)pixels,
                        (int32_t)p.each_run,
                        (int32_t)p.each_block,
                        src->dtype == RNL_I8,
                        stride_of(views[BIAS]),
                        stride_of(views[B_SCALE]),
                        (int32_t)panel};
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, packed);
    add_views(&step, views, &flags[0]);
    add_sizes(&step, params, src, dst);
    add_strides(&step, views[ADDEND] ? views[ADDEND] : dst, params->spatial);
    rnl_step_value(&step, flags, sizeof flags);
    rnl_step_range(
        &step, 2, (size_t[3]){(size_t)rnl_divide_up(p.runs, p.each_run), (size_t)rnl_divide_up(p.blocks, p.each_block)},
        (size_t[3]){1, 1});
    step.step.flops = 2 * (uint64_t)rnl_view_elements(dst) * (uint64_t)(end->products ? end->products : depth);
    step.step.bytes = (uint64_t)rnl_view_elements(src) + (uint64_t)rnl_view_elements(weight) +
                      (views[ADDEND] ? 2u : 1u) * (uint64_t)rnl_view_elements(dst);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "qconv_panel.cl", "qconv_panel");
}
