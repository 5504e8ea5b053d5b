/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv.h"

/* Hostile shapes overflow; INT64_MAX then, which no allocation and no view check lets pass. */
static int64_t saturating_mul(int64_t a, int64_t b)
{
    int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t padded_row(int64_t channels)
{
    const int64_t rounded = saturating_add(channels, RNL_CONV_CHANNEL_ALIGN - 1);
    return rounded / RNL_CONV_CHANNEL_ALIGN * RNL_CONV_CHANNEL_ALIGN;
}

void rnl_conv_weight_layout(bool transposed, int64_t groups, uint32_t slot, rnl_dtype dtype, size_t rank,
                            const int64_t *shape, rnl_view *out_view, int64_t *out_elements)
{
    const size_t m = transposed ? 1 : 0, c = transposed ? 0 : 1;
    rnl_view view = {.slot = slot, .dtype = dtype, .rank = rank};
    for (size_t i = 0; i < rank; ++i)
        view.shape[i] = shape[i];
    view.stride[m] = 1;
    view.stride[c] = padded_row(shape[m]);
    int64_t stride = saturating_mul(view.stride[c], shape[c]);
    for (size_t i = rank; i-- > 2;) {
        view.stride[i] = stride;
        stride = saturating_mul(stride, shape[i]);
    }
    const int64_t group_channels = transposed && groups > 0 ? shape[c] / groups : shape[c];
    *out_view = view;
    *out_elements = saturating_add(stride, group_channels > RNL_CONV_ZEROS ? group_channels : RNL_CONV_ZEROS);
}
