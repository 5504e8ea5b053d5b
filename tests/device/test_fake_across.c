/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On the fake driver: what several streams, devices and threads do together. Every OpenCL call of each program is made
 * to fail, once and from then on; then the same programs run with commands that come late.
 */
#include "base/status.h"
#include "support/fake_driver.h"
#include "support/test_device.h"
#include <runnel/command_list.h>
#include <runnel/memory.h>
#include <runnel/pool.h>
#include <runnel/stream_pool.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4096
#define BYTES (COUNT * sizeof(int))
#define LATE_US 1000

static rnl_device *devices[2]; /* of two platforms: memory of its own, and shared with the host */
static size_t alive;
static int numbers[COUNT], back[COUNT];

static void setup(void)
{
    fake_driver()->reset();
    setenv("RUNNEL_CACHE", "off", 1);
    alive = fake_count_alive();
    test_ok(rnl_device_open("0:0", NULL, &devices[0]));
    test_ok(rnl_device_open("1:0", NULL, &devices[1]));
    for (int i = 0; i < COUNT; i++)
        numbers[i] = 5 * i - 77;
}

static void teardown(void)
{
    fake_driver()->reset();
    for (int i = 0; i < 2; i++) {
        rnl_device_stats stats;
        rnl_device_get_stats(devices[i], &stats);
        ck_assert_uint_eq(stats.pool_in_use_bytes, 0);
        rnl_device_release(devices[i]);
    }
    fake_check_alive(alive);
}

#define STEP(call)                                                                                                     \
    do {                                                                                                               \
        rnl_status step_ = (call);                                                                                     \
        if (step_ != RNL_OK)                                                                                           \
            return step_;                                                                                              \
    } while (0)

/* What a program holds: all that is there is released, in no particular order. */
typedef struct objects {
    rnl_stream *streams[2]; /* of device 0 and 1 */
    rnl_buffer *buffers[2], *pinned;
    rnl_event *event;
    rnl_stream_pool *pool;
    rnl_staging *staging;
    rnl_kernel *kernel;
    rnl_command_list *list;
} objects;

static rnl_status create(objects *o)
{
    for (int i = 0; i < 2; i++) {
        STEP(rnl_stream_create(devices[i], &o->streams[i]));
        STEP(rnl_buffer_create(devices[i], RNL_MEMORY_DEVICE, BYTES, &o->buffers[i]));
    }
    return rnl_buffer_create(devices[0], RNL_MEMORY_PINNED, BYTES, &o->pinned);
}

static void release(objects *o)
{
    for (int i = 0; i < 2; i++) {
        rnl_status status = o->streams[i] ? rnl_stream_synchronize(o->streams[i]) : RNL_OK;
        (void)status;
    }
    if (o->pool) {
        rnl_status status = rnl_stream_pool_synchronize(o->pool, NULL);
        (void)status;
    }
    rnl_stream_pool_release(o->pool);
    rnl_staging_release(o->staging);
    rnl_event_release(o->event);
    rnl_command_list_release(o->list);
    rnl_kernel_release(o->kernel);
    rnl_buffer_release(o->pinned);
    for (int i = 0; i < 2; i++) {
        rnl_stream_release(o->streams[i]);
        rnl_buffer_release(o->buffers[i]);
    }
}

static rnl_status run(rnl_status (*body)(objects *))
{
    objects o = {0};
    memset(back, 0, sizeof back);
    rnl_status status = create(&o);
    if (status == RNL_OK)
        status = body(&o);
    rnl_error error = *rnl_last_error();
    release(&o);
    if (status == RNL_OK)
        ck_assert_mem_eq(back, numbers, BYTES);
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

/* ---- The programs ---- */

/* A stream waits for one of another platform's device. */
static rnl_status wait_across(objects *o)
{
    STEP(rnl_stream_write(o->streams[0], o->buffers[0], 0, numbers, BYTES));
    STEP(rnl_stream_copy(o->streams[0], o->pinned, 0, o->buffers[0], 0, BYTES));
    STEP(rnl_stream_record(o->streams[0], &o->event));
    STEP(rnl_stream_wait(o->streams[1], o->event));
    STEP(rnl_stream_write(o->streams[1], o->buffers[1], 0, rnl_buffer_host(o->pinned), BYTES));
    STEP(rnl_stream_read(o->streams[1], back, o->buffers[1], 0, BYTES));
    STEP(rnl_stream_synchronize(o->streams[1]));
    return rnl_stream_synchronize(o->streams[0]);
}

static rnl_status copy_across(objects *o)
{
    STEP(rnl_stream_write(o->streams[0], o->buffers[0], 0, numbers, BYTES));
    STEP(rnl_stream_copy_across(o->streams[1], o->buffers[1], 0, o->streams[0], o->buffers[0], 0, BYTES));
    STEP(rnl_stream_fill(o->streams[0], o->buffers[0], 0, "\0", 1, BYTES)); /* after the copy */
    STEP(rnl_stream_copy_across(o->streams[0], o->buffers[0], 0, o->streams[1], o->buffers[1], 0, BYTES));
    STEP(rnl_stream_read(o->streams[0], back, o->buffers[0], 0, BYTES));
    STEP(rnl_stream_synchronize(o->streams[0]));
    return rnl_stream_synchronize(o->streams[1]);
}

/* Eight batches over three streams, each a part of the numbers. */
static rnl_status pool_of_streams(objects *o)
{
    rnl_stream_pool_options options = RNL_STREAM_POOL_OPTIONS_INIT;
    const size_t part = BYTES / 8;
    options.stream_count = 3;
    STEP(rnl_stream_pool_create(devices[0], &options, &o->pool));
    for (size_t at = 0; at < BYTES; at += part) {
        rnl_stream *stream;
        STEP(rnl_stream_pool_begin(o->pool, &stream, NULL));
        rnl_status status = rnl_stream_write(stream, o->buffers[0], at, (char *)numbers + at, part);
        if (status == RNL_OK)
            status = rnl_stream_read(stream, (char *)back + at, o->buffers[0], at, part);
        rnl_error error = *rnl_last_error();
        rnl_status ended = rnl_stream_pool_end(o->pool, stream, NULL);
        if (status != RNL_OK)
            return rnl_error_restore(&error);
        STEP(ended);
    }
    return rnl_stream_pool_synchronize(o->pool, NULL);
}

static rnl_status staging(objects *o)
{
    const size_t part = BYTES / 8;
    STEP(rnl_staging_create(devices[0], part, 3, &o->staging));
    for (size_t at = 0; at < BYTES; at += part) {
        void *slot;
        STEP(rnl_staging_begin(o->staging, &slot));
        memcpy(slot, (char *)numbers + at, part);
        STEP(rnl_staging_submit(o->staging, o->streams[0], o->buffers[0], at, part));
    }
    STEP(rnl_stream_read(o->streams[0], back, o->buffers[0], 0, BYTES));
    return rnl_stream_synchronize(o->streams[0]);
}

static rnl_status map(objects *o)
{
    void *host;
    STEP(rnl_stream_map(o->streams[0], o->buffers[0], 0, BYTES, RNL_MAP_OVERWRITE, &host));
    memcpy(host, numbers, BYTES);
    STEP(rnl_stream_unmap(o->streams[0], o->buffers[0]));
    STEP(rnl_stream_copy(o->streams[0], o->pinned, 0, o->buffers[0], 0, BYTES));
    STEP(rnl_stream_map(o->streams[0], o->pinned, 0, BYTES, RNL_MAP_READ, &host));
    memcpy(back, host, BYTES);
    STEP(rnl_stream_unmap(o->streams[0], o->pinned));
    return rnl_stream_synchronize(o->streams[0]);
}

static void note(void *user, const rnl_error *error)
{
    atomic_store((atomic_int *)user, error ? 2 : 1);
}

static rnl_status notify(objects *o)
{
    static atomic_int told;
    atomic_store(&told, 0);
    STEP(rnl_stream_write(o->streams[1], o->buffers[1], 0, numbers, BYTES));
    STEP(rnl_stream_read(o->streams[1], back, o->buffers[1], 0, BYTES));
    STEP(rnl_stream_record(o->streams[1], &o->event));
    STEP(rnl_event_notify(o->event, note, &told));
    while (atomic_load(&told) == 0)
        continue;
    bool done = false;
    STEP(rnl_event_query(o->event, &done));
    ck_assert(done);
    return rnl_stream_synchronize(o->streams[1]);
}

/* Adds 2 in three replays, and 1 with another argument. */
static rnl_status command_list(objects *o)
{
    int by = 2, less[COUNT];
    size_t index;
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = o->buffers[0]},
                            {.kind = RNL_ARG_VALUE, .size_bytes = sizeof by, .value = &by}};
    const rnl_range range = {.dimensions = 1, .global = {COUNT, 1, 1}, .local = {32, 1, 1}};
    for (int i = 0; i < COUNT; i++)
        less[i] = numbers[i] - 7;
    STEP(rnl_stream_write(o->streams[0], o->buffers[0], 0, less, BYTES));
    rnl_status status = rnl_stream_synchronize(o->streams[0]);
    STEP(status);
    STEP(rnl_kernel_create(devices[0], "__kernel void fake_add(__global int *x, int y) {}", NULL, "fake_add",
                           &o->kernel));
    STEP(rnl_command_list_create(devices[0], NULL, &o->list));
    STEP(rnl_command_list_launch(o->list, o->kernel, &range, args, 2, &index));
    for (int i = 0; i < 3; i++)
        STEP(rnl_stream_replay(o->streams[0], o->list));
    by = 1;
    STEP(rnl_command_list_set_arg(o->list, index, 1, &args[1]));
    STEP(rnl_stream_replay(o->streams[0], o->list));
    STEP(rnl_stream_read(o->streams[0], back, o->buffers[0], 0, BYTES));
    return rnl_stream_synchronize(o->streams[0]);
}

static rnl_status (*const programs[])(objects *) = {wait_across, copy_across, pool_of_streams, staging,
                                                    map,         notify,      command_list};
#define PROGRAMS ((int)(sizeof programs / sizeof *programs))

/* ---- The tests ---- */

static rnl_status run_program(void *at)
{
    return run(programs[*(const int *)at]);
}

static void trim(void *data)
{
    (void)data;
    rnl_device_pool_trim(devices[0]);
    rnl_device_pool_trim(devices[1]);
}

static void fail_each_call(int at, bool always)
{
    const fake_sweep wish = {.program = run_program,
                             .settle = trim,
                             .data = &at,
                             .code = CL_OUT_OF_RESOURCES,
                             .code_text = "CL_OUT_OF_RESOURCES (-5)",
                             .from_then_on = always};
    ck_assert_uint_gt(fake_sweep_calls(&wish), 5);
}

START_TEST(each_call_fails_once)
{
    fail_each_call(_i, false);
}
END_TEST

START_TEST(each_call_fails_from_then_on)
{
    fail_each_call(_i, true);
}
END_TEST

START_TEST(each_device_is_lost)
{
    for (unsigned device = 0; device < FAKE_DEVICES; device += 2) {
        fake_stats stats = {.failed_calls = 1};
        for (uint64_t n = 1; stats.failed_calls > 0; n++) {
            fake_driver()->reset();
            fake_driver()->lose_device(device, n, CL_OUT_OF_RESOURCES);
            rnl_status status = run(programs[_i]);
            fake_driver()->get_stats(&stats);
            if (status != RNL_OK)
                ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "CL_OUT_OF_RESOURCES (-5)"));
            teardown();
            setup(); /* the queues that a device keeps are lost with it */
        }
    }
}
END_TEST

START_TEST(commands_come_late)
{
    fake_driver()->delay(LATE_US);
    for (int i = 0; i < 3; i++)
        test_ok(run(programs[_i]));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_across");
    TCase *test_case = tcase_create("fake_across");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_loop_test(test_case, each_call_fails_once, 0, PROGRAMS);
    tcase_add_loop_test(test_case, each_call_fails_from_then_on, 0, PROGRAMS);
    tcase_add_loop_test(test_case, each_device_is_lost, 0, PROGRAMS);
    tcase_add_loop_test(test_case, commands_come_late, 0, PROGRAMS);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
