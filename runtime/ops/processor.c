/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/processor.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SWIFT_CACHE (48 * 1024)
#define HALVES_CACHE (64 * 1024)

bool rnl_processor_is_swift(void)
{
    const char *wish = getenv("RUNNEL_PROCESSOR");
    if (wish)
        return strcmp(wish, "swift") == 0;
    return sysconf(_SC_LEVEL1_DCACHE_SIZE) >= SWIFT_CACHE;
}

bool rnl_processor_multiplies_halves(void)
{
    return sysconf(_SC_LEVEL1_ICACHE_SIZE) >= HALVES_CACHE && !rnl_processor_is_swift();
}

static bool is_intels(const rnl_device *device)
{
    return strstr(device->info.vendor, "Intel") != NULL;
}

bool rnl_processor_adds_beside(const rnl_device *device)
{
    return !is_intels(device);
}

bool rnl_processor_prefers_moves(const rnl_device *device)
{
    return is_intels(device);
}
