/* SPDX-License-Identifier: Apache-2.0 */
/* A trace's insides, for the files that make it up. */
#ifndef RUNNEL_DEVICE_TRACE_PARTS_H
#define RUNNEL_DEVICE_TRACE_PARTS_H

#include "base/hash.h"
#include "device/trace.h"

/* Device times are off the host's by something from `low` to `high`. */
typedef struct rnl_clock_pair {
    uint64_t device_ns;
    int64_t low, high;
} rnl_clock_pair;

typedef struct rnl_trace_device {
    struct rnl_trace_device *next;
    rnl_device *device; /* retained */
    uint32_t pid;
    cl_command_queue
        queue;            /* timed, for markers alone; NULL: the driver gives no times, so each command is waited for */
    pthread_mutex_t lock; /* of what follows: one thread takes a pair */
    rnl_clock_pair *pairs; /* in the order of time */
    size_t pair_count, pair_capacity;
    uint64_t paired_ns; /* the host's time of the last one */
} rnl_trace_device;

typedef struct rnl_trace_command {
    cl_event event;            /* whose times are still to be asked for; else NULL */
    uint64_t called, returned; /* by the host: around the call that enqueued it */
    uint64_t queued, submitted, started, ended;
    uint64_t bytes;
    uint32_t what;
    enum {
        RNL_COMMAND_OPEN, /* being enqueued */
        RNL_COMMAND_UNDER_WAY,
        RNL_COMMAND_BY_DEVICE, /* has ended: times of the device's clock */
        RNL_COMMAND_BY_HOST,
        RNL_COMMAND_LOST /* failed, or has no times */
    } state;
    bool waits;
} rnl_trace_command;

#define RNL_TRACK_BLOCK 512
typedef struct rnl_track_block {
    struct rnl_track_block *next;
    size_t count;
    rnl_trace_command commands[RNL_TRACK_BLOCK]; /* never move: drivers are given places of events */
} rnl_track_block;

typedef struct rnl_track {
    struct rnl_track *next;
    rnl_trace *trace;         /* that it belongs to */
    rnl_trace_device *device; /* likewise */
    char name[64];
    uint32_t tid;
    pthread_mutex_t lock; /* of what follows */
    rnl_track_block *first, *last;
    rnl_track_block *asked_block; /* up to there all times are known */
    size_t asked_at, under_way, count;
    rnl_trace_command *open; /* the stream's thread's own */
} rnl_track;

typedef struct rnl_trace_span_record {
    uint64_t start, end;
    uint32_t what, tid;
} rnl_trace_span_record;

typedef struct rnl_trace_entry {
    rnl_hash hash;
    char *name, *category, *args;
    uint64_t flops, bytes;
} rnl_trace_entry;

struct rnl_trace {
    atomic_uint references;
    size_t max_events;
    atomic_ullong commands, span_count, dropped;
    atomic_ullong interval; /* of runs; above it how often it was set, so that who counts starts anew */
    atomic_ullong runs, recorded_runs;
    atomic_uint numbers;
    pthread_mutex_t lock; /* of what follows */
    rnl_trace_device *devices;
    rnl_track *tracks, *last_track;
    uint32_t device_count, track_count;
    rnl_trace_entry *entries;
    size_t entry_count, entry_capacity;
    uint32_t *slots; /* a hash table of indices of entries; 0: free */
    size_t slot_count;
    rnl_trace_span_record *spans;
    size_t spans_used, span_capacity;
};

/* Takes part in max_events; false: it is to be left out. */
bool rnl_trace_admit(rnl_trace *trace);

RNL_NODISCARD rnl_status rnl_trace_device_create(rnl_device *device, uint32_t pid, rnl_trace_device **out_device);
void rnl_trace_device_free(rnl_trace_device *device);
#define RNL_PAIR_EVERY_NS 250000000ull /* clocks drift by some parts in a million */
/* Takes a pair of times, if the last one is older than that. */
void rnl_trace_device_pair(rnl_trace_device *device, uint64_t older_than_ns);
/* On the host's clock; the device's lock is held. */
uint64_t rnl_trace_device_map(const rnl_trace_device *device, uint64_t device_ns);

/* Asks for the times of what has ended, in order; the track's lock is held. */
void rnl_track_ask(rnl_track *track);
void rnl_track_free(rnl_track *track);

#endif
