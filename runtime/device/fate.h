/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream's first failure. It outlives the stream, so that events and the streams that wait for them can look at it
 * whenever they like, and it holds nothing else, so that streams may wait for each other.
 */
#ifndef RUNNEL_DEVICE_FATE_H
#define RUNNEL_DEVICE_FATE_H

#include <runnel/rt.h>

typedef struct rnl_fate rnl_fate;

RNL_NODISCARD rnl_status rnl_fate_create(rnl_fate **out_fate);
rnl_fate *rnl_fate_retain(rnl_fate *fate);
void rnl_fate_release(rnl_fate *fate);
/* Keeps the calling thread's error if it is the first; returns `status`. RNL_OK is ignored. Any thread. */
rnl_status rnl_fate_fail(rnl_fate *fate, rnl_status status);
/* The failure as this thread's error, or RNL_OK. Any thread. */
RNL_NODISCARD rnl_status rnl_fate_check(rnl_fate *fate);

/* The fates of all streams that something depends on, each once. Starts as {0}. */
typedef struct rnl_fates {
    rnl_fate **items; /* retained */
    size_t count, capacity;
} rnl_fates;

RNL_NODISCARD rnl_status rnl_fates_add(rnl_fates *fates, rnl_fate *fate);
/* May have added some of them when it fails. */
RNL_NODISCARD rnl_status rnl_fates_add_all(rnl_fates *fates, const rnl_fates *more);
/* The first failure among them. */
RNL_NODISCARD rnl_status rnl_fates_check(const rnl_fates *fates);
void rnl_fates_clear(rnl_fates *fates);

#endif
