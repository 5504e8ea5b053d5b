/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/command_buffer.h"

#include "base/memory.h"
#include <string.h>

/* From the extensions' text. */
#define DEVICE_EXTENSIONS_WITH_VERSION 0x1060
#define DEVICE_COMMAND_BUFFER_CAPABILITIES 0x12A9
#define DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES 0x12AA
#define DEVICE_MUTABLE_DISPATCH_CAPABILITIES 0x12B0
#define CAPABILITY_SIMULTANEOUS_USE (1u << 2)
#define COMMAND_BUFFER_FLAGS 0x1293
#define FLAG_SIMULTANEOUS_USE (1u << 0)
#define FLAG_MUTABLE (1u << 1)
#define MUTABLE_DISPATCH_UPDATABLE_FIELDS 0x12B1
#define FIELD_ARGUMENTS (1u << 3)
#define TYPE_MUTABLE_DISPATCH_CONFIG 0
/* The first version whose update function takes arrays of configurations. */
#define MUTABLE_DISPATCH_VERSION ((0u << 22) | (9u << 12) | 3u)

typedef struct name_version {
    cl_uint version;
    char name[64];
} name_version;

typedef struct update_arg {
    cl_uint index;
    size_t size;
    const void *value;
} update_arg;

typedef struct update_config {
    rnl_cl_command *command;
    cl_uint arg_count, svm_arg_count, exec_info_count, dimensions;
    const update_arg *args;
    const void *svm_args, *exec_infos;
    const size_t *offset, *global, *local;
} update_config;

/* ---- What the device has ---- */

/* False when it has none of that name. */
static bool find_version(const rnl_device *device, const char *extension, cl_uint *out_version)
{
    size_t bytes = 0;
    name_version *list;
    *out_version = 0;
    if (RNL_CL_RUN(clGetDeviceInfo(device->id, DEVICE_EXTENSIONS_WITH_VERSION, 0, NULL, &bytes)) != CL_SUCCESS ||
        bytes < sizeof *list || rnl_alloc(bytes, 1, &list) != RNL_OK)
        return false;
    bool found = false;
    if (RNL_CL_RUN(clGetDeviceInfo(device->id, DEVICE_EXTENSIONS_WITH_VERSION, bytes, list, NULL)) == CL_SUCCESS)
        for (size_t i = 0; i < bytes / sizeof *list && !found; i++) {
            found = strncmp(list[i].name, extension, sizeof list[i].name) == 0;
            *out_version = list[i].version;
        }
    rnl_free(list);
    return found;
}

static cl_ulong ask_bits(const rnl_device *device, cl_device_info what)
{
    cl_ulong bits = 0;
    if (RNL_CL_RUN(clGetDeviceInfo(device->id, what, sizeof bits, &bits, NULL)) != CL_SUCCESS)
        return 0;
    return bits;
}

/* A pointer to a function, put where it belongs: ISO C has no cast from one to the other. */
static bool load(const rnl_device *device, const char *name, void *out_function)
{
    void *address = clGetExtensionFunctionAddressForPlatform(device->platform, name);
    memcpy(out_function, &address, sizeof address);
    return address != NULL;
}

void rnl_command_buffers_find(const rnl_device *device, rnl_command_buffers *out_functions)
{
    cl_uint version;
    rnl_command_buffers found = {0};
    *out_functions = found;
    if (!find_version(device, "cl_khr_command_buffer", &version) ||
        !(ask_bits(device, DEVICE_COMMAND_BUFFER_CAPABILITIES) & CAPABILITY_SIMULTANEOUS_USE) ||
        ask_bits(device, DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES) != 0)
        return;
    found.has_all = load(device, "clCreateCommandBufferKHR", &found.create) &&
                    load(device, "clFinalizeCommandBufferKHR", &found.finalize) &&
                    load(device, "clRetainCommandBufferKHR", &found.retain) &&
                    load(device, "clReleaseCommandBufferKHR", &found.release) &&
                    load(device, "clEnqueueCommandBufferKHR", &found.enqueue) &&
                    load(device, "clCommandNDRangeKernelKHR", &found.launch);
    found.can_mutate = found.has_all && find_version(device, "cl_khr_command_buffer_mutable_dispatch", &version) &&
                       version >= MUTABLE_DISPATCH_VERSION &&
                       (ask_bits(device, DEVICE_MUTABLE_DISPATCH_CAPABILITIES) & FIELD_ARGUMENTS) &&
                       load(device, "clUpdateMutableCommandsKHR", &found.update);
    *out_functions = found;
}

/* ---- Recording ---- */

rnl_status rnl_command_buffer_create(const rnl_command_buffers *functions, cl_command_queue queue,
                                     rnl_cl_buffer **out_buffer)
{
    const cl_ulong flags = FLAG_SIMULTANEOUS_USE | (functions->can_mutate ? FLAG_MUTABLE : 0);
    const cl_ulong properties[] = {COMMAND_BUFFER_FLAGS, flags, 0};
    cl_int code;
    rnl_cl_buffer *buffer = CL_NEW(&code, functions->create(1, &queue, properties, &code));
    *out_buffer = code == CL_SUCCESS ? buffer : NULL;
    return rnl_cl_status(code, "clCreateCommandBufferKHR");
}

rnl_status rnl_command_buffer_record(const rnl_command_buffers *functions, rnl_cl_buffer *buffer, cl_kernel kernel,
                                     const size_t *global, const size_t *local, uint32_t dimensions,
                                     cl_uint *sync_point, bool has_previous, rnl_cl_command **out_command)
{
    const cl_ulong properties[] = {MUTABLE_DISPATCH_UPDATABLE_FIELDS, FIELD_ARGUMENTS, 0};
    const cl_uint previous = *sync_point;
    *out_command = NULL;
    cl_int code = RNL_CL_RUN(functions->launch(
        buffer, NULL, functions->can_mutate ? properties : NULL, kernel, dimensions, NULL, global, local,
        has_previous ? 1 : 0, has_previous ? &previous : NULL, sync_point, functions->can_mutate ? out_command : NULL));
    return rnl_cl_status(code, "clCommandNDRangeKernelKHR");
}

rnl_status rnl_command_buffer_update(const rnl_command_buffers *functions, rnl_cl_buffer *buffer,
                                     rnl_cl_command *command, uint32_t arg_index, size_t size_bytes, const void *value)
{
    const update_arg arg = {.index = arg_index, .size = size_bytes, .value = value};
    const update_config config = {.command = command, .arg_count = 1, .args = &arg};
    const cl_uint type = TYPE_MUTABLE_DISPATCH_CONFIG;
    const void *configs[] = {&config};
    return rnl_cl_status(RNL_CL_RUN(functions->update(buffer, 1, &type, configs)), "clUpdateMutableCommandsKHR");
}
