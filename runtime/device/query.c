/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver says about a device. */
#include "base/memory.h"
#include "device/device.h"
#include "device/enumerate.h"
#include <CL/cl_ext.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* cl_amd_device_attribute_query; not in every cl_ext.h. */
#define DEVICE_TOPOLOGY_AMD 0x4037
#define DEVICE_COMPUTE_CAPABILITY_MAJOR_NV 0x4000
#define DEVICE_COMPUTE_CAPABILITY_MINOR_NV 0x4001
#define DEVICE_PCI_BUS_ID_NV 0x4008
#define DEVICE_PCI_SLOT_ID_NV 0x4009
#define DEVICE_PCI_DOMAIN_ID_NV 0x400A

/* The whole text, without spaces around it; freed with rnl_free(). */
static rnl_status query_text(cl_device_id id, cl_device_info what, char **out_text)
{
    size_t bytes = 0;
    char *text;
    *out_text = NULL;
    TRY(CL(clGetDeviceInfo(id, what, 0, NULL, &bytes)));
    TRY(rnl_alloc(bytes + 1, 1, &text));
    rnl_status status = CL(clGetDeviceInfo(id, what, bytes, text, NULL));
    if (status != RNL_OK) {
        rnl_free(text);
        return status;
    }
    size_t start = strspn(text, " "), length = strlen(text + start);
    memmove(text, text + start, length + 1);
    while (length > 0 && text[length - 1] == ' ')
        text[--length] = '\0';
    *out_text = text;
    return RNL_OK;
}

/* Some drivers put what a terminal should not see into their names. */
static void copy_printable(char *out, size_t capacity, const char *text)
{
    size_t length = 0;
    for (; *text && length + 1 < capacity; text++)
        out[length++] = isprint((unsigned char)*text) ? *text : ' ';
    out[length] = '\0';
}

static rnl_status query_name(cl_device_id id, cl_device_info what, char *out, size_t capacity)
{
    char *text;
    TRY(query_text(id, what, &text));
    copy_printable(out, capacity, text);
    rnl_free(text);
    return RNL_OK;
}

static rnl_status query_names(rnl_candidate *item)
{
    rnl_device_info *info = &item->info;
    char platform[sizeof info->platform] = "";
    size_t bytes = 0;
    TRY(CL(clGetPlatformInfo(item->platform, CL_PLATFORM_NAME, 0, NULL, &bytes)));
    char *text;
    TRY(rnl_alloc(bytes + 1, 1, &text));
    rnl_status status = CL(clGetPlatformInfo(item->platform, CL_PLATFORM_NAME, bytes, text, NULL));
    copy_printable(platform, sizeof platform, text);
    rnl_free(text);
    TRY(status);
    memcpy(info->platform, platform, sizeof platform);
    item->is_pocl = strcmp(platform, "Portable Computing Language") == 0;
    TRY(query_name(item->id, CL_DEVICE_NAME, info->name, sizeof info->name));
    item->runs_in_caller =
        strcmp(platform, "Oclgrind") == 0 || (item->is_pocl && strncmp(info->name, "basic", strlen("basic")) == 0);
    TRY(query_name(item->id, CL_DEVICE_VENDOR, info->vendor, sizeof info->vendor));
    TRY(query_name(item->id, CL_DEVICE_VERSION, info->device_version, sizeof info->device_version));
    TRY(query_name(item->id, CL_DRIVER_VERSION, info->driver_version, sizeof info->driver_version));
    return query_name(item->id, CL_DEVICE_OPENCL_C_VERSION, info->opencl_c_version, sizeof info->opencl_c_version);
}

#define QUERY(what, variable) TRY(CL(clGetDeviceInfo(item->id, what, sizeof(variable), &(variable), NULL)))

static rnl_status query_sizes(rnl_candidate *item)
{
    rnl_device_info *info = &item->info;
    cl_uint align_bits = 0;
    cl_device_fp_config floats = 0;
    size_t group = 0;
    QUERY(CL_DEVICE_VENDOR_ID, info->vendor_id);
    QUERY(CL_DEVICE_MAX_COMPUTE_UNITS, info->compute_units);
    info->whole_units = info->compute_units;
    QUERY(CL_DEVICE_MAX_CLOCK_FREQUENCY, info->clock_mhz);
    QUERY(CL_DEVICE_GLOBAL_MEM_SIZE, info->global_memory_bytes);
    QUERY(CL_DEVICE_MAX_MEM_ALLOC_SIZE, info->max_allocation_bytes);
    QUERY(CL_DEVICE_LOCAL_MEM_SIZE, info->local_memory_bytes);
    QUERY(CL_DEVICE_MAX_WORK_GROUP_SIZE, group);
    QUERY(CL_DEVICE_MEM_BASE_ADDR_ALIGN, align_bits);
    QUERY(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, item->native_vector_width);
    QUERY(CL_DEVICE_SINGLE_FP_CONFIG, floats);
    item->rounds_divisions = (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    info->max_work_group_size = group;
    /* At least 64: kernels use float16. A power of two, whatever the driver says. */
    info->base_align_bytes = 64;
    while (info->base_align_bytes < align_bits / 8 && info->base_align_bytes < (1u << 20))
        info->base_align_bytes *= 2;
    return RNL_OK;
}

static rnl_device_type device_type(cl_device_type type)
{
    if (type & CL_DEVICE_TYPE_GPU)
        return RNL_DEVICE_GPU;
    if (type & CL_DEVICE_TYPE_ACCELERATOR)
        return RNL_DEVICE_ACCELERATOR;
    return type & CL_DEVICE_TYPE_CPU ? RNL_DEVICE_CPU : RNL_DEVICE_OTHER;
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(words, word); at; at = strstr(at + length, word))
        if ((at == words || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
            return true;
    return false;
}

static rnl_status query_pci(rnl_candidate *item, const char *extensions)
{
    cl_uint domain = 0, bus = 0, slot = 0, function = 0;
    if (has_word(extensions, "cl_khr_pci_bus_info")) {
        cl_device_pci_bus_info_khr pci = {0};
        QUERY(CL_DEVICE_PCI_BUS_INFO_KHR, pci);
        domain = pci.pci_domain, bus = pci.pci_bus, slot = pci.pci_device, function = pci.pci_function;
    } else if (has_word(extensions, "cl_nv_device_attribute_query")) {
        cl_uint place = 0;
        QUERY(DEVICE_PCI_BUS_ID_NV, bus);
        QUERY(DEVICE_PCI_SLOT_ID_NV, place);
        slot = place >> 3, function = place & 7;
        if (CL(clGetDeviceInfo(item->id, DEVICE_PCI_DOMAIN_ID_NV, sizeof domain, &domain, NULL)) != RNL_OK)
            domain = 0; /* older drivers do not tell it */
    } else if (has_word(extensions, "cl_amd_device_attribute_query")) {
        unsigned char topology[24] = {0}; /* a type, 17 unused bytes, then bus, device and function */
        QUERY(DEVICE_TOPOLOGY_AMD, topology);
        bus = topology[21], slot = topology[22], function = topology[23];
    } else {
        return RNL_OK;
    }
    snprintf(item->info.pci_bus_id, sizeof item->info.pci_bus_id, "%04x:%02x:%02x.%x", domain & 0xfffff, bus & 0xff,
             slot & 0xff, function & 7);
    return RNL_OK;
}

static rnl_status query_features(rnl_candidate *item)
{
    rnl_device_info *info = &item->info;
    cl_device_type type = 0;
    cl_device_fp_config fp64 = 0;
    cl_bool images = 0, compiler = 0, unified = 0;
    QUERY(CL_DEVICE_TYPE, type);
    QUERY(CL_DEVICE_DOUBLE_FP_CONFIG, fp64);
    QUERY(CL_DEVICE_IMAGE_SUPPORT, images);
    QUERY(CL_DEVICE_COMPILER_AVAILABLE, compiler);
    QUERY(CL_DEVICE_HOST_UNIFIED_MEMORY, unified);
    info->type = device_type(type);
    info->has_fp64 = fp64 != 0;
    info->has_images = images;
    info->compiler_available = compiler;
    info->unified_memory = unified;
    info->emulated = strstr(info->name, "llvmpipe") || strstr(info->name, "softpipe");
    char *extensions;
    TRY(query_text(item->id, CL_DEVICE_EXTENSIONS, &extensions));
    item->tells_place =
        has_word(extensions, "cl_nv_device_attribute_query") || has_word(extensions, "cl_amd_device_attribute_query");
    info->has_fp16_arithmetic = has_word(extensions, "cl_khr_fp16");
    rnl_status status = query_pci(item, extensions);
    rnl_free(extensions);
    return status;
}

rnl_status rnl_candidate_query(rnl_candidate *item)
{
    item->info.numa_node = -1;
    TRY(query_names(item));
    TRY(query_sizes(item));
    return query_features(item);
}

bool rnl_device_has_extension(const rnl_device *device, const char *name)
{
    char *extensions;
    if (query_text(device->id, CL_DEVICE_EXTENSIONS, &extensions) != RNL_OK)
        return false;
    const bool has = has_word(extensions, name);
    rnl_free(extensions);
    return has;
}

int rnl_device_compute_capability(const rnl_device *device)
{
    cl_uint major = 0, minor = 0;
    if (device->info.vendor_id != RNL_VENDOR_NVIDIA ||
        CL(clGetDeviceInfo(device->id, DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, sizeof major, &major, NULL)) != RNL_OK ||
        CL(clGetDeviceInfo(device->id, DEVICE_COMPUTE_CAPABILITY_MINOR_NV, sizeof minor, &minor, NULL)) != RNL_OK)
        return 0;
    return (int)(10 * major + minor);
}
