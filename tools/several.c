/* SPDX-License-Identifier: Apache-2.0 */
#include "several.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>

const char *rnl_several_list(const rnl_run_options *options)
{
    const char *list = options->device ? options->device : getenv("RUNNEL_DEVICE");
    return list && !options->pipeline && (strchr(list, ',') || strcmp(list, "all") == 0) ? list : NULL;
}

rnl_exit rnl_several_check(const rnl_run_options *options)
{
    const char *one = options->layers ? "--layers" : options->tune ? "--tune" : options->report ? "--report" : NULL;
    if (!one)
        return RNL_EXIT_DONE;
    return rnl_cli_usage(rnl_cli_command(), "%s looks at one device; --device names several", one);
}

void rnl_several_name(const rnl_device *device, char *out_text, size_t capacity)
{
    const rnl_device_info *info = rnl_device_get_info(device);
    char name[RNL_CLI_NAME_BYTES], place[64];
    snprintf(out_text, capacity, "%s (%s)", rnl_cli_clean(info->name, name, sizeof name),
             rnl_cli_device_name(info, place, sizeof place));
}

/* A CPU device again, with so many of its threads. */
static rnl_exit limit_threads(rnl_device **device, const rnl_run_options *options)
{
    const rnl_device_info *info = rnl_device_get_info(*device);
    char spec[32];
    if (options->threads == 0 || info->type != RNL_DEVICE_CPU || info->compute_units < info->whole_units)
        return RNL_EXIT_DONE;
    snprintf(spec, sizeof spec, "%u:%u", info->platform_index, info->device_index);
    rnl_device_release(*device);
    *device = NULL;
    const rnl_device_wish wish = {spec, options->threads, options->memory, true};
    return rnl_cli_device_open(&wish, device) == RNL_OK ? RNL_EXIT_DONE : rnl_cli_fail_library("%s", "");
}

rnl_exit rnl_several_open_devices(const char *list, const rnl_run_options *options, rnl_several *out_several, FILE *out)
{
    rnl_device_options of_each = RNL_DEVICE_OPTIONS_INIT;
    char name[RNL_CLI_NAME_BYTES + 96];
    of_each.memory_fraction = options->memory;
    if (rnl_multi_open_devices(list, &of_each, out_several->devices, RNL_MULTI_MAX_DEVICES, &out_several->count) !=
        RNL_OK)
        return rnl_cli_fail_library("%s", "");
    for (size_t i = 0; i < out_several->count; i++) {
        const rnl_exit code = limit_threads(&out_several->devices[i], options);
        if (code != RNL_EXIT_DONE)
            return code;
        rnl_several_name(out_several->devices[i], name, sizeof name);
        fprintf(out, "device: %s\n", name);
    }
    return RNL_EXIT_DONE;
}

void rnl_several_print(const rnl_several *several, FILE *out)
{
    rnl_multi_device state[RNL_MULTI_MAX_DEVICES];
    char name[RNL_CLI_NAME_BYTES + 96];
    const size_t count = rnl_multi_get_devices(several->multi, state, RNL_MULTI_MAX_DEVICES);
    for (size_t i = 0; i < count; i++) {
        rnl_several_name(state[i].device, name, sizeof name);
        fprintf(out, "%s: %llu runs", name, (unsigned long long)state[i].requests);
        if (several->is_split)
            fprintf(out, ", %zu rows of the batch", state[i].share);
        if (state[i].failures)
            fprintf(out, ", %llu failed", (unsigned long long)state[i].failures);
        fprintf(out, "%s\n", state[i].is_lost ? ", lost" : "");
    }
}

void rnl_several_free(rnl_several *several)
{
    rnl_multi_release(several->multi);
    for (size_t i = 0; i < several->count; i++)
        rnl_device_release(several->devices[i]);
    *several = (rnl_several){.count = 0};
}
