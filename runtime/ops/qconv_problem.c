/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qconv_problem.h"
#include "ops/qgemm_pack.h"
#include <stdlib.h>
#include <string.h>

#define SPATIAL RNL_MAX_SPATIAL
#define MAX_CHANNELS 4096 /* as in qconv_panel.cl */
#define MAX_TAPS 64       /* as in qconv_windows.clh */

/* Bits of what is there, as in qconv_end.clh. */
static const int32_t bits[RNL_QCONV_VIEWS] = {[RNL_QCONV_BIAS] = 4,           [RNL_QCONV_ZA] = 1,
                                              [RNL_QCONV_A_SCALE] = 8,        [RNL_QCONV_B_SCALE] = 16,
                                              [RNL_QCONV_DST_SCALE] = 32,     [RNL_QCONV_ZD] = 64,
                                              [RNL_QCONV_ADDEND_SCALE] = 256, [RNL_QCONV_ADDEND_ZERO] = 512,
                                              [RNL_QCONV_SUM_SCALE] = 1024,   [RNL_QCONV_SUM_ZERO] = 2048};

static const rnl_view *existing(const rnl_view *view)
{
    return rnl_view_exists(view) ? view : NULL;
}

static void list_views(const rnl_qconv_params *params, const rnl_qconv_end *end,
                       const rnl_view *out_views[RNL_QCONV_VIEWS])
{
    const rnl_view *given[RNL_QCONV_VIEWS] = {end->bias,      params->src_zero_point, end->a_scale,
                                              end->b_scale,   end->dst_scale,         end->dst_zero_point,
                                              end->addend,    end->addend_scale,      end->addend_zero_point,
                                              end->sum_scale, end->sum_zero_point};
    for (size_t i = 0; i < RNL_QCONV_VIEWS; ++i)
        out_views[i] = existing(given[i]);
}

static bool is_scale(size_t i)
{
    return i == RNL_QCONV_A_SCALE || i == RNL_QCONV_B_SCALE || i == RNL_QCONV_DST_SCALE ||
           i == RNL_QCONV_ADDEND_SCALE || i == RNL_QCONV_SUM_SCALE;
}

/* Types, and one element, or one for each of `filters` where that may be. */
static bool fits_end(const rnl_view *const *views, const rnl_view *dst)
{
    for (size_t i = 0; i < RNL_QCONV_VIEWS; ++i) {
        if (!views[i] || i == RNL_QCONV_ADDEND)
            continue;
        const bool many = (i == RNL_QCONV_BIAS || i == RNL_QCONV_B_SCALE) && views[i]->rank == 1 &&
                          views[i]->shape[0] == dst->shape[1];
        if (views[i]->dtype != (i == RNL_QCONV_BIAS ? RNL_I32
                                : is_scale(i)       ? RNL_F32
                                                    : dst->dtype) ||
            (!many && rnl_view_elements(views[i]) != 1))
            return false;
    }
    const rnl_view *addend = views[RNL_QCONV_ADDEND];
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

bool rnl_qconv_problem_of(const rnl_qconv_params *params, const rnl_qconv_end *end, const rnl_view *src,
                          const rnl_view *weight, const rnl_view *dst, rnl_qconv_problem *out_problem)
{
    const char *mode = getenv("RUNNEL_QCONV");
    const rnl_view *checked[2] = {src, dst};
    bool index64, index64_end;
    *out_problem = (rnl_qconv_problem){.params = params, .src = src, .weight = weight, .dst = dst};
    list_views(params, end, out_problem->views);
    const bool bytes =
        (src->dtype == RNL_U8 || src->dtype == RNL_I8) && weight->dtype == RNL_I8 && dst->dtype == src->dtype;
    if (!bytes || existing(params->weight_zero_point) || (mode && strcmp(mode, "columns") == 0) ||
        !fits_shapes(params, src, weight, dst) || !fits_end(out_problem->views, dst) ||
        rnl_views_check(checked, 2, &index64) != RNL_OK ||
        rnl_views_check(out_problem->views, RNL_QCONV_VIEWS, &index64_end) != RNL_OK)
        return false;
    const int64_t channels = src->shape[1];
    if (index64 || index64_end || src->stride[1] != 1 || dst->stride[1] != 1 || channels % 4 != 0 || channels < 4 ||
        channels > MAX_CHANNELS || rnl_view_elements(weight) >= INT32_MAX / 8)
        return false;
    out_problem->depth = channels;
    for (size_t i = 0; i < params->spatial; ++i)
        out_problem->depth *= params->kernel[i];
    out_problem->flops =
        2 * (uint64_t)rnl_view_elements(dst) * (uint64_t)(end->products ? end->products : out_problem->depth);
    return true;
}

int64_t rnl_qconv_panel_ints(const rnl_qconv_problem *problem)
{
    return (1 + problem->depth / 4) * RNL_QGEMM_PANEL;
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

static int32_t stride_of(const rnl_view *view)
{
    return view && rnl_view_elements(view) > 1 ? (int32_t)view->stride[0] : 0;
}

static void add_views(rnl_step_builder *step, const rnl_view *const *views, int32_t *out_has)
{
    const size_t count = views[RNL_QCONV_ADDEND] ? RNL_QCONV_VIEWS : RNL_QCONV_ADDEND;
    for (size_t i = 0; i < count; ++i) {
        rnl_step_view(step, views[i]);
        *out_has |= views[i] ? bits[i] : 0;
    }
}

void rnl_qconv_add_arguments(rnl_step_builder *step, const rnl_qconv_problem *problem, int32_t flags[8])
{
    const rnl_qconv_params *params = problem->params;
    const rnl_view *src = problem->src, *dst = problem->dst, *addend = problem->views[RNL_QCONV_ADDEND];
    const size_t spatial = params->spatial;
    flags[0] = 0;
    flags[5] = stride_of(problem->views[RNL_QCONV_BIAS]);
    flags[6] = stride_of(problem->views[RNL_QCONV_B_SCALE]);
    flags[7] = (int32_t)rnl_qconv_panel_ints(problem);
    if (addend)
        rnl_step_define(step, "SUM");
    rnl_step_view(step, dst);
    rnl_step_view(step, src);
    rnl_step_view(step, problem->packed);
    add_views(step, problem->views, &flags[0]);
    add_spatial(step, &dst->shape[2], spatial, 1, dst->shape[1]);
    add_spatial(step, &src->shape[2], spatial, 1, src->shape[1]);
    add_spatial(step, params->kernel, spatial, 1, 0);
    add_spatial(step, params->stride, spatial, 1, 0);
    add_spatial(step, params->dilation, spatial, 1, 0);
    add_spatial(step, params->pad_begin, spatial, 0, 0);
    add_strides(step, dst, spatial);
    add_strides(step, src, spatial);
    add_strides(step, addend ? addend : dst, spatial);
    rnl_step_value(step, flags, 8 * sizeof *flags);
}

void rnl_qconv_add_cost(rnl_step_builder *step, const rnl_qconv_problem *problem)
{
    step->step.flops = problem->flops;
    step->step.bytes = (uint64_t)rnl_view_elements(problem->src) + (uint64_t)rnl_view_elements(problem->weight) +
                       (problem->views[RNL_QCONV_ADDEND] ? 2u : 1u) * (uint64_t)rnl_view_elements(problem->dst);
    rnl_step_writes(step, problem->dst->slot);
}
