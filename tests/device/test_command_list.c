/* SPDX-License-Identifier: Apache-2.0 */
/* Command lists: replays beside plain launches, with arguments and ranges that change. */
#include "base/memory.h"
#include "device/device.h"
#include "support/test_device.h"
#include <runnel/command_list.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 64
#define BYTES (COUNT * sizeof(int))
#define MOST_FAULTS 2000

static const char source[] = "__kernel void advance(__global const int *a, __global int *b, int by, __local int *t)\n"
                             "{\n"
                             "    int i = get_local_id(0);\n"
                             "    t[i] = a[get_global_id(0)];\n"
                             "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                             "    b[get_global_id(0)] = 3 * b[get_global_id(0)] + by * t[get_local_size(0) - 1 - i];\n"
                             "}\n"
                             "__kernel void blend(__global int *x, int4 by) { x[get_global_id(0)] += by.y - by.w; }\n";

static char *folder;
static rnl_device *device;
static rnl_stream *stream, *other;
static rnl_kernel *step, *mix;
static rnl_buffer *a, *b, *c;
static rnl_command_list *list;
static rnl_replay_way way;
static int in[COUNT], back[COUNT], back_too[COUNT];

static const rnl_range whole = {.dimensions = 1, .global = {COUNT, 1, 1}, .local = {8, 1, 1}};

static void make_list(rnl_device *on, rnl_command_list **out_list)
{
    rnl_command_list_options options = RNL_COMMAND_LIST_OPTIONS_INIT;
    options.way = way;
    test_ok(rnl_command_list_create(on, &options, out_list));
}

static void open_all(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    unsetenv("RUNNEL_REPLAY");
    device = test_open_device();
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_stream_create(device, &other));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &a));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &b));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &c));
    test_ok(rnl_kernel_create(device, source, NULL, "advance", &step));
    test_ok(rnl_kernel_create(device, source, NULL, "blend", &mix));
    make_list(device, &list);
    for (int i = 0; i < COUNT; i++)
        in[i] = i * i - 40;
    test_ok(rnl_stream_write(stream, a, 0, in, BYTES));
    test_ok(rnl_stream_fill(stream, b, 0, "\1\0\0\0", 4, BYTES));
    test_ok(rnl_stream_fill(stream, c, 0, "\1\0\0\0", 4, BYTES));
    test_ok(rnl_stream_synchronize(stream));
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_alloc_fail_at(0);
    rnl_command_list_release(list);
    rnl_kernel_release(step);
    rnl_kernel_release(mix);
    rnl_buffer_release(a);
    rnl_buffer_release(b);
    rnl_buffer_release(c);
    rnl_stream_release(stream);
    rnl_stream_release(other);
    rnl_device_release(device);
    test_folder_remove(folder);
}

static rnl_arg buffer_arg(rnl_buffer *buffer)
{
    return (rnl_arg){.kind = RNL_ARG_BUFFER, .buffer = buffer};
}

static rnl_arg value_arg(const void *value, size_t bytes)
{
    return (rnl_arg){.kind = RNL_ARG_VALUE, .size_bytes = bytes, .value = value};
}

static void fill_args(rnl_arg args[4], rnl_buffer *from, rnl_buffer *to, const int *by, size_t local)
{
    args[0] = buffer_arg(from);
    args[1] = buffer_arg(to);
    args[2] = value_arg(by, sizeof *by);
    args[3] = (rnl_arg){.kind = RNL_ARG_LOCAL, .size_bytes = local * sizeof(int)};
}

/* Appends step(a, to, by) or, without a list, launches it. */
static void add_step(rnl_command_list *to_list, rnl_buffer *to, int by, size_t *out_index)
{
    rnl_arg args[4];
    fill_args(args, a, to, &by, 8);
    if (to_list)
        test_ok(rnl_command_list_launch(to_list, step, &whole, args, 4, out_index));
    else
        test_ok(rnl_stream_launch(stream, step, &whole, args, 4));
}

/* What the replays left in b is what plain launches left in c. */
static void check_same(void)
{
    test_ok(rnl_stream_read(stream, back, b, 0, BYTES));
    test_ok(rnl_stream_read(stream, back_too, c, 0, BYTES));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_mem_eq(back, back_too, BYTES);
    ck_assert_int_ne(back[3], back[5]);
}

/* The driver's way is taken where it can be. */
static void check_way(const rnl_command_list *of, bool launches_alone)
{
    const bool native = way == RNL_REPLAY_NATIVE && launches_alone && rnl_device_has_native_replay(device);
    ck_assert_int_eq(rnl_command_list_get_way(of), native ? RNL_REPLAY_NATIVE : RNL_REPLAY_ENQUEUE);
}

START_TEST(a_kernel_may_be_recorded_twice)
{
    size_t index;
    add_step(list, b, 2, &index);
    ck_assert_uint_eq(index, 0);
    add_step(list, b, -5, &index);
    ck_assert_uint_eq(index, 1);
    ck_assert_uint_eq(rnl_command_list_count(list), 2);
    ck_assert_int_eq(rnl_command_list_get_way(list), RNL_REPLAY_CHOSEN);
    for (int i = 0; i < 5; i++) {
        test_ok(rnl_stream_replay(stream, list));
        add_step(NULL, c, 2, NULL);
        add_step(NULL, c, -5, NULL);
    }
    check_same();
    check_way(list, true);
}
END_TEST

START_TEST(arguments_change_between_replays)
{
    size_t index;
    add_step(list, b, 1, &index);
    for (int by = 2; by < 40; by++) {
        const rnl_arg value = value_arg(&by, sizeof by);
        if (by % 3)
            test_ok(rnl_command_list_set_arg(list, index, 2, &value));
        const int now = by % 3 ? by : by - 1;
        if (by % 7 == 0) {
            const rnl_arg from = buffer_arg(by % 14 ? c : a), same = buffer_arg(b);
            test_ok(rnl_command_list_set_arg(list, index, 0, &from));
            test_ok(rnl_command_list_set_arg(list, index, 1, &same));
            test_ok(rnl_command_list_set_arg(list, index, 0, &(rnl_arg){.kind = RNL_ARG_BUFFER, .buffer = a}));
        }
        if (by == 20) { /* more local memory */
            const rnl_arg local = {.kind = RNL_ARG_LOCAL, .size_bytes = 64};
            test_ok(rnl_command_list_set_arg(list, index, 3, &local));
        }
        test_ok(rnl_stream_replay(stream, list)); /* without a wait */
        add_step(NULL, c, now, NULL);
    }
    check_same();
}
END_TEST

START_TEST(ranges_change_between_replays)
{
    size_t index;
    rnl_range range = whole;
    rnl_arg args[4];
    int by = 3;
    add_step(list, b, by, &index);
    for (size_t local = 1; local <= 8; local *= 2) {
        range.local[0] = local;
        range.global[0] = COUNT / 8 * local;
        test_ok(rnl_command_list_set_range(list, index, &range));
        test_ok(rnl_stream_replay(stream, list));
        fill_args(args, a, c, &by, 8);
        test_ok(rnl_stream_launch(stream, step, &range, args, 4));
    }
    check_same();
    check_way(list, true);
}
END_TEST

START_TEST(copies_and_fills_are_recorded)
{
    static int host[COUNT];
    size_t index;
    test_ok(rnl_command_list_write(list, b, 0, host, BYTES, &index));
    test_ok(rnl_command_list_fill(list, c, 0, "\7\0\0\0", 4, BYTES / 2, &index));
    test_ok(rnl_command_list_copy(list, c, BYTES / 2, b, 0, BYTES / 2, &index));
    add_step(list, c, 2, &index);
    test_ok(rnl_command_list_read(list, back, c, 0, BYTES, &index));
    test_ok(rnl_command_list_fill(list, c, 4, "\7", 1, 0, &index));
    ck_assert_uint_eq(index, 5);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++)
            host[i] = 100 * round + i;
        test_ok(rnl_stream_replay(stream, list));
        test_ok(rnl_stream_synchronize(stream));
        for (int i = 0; i < COUNT; i++) {
            const int before = i < COUNT / 2 ? 7 : 100 * round + i - COUNT / 2;
            ck_assert_int_eq(back[i], 3 * before + 2 * in[i / 8 * 8 + 7 - i % 8]);
        }
    }
    check_way(list, false);
}
END_TEST

START_TEST(pinned_memory_is_carried)
{
    rnl_buffer *pinned;
    int by = 2;
    rnl_arg args[4];
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, BYTES, &pinned));
    int *host = rnl_buffer_host(pinned);
    fill_args(args, a, pinned, &by, 8);
    test_ok(rnl_command_list_launch(list, step, &whole, args, 4, NULL));
    for (int round = 0; round < 4; round++) {
        device->maps_in_place = device->maps_in_place && round < 2; /* later as on a GPU */
        for (int i = 0; i < COUNT; i++)
            host[i] = i + round;
        test_ok(rnl_stream_replay(stream, list));
        test_ok(rnl_stream_synchronize(stream));
        for (int i = 0; i < COUNT; i++)
            ck_assert_int_eq(host[i], 3 * (i + round) + 2 * in[i / 8 * 8 + 7 - i % 8]);
    }
    rnl_command_list_release(list);
    list = NULL;
    rnl_buffer_release(pinned);
}
END_TEST

START_TEST(a_list_runs_on_any_stream)
{
    size_t index;
    rnl_event *event;
    add_step(list, b, 4, &index);
    for (int i = 0; i < 6; i++) {
        rnl_stream *on = i % 3 ? stream : other;
        test_ok(rnl_stream_replay(on, list));
        test_ok(rnl_stream_record(on, &event));
        test_ok(rnl_stream_wait(on == stream ? other : stream, event));
        rnl_event_release(event);
        add_step(NULL, c, 4, NULL);
    }
    test_ok(rnl_stream_synchronize(other));
    check_same();
}
END_TEST

START_TEST(a_list_holds_what_it_uses)
{
    int by[4] = {0, 9, 0, 2};
    const rnl_arg args[] = {buffer_arg(b), value_arg(by, sizeof by)};
    rnl_command_list *empty;
    test_ok(rnl_command_list_launch(list, mix, &whole, args, 2, NULL));
    by[1] = 1000; /* was copied */
    rnl_kernel_release(mix);
    mix = NULL;
    rnl_buffer_release(b);
    ck_assert_ptr_eq(rnl_command_list_retain(list), list);
    rnl_command_list_release(list);
    test_ok(rnl_stream_replay(stream, list));
    test_ok(rnl_stream_replay(stream, list));
    test_ok(rnl_stream_read(stream, back, args[0].buffer, 0, BYTES)); /* the list's reference */
    test_ok(rnl_stream_synchronize(stream));
    b = rnl_buffer_retain(args[0].buffer);
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(back[i], 1 + 7 + 7);
    test_ok(rnl_command_list_create(device, NULL, &empty));
    test_ok(rnl_stream_replay(stream, empty));
    test_ok(rnl_stream_synchronize(stream));
    rnl_command_list_release(empty);
    rnl_command_list_release(NULL);
    ck_assert_ptr_null(rnl_command_list_retain(NULL));
    ck_assert_uint_eq(rnl_command_list_count(NULL), 0);
}
END_TEST

/* ---- Faults ---- */

/* Records, changes and replays; frees all of it. */
static rnl_status use_a_list(rnl_stream *on)
{
    rnl_command_list_options options = RNL_COMMAND_LIST_OPTIONS_INIT;
    rnl_command_list *own;
    int by = 2, changed = 3;
    rnl_arg args[4], arg = value_arg(&changed, sizeof changed);
    size_t index = 0;
    fill_args(args, a, b, &by, 8);
    options.way = way;
    rnl_status status = rnl_command_list_create(device, &options, &own);
    if (status == RNL_OK)
        status = rnl_command_list_launch(own, step, &whole, args, 4, &index);
    if (status == RNL_OK)
        status = rnl_stream_replay(on, own);
    if (status == RNL_OK)
        status = rnl_command_list_set_arg(own, index, 2, &arg);
    if (status == RNL_OK)
        status = rnl_command_list_launch(own, step, &whole, args, 4, NULL);
    if (status == RNL_OK)
        status = rnl_stream_replay(on, own);
    const rnl_error error = *rnl_last_error();
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_status ended = rnl_stream_synchronize(on);
    (void)ended; /* what was enqueued has run, whatever it says */
    rnl_command_list_release(own);
    return status == RNL_OK ? RNL_OK : rnl_error_restore(&error);
}

/* Runs use_a_list and its equivalent of plain launches, which it has to match. */
static void check_use(void)
{
    test_ok(rnl_stream_fill(stream, b, 0, "\1\0\0\0", 4, BYTES));
    test_ok(rnl_stream_fill(stream, c, 0, "\1\0\0\0", 4, BYTES));
    test_ok(use_a_list(stream));
    for (int i = 0; i < 3; i++)
        add_step(NULL, c, i == 1 ? 3 : 2, NULL);
    check_same();
}

START_TEST(each_failing_call_is_told_and_leaves_nothing)
{
    unsigned failed = 0;
    bool left = false;
    for (uint64_t n = 1; n < MOST_FAULTS && !left; n++) {
        rnl_stream *own;
        test_ok(rnl_stream_create(device, &own));
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        rnl_status status = use_a_list(own);
        rnl_stream_release(own);
        if (status != RNL_OK) {
            ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
            ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "CL_OUT_OF_RESOURCES (-5)"));
            failed++;
        }
        left = status == RNL_OK && n > 40;
        check_use();
    }
    ck_assert_uint_gt(failed, 8);
}
END_TEST

START_TEST(each_failing_allocation_is_told_and_leaves_nothing)
{
    unsigned failed = 0;
    for (uint64_t n = 1; n < 30; n++) {
        rnl_stream *own;
        test_ok(rnl_stream_create(device, &own));
        rnl_alloc_fail_at(n);
        rnl_status status = use_a_list(own);
        rnl_alloc_fail_at(0);
        rnl_stream_release(own);
        if (status != RNL_OK) {
            ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
            failed++;
        }
        check_use();
    }
    ck_assert_uint_ge(failed, 4);
}
END_TEST

/* ---- The choice ---- */

START_TEST(the_choice_is_remembered)
{
    rnl_command_list *own;
    test_fails(RNL_INVALID_ARGUMENT, "way", rnl_device_set_replay(device, RNL_REPLAY_CHOSEN));
    ck_assert_int_eq(rnl_device_get_replay(device), RNL_REPLAY_ENQUEUE);
    test_ok(rnl_device_set_replay(device, RNL_REPLAY_NATIVE));
    ck_assert_int_eq(rnl_device_get_replay(device), RNL_REPLAY_NATIVE);
    rnl_device *again = test_open_device();
    const bool kept = !getenv("RUNNEL_CACHE");
    ck_assert_int_eq(rnl_device_get_replay(again), kept ? RNL_REPLAY_NATIVE : RNL_REPLAY_ENQUEUE);
    rnl_device_release(again);
    way = RNL_REPLAY_NATIVE;
    for (int i = 0; i < 2; i++) {
        test_ok(rnl_command_list_create(device, NULL, &own));
        int by[4] = {0};
        const rnl_arg args[] = {buffer_arg(b), value_arg(by, sizeof by)};
        test_ok(rnl_command_list_launch(own, mix, &whole, args, 2, NULL));
        test_ok(rnl_stream_replay(stream, own));
        test_ok(rnl_stream_synchronize(stream));
        check_way(own, true);
        rnl_command_list_release(own);
        setenv("RUNNEL_REPLAY", "own", 1);
        way = RNL_REPLAY_ENQUEUE;
    }
    unsetenv("RUNNEL_REPLAY");
    test_ok(rnl_device_set_replay(device, RNL_REPLAY_ENQUEUE));
    again = test_open_device();
    ck_assert_int_eq(rnl_device_get_replay(again), RNL_REPLAY_ENQUEUE);
    rnl_device_release(again);
}
END_TEST

static void take_enqueue(void)
{
    way = RNL_REPLAY_ENQUEUE;
    open_all();
}

static void take_native(void)
{
    way = RNL_REPLAY_NATIVE;
    open_all();
}

static TCase *make_case(const char *name, void (*open)(void))
{
    TCase *test_case = tcase_create(name);
    tcase_add_checked_fixture(test_case, open, close_all);
    tcase_add_test(test_case, a_kernel_may_be_recorded_twice);
    tcase_add_test(test_case, arguments_change_between_replays);
    tcase_add_test(test_case, ranges_change_between_replays);
    tcase_add_test(test_case, copies_and_fills_are_recorded);
    tcase_add_test(test_case, pinned_memory_is_carried);
    tcase_add_test(test_case, a_list_runs_on_any_stream);
    tcase_add_test(test_case, a_list_holds_what_it_uses);
    tcase_add_test(test_case, each_failing_call_is_told_and_leaves_nothing);
    tcase_add_test(test_case, each_failing_allocation_is_told_and_leaves_nothing);
    tcase_add_test(test_case, the_choice_is_remembered);
    return test_case;
}

int main(void)
{
    Suite *suite = suite_create("command_list");
    suite_add_tcase(suite, make_case("enqueue", take_enqueue));
    suite_add_tcase(suite, make_case("native", take_native));
    return test_run(suite, false);
}
