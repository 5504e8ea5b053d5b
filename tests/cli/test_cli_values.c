/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers: as people type them, as 16-bit floats, as random values; and names from hostile files. */
#include "half.h"
#include "parse.h"
#include "values.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(test_whole_numbers)
{
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "1.0", "0x10", "ten", "1e3", "18446744073709551616"};
    uint64_t number;
    ck_assert(rnl_parse_whole("0", 0, &number) && number == 0);
    ck_assert(rnl_parse_whole("18446744073709551615", UINT64_MAX, &number) && number == UINT64_MAX);
    ck_assert(rnl_parse_whole("0042", 42, &number) && number == 42);
    ck_assert(!rnl_parse_whole("43", 42, &number));
    ck_assert(!rnl_parse_whole("9", 5, &number));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!rnl_parse_whole(bad[i], UINT64_MAX, &number), "accepted '%s'", bad[i]);
}
END_TEST

START_TEST(test_shapes)
{
    static const char *const bad[] = {"", "x", "1x", "x1", "1xx2", "1x-2", "1,2", "1x2x3x4x5x6x7x8x9", "9999999999999"};
    int64_t shape[RNL_MAX_RANK];
    size_t rank;
    ck_assert(rnl_parse_shape("1x3x48x320", shape, RNL_MAX_RANK, &rank));
    ck_assert_uint_eq(rank, 4);
    ck_assert(shape[0] == 1 && shape[1] == 3 && shape[2] == 48 && shape[3] == 320);
    ck_assert(rnl_parse_shape("0", shape, RNL_MAX_RANK, &rank) && rank == 1 && shape[0] == 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!rnl_parse_shape(bad[i], shape, RNL_MAX_RANK, &rank), "accepted '%s'", bad[i]);
}
END_TEST

START_TEST(test_triples)
{
    static const char *const bad[] = {"", ",", "1,2", "1,2,3,4", "1,2,", "nan", "inf", "a,b,c", " 1", "1, 2,3"};
    double triple[3];
    ck_assert(rnl_parse_triple("0.485,0.456,-0.406", triple));
    ck_assert(triple[0] == 0.485 && triple[1] == 0.456 && triple[2] == -0.406);
    ck_assert(rnl_parse_triple("0.5", triple));
    ck_assert(triple[0] == 0.5 && triple[1] == 0.5 && triple[2] == 0.5);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!rnl_parse_triple(bad[i], triple), "accepted '%s'", bad[i]);
}
END_TEST

START_TEST(test_half)
{
    static const struct {
        float value;
        uint16_t bits;
    } known[] = {{0, 0},
                 {1, 0x3c00},
                 {-2, 0xc000},
                 {65504, 0x7bff},
                 {65519, 0x7bff},
                 {65520, 0x7c00},
                 {INFINITY, 0x7c00},
                 {6.103515625e-05f, 0x0400},
                 {6.0e-08f, 1},
                 {2.9e-08f, 0},
                 {-2.98023224e-08f, 0x8000},
                 {8.940697e-08f, 2},
                 {0.1f, 0x2e66},
                 {1.00048828125f, 0x3c00},
                 {1.00146484375f, 0x3c02}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        ck_assert_msg(rnl_half_from_float(known[i].value) == known[i].bits, "%.9g became %04x", known[i].value,
                      rnl_half_from_float(known[i].value));
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        float value = rnl_half_to_float((uint16_t)bits);
        if (isnan(value))
            ck_assert(isnan(rnl_half_to_float(rnl_half_from_float(value))));
        else
            ck_assert_uint_eq(rnl_half_from_float(value), bits);
    }
    ck_assert_uint_eq(rnl_bfloat_from_float(1.00390625f), 0x3f80); /* halfway: to even */
    ck_assert_uint_eq(rnl_bfloat_from_float(1.01171875f), 0x3f82);
    ck_assert(isnan(rnl_bfloat_to_float(rnl_bfloat_from_float(NAN))));
}
END_TEST

START_TEST(test_random)
{
    static const rnl_dtype types[] = {RNL_F32, RNL_F16, RNL_F64, RNL_BF16, RNL_I64, RNL_U8, RNL_BOOL};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        rnl_tensor a = {.dtype = types[i], .rank = 1, .shape = {10000}};
        rnl_tensor b = a;
        ck_assert_int_eq(rnl_values_allocate(&a, "a"), RNL_EXIT_DONE);
        ck_assert_int_eq(rnl_values_allocate(&b, "b"), RNL_EXIT_DONE);
        rnl_values_random(&a, 10000, 3);
        rnl_values_random(&b, 10000, 3);
        ck_assert_mem_eq(a.data, b.data, a.size_bytes);
        rnl_values_random(&b, 10000, 4);
        ck_assert_mem_ne(a.data, b.data, a.size_bytes);
        long double sum = 0;
        for (size_t k = 0; k < 10000; k++) {
            long double value = rnl_values_load(types[i], a.data, k);
            ck_assert(value >= 0);
            ck_assert(rnl_dtype_is_float(types[i]) ? value < 1 : value == 0 || value == 1);
            sum += value;
        }
        ck_assert(sum > 4700 && sum < 5300); /* of 10,000 uniform values or fair coins */
        free(a.data);
        free(b.data);
    }
}
END_TEST

START_TEST(test_sizes)
{
    size_t count, bytes;
    int64_t huge[] = {INT64_C(1) << 40, INT64_C(1) << 40};
    int64_t empty[] = {INT64_C(1) << 40, 0};
    int64_t negative[] = {2, -1};
    ck_assert(!rnl_values_bytes(RNL_F32, huge, 2, &count, &bytes));
    ck_assert(!rnl_values_bytes(RNL_F32, negative, 2, &count, &bytes));
    ck_assert(rnl_values_bytes(RNL_F32, empty, 2, &count, &bytes) && count == 0 && bytes == 0);
    ck_assert(rnl_values_bytes(RNL_F16, NULL, 0, &count, &bytes) && count == 1 && bytes == 2);
    rnl_tensor tensor = {.dtype = RNL_F32, .rank = 1, .shape = {INT64_C(1) << 40}};
    rnl_cli_failure_clear();
    ck_assert_int_eq(rnl_values_allocate(&tensor, "it"), RNL_EXIT_FAILED);
    ck_assert_ptr_nonnull(strstr(rnl_cli_failure(), "it: no memory for shape [1099511627776]"));
}
END_TEST

START_TEST(test_clean)
{
    char text[16];
    ck_assert_str_eq(rnl_cli_clean("a\x1b[31m\n\x7f", text, sizeof text), "a?[31m??");
    ck_assert_str_eq(rnl_cli_clean("\xc3\xa9\xff\xc0\x80\xed\xa0\x80", text, sizeof text), "\xc3\xa9??????");
    ck_assert_str_eq(rnl_cli_clean("\xc2\x9b"
                                   "0",
                                   text, sizeof text),
                     "?0"); /* a C1 control character */
    ck_assert_str_eq(rnl_cli_clean("123456789012345", text, sizeof text), "123456789012345");
    ck_assert_str_eq(rnl_cli_clean("1234567890123456", text, sizeof text), "123456789012\xe2\x80\xa6");
    ck_assert_str_eq(rnl_cli_clean("\xe2\x82", text, sizeof text), "??"); /* cut off */
}
END_TEST

START_TEST(test_shape_text)
{
    char text[RNL_SHAPE_TEXT_BYTES];
    int64_t shape[RNL_MAX_RANK] = {-1, 3, -1};
    const char *names[RNL_MAX_RANK] = {"batch", NULL, NULL};
    ck_assert_str_eq(rnl_shape_text(shape, names, 3, text), "[batch,3,?]");
    ck_assert_str_eq(rnl_shape_text(shape, NULL, 0, text), "[]");
    for (size_t i = 0; i < RNL_MAX_RANK; i++) {
        shape[i] = -1;
        names[i] = "a name that is much longer than the room for it";
    }
    ck_assert_uint_lt(strlen(rnl_shape_text(shape, names, RNL_MAX_RANK, text)), RNL_SHAPE_TEXT_BYTES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("values");
    TCase *tests = tcase_create("values");
    tcase_add_test(tests, test_whole_numbers);
    tcase_add_test(tests, test_shapes);
    tcase_add_test(tests, test_triples);
    tcase_add_test(tests, test_half);
    tcase_add_test(tests, test_random);
    tcase_add_test(tests, test_sizes);
    tcase_add_test(tests, test_clean);
    tcase_add_test(tests, test_shape_text);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
