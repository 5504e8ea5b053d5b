/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/launch.h"

#include "base/memory.h"
#include "device/trace.h"

/* NVIDIA's driver (580.159) says 256 also of a kernel whose one size is larger, and takes that size. */
rnl_status rnl_kernel_max_group(rnl_device *device, cl_kernel kernel, size_t *out_work_items)
{
    size_t most = 0, fixed;
    *out_work_items = 0;
    TRY(CL(clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL)));
    TRY(rnl_kernel_fixed_group(device, kernel, &fixed));
    *out_work_items = fixed > most ? fixed : most;
    return RNL_OK;
}

rnl_status rnl_kernel_fixed_group(rnl_device *device, cl_kernel kernel, size_t *out_work_items)
{
    size_t size[3] = {0, 0, 0};
    *out_work_items = 0;
    TRY(CL(clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof size, size, NULL)));
    *out_work_items = size[0] * size[1] * size[2];
    return RNL_OK;
}

/* What every driver must be given, and not every driver checks. */
static rnl_status check_range(const rnl_range *range, size_t *out_group)
{
    size_t group = 1, total = 1;
    if (range->dimensions < 1 || range->dimensions > 3)
        return FAIL(RNL_INVALID_ARGUMENT, "a launch has 1 to 3 dimensions, not %u", (unsigned)range->dimensions);
    for (uint32_t i = 0; i < range->dimensions; i++) {
        size_t global = range->global[i], local = range->local[i];
        if (global == 0 || local == 0)
            return FAIL(RNL_INVALID_ARGUMENT, "a launch of %zu work-items in groups of %zu in dimension %u", global,
                        local, (unsigned)i);
        if (global % local != 0)
            return FAIL(RNL_INVALID_ARGUMENT, "%zu work-items do not divide into groups of %zu in dimension %u", global,
                        local, (unsigned)i);
        if (!rnl_size_mul(group, local, &group) || !rnl_size_mul(total, global, &total))
            return FAIL(RNL_INVALID_ARGUMENT, "a launch of %zu work-items in dimension %u is too large", global,
                        (unsigned)i);
    }
    *out_group = group;
    return RNL_OK;
}

rnl_status rnl_kernel_static_local(rnl_device *device, cl_kernel kernel, size_t *out_bytes)
{
    cl_ulong used = 0;
    *out_bytes = 0;
    /* NVIDIA answers for itself, and allows more __local declared in a kernel than it reports. */
    if (device->info.vendor_id == RNL_VENDOR_NVIDIA)
        return RNL_OK;
    TRY(CL(clGetKernelWorkGroupInfo(kernel, device->id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof used, &used, NULL)));
    *out_bytes = used;
    return RNL_OK;
}

rnl_status rnl_kernel_check(rnl_device *device, cl_kernel kernel, const rnl_range *range, size_t static_local_bytes,
                            size_t dynamic_local_bytes)
{
    size_t group = 0, most, total;
    TRY(check_range(range, &group));
    TRY(rnl_kernel_max_group(device, kernel, &most));
    if (most == 0 || most > device->info.max_work_group_size)
        most = device->info.max_work_group_size;
    if (group > most)
        return FAIL(RNL_INVALID_ARGUMENT, "a work-group of %zu work-items was asked for, and %s allows %zu", group,
                    device->info.name, most);
    if (!rnl_size_add(static_local_bytes, dynamic_local_bytes, &total) || total > device->info.local_memory_bytes)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a kernel needs %zu and %zu bytes of local memory, and %s has %llu",
                    static_local_bytes, dynamic_local_bytes, device->info.name,
                    (unsigned long long)device->info.local_memory_bytes);
    return RNL_OK;
}

rnl_status rnl_kernel_enqueue(rnl_stream *stream, cl_kernel kernel, const rnl_range *range, size_t first)
{
    const size_t offset[3] = {first, 0, 0};
    TRY(rnl_stream_check(stream));
    rnl_stream_enter(stream);
    rnl_status status =
        CL(clEnqueueNDRangeKernel(stream->queue, kernel, range->dimensions, first ? offset : NULL, range->global,
                                  range->local, 0, NULL, rnl_stream_begin_launch(stream)));
    rnl_stream_end(stream, status);
    if (status == RNL_OK)
        atomic_fetch_add_explicit(&stream->device->kernels_launched, 1, memory_order_relaxed);
    return rnl_stream_fail(stream, status);
}
