/* SPDX-License-Identifier: Apache-2.0 */
/* Growing strings, and kernel sources put together from files. */
#include "base/memory.h"
#include "base/text.h"
#include "kernel/source.h"
#include "support/test_device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rnl_text text;
static char *folder;

static void start(void)
{
    text = (rnl_text){0};
    folder = test_folder_create();
    setenv("RUNNEL_KERNEL_DIR", folder, 1);
}

static void stop(void)
{
    rnl_alloc_fail_at(0);
    rnl_text_free(&text);
    unsetenv("RUNNEL_KERNEL_DIR");
    test_folder_remove(folder);
}

START_TEST(text_grows)
{
    for (int i = 0; i < 1000; i++)
        rnl_text_add(&text, "%d,", i);
    rnl_text_add_bytes(&text, "abc", 2);
    rnl_text_add_bytes(&text, NULL, 0);
    ck_assert_int_eq(text.status, RNL_OK);
    ck_assert_uint_eq(text.length, 10 * 2 + 90 * 3 + 900 * 4 + 2);
    ck_assert_uint_eq(strlen(text.data), text.length);
    ck_assert_str_eq(text.data + text.length - 6, "999,ab");
    ck_assert_int_eq(strncmp(text.data, "0,1,2,", 6), 0);
    rnl_text_free(&text);
    ck_assert_ptr_null(text.data);
    rnl_text_free(NULL);
}
END_TEST

START_TEST(nothing_added_is_an_empty_text)
{
    rnl_text_add(&text, "%s", "");
    ck_assert_ptr_nonnull(text.data);
    ck_assert_str_eq(text.data, "");
}
END_TEST

START_TEST(the_first_failure_is_remembered)
{
    rnl_text_add(&text, "before");
    rnl_alloc_fail_at(1);
    rnl_text_add(&text, "%s", "a text that is longer than what is left of the first piece of memory");
    ck_assert_int_eq(text.status, RNL_RESOURCE_EXHAUSTED);
    rnl_text_add(&text, "after");
    ck_assert_int_eq(text.status, RNL_RESOURCE_EXHAUSTED);
    ck_assert_str_eq(text.data, "before");
    rnl_text_free(&text);
    rnl_text_add_bytes(&text, "x", SIZE_MAX);
    ck_assert_int_eq(text.status, RNL_RESOURCE_EXHAUSTED);
}
END_TEST

START_TEST(shapes_read_well)
{
    rnl_text_add_shape(&text, (int64_t[]){1, 3, -1, 224}, 4);
    rnl_text_add(&text, " ");
    rnl_text_add_shape(&text, NULL, 0);
    rnl_text_add(&text, " ");
    rnl_text_add_shape(&text, (int64_t[]){0}, 1);
    ck_assert_str_eq(text.data, "1x3x?x224 scalar 0");
}
END_TEST

/* ---- Sources ---- */

static void write_file(const char *name, const char *content)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    fclose(file);
}

START_TEST(includes_are_spliced_once)
{
    write_file("a.cl", "first\n#include \"b.clh\"\n  # include \"no.clh\"\n#include \"c.clh\"\n#include <d.h>\nlast");
    write_file("b.clh", "in b\n\t#include \"c.clh\"  // why\nend of b\n");
    write_file("c.clh", "in c");
    test_ok(rnl_source_get("a.cl", &text));
    ck_assert_str_eq(text.data, "#line 1 \"a.cl\"\n"
                                "first\n"
                                "#line 1 \"b.clh\"\n"
                                "in b\n"
                                "#line 1 \"c.clh\"\n"
                                "in c\n"
                                "#line 3 \"b.clh\"\n"
                                "end of b\n"
                                "#line 3 \"a.cl\"\n"
                                "  # include \"no.clh\"\n"
                                "\n"
                                "#include <d.h>\n"
                                "last\n");
}
END_TEST

START_TEST(a_file_that_includes_itself_ends)
{
    write_file("a.cl", "#include \"b.clh\"\nof a\n");
    write_file("b.clh", "#include \"a.cl\"\nof b\n");
    test_ok(rnl_source_get("a.cl", &text));
    ck_assert_str_eq(text.data, "#line 1 \"a.cl\"\n#line 1 \"b.clh\"\n\nof b\n#line 2 \"a.cl\"\nof a\n");
}
END_TEST

START_TEST(what_is_missing_is_named)
{
    write_file("a.cl", "#include \"missing.clh\"\n");
    test_fails(RNL_NOT_FOUND, "missing.clh", rnl_source_get("a.cl", &text));
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "included by a.cl"));
    ck_assert_ptr_null(text.data);
    test_fails(RNL_NOT_FOUND, "nothing.cl", rnl_source_get("nothing.cl", &text));
    test_fails(RNL_INVALID_ARGUMENT, "'../a.cl'", rnl_source_get("../a.cl", &text));
    test_fails(RNL_INVALID_ARGUMENT, "''", rnl_source_get("", &text));
    unsetenv("RUNNEL_KERNEL_DIR");
    test_fails(RNL_NOT_FOUND, "nothing.cl", rnl_source_get("nothing.cl", &text));
}
END_TEST

START_TEST(too_many_files_are_refused)
{
    char name[32], content[64];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "f%d.cl", i);
        snprintf(content, sizeof content, "#include \"f%d.cl\"\n", i + 1);
        write_file(name, content);
    }
    test_fails(RNL_INVALID_ARGUMENT, "include one another", rnl_source_get("f0.cl", &text));
}
END_TEST

START_TEST(each_failed_allocation_of_a_splice_is_reported)
{
    write_file("a.cl", "#include \"b.clh\"\nof a\n");
    write_file("b.clh", "of b\n");
    for (uint64_t n = 1; n < 100; n++) {
        rnl_alloc_fail_at(n);
        rnl_status status = rnl_source_get("a.cl", &text);
        if (status == RNL_OK)
            break;
        ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
        ck_assert_ptr_null(text.data);
        ck_assert_uint_lt(n, 99);
    }
}
END_TEST

START_TEST(embedded_files_are_whole)
{
    unsetenv("RUNNEL_KERNEL_DIR");
    for (const rnl_embedded_file *file = rnl_embedded_files; file->name; file++) {
        ck_assert_uint_eq(strlen(file->data), file->size_bytes);
        test_ok(rnl_source_get(file->name, &text));
        ck_assert_uint_ge(text.length, file->size_bytes);
        rnl_text_free(&text);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *test_case = tcase_create("text");
    tcase_add_checked_fixture(test_case, start, stop);
    tcase_add_test(test_case, text_grows);
    tcase_add_test(test_case, nothing_added_is_an_empty_text);
    tcase_add_test(test_case, the_first_failure_is_remembered);
    tcase_add_test(test_case, shapes_read_well);
    tcase_add_test(test_case, includes_are_spliced_once);
    tcase_add_test(test_case, a_file_that_includes_itself_ends);
    tcase_add_test(test_case, what_is_missing_is_named);
    tcase_add_test(test_case, too_many_files_are_refused);
    tcase_add_test(test_case, each_failed_allocation_of_a_splice_is_reported);
    tcase_add_test(test_case, embedded_files_are_whole);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
