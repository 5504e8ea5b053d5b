/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm.h"
#include "support/op_bench.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* c_rank 0: no addend. c_ones: its dimensions (bits from the right) that are 1. */
typedef struct gemm_case {
    rnl_dtype dtype; /* 0: F32 */
    int64_t m, n, k;
    size_t batch_rank;
    int64_t batch[6];
    uint32_t a_ones, b_ones; /* batch dimensions, bits from the left, in which a or b is 1 */
    size_t a_less, b_less;   /* batch dimensions that a or b lacks on the left */
    bool a_transposed, b_transposed, a_gaps, b_gaps, dst_gaps, dst_transposed;
    float alpha, beta; /* 0, 0: 1, 1 */
    size_t c_rank;
    uint32_t c_ones;
} gemm_case;

typedef struct gemm_run {
    gemm_case test;
    op_tensor *a, *b, *c, *dst;
} gemm_run;

static op_value get_batched(const op_tensor *tensor, const gemm_run *run, const int64_t *at, int64_t row,
                            int64_t column)
{
    int64_t own[RNL_MAX_RANK];
    const size_t rank = tensor->view.rank, skipped = run->test.batch_rank + 2 - rank;
    for (size_t i = 0; i + 2 < rank; ++i)
        own[i] = tensor->view.shape[i] == 1 ? 0 : at[skipped + i];
    own[rank - 2] = row;
    own[rank - 1] = column;
    return op_get(tensor, own);
}

static op_value reference(void *user, const int64_t *at)
{
    const gemm_run *run = user;
    const gemm_case *test = &run->test;
    const size_t rank = test->batch_rank + 2;
    double sum = 0;
    uint64_t integer = 0;
    for (int64_t k = 0; k < test->k; ++k) {
        const op_value x = get_batched(run->a, run, at, at[rank - 2], k);
        const op_value y = get_batched(run->b, run, at, k, at[rank - 1]);
        sum += x.f * y.f;
        integer += (uint64_t)x.i * (uint64_t)y.i;
    }
    op_value value = {(double)test->alpha * sum, (int64_t)((uint64_t)(int64_t)test->alpha * integer)};
    if (run->c && test->beta != 0) {
        const op_value c = op_get_broadcast(run->c, rank, at);
        value.f += (double)test->beta * c.f;
        value.i = (int64_t)((uint64_t)value.i + (uint64_t)(int64_t)test->beta * (uint64_t)c.i);
    }
    return value;
}

/* A matrix, or one stored transposed and viewed so. */
static op_tensor *create_matrix(const gemm_run *run, int64_t rows, int64_t columns, size_t less, uint32_t ones,
                                bool transposed, bool gaps)
{
    const gemm_case *test = &run->test;
    const size_t batch = test->batch_rank - less, rank = batch + 2;
    int64_t shape[RNL_MAX_RANK];
    for (size_t i = 0; i < batch; ++i)
        shape[i] = ones >> (i + less) & 1 ? 1 : test->batch[i + less];
    shape[batch] = transposed ? columns : rows;
    shape[batch + 1] = transposed ? rows : columns;
    op_tensor *tensor = op_tensor_create(test->dtype, rank, shape, gaps ? OP_GAPS : OP_ROW_MAJOR);
    if (transposed) {
        const int64_t stride = tensor->view.stride[batch];
        tensor->view.shape[batch] = rows;
        tensor->view.shape[batch + 1] = columns;
        tensor->view.stride[batch] = tensor->view.stride[batch + 1];
        tensor->view.stride[batch + 1] = stride;
    }
    return tensor;
}

static void create_addend(gemm_run *run)
{
    const rnl_view *dst = &run->dst->view;
    int64_t shape[RNL_MAX_RANK];
    const size_t rank = run->test.c_rank;
    for (size_t i = 0; i < rank; ++i)
        shape[i] = run->test.c_ones >> (rank - 1 - i) & 1 ? 1 : dst->shape[dst->rank - rank + i];
    run->c = op_tensor_create(run->test.dtype, rank, shape, OP_ROW_MAJOR);
}

static void create_tensors(gemm_run *run)
{
    const gemm_case *t = &run->test;
    run->a = create_matrix(run, t->m, t->k, t->a_less, t->a_ones, t->a_transposed, t->a_gaps);
    run->b = create_matrix(run, t->k, t->n, t->b_less, t->b_ones, t->b_transposed, t->b_gaps);
    run->dst = create_matrix(run, t->m, t->n, 0, 0, t->dst_transposed, t->dst_gaps);
    op_fill(run->a, OP_RANDOM, -1, 1);
    op_fill(run->b, OP_RANDOM, -1, 1);
    if (!t->c_rank)
        return;
    create_addend(run);
    op_fill(run->c, OP_RANDOM, -1, 1);
}

static void note(const gemm_case *t)
{
    op_note("%s m%" PRId64 " n%" PRId64 " k%" PRId64 " batch %zu transposed %d %d %d gaps %d %d %d alpha %g beta %g c "
            "%zu/%u",
            rnl_dtype_name(t->dtype), t->m, t->n, t->k, t->batch_rank, t->a_transposed, t->b_transposed,
            t->dst_transposed, t->a_gaps, t->b_gaps, t->dst_gaps, (double)t->alpha, (double)t->beta, t->c_rank,
            t->c_ones);
}

static void set_defaults(gemm_case *test)
{
    test->dtype = test->dtype ? test->dtype : RNL_F32;
    if (test->alpha == 0 && test->beta == 0)
        test->alpha = test->beta = 1;
}

/* Each addition of products of at most 1 may round by half a unit of a sum of at most that many. */
static op_bound bound_for(const gemm_case *test)
{
    op_bound bound = op_tolerance(test->dtype);
    const double unit = test->dtype == RNL_F64 ? 0x1p-52 : 0x1p-23;
    bound.absolute += ((double)test->k + 1) * unit * (fabs((double)test->alpha) + fabs((double)test->beta));
    return bound;
}

static void enqueue(gemm_run *run)
{
    const rnl_gemm_params params = {run->test.alpha, run->test.beta};
    op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run->a->view, &run->b->view, run->c ? &run->c->view : NULL,
                                  &run->dst->view));
}

static void run_case(const gemm_case *given)
{
    gemm_run run = {.test = *given};
    set_defaults(&run.test);
    note(&run.test);
    create_tensors(&run);
    enqueue(&run);
    op_run();
    op_check(run.dst, reference, &run, bound_for(&run.test));
    op_reset();
}

static void run_all(const gemm_case *tests, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        run_case(&tests[i]);
}
#define RUN_ALL(tests) run_all(tests, sizeof(tests) / sizeof *(tests))

START_TEST(sides)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 15, 17, 31, 33, 70};
    const size_t count = op_small() ? 5 : 12;
    for (size_t m = 0; m < count; ++m)
        for (size_t n = 0; n < count; ++n)
            for (size_t k = 0; k < count; k += 2)
                run_case(&(gemm_case){.m = sizes[m], .n = sizes[n], .k = sizes[k]});
}
END_TEST

START_TEST(transposes)
{
    static const int64_t sizes[][3] = {{5, 6, 7}, {17, 33, 20}, {1, 9, 40}, {9, 1, 40}, {3, 2, 70}, {34, 19, 3}};
    for (size_t s = 0; s < (op_small() ? 2 : 6); ++s)
        for (unsigned form = 0; form < 64; ++form)
            run_case(&(gemm_case){.m = sizes[s][0],
                                  .n = sizes[s][1],
                                  .k = sizes[s][2],
                                  .a_transposed = form & 1,
                                  .b_transposed = form & 2,
                                  .dst_transposed = form & 4,
                                  .a_gaps = form & 8,
                                  .b_gaps = form & 16,
                                  .dst_gaps = form & 32});
}
END_TEST

START_TEST(addends)
{
    for (size_t rank = 0; rank <= 3; ++rank)
        for (uint32_t ones = 0; ones < 1u << rank; ++ones)
            run_case(&(gemm_case){.m = 5,
                                  .n = 18,
                                  .k = 7,
                                  .batch_rank = 1,
                                  .batch = {3},
                                  .b_less = ones & 1,
                                  .b_transposed = ones & 2,
                                  .alpha = 0.5f,
                                  .beta = ones & 1 ? -2.0f : 1.0f,
                                  .c_rank = rank,
                                  .c_ones = ones});
    static const gemm_case tests[] = {
        {.m = 3, .n = 20, .k = 0, .c_rank = 1},
        {.m = 3, .n = 20, .k = 0},
        {.m = 3, .n = 3, .k = 0, .alpha = 1, .beta = 3, .c_rank = 2, .b_transposed = true},
        {.m = 3, .n = 20, .k = 9, .alpha = -1.5f, .beta = 0, .c_rank = 1},
        {.m = 3, .n = 20, .k = 9, .alpha = 0, .beta = 2, .c_rank = 1},
        {.m = 3, .n = 20, .k = 9, .alpha = 2, .beta = 1, .c_rank = 2, .dst_gaps = true},
        {.m = 3, .n = 20, .k = 9, .alpha = 2, .beta = 1, .c_rank = 2, .dst_transposed = true},
    };
    RUN_ALL(tests);
}
END_TEST

START_TEST(batches)
{
    static const gemm_case tests[] = {
        {.m = 4, .n = 5, .k = 6, .batch_rank = 1, .batch = {3}},
        {.m = 4, .n = 17, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_less = 2},
        {.m = 1, .n = 17, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_less = 2, .c_rank = 1},
        {.m = 1, .n = 17, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_ones = 1, .c_rank = 4},
        {.m = 4, .n = 5, .k = 6, .batch_rank = 2, .batch = {3, 2}, .a_less = 1},
        {.m = 4,
         .n = 5,
         .k = 6,
         .batch_rank = 3,
         .batch = {2, 3, 2},
         .a_ones = 2,
         .b_ones = 5,
         .c_rank = 5,
         .c_ones = 8},
        {.m = 2, .n = 9, .k = 3, .batch_rank = 6, .batch = {2, 1, 2, 3, 2, 2}, .a_ones = 9, .b_ones = 36},
        {.m = 2,
         .n = 9,
         .k = 3,
         .batch_rank = 6,
         .batch = {2, 2, 2, 3, 2, 2},
         .a_ones = 21,
         .b_ones = 42,
         .a_gaps = true,
         .dst_gaps = true,
         .c_rank = 8,
         .c_ones = 52},
        {.m = 7, .n = 9, .k = 16, .batch_rank = 2, .batch = {2, 3}, .b_transposed = true, .a_gaps = true},
        {.m = 7, .n = 9, .k = 5, .batch_rank = 2, .batch = {2, 3}, .a_transposed = true, .b_gaps = true},
        {.m = 7, .n = 9, .k = 0, .batch_rank = 2, .batch = {2, 3}, .c_rank = 1},
    };
    RUN_ALL(tests);
}
END_TEST

START_TEST(float_types)
{
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16, RNL_F64};
    for (size_t t = 0; t < (op_info()->has_fp64 ? 3 : 2); ++t)
        for (unsigned form = 0; form < 4; ++form) {
            run_case(&(gemm_case){.dtype = types[t],
                                  .m = 9,
                                  .n = 37,
                                  .k = 21,
                                  .a_transposed = form & 1,
                                  .b_transposed = form & 2,
                                  .c_rank = 1});
            run_case(&(gemm_case){.dtype = types[t],
                                  .m = 3,
                                  .n = 3,
                                  .k = 3,
                                  .a_gaps = form & 1,
                                  .b_gaps = form & 2,
                                  .alpha = 2,
                                  .beta = -1,
                                  .c_rank = 2});
        }
}
END_TEST

static void run_integers(rnl_dtype dtype, double limit)
{
    gemm_run run = {.test = {.dtype = dtype, .m = 5, .n = 6, .k = 9, .alpha = -3, .beta = 2, .c_rank = 1}};
    note(&run.test);
    create_tensors(&run);
    op_fill(run.a, OP_SPECIAL, 0, limit);
    op_fill(run.b, OP_SPECIAL, 0, limit);
    op_fill(run.c, OP_SPECIAL, 0, limit);
    enqueue(&run);
    op_run();
    op_check(run.dst, reference, &run, (op_bound){0, 0});
    op_reset();
}

START_TEST(integers_wrap)
{
    run_integers(RNL_I32, 0x1p31 - 1);
    run_integers(RNL_U32, 0x1p31);
    run_integers(RNL_I64, 0x1p60);
    run_integers(RNL_U64, 0x1p60);
}
END_TEST

/* One NaN or infinity reaches its row or column, and nothing else. */
START_TEST(special_values)
{
    for (int transposed = 0; transposed < 2; ++transposed) {
        gemm_run run = {.test = {.dtype = RNL_F32, .m = 9, .n = 33, .k = 20, .b_transposed = transposed}};
        set_defaults(&run.test);
        create_tensors(&run);
        op_put(run.a, (const int64_t[]){4, 19}, op_float(NAN));
        op_put(run.b, (const int64_t[]){3, 32}, op_float(INFINITY));
        enqueue(&run);
        op_run();
        op_check(run.dst, reference, &run, bound_for(&run.test));
        op_reset();
    }
}
END_TEST

/* What is in dst before counts only through c. */
START_TEST(in_place_addend)
{
    gemm_run run = {.test = {.dtype = RNL_F32, .m = 6, .n = 20, .k = 8, .alpha = 1, .beta = 2}};
    create_tensors(&run);
    run.c = op_tensor_create(RNL_F32, 2, (const int64_t[]){6, 20}, OP_ROW_MAJOR);
    op_fill(run.c, OP_RANDOM, -1, 1);
    op_fill(run.dst, OP_RANDOM, -1, 1);
    for (int64_t i = 0; i < 120; ++i) {
        const int64_t at[2] = {i / 20, i % 20};
        op_put(run.dst, at, op_get(run.c, at));
    }
    const rnl_gemm_params params = {1, 2};
    op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, &run.dst->view, &run.dst->view));
    op_run();
    op_check(run.dst, reference, &run, bound_for(&run.test));
}
END_TEST

static void expect(rnl_status expected, const gemm_case *test, void (*spoil)(gemm_run *))
{
    gemm_run run = {.test = *test};
    set_defaults(&run.test);
    create_tensors(&run);
    spoil(&run);
    const rnl_gemm_params params = {run.test.alpha, run.test.beta};
    op_expect(expected,
              rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, run.c ? &run.c->view : NULL, &run.dst->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
    op_reset();
}

static void other_type(gemm_run *run)
{
    run->b->view.dtype = RNL_F16;
}

static void no_type(gemm_run *run)
{
    run->a->view.dtype = run->b->view.dtype = run->dst->view.dtype = RNL_I8;
}

static void wrong_depth(gemm_run *run)
{
    run->b->view.shape[0] += 1;
}

static void vector(gemm_run *run)
{
    run->a->view.rank = 1;
}

static void wrong_addend(gemm_run *run)
{
    run->c->view.shape[0] += 1;
}

static void no_rows(gemm_run *run)
{
    run->a->view.shape[0] = run->dst->view.shape[0] = 0;
}

static void nothing(gemm_run *run)
{
    (void)run;
}

START_TEST(wrong_arguments)
{
    const gemm_case test = {.m = 3, .n = 4, .k = 5, .c_rank = 1};
    expect(RNL_INVALID_ARGUMENT, &test, other_type);
    expect(RNL_UNIMPLEMENTED, &(gemm_case){.m = 3, .n = 4, .k = 5}, no_type);
    expect(RNL_INVALID_ARGUMENT, &test, wrong_depth);
    expect(RNL_INVALID_ARGUMENT, &test, vector);
    expect(RNL_INVALID_ARGUMENT, &test, wrong_addend);
    expect(RNL_OK, &test, no_rows);
    expect(RNL_UNIMPLEMENTED, &(gemm_case){.dtype = RNL_I32, .m = 3, .n = 4, .k = 5, .alpha = 0.5f}, nothing);
}
END_TEST

START_TEST(costs_and_names)
{
    gemm_run run = {.test = {.dtype = RNL_I32, .m = 3, .n = 4, .k = 5, .batch_rank = 1, .batch = {2}, .b_less = 1}};
    set_defaults(&run.test);
    create_tensors(&run);
    enqueue(&run);
    ck_assert_uint_eq(op_list()->step_count, 1);
    ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:portable");
    ck_assert_uint_eq(op_list()->steps[0].flops, 2u * 2 * 3 * 4 * 5);
    ck_assert_uint_eq(op_list()->steps[0].bytes, 4u * (30 + 20 + 24));
}
END_TEST

/* CLBlast compiles for seconds, and far longer where the device is emulated. */
static void force_clblast(void)
{
    setenv("RUNNEL_GEMM", "clblast", 1);
}

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
}

START_TEST(clblast_forms)
{
    for (unsigned form = 0; form < 32 && !op_small(); ++form)
        run_case(&(gemm_case){.m = form & 1 ? 33 : 1,
                              .n = form & 2 ? 70 : 3,
                              .k = form & 4 ? 20 : 1,
                              .a_transposed = form & 8,
                              .b_transposed = form & 16,
                              .alpha = 0.5f,
                              .beta = form % 3 ? 2.0f : 1.0f,
                              .c_rank = form % 3,
                              .c_ones = form % 2});
}
END_TEST

START_TEST(clblast_batches)
{
    static const gemm_case tests[] = {
        {.m = 4, .n = 5, .k = 6, .batch_rank = 1, .batch = {3}, .c_rank = 2},
        {.m = 17, .n = 34, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_less = 2},
        {.m = 17, .n = 34, .k = 6, .batch_rank = 2, .batch = {3, 2}, .a_less = 2, .c_rank = 1},
        {.m = 17, .n = 34, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_transposed = true, .alpha = 3, .beta = 0},
        {.m = 130, .n = 140, .k = 150, .c_rank = 1, .c_ones = 1, .alpha = 1, .beta = 1},
    };
    if (!op_small())
        RUN_ALL(tests);
}
END_TEST

START_TEST(clblast_special_values)
{
    gemm_run run = {.test = {.dtype = RNL_F32, .m = 9, .n = 33, .k = 20}};
    if (op_small())
        return;
    set_defaults(&run.test);
    create_tensors(&run);
    op_put(run.a, (const int64_t[]){4, 19}, op_float(NAN));
    op_put(run.b, (const int64_t[]){3, 32}, op_float(INFINITY));
    op_fill(run.dst, OP_SPECIAL, 0, 0); /* without an addend, nothing of it may stay */
    enqueue(&run);
    ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:clblast");
    op_run();
    op_check(run.dst, reference, &run, bound_for(&run.test));
}
END_TEST

START_TEST(clblast_warm)
{
    rnl_stream *stream = NULL;
    const rnl_clblast_gemm right = {
        .m = 3, .n = 4, .k = 5, .a_ld = 5, .b_ld = 4, .c_ld = 4, .batch = 1, .alpha = 1, .dtype = RNL_F32};
    rnl_clblast_gemm wrong = right;
    if (op_small())
        return;
    op_expect(RNL_OK, rnl_stream_create(op_device(), &stream));
    op_expect(RNL_OK, rnl_clblast_warm(stream, &right));
    wrong.a_ld = 4;
    op_expect(RNL_INTERNAL, rnl_clblast_warm(stream, &wrong));
    wrong = right;
    wrong.m = SIZE_MAX / 4;
    op_expect(RNL_RESOURCE_EXHAUSTED, rnl_clblast_warm(stream, &wrong));
    op_expect(RNL_OK, rnl_clblast_warm(stream, &right));
    rnl_stream_release(stream);
}
END_TEST

/* What CLBlast cannot take goes to the portable one, forced or not. */
START_TEST(clblast_does_not_apply)
{
    gemm_run run = {.test = {.dtype = RNL_F32, .m = 3, .n = 4, .k = 0}};
    set_defaults(&run.test);
    create_tensors(&run);
    enqueue(&run);
    ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:portable");
    run_case(&(gemm_case){.m = 3, .n = 4, .k = 5, .a_gaps = true});
    run_case(&(gemm_case){.m = 3, .n = 4, .k = 5, .dst_transposed = true});
    run_case(&(gemm_case){.dtype = RNL_F16, .m = 3, .n = 4, .k = 5});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm");
    TCase *tests = op_case(suite, "gemm");
    TCase *clblast = op_case(suite, "clblast");
    tcase_add_checked_fixture(tests, force_nothing, force_nothing);
    tcase_add_checked_fixture(clblast, force_clblast, force_nothing);
    tcase_add_test(tests, sides);
    tcase_add_test(tests, transposes);
    tcase_add_test(tests, addends);
    tcase_add_test(tests, batches);
    tcase_add_test(tests, float_types);
    tcase_add_test(tests, integers_wrap);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, in_place_addend);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, costs_and_names);
    tcase_add_test(clblast, clblast_forms);
    tcase_add_test(clblast, clblast_batches);
    tcase_add_test(clblast, clblast_special_values);
    tcase_add_test(clblast, clblast_warm);
    tcase_add_test(clblast, clblast_does_not_apply);
    return op_main(suite);
}
