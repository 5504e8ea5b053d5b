/* SPDX-License-Identifier: Apache-2.0 */
/* DFT and STFT in passes, and tables that are made while planning. */
#include "model/lower_list.h"

#include "graph/host_element.h"
#include "graph/op_common.h"
#include "model/compose.h"
#include "ops/dft.h"
#include <math.h>

/* cos and sin of 2 * pi * i / points, exact in the eighth of a turn that they are taken from. */
static void turn(int64_t i, int64_t points, double *out_cos, double *out_sin)
{
    static const double quarter = 1.57079632679489661923;
    int64_t quarters = 4 * i / points, rest = 4 * i - quarters * points; /* rest / points of a quarter */
    double angle = quarter * (double)rest / (double)points;
    bool late = 2 * rest > points;
    double other = quarter * (double)(points - rest) / (double)points;
    double c = late ? sin(other) : cos(angle), s = late ? cos(other) : sin(angle);
    *out_cos = quarters == 0 ? c : quarters == 1 ? -s : quarters == 2 ? -c : s;
    *out_sin = quarters == 0 ? s : quarters == 1 ? c : quarters == 2 ? -s : -c;
}

/* Each number, and what it lost when it was rounded. */
static rnl_status lower_table(rnl_lowering *lowering, int64_t points, rnl_dtype dtype, rnl_view *out_view)
{
    rnl_tensor_desc desc = {.dtype = dtype, .rank = 2, .shape = {points, 4}};
    void *data = NULL;
    TRY(rnl_zone_alloc(lowering->planner->zone, (size_t)points * 4, rnl_dtype_bytes(dtype), &data));
    for (int64_t i = 0; i < points; i++) {
        double numbers[2];
        turn(i, points, &numbers[0], &numbers[1]);
        for (int64_t part = 0; part < 2; part++) {
            float rounded = (float)numbers[part];
            double rest = dtype == RNL_F64 ? 0 : numbers[part] - (double)rounded;
            rnl_element_store(data, 4 * i + part, dtype, (rnl_number){.f = numbers[part]});
            rnl_element_store(data, 4 * i + 2 + part, dtype, (rnl_number){.f = rest});
        }
    }
    desc.host = data;
    return rnl_lower_constant(lowering, &desc, out_view);
}

/* Of views whose last two dimensions are samples and components. */
static rnl_status append_dft(rnl_lowering *lowering, const rnl_dft *dft, const rnl_view *source, const rnl_view *target)
{
    int64_t radices[RNL_DFT_MAX_PASSES], shape[RNL_MAX_RANK];
    rnl_dtype dtype = source->dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    rnl_view table, from = *source, to, memory[2];
    size_t rank = source->rank;
    if (dft->points > RNL_DFT_MAX_POINTS)
        return FAIL(RNL_UNIMPLEMENTED, "a Fourier transform of %" PRId64 " points; at most %" PRId64 " are supported",
                    dft->points, RNL_DFT_MAX_POINTS);
    size_t passes = rnl_dft_radices(dft->points, radices);
    for (size_t i = 0; i < rank; i++)
        shape[i] = i + 2 < rank ? target->shape[i] : i + 1 < rank ? dft->points : 2;
    TRY(lower_table(lowering, dft->points, dtype, &table));
    for (size_t i = 0; i < 2 && i + 1 < passes; i++)
        TRY(rnl_lower_scratch(lowering, dtype, rank, shape, RNL_LAYOUT_ROW_MAJOR, &memory[i]));
    for (size_t i = 0; i < passes; i++) {
        to = i + 1 == passes ? *target : memory[i % 2];
        TRY(rnl_op_dft_pass(lowering->list, dft, i, &from, &table, &to));
        from = to;
    }
    return RNL_OK;
}

/* The axis before the last one. */
static rnl_view with_axis_last(const rnl_view *view, size_t axis)
{
    size_t permutation[RNL_MAX_RANK], next = 0;
    for (size_t i = 0; i < view->rank; i++)
        if (i != axis && i + 1 < view->rank)
            permutation[next++] = i;
    permutation[next++] = axis;
    permutation[next] = view->rank - 1;
    return rnl_view_permute(view, permutation);
}

rnl_status rnl_lower_dft(rnl_lowering *lowering)
{
    rnl_dft_params params;
    rnl_view source, target;
    TRY(rnl_dft_resolve(&lowering->context, &params));
    const rnl_dft dft = {.points = params.points, .inverse = params.inverse, .mirrored = params.mirrored};
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    source = with_axis_last(&source, params.axis);
    target = with_axis_last(&target, params.axis);
    return append_dft(lowering, &dft, &source, &target);
}

/* The frames, which overlap in memory: batches, frames, samples, components. */
static rnl_view frames_of(const rnl_view *signal, const rnl_stft_params *stft)
{
    rnl_view frames = *signal;
    frames.rank = 4;
    frames.shape[1] = stft->frames;
    frames.stride[1] = stft->step * signal->stride[1];
    frames.shape[2] = stft->samples;
    frames.stride[2] = signal->stride[1];
    frames.shape[3] = signal->shape[2];
    frames.stride[3] = signal->stride[2];
    return frames;
}

rnl_status rnl_lower_stft(rnl_lowering *lowering)
{
    rnl_stft_params stft;
    rnl_view signal, window, frames, target;
    TRY(rnl_stft_resolve(&lowering->context, &stft));
    const rnl_dft dft = {.points = stft.points};
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &signal));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &window));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    if (rnl_view_elements(&target) == 0)
        return RNL_OK;
    frames = frames_of(&signal, &stft);
    if (rnl_view_exists(&window)) {
        window.rank = 2;
        window.shape[0] = stft.samples;
        window.shape[1] = 1;
        window.stride[1] = 0;
        TRY(rnl_compose_binary(lowering, RNL_MAP_MUL, &frames, &window, &frames));
    }
    return append_dft(lowering, &dft, &frames, &target);
}

/* Larger ones than are evaluated beforehand. */
rnl_status rnl_lower_signal_table(rnl_lowering *lowering)
{
    rnl_tensor_desc table = lowering->context.outputs[0];
    rnl_view view;
    void *data = NULL;
    int64_t elements = rnl_desc_elements(&table);
    TRY(rnl_zone_alloc(lowering->planner->zone, elements ? (size_t)elements : 1, rnl_dtype_bytes(table.dtype), &data));
    TRY(rnl_signal_table(&lowering->context, data));
    table.host = data;
    TRY(rnl_lower_constant(lowering, &table, &view));
    rnl_lower_alias(lowering, 0, &view);
    return RNL_OK;
}
