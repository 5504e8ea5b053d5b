/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test_peer.h"

#include "support/test_device.h"
#include <stdio.h>

/* 2: of another platform, 1: of the same one, 0: the same device. */
static int distance(const rnl_device_info *a, const rnl_device_info *b)
{
    return a->platform_index != b->platform_index ? 2 : a->device_index != b->device_index;
}

rnl_device *test_open_peer(const rnl_device *device)
{
    const rnl_device_info *own = rnl_device_get_info(device);
    rnl_device_info infos[16] = {{0}};
    size_t count = 0, best = 0;
    char spec[32];
    rnl_device *peer;
    test_ok(rnl_device_list(infos, 16, &count));
    for (size_t i = 1; i < count && i < 16; i++)
        if (distance(&infos[i], own) > distance(&infos[best], own))
            best = i;
    snprintf(spec, sizeof spec, "%u:%u", (unsigned)infos[best].platform_index, (unsigned)infos[best].device_index);
    test_ok(rnl_device_open(spec, NULL, &peer));
    return peer;
}
