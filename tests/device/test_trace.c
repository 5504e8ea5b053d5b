/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of streams: what is in the file, that times are the host's, and that nothing fails because of them. */
#include "base/file.h"
#include "base/memory.h"
#include "device/trace.h"
#include "support/fault.h"
#include "support/test_device.h"
#include "support/test_peer.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 16)
#define COPIES 20
#define MOST_SLICES 4096
/* By how much a clock may be off here: other processes may run between a look at ours and a look at the device's. */
#define CLOCK_US 3000.0

static rnl_device *device;
static rnl_trace *trace;
static rnl_stream *stream;
static char *folder;
static char path[512];
static unsigned char host[BYTES];

typedef struct slice {
    unsigned pid, tid;
    double start, end; /* us */
    bool is_wait;
    char name[64];
} slice;
static slice slices[MOST_SLICES];
static size_t slice_count;
static char *file_text;

static rnl_stream *make_stream(rnl_device *on, rnl_trace *in, const char *name)
{
    rnl_stream_options options = RNL_STREAM_OPTIONS_INIT;
    rnl_stream *made;
    options.trace = in;
    options.name = name;
    test_ok(rnl_stream_create_with(on, &options, &made));
    return made;
}

static void open_all(void)
{
    device = test_open_device();
    folder = test_folder_create();
    snprintf(path, sizeof path, "%s/trace.json", folder);
    test_ok(rnl_trace_create(NULL, &trace));
}

static void close_all(void)
{
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_trace_use(NULL);
    rnl_stream_release(stream);
    stream = NULL;
    rnl_trace_release(trace);
    rnl_device_release(device);
    rnl_free(file_text);
    file_text = NULL;
    test_folder_remove(folder);
}

static void read_slice(const char *line)
{
    slice *s = &slices[slice_count];
    double duration = 0;
    if (sscanf(line, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%lf,\"dur\":%lf,\"name\":\"%63[^\"]\"", &s->pid,
               &s->tid, &s->start, &duration, s->name) != 5)
        return;
    ck_assert_uint_lt(slice_count + 1, MOST_SLICES);
    ck_assert(duration >= 0);
    s->end = s->start + duration;
    s->is_wait = strcmp(s->name, "waiting") == 0;
    slice_count++;
}

static void read_trace(rnl_trace *from)
{
    void *data;
    size_t bytes;
    test_ok(rnl_trace_write(from, path));
    rnl_free(file_text);
    file_text = NULL;
    test_ok(rnl_file_read(path, (size_t)1 << 24, &data, &bytes));
    file_text = data;
    slice_count = 0;
    for (const char *line = file_text; line; line = strchr(line + 1, '\n'))
        read_slice(line + (*line == '\n'));
}

static size_t count_named(const char *name, unsigned tid)
{
    size_t count = 0;
    for (size_t i = 0; i < slice_count; i++)
        count += strcmp(slices[i].name, name) == 0 && (tid == 0 || slices[i].tid == tid);
    return count;
}

/* The slices of one thread come in order, and do not overlap. */
static void check_order(void)
{
    for (size_t i = 0; i + 1 < slice_count; i++) {
        const slice *s = &slices[i], *next = &slices[i + 1];
        if (s->tid == next->tid && s->pid > 1)
            ck_assert_msg(next->start >= s->end - 0.0011, "%s ends at %f, %s starts at %f", s->name, s->end, next->name,
                          next->start);
    }
}

static void check_between(uint64_t from_ns, uint64_t to_ns)
{
    const double from = (double)from_ns * 1e-3 - CLOCK_US, to = (double)to_ns * 1e-3 + CLOCK_US;
    for (size_t i = 0; i < slice_count; i++)
        ck_assert_msg(slices[i].start >= from && slices[i].end <= to, "%s from %f to %f us, the host from %f to %f",
                      slices[i].name, slices[i].start, slices[i].end, from, to);
}

static void copy_around(rnl_stream *on, rnl_device *of, size_t count)
{
    rnl_buffer *a, *b;
    test_ok(rnl_buffer_create(of, RNL_MEMORY_DEVICE, BYTES, &a));
    test_ok(rnl_buffer_create(of, RNL_MEMORY_DEVICE, BYTES, &b));
    for (size_t i = 0; i < count; i++) {
        test_ok(rnl_stream_fill(on, a, 0, "\1", 1, BYTES));
        test_ok(rnl_stream_copy(on, b, 0, a, 0, BYTES));
    }
    test_ok(rnl_stream_read(on, host, b, 0, BYTES));
    test_ok(rnl_stream_synchronize(on));
    rnl_buffer_release(a);
    rnl_buffer_release(b);
}

START_TEST(each_command_is_there_on_the_hosts_clock)
{
    rnl_trace_stats stats;
    const uint64_t start = rnl_trace_now();
    stream = make_stream(device, trace, "the \"first\"\n");
    copy_around(stream, device, COPIES);
    read_trace(trace);
    check_between(start, rnl_trace_now());
    check_order();
    ck_assert_uint_eq(count_named("fill", 1), COPIES);
    ck_assert_uint_eq(count_named("copy", 1), COPIES);
    ck_assert_uint_eq(count_named("read", 1), 1);
    ck_assert_ptr_nonnull(strstr(file_text, "\"thread_name\",\"args\":{\"name\":\"the \\\"first\\\"\\u000a\"}"));
    ck_assert_ptr_nonnull(strstr(file_text, "\"unfinished\":0,\"without_times\":0"));
    ck_assert_ptr_nonnull(strstr(file_text, "\"bytes\":65536"));
    rnl_trace_get_stats(trace, &stats);
    ck_assert_uint_eq(stats.commands, 2 * COPIES + 1);
    ck_assert_uint_eq(stats.dropped, 0);
}
END_TEST

START_TEST(kernels_have_their_names)
{
    rnl_kernel *kernel;
    rnl_buffer *buffer;
    const rnl_range range = {1, {16, 1, 1}, {16, 1, 1}};
    test_ok(rnl_kernel_create(device, "__kernel void add_one(__global float *x) { x[get_global_id(0)] += 1; }", NULL,
                              "add_one", &kernel));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &buffer));
    const rnl_arg arg = {.kind = RNL_ARG_BUFFER, .buffer = buffer};
    stream = make_stream(device, trace, NULL);
    test_ok(rnl_stream_fill(stream, buffer, 0, "\0", 1, BYTES));
    for (int i = 0; i < 3; i++)
        test_ok(rnl_stream_launch(stream, kernel, &range, &arg, 1));
    test_ok(rnl_stream_synchronize(stream));
    read_trace(trace);
    check_order();
    ck_assert_uint_eq(count_named("add_one", 1), 3);
    ck_assert_ptr_nonnull(strstr(file_text, "\"name\":\"stream 1\""));
    rnl_kernel_release(kernel);
    rnl_buffer_release(buffer);
}
END_TEST

START_TEST(streams_and_devices_have_tracks)
{
    rnl_device *peer = test_open_peer(device);
    rnl_stream *second = make_stream(device, trace, "second"), *third = make_stream(peer, trace, "third");
    const uint64_t start = rnl_trace_now();
    stream = make_stream(device, trace, "fourth");
    copy_around(stream, device, 2);
    copy_around(second, device, 3);
    copy_around(third, peer, 4);
    rnl_stream_release(second);
    rnl_stream_release(third);
    rnl_device_release(peer); /* the trace holds it */
    read_trace(trace);
    check_between(start, rnl_trace_now());
    check_order();
    ck_assert_uint_eq(count_named("fill", 1), 3);
    ck_assert_uint_eq(count_named("fill", 2), 4);
    ck_assert_uint_eq(count_named("fill", 3), 2);
    for (size_t i = 0; i < slice_count; i++)
        ck_assert_uint_eq(slices[i].pid, slices[i].tid == 2 ? 3 : 2);
}
END_TEST

START_TEST(spans_of_the_host_nest)
{
    const uint64_t start = rnl_trace_now();
    ck_assert_ptr_null(rnl_trace_use(trace));
    stream = make_stream(device, trace, NULL);
    copy_around(stream, device, 1);
    rnl_trace_span(trace, "outer", start);
    rnl_trace_span(NULL, "nowhere", start);
    ck_assert_ptr_eq(rnl_trace_use(NULL), trace);
    test_ok(rnl_stream_synchronize(stream));
    read_trace(trace);
    check_between(start, rnl_trace_now());
    ck_assert_uint_eq(count_named("outer", 0), 1);
    ck_assert_uint_eq(count_named("wait", 0), 1);
    ck_assert_str_eq(slices[0].name, "outer");
    ck_assert_str_eq(slices[1].name, "wait");
    ck_assert(slices[1].start >= slices[0].start && slices[1].end <= slices[0].end);
}
END_TEST

START_TEST(what_is_too_much_is_counted)
{
    rnl_trace_options options = RNL_TRACE_OPTIONS_INIT;
    rnl_trace *small;
    rnl_trace_stats stats;
    options.max_events = 5;
    test_ok(rnl_trace_create(&options, &small));
    stream = make_stream(device, small, NULL);
    copy_around(stream, device, 4);
    rnl_trace_span(small, "late", 0);
    rnl_trace_get_stats(small, &stats);
    ck_assert_uint_eq(stats.commands, 5);
    ck_assert_uint_eq(stats.spans, 0);
    ck_assert_uint_eq(stats.dropped, 5);
    read_trace(small);
    ck_assert_ptr_nonnull(strstr(file_text, "\"dropped\":5"));
    rnl_trace_release(small); /* its stream holds it */
}
END_TEST

START_TEST(many_commands_keep_their_times)
{
    stream = make_stream(device, trace, NULL);
    /* More than may be under way, and than a block holds. */
    const size_t count = rnl_device_get_info(device)->emulated ? 300 : 700;
    copy_around(stream, device, count);
    read_trace(trace);
    check_order();
    ck_assert_uint_eq(count_named("fill", 0) + count_named("copy", 0), 2 * count);
}
END_TEST

START_TEST(a_bad_path_is_one_message_and_no_file)
{
    char bad[600];
    stream = make_stream(device, trace, NULL);
    copy_around(stream, device, 1);
    snprintf(bad, sizeof bad, "%s/none/trace.json", folder);
    test_fails(RNL_NOT_FOUND, bad, rnl_trace_write(trace, bad));
    test_fails(RNL_INVALID_ARGUMENT, "path is NULL", rnl_trace_write(trace, NULL));
    test_fails(RNL_INVALID_ARGUMENT, "trace is NULL", rnl_trace_write(NULL, path));
    ck_assert_int_ne(access(bad, F_OK), 0);
    read_trace(trace);
    ck_assert_uint_gt(slice_count, 0);
    rnl_trace_options unsized = {0};
    rnl_trace *none;
    test_fails(RNL_INVALID_ARGUMENT, "RNL_TRACE_OPTIONS_INIT", rnl_trace_create(&unsized, &none));
    ck_assert_ptr_null(none);
    rnl_trace_release(NULL);
}
END_TEST

/* A call that fails is a failure with or without a trace, and the trace holds what was done before. */
START_TEST(a_failed_command_is_left_out)
{
    rnl_buffer *buffer;
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &buffer));
    stream = make_stream(device, trace, NULL);
    test_ok(rnl_stream_fill(stream, buffer, 0, "\0", 1, BYTES));
    test_ok(rnl_stream_synchronize(stream));
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_fill(stream, buffer, 0, "\0", 1, BYTES));
    read_trace(trace);
    ck_assert_uint_eq(count_named("fill", 1), 1);
    rnl_buffer_release(buffer);
}
END_TEST

/* Everything that tracing asks for fails once: what the stream does, does not. */
START_TEST(tracing_makes_nothing_fail)
{
    rnl_buffer *buffer;
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &buffer));
    for (uint64_t n = 1; n < 60; n++) {
        rnl_trace *own = NULL;
        rnl_stream *on = NULL;
        rnl_stream_options options = RNL_STREAM_OPTIONS_INIT;
        rnl_alloc_fail_at(n);
        rnl_status status = rnl_trace_create(NULL, &own);
        options.trace = own;
        if (status == RNL_OK)
            status = rnl_stream_create_with(device, &options, &on);
        if (status == RNL_OK) {
            test_ok(rnl_stream_fill(on, buffer, 0, "\0", 1, BYTES));
            test_ok(rnl_stream_synchronize(on));
            rnl_trace_span(own, "span", 0);
            status = rnl_trace_write(own, path);
        }
        const bool left = test_alloc_fault_left();
        ck_assert(status == RNL_OK || status == RNL_RESOURCE_EXHAUSTED);
        rnl_stream_release(on);
        rnl_trace_release(own);
        if (left)
            break;
        ck_assert_uint_lt(n, 59);
    }
    rnl_buffer_release(buffer);
}
END_TEST

static void *work(void *argument)
{
    rnl_stream *on = argument;
    rnl_buffer *buffer;
    rnl_trace_use(trace);
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &buffer));
    for (int i = 0; i < 40; i++) {
        test_ok(rnl_stream_fill(on, buffer, 0, "\0", 1, BYTES));
        test_ok(rnl_stream_synchronize(on));
    }
    rnl_buffer_release(buffer);
    rnl_trace_use(NULL);
    return NULL;
}

START_TEST(threads_share_a_trace_that_is_written_meanwhile)
{
    enum { threads = 3 };
    pthread_t ids[threads];
    rnl_stream *streams[threads];
    for (int i = 0; i < threads; i++) {
        streams[i] = make_stream(device, trace, NULL);
        ck_assert_int_eq(pthread_create(&ids[i], NULL, work, streams[i]), 0);
    }
    for (int i = 0; i < 5; i++)
        test_ok(rnl_trace_write(trace, path));
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        rnl_stream_release(streams[i]);
    }
    read_trace(trace);
    check_order();
    ck_assert_uint_eq(count_named("fill", 0), 40 * threads);
    ck_assert_uint_eq(count_named("wait", 0), 40 * threads);
}
END_TEST

static unsigned taken(rnl_trace_turn *turn, unsigned runs)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < runs; i++)
        bits |= (unsigned)rnl_trace_takes(trace, turn, 0) << i;
    return bits;
}

START_TEST(runs_are_recorded_by_turns)
{
    rnl_trace_turn first = {0}, second = {0};
    ck_assert_uint_eq(taken(&first, 5), 0x1f);
    rnl_trace_set_interval(trace, 3);
    ck_assert_uint_eq(taken(&first, 7), 0x49);
    ck_assert_uint_eq(taken(&second, 5), 0x09);
    rnl_trace_set_interval(trace, 0);
    ck_assert_uint_eq(taken(&first, 5), 0);
    rnl_trace_set_interval(trace, 2);
    ck_assert_uint_eq(taken(&first, 4), 0x5);
    rnl_trace_set_interval(trace, 2);
    ck_assert_uint_eq(taken(&second, 3), 0x5);
    rnl_trace_set_interval(trace, UINT32_MAX - 1);
    ck_assert_uint_eq(taken(&second, 9), 1);
    stream = make_stream(device, trace, NULL); /* a stream is recorded whatever the interval */
    copy_around(stream, device, 1);
    read_trace(trace);
    ck_assert_uint_eq(count_named("fill", 1), 1);
}
END_TEST

START_TEST(a_stream_without_a_trace_has_no_track)
{
    test_ok(rnl_stream_create(device, &stream));
    copy_around(stream, device, 1);
    ck_assert_ptr_null(rnl_stream_trace(stream));
    read_trace(trace);
    ck_assert_uint_eq(slice_count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace");
    TCase *test_case = tcase_create("trace");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, each_command_is_there_on_the_hosts_clock);
    tcase_add_test(test_case, kernels_have_their_names);
    tcase_add_test(test_case, streams_and_devices_have_tracks);
    tcase_add_test(test_case, spans_of_the_host_nest);
    tcase_add_test(test_case, what_is_too_much_is_counted);
    tcase_add_test(test_case, many_commands_keep_their_times);
    tcase_add_test(test_case, a_bad_path_is_one_message_and_no_file);
    tcase_add_test(test_case, a_failed_command_is_left_out);
    tcase_add_test(test_case, tracing_makes_nothing_fail);
    tcase_add_test(test_case, threads_share_a_trace_that_is_written_meanwhile);
    tcase_add_test(test_case, runs_are_recorded_by_turns);
    tcase_add_test(test_case, a_stream_without_a_trace_has_no_track);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
