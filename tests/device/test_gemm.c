/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of the public interface: what is computed. test_gemm_refuse.c has what is refused. */
#include "support/op_test.h"
#include "support/product_case.h"
#include "support/test_device.h"
#include <math.h>
#include <string.h>

static const float half = 0.5F, two = 2, zero = 0;

static void run(product_case test)
{
    if (test.desc.alpha == 0)
        test.desc.alpha = 1;
    product_case_run(op_device(), &test);
}

/* Every order, both transpositions, leading dimensions, beta. */
START_TEST(layouts)
{
    const unsigned forms = op_small() ? 8 : PRODUCT_LAYOUTS;
    for (unsigned form = 0; form < forms; form++) {
        product_case test = product_case_layout(form, 13, 37, 19);
        test.once = form & 4;
        run(test);
    }
}
END_TEST

START_TEST(sizes)
{
    static const int64_t all[][3] = {{1, 1, 1},    {1, 64, 33}, {5, 1, 40},  {2, 3, 300},   {16, 48, 8},
                                     {64, 65, 66}, {7, 130, 1}, {100, 3, 2}, {33, 257, 129}};
    for (size_t i = 0; i < (op_small() ? 4 : sizeof all / sizeof *all); i++)
        run((product_case){.desc = {.m = all[i][0], .n = all[i][1], .k = all[i][2]}, .once = true});
}
END_TEST

/* An activation, a bias and a residual of each kind. */
START_TEST(ends)
{
    for (int i = 0; i < (op_small() ? 4 : 15); i++)
        run((product_case){.desc = {.order = i % 2 ? RNL_GEMM_COLUMN_MAJOR : RNL_GEMM_ROW_MAJOR,
                                    .m = 11,
                                    .n = 20,
                                    .k = 9,
                                    .beta = i == 7 ? 1.0F : 0,
                                    .bias = (rnl_gemm_bias)(i % 3),
                                    .residual = i % 4 > 1,
                                    .ld_residual = i % 4 == 3 ? 23 : 0,
                                    .activation = (rnl_gemm_activation)(i % 5)},
                           .once = i % 2});
}
END_TEST

START_TEST(types)
{
    static const rnl_dtype dtypes[] = {RNL_F16, RNL_BF16};
    for (size_t t = 0; t < 2; t++)
        for (int i = 0; i < (op_small() ? 1 : 4); i++)
            run((product_case){.desc = {.a_type = dtypes[t],
                                        .b_type = dtypes[t],
                                        .c_type = dtypes[t],
                                        .m = i ? 17 : 1,
                                        .n = 35,
                                        .k = 21,
                                        .transpose_b = i & 1,
                                        .bias = i & 2 ? RNL_GEMM_BIAS_COLUMNS : RNL_GEMM_BIAS_NONE,
                                        .activation = i & 2 ? RNL_GEMM_RELU : RNL_GEMM_LINEAR},
                               .packed_b = i == 3});
}
END_TEST

static product_case integers(rnl_dtype a, rnl_dtype b, rnl_dtype c)
{
    return (product_case){.desc = {.a_type = a, .b_type = b, .c_type = c, .m = 13, .n = 35, .k = 21, .scale = 0x1p-9F}};
}

/* Sums are exact; what is scaled is scaled by powers of two, so that halves are met and rounded to even. */
START_TEST(integer_types)
{
    static const rnl_dtype bytes[] = {RNL_U8, RNL_I8}, results[] = {RNL_I32, RNL_I8, RNL_U8, RNL_F32};
    for (unsigned i = 0; i < (op_small() ? 4 : 16); i++) {
        product_case test = integers(bytes[i & 1], bytes[i >> 1 & 1], results[i >> 2]);
        const bool is_float = test.desc.c_type == RNL_F32, is_byte = !is_float && test.desc.c_type != RNL_I32;
        test.desc.a_zero = i & 1 ? -3 : 7;
        test.desc.b_zero = i & 2 ? 5 : 0;
        test.desc.c_zero = is_byte ? (int32_t)(i & 3) : 0;
        test.desc.transpose_b = i & 4;
        test.desc.bias = i % 3 ? RNL_GEMM_BIAS_COLUMNS : RNL_GEMM_BIAS_NONE;
        test.desc.activation = is_float ? RNL_GEMM_SILU : RNL_GEMM_LINEAR;
        test.desc.residual = is_float;
        test.packed_b = i % 5 == 1;
        test.once = !test.packed_b;
        run(test);
    }
}
END_TEST

/* Both orders, a bias along either side, a scale for each column, packed, and in batches. */
START_TEST(integer_sides)
{
    for (unsigned i = 0; i < (op_small() ? 4 : 24); i++) {
        product_case test = integers(RNL_U8, RNL_I8, i % 3 == 0 ? RNL_I32 : i % 3 == 1 ? RNL_U8 : RNL_F32);
        test.desc.order = i & 1 ? RNL_GEMM_COLUMN_MAJOR : RNL_GEMM_ROW_MAJOR;
        test.desc.bias = i & 2 ? RNL_GEMM_BIAS_ROWS : RNL_GEMM_BIAS_COLUMNS;
        if (i & 4 && (!(i & 2) || test.desc.c_type == RNL_F32))
            test.desc.scale = 0;
        test.desc.a_zero = 128, test.desc.b_zero = -1;
        test.desc.batch = i & 8 ? 3 : 1;
        test.packed_a = i >= 16, test.packed_b = i >= 16;
        run(test);
    }
    product_case empty = integers(RNL_I8, RNL_I8, RNL_U8);
    empty.desc.k = 0, empty.desc.c_zero = 9;
    run(empty);
}
END_TEST

START_TEST(batches)
{
    for (int i = 0; i < (op_small() ? 4 : 12); i++) {
        product_case test = {.desc = {.order = i & 1 ? RNL_GEMM_COLUMN_MAJOR : RNL_GEMM_ROW_MAJOR,
                                      .m = 6,
                                      .n = 17,
                                      .k = 10,
                                      .batch = 3,
                                      .transpose_b = i & 2,
                                      .residual = i >= 8},
                             .scattered = i & 4,
                             .once = i & 2};
        if (i % 3 == 1)
            test.desc.stride_b = RNL_GEMM_SHARED;
        if (i % 3 == 2)
            test.desc.stride_a = 200, test.desc.stride_c = 130;
        if (i == 9)
            test.desc.stride_residual = RNL_GEMM_SHARED;
        run(test);
    }
    /* Side by side in the rows of one matrix. */
    run((product_case){.desc = {.m = 5, .n = 4, .k = 6, .batch = 3, .ldc = 14, .stride_c = 5}});
}
END_TEST

/* Either operand, or both, in either order: the same as if they were not packed. */
START_TEST(packed)
{
    for (int i = 0; i < (op_small() ? 4 : 16); i++)
        run((product_case){.desc = {.order = i & 1 ? RNL_GEMM_COLUMN_MAJOR : RNL_GEMM_ROW_MAJOR,
                                    .transpose_a = i & 8,
                                    .transpose_b = i & 8,
                                    .m = i & 4 ? 1 : 29,
                                    .n = 45,
                                    .k = 33,
                                    .beta = i & 2 ? 1.0F : 0},
                           .packed_a = i & 2,
                           .packed_b = !(i & 2) || i & 4});
    if (op_small())
        return;
    for (int i = 0; i < 4; i++)
        run((product_case){.desc = {.order = i & 1 ? RNL_GEMM_COLUMN_MAJOR : RNL_GEMM_ROW_MAJOR,
                                    .m = 9,
                                    .n = 18,
                                    .k = 12,
                                    .batch = 4,
                                    .stride_a = i & 2 ? RNL_GEMM_SHARED : 0,
                                    .stride_b = i & 2 ? RNL_GEMM_SHARED : 0},
                           .scattered = i & 2,
                           .packed_a = true,
                           .packed_b = true});
}
END_TEST

/* As BLAS has it: what a factor of 0 stands before is not read. */
START_TEST(zeros)
{
    run((product_case){.desc = {.m = 4, .n = 5, .k = 0}, .nan_c = true});
    run((product_case){.desc = {.m = 4, .n = 5, .k = 0, .beta = 2}});
    run((product_case){.desc = {.m = 4, .n = 5, .k = 6, .beta = 2}, .alpha = &zero});
    run((product_case){.desc = {.m = 4, .n = 5, .k = 6}, .alpha = &zero, .nan_c = true});
    run((product_case){.desc = {.m = 4, .n = 5, .k = 0, .bias = RNL_GEMM_BIAS_ROWS}, .nan_c = true});
    run((product_case){.desc = {.m = 4, .n = 5, .k = 6, .beta = 1}, .beta = &zero, .nan_c = true});
    run((product_case){.desc = {.m = 4, .n = 5, .k = 6}, .alpha = &half, .beta = &two});
    run((product_case){.desc = {.m = 0, .n = 5, .k = 6}});
    run((product_case){.desc = {.m = 4, .n = 0, .k = 6, .residual = true}});
}
END_TEST

/* NaN in a factor does not come through an alpha of 0; a NULL factor is never asked for then. */
START_TEST(absent_factors)
{
    rnl_stream *stream;
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    const float ones[6] = {1, 1, 1, 1, 1, 1};
    float c[6] = {0};
    desc.m = 2, desc.n = 3, desc.k = 4, desc.beta = 3;
    operands.alpha = &zero;
    test_ok(rnl_stream_create(op_device(), &stream));
    test_ok(rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, sizeof c, &operands.c));
    test_ok(rnl_stream_write(stream, operands.c, 0, ones, sizeof ones));
    test_ok(rnl_gemm_run(stream, &desc, &operands));
    test_ok(rnl_stream_read(stream, c, operands.c, 0, sizeof c));
    test_ok(rnl_stream_synchronize(stream));
    for (int i = 0; i < 6; i++)
        ck_assert(c[i] == 3);
    rnl_buffer_release(operands.c);
    rnl_stream_release(stream);
}
END_TEST

START_TEST(special_values)
{
    rnl_stream *stream;
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    const float a[4] = {1, NAN, 2, 0}, b[4] = {INFINITY, 1, 0, 1};
    float c[4] = {NAN, NAN, NAN, NAN};
    desc.m = desc.n = desc.k = 2;
    test_ok(rnl_stream_create(op_device(), &stream));
    rnl_buffer **const buffers[] = {&operands.a, &operands.b, &operands.c};
    const float *const values[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        test_ok(rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, sizeof a, buffers[i]));
        test_ok(rnl_stream_write(stream, *buffers[i], 0, values[i], sizeof a));
    }
    test_ok(rnl_gemm_run(stream, &desc, &operands));
    test_ok(rnl_stream_read(stream, c, operands.c, 0, sizeof c));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert(isnan(c[0]) && isnan(c[1]) && isinf(c[2]) && c[3] == 2);
    for (int i = 0; i < 3; i++)
        rnl_buffer_release(*buffers[i]);
    rnl_stream_release(stream);
}
END_TEST

/* One object, many operands and factors; more pairs of factors than it keeps plans. */
START_TEST(reuse)
{
    product_case test = {.desc = RNL_GEMM_DESC_INIT};
    rnl_stream *stream;
    rnl_gemm *gemm;
    float alphas[9];
    test.desc.m = 8, test.desc.n = 9, test.desc.k = 10;
    test_ok(rnl_stream_create(op_device(), &stream));
    test_ok(rnl_gemm_create(op_device(), &test.desc, &gemm));
    for (int i = 0; i < (op_small() ? 3 : 18); i++) {
        alphas[i % 9] = (float)(i % 9) / 4;
        test.alpha = i % 4 ? &alphas[i % 9] : NULL;
        test.packed_b = i % 5 == 4;
        test.memory = i % 3 || op_small() ? RNL_MEMORY_DEVICE : RNL_MEMORY_PINNED; /* oclgrind minds mapped memory */
        product_data *data = product_data_create(op_device(), stream, &test);
        test_ok(product_data_pack(data, gemm));
        test_ok(rnl_stream_gemm(stream, gemm, product_data_operands(data)));
        product_data_check(data);
        product_data_release(data);
    }
    rnl_gemm_release(gemm);
    rnl_stream_release(stream);
}
END_TEST

/* More descriptions than a stream keeps, in turn, and back again. */
START_TEST(many_descriptions)
{
    rnl_stream *stream;
    test_ok(rnl_stream_create(op_device(), &stream));
    for (int i = 0; i < (op_small() ? 4 : 80); i++) {
        product_case test = {.desc = RNL_GEMM_DESC_INIT};
        test.desc.m = 13, test.desc.n = 37, test.desc.k = 1 + i % 40; /* one program for all */
        test.desc.implementation = i % 7 == 6 ? "portable" : NULL;
        product_data *data = product_data_create(op_device(), stream, &test);
        test_ok(rnl_gemm_run(stream, &test.desc, product_data_operands(data)));
        product_data_check(data);
        product_data_release(data);
    }
    rnl_stream_release(stream);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm");
    TCase *tests = op_case(suite, "products");
    tcase_add_test(tests, layouts);
    tcase_add_test(tests, sizes);
    tcase_add_test(tests, ends);
    tcase_add_test(tests, types);
    tcase_add_test(tests, integer_types);
    tcase_add_test(tests, integer_sides);
    tcase_add_test(tests, batches);
    tcase_add_test(tests, packed);
    tcase_add_test(tests, zeros);
    tcase_add_test(tests, absent_factors);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, reuse);
    tcase_add_test(tests, many_descriptions);
    return op_main(suite);
}
