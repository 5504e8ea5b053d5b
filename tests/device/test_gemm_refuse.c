/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of the public interface: what is refused, and how a failing call ends. */
#include "base/memory.h"
#include "device/cl_status.h"
#include "support/op_test.h"
#include "support/product_case.h"
#include "support/test_device.h"
#include <math.h>
#include <stdlib.h>

#define MOST_FAULTS 120

static const float zeros[32];

static rnl_gemm_desc square(void)
{
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    desc.m = 4, desc.n = 5, desc.k = 6;
    return desc;
}

static void refuse(rnl_status expected, const char *part, const rnl_gemm_desc *desc)
{
    rnl_gemm *gemm = (rnl_gemm *)&expected;
    op_looked();
    test_fails(expected, part, rnl_gemm_create(op_device(), desc, &gemm));
    ck_assert_ptr_null(gemm);
}

#define REFUSE(part, change)                                                                                           \
    do {                                                                                                               \
        rnl_gemm_desc d = square();                                                                                    \
        change;                                                                                                        \
        refuse(RNL_INVALID_ARGUMENT, part, &d);                                                                        \
    } while (0)

START_TEST(descriptions)
{
    refuse(RNL_INVALID_ARGUMENT, "desc is NULL", NULL);
    REFUSE("struct_size is 0", d.struct_size = 0);
    REFUSE("struct_size", d.struct_size = 100000);
    REFUSE("m is -1", d.m = -1);
    REFUSE("n is -9223372036854775808", d.n = INT64_MIN);
    REFUSE("k is -2", d.k = -2);
    REFUSE("batch is -1", d.batch = -1);
    REFUSE("lda is 5, less than the 6", d.lda = 5);
    REFUSE("ldb is 4, less than the 5", d.ldb = 4);
    REFUSE("ldb is 5, less than the 6", (d.ldb = 5, d.transpose_b = true));
    REFUSE("ldc is 3, less than the 4", (d.ldc = 3, d.order = RNL_GEMM_COLUMN_MAJOR));
    REFUSE("ld_residual is 1", (d.ld_residual = 1, d.residual = true));
    REFUSE("lda is -6", d.lda = -6);
    REFUSE("stride_a is -2", (d.stride_a = -2, d.batch = 2));
    REFUSE("stride_c of 19 makes", (d.stride_c = 19, d.batch = 2));
    REFUSE("stride_c of 0 makes", (d.stride_c = RNL_GEMM_SHARED, d.batch = 2));
    REFUSE("stride_c of 5 makes", (d.stride_c = 5, d.batch = 3, d.ldc = 14));
    REFUSE("order is 2", d.order = (rnl_gemm_order)2);
    REFUSE("bias is 3", d.bias = (rnl_gemm_bias)3);
    REFUSE("activation is 77", d.activation = (rnl_gemm_activation)77);
    REFUSE("accuracy is 2", d.accuracy = (rnl_gemm_accuracy)2);
    REFUSE("a_zero is 1", d.a_zero = 1);
}
END_TEST

START_TEST(overflows)
{
    REFUSE("a has more elements", (d.m = INT64_MAX / 2, d.k = 3));
    REFUSE("b has more elements", (d.m = 1, d.n = 100, d.k = INT64_MAX / 32));
    REFUSE("c has more elements", (d.m = INT64_MAX / 4, d.n = INT64_MAX / 4, d.k = 0));
    REFUSE("a has more elements", d.lda = INT64_MAX);
    REFUSE("c has more elements", (d.batch = INT64_MAX, d.stride_a = d.stride_b = RNL_GEMM_SHARED));
    REFUSE("b has more elements", (d.batch = 3, d.stride_b = INT64_MAX, d.stride_a = RNL_GEMM_SHARED));
    REFUSE("residual has more elements", (d.batch = 3, d.stride_residual = INT64_MAX, d.residual = true));
}
END_TEST

START_TEST(types)
{
    rnl_gemm_desc d = square();
    d.c_type = RNL_F16;
    refuse(RNL_UNIMPLEMENTED, "float32 (a_type) and float32 (b_type) into float16 (c_type)", &d);
    d.c_type = (rnl_dtype)99;
    refuse(RNL_UNIMPLEMENTED, "unknown (c_type)", &d);
    d = square();
    d.a_type = RNL_I8;
    refuse(RNL_UNIMPLEMENTED, "int8 (a_type)", &d);
    d.b_type = RNL_U8, d.c_type = RNL_I32, d.alpha = 2;
    refuse(RNL_UNIMPLEMENTED, "alpha 2", &d);
    d.alpha = 1, d.residual = true;
    refuse(RNL_UNIMPLEMENTED, "residual or activation", &d);
    d.residual = false, d.a_zero = 128;
    refuse(RNL_INVALID_ARGUMENT, "a_zero is 128", &d);
    d.a_zero = 0, d.b_zero = -1;
    refuse(RNL_INVALID_ARGUMENT, "b_zero is -1", &d);
    d.b_zero = 0, d.scale = NAN, d.c_type = RNL_U8;
    refuse(RNL_INVALID_ARGUMENT, "scale is", &d);
    d = square();
    d.implementation = "no such thing";
    refuse(RNL_UNIMPLEMENTED, "'no such thing'", &d);
}
END_TEST

typedef struct fixture {
    rnl_stream *stream;
    rnl_gemm *gemm;
    rnl_gemm_operands operands;
} fixture;

static void open_product(fixture *it, const rnl_gemm_desc *desc)
{
    it->operands = (rnl_gemm_operands)RNL_GEMM_OPERANDS_INIT;
    test_ok(rnl_stream_create(op_device(), &it->stream));
    test_ok(rnl_gemm_create(op_device(), desc, &it->gemm));
    test_ok(rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, 24 * sizeof(float), &it->operands.a));
    test_ok(rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, 30 * sizeof(float), &it->operands.b));
    test_ok(rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, 20 * sizeof(float), &it->operands.c));
    test_ok(rnl_stream_write(it->stream, it->operands.a, 0, zeros, 24 * sizeof(float)));
    test_ok(rnl_stream_write(it->stream, it->operands.b, 0, zeros, 30 * sizeof(float)));
}

static void close_product(fixture *it)
{
    test_ok(rnl_stream_synchronize(it->stream));
    rnl_buffer_release(it->operands.a);
    rnl_buffer_release(it->operands.b);
    rnl_buffer_release(it->operands.c);
    rnl_gemm_release(it->gemm);
    rnl_stream_release(it->stream);
}

/* Refused with that text, and what is right still runs. */
static void refuse_operands(fixture *it, const char *part, const rnl_gemm_operands *operands)
{
    test_fails(RNL_INVALID_ARGUMENT, part, rnl_stream_gemm(it->stream, it->gemm, operands));
    test_ok(rnl_stream_gemm(it->stream, it->gemm, &it->operands));
}

#define REFUSE_OPERANDS(part, change)                                                                                  \
    do {                                                                                                               \
        rnl_gemm_operands o = it.operands;                                                                             \
        change;                                                                                                        \
        refuse_operands(&it, part, &o);                                                                                \
    } while (0)

START_TEST(operands)
{
    fixture it;
    const rnl_gemm_desc desc = square();
    rnl_device *other = test_open_device();
    rnl_stream *far_stream = NULL;
    rnl_buffer *far_buffer = NULL;
    open_product(&it, &desc);
    test_ok(rnl_stream_create(other, &far_stream));
    test_ok(rnl_buffer_create(other, RNL_MEMORY_DEVICE, 1000, &far_buffer));
    refuse_operands(&it, "operands is NULL", NULL);
    REFUSE_OPERANDS("struct_size is 3", o.struct_size = 3000);
    REFUSE_OPERANDS("a is NULL", o.a = NULL);
    REFUSE_OPERANDS("b is NULL", o.b = NULL);
    REFUSE_OPERANDS("c is NULL", o.c = NULL);
    REFUSE_OPERANDS("b is a buffer of", o.b = far_buffer);
    REFUSE_OPERANDS("a takes 24 elements of float32 from 1 on, and its buffer has 24", o.a_offset = 1);
    REFUSE_OPERANDS("c takes 20 elements of float32 from -1", o.c_offset = -1);
    REFUSE_OPERANDS("b takes 30", o.b_offset = INT64_MAX);
    REFUSE_OPERANDS("b takes 30", o.b = it.operands.a);
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_stream_gemm(far_stream, it.gemm, &it.operands));
    test_fails(RNL_INVALID_ARGUMENT, "the stream is NULL", rnl_stream_gemm(NULL, it.gemm, &it.operands));
    test_fails(RNL_INVALID_ARGUMENT, "is NULL", rnl_stream_gemm(it.stream, NULL, &it.operands));
    test_fails(RNL_INVALID_ARGUMENT, "the stream is NULL", rnl_gemm_run(NULL, &desc, &it.operands));
    test_fails(RNL_INVALID_ARGUMENT, "desc is NULL", rnl_gemm_run(it.stream, NULL, &it.operands));
    test_fails(RNL_INVALID_ARGUMENT, "a is a buffer of", rnl_gemm_run(far_stream, &desc, &it.operands));
    rnl_buffer_release(far_buffer);
    rnl_stream_release(far_stream);
    close_product(&it);
    rnl_device_release(other);
}
END_TEST

START_TEST(vectors_and_batches)
{
    fixture it;
    rnl_gemm_desc desc = square();
    const int64_t offsets[2] = {0, INT64_MAX};
    desc.bias = RNL_GEMM_BIAS_COLUMNS;
    desc.m = 2, desc.n = 2, desc.k = 2, desc.batch = 2;
    open_product(&it, &desc);
    it.operands.bias = it.operands.a;
    REFUSE_OPERANDS("bias is NULL", o.bias = NULL);
    REFUSE_OPERANDS("bias takes 2 elements of float32 from 23 on", o.bias_offset = 23);
    REFUSE_OPERANDS("a takes 4 elements of float32 from 9223372036854775807", o.a_offsets = offsets);
    REFUSE_OPERANDS("c_offsets[1] is 9223372036854775807", (o.c_offsets = offsets, o.c_offset = 1));
    REFUSE_OPERANDS("c takes 8 elements", o.c_offset = 13);
    close_product(&it);
}
END_TEST

START_TEST(packed_operands)
{
    fixture it;
    rnl_gemm_desc desc = square(), wider = square();
    rnl_packed *b = NULL, *a = NULL, *none = (rnl_packed *)&desc;
    rnl_gemm *other = NULL;
    open_product(&it, &desc);
    wider.n = 6;
    test_ok(rnl_gemm_create(op_device(), &wider, &other));
    test_ok(rnl_stream_gemm_pack(it.stream, it.gemm, RNL_GEMM_SIDE_A, &it.operands, &a));
    test_ok(rnl_stream_gemm_pack(it.stream, it.gemm, RNL_GEMM_SIDE_B, &it.operands, &b));
    ck_assert_uint_ge(rnl_packed_size(b), 30 * sizeof(float));
    REFUSE_OPERANDS("packed_b was packed for other products", o.packed_b = a);
    REFUSE_OPERANDS("packed_a was packed for other products", o.packed_a = b);
    it.operands.packed_b = b;
    test_ok(rnl_stream_gemm(it.stream, it.gemm, &it.operands));
    test_fails(RNL_INVALID_ARGUMENT, "packed_b was packed", rnl_stream_gemm(it.stream, other, &it.operands));
    it.operands.packed_b = NULL;
    rnl_gemm_operands o = it.operands;
    o.b = NULL;
    test_fails(RNL_INVALID_ARGUMENT, "b is NULL", rnl_stream_gemm_pack(it.stream, it.gemm, RNL_GEMM_SIDE_B, &o, &none));
    ck_assert_ptr_null(none);
    test_fails(RNL_INVALID_ARGUMENT, "side is 2",
               rnl_stream_gemm_pack(it.stream, it.gemm, (rnl_gemm_side)2, &it.operands, &none));
    o = it.operands;
    o.a_offsets = (const int64_t[]){0};
    test_fails(RNL_INVALID_ARGUMENT, "a_offsets are given",
               rnl_stream_gemm_pack(it.stream, it.gemm, RNL_GEMM_SIDE_A, &o, &none));
    rnl_packed_release(rnl_packed_retain(a));
    rnl_packed_release(a);
    rnl_packed_release(b);
    rnl_packed_release(NULL);
    rnl_gemm_release(other);
    close_product(&it);
}
END_TEST

/* One program's worth of products; every failure is returned. */
static rnl_status compute(bool packed)
{
    rnl_stream *stream = NULL;
    rnl_gemm *gemm = NULL;
    rnl_packed *b = NULL;
    rnl_gemm_operands o = RNL_GEMM_OPERANDS_INIT;
    rnl_gemm_desc desc = square();
    desc.bias = RNL_GEMM_BIAS_COLUMNS;
    desc.transpose_b = true;
    desc.m = 9;
    rnl_status status = rnl_stream_create(op_device(), &stream);
    if (status == RNL_OK)
        status = rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, 1024, &o.a);
    o.b = o.bias = o.a;
    if (status == RNL_OK)
        status = rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, 1024, &o.c);
    if (status == RNL_OK && packed)
        status = rnl_gemm_create(op_device(), &desc, &gemm);
    if (status == RNL_OK && packed)
        status = rnl_stream_gemm_pack(stream, gemm, RNL_GEMM_SIDE_B, &o, &b);
    o.packed_b = b;
    if (status == RNL_OK)
        status = packed ? rnl_stream_gemm(stream, gemm, &o) : rnl_gemm_run(stream, &desc, &o);
    const rnl_status ended = stream ? rnl_stream_synchronize(stream) : RNL_OK;
    status = status == RNL_OK ? ended : status;
    rnl_packed_release(b);
    rnl_buffer_release(o.a);
    rnl_buffer_release(o.c);
    rnl_gemm_release(gemm);
    rnl_stream_release(stream);
    return status;
}

/* The n-th OpenCL call or allocation fails: an error, or it was not needed; nothing is lost, the next run is right. */
START_TEST(faults)
{
    for (int kind = 0; kind < (op_small() ? 0 : 4); kind++) {
        const bool packed = kind & 1, calls = kind & 2;
        int failed = 0;
        test_ok(compute(packed));
        for (uint64_t n = 1; n < MOST_FAULTS; n++) {
            if (calls)
                rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
            else
                rnl_alloc_fail_at(n);
            const rnl_status status = compute(packed);
            rnl_cl_fail_at(0, CL_SUCCESS);
            rnl_alloc_fail_at(0);
            failed += status != RNL_OK;
            if (status != RNL_OK)
                ck_assert_uint_gt(rnl_last_error()->length, 0);
            test_ok(compute(packed));
        }
        ck_assert_int_gt(failed, 5);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm_refuse");
    TCase *tests = op_case(suite, "refused");
    tcase_add_test(tests, descriptions);
    tcase_add_test(tests, overflows);
    tcase_add_test(tests, types);
    tcase_add_test(tests, operands);
    tcase_add_test(tests, vectors_and_batches);
    tcase_add_test(tests, packed_operands);
    tcase_add_test(tests, faults);
    return op_main(suite);
}
