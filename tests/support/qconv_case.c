/* SPDX-License-Identifier: Apache-2.0 */
#include "support/qconv_case.h"
#include "ops/qconv_winograd.h"
#include "ops/qgemm.h"
#include <math.h>
#include <stdlib.h>

static double quantised(const qconv_run *j, double value, const op_tensor *scale, const op_tensor *zero)
{
    const double low = j->dst->view.dtype == RNL_I8 ? -128 : 0;
    const double rounded = nearbyint(value / op_get(scale, NULL).f) + (zero ? op_get(zero, NULL).f : 0);
    return fmax(low, fmin(low + 255, rounded));
}

/* (n, c, h, w) as (n, h, w, c), less `zero`: asking a tensor for one element takes longer than the sum itself. */
static int64_t *in_order(const op_tensor *tensor, int64_t zero)
{
    const int64_t *n = tensor->view.shape;
    int64_t *values = malloc((size_t)rnl_view_elements(&tensor->view) * sizeof(*values));
    ck_assert_ptr_nonnull(values);
    int64_t i = 0;
    for (int64_t image = 0; image < n[0]; image++)
        for (int64_t h = 0; h < n[2]; h++)
            for (int64_t w = 0; w < n[3]; w++)
                for (int64_t c = 0; c < n[1]; c++)
                    values[i++] = op_get(tensor, (int64_t[]){image, c, h, w}).i - zero;
    return values;
}

static int64_t sum_of(const qconv_run *j, const int64_t *at)
{
    const rnl_qconv_params *p = &j->params;
    const int64_t *size = j->src->view.shape, channels = size[1];
    int64_t sum = j->bias ? op_get(j->bias, &at[1]).i : 0;
    for (int64_t y = 0; y < p->kernel[0]; ++y)
        for (int64_t x = 0; x < p->kernel[1]; ++x) {
            const int64_t h = at[2] * p->stride[0] + y * p->dilation[0] - p->pad_begin[0];
            const int64_t w = at[3] * p->stride[1] + x * p->dilation[1] - p->pad_begin[1];
            if (h < 0 || h >= size[2] || w < 0 || w >= size[3])
                continue;
            const int64_t *pixel = j->pixels + ((at[0] * size[2] + h) * size[3] + w) * channels;
            const int64_t *tap = j->taps + ((at[1] * p->kernel[0] + y) * p->kernel[1] + x) * channels;
            for (int64_t c = 0; c < channels; ++c)
                sum += pixel[c] * tap[c];
        }
    return sum;
}

static op_value reference(void *user, const int64_t *at)
{
    const qconv_run *j = user;
    const double scale = op_get(j->a_scale, NULL).f * op_get_broadcast(j->b_scale, 1, &at[1]).f;
    const double result = quantised(j, (double)sum_of(j, at) * scale, j->dst_scale, j->dst_zero);
    if (!j->addend)
        return op_int((int64_t)result);
    const double own = (result - (j->dst_zero ? op_get(j->dst_zero, NULL).f : 0)) * op_get(j->dst_scale, NULL).f;
    const double other = (op_get(j->addend, at).f - op_get(j->addend_zero, NULL).f) * op_get(j->addend_scale, NULL).f;
    return op_int((int64_t)quantised(j, own + other, j->sum_scale, j->sum_zero));
}

static op_tensor *scale_of(int64_t count, int power)
{
    op_tensor *scale = op_tensor_create(RNL_F32, count > 1 ? 1 : 0, &count, OP_GAPS);
    const double value = ldexp(1, power);
    op_fill(scale, OP_RANDOM, value, value);
    return scale;
}

static op_tensor *bytes_of(rnl_dtype dtype, size_t rank, const int64_t *of, op_layout layout)
{
    op_tensor *bytes = op_tensor_create(dtype, rank, of, layout);
    op_fill(bytes, OP_RANDOM, dtype == RNL_I8 ? -128 : 0, dtype == RNL_I8 ? 127 : 255);
    return bytes;
}

static op_tensor *image_of(const qconv_case *test, const int64_t shape[4], uint32_t bit)
{
    const size_t cut = test->cropped & 8 ? 2 : 3;
    int64_t whole[] = {shape[0], shape[1], shape[2], shape[3]};
    whole[cut] += test->cropped & bit ? 2 : 0;
    whole[0] += test->cropped & bit << 2 ? 1 : 0;
    op_tensor *image = bytes_of(test->dtype, 4, whole, OP_CHANNELS_LAST);
    image->view.shape[cut] = shape[cut];
    image->view.shape[0] = shape[0];
    return image;
}

static void add_options(qconv_run *j, const qconv_case *test)
{
    const rnl_dtype dtype = test->dtype;
    j->zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
    j->params.src_zero_point = &j->zero->view;
    j->dst_zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
    j->bias = op_tensor_create(RNL_I32, 1, &test->filters, OP_GAPS);
    op_fill(j->bias, OP_RANDOM, -20000, 20000);
    if (test->options == QCONV_ZEROS)
        return;
    j->addend = image_of(test, j->dst->view.shape, 2);
    j->addend_scale = scale_of(1, 3);
    j->addend_zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
    j->sum_scale = scale_of(1, 5);
    j->sum_zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
}

void qconv_case_create(const qconv_case *test, qconv_run *j)
{
    const rnl_dtype dtype = test->dtype;
    const int64_t src[] = {test->images, test->channels, test->size[0], test->size[1]};
    const int64_t weight[] = {test->filters, test->channels, test->kernel[0], test->kernel[1]};
    int64_t dst[] = {test->images, test->filters, 0, 0};
    *j = (qconv_run){.params = {.spatial = 2, .groups = 1}};
    for (int i = 0; i < 2; ++i) {
        j->params.kernel[i] = test->kernel[i];
        j->params.stride[i] = test->stride[i];
        j->params.dilation[i] = test->dilation[i];
        j->params.pad_begin[i] = test->pad[i];
        dst[2 + i] =
            (test->size[i] + 2 * test->pad[i] - (test->kernel[i] - 1) * test->dilation[i] - 1) / test->stride[i] + 1;
    }
    j->src = image_of(test, src, 1);
    j->weight = bytes_of(RNL_I8, 4, weight, OP_CHANNELS_LAST);
    if (test->extreme) {
        const double lowest = dtype == RNL_I8 ? -128 : 0, value = lowest + (test->extreme > 0 ? 255 : 0);
        op_fill(j->src, OP_RANDOM, value, value);
        op_fill(j->weight, OP_RANDOM, -128, -128);
    }
    j->dst = image_of(test, dst, 4);
    j->a_scale = scale_of(1, -3);
    j->b_scale = scale_of(test->filters > 40 ? test->filters : 1, -4);
    j->dst_scale = scale_of(1, 4);
    if (test->options != QCONV_PLAIN)
        add_options(j, test);
}

static const rnl_view *view_of(const op_tensor *tensor)
{
    return tensor ? &tensor->view : NULL;
}

rnl_qconv_end qconv_case_end(const qconv_run *j)
{
    return (rnl_qconv_end){.bias = view_of(j->bias),
                           .a_scale = view_of(j->a_scale),
                           .b_scale = view_of(j->b_scale),
                           .dst_scale = view_of(j->dst_scale),
                           .dst_zero_point = view_of(j->dst_zero),
                           .addend = view_of(j->addend),
                           .addend_scale = view_of(j->addend_scale),
                           .addend_zero_point = view_of(j->addend_zero),
                           .sum_scale = view_of(j->sum_scale),
                           .sum_zero_point = view_of(j->sum_zero)};
}

/* The weights as a matrix of (taps, channels) x filters. */
static rnl_view matrix_of(const rnl_view *weight)
{
    const int64_t filters = weight->shape[0], depth = rnl_view_elements(weight) / filters;
    rnl_view matrix = *weight;
    matrix.rank = 2;
    matrix.shape[0] = depth;
    matrix.shape[1] = filters;
    matrix.stride[0] = 1;
    matrix.stride[1] = depth;
    return matrix;
}

static op_tensor *pack(const op_tensor *weight)
{
    const rnl_view matrix = matrix_of(&weight->view);
    size_t bytes;
    op_expect(RNL_OK, rnl_qgemm_packed_bytes(op_device(), &matrix, &bytes));
    op_tensor *packed = op_tensor_create(RNL_I32, 1, (int64_t[]){(int64_t)(bytes / 4)}, OP_ROW_MAJOR);
    op_expect(RNL_OK, rnl_op_qgemm_pack(op_list(), &matrix, &packed->view));
    return packed;
}

static op_tensor *pack_winograd(const op_tensor *weight, int64_t form)
{
    const int64_t *n = weight->view.shape, ints = rnl_qconv_winograd_bytes(form, n) / 4;
    op_tensor *packed = op_tensor_create(RNL_I32, 1, &ints, OP_ROW_MAJOR);
    int8_t *dense = malloc((size_t)(n[0] * n[1] * 9)), *at = dense;
    ck_assert_ptr_nonnull(dense);
    for (int64_t m = 0; m < n[0]; m++)
        for (int64_t c = 0; c < n[1]; c++)
            for (int64_t i = 0; i < 9; i++)
                *at++ = (int8_t)op_get(weight, (int64_t[]){m, c, i / 3, i % 3}).i;
    rnl_qconv_winograd_pack(form, n, dense, (int32_t *)(void *)packed->data + packed->view.offset);
    free(dense);
    return packed;
}

bool qconv_case_run(const qconv_case *test, const char *implementation)
{
    qconv_run j;
    qconv_case_create(test, &j);
    const rnl_qconv_end end = qconv_case_end(&j);
    if (!test->winograd &&
        !rnl_qconv_panel_applies(op_device(), &j.params, &end, &j.src->view, &j.weight->view, &j.dst->view))
        return false;
    j.params.winograd = test->winograd;
    j.packed = test->winograd ? pack_winograd(j.weight, test->winograd) : pack(j.weight);
    const int64_t scratch =
        rnl_qconv_scratch(op_device(), &j.params, &end, &j.src->view, &j.weight->view, &j.dst->view);
    if (scratch > 0)
        j.params.scratch = &op_tensor_create(RNL_U8, 1, &scratch, OP_ROW_MAJOR)->view;
    op_expect(RNL_OK, rnl_op_qconv_panel(op_list(), &j.params, &end, &j.src->view, &j.weight->view, &j.packed->view,
                                         &j.dst->view));
    if (implementation)
        ck_assert_str_eq(op_list()->steps[op_list()->step_count - 1].implementation, implementation);
    op_run();
    j.pixels = in_order(j.src, j.zero ? op_get(j.zero, NULL).i : 0);
    j.taps = in_order(j.weight, 0);
    op_check(j.dst, reference, &j, (op_bound){0, 0});
    free(j.taps);
    free(j.pixels);
    return true;
}
