/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a driver's compiling for a program's binary apart from launches: pocl 3.1 aborts now and then
 * (pocl_release_dlhandle_cache: `found->ref_count > 0') when kernels run meanwhile. Streams enter with their first
 * launch and leave when they have been waited for. Compiling never waits for them, since who enters another stream
 * might be the one who would have to wait for the first: it is tried, and put off.
 */
#ifndef RUNNEL_DEVICE_GATE_H
#define RUNNEL_DEVICE_GATE_H

#include <runnel/rt.h>

typedef struct rnl_gate rnl_gate;

RNL_NODISCARD rnl_status rnl_gate_create(rnl_gate **out_gate);
void rnl_gate_destroy(rnl_gate *gate);

/* A stream begins to launch: waits while compiling goes on. A gate that is NULL is open. Any thread. */
void rnl_gate_enter(rnl_gate *gate);
/* The stream's launches have ended. */
void rnl_gate_leave(rnl_gate *gate);
/* True when no stream launches; until rnl_gate_open none will. */
bool rnl_gate_try_close(rnl_gate *gate);
void rnl_gate_open(rnl_gate *gate);

#endif
