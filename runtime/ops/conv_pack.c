/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_weight.h"

static rnl_status check(const rnl_view *weight, const rnl_view *dst, const rnl_conv_layout *layout, int64_t groups,
                        bool *out_index64)
{
    TRY(rnl_views_check((const rnl_view *[]){weight, dst}, 2, out_index64));
    if (weight->rank < 3 || weight->rank > 2 + RNL_MAX_SPATIAL || groups < 1 || weight->shape[0] % groups)
        return FAIL(RNL_INVALID_ARGUMENT, "packing weights of rank %zu for a convolution in %lld groups", weight->rank,
                    (long long)groups);
    if (dst->rank != 1 || dst->stride[0] != 1 || dst->shape[0] != layout->elements || dst->dtype != weight->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "packing a convolution's weights into %lld elements; expected %lld",
                    (long long)dst->shape[0], (long long)layout->elements);
    return RNL_OK;
}

static void add_shape(rnl_step_builder *step, const rnl_view *weight, const rnl_conv_layout *l, bool transposed)
{
    const int64_t size[4] = {l->groups, l->panels, l->taps, l->channels};
    int32_t taps[4] = {1, 1, 1, (int32_t)l->filters};
    int64_t stride[6] = {0, weight->stride[transposed ? 1 : 0], weight->stride[transposed ? 0 : 1], 0, 0, 0};
    stride[0] = transposed ? l->channels * stride[2] : l->filters * stride[1];
    for (size_t i = 2, to = 5 - weight->rank; i < weight->rank; ++i, ++to) {
        taps[to] = (int32_t)weight->shape[i];
        stride[3 + to] = weight->stride[i];
    }
    rnl_step_index(step, l->elements);
    rnl_step_indices(step, 4, size, 4, 0);
    rnl_step_value(step, taps, sizeof taps);
    rnl_step_indices(step, 8, stride, 6, 0);
    rnl_step_int(step, l->depthwise);
}

rnl_status rnl_op_conv_pack(rnl_step_list *list, bool transposed, int64_t groups, const rnl_view *weight,
                            const rnl_view *dst)
{
    rnl_step_builder step;
    bool index64 = false;
    const rnl_conv_layout layout = rnl_conv_find_layout(transposed, groups, weight->rank, weight->shape);
    TRY(check(weight, dst, &layout, groups, &index64));
    rnl_step_begin(&step, list, "conv-pack:portable", index64);
    rnl_step_type(&step, "T", rnl_dtype_bits(weight->dtype));
    rnl_step_view(&step, weight);
    rnl_step_view(&step, dst);
    add_shape(&step, weight, &layout, transposed);
    step.step.bytes = 2 * (uint64_t)layout.elements * rnl_dtype_bytes(weight->dtype);
    rnl_step_range(&step, 1, (size_t[3]){(size_t)layout.elements}, (size_t[3]){64});
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "conv_pack.cl", "conv_pack");
}
