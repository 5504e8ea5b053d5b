/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten million random allocations and releases from eight threads: soak_pool [OPERATIONS [LIVE]]. On the device that
 * RUNNEL_TEST_DEVICE names, with a budget of 1 GiB, sizes log-uniform from 256 bytes to 4 MiB, and LIVE (0.33) of the
 * budget in use on average. Exits 1 when something was lost, overlapped or grew, or when fragmentation reached 10% at
 * any sample of 10,000 operations.
 */
#include "support/pool_load.h"
#include "support/test_device.h"
#include <stdio.h>
#include <stdlib.h>

#define BUDGET ((uint64_t)1 << 30)

int main(int argc, char **argv)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    pool_load load = {10000000, 10000, 8, 256, (size_t)4 << 20, 0.33};
    pool_load_result result;
    if (argc > 1)
        load.operations = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        load.live = strtod(argv[2], NULL);
    options.memory_limit_bytes = BUDGET;
    rnl_device *device = test_open_device_with(&options);
    const char *problem = pool_load_run(device, &load, &result);
    printf("%s: %llu operations in %.1f s, %.2f us each, %llu refused\n", rnl_device_get_info(device)->name,
           (unsigned long long)result.operations, result.seconds, 1e6 * result.seconds / (double)result.operations,
           (unsigned long long)result.failures);
    printf("in use %zu MiB on average; reserved %zu MiB after a tenth, at most %zu MiB\n", result.in_use_mean >> 20,
           result.reserved_first >> 20, result.reserved_most >> 20);
    printf("fragmentation: mean %.2f%%, worst %.2f%%, %llu of %llu samples at 10%% or above\n", 100 * result.mean,
           100 * result.worst, (unsigned long long)result.above, (unsigned long long)result.samples);
    if (problem)
        printf("wrong: %s\n", problem);
    rnl_device_release(device);
    return problem || result.above > 0;
}
