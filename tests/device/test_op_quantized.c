/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators on quantised tensors, and convolutions of bytes, in any layout; tests/model has the operators.
 */
#include "ops/qconv.h"
#include "ops/qdynamic.h"
#include "ops/qmap.h"
#include "support/op_test.h"
#include "support/op_values.h"
#include <math.h>

/* Scales are powers of two, so that float32 computes exactly and halves occur. */
typedef struct map_job {
    rnl_qmap_op op;
    op_tensor *a, *a_scale, *a_zero, *b, *b_scale, *b_zero, *dst, *dst_scale, *dst_zero;
} map_job;

static double value_of(const map_job *job, const op_tensor *values, const op_tensor *scale, const op_tensor *zero,
                       const int64_t *at)
{
    const size_t rank = job->dst->view.rank;
    const double difference = op_get_broadcast(values, rank, at).f - (zero ? op_get_broadcast(zero, rank, at).f : 0);
    return difference * (scale ? op_get_broadcast(scale, rank, at).f : 1);
}

static op_value map_reference(void *user, const int64_t *at)
{
    const map_job *job = user;
    const size_t rank = job->dst->view.rank;
    const bool is_signed = job->dst->view.dtype == RNL_I8;
    const double low = is_signed ? -128 : 0, zero = op_get_broadcast(job->dst_zero, rank, at).f;
    double value = value_of(job, job->a, job->a_scale, job->a_zero, at);
    if (job->op == RNL_QMAP_MUL)
        value *= value_of(job, job->b, job->b_scale, job->b_zero, at);
    if (job->op == RNL_QMAP_ADD)
        value += value_of(job, job->b, job->b_scale, job->b_zero, at);
    const double rounded = nearbyint(value / op_get_broadcast(job->dst_scale, rank, at).f) + zero;
    return op_int((int64_t)(rounded > low ? fmin(rounded, low + 255) : low));
}

static op_tensor *scale_of(size_t rank, const int64_t *shape, int power)
{
    op_tensor *scale = op_tensor_create(RNL_F32, rank, shape, OP_GAPS);
    const double value = ldexp(1, power);
    op_fill(scale, OP_RANDOM, value, value);
    return scale;
}

static op_tensor *bytes_of(rnl_dtype dtype, size_t rank, const int64_t *shape, op_layout layout)
{
    op_tensor *bytes = op_tensor_create(dtype, rank, shape, layout);
    op_fill(bytes, OP_RANDOM, dtype == RNL_I8 ? -128 : 0, dtype == RNL_I8 ? 127 : 255);
    return bytes;
}

static void run_map(map_job *job)
{
    const rnl_quantized a = {&job->a->view, job->a_scale ? &job->a_scale->view : NULL,
                             job->a_zero ? &job->a_zero->view : NULL};
    const rnl_quantized dst = {&job->dst->view, &job->dst_scale->view, &job->dst_zero->view};
    rnl_quantized b = {0};
    if (job->b)
        b = (rnl_quantized){&job->b->view, &job->b_scale->view, &job->b_zero->view};
    op_expect(RNL_OK, rnl_op_qmap(op_list(), job->op, 0, &a, job->b ? &b : NULL, &dst));
    op_run();
    op_check(job->dst, map_reference, job, (op_bound){0, 0});
}

static const int64_t shapes[][3] = {{2, 3, 5}, {3, 1, 37}, {1, 2, 64}};
#define SHAPES 3

START_TEST(binary)
{
    const op_layout layout = (op_layout)(_i % OP_LAYOUT_COUNT);
    const int64_t *shape = shapes[_i / OP_LAYOUT_COUNT % SHAPES], row[] = {shape[2]}, column[] = {shape[1], 1};
    const rnl_dtype dtype = _i & 1 ? RNL_I8 : RNL_U8, other = _i & 2 ? RNL_I8 : RNL_U8;
    map_job job = {.op = _i % 3 ? RNL_QMAP_ADD : RNL_QMAP_MUL};
    job.a = bytes_of(dtype, 3, shape, layout);
    job.a_scale = scale_of(0, NULL, -2);
    job.a_zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
    job.b = bytes_of(other, 1, row, OP_REVERSED);
    job.b_scale = scale_of(1, row, -3);
    job.b_zero = bytes_of(other, 2, column, OP_GAPS);
    job.dst = op_tensor_create(dtype, 3, shape, (op_layout)((layout + 2) % OP_LAYOUT_COUNT));
    job.dst_scale = scale_of(0, NULL, _i % 3 ? -1 : 4);
    job.dst_zero = bytes_of(dtype, 2, column, OP_ROW_MAJOR);
    run_map(&job);
}
END_TEST

/* What is not a number becomes the lowest value; infinities the ends. */
START_TEST(quantise)
{
    const op_layout layout = (op_layout)(_i % OP_LAYOUT_COUNT);
    const int64_t *shape = shapes[_i / OP_LAYOUT_COUNT];
    const rnl_dtype dtype = _i & 1 ? RNL_I8 : RNL_U8;
    map_job job = {.op = RNL_QMAP_COPY};
    job.a = op_tensor_create(RNL_F32, 3, shape, layout);
    op_fill(job.a, OP_SPECIAL, -300, 300);
    job.dst = op_tensor_create(dtype, 3, shape, layout);
    job.dst_scale = scale_of(0, NULL, 0);
    job.dst_zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
    run_map(&job);
}
END_TEST

typedef struct dynamic_job {
    op_tensor *src;
    float scale, zero;
} dynamic_job;

static op_value dynamic_scale(void *user, const int64_t *at)
{
    (void)at;
    return op_float((double)((dynamic_job *)user)->scale);
}

static op_value dynamic_zero(void *user, const int64_t *at)
{
    (void)at;
    return op_int((int64_t)((dynamic_job *)user)->zero);
}

static op_value dynamic_reference(void *user, const int64_t *at)
{
    const dynamic_job *job = user;
    const float rounded = nearbyintf((float)op_get(job->src, at).f / job->scale) + job->zero;
    return op_int(rounded > 0 ? (int64_t)fminf(rounded, 255) : 0);
}

static void find_bounds(dynamic_job *job)
{
    double low = 0, high = 0;
    for (int64_t i = 0; i < op_elements(job->src); ++i) {
        int64_t at[RNL_MAX_RANK];
        op_coordinates(job->src, i, at);
        low = fmin(low, op_get(job->src, at).f);
        high = fmax(high, op_get(job->src, at).f);
    }
    job->scale = (float)high == (float)low ? 1.0f / 255 : ((float)high - (float)low) / 255;
    job->zero = nearbyintf(fminf(fmaxf(0.0f - (float)low / job->scale, 0), 255));
}

/* One step, two, and bounds of which one is 0, or both are; a scale so small that its reciprocal is out of range. */
START_TEST(dynamic)
{
    static const int64_t rows[] = {1, 2, 5, 1, 331};
    static const double bounds[][2] = {{-3, 5}, {0, 9}, {-7, 0}, {0, 0}, {0, 1e-38}, {-1e30, 2e30}};
    const bool long_one = _i / 6 == 4;
    const int64_t shape[] = {rows[_i / 6], long_one ? 211 : 41 + _i};
    dynamic_job job = {.src = op_tensor_create(RNL_F32, 2, shape, _i & 1 ? OP_SHUFFLED : OP_ROW_MAJOR)};
    op_tensor *dst = op_tensor_create(RNL_U8, 2, shape, _i & 1 ? OP_SHUFFLED : OP_ROW_MAJOR);
    op_tensor *scale = op_tensor_create(RNL_F32, 0, NULL, OP_GAPS);
    op_tensor *zero = op_tensor_create(RNL_U8, 0, NULL, OP_GAPS);
    const int64_t floats = (int64_t)rnl_quantize_dynamic_scratch(op_device(), &job.src->view, &dst->view);
    if (floats == 0 || (long_one && op_small()))
        return;
    op_tensor *part = op_tensor_create(RNL_F32, 1, &floats, OP_ROW_MAJOR);
    op_fill(job.src, OP_RANDOM, bounds[_i % 6][0], bounds[_i % 6][1]);
    find_bounds(&job);
    op_expect(RNL_OK,
              rnl_op_quantize_dynamic(op_list(), &job.src->view, &part->view, &dst->view, &scale->view, &zero->view));
    ck_assert_uint_eq(op_list()->step_count, long_one ? 2 : 1);
    op_run();
    op_check(scale, dynamic_scale, &job, (op_bound){0, 0});
    op_check(zero, dynamic_zero, &job, (op_bound){0, 0});
    op_check(dst, dynamic_reference, &job, (op_bound){0, 0});
}
END_TEST

typedef struct conv_job {
    rnl_qconv_params params;
    op_tensor *src, *weight, *src_zero, *weight_zero, *dst;
} conv_job;

static op_value conv_reference(void *user, const int64_t *at)
{
    const conv_job *job = user;
    const rnl_qconv_params *p = &job->params;
    const int64_t each = job->weight->view.shape[1], group = at[1] / (job->dst->view.shape[1] / p->groups);
    const int64_t zero = op_get(job->src_zero, at).i, weight_zero = op_get(job->weight_zero, &at[1]).i;
    int64_t sum = 0;
    for (int64_t h = 0; h < p->kernel[0]; ++h)
        for (int64_t w = 0; w < p->kernel[1]; ++w)
            for (int64_t c = 0; c < each; ++c) {
                const int64_t from[] = {at[0], group * each + c,
                                        at[2] * p->stride[0] + h * p->dilation[0] - p->pad_begin[0],
                                        at[3] * p->stride[1] + w * p->dilation[1] - p->pad_begin[1]};
                const int64_t by[] = {at[1], c, h, w};
                if (from[2] >= 0 && from[2] < job->src->view.shape[2] && from[3] >= 0 &&
                    from[3] < job->src->view.shape[3])
                    sum += (op_get(job->src, from).i - zero) * (op_get(job->weight, by).i - weight_zero);
            }
    return op_int(sum);
}

/* Groups of more than one channel, and of one, which are computed together where channels are neighbours. */
START_TEST(convolutions)
{
    const op_layout layout = (op_layout)(_i % OP_LAYOUT_COUNT);
    const int64_t groups = _i < OP_LAYOUT_COUNT ? 2 : 11, channels = groups == 2 ? 6 : 11;
    const int64_t src[] = {2, channels, 6, 5}, weight[] = {channels, channels / groups, 3, 2},
                  dst[] = {2, channels, 3, 6};
    const rnl_dtype dtype = _i & 1 ? RNL_I8 : RNL_U8, other = _i & 2 ? RNL_I8 : RNL_U8;
    conv_job job = {{2, {3, 2}, {2, 1}, {1, 2}, {1, 2}, groups, NULL, NULL, NULL, false}, NULL, NULL, NULL, NULL, NULL};
    job.src = bytes_of(dtype, 4, src, layout);
    job.weight = bytes_of(other, 4, weight, (op_layout)((layout + 3) % OP_LAYOUT_COUNT));
    job.src_zero = bytes_of(dtype, 0, NULL, OP_ROW_MAJOR);
    job.weight_zero = bytes_of(other, 1, &channels, OP_GAPS);
    job.dst = op_tensor_create(RNL_I32, 4, dst, layout);
    job.params.src_zero_point = &job.src_zero->view;
    job.params.weight_zero_point = &job.weight_zero->view;
    op_expect(RNL_OK, rnl_op_qconv(op_list(), &job.params, &job.src->view, &job.weight->view, &job.dst->view));
    op_run();
    op_check(job.dst, conv_reference, &job, (op_bound){0, 0});
}
END_TEST

START_TEST(refusals)
{
    const int64_t shape[] = {2, 3}, image[] = {1, 4, 5, 5}, window[] = {4, 3, 3, 3}, result[] = {1, 4, 3, 3};
    rnl_view bytes = rnl_view_row_major(0, RNL_U8, 2, shape), ints = rnl_view_row_major(1, RNL_I32, 2, shape);
    rnl_view src = rnl_view_row_major(0, RNL_U8, 4, image), weight = rnl_view_row_major(1, RNL_I8, 4, window);
    rnl_view dst = rnl_view_row_major(2, RNL_I32, 4, result);
    rnl_qconv_params params = {.spatial = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    const rnl_quantized plain = {&bytes, NULL, NULL}, sums = {&ints, NULL, NULL}, wrong = {&bytes, &ints, NULL};
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qmap(op_list(), RNL_QMAP_ADD, 0, &plain, NULL, &plain));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qmap(op_list(), RNL_QMAP_SCALE, 1, &plain, NULL, &plain));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qmap(op_list(), RNL_QMAP_COPY, 0, &sums, NULL, &plain));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qmap(op_list(), RNL_QMAP_COPY, 0, &wrong, NULL, &plain));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qconv(op_list(), &params, &src, &weight, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_quantize_bounds(op_list(), &bytes, &bytes, &bytes, &bytes));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_quantize_dynamic(op_list(), &ints, &ints, &bytes, &ints, &bytes));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    op_add_loop(tests, binary, 0, SHAPES * OP_LAYOUT_COUNT);
    op_add_loop(tests, quantise, 0, SHAPES * OP_LAYOUT_COUNT);
    op_add_loop(tests, dynamic, 0, 30);
    op_add_loop(tests, convolutions, 0, 2 * OP_LAYOUT_COUNT);
}

int main(void)
{
    Suite *suite = suite_create("quantized");
    TCase *tests = op_case(suite, "quantized");
    add_tests(tests);
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    tcase_add_test(tests, refusals);
    return op_main(suite);
}
