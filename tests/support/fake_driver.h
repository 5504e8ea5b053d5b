/* SPDX-License-Identifier: Apache-2.0 */
/* Tests on the fake OpenCL driver: steering it, and making each call of a program fail. */
#ifndef RUNNEL_TESTS_FAKE_DRIVER_H
#define RUNNEL_TESTS_FAKE_DRIVER_H

#include "fake/control.h"
#include <runnel/rt.h>

/* The driver's controls. Ends the process with 77 (skipped) where the driver is another one. */
const fake_control *fake_driver(void);

/* What a sweep makes fail. `program` is run again and again; it releases what it makes, whatever fails. */
typedef struct fake_sweep {
    rnl_status (*program)(void *data);
    void (*settle)(void *data); /* NULL, or what releases what is kept for the next run; nothing fails then */
    void *data;
    const char *call; /* NULL: all calls */
    cl_int code;
    const char *code_text; /* "CL_OUT_OF_RESOURCES (-5)" */
    bool from_then_on;
    uint64_t step;         /* 0 and 1: each call, 7: each 7th */
    bool may_be_not_found; /* a device or platform that fails is left out of the list */
} fake_sweep;

/*
 * Lets the n-th call fail for n = 1, 2 (or 1 + step), … until a run needs fewer calls. After each: the program
 * succeeded, or failed with a message that names the first call that failed and its code; nothing is left alive; the
 * program works again. Returns the number of runs that failed; with RUNNEL_TEST_SWEEP, each counts for those left out.
 */
unsigned fake_sweep_calls(const fake_sweep *sweep);

/* No more is alive than when `alive` was counted; waits a little for what threads of the library release, and for
 * commands that are under way: the next fault is not for them. */
void fake_check_alive(size_t alive);
size_t fake_count_alive(void);

#endif
