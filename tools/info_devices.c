/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"
#include "info.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct cache_row {
    const char *name;
    char folder[PATH_MAX];
    rnl_folder_size size;
} cache_row;

static const char *type_name(rnl_device_type type)
{
    static const char *const names[] = {"cpu", "gpu", "accelerator", "other"};
    return type <= RNL_DEVICE_OTHER ? names[type] : "other";
}

/* Ours, and pocl's where there is one. Asked for after the devices: the library may have given pocl a folder. */
static size_t list_caches(cache_row out_rows[2])
{
    size_t count = 0;
    out_rows[count].name = "programs";
    (void)rnl_cache_dir(out_rows[count].folder, sizeof out_rows[count].folder);
    count++;
    out_rows[count].name = "pocl";
    if (rnl_folder_of_pocl(out_rows[count].folder, sizeof out_rows[count].folder))
        count++;
    for (size_t i = 0; i < count; i++)
        if (out_rows[i].folder[0])
            out_rows[i].size = rnl_folder_measure(out_rows[i].folder);
    return count;
}

static json_t *device_json(const rnl_device_info *d)
{
    return json_pack(
        "{sI sI so ss so so so so so so so sI sI sI sI sI sI sI sI sb sb sb sb sb sb sb sI sI}", "platform_index",
        (json_int_t)d->platform_index, "device_index", (json_int_t)d->device_index, "name", rnl_json_text(d->name),
        "type", type_name(d->type), "vendor", rnl_json_text(d->vendor), "platform", rnl_json_text(d->platform),
        "device_version", rnl_json_text(d->device_version), "driver_version", rnl_json_text(d->driver_version),
        "opencl_c_version", rnl_json_text(d->opencl_c_version), "pci_bus_id",
        d->pci_bus_id[0] ? rnl_json_text(d->pci_bus_id) : json_null(), "numa_node",
        d->numa_node >= 0 ? json_integer(d->numa_node) : json_null(), "compute_units", (json_int_t)d->compute_units,
        "clock_mhz", (json_int_t)d->clock_mhz, "global_memory_bytes", (json_int_t)d->global_memory_bytes,
        "max_allocation_bytes", (json_int_t)d->max_allocation_bytes, "local_memory_bytes",
        (json_int_t)d->local_memory_bytes, "max_work_group_size", (json_int_t)d->max_work_group_size,
        "base_align_bytes", (json_int_t)d->base_align_bytes, "vendor_id", (json_int_t)d->vendor_id, "unified_memory",
        d->unified_memory, "fp64", d->has_fp64, "fp16_arithmetic", d->has_fp16_arithmetic, "images", d->has_images,
        "compiler", d->compiler_available, "emulated", d->emulated, "default", d->is_default, "shares",
        (json_int_t)d->most_shares, "numa_shares", (json_int_t)d->numa_shares);
}

static json_t *cache_json(const cache_row *row)
{
    return json_pack("{ss so sb sI sI}", "name", row->name, "folder",
                     row->folder[0] ? rnl_json_text(row->folder) : json_null(), "exists", row->size.exists, "bytes",
                     (json_int_t)row->size.bytes, "files", (json_int_t)row->size.files);
}

/* The platforms that have a device. */
static json_t *platforms_json(const rnl_device_info *infos, size_t count)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++)
        if (i == 0 || infos[i].platform_index != infos[i - 1].platform_index)
            json_array_append_new(rows, json_pack("{sI so}", "index", (json_int_t)infos[i].platform_index, "name",
                                                  rnl_json_text(infos[i].platform)));
    return rows;
}

static rnl_exit print_json(const rnl_device_info *infos, size_t count, const cache_row *caches, size_t cache_count)
{
    json_t *devices = json_array();
    json_t *rows = json_array();
    char default_device[32] = "";
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(devices, device_json(&infos[i]));
        if (infos[i].is_default)
            snprintf(default_device, sizeof default_device, "%u:%u", infos[i].platform_index, infos[i].device_index);
    }
    for (size_t i = 0; i < cache_count; i++)
        json_array_append_new(rows, cache_json(&caches[i]));
    return rnl_json_print(json_pack("{ss ss so so so}", "version", RNL_VERSION, "default_device", default_device,
                                    "platforms", platforms_json(infos, count), "devices", devices, "caches", rows));
}

static void print_bytes(const char *label, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    size_t unit = 0;
    for (; size >= 1024 && unit < 4; unit++)
        size /= 1024;
    printf("%s%.*f %s", label, unit ? 1 : 0, size, units[unit]);
}

static void print_device(const rnl_device_info *d)
{
    printf("  %u:%u %s%s%s\n", d->platform_index, d->device_index, d->name, d->is_default ? " (default)" : "",
           d->emulated ? " (emulated: right, but very slow)" : "");
    printf("      %s, %s, %u compute units at %u MHz\n", type_name(d->type), d->vendor, d->compute_units, d->clock_mhz);
    printf("      %s, %s, driver %s%s\n", d->device_version, d->opencl_c_version, d->driver_version,
           d->compiler_available ? "" : ", no compiler");
    print_bytes("      memory ", d->global_memory_bytes);
    print_bytes(", one allocation ", d->max_allocation_bytes);
    print_bytes(", local ", d->local_memory_bytes);
    printf("%s\n      groups of up to %llu work-items, alignment %u bytes, fp64 %s, fp16 arithmetic %s, images %s\n",
           d->unified_memory ? ", shared with the host" : "", (unsigned long long)d->max_work_group_size,
           d->base_align_bytes, d->has_fp64 ? "yes" : "no", d->has_fp16_arithmetic ? "yes" : "no",
           d->has_images ? "yes" : "no");
    if (d->most_shares > 1)
        printf("      shares: %u:%u/N, N up to %u\n", d->platform_index, d->device_index, d->most_shares);
    else
        printf("      shares: of its memory alone (--memory)\n");
    if (d->numa_shares > 0)
        printf("      by NUMA node: %u:%u/numa0 to numa%u\n", d->platform_index, d->device_index, d->numa_shares - 1);
    if (d->pci_bus_id[0] || d->numa_node >= 0) {
        printf("      PCI %s", d->pci_bus_id[0] ? d->pci_bus_id : "unknown");
        if (d->numa_node >= 0)
            printf(", NUMA node %d", d->numa_node);
        putchar('\n');
    }
}

static void print_text(const rnl_device_info *infos, size_t count, const cache_row *caches, size_t cache_count)
{
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || infos[i].platform_index != infos[i - 1].platform_index)
            printf("platform %u: %s\n", infos[i].platform_index, infos[i].platform);
        print_device(&infos[i]);
    }
    for (size_t i = 0; i < cache_count; i++) {
        if (!caches[i].folder[0]) {
            printf("cache %s: off\n", caches[i].name);
            continue;
        }
        printf("cache %s: %s, %llu files", caches[i].name, caches[i].folder, (unsigned long long)caches[i].size.files);
        print_bytes(", ", caches[i].size.bytes);
        putchar('\n');
    }
}

rnl_exit rnl_info_devices(bool json)
{
    size_t count = 0;
    size_t listed = 0;
    cache_row caches[2] = {{0}};
    if (rnl_device_list(NULL, 0, &count) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    rnl_device_info *infos = calloc(count, sizeof *infos);
    if (!infos)
        return rnl_cli_fail("out of memory");
    rnl_exit code = RNL_EXIT_DONE;
    if (rnl_device_list(infos, count, &listed) != RNL_OK) {
        code = rnl_cli_fail_library("%s", "");
    } else {
        size_t cache_count = list_caches(caches);
        count = listed < count ? listed : count;
        if (json)
            code = print_json(infos, count, caches, cache_count);
        else
            print_text(infos, count, caches, cache_count);
    }
    free(infos);
    return code;
}
