/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 8-bit integers where an instruction is missing or wrong, and what they refuse. */
#include "ops/instruction.h"
#include "support/qgemm_case.h"
#include <stdio.h>
#include <stdlib.h>

static bool runs(rnl_instruction which)
{
    return rnl_device_runs(op_device(), which);
}

/* Without the instructions, or where trying them gives other values or does not compile, others take over. */
START_TEST(no_instruction)
{
    bool had[RNL_INSTRUCTION_COUNT];
    for (int i = 0; i < RNL_INSTRUCTION_COUNT; ++i)
        had[i] = runs((rnl_instruction)i);
    const unsigned known = atomic_load(&op_device()->instructions);
    for (int form = 0; form < 2; ++form) {
        if (form == 0)
            setenv("RUNNEL_INSTRUCTIONS", "off", 1);
        else /* as if they had been tried, and were wrong */
            atomic_store(&op_device()->instructions, known & 0x55555555u);
        qgemm_case_run(&(qgemm_case){.m = 9, .n = 40, .k = 13, .packed = true}, "qgemm:panel");
        for (int i = 0; i < RNL_INSTRUCTION_COUNT; ++i)
            ck_assert(!runs((rnl_instruction)i));
        unsetenv("RUNNEL_INSTRUCTIONS");
    }
    atomic_store(&op_device()->instructions, known);
    for (int i = 0; i < RNL_INSTRUCTION_COUNT; ++i)
        ck_assert(runs((rnl_instruction)i) == had[i]);
}
END_TEST

/* A kernel file of one's own in place of the one that tries the instructions. */
static void write_kernel(const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/instruction.cl", getenv("RUNNEL_KERNEL_DIR"));
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(wrong_values)
{
    static const char *const kernels[] = {
        "__kernel void instruction(__global int *data) { data[48] = data[0]; }",
        "__kernel void another(__global int *data) { data[48] = data[0]; }",
        "",
    };
    char folder[] = "/tmp/runnel-instructions-XXXXXX", path[4096];
    int which = 0;
    while (which < RNL_INSTRUCTION_COUNT && !runs((rnl_instruction)which))
        ++which;
    if (which == RNL_INSTRUCTION_COUNT)
        return;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(setenv("RUNNEL_KERNEL_DIR", folder, 1), 0);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i) {
        rnl_device *device = NULL;
        write_kernel(kernels[i]);
        op_expect(RNL_OK, rnl_device_open(getenv("RUNNEL_TEST_DEVICE"), NULL, &device));
        ck_assert(!rnl_instruction_try(device, (rnl_instruction)which));
        ck_assert(!rnl_device_runs(device, (rnl_instruction)which));
        rnl_device_release(device);
    }
    unsetenv("RUNNEL_KERNEL_DIR");
    snprintf(path, sizeof path, "%s/instruction.cl", folder);
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(remove(folder), 0);
}
END_TEST

typedef void (*spoiler)(qgemm_run *run);

static void spoil_type(qgemm_run *r)
{
    r->b->view.dtype = RNL_I16;
}

static void spoil_depth(qgemm_run *r)
{
    r->b->view.shape[0] += 1;
}

static void spoil_rank(qgemm_run *r)
{
    r->a->view.rank = 1;
}

static void spoil_zero_type(qgemm_run *r)
{
    r->za->view.dtype = RNL_I8;
}

static void spoil_zero_count(qgemm_run *r)
{
    r->za->view.shape[0] = 2;
}

static void spoil_bias(qgemm_run *r)
{
    r->bias->view.shape[0] -= 1;
}

static void scale_integers(qgemm_run *r)
{
    r->params.b_scale = &op_tensor_create(RNL_F32, 1, (const int64_t[]){1}, OP_ROW_MAJOR)->view;
}

static void zero_of_integers(qgemm_run *r)
{
    r->params.dst_zero_point = &r->dst->view;
}

static void chain_to_integers(qgemm_run *r)
{
    r->params.chain = &r->chain;
}

static void short_packed(qgemm_run *r)
{
    r->params.packed_b = &op_tensor_create(RNL_I32, 1, (const int64_t[]){31}, OP_ROW_MAJOR)->view;
}

static void packed_of_bytes(qgemm_run *r)
{
    r->params.packed_b = &op_tensor_create(RNL_U8, 1, (const int64_t[]){4096}, OP_ROW_MAJOR)->view;
}

static void nothing_to_do(qgemm_run *r)
{
    r->a->view.shape[0] = r->dst->view.shape[0] = 0;
    r->params.a_zero_point = NULL;
}

START_TEST(wrong_arguments)
{
    static const struct {
        rnl_status expected;
        spoiler spoil;
    } tests[] = {
        {RNL_UNIMPLEMENTED, spoil_type},           {RNL_INVALID_ARGUMENT, spoil_depth},
        {RNL_INVALID_ARGUMENT, spoil_rank},        {RNL_INVALID_ARGUMENT, spoil_zero_type},
        {RNL_INVALID_ARGUMENT, spoil_zero_count},  {RNL_INVALID_ARGUMENT, spoil_bias},
        {RNL_INVALID_ARGUMENT, scale_integers},    {RNL_INVALID_ARGUMENT, zero_of_integers},
        {RNL_INVALID_ARGUMENT, chain_to_integers}, {RNL_INVALID_ARGUMENT, short_packed},
        {RNL_INVALID_ARGUMENT, packed_of_bytes},   {RNL_OK, nothing_to_do},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        qgemm_run r = {.test = {.m = 3, .n = 4, .k = 5, .za = QGEMM_EACH, .bias = QGEMM_EACH}};
        int64_t ints = 1;
        qgemm_case_create(&r);
        tests[i].spoil(&r);
        const rnl_view *a = &r.a->view, *b = &r.b->view, *dst = &r.dst->view;
        op_expect(tests[i].expected, rnl_op_qgemm(op_list(), &r.params, a, b, dst));
        ck_assert_uint_eq(op_list()->step_count, 0);
        op_expect(tests[i].expected, rnl_qgemm_scratch(op_device(), &r.params, a, b, dst, &ints));
        ck_assert_int_eq(ints, 0);
        op_reset();
    }
}
END_TEST

START_TEST(wrong_packing)
{
    const int64_t shape[3] = {INT64_C(1) << 40, INT64_C(1) << 40, 0};
    rnl_view huge = rnl_view_row_major(0, RNL_U8, 2, shape), none = rnl_view_row_major(0, RNL_U8, 2, shape + 1);
    rnl_view small = rnl_view_row_major(0, RNL_U8, 2, (const int64_t[]){5, 7});
    rnl_view room = rnl_view_row_major(1, RNL_I32, 1, (const int64_t[]){96});
    size_t packed = 1;
    ck_assert_int_ne(rnl_qgemm_packed_bytes(op_device(), &huge, &packed), RNL_OK);
    ck_assert_uint_eq(packed, 0);
    op_expect(RNL_OK, rnl_qgemm_packed_bytes(op_device(), &none, &packed));
    ck_assert_uint_eq(packed, 0);
    op_expect(RNL_OK, rnl_qgemm_packed_bytes(op_device(), &small, &packed));
    ck_assert_uint_eq(packed, 4 * 96);
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qgemm_pack(op_list(), &none, &room));
    room.shape[0] = 95;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qgemm_pack(op_list(), &small, &room));
    room = rnl_view_row_major(1, RNL_F32, 1, (const int64_t[]){96});
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qgemm_pack(op_list(), &small, &room));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

START_TEST(costs)
{
    qgemm_run r = {.test = {.m = 3, .n = 4, .k = 5, .no_scratch = true}};
    qgemm_case_create(&r);
    qgemm_case_enqueue(&r);
    ck_assert_str_eq(op_list()->steps[0].implementation, "qgemm:portable");
    ck_assert_uint_eq(op_list()->steps[0].flops, 2u * 3 * 4 * 5);
    ck_assert_uint_eq(op_list()->steps[0].bytes, 15u + 20 + 4 * 12);
}
END_TEST

static void force_nothing(void)
{
    unsetenv("RUNNEL_QGEMM");
    unsetenv("RUNNEL_INSTRUCTIONS");
    unsetenv("RUNNEL_KERNEL_DIR");
}

int main(void)
{
    Suite *suite = suite_create("qgemm_refusals");
    TCase *tests = op_case(suite, "refusals");
    tcase_add_checked_fixture(tests, force_nothing, force_nothing);
    tcase_add_test(tests, no_instruction);
    tcase_add_test(tests, wrong_values);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, wrong_packing);
    tcase_add_test(tests, costs);
    return op_main(suite);
}
