/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fault.h"

#include "base/memory.h"
#include "device/cl_status.h"
#include <stdlib.h>

#define MOST_CALLS 4000 /* more than any test counts to */

bool test_cl_fault_left(void)
{
    bool left = false;
    for (int i = 0; i < MOST_CALLS && !left; i++)
        left = rnl_cl_fault_pending();
    rnl_cl_fail_at(0, CL_SUCCESS);
    return left;
}

bool test_alloc_fault_left(void)
{
    bool left = false;
    for (int i = 0; i < MOST_CALLS && !left; i++) {
        void *memory;
        left = rnl_alloc(1, 1, &memory) != RNL_OK;
        rnl_free(memory);
    }
    rnl_alloc_fail_at(0);
    return left;
}

uint64_t test_sweep_step(uint64_t least)
{
    const char *sweep = getenv("RUNNEL_TEST_SWEEP");
    const uint64_t wish = sweep ? strtoul(sweep, NULL, 10) : 1, step = wish > least ? wish : least;
    return step > 0 ? step : 1;
}
