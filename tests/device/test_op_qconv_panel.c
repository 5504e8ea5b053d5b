/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes that end in bytes, where the device has the instruction for them. */
#include "ops/qconv_panel.h"
#include "ops/qgemm.h"
#include "support/op_test.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t images, channels, filters, size[2], kernel[2], stride[2], dilation[2], pad[2];
} shape;

/* Tiles of each number of pixels, less than one, parts of one; blocks of channels whole, and parts of both vectors. */
static const shape shapes[] = {
    {1, 4, 3, {2, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},   {2, 8, 40, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {1, 12, 64, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, {3, 20, 33, {9, 5}, {2, 3}, {2, 1}, {1, 2}, {1, 2}},
    {1, 64, 96, {7, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}}, {2, 16, 16, {11, 13}, {1, 1}, {2, 2}, {1, 1}, {0, 0}},
    {1, 4, 47, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {4, 4}},
};
#define SHAPES ((int)(sizeof shapes / sizeof *shapes))

/* Scales are powers of two, so that float32 computes exactly and halves occur. */
typedef struct job {
    rnl_qconv_params params;
    op_tensor *src, *weight, *packed, *bias, *dst, *addend;
    op_tensor *zero, *a_scale, *b_scale, *dst_scale, *dst_zero, *addend_scale, *addend_zero, *sum_scale, *sum_zero;
} job;

static double quantised(const job *j, double value, const op_tensor *scale, const op_tensor *zero)
{
    const double low = j->dst->view.dtype == RNL_I8 ? -128 : 0;
    const double rounded = nearbyint(value / op_get(scale, NULL).f) + (zero ? op_get(zero, NULL).f : 0);
    return fmax(low, fmin(low + 255, rounded));
}

static int64_t sum_of(const job *j, const int64_t *at)
{
    const rnl_qconv_params *p = &j->params;
    const int64_t zero = j->zero ? op_get(j->zero, NULL).i : 0;
    int64_t sum = j->bias ? op_get(j->bias, &at[1]).i : 0;
    for (int64_t h = 0; h < p->kernel[0]; ++h)
        for (int64_t w = 0; w < p->kernel[1]; ++w)
            for (int64_t c = 0; c < j->src->view.shape[1]; ++c) {
                const int64_t from[] = {at[0], c, at[2] * p->stride[0] + h * p->dilation[0] - p->pad_begin[0],
                                        at[3] * p->stride[1] + w * p->dilation[1] - p->pad_begin[1]};
                const int64_t by[] = {at[1], c, h, w};
                if (from[2] >= 0 && from[2] < j->src->view.shape[2] && from[3] >= 0 && from[3] < j->src->view.shape[3])
                    sum += (op_get(j->src, from).i - zero) * op_get(j->weight, by).i;
            }
    return sum;
}

static op_value reference(void *user, const int64_t *at)
{
    const job *j = user;
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

static void make_operands(job *j, const shape *s, rnl_dtype dtype)
{
    const int64_t src[] = {s->images, s->channels, s->size[0], s->size[1]};
    const int64_t weight[] = {s->filters, s->channels, s->kernel[0], s->kernel[1]};
    int64_t dst[] = {s->images, s->filters, 0, 0};
    j->params = (rnl_qconv_params){.spatial = 2, .groups = 1};
    for (int i = 0; i < 2; ++i) {
        j->params.kernel[i] = s->kernel[i];
        j->params.stride[i] = s->stride[i];
        j->params.dilation[i] = s->dilation[i];
        j->params.pad_begin[i] = s->pad[i];
        dst[2 + i] = (s->size[i] + 2 * s->pad[i] - (s->kernel[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
    }
    j->src = bytes_of(dtype, 4, src, OP_CHANNELS_LAST);
    j->weight = bytes_of(RNL_I8, 4, weight, OP_CHANNELS_LAST);
    j->dst = op_tensor_create(dtype, 4, dst, OP_CHANNELS_LAST);
    j->a_scale = scale_of(1, -3);
    j->b_scale = scale_of(s->filters > 40 ? s->filters : 1, -4);
    j->dst_scale = scale_of(1, 4);
}

static void add_options(job *j, const shape *s, rnl_dtype dtype, bool sum)
{
    j->zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
    j->params.src_zero_point = &j->zero->view;
    j->dst_zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
    j->bias = op_tensor_create(RNL_I32, 1, &s->filters, OP_GAPS);
    op_fill(j->bias, OP_RANDOM, -20000, 20000);
    if (!sum)
        return;
    j->addend = bytes_of(dtype, 4, j->dst->view.shape, OP_CHANNELS_LAST);
    j->addend_scale = scale_of(1, 3);
    j->addend_zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
    j->sum_scale = scale_of(1, 5);
    j->sum_zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
}

static const rnl_view *view_of(const op_tensor *tensor)
{
    return tensor ? &tensor->view : NULL;
}

static rnl_qconv_end end_of(const job *j)
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

START_TEST(convolutions)
{
    const shape *s = &shapes[_i % SHAPES];
    const rnl_dtype dtype = _i / SHAPES & 1 ? RNL_I8 : RNL_U8;
    job j = {0};
    size_t bytes;
    make_operands(&j, s, dtype);
    if (_i / SHAPES / 2 > 0)
        add_options(&j, s, dtype, _i / SHAPES / 2 > 1);
    const rnl_qconv_end end = end_of(&j);
    if (!rnl_qconv_panel_applies(op_device(), &j.params, &end, &j.src->view, &j.weight->view, &j.dst->view))
        return;
    const rnl_view matrix = matrix_of(&j.weight->view);
    op_expect(RNL_OK, rnl_qgemm_packed_bytes(op_device(), &matrix, &bytes));
    j.packed = op_tensor_create(RNL_I32, 1, (int64_t[]){(int64_t)(bytes / 4)}, OP_ROW_MAJOR);
    op_expect(RNL_OK, rnl_op_qgemm_pack(op_list(), &matrix, &j.packed->view));
    op_expect(RNL_OK, rnl_op_qconv_panel(op_list(), &j.params, &end, &j.src->view, &j.weight->view, &j.packed->view,
                                         &j.dst->view));
    op_run();
    op_check(j.dst, reference, &j, (op_bound){0, 0});
}
END_TEST

/* Other types, layouts, shapes and zero points are for other steps. */
START_TEST(refusals)
{
    job j = {0};
    rnl_view other;
    make_operands(&j, &shapes[1], RNL_U8);
    const rnl_qconv_end end = end_of(&j);
    const rnl_view *src = &j.src->view, *weight = &j.weight->view, *dst = &j.dst->view;
    other = *src;
    other.stride[1] = 2;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &j.params, &end, &other, weight, dst));
    other = *weight;
    other.dtype = RNL_U8;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &j.params, &end, src, &other, dst));
    other = *dst;
    other.dtype = RNL_I32;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &j.params, &end, src, weight, &other));
    rnl_qconv_params params = j.params;
    params.weight_zero_point = src;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &params, &end, src, weight, dst));
    params = j.params;
    params.stride[0] = INT64_MAX;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &params, &end, src, weight, dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qconv_panel(op_list(), &params, &end, src, weight, NULL, dst));
    setenv("RUNNEL_QCONV", "columns", 1);
    ck_assert(!rnl_qconv_panel_applies(op_device(), &j.params, &end, src, weight, dst));
    unsetenv("RUNNEL_QCONV");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("integer convolutions in one step");
    TCase *tests = op_case(suite, "bytes into bytes");
    tcase_add_loop_test(tests, convolutions, 0, 6 * SHAPES);
    tcase_add_test(tests, refusals);
    return op_main(suite);
}
