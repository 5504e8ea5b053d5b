/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/memory.h"
#include "device/trace_parts.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_EVENTS 1000000
#define FIRST_SLOTS 256 /* a power of two */

static const rnl_trace_what known_whats[RNL_TRACE_KNOWN_COUNT] = {
    [RNL_TRACE_UNKNOWN] = {"command", "kernel", "", 0, 0},
    [RNL_TRACE_WRITE] = {"write", "copy", "", 0, 0},
    [RNL_TRACE_READ] = {"read", "copy", "", 0, 0},
    [RNL_TRACE_COPY] = {"copy", "copy", "", 0, 0},
    [RNL_TRACE_FILL] = {"fill", "copy", "", 0, 0},
    [RNL_TRACE_MAP] = {"map", "copy", "", 0, 0},
    [RNL_TRACE_UNMAP] = {"unmap", "copy", "", 0, 0},
    [RNL_TRACE_ACROSS] = {"copy across devices", "copy", "", 0, 0},
    [RNL_TRACE_REPLAY] = {"replay", "kernel", "", 0, 0},
};

/* ---- Descriptions ---- */

static rnl_hash hash_of(const rnl_trace_what *what)
{
    const rnl_hash parts[] = {rnl_hash_bytes(what->name, strlen(what->name)),
                              rnl_hash_bytes(what->category, strlen(what->category)),
                              rnl_hash_bytes(what->args, strlen(what->args)),
                              {what->flops, what->bytes}};
    return rnl_hash_bytes(parts, sizeof parts);
}

static void free_entry(rnl_trace_entry *entry)
{
    rnl_free(entry->name);
    rnl_free(entry->category);
    rnl_free(entry->args);
}

static uint32_t *find_slot(const rnl_trace *trace, rnl_hash hash)
{
    size_t at = (size_t)hash.low & (trace->slot_count - 1);
    while (trace->slots[at] && !rnl_hash_equal(trace->entries[trace->slots[at] - 1].hash, hash))
        at = (at + 1) & (trace->slot_count - 1);
    return &trace->slots[at];
}

/* Half of the slots stay free. */
static rnl_status make_slots(rnl_trace *trace)
{
    if (2 * (trace->entry_count + 1) <= trace->slot_count)
        return RNL_OK;
    rnl_free(trace->slots);
    const size_t count = trace->slot_count ? 2 * trace->slot_count : FIRST_SLOTS;
    trace->slot_count = 0;
    TRY(rnl_alloc(count, sizeof *trace->slots, &trace->slots));
    trace->slot_count = count;
    for (size_t i = 0; i < trace->entry_count; i++)
        *find_slot(trace, trace->entries[i].hash) = (uint32_t)i + 1;
    return RNL_OK;
}

static rnl_status add_entry(rnl_trace *trace, const rnl_trace_what *what, rnl_hash hash, uint32_t *out_index)
{
    rnl_trace_entry entry = {.hash = hash, .flops = what->flops, .bytes = what->bytes};
    rnl_status status = RNL_OK;
    GOTO(rnl_grow(&trace->entries, &trace->entry_capacity, trace->entry_count + 1, sizeof *trace->entries));
    GOTO(rnl_strdup(what->name, &entry.name));
    GOTO(rnl_strdup(what->category, &entry.category));
    GOTO(rnl_strdup(what->args, &entry.args));
    *out_index = (uint32_t)trace->entry_count;
    trace->entries[trace->entry_count++] = entry;
    *find_slot(trace, hash) = *out_index + 1;
done:
    if (status != RNL_OK)
        free_entry(&entry);
    return status;
}

static rnl_status describe(rnl_trace *trace, const rnl_trace_what *what, rnl_hash hash, uint32_t *out_index)
{
    TRY(make_slots(trace));
    return add_entry(trace, what, hash, out_index);
}

uint32_t rnl_trace_describe(rnl_trace *trace, const rnl_trace_what *what)
{
    const rnl_hash hash = hash_of(what);
    uint32_t index = RNL_TRACE_UNKNOWN;
    pthread_mutex_lock(&trace->lock);
    const uint32_t slot = trace->slot_count ? *find_slot(trace, hash) : 0;
    if (slot > 0) {
        index = slot - 1;
    } else {
        const rnl_error before = *rnl_last_error();
        if (describe(trace, what, hash, &index) != RNL_OK)
            rnl_error_restore(&before);
    }
    pthread_mutex_unlock(&trace->lock);
    return index;
}

/* ---- The object ---- */

rnl_status rnl_trace_create(const rnl_trace_options *options, rnl_trace **out_trace)
{
    rnl_trace_options known = RNL_TRACE_OPTIONS_INIT;
    rnl_trace *trace = NULL;
    rnl_status status = RNL_OK;
    *out_trace = NULL;
    if (options && options->struct_size < sizeof options->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "trace options were not initialised with RNL_TRACE_OPTIONS_INIT");
    if (options)
        memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
    TRY(rnl_alloc(1, sizeof *trace, &trace));
    atomic_init(&trace->references, 1);
    pthread_mutex_init(&trace->lock, NULL);
    atomic_init(&trace->interval, ((uint64_t)1 << 32) | RNL_TRACE_AUTOMATIC);
    trace->max_events = known.max_events ? known.max_events : MAX_EVENTS;
    for (size_t i = 0; i < RNL_TRACE_KNOWN_COUNT; i++) {
        uint32_t index;
        GOTO(describe(trace, &known_whats[i], hash_of(&known_whats[i]), &index));
    }
    *out_trace = trace;
    return RNL_OK;
done:
    rnl_trace_release(trace);
    return status;
}

rnl_trace *rnl_trace_retain(rnl_trace *trace)
{
    if (trace)
        atomic_fetch_add_explicit(&trace->references, 1, memory_order_relaxed);
    return trace;
}

void rnl_trace_release(rnl_trace *trace)
{
    if (!trace || atomic_fetch_sub_explicit(&trace->references, 1, memory_order_acq_rel) != 1)
        return;
    while (trace->tracks) {
        rnl_track *next = trace->tracks->next;
        rnl_track_free(trace->tracks);
        trace->tracks = next;
    }
    while (trace->devices) {
        rnl_trace_device *next = trace->devices->next;
        rnl_trace_device_free(trace->devices);
        trace->devices = next;
    }
    for (size_t i = 0; i < trace->entry_count; i++)
        free_entry(&trace->entries[i]);
    rnl_free(trace->entries);
    rnl_free(trace->slots);
    rnl_free(trace->spans);
    pthread_mutex_destroy(&trace->lock);
    rnl_free(trace);
}

bool rnl_trace_admit(rnl_trace *trace)
{
    const uint64_t count = atomic_load_explicit(&trace->commands, memory_order_relaxed) +
                           atomic_load_explicit(&trace->span_count, memory_order_relaxed);
    if (count < trace->max_events)
        return true;
    atomic_fetch_add_explicit(&trace->dropped, 1, memory_order_relaxed);
    return false;
}

uint32_t rnl_trace_next_number(rnl_trace *trace)
{
    return atomic_fetch_add(&trace->numbers, 1) + 1;
}

/* ---- The host's threads ---- */

static _Thread_local rnl_trace *current_trace;
static _Thread_local uint32_t current_thread;

rnl_trace *rnl_trace_use(rnl_trace *trace)
{
    rnl_trace *before = current_trace;
    current_trace = trace;
    return before;
}

rnl_trace *rnl_trace_current(void)
{
    return current_trace;
}

uint64_t rnl_trace_now(void)
{
    return rnl_clock_ns();
}

/* 1 is the first thread that has something to tell. */
static uint32_t thread_number(void)
{
    static atomic_uint threads;
    if (current_thread == 0)
        current_thread = atomic_fetch_add(&threads, 1) + 1;
    return current_thread;
}

static bool make_span_room(rnl_trace *trace)
{
    if (trace->spans_used < trace->span_capacity)
        return true;
    const rnl_error before = *rnl_last_error();
    if (rnl_grow(&trace->spans, &trace->span_capacity, trace->spans_used + 1, sizeof *trace->spans) == RNL_OK)
        return true;
    rnl_error_restore(&before);
    return false;
}

void rnl_trace_span(rnl_trace *trace, const char *name, uint64_t start_ns)
{
    const uint64_t end_ns = rnl_clock_ns();
    if (!trace || !rnl_trace_admit(trace))
        return;
    const rnl_trace_what what = {.name = name ? name : "", .category = "host", .args = ""};
    const rnl_trace_span_record span = {start_ns < end_ns ? start_ns : end_ns, end_ns, rnl_trace_describe(trace, &what),
                                        thread_number()};
    pthread_mutex_lock(&trace->lock);
    const bool kept = make_span_room(trace);
    if (kept)
        trace->spans[trace->spans_used++] = span;
    pthread_mutex_unlock(&trace->lock);
    atomic_fetch_add_explicit(kept ? &trace->span_count : &trace->dropped, 1, memory_order_relaxed);
}

uint64_t rnl_trace_start(void)
{
    return current_trace ? rnl_clock_ns() : 0;
}

void rnl_trace_stop(uint64_t start_ns, const char *format, ...)
{
    char name[160];
    va_list args;
    if (start_ns == 0 || !current_trace)
        return;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    rnl_trace_span(current_trace, name, start_ns);
}
