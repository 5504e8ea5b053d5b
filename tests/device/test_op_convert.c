/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising, dequantising and casts of stored types over views of all kinds; test_operators_types.py and
 * test_operators_quantize.py have the types and the edges of each. */
#include "ops/convert.h"
#include "support/op_test.h"
#include "support/op_values.h"

#include <math.h>

typedef struct convert_job {
    op_tensor *x, *scale, *zero, *dst;
    rnl_dtype x_type, dst_type;
    uint32_t repeated; /* dimensions along which there is one scale */
} convert_job;

static double operand(const op_tensor *tensor, const int64_t *at)
{
    return op_get(tensor, at).f;
}

/* Scales are powers of two, so that no quotient is rounded before it is rounded to an integer. */
static op_value quantized(void *user, const int64_t *at)
{
    const convert_job *job = user;
    const double low = (double)op_int_limit(job->dst_type, false), high = (double)op_int_limit(job->dst_type, true);
    const double x = operand(job->x, at), quotient = x / operand(job->scale, at);
    const double value = isnan(x) ? low : rint(quotient) + operand(job->zero, at);
    return op_int((int64_t)(value < low ? low : value > high ? high : value));
}

static op_value dequantized(void *user, const int64_t *at)
{
    const convert_job *job = user;
    return op_float((operand(job->x, at) - operand(job->zero, at)) * operand(job->scale, at));
}

static void make_tensors(convert_job *job, rnl_dtype scale, rnl_dtype zero, size_t rank, const int64_t *shape, int form)
{
    const op_layout layout = (op_layout)(form % OP_LAYOUT_COUNT), other = (op_layout)((form + 2) % OP_LAYOUT_COUNT);
    job->x = op_tensor_create(job->x_type, rank, shape, layout);
    job->scale = op_tensor_create_repeated(scale, rank, shape, OP_ROW_MAJOR, job->repeated);
    job->zero = op_tensor_create_repeated(zero, rank, shape, other, job->repeated);
    job->dst = op_tensor_create(job->dst_type, rank, shape, (op_layout)((form + 3) % OP_LAYOUT_COUNT));
    op_fill(job->zero, OP_RANDOM, 0, 100);
    op_fill(job->scale, OP_RANDOM, 1, 1);
    int64_t at[RNL_MAX_RANK];
    for (int64_t i = 0; i < op_elements(job->scale); ++i) {
        op_coordinates(job->scale, i, at);
        op_put(job->scale, at, op_float(ldexp(1, (int)(op_random() % 5) - 3)));
    }
}

static const struct {
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
    uint32_t repeated;
} forms[] = {
    {0, {0}, 0},           {1, {1027}, 1},          {1, {33}, 0},
    {2, {5, 67}, 2},       {3, {3, 17, 5}, 5},      {4, {2, 3, 7, 11}, 13},
    {4, {2, 1, 7, 3}, 15}, {5, {3, 2, 3, 2, 5}, 8}, {8, {2, 1, 2, 3, 2, 2, 1, 3}, 85},
};
enum { FORMS = sizeof forms / sizeof *forms };

static void run_job(convert_job *job, bool back, op_reference reference)
{
    const rnl_view sources[3] = {job->x->view, job->scale->view, job->zero->view};
    if (back)
        op_expect(RNL_OK, rnl_op_dequantize(op_list(), sources, 3, &job->dst->view));
    else
        op_expect(RNL_OK, rnl_op_quantize(op_list(), RNL_F32, true, sources, 3, &job->dst->view));
    op_run();
    op_check(job->dst, reference, job, (op_bound){0, 0});
    op_reset();
}

START_TEST(quantize_views)
{
    const size_t form = (size_t)_i / OP_LAYOUT_COUNT;
    convert_job job = {.x_type = RNL_F32, .dst_type = RNL_I16, .repeated = forms[form].repeated};
    make_tensors(&job, RNL_F32, RNL_I16, forms[form].rank, forms[form].shape, _i);
    op_fill(job.x, OP_SPECIAL, -300, 300);
    run_job(&job, false, quantized);
}
END_TEST

START_TEST(dequantize_views)
{
    const size_t form = (size_t)_i / OP_LAYOUT_COUNT;
    convert_job job = {.x_type = RNL_U8, .dst_type = RNL_F32, .repeated = forms[form].repeated};
    make_tensors(&job, RNL_F16, RNL_U8, forms[form].rank, forms[form].shape, _i);
    op_fill(job.x, OP_SPECIAL, 0, 255);
    run_job(&job, true, dequantized);
}
END_TEST

START_TEST(long_indices)
{
    const int64_t shape[] = {1, 9, 35};
    convert_job job = {.x_type = RNL_I32, .dst_type = RNL_F32, .repeated = 1};
    make_tensors(&job, RNL_F32, RNL_I32, 3, shape, OP_GAPS);
    op_fill(job.x, OP_RANDOM, -100000, 100000);
    job.x->view.stride[0] = (int64_t)1 << 40;
    run_job(&job, true, dequantized);
}
END_TEST

static op_value as_sent(void *user, const int64_t *at)
{
    return op_get(user, at);
}

/* From 0 to 7 all types of four bits and more hold, and there and back again is where it was. */
START_TEST(there_and_back)
{
    static const rnl_dtype types[] = {RNL_F8E4M3FN, RNL_F8E4M3FNUZ, RNL_F8E5M2, RNL_F8E5M2FNUZ,
                                      RNL_U4,       RNL_I4,         RNL_F4E2M1};
    const int64_t shape[] = {3, 19, 7};
    op_tensor *x = op_tensor_create(RNL_I32, 3, shape, (op_layout)(_i % OP_LAYOUT_COUNT));
    op_tensor *small = op_tensor_create(RNL_U8, 3, shape, (op_layout)((_i + 1) % OP_LAYOUT_COUNT));
    op_tensor *y = op_tensor_create(RNL_I32, 3, shape, (op_layout)((_i + 2) % OP_LAYOUT_COUNT));
    op_fill(x, OP_RANDOM, 0, 4);
    rnl_view view = small->view;
    view.dtype = types[_i];
    op_expect(RNL_OK, rnl_op_cast(op_list(), true, 0, &x->view, &view));
    op_expect(RNL_OK, rnl_op_cast(op_list(), true, 0, &view, &y->view));
    op_run();
    op_check(y, as_sent, x, (op_bound){0, 0});
    op_reset();
}
END_TEST

START_TEST(nothing_and_refusals)
{
    const int64_t shape[] = {3, 4}, none[] = {3, 0}, other[] = {5};
    const rnl_view x = rnl_view_row_major(0, RNL_F32, 2, shape), dst = rnl_view_row_major(1, RNL_I8, 2, shape);
    const rnl_view scale = rnl_view_row_major(2, RNL_F32, 0, NULL), zero = rnl_view_row_major(3, RNL_I8, 0, NULL);
    const rnl_view empty = rnl_view_row_major(0, RNL_F32, 2, none), empty_dst = rnl_view_row_major(1, RNL_I8, 2, none);
    const rnl_view wide = rnl_view_row_major(2, RNL_F32, 1, other), wrong = rnl_view_row_major(3, RNL_U8, 0, NULL);
    const rnl_view good[3] = {x, scale, zero}, no_elements[3] = {empty, scale, zero}, long_scale[3] = {x, wide, zero};
    const rnl_view wrong_zero[3] = {x, scale, wrong}, whole[3] = {dst, zero, zero}, back[3] = {dst, scale, wrong};
    op_expect(RNL_OK, rnl_op_quantize(op_list(), RNL_F32, true, no_elements, 3, &empty_dst));
    op_expect(RNL_OK, rnl_op_cast(op_list(), true, 0, &empty, &empty_dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_quantize(op_list(), RNL_F32, true, good, 1, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_quantize(op_list(), RNL_F32, true, good, 4, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_quantize(op_list(), RNL_F32, true, long_scale, 3, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_quantize(op_list(), RNL_F32, true, wrong_zero, 3, &dst));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_quantize(op_list(), RNL_F64, true, good, 3, &dst));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_quantize(op_list(), RNL_F32, true, good, 3, &x));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_dequantize(op_list(), whole, 3, &x));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_dequantize(op_list(), good, 3, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_dequantize(op_list(), back, 3, &x));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_cast(op_list(), true, 0, &wide, &dst));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert");
    TCase *tests = op_case(suite, "convert");
    op_add_loop(tests, quantize_views, 0, FORMS * OP_LAYOUT_COUNT);
    op_add_loop(tests, dequantize_views, 0, FORMS * OP_LAYOUT_COUNT);
    op_add_loop(tests, there_and_back, 0, 7);
    tcase_add_test(tests, long_indices);
    tcase_add_test(tests, nothing_and_refusals);
    return op_main(suite);
}
