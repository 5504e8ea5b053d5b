/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels from files and text: defines, includes, what a kernel takes, and what is said when it does not compile. */
#include "device/cl_status.h"
#include "kernel/build_log.h"
#include "support/test_device.h"
#include <runnel/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder;
static rnl_device *device;
static rnl_stream *stream;
static rnl_kernel *kernel;
static rnl_buffer *buffer;
static rnl_kernel_options options;
static char log_text[65536];
static unsigned logs;

static void keep_log(void *user, const char *log, size_t length)
{
    ck_assert_ptr_eq(user, log_text);
    ck_assert_uint_eq(strlen(log), length);
    snprintf(log_text, sizeof log_text, "%s", log);
    logs++;
}

static void open_all(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    ck_assert_int_eq(chdir(folder), 0); /* the same paths each time: pocl keeps programs by their source */
    device = test_open_device();
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 256, &buffer));
    options = (rnl_kernel_options)RNL_KERNEL_OPTIONS_INIT;
    options.log = keep_log;
    options.log_user = log_text;
    log_text[0] = '\0';
    logs = 0;
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_kernel_release(kernel);
    kernel = NULL;
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    rnl_device_release(device);
    ck_assert_int_eq(chdir("/"), 0);
    test_folder_remove(folder);
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    fclose(file);
}

/* Runs the one-argument kernel on one work-item; what it writes. */
static int run(void)
{
    int out = -1;
    const rnl_arg arg = {.kind = RNL_ARG_BUFFER, .buffer = buffer};
    const rnl_range range = {.dimensions = 1, .global = {1, 1, 1}, .local = {1, 1, 1}};
    test_ok(rnl_stream_launch(stream, kernel, &range, &arg, 1));
    test_ok(rnl_stream_read(stream, &out, buffer, 0, sizeof out));
    test_ok(rnl_stream_synchronize(stream));
    rnl_kernel_release(kernel);
    kernel = NULL;
    return out;
}

static void check_message(const char *part)
{
    if (!strstr(rnl_last_error()->message, part))
        ck_abort_msg("no '%s' in: %s", part, rnl_last_error()->message);
}

/* ---- Defines ---- */

START_TEST(defines_are_part_of_the_source)
{
    static const char source[] = "#ifndef TILE\n#error TILE is missing\n#endif\n"
                                 "__kernel void f(__global int *x) { x[0] = TILE + sizeof(NAME) FLAG EMPTY; }\n";
    const char *defines[] = {"TILE=(40 + 1)", "NAME=\"a \\\"b\\\" c\"", "FLAG=+ 2", "EMPTY="};
    options.defines = defines;
    options.define_count = 4;
    test_ok(rnl_kernel_create_with(device, source, "f", &options, &kernel));
    ck_assert_int_eq(run(), 41 + 8 + 2);
    defines[2] = "FLAG=- 2";
    test_ok(rnl_kernel_create_with(device, source, "f", &options, &kernel));
    ck_assert_int_eq(run(), 41 + 8 - 2);
    defines[3] = "EMPTY=+ ONE";
    const char *more[] = {defines[0], defines[1], defines[2], defines[3], "ONE"};
    options.defines = more;
    options.define_count = 5;
    test_ok(rnl_kernel_create_with(device, source, "f", &options, &kernel));
    ck_assert_int_eq(run(), 41 + 8 - 2 + 1);
    options.define_count = 0;
    options.source_name = "tiles.cl";
    test_fails(RNL_INVALID_ARGUMENT, "TILE is missing", rnl_kernel_create_with(device, source, "f", &options, &kernel));
    check_message("tiles.cl:2");
}
END_TEST

START_TEST(what_is_no_define_is_refused)
{
    static const char source[] = "__kernel void f(__global int *x) { x[0] = 1; }\n";
    const char *wrong[] = {"", "=1", "2A=1", "A B=1", "A-", "A=1\n2", "A=1\\", "f(x)=x", "A=1\r", NULL};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.defines = &wrong[i];
        options.define_count = 1;
        test_fails(RNL_INVALID_ARGUMENT, "define", rnl_kernel_create_with(device, source, "f", &options, &kernel));
        ck_assert_ptr_null(kernel);
    }
    options.defines = NULL;
    test_fails(RNL_INVALID_ARGUMENT, "defines", rnl_kernel_create_with(device, source, "f", &options, &kernel));
    options.define_count = 0;
    options.struct_size = 0;
    test_fails(RNL_INVALID_ARGUMENT, "INIT", rnl_kernel_create_with(device, source, "f", &options, &kernel));
    test_fails(RNL_INVALID_ARGUMENT, "source", rnl_kernel_create_with(device, NULL, "f", NULL, &kernel));
    test_fails(RNL_INVALID_ARGUMENT, "name", rnl_kernel_create_with(device, source, NULL, NULL, &kernel));
    test_ok(rnl_kernel_create_with(device, source, "f", NULL, &kernel));
    ck_assert_int_eq(run(), 1);
}
END_TEST

START_TEST(build_options_may_state_the_standard)
{
    static const char source[] = "__kernel void f(__global int *x) { x[0] = __OPENCL_C_VERSION__ EXTRA; }\n";
    options.build_options = "-cl-std=CL1.1 -DEXTRA=+0";
    test_ok(rnl_kernel_create_with(device, source, "f", &options, &kernel));
    ck_assert_int_eq(run(), 110);
    options.build_options = "-DEXTRA=+1";
    test_ok(rnl_kernel_create_with(device, source, "f", &options, &kernel));
    ck_assert_int_eq(run(), 121);
    options.build_options = "-cl-no-such-option";
    rnl_status status = rnl_kernel_create_with(device, source, "f", &options, &kernel);
    ck_assert_int_eq(status, RNL_INVALID_ARGUMENT);
    check_message("-cl-no-such-option");
}
END_TEST

/* ---- Files ---- */

START_TEST(a_file_includes_others)
{
    ck_assert_int_eq(mkdir("parts", 0700), 0);
    ck_assert_int_eq(mkdir("more", 0700), 0);
    write_file("main.cl", "\xef\xbb\xbf#include \"parts/values.h\"\r\n"
                          "/* the values are in\n#include \"not_there.h\"\n*/\n"
                          "// so is this \\\n#include \"nor_this.h\"\n"
                          "#ifdef NEVER\n#include \"nor_that.h\"\n#endif\n"
                          "__constant char text[] = \"/*\"; // \"\n"
                          "#define X(n) n +\n"
                          "__kernel void f(__global int *x) { x[0] =\n"
                          "#include \"parts/list.h\"\n"
                          "#undef X\n#define X(n) n *\n"
                          "#  include   <list.h>\n"
                          "1 + ONE; }\n");
    write_file("parts/values.h",
               "#pragma once\n#include \"deeper.h\"\n#include \"values.h\"\nenum { ONE = 1000 * TWO };");
    write_file("parts/deeper.h", "#ifndef DEEPER\n#define DEEPER\n#include \"values.h\"\nenum { TWO = 2 };\n#endif\n");
    write_file("parts/list.h", "X(3) X(4) X(5)\n");
    write_file("more/list.h", "X(6) X(7)\n");
    const char *folders[] = {"/nowhere", NULL, "more"};
    options.include_folders = folders;
    options.include_folder_count = 3;
    test_ok(rnl_kernel_load(device, "main.cl", "f", &options, &kernel));
    ck_assert_int_eq(run(), 3 + 4 + 5 + 6 * 7 * 1 + 2000);
    write_file("more/list.h", "X(8)\n"); /* is noticed */
    test_ok(rnl_kernel_load(device, "main.cl", "f", &options, &kernel));
    ck_assert_int_eq(run(), 3 + 4 + 5 + 8 * 1 + 2000);
}
END_TEST

START_TEST(a_guarded_file_may_be_included_twice)
{
    write_file("once.h", "#pragma once\nstruct pair { int a, b; };\n");
    write_file("guard.h",
               "#ifndef GUARD_H\n#define GUARD_H\n#include \"once.h\"\nstruct trio { struct pair p; int c; };\n"
               "#endif\n");
    write_file("main.cl",
               "#pragma once\n#if 0\n#include \"once.h\"\n#endif\n#include \"once.h\"\n#include \"guard.h\"\n"
               "#include \"once.h\"\n#include \"guard.h\"\n"
               "__kernel void f(__global int *x) { struct trio t = {{1, 2}, __LINE__};"
               " x[0] = t.p.b + t.c; }\n");
    test_ok(rnl_kernel_load(device, "main.cl", "f", &options, &kernel));
    ck_assert_int_eq(run(), 2 + 9);
}
END_TEST

START_TEST(files_that_cannot_be_read_are_named)
{
    static char many[5 << 20];
    test_fails(RNL_NOT_FOUND, "nowhere.cl", rnl_kernel_load(device, "nowhere.cl", "f", NULL, &kernel));
    test_fails(RNL_FAILED_PRECONDITION, folder, rnl_kernel_load(device, folder, "f", NULL, &kernel));
    test_fails(RNL_INVALID_ARGUMENT, "source", rnl_kernel_load(device, NULL, "f", NULL, &kernel));
    memset(many, ' ', sizeof many - 1);
    write_file("large.cl", many);
    test_fails(RNL_RESOURCE_EXHAUSTED, "large.cl", rnl_kernel_load(device, "large.cl", "f", NULL, &kernel));
    many[3 << 20] = '\0';
    write_file("a.h", many);
    write_file("wide.cl", "#include \"a.h\"\n#include \"a.h\"\n#include \"a.h\"\n#include \"a.h\"\n#include \"a.h\"\n"
                          "#include \"a.h\"\n");
    test_fails(RNL_INVALID_ARGUMENT, "16 MiB", rnl_kernel_load(device, "wide.cl", "f", NULL, &kernel));
    FILE *file = fopen("binary.cl", "wb");
    fwrite("ab\0cd", 1, 5, file);
    fclose(file);
    test_fails(RNL_INVALID_ARGUMENT, "binary.cl", rnl_kernel_load(device, "binary.cl", "f", NULL, &kernel));
    ck_assert_int_eq(mkdir("x.h", 0700), 0);
    write_file("from.cl", "\n#include \"x.h\"\n");
    test_fails(RNL_FAILED_PRECONDITION, "from.cl, line 2", rnl_kernel_load(device, "from.cl", "f", NULL, &kernel));
    ck_assert_ptr_null(kernel);
}
END_TEST

START_TEST(a_chain_of_includes_ends)
{
    for (int i = 0; i < 40; i++) {
        char name[32], text[64];
        snprintf(name, sizeof name, "%d.h", i);
        snprintf(text, sizeof text, "#include \"%d.h\"\n", i + 1);
        write_file(name, text);
    }
    test_fails(RNL_INVALID_ARGUMENT, "32 times", rnl_kernel_load(device, "0.h", "f", NULL, &kernel));
}
END_TEST

START_TEST(text_has_its_includes_from_folders)
{
    static const char source[] = "#include \"seven.h\"\n__kernel void f(__global int *x) { x[0] = SEVEN; }\n";
    const char *folders[] = {"more"};
    ck_assert_int_eq(mkdir("more", 0700), 0);
    write_file("more/seven.h", "#define SEVEN 7\n");
    options.include_folders = folders;
    options.include_folder_count = 1;
    test_ok(rnl_kernel_create_with(device, source, "f", &options, &kernel));
    ck_assert_int_eq(run(), 7);
    options.include_folder_count = 0;
    rnl_status status = rnl_kernel_create_with(device, source, "f", &options, &kernel);
    ck_assert_int_eq(status, RNL_INVALID_ARGUMENT);
    check_message("seven.h");
}
END_TEST

START_TEST(what_the_compiler_finds_alone_is_not_kept)
{
    static const char source[] = "#include \"eight.h\"\n__kernel void f(__global int *x) { x[0] = EIGHT; }\n";
    rnl_device_stats stats;
    write_file("eight.h", "#define EIGHT 8\n");
    options.build_options = "-I.";
    if (rnl_kernel_create_with(device, source, "f", &options, &kernel) != RNL_OK)
        return; /* this compiler looks nowhere */
    ck_assert_int_eq(run(), 8);
    rnl_device *again = test_open_device();
    test_ok(rnl_kernel_create_with(again, source, "f", &options, &kernel));
    rnl_device_get_stats(again, &stats);
    ck_assert_uint_eq(stats.programs_compiled, 1);
    rnl_device_release(again);
}
END_TEST

/* ---- Messages ---- */

START_TEST(errors_name_the_callers_lines)
{
    write_file("part.h", "\n\nint half_of(int x) { return x / missing_in_part; }\n");
    write_file("main.cl", "int one(void) { return 1; }\n#include \"part.h\"\n\n"
                          "__kernel void f(__global int *x) { x[0] = missing_in_main; }\n");
    const char *define = "UNUSED=1";
    options.defines = &define;
    options.define_count = 1;
    test_fails(RNL_INVALID_ARGUMENT, "missing_in_part", rnl_kernel_load(device, "main.cl", "f", &options, &kernel));
    check_message("part.h:3");
    check_message("main.cl:4");
    check_message("main.cl -DUNUSED=1");
    ck_assert_uint_eq(logs, 1);
    ck_assert_ptr_nonnull(strstr(log_text, "main.cl:4"));
    ck_assert_ptr_nonnull(strstr(log_text, "missing_in_main"));
}
END_TEST

START_TEST(a_long_log_is_had_whole)
{
    char *source = malloc(1 << 16), *at = source;
    at += sprintf(at, "__kernel void f(__global int *x)\n{\n");
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "    x[%d]; /* which is of no use */\n", i);
    for (int i = 0; i < 12; i++)
        at += sprintf(at, "    x[%d] = a_rather_long_name_of_a_variable_that_nobody_declares_%d;\n", i, i);
    sprintf(at, "}\n");
    options.source_name = "long.cl";
    rnl_status status = rnl_kernel_create_with(device, source, "f", &options, &kernel);
    free(source);
    ck_assert_int_eq(status, RNL_INVALID_ARGUMENT);
    check_message("nobody_declares_0");
    ck_assert_uint_eq(logs, 1);
    ck_assert_ptr_nonnull(strstr(log_text, "nobody_declares_11"));
    if (strlen(log_text) > RNL_ERROR_MESSAGE_BYTES)
        check_message("rnl_kernel_options");
}
END_TEST

START_TEST(a_name_that_is_not_there_lists_those_that_are)
{
    static const char source[] = "__kernel void red(__global int *x) { x[0] = 1; }\n"
                                 "__kernel void green(__global int *x) { x[0] = 2; }\n";
    options.source_name = "colours.cl";
    test_fails(RNL_NOT_FOUND, "no kernel 'blue' in colours.cl",
               rnl_kernel_create_with(device, source, "blue", &options, &kernel));
    check_message("red");
    check_message("green");
    test_fails(RNL_NOT_FOUND, "nor any other", rnl_kernel_create_with(device, "/* */\n", "f", NULL, &kernel));
    test_ok(rnl_kernel_create_with(device, source, "green", &options, &kernel));
    ck_assert_int_eq(run(), 2);
}
END_TEST

START_TEST(places_in_logs_are_translated)
{
    static const char source[] =
        "#line 1 \"(defines)\"\n#define A 1\n#line 1 \"main.cl\"\nfirst\n#line 1 \"a.h\"\nhere\n"
        "#line 3 \"main.cl\"\nthird\n";
    static const char log[] = "Compilation started\n"
                              "input.cl:6:2: error: one\n"
                              "error: /tmp/cache/tempfile_ab12.cl:8:5: two\n"
                              "3:8:1: warning: three\n"
                              "<kernel>:2:9: note: four\n"
                              "main.cl:7:1: error: five\n"
                              "input.cl:1:1: error: six\n"
                              "/usr/lib/opencl-c.h:5:1: note: seven\n"
                              "    6 | here\n\n \n";
    static const char expected[] = "Compilation started\n"
                                   "a.h:1:2: error: one\n"
                                   "error: main.cl:3:5: two\n"
                                   "main.cl:3:1: warning: three\n"
                                   "(defines):1:9: note: four\n"
                                   "main.cl:7:1: error: five\n"
                                   "input.cl:1:1: error: six\n"
                                   "/usr/lib/opencl-c.h:5:1: note: seven\n"
                                   "    6 | here";
    rnl_text text = {0};
    test_ok(rnl_build_log_translate(log, source, &text));
    ck_assert_str_eq(text.data, expected);
    rnl_text_free(&text);
    test_ok(rnl_build_log_translate("", source, &text));
    ck_assert_str_eq(text.data, "");
    rnl_text_free(&text);
    test_ok(rnl_build_log_translate(":1:\n::\ninput.cl:99999999999:1: x", source, &text));
    rnl_text_free(&text);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("kernel_source");
    TCase *test_case = tcase_create("kernel_source");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, defines_are_part_of_the_source);
    tcase_add_test(test_case, what_is_no_define_is_refused);
    tcase_add_test(test_case, build_options_may_state_the_standard);
    tcase_add_test(test_case, a_file_includes_others);
    tcase_add_test(test_case, a_guarded_file_may_be_included_twice);
    tcase_add_test(test_case, files_that_cannot_be_read_are_named);
    tcase_add_test(test_case, a_chain_of_includes_ends);
    tcase_add_test(test_case, text_has_its_includes_from_folders);
    tcase_add_test(test_case, what_the_compiler_finds_alone_is_not_kept);
    tcase_add_test(test_case, errors_name_the_callers_lines);
    tcase_add_test(test_case, a_long_log_is_had_whole);
    tcase_add_test(test_case, a_name_that_is_not_there_lists_those_that_are);
    tcase_add_test(test_case, places_in_logs_are_translated);
    suite_add_tcase(suite, test_case);
    return suite;
}

int main(void)
{
    return test_run(make_suite(), false);
}
