/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process keeps the parts that it took: contexts of pocl before 4.0 do not retain them, and its threads still look
 * at the device of a command that clFinish has seen end.
 */
#include "device/part.h"

#include <pthread.h>

#define MOST_KEPT 64

static struct {
    pthread_mutex_t lock;
    size_t count;
    struct {
        cl_device_id parent, part;
        uint32_t compute_units;
    } items[MOST_KEPT];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static rnl_status create(cl_device_id parent, uint32_t compute_units, cl_device_id *out_part)
{
    const cl_device_partition_property parts[] = {CL_DEVICE_PARTITION_BY_COUNTS, compute_units,
                                                  CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    TRY(CL(clCreateSubDevices(parent, parts, 1, out_part, NULL)));
    if (kept.count == MOST_KEPT || clRetainDevice(*out_part) != CL_SUCCESS)
        return RNL_OK;
    kept.items[kept.count].parent = parent;
    kept.items[kept.count].part = *out_part;
    kept.items[kept.count++].compute_units = compute_units;
    return RNL_OK;
}

/* Called with the lock held. */
static rnl_status take(cl_device_id parent, uint32_t compute_units, cl_device_id *out_part)
{
    for (size_t i = 0; i < kept.count; i++) {
        if (kept.items[i].parent != parent || kept.items[i].compute_units != compute_units)
            continue;
        *out_part = kept.items[i].part;
        return CL(clRetainDevice(*out_part));
    }
    return create(parent, compute_units, out_part);
}

rnl_status rnl_part_take(cl_device_id parent, uint32_t compute_units, cl_device_id *out_part)
{
    *out_part = NULL;
    pthread_mutex_lock(&kept.lock);
    rnl_status status = take(parent, compute_units, out_part);
    pthread_mutex_unlock(&kept.lock);
    return status;
}
