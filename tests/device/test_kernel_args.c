/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller's kernel takes: told, and checked at each launch. */
#include "device/cl_status.h"
#include "support/test_device.h"
#include <runnel/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *folder;
static rnl_device *device;
static rnl_stream *stream;
static rnl_kernel *kernel;
static rnl_buffer *buffer;

static void open_device(void)
{
    device = test_open_device();
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 256, &buffer));
}

static void close_device(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_kernel_release(kernel);
    kernel = NULL;
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    rnl_device_release(device);
}

static void open_all(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    open_device();
}

static void close_all(void)
{
    close_device();
    test_folder_remove(folder);
}

static void check_message(const char *part)
{
    if (!strstr(rnl_last_error()->message, part))
        ck_abort_msg("no '%s' in: %s", part, rnl_last_error()->message);
}

static const char typed_source[] = "typedef struct { int q; } thing;\n"
                                   "__kernel void other(__global int *x) { x[0] = 9; }\n"
                                   "__kernel void f(__global const float *restrict source, __local int *scratch, uint4 "
                                   "four, __constant thing *things,\n"
                                   "                float scale, __global volatile uint *counter)\n"
                                   "{\n"
                                   "    scratch[get_local_id(0)] = (int)four.x + things->q;\n"
                                   "    counter[0] = scratch[get_local_id(0)] + (uint)(scale * source[0]);\n"
                                   "}\n";

static void check_arg(uint32_t index, const char *name, const char *type, rnl_address_space space)
{
    rnl_kernel_arg_info info;
    test_ok(rnl_kernel_get_arg(kernel, index, &info));
    ck_assert_str_eq(info.name, name);
    ck_assert_str_eq(info.type, type);
    ck_assert_int_eq(info.space, space);
}

START_TEST(a_kernel_tells_what_it_takes)
{
    rnl_kernel_info info;
    rnl_kernel_arg_info arg;
    for (int round = 0; round < 3; round++) { /* compiled, from the cache, and from it once more */
        test_ok(rnl_kernel_create_with(device, typed_source, "f", NULL, &kernel));
        test_ok(rnl_kernel_get_info(kernel, &info));
        ck_assert_str_eq(info.name, "f");
        ck_assert_uint_eq(info.arg_count, 6);
        ck_assert_uint_ge(info.max_group_items, 1);
        ck_assert_uint_ge(info.preferred_multiple, 1);
        ck_assert_uint_eq(info.required_group[0], 0);
        ck_assert(info.has_arg_info);
        check_arg(0, "source", "float*", RNL_SPACE_GLOBAL);
        check_arg(1, "scratch", "int*", RNL_SPACE_LOCAL);
        check_arg(2, "four", "uint4", RNL_SPACE_PRIVATE);
        check_arg(3, "things", "thing*", RNL_SPACE_CONSTANT);
        check_arg(4, "scale", "float", RNL_SPACE_PRIVATE);
        test_ok(rnl_kernel_get_arg(kernel, 0, &arg));
        ck_assert(arg.is_const && arg.is_restrict && !arg.is_volatile);
        test_ok(rnl_kernel_get_arg(kernel, 5, &arg));
        ck_assert(!arg.is_const && !arg.is_restrict && arg.is_volatile);
        test_fails(RNL_INVALID_ARGUMENT, "number 6", rnl_kernel_get_arg(kernel, 6, &arg));
        ck_assert_ptr_nonnull(rnl_kernel_build_log(kernel));
        close_device();
        open_device();
    }
}
END_TEST

START_TEST(wrong_arguments_are_named)
{
    const float scale = 2;
    const int four[4] = {5};
    const rnl_arg buffer_arg = {.kind = RNL_ARG_BUFFER, .buffer = buffer};
    const rnl_arg right[] = {buffer_arg,
                             {.kind = RNL_ARG_LOCAL, .size_bytes = 64},
                             {.kind = RNL_ARG_VALUE, .size_bytes = 16, .value = four},
                             buffer_arg,
                             {.kind = RNL_ARG_VALUE, .size_bytes = 4, .value = &scale},
                             buffer_arg};
    const struct {
        uint32_t at;
        rnl_arg arg;
        const char *says;
    } wrong[] = {
        {0, right[4], "argument 0 (global float* source) is a buffer, and a value was given"},
        {1, right[4], "argument 1 (local int* scratch) is local memory, and a value was given"},
        {1, buffer_arg, "argument 1 (local int* scratch) is local memory, and a buffer was given"},
        {2, buffer_arg, "argument 2 (uint4 four) is a value, and a buffer was given"},
        {2, right[4], "argument 2 (uint4 four) has 16 bytes, and 4 were given"},
        {3, right[1], "argument 3 (constant thing* things) is a buffer, and local memory was given"},
        {4, {.kind = RNL_ARG_VALUE, .size_bytes = 8, .value = four}, "argument 4 (float scale) has 4 bytes"},
        {4, {.kind = RNL_ARG_VALUE, .size_bytes = 4}, "argument 4 (float scale) has no value"},
        {5, {.kind = RNL_ARG_BUFFER}, "argument 5 (global uint* counter) has no buffer"},
        {5, {.kind = (rnl_arg_kind)7}, "unknown kind 7"},
    };
    const rnl_range range = {.dimensions = 1, .global = {1, 1, 1}, .local = {1, 1, 1}};
    test_ok(rnl_stream_fill(stream, buffer, 0, "\0\0\0\0", 4, 256));
    test_ok(rnl_kernel_create_with(device, typed_source, "f", NULL, &kernel));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rnl_arg args[6];
        memcpy(args, right, sizeof args);
        args[wrong[i].at] = wrong[i].arg;
        test_fails(RNL_INVALID_ARGUMENT, wrong[i].says, rnl_stream_launch(stream, kernel, &range, args, 6));
        check_message("kernel 'f'");
    }
    test_fails(RNL_INVALID_ARGUMENT, "takes 6 arguments, and 5 were given",
               rnl_stream_launch(stream, kernel, &range, right, 5));
    unsigned counter = 0;
    test_ok(rnl_stream_launch(stream, kernel, &range, right, 6));
    test_ok(rnl_stream_read(stream, &counter, buffer, 0, sizeof counter));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_uint_eq(counter, 5);
}
END_TEST

START_TEST(a_required_work_group_is_required)
{
    static const char source[] = "__kernel __attribute__((reqd_work_group_size(4, 2, 1)))\n"
                                 "void f(__global int *x) { x[get_global_id(0) + 4 * get_global_id(1)] = 3; }\n";
    rnl_kernel_info info;
    const rnl_arg arg = {.kind = RNL_ARG_BUFFER, .buffer = buffer};
    rnl_range range = {.dimensions = 2, .global = {4, 2, 1}, .local = {4, 2, 1}};
    test_ok(rnl_kernel_create_with(device, source, "f", NULL, &kernel));
    test_ok(rnl_kernel_get_info(kernel, &info));
    ck_assert_uint_eq(info.required_group[0], 4);
    ck_assert_uint_eq(info.required_group[1], 2);
    test_ok(rnl_stream_launch(stream, kernel, &range, &arg, 1));
    test_ok(rnl_stream_synchronize(stream));
    range.local[1] = 1;
    test_fails(RNL_INVALID_ARGUMENT, "requires 2", rnl_stream_launch(stream, kernel, &range, &arg, 1));
    range = (rnl_range){.dimensions = 1, .global = {4, 0, 0}, .local = {4, 0, 0}};
    test_fails(RNL_INVALID_ARGUMENT, "dimension 1", rnl_stream_launch(stream, kernel, &range, &arg, 1));
}
END_TEST

START_TEST(each_failing_call_is_told_and_leaves_nothing)
{
    unsigned failed = 0;
    rnl_kernel_options options = RNL_KERNEL_OPTIONS_INIT;
    for (uint64_t n = 1; n < 500; n++) {
        char name[32];
        snprintf(name, sizeof name, "fault%u", (unsigned)n);
        options.source_name = name; /* a program that is not built yet */
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        rnl_status status = rnl_kernel_create_with(device, typed_source, "f", &options, &kernel);
        const bool left = rnl_cl_fault_pending();
        rnl_cl_fail_at(0, CL_SUCCESS);
        rnl_kernel_release(kernel);
        kernel = NULL;
        if (status != RNL_OK) {
            ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
            check_message("CL_OUT_OF_RESOURCES (-5)");
            failed++;
        }
        test_ok(rnl_kernel_create_with(device, typed_source, "f", &options, &kernel));
        rnl_kernel_release(kernel);
        kernel = NULL;
        if (left)
            break;
    }
    ck_assert_uint_gt(failed, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_args");
    TCase *test_case = tcase_create("kernel_args");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, a_kernel_tells_what_it_takes);
    tcase_add_test(test_case, wrong_arguments_are_named);
    tcase_add_test(test_case, a_required_work_group_is_required);
    tcase_add_test(test_case, each_failing_call_is_told_and_leaves_nothing);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
