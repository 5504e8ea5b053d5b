/* SPDX-License-Identifier: Apache-2.0 */
/* What tests that make calls fail share. */
#ifndef RUNNEL_TESTS_FAULT_H
#define RUNNEL_TESTS_FAULT_H

#include <runnel/rt.h>

/* No OpenCL call (no allocation) is to fail any more; true when the failure that was asked for has not come to pass. */
bool test_cl_fault_left(void);
bool test_alloc_fault_left(void);

/*
 * From one call that is made to fail to the next: `least` (0: 1), or what RUNNEL_TEST_SWEEP asks for where that is
 * more: where all is slow, a part of the calls has to do.
 */
uint64_t test_sweep_step(uint64_t least);

#endif
