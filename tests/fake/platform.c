/* SPDX-License-Identifier: Apache-2.0 */
/* Two platforms and three devices with mixed limits; the first one can be dressed up as a vendor's. */
#include "fake/fake.h"
#include <CL/cl_ext.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((cl_ulong)1 << 20)
#define GROUP_OF_ONE_UNIT 1

static struct _cl_platform_id platforms[2] = {
    {.object = {.dispatch = &fake_dispatch, .kind = FAKE_PLATFORM, .references = 1}, .name = "Fake One"},
    {.object = {.dispatch = &fake_dispatch, .kind = FAKE_PLATFORM, .references = 1}, .name = "Fake Two"},
};

#define DEVICE(platform_at)                                                                                            \
    .object = {.dispatch = &fake_dispatch, .kind = FAKE_DEVICE, .references = 1}, .platform = &platforms[platform_at]

struct _cl_device_id fake_devices[FAKE_DEVICES] = {
    {DEVICE(0), .index = 0, .name = "Fake GPU", .vendor = "Fakes of America", .extensions = "cl_khr_fp16",
     .type = CL_DEVICE_TYPE_GPU, .vendor_id = 0xfa4e, .units = 8, .align_bits = 2048, .group = 1024,
     .memory = 256 * MIB, .largest = 64 * MIB, .local = 48 << 10},
    {DEVICE(0), .index = 1, .name = "Fake CPU", .vendor = "Fakes of America", .extensions = "",
     .type = CL_DEVICE_TYPE_CPU, .vendor_id = 0xfa4e, .units = 4, .align_bits = 512, .group = 4096,
     .memory = 1024 * MIB, .largest = 512 * MIB, .local = 256 << 10, .unified = CL_TRUE},
    {DEVICE(1), .index = 2, .name = "Fake Accelerator", .vendor = "Fakes of Europe", .extensions = "",
     .type = CL_DEVICE_TYPE_ACCELERATOR, .vendor_id = 0xfa4f, .units = 2, .align_bits = 1024, .group = 64,
     .memory = 128 * MIB, .largest = 32 * MIB, .local = 16 << 10, .unified = CL_TRUE},
};

/* What the first device is when FAKE_OPENCL_VENDOR names one. */
static const struct {
    const char *key, *name, *vendor, *extensions;
    cl_uint vendor_id, units, local;
} vendors[] = {
    {"amd", "gfx90a", "Advanced Micro Devices, Inc.", "cl_khr_fp16 cl_khr_fp64 cl_amd_device_attribute_query", 0x1002,
     104, 64 << 10},
    {"intel", "Intel(R) Data Center GPU Max 1100", "Intel(R) Corporation",
     "cl_khr_fp16 cl_khr_fp64 cl_khr_subgroups cl_intel_subgroups cl_intel_subgroups_short "
     "cl_intel_required_subgroup_size",
     0x8086, 448, 64 << 10},
    {"nvidia", "NVIDIA H200", "NVIDIA Corporation", "cl_khr_fp64 cl_nv_device_attribute_query", 0x10de, 132, 48 << 10},
};

cl_device_id fake_whole(cl_device_id device)
{
    return device->parent ? fake_whole(device->parent) : device;
}

void fake_destroy_device(void *object)
{
    cl_device_id device = object;
    fake_drop(device->parent);
}

static void set_type(const char *type)
{
    if (strcmp(type, "cpu") == 0)
        fake_devices[0].type = CL_DEVICE_TYPE_CPU;
    else if (strcmp(type, "accelerator") == 0)
        fake_devices[0].type = CL_DEVICE_TYPE_ACCELERATOR;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *vendor = getenv("FAKE_OPENCL_VENDOR"), *name = getenv("FAKE_OPENCL_NAME");
    const char *type = getenv("FAKE_OPENCL_TYPE"), *memory = getenv("FAKE_OPENCL_MEMORY");
    const char *extensions = getenv("FAKE_OPENCL_EXTENSIONS");
    cl_device_id first = &fake_devices[0];
    for (size_t i = 0; vendor && i < sizeof vendors / sizeof *vendors; i++)
        if (strcmp(vendor, vendors[i].key) == 0) {
            first->name = vendors[i].name;
            first->vendor = vendors[i].vendor;
            first->extensions = vendors[i].extensions;
            first->vendor_id = vendors[i].vendor_id;
            first->units = vendors[i].units;
            first->local = vendors[i].local;
            first->memory = 65536 * MIB;
            first->largest = 16384 * MIB;
        }
    if (name)
        first->name = name;
    if (extensions)
        first->extensions = extensions;
    if (type)
        set_type(type);
    if (memory && strtoull(memory, NULL, 0) >= 4) {
        first->memory = strtoull(memory, NULL, 0);
        first->largest = first->memory / 4;
    }
}

/* ---- Platforms ---- */

/* For the loader, which keeps what it hears: it cannot be made to fail. */
static CL_API_ENTRY cl_int CL_API_CALL give_platforms(cl_uint count, cl_platform_id *out, cl_uint *out_count)
{
    for (cl_uint i = 0; i < 2 && i < count && out; i++)
        out[i] = &platforms[i];
    if (out_count)
        *out_count = 2;
    return CL_SUCCESS;
}

cl_int clGetPlatformIDs(cl_uint count, cl_platform_id *out, cl_uint *out_count)
{
    return give_platforms(count, out, out_count);
}

extern const fake_control fake_control_table;

/* A data pointer where the interface has one to a function. */
__attribute__((visibility("default"))) void *clGetExtensionFunctionAddress(const char *name)
{
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0)
        return (void *)(uintptr_t)give_platforms;
    if (strcmp(name, "clGetPlatformInfo") == 0)
        return (void *)(uintptr_t)clGetPlatformInfo;
    if (strcmp(name, "fakeControl") == 0)
        return (void *)(uintptr_t)&fake_control_table;
    return NULL;
}

void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
    (void)platform;
    return clGetExtensionFunctionAddress(name);
}

static cl_int answer_text(const char *text, size_t size, void *out, size_t *out_bytes)
{
    return fake_answer(text, strlen(text) + 1, size, out, out_bytes);
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t size, void *out, size_t *out_bytes)
{
    const char *text = NULL;
    ENTER("clGetPlatformInfo");
    ATTEMPT(fake_check(platform, FAKE_PLATFORM));
    if (what == CL_PLATFORM_NAME)
        text = platform->name;
    else if (what == CL_PLATFORM_PROFILE)
        text = "FULL_PROFILE";
    else if (what == CL_PLATFORM_VERSION)
        text = "OpenCL 1.2 fake";
    else if (what == CL_PLATFORM_VENDOR)
        text = "runnel's tests";
    else if (what == CL_PLATFORM_EXTENSIONS)
        text = "cl_khr_icd";
    else if (what == CL_PLATFORM_ICD_SUFFIX_KHR)
        text = "FAKE";
    return fake_leave(text ? answer_text(text, size, out, out_bytes) : CL_INVALID_VALUE);
}

/* ---- Devices ---- */

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint capacity, cl_device_id *out,
                      cl_uint *out_count)
{
    const char *empty = getenv("FAKE_OPENCL_EMPTY"); /* the index of a platform without devices */
    cl_uint count = 0;
    ENTER("clGetDeviceIDs");
    ATTEMPT(fake_check(platform, FAKE_PLATFORM));
    REQUIRE(out || capacity == 0, CL_INVALID_VALUE);
    for (size_t i = 0; i < FAKE_DEVICES; i++) {
        cl_device_id device = &fake_devices[i];
        bool hidden = empty && platform == &platforms[atoi(empty) == 1];
        if (device->platform != platform || !(device->type & type) || hidden)
            continue;
        if (count < capacity)
            out[count] = device;
        count++;
    }
    if (out_count)
        *out_count = count;
    return fake_leave(count > 0 ? CL_SUCCESS : CL_DEVICE_NOT_FOUND);
}

static cl_int get_texts(cl_device_id device, cl_device_info what, size_t size, void *out, size_t *out_bytes)
{
    switch (what) {
    case CL_DEVICE_NAME:
        return answer_text(device->name, size, out, out_bytes);
    case CL_DEVICE_VENDOR:
        return answer_text(device->vendor, size, out, out_bytes);
    case CL_DEVICE_VERSION:
        return answer_text("OpenCL 1.2 fake", size, out, out_bytes);
    case CL_DRIVER_VERSION:
        return answer_text("1.0", size, out, out_bytes);
    case CL_DEVICE_OPENCL_C_VERSION:
        return answer_text("OpenCL C 1.2 fake", size, out, out_bytes);
    case CL_DEVICE_PROFILE:
        return answer_text("FULL_PROFILE", size, out, out_bytes);
    case CL_DEVICE_EXTENSIONS:
        return answer_text(device->extensions, size, out, out_bytes);
    default:
        return CL_INVALID_VALUE;
    }
}

/* Where the vendors' extensions put a device on the bus: 01:00.0. */
static cl_int get_place(cl_device_id device, cl_device_info what, size_t size, void *out, size_t *out_bytes)
{
    if (strstr(device->extensions, "cl_nv_device") && what >= 0x4008 && what <= 0x400A)
        return ANSWER(cl_uint, what == 0x4008);
    if (strstr(device->extensions, "cl_nv_device") && (what == 0x4000 || what == 0x4001))
        return ANSWER(cl_uint, what == 0x4000 ? 9 : 0);
    if (strstr(device->extensions, "cl_amd_device") && what == 0x4037) {
        const unsigned char topology[24] = {[0] = 1, [21] = 1};
        return fake_answer(topology, sizeof topology, size, out, out_bytes);
    }
    if (strstr(device->extensions, "cl_amd_device") && what == 0x4038)
        return answer_text("Fake board", size, out, out_bytes);
    return get_texts(device, what, size, out, out_bytes);
}

static cl_int get_features(cl_device_id device, cl_device_info what, size_t size, void *out, size_t *out_bytes)
{
    bool divides = device->type == CL_DEVICE_TYPE_CPU && device->units > 1;
    const cl_device_partition_property kinds[] = {CL_DEVICE_PARTITION_BY_COUNTS,
                                                  CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN};
    switch (what) {
    case CL_DEVICE_TYPE:
        return ANSWER(cl_device_type, device->type);
    case CL_DEVICE_PLATFORM:
        return ANSWER(cl_platform_id, device->platform);
    case CL_DEVICE_REFERENCE_COUNT:
        return ANSWER(cl_uint, device->object.references + device->object.holds); /* as pocl counts its contexts */
    case CL_DEVICE_PARENT_DEVICE:
        return ANSWER(cl_device_id, device->parent);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_LINKER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
        return ANSWER(cl_bool, CL_TRUE);
    case CL_DEVICE_IMAGE_SUPPORT:
    case CL_DEVICE_ERROR_CORRECTION_SUPPORT:
        return ANSWER(cl_bool, CL_FALSE);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return ANSWER(cl_bool, device->unified);
    case CL_DEVICE_SINGLE_FP_CONFIG:
        return ANSWER(cl_device_fp_config,
                      CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_FMA | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
    case CL_DEVICE_DOUBLE_FP_CONFIG:
        return ANSWER(cl_device_fp_config, strstr(device->extensions, "cl_khr_fp64") ? CL_FP_FMA | CL_FP_INF_NAN : 0);
    case CL_DEVICE_QUEUE_PROPERTIES:
        return ANSWER(cl_command_queue_properties, CL_QUEUE_PROFILING_ENABLE);
    case CL_DEVICE_PARTITION_PROPERTIES:
        return fake_answer(kinds, divides ? sizeof kinds : 0, size, out, out_bytes);
    case CL_DEVICE_PARTITION_AFFINITY_DOMAIN:
        return ANSWER(cl_device_affinity_domain, divides ? CL_DEVICE_AFFINITY_DOMAIN_NUMA : 0);
    case CL_DEVICE_LOCAL_MEM_TYPE:
        return ANSWER(cl_device_local_mem_type, CL_LOCAL);
    default:
        return get_place(device, what, size, out, out_bytes);
    }
}

static cl_int get_sizes(cl_device_id device, cl_device_info what, size_t size, void *out, size_t *out_bytes)
{
    const size_t items[3] = {device->group, device->group, device->group < 64 ? device->group : 64};
    switch (what) {
    case CL_DEVICE_VENDOR_ID:
        return ANSWER(cl_uint, device->vendor_id);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES:
        return ANSWER(cl_uint, device->units);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        return ANSWER(cl_uint, 1000);
    case CL_DEVICE_ADDRESS_BITS:
        return ANSWER(cl_uint, 64);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
        return ANSWER(cl_uint, device->align_bits);
    case CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS:
        return ANSWER(cl_uint, 3);
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT:
        return ANSWER(cl_uint, device->type == CL_DEVICE_TYPE_CPU ? 8 : 1);
    case CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE:
        return ANSWER(cl_uint, 128);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        return ANSWER(cl_ulong, device->memory);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return ANSWER(cl_ulong, device->largest);
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return ANSWER(cl_ulong, device->local);
    case CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE:
        return ANSWER(cl_ulong, 65536);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
        return ANSWER(cl_ulong, MIB);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return ANSWER(size_t, device->group);
    case CL_DEVICE_MAX_PARAMETER_SIZE:
        return ANSWER(size_t, 1024);
    case CL_DEVICE_PROFILING_TIMER_RESOLUTION:
        return ANSWER(size_t, 1);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return fake_answer(items, sizeof items, size, out, out_bytes);
    default:
        return get_features(device, what, size, out, out_bytes);
    }
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t size, void *out, size_t *out_bytes)
{
    ENTER("clGetDeviceInfo");
    ATTEMPT(fake_check(device, FAKE_DEVICE));
    return fake_leave(get_sizes(device, what, size, out, out_bytes));
}

static cl_device_id create_part(cl_device_id of, cl_uint units)
{
    cl_device_id part = fake_create(FAKE_DEVICE, sizeof *part);
    if (!part)
        return NULL;
    fake_object object = part->object;
    *part = *of;
    part->object = object;
    part->parent = fake_hold(of);
    part->units = units - fake_missing_units();
    if (part->units == 1)
        part->group = GROUP_OF_ONE_UNIT;
    return part;
}

cl_int clCreateSubDevices(cl_device_id device, const cl_device_partition_property *properties, cl_uint capacity,
                          cl_device_id *out, cl_uint *out_count)
{
    const cl_device_partition_property halves[] = {0, device->units / 2, device->units - device->units / 2, 0, 0};
    cl_uint count = 0, units = 0;
    ENTER("clCreateSubDevices");
    ATTEMPT(fake_check(device, FAKE_DEVICE));
    REQUIRE(properties, CL_INVALID_VALUE);
    REQUIRE(device->type == CL_DEVICE_TYPE_CPU && device->units > 1, CL_DEVICE_PARTITION_FAILED);
    if (properties[0] == CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN && properties[1] == CL_DEVICE_AFFINITY_DOMAIN_NUMA)
        properties = halves; /* two nodes */
    else
        REQUIRE(properties[0] == CL_DEVICE_PARTITION_BY_COUNTS, CL_INVALID_VALUE);
    while (properties[1 + count] != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END)
        units += (cl_uint)properties[1 + count++];
    REQUIRE(count > 0 && units <= device->units, CL_INVALID_DEVICE_PARTITION_COUNT);
    REQUIRE(!out || capacity >= count, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < count && out; i++)
        out[i] = create_part(device, (cl_uint)properties[1 + i]);
    if (out_count)
        *out_count = count;
    return fake_leave(CL_SUCCESS);
}

cl_int clRetainDevice(cl_device_id device)
{
    ENTER("clRetainDevice");
    return fake_leave(fake_retain(device, FAKE_DEVICE));
}

cl_int clReleaseDevice(cl_device_id device)
{
    cl_int fault = fake_enter("clReleaseDevice"), code = fake_release(device, FAKE_DEVICE);
    return fake_leave(fault != CL_SUCCESS ? fault : code);
}
