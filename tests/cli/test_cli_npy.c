/* SPDX-License-Identifier: Apache-2.0 */
/* numpy files: what numpy itself writes, and what an enemy would. */
#include "npy.h"
#include "small.h"
#include "values.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static rnl_npy_header header;

static const char *parse(const char *text)
{
    return rnl_npy_parse_header(text, strlen(text), &header);
}

START_TEST(test_reads_headers)
{
    ck_assert_ptr_null(parse("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 224), }          \n"));
    ck_assert_int_eq(header.dtype, RNL_F32);
    ck_assert_uint_eq(header.rank, 3);
    ck_assert_int_eq(header.shape[0], 1);
    ck_assert_int_eq(header.shape[1], 3);
    ck_assert_int_eq(header.shape[2], 224);
    ck_assert_ptr_null(parse("{\"shape\":(7L,),\"descr\":\"|b1\",\"fortran_order\":False}"));
    ck_assert_int_eq(header.dtype, RNL_BOOL);
    ck_assert_uint_eq(header.rank, 1);
    ck_assert_int_eq(header.shape[0], 7);
    ck_assert_ptr_null(parse("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n"));
    ck_assert_uint_eq(header.rank, 0);
    ck_assert_ptr_null(parse("{'descr': '<u1', 'fortran_order': False, 'shape': (0, 5)}\n"));
    ck_assert_int_eq(header.dtype, RNL_U8);
}
END_TEST

START_TEST(test_refuses_headers)
{
    static const char *const bad[] = {
        "",
        "{",
        "{}",
        "[]",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<U7', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        "{'descr: '<f4', 'fortran_order': False, 'shape': (3,)}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(parse(bad[i]) != NULL, "accepted: %s", bad[i]);
    ck_assert_str_eq(parse("{'descr': '<f4', 'fortran_order': True, 'shape': (3,)}"),
                     "it is in Fortran order: save it with numpy.ascontiguousarray");
}
END_TEST

static rnl_exit read_bytes(const unsigned char *bytes, size_t size, rnl_tensor *out_tensor)
{
    unsigned char none = 0;
    FILE *file = size ? fmemopen((void *)(uintptr_t)bytes, size, "rb") : fmemopen(&none, 1, "rb");
    ck_assert_ptr_nonnull(file);
    rnl_cli_failure_clear();
    rnl_exit code = rnl_npy_read(file, size, "bytes", out_tensor);
    fclose(file);
    ck_assert((code == RNL_EXIT_DONE) == (out_tensor->data != NULL));
    ck_assert((code == RNL_EXIT_DONE) == (rnl_cli_failure()[0] == '\0'));
    return code;
}

static size_t write_bytes(const rnl_tensor *tensor, unsigned char *out_bytes, size_t capacity)
{
    FILE *file = fmemopen(out_bytes, capacity, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert(rnl_npy_write(file, tensor));
    ck_assert_int_eq(fflush(file), 0);
    size_t size = (size_t)ftell(file);
    fclose(file);
    return size;
}

/* What numpy has for a type that it lacks. */
static rnl_dtype type_in_file(rnl_dtype dtype)
{
    if (dtype == RNL_BF16 || rnl_small_is_float(dtype))
        return RNL_F32;
    if (!rnl_small_is(dtype))
        return dtype;
    return dtype == RNL_I4 || dtype == RNL_I2 ? RNL_I8 : RNL_U8;
}

START_TEST(test_round_trip)
{
    static const rnl_dtype types[] = {
#define X(name, code, size, text) RNL_##name,
        RNL_DTYPE_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        unsigned char bytes[4096];
        rnl_tensor written = {.dtype = types[i], .rank = 3, .shape = {2, 3, 5}};
        rnl_tensor got;
        ck_assert_int_eq(rnl_values_allocate(&written, "written"), RNL_EXIT_DONE);
        rnl_values_random(&written, 30, 7);
        size_t size = write_bytes(&written, bytes, sizeof bytes);
        ck_assert_int_eq(read_bytes(bytes, size, &got), RNL_EXIT_DONE);
        ck_assert_int_eq(got.dtype, type_in_file(types[i]));
        ck_assert_uint_eq(got.rank, 3);
        for (size_t k = 0; k < 30; k++)
            ck_assert(rnl_values_load(got.dtype, got.data, k) == rnl_values_load(types[i], written.data, k));
        free(got.data);
        free(written.data);
    }
}
END_TEST

START_TEST(test_refuses_damaged_files)
{
    unsigned char bytes[1024];
    rnl_tensor got;
    float values[6] = {1, 2, 3, 4, 5, 6};
    rnl_tensor tensor = {.dtype = RNL_F32, .rank = 2, .shape = {2, 3}, .data = values, .size_bytes = sizeof values};
    size_t size = write_bytes(&tensor, bytes, sizeof bytes);
    ck_assert_uint_eq((size - sizeof values) % 64, 0);
    for (size_t length = 0; length < size; length++)
        ck_assert_int_eq(read_bytes(bytes, length, &got), RNL_EXIT_FAILED);
    bytes[size] = 0;
    ck_assert_int_eq(read_bytes(bytes, size + 1, &got), RNL_EXIT_FAILED);
    bytes[6] = 4;
    ck_assert_int_eq(read_bytes(bytes, size, &got), RNL_EXIT_FAILED);
    bytes[6] = 2; /* now its length has four bytes, two of them text */
    ck_assert_int_eq(read_bytes(bytes, size, &got), RNL_EXIT_FAILED);
}
END_TEST

/* Whatever the bytes, reading ends in a tensor or in a message. */
START_TEST(test_survives_mutations)
{
    unsigned char sound[512], bytes[512];
    float values[6] = {0};
    rnl_tensor tensor = {.dtype = RNL_F32, .rank = 2, .shape = {2, 3}, .data = values, .size_bytes = sizeof values};
    size_t size = write_bytes(&tensor, sound, sizeof sound);
    srand(1);
    for (int round = 0; round < 20000; round++) {
        rnl_tensor got;
        memcpy(bytes, sound, size);
        for (int i = rand() % 4; i >= 0; i--) {
            size_t at = (size_t)rand() % (rand() % 2 ? size : 80);
            bytes[at] = (unsigned char)(rand() % 3 ? "0123456789(),'L <>f"[rand() % 19] : rand());
        }
        if (read_bytes(bytes, rand() % 8 ? size : (size_t)rand() % size, &got) == RNL_EXIT_DONE)
            ck_assert_uint_le(got.size_bytes, size);
        free(got.data);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy");
    TCase *tests = tcase_create("npy");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_reads_headers);
    tcase_add_test(tests, test_refuses_headers);
    tcase_add_test(tests, test_round_trip);
    tcase_add_test(tests, test_refuses_damaged_files);
    tcase_add_test(tests, test_survives_mutations);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
