/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as Chrome trace JSON. Times there are in microseconds. */
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/trace_parts.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_PID 1u
#define HOST_TIDS 1000000u /* a stream's thread has its own number, a host's thread one from here on */
#define LEAST_WAIT_NS 100  /* shorter gaps are not worth an event */

/* A command on the host's clock. */
typedef struct timed_command {
    const rnl_trace_command *command;
    uint64_t queued, submitted, started, ended;
} timed_command;

typedef struct writer {
    rnl_text text;
    bool has_event;
    uint64_t unfinished, lost;
} writer;

/* ---- What each event has: there are a million, and printf took more than half of the time ---- */

static void add_plain(writer *w, const char *text)
{
    rnl_text_add_bytes(&w->text, text, strlen(text));
}

/* `decimals` of the digits stand behind the point. */
static void add_digits(writer *w, uint64_t value, size_t decimals)
{
    char digits[24];
    size_t at = sizeof digits, left = decimals + 1;
    for (; value > 0 || left > 0; value /= 10) {
        if (decimals > 0 && left == 1)
            digits[--at] = '.';
        digits[--at] = (char)('0' + value % 10);
        left -= left > 0;
    }
    rnl_text_add_bytes(&w->text, digits + at, sizeof digits - at);
}

static void add_member(writer *w, const char *key, uint64_t value, size_t decimals)
{
    add_plain(w, ",\"");
    add_plain(w, key);
    add_plain(w, "\":");
    add_digits(w, value, decimals);
}

static void start_event(writer *w, char phase, uint32_t pid, uint32_t tid)
{
    const char begin[] = {'\n', '{', '"', 'p', 'h', '"', ':', '"', phase, '"', '\0'};
    add_plain(w, w->has_event ? "," : "");
    add_plain(w, begin);
    add_member(w, "pid", pid, 0);
    add_member(w, "tid", tid, 0);
    w->has_event = true;
}

static void add_us(writer *w, const char *key, uint64_t ns)
{
    add_member(w, key, ns, 3);
}

/* So many a nanosecond, to three decimals; nothing where no time has passed. */
static void add_rate(writer *w, const char *key, uint64_t count, uint64_t ns)
{
    if (count > 0 && ns > 0)
        add_member(w, key, (uint64_t)fmin((double)count / (double)ns * 1e3 + 0.5, 1e18), 3);
}

static void add_name(writer *w, uint32_t pid, uint32_t tid, const char *kind, const char *name)
{
    start_event(w, 'M', pid, tid);
    rnl_text_add(&w->text, ",\"name\":\"%s\",\"args\":{\"name\":", kind);
    rnl_text_add_json(&w->text, name);
    add_plain(w, "}}");
}

static void add_number(writer *w, uint32_t pid, uint32_t tid, const char *kind, const char *key, uint32_t number)
{
    start_event(w, 'M', pid, tid);
    rnl_text_add(&w->text, ",\"name\":\"%s\",\"args\":{\"%s\":%u}}", kind, key, (unsigned)number);
}

static void start_slice(writer *w, uint32_t pid, uint32_t tid, const char *name, const char *category, uint64_t start,
                        uint64_t end)
{
    start_event(w, 'X', pid, tid);
    add_us(w, "ts", start);
    add_us(w, "dur", end - start);
    add_plain(w, ",\"name\":");
    rnl_text_add_json(&w->text, name);
    add_plain(w, ",\"cat\":\"");
    add_plain(w, category);
    add_plain(w, "\",\"args\":{");
}

/* ---- A stream ---- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whatever the clocks' error: nothing was queued before the call, and the four points follow each other. */
static timed_command on_host_clock(const rnl_trace_device *device, const rnl_trace_command *command)
{
    timed_command timed = {command, command->queued, command->submitted, command->started, command->ended};
    if (command->state == RNL_COMMAND_BY_DEVICE) {
        timed.queued = rnl_trace_device_map(device, command->queued);
        timed.submitted = rnl_trace_device_map(device, command->submitted);
        timed.started = rnl_trace_device_map(device, command->started);
        timed.ended = rnl_trace_device_map(device, command->ended);
    }
    timed.queued = timed.queued > command->returned ? command->returned : later(timed.queued, command->called);
    timed.started = later(timed.started, timed.queued);
    timed.submitted = timed.submitted > timed.started ? timed.started : later(timed.submitted, timed.queued);
    timed.ended = later(timed.ended, timed.started);
    return timed;
}

static int compare_commands(const void *left, const void *right)
{
    const timed_command *a = left, *b = right;
    if (a->started != b->started)
        return a->started < b->started ? -1 : 1;
    return a->ended < b->ended ? -1 : a->ended > b->ended;
}

static void add_command_args(writer *w, const rnl_trace *trace, const timed_command *timed, uint64_t free_from)
{
    const rnl_trace_command *command = timed->command;
    const rnl_trace_entry *entry = &trace->entries[command->what];
    const uint64_t bytes = command->bytes ? command->bytes : entry->bytes;
    const uint64_t ns = timed->ended - timed->started;
    const uint64_t ready = later(command->called, free_from);
    add_plain(w, entry->args);
    add_plain(w, *entry->args ? "," : "");
    add_plain(w, command->state == RNL_COMMAND_BY_HOST ? "\"clock\":\"host\"" : "\"clock\":\"device\"");
    add_us(w, "queued", timed->queued);
    add_us(w, "submitted", timed->submitted);
    add_us(w, "waited_us", timed->started > ready ? timed->started - ready : 0);
    if (entry->flops)
        add_member(w, "flops", entry->flops, 0);
    if (bytes)
        add_member(w, "bytes", bytes, 0);
    add_rate(w, "GFLOP/s", entry->flops, ns);
    add_rate(w, "GB/s", bytes, ns);
    add_plain(w, "}}");
}

/* Commands of a queue run one after the other; where a clock says otherwise, the later one starts when the earlier one
 * ends. What lies between the end of one and the start of the next is waiting, from the call that enqueued that on: a
 * driver may take longer in there than the kernel runs. */
static void add_commands(writer *w, const rnl_trace *trace, const rnl_track *track, timed_command *commands,
                         size_t count)
{
    const uint32_t pid = track->device->pid;
    uint64_t free_from = 0;
    for (size_t i = 0; i < count; i++) {
        timed_command *timed = &commands[i];
        const rnl_trace_entry *entry = &trace->entries[timed->command->what];
        const uint64_t ready = later(timed->command->called, free_from);
        if (timed->started > ready + LEAST_WAIT_NS) {
            start_slice(w, pid, track->tid, "waiting", "wait", ready, timed->started);
            add_plain(w, "}}");
        }
        timed->started = later(timed->started, free_from);
        timed->ended = later(timed->ended, timed->started);
        start_slice(w, pid, track->tid, entry->name, entry->category, timed->started, timed->ended);
        add_command_args(w, trace, timed, free_from);
        free_from = timed->ended;
    }
}

static rnl_status add_track(writer *w, const rnl_trace *trace, rnl_track *track)
{
    timed_command *commands = NULL;
    size_t count = 0;
    rnl_status status = rnl_alloc(track->count, sizeof *commands, &commands);
    if (status != RNL_OK)
        return status;
    add_name(w, track->device->pid, track->tid, "thread_name", track->name);
    add_number(w, track->device->pid, track->tid, "thread_sort_index", "sort_index", track->tid);
    rnl_track_ask(track);
    pthread_mutex_lock(&track->device->lock);
    for (const rnl_track_block *block = track->first; block; block = block->next)
        for (size_t i = 0; i < block->count; i++) {
            const rnl_trace_command *command = &block->commands[i];
            if (command->state == RNL_COMMAND_BY_DEVICE || command->state == RNL_COMMAND_BY_HOST)
                commands[count++] = on_host_clock(track->device, command);
            w->unfinished += command->state == RNL_COMMAND_UNDER_WAY || command->state == RNL_COMMAND_OPEN;
            w->lost += command->state == RNL_COMMAND_LOST;
        }
    pthread_mutex_unlock(&track->device->lock);
    if (count > 0)
        qsort(commands, count, sizeof *commands, compare_commands);
    add_commands(w, trace, track, commands, count);
    rnl_free(commands);
    return RNL_OK;
}

/* ---- The host ---- */

/* A span comes before those that lie within it. */
static int compare_spans(const void *left, const void *right)
{
    const rnl_trace_span_record *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->end > b->end ? -1 : a->end < b->end;
}

static void add_spans(writer *w, const rnl_trace *trace)
{
    uint32_t tid = 0;
    add_name(w, HOST_PID, HOST_TIDS, "process_name", "host");
    add_number(w, HOST_PID, HOST_TIDS, "process_sort_index", "sort_index", HOST_PID);
    for (size_t i = 0; i < trace->spans_used; i++) {
        const rnl_trace_span_record *span = &trace->spans[i];
        if (span->tid != tid) {
            char name[32];
            snprintf(name, sizeof name, "host thread %u", (unsigned)span->tid);
            add_name(w, HOST_PID, HOST_TIDS + span->tid, "thread_name", name);
            tid = span->tid;
        }
        start_slice(w, HOST_PID, HOST_TIDS + span->tid, trace->entries[span->what].name,
                    trace->entries[span->what].category, span->start, span->end);
        add_plain(w, "}}");
    }
}

/* ---- The whole ---- */

static void add_device(writer *w, const rnl_trace_device *device)
{
    const rnl_device_info *info = &device->device->info;
    char name[320], spec[RNL_DEVICE_SPEC_BYTES];
    snprintf(name, sizeof name, "%s %s (%s)", rnl_device_spec(device->device, spec), info->name, info->platform);
    add_name(w, device->pid, 0, "process_name", name);
    add_number(w, device->pid, 0, "process_sort_index", "sort_index", device->pid);
}

static uint64_t clock_error(const rnl_trace *trace)
{
    uint64_t most = 0;
    for (rnl_trace_device *device = trace->devices; device; device = device->next) {
        pthread_mutex_lock(&device->lock);
        for (size_t i = 0; i < device->pair_count; i++)
            most = later(most, (uint64_t)(device->pairs[i].high - device->pairs[i].low + 1) / 2);
        pthread_mutex_unlock(&device->lock);
    }
    return most;
}

static rnl_status add_all(writer *w, rnl_trace *trace)
{
    rnl_text_add(&w->text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    if (trace->spans_used > 0)
        qsort(trace->spans, trace->spans_used, sizeof *trace->spans, compare_spans);
    add_spans(w, trace);
    for (const rnl_trace_device *device = trace->devices; device; device = device->next)
        add_device(w, device);
    for (rnl_track *track = trace->tracks; track; track = track->next) {
        pthread_mutex_lock(&track->lock);
        const rnl_status status = add_track(w, trace, track);
        pthread_mutex_unlock(&track->lock);
        TRY(status);
    }
    rnl_text_add(&w->text,
                 "\n],\"otherData\":{\"clock\":\"CLOCK_MONOTONIC\",\"clock_error_ns\":%" PRIu64 ",\"dropped\":%" PRIu64
                 ",\"unfinished\":%" PRIu64 ",\"without_times\":%" PRIu64 ",\"runs\":%" PRIu64
                 ",\"recorded_runs\":%" PRIu64 "}}\n",
                 clock_error(trace), (uint64_t)atomic_load(&trace->dropped), w->unfinished, w->lost,
                 (uint64_t)atomic_load(&trace->runs), (uint64_t)atomic_load(&trace->recorded_runs));
    return w->text.status;
}

rnl_status rnl_trace_write(rnl_trace *trace, const char *path)
{
    writer w = {0};
    if (!trace || !path)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_trace_write: %s is NULL", trace ? "path" : "trace");
    pthread_mutex_lock(&trace->lock);
    for (rnl_trace_device *device = trace->devices; device; device = device->next)
        rnl_trace_device_pair(device, 0);
    rnl_status status = add_all(&w, trace);
    pthread_mutex_unlock(&trace->lock);
    if (status == RNL_OK)
        status = rnl_file_write(path, w.text.data, w.text.length);
    rnl_text_free(&w.text);
    return status == RNL_OK ? RNL_OK : rnl_error_add(status, "writing a trace");
}

void rnl_trace_get_stats(rnl_trace *trace, rnl_trace_stats *out_stats)
{
    *out_stats = (rnl_trace_stats){0};
    if (!trace)
        return;
    pthread_mutex_lock(&trace->lock);
    *out_stats = (rnl_trace_stats){atomic_load(&trace->commands), atomic_load(&trace->span_count),
                                   atomic_load(&trace->dropped), clock_error(trace)};
    pthread_mutex_unlock(&trace->lock);
}
