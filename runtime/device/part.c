/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of pocl before 4.0 do not retain the parts of devices, and its threads look at the device of a command even
 * after clFinish has returned. So the process keeps the parts that contexts do not, and hands them out again.
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

static cl_device_id find(cl_device_id parent, uint32_t compute_units)
{
    cl_device_id found = NULL;
    pthread_mutex_lock(&kept.lock);
    for (size_t i = 0; i < kept.count && !found; i++)
        if (kept.items[i].parent == parent && kept.items[i].compute_units == compute_units)
            found = kept.items[i].part;
    pthread_mutex_unlock(&kept.lock);
    return found;
}

rnl_status rnl_part_take(cl_device_id parent, uint32_t compute_units, cl_device_id *out_part)
{
    const cl_device_partition_property parts[] = {CL_DEVICE_PARTITION_BY_COUNTS, compute_units,
                                                  CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    *out_part = find(parent, compute_units);
    if (!*out_part)
        return CL(clCreateSubDevices(parent, parts, 1, out_part, NULL));
    const rnl_status status = CL(clRetainDevice(*out_part));
    if (status != RNL_OK)
        *out_part = NULL;
    return status;
}

rnl_status rnl_part_keep(cl_device_id parent, uint32_t compute_units, cl_device_id part)
{
    cl_uint references = 0;
    TRY(CL(clGetDeviceInfo(part, CL_DEVICE_REFERENCE_COUNT, sizeof references, &references, NULL)));
    if (references > 1) /* the context's, or the process's */
        return RNL_OK;
    pthread_mutex_lock(&kept.lock);
    if (kept.count < MOST_KEPT && clRetainDevice(part) == CL_SUCCESS) {
        kept.items[kept.count].parent = parent;
        kept.items[kept.count].part = part;
        kept.items[kept.count++].compute_units = compute_units;
    }
    pthread_mutex_unlock(&kept.lock);
    return RNL_OK;
}
