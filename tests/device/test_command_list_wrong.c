/* SPDX-License-Identifier: Apache-2.0 */
/* Command lists: what is refused, and that it leaves the list as it was. */
#include "support/test_device.h"
#include <runnel/command_list.h>
#include <string.h>

#define COUNT 64
#define BYTES (COUNT * sizeof(int))

static const char source[] = "__kernel void add(__global const int *a, __global int *b, int by, __local int *t)\n"
                             "{\n"
                             "    t[get_local_id(0)] = a[get_global_id(0)];\n"
                             "    b[get_global_id(0)] += by * t[get_local_id(0)];\n"
                             "}\n";
static const rnl_range whole = {.dimensions = 1, .global = {COUNT, 1, 1}, .local = {8, 1, 1}};

static rnl_device *device;
static rnl_stream *stream;
static rnl_kernel *step;
static rnl_buffer *a, *b;
static rnl_command_list *list;
static int back[COUNT];

static void open_all(void)
{
    device = test_open_device();
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &a));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &b));
    test_ok(rnl_kernel_create(device, source, NULL, "add", &step));
    test_ok(rnl_command_list_create(device, NULL, &list));
    test_ok(rnl_stream_fill(stream, a, 0, "\2\0\0\0", 4, BYTES));
    test_ok(rnl_stream_fill(stream, b, 0, "\1\0\0\0", 4, BYTES));
    test_ok(rnl_stream_synchronize(stream));
}

static void close_all(void)
{
    rnl_command_list_release(list);
    rnl_kernel_release(step);
    rnl_buffer_release(a);
    rnl_buffer_release(b);
    rnl_stream_release(stream);
    rnl_device_release(device);
}

static rnl_arg value_arg(const void *value, size_t bytes)
{
    return (rnl_arg){.kind = RNL_ARG_VALUE, .size_bytes = bytes, .value = value};
}

static void fill_args(rnl_arg args[4], rnl_buffer *from, rnl_buffer *to, const int *by, size_t local)
{
    args[0] = (rnl_arg){.kind = RNL_ARG_BUFFER, .buffer = from};
    args[1] = (rnl_arg){.kind = RNL_ARG_BUFFER, .buffer = to};
    args[2] = value_arg(by, sizeof *by);
    args[3] = (rnl_arg){.kind = RNL_ARG_LOCAL, .size_bytes = local * sizeof(int)};
}

static void add_step(int by, size_t *out_index)
{
    rnl_arg args[4];
    fill_args(args, a, b, &by, 8);
    test_ok(rnl_command_list_launch(list, step, &whole, args, 4, out_index));
}

START_TEST(what_is_wrong_is_refused_while_recording)
{
    int by = 1;
    size_t index = 7;
    rnl_arg args[4];
    rnl_range range = whole;
    fill_args(args, a, b, &by, 8);
    test_fails(RNL_INVALID_ARGUMENT, "takes 4", rnl_command_list_launch(list, step, &whole, args, 3, &index));
    ck_assert_uint_eq(index, 0);
    test_fails(RNL_INVALID_ARGUMENT, "kernel", rnl_command_list_launch(list, NULL, &whole, args, 4, &index));
    test_fails(RNL_INVALID_ARGUMENT, "range", rnl_command_list_launch(list, step, NULL, args, 4, &index));
    args[1].buffer = NULL;
    test_fails(RNL_INVALID_ARGUMENT, "argument 1", rnl_command_list_launch(list, step, &whole, args, 4, &index));
    fill_args(args, a, b, &by, rnl_device_get_info(device)->local_memory_bytes);
    test_fails(RNL_RESOURCE_EXHAUSTED, "local memory", rnl_command_list_launch(list, step, &whole, args, 4, &index));
    fill_args(args, a, b, &by, 8);
    range.global[0] = 9;
    test_fails(RNL_INVALID_ARGUMENT, "divide", rnl_command_list_launch(list, step, &range, args, 4, &index));
    test_fails(RNL_INVALID_ARGUMENT, "lie", rnl_command_list_copy(list, b, 8, a, 0, BYTES, &index));
    test_fails(RNL_INVALID_ARGUMENT, "lie", rnl_command_list_copy(list, b, 0, a, SIZE_MAX, 2, &index));
    test_fails(RNL_INVALID_ARGUMENT, "overlaps", rnl_command_list_copy(list, b, 0, b, 8, 16, &index));
    test_fails(RNL_INVALID_ARGUMENT, "none", rnl_command_list_copy(list, b, 0, NULL, 8, 16, &index));
    test_fails(RNL_INVALID_ARGUMENT, "pattern", rnl_command_list_fill(list, b, 0, "abc", 3, 9, &index));
    test_fails(RNL_INVALID_ARGUMENT, "pattern", rnl_command_list_fill(list, b, 2, "abcd", 4, 8, &index));
    test_fails(RNL_INVALID_ARGUMENT, "host memory", rnl_command_list_write(list, b, 0, NULL, 4, &index));
    test_fails(RNL_INVALID_ARGUMENT, "host memory", rnl_command_list_read(list, NULL, b, 0, 4, &index));
    test_fails(RNL_INVALID_ARGUMENT, "lie", rnl_command_list_read(list, back, b, BYTES, 4, &index));
    ck_assert_uint_eq(rnl_command_list_count(list), 0);
    rnl_command_list_options options = {0};
    rnl_command_list *none = list;
    test_fails(RNL_INVALID_ARGUMENT, "INIT", rnl_command_list_create(device, &options, &none));
    ck_assert_ptr_null(none);
    options = (rnl_command_list_options){sizeof options, (rnl_replay_way)9};
    test_fails(RNL_INVALID_ARGUMENT, "way 9", rnl_command_list_create(device, &options, &none));
}
END_TEST

START_TEST(what_is_wrong_is_refused_while_changing)
{
    int by = 1;
    size_t index, fill;
    const long long eight = 8;
    rnl_range range = whole;
    rnl_arg arg = value_arg(&by, sizeof by);
    add_step(5, &index);
    test_ok(rnl_command_list_fill(list, a, 0, "", 1, 0, &fill));
    test_fails(RNL_INVALID_ARGUMENT, "command 2 of a list of 2", rnl_command_list_set_arg(list, 2, 0, &arg));
    test_fails(RNL_INVALID_ARGUMENT, "not a launch", rnl_command_list_set_arg(list, fill, 0, &arg));
    test_fails(RNL_INVALID_ARGUMENT, "not a launch", rnl_command_list_set_range(list, fill, &range));
    test_fails(RNL_INVALID_ARGUMENT, "number 4", rnl_command_list_set_arg(list, index, 4, &arg));
    test_fails(RNL_INVALID_ARGUMENT, "argument 1", rnl_command_list_set_arg(list, index, 1, &arg));
    arg = value_arg(&eight, sizeof eight);
    test_fails(RNL_INVALID_ARGUMENT, "argument 2", rnl_command_list_set_arg(list, index, 2, &arg));
    arg = (rnl_arg){.kind = RNL_ARG_LOCAL, .size_bytes = rnl_device_get_info(device)->local_memory_bytes + 64};
    test_fails(RNL_RESOURCE_EXHAUSTED, "local memory", rnl_command_list_set_arg(list, index, 3, &arg));
    range.local[0] = 0;
    test_fails(RNL_INVALID_ARGUMENT, "groups of 0", rnl_command_list_set_range(list, index, &range));
    test_fails(RNL_INVALID_ARGUMENT, "range", rnl_command_list_set_range(list, index, NULL));
    test_ok(rnl_stream_replay(stream, list)); /* as it was recorded */
    test_ok(rnl_stream_read(stream, back, b, 0, BYTES));
    test_ok(rnl_stream_synchronize(stream));
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(back[i], 1 + 5 * 2);
}
END_TEST

START_TEST(another_devices_things_are_refused)
{
    rnl_device *foreign = test_open_device();
    rnl_buffer *memory;
    rnl_stream *its_stream;
    rnl_command_list *its_list;
    rnl_arg args[4];
    int by = 1;
    size_t index;
    test_ok(rnl_buffer_create(foreign, RNL_MEMORY_DEVICE, BYTES, &memory));
    test_ok(rnl_stream_create(foreign, &its_stream));
    test_ok(rnl_command_list_create(foreign, NULL, &its_list));
    fill_args(args, memory, b, &by, 8);
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_command_list_launch(list, step, &whole, args, 4, &index));
    args[0].buffer = a;
    test_fails(RNL_INVALID_ARGUMENT, "another device",
               rnl_command_list_launch(its_list, step, &whole, args, 4, &index));
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_command_list_copy(list, b, 0, memory, 0, 4, &index));
    add_step(1, &index);
    args[0].buffer = memory;
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_command_list_set_arg(list, index, 0, &args[0]));
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_stream_replay(its_stream, list));
    test_ok(rnl_stream_replay(its_stream, its_list));
    test_ok(rnl_stream_synchronize(its_stream));
    rnl_command_list_release(its_list);
    rnl_stream_release(its_stream);
    rnl_buffer_release(memory);
    rnl_device_release(foreign);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("command_list_wrong");
    TCase *test_case = tcase_create("command_list_wrong");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, what_is_wrong_is_refused_while_recording);
    tcase_add_test(test_case, what_is_wrong_is_refused_while_changing);
    tcase_add_test(test_case, another_devices_things_are_refused);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
