/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products whose errors may be bounded by norm. Operands of product_case.h are eighths, of which all sums of
 * blocks and of products are exact in float32: results are within the bounds of ordinary products, whatever the sizes.
 */
#include "ops/gemm_strassen.h"
#include "support/op_test.h"
#include "support/product_case.h"
#include "support/test_device.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void run(product_case test)
{
    if (test.desc.alpha == 0)
        test.desc.alpha = 1;
    if (!test.desc.implementation)
        test.desc.implementation = "strassen";
    product_case_run(op_device(), &test);
}

/* Fewer rows, columns and terms than a block has, one more, several blocks; two levels; several chunks of terms. */
START_TEST(sizes)
{
    static const int64_t all[][3] = {{1, 1, 1},    {5, 33, 17},    {12, 32, 16},    {13, 65, 33},  {50, 100, 70},
                                     {3, 40, 530}, {25, 768, 769}, {30, 790, 1030}, {49, 800, 768}};
    for (size_t i = 0; i < (op_small() ? 4 : sizeof all / sizeof *all); i++)
        run((product_case){.desc = {.m = all[i][0], .n = all[i][1], .k = all[i][2]}, .packed_b = i % 2, .nan_c = true});
}
END_TEST

/* Orders, transpositions, leading dimensions, factors; packed on the side that is. */
START_TEST(layouts)
{
    for (unsigned form = 0; form < (op_small() ? 4 : PRODUCT_LAYOUTS); form++) {
        product_case test = product_case_layout(form, 29, 71, 39);
        const bool column_major = test.desc.order == RNL_GEMM_COLUMN_MAJOR;
        test.packed_a = column_major && test.desc.transpose_b;
        test.packed_b = !column_major && test.desc.transpose_a;
        run(test);
    }
}
END_TEST

START_TEST(ends)
{
    for (int i = 0; i < (op_small() ? 3 : 15); i++)
        run((product_case){.desc = {.order = i % 2 ? RNL_GEMM_COLUMN_MAJOR : RNL_GEMM_ROW_MAJOR,
                                    .m = 27,
                                    .n = i == 5 ? 780 : 40,
                                    .k = i == 5 ? 1200 : 35,
                                    .beta = i == 7 ? 1.0F : 0,
                                    .bias = (rnl_gemm_bias)(i % 3),
                                    .residual = i % 4 > 1,
                                    .ld_residual = i % 4 == 3 ? (i == 5 ? 783 : 43) : 0,
                                    .activation = (rnl_gemm_activation)(i % 5)},
                           .packed_b = i % 4 == 2});
}
END_TEST

/* Rows of a batch that shares b are rows of one product; other batches and types are refused by name … */
START_TEST(takes)
{
    const rnl_gemm_desc shared = {.m = 20, .n = 40, .k = 30, .alpha = 1, .batch = 3, .stride_b = RNL_GEMM_SHARED};
    run((product_case){.desc = shared});
    product_case test = {.desc = {.m = 20, .n = 40, .k = 30, .alpha = 1, .batch = 3, .implementation = "strassen"}};
    ck_assert_int_eq(product_case_try(op_device(), &test), RNL_UNIMPLEMENTED);
    test.desc.batch = 1;
    test.desc.a_type = test.desc.b_type = test.desc.c_type = RNL_F16;
    ck_assert_int_eq(product_case_try(op_device(), &test), RNL_UNIMPLEMENTED);
    /* … and computed in another way where only the accuracy says so. */
    test.desc.implementation = NULL;
    test.desc.accuracy = RNL_GEMM_NORMWISE;
    ck_assert_int_eq(product_case_try(op_device(), &test), RNL_OK);
}
END_TEST

static const char *name_of(const rnl_gemm_desc *desc)
{
    rnl_gemm_info info;
    rnl_gemm *gemm;
    test_ok(rnl_gemm_create(op_device(), desc, &gemm));
    rnl_gemm_get_info(gemm, &info);
    rnl_gemm_release(gemm);
    return info.implementation;
}

/* Only who asks for it gets it, and only where it pays: with many threads, or a small cache, memory is what takes long.
 */
START_TEST(choice)
{
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    desc.m = desc.n = desc.k = 1024;
    ck_assert_str_ne(name_of(&desc), "gemm:strassen");
    desc.accuracy = RNL_GEMM_NORMWISE;
    if (rnl_gemm_strassen_loses_slabs(op_device()))
        ck_assert_str_ne(name_of(&desc), "gemm:strassen");
    else if (op_info()->type == RNL_DEVICE_CPU && op_info()->compute_units <= 2 && !op_info()->emulated)
        ck_assert_str_eq(name_of(&desc), "gemm:strassen");
    desc.m = 1;
    ck_assert_str_ne(name_of(&desc), "gemm:strassen");
}
END_TEST

/* Its sums would be larger than what the device gives at once: the product is plain. */
START_TEST(no_room)
{
    rnl_device *device = op_device();
    const uint64_t whole = device->info.max_allocation_bytes;
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    desc.m = desc.n = desc.k = 1024;
    desc.accuracy = RNL_GEMM_NORMWISE;
    device->info.max_allocation_bytes = 8 << 20; /* twice a matrix */
    const char *name = name_of(&desc);
    device->info.max_allocation_bytes = whole;
    ck_assert_str_ne(name, "gemm:strassen");
}
END_TEST

/* What is packed for such products serves others. */
START_TEST(packed_for_both)
{
    rnl_stream *stream;
    rnl_gemm *normwise, *elementwise;
    product_case test = {.desc = {.m = 40, .n = 70, .k = 50, .alpha = 1}, .packed_b = true};
    test.desc.struct_size = sizeof test.desc;
    test_ok(rnl_stream_create(op_device(), &stream));
    test_ok(rnl_gemm_create(op_device(), &test.desc, &elementwise));
    rnl_gemm_desc asks = test.desc;
    asks.accuracy = RNL_GEMM_NORMWISE;
    test_ok(rnl_gemm_create(op_device(), &asks, &normwise));
    for (int i = 0; i < 2; i++) {
        product_data *data = product_data_create(op_device(), stream, &test);
        test_ok(product_data_pack(data, i ? elementwise : normwise));
        test_ok(rnl_stream_gemm(stream, i ? normwise : elementwise, product_data_operands(data)));
        product_data_check(data);
        product_data_release(data);
    }
    rnl_gemm_release(normwise);
    rnl_gemm_release(elementwise);
    rnl_stream_release(stream);
}
END_TEST

/* ---- the bound -------------------------------------------------------------------------------------------------- */

static float *random_matrix(int64_t rows, int64_t columns, rnl_stream *stream, rnl_buffer **out_buffer)
{
    const size_t bytes = (size_t)(rows * columns) * sizeof(float);
    float *values = malloc(bytes);
    for (int64_t i = 0; i < rows * columns; i++)
        values[i] = ((float)(op_random() % 2000001) - 1e6F) * (i % 7 ? 1e-6F : 1e-3F);
    test_ok(rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, bytes, out_buffer));
    test_ok(rnl_stream_write(stream, *out_buffer, 0, values, bytes));
    test_ok(rnl_stream_synchronize(stream));
    return values;
}

static double largest(const float *values, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)values[i]));
    return most;
}

static void check_bound(int64_t m, int64_t n, int64_t k)
{
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    rnl_stream *stream;
    desc.m = m, desc.n = n, desc.k = k, desc.implementation = "strassen";
    test_ok(rnl_stream_create(op_device(), &stream));
    float *a = random_matrix(m, k, stream, &operands.a), *b = random_matrix(k, n, stream, &operands.b);
    float *c = random_matrix(m, n, stream, &operands.c);
    test_ok(rnl_gemm_run(stream, &desc, &operands));
    test_ok(rnl_stream_read(stream, c, operands.c, 0, (size_t)(m * n) * sizeof(float)));
    test_ok(rnl_stream_synchronize(stream));
    double error = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t t = 0; t < k; t++)
                sum += (double)a[i * k + t] * (double)b[t * n + j];
            const double wrong = fabs((double)c[i * n + j] - sum);
            error = wrong <= error ? error : wrong; /* NaN, too */
        }
    /* What the header promises is far above what comes of random numbers, whose roundings do not all point one way. */
    const double terms = (double)k + 80, size = 0x1p-24 * largest(a, m * k) * largest(b, k * n);
    ck_assert_double_le(error, 21 * terms * terms * size);
    ck_assert_double_le(error, (double)k * size);
    rnl_buffer_release(operands.a);
    rnl_buffer_release(operands.b);
    rnl_buffer_release(operands.c);
    rnl_stream_release(stream);
    free(a);
    free(b);
    free(c);
}

START_TEST(bound)
{
    check_bound(31, 67, 45);
    if (!op_small())
        check_bound(60, 770, 1100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm_strassen");
    TCase *tests = op_case(suite, "products");
    tcase_add_test(tests, sizes);
    tcase_add_test(tests, layouts);
    tcase_add_test(tests, ends);
    tcase_add_test(tests, takes);
    tcase_add_test(tests, choice);
    tcase_add_test(tests, no_room);
    tcase_add_test(tests, packed_for_both);
    tcase_add_test(tests, bound);
    return op_main(suite);
}
