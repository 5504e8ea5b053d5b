/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096

/* A controller: its name in version 1, and how a group's folder tells its limit in either version. */
typedef struct controller {
    const char *name;
    uint64_t (*read_1)(const char *folder), (*read_2)(const char *folder);
} controller;

/* Reads up to two numbers from a small file; returns how many there were. "max" is not a number. */
static int read_numbers(const char *folder, const char *file, long long numbers[2])
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return 0;
    int count = fscanf(stream, "%lld %lld", &numbers[0], &numbers[1]);
    fclose(stream);
    return count > 0 ? count : 0;
}

/* Version 1 says "no limit" with a number near 2^63. */
static uint64_t read_bytes(const char *folder, const char *file)
{
    long long numbers[2];
    bool limited = read_numbers(folder, file, numbers) >= 1 && numbers[0] > 0 && numbers[0] <= (1LL << 60);
    return limited ? (uint64_t)numbers[0] : UINT64_MAX;
}

static uint64_t read_memory_1(const char *folder)
{
    return read_bytes(folder, "memory.limit_in_bytes");
}

static uint64_t read_memory_2(const char *folder)
{
    return read_bytes(folder, "memory.max");
}

static uint64_t whole_cpus(long long quota, long long period)
{
    return quota > 0 && period > 0 ? (uint64_t)((quota - 1) / period + 1) : UINT64_MAX;
}

static uint64_t read_cpu_1(const char *folder)
{
    long long quota[2], period[2];
    if (read_numbers(folder, "cpu.cfs_quota_us", quota) < 1 || read_numbers(folder, "cpu.cfs_period_us", period) < 1)
        return UINT64_MAX;
    return whole_cpus(quota[0], period[0]);
}

static uint64_t read_cpu_2(const char *folder)
{
    long long numbers[2];
    return read_numbers(folder, "cpu.max", numbers) == 2 ? whole_cpus(numbers[0], numbers[1]) : UINT64_MAX;
}

/* From the group up to the root. Inside a container the group's path may not be there: its root is. */
static uint64_t least_limit(const char *root, const char *name, const char *group, uint64_t (*read)(const char *))
{
    uint64_t least = UINT64_MAX;
    char below[PATH_BYTES], folder[PATH_BYTES];
    snprintf(below, sizeof below, "%s", group);
    for (;;) {
        snprintf(folder, sizeof folder, "%.1000s%s%s%.2000s", root, *name ? "/" : "", name, below);
        uint64_t limit = read(folder);
        if (limit < least)
            least = limit;
        char *slash = strrchr(below, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* A line is "0::/path" (version 2) or "4:memory,other:/path". */
static uint64_t limit_of_line(char *line, const char *root, const controller *wanted)
{
    line[strcspn(line, "\n")] = '\0';
    char *names = strchr(line, ':');
    char *group = names ? strchr(names + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = '\0';
    names++;
    if (!*names)
        return least_limit(root, "", group, wanted->read_2);
    for (char *name; (name = strsep(&names, ","));)
        if (strcmp(name, wanted->name) == 0)
            return least_limit(root, name, group, wanted->read_1);
    return UINT64_MAX;
}

static uint64_t limit_of_groups(const char *groups, const char *root, const controller *wanted)
{
    uint64_t least = UINT64_MAX;
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(groups, "re");
    if (!file)
        return least;
    while (getline(&line, &capacity, file) > 0) {
        uint64_t limit = limit_of_line(line, root, wanted);
        if (limit < least)
            least = limit;
    }
    free(line);
    fclose(file);
    return least;
}

uint64_t rnl_cgroup_memory_limit(const char *groups, const char *root)
{
    return limit_of_groups(groups, root, &(controller){"memory", read_memory_1, read_memory_2});
}

uint64_t rnl_cgroup_cpu_limit(const char *groups, const char *root)
{
    return limit_of_groups(groups, root, &(controller){"cpu", read_cpu_1, read_cpu_2});
}

uint32_t rnl_host_cpus(void)
{
    cpu_set_t allowed;
    uint64_t count = rnl_cgroup_cpu_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && (uint64_t)CPU_COUNT(&allowed) < count)
        count = (uint64_t)CPU_COUNT(&allowed);
    return count < 1 ? 1 : count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

bool rnl_host_processors(uint32_t first, uint32_t count, uint32_t whole, cpu_set_t *out_all, cpu_set_t *out_part)
{
    uint32_t at = 0;
    CPU_ZERO(out_part);
    if (sched_getaffinity(0, sizeof *out_all, out_all) != 0 || (uint32_t)CPU_COUNT(out_all) != whole)
        return false;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, out_all)) {
            if (at >= first && at - first < count)
                CPU_SET(cpu, out_part);
            at++;
        }
    return true;
}

uint32_t rnl_usable_units(const rnl_device_info *info)
{
    const uint32_t cpus = info->type == RNL_DEVICE_CPU ? rnl_host_cpus() : UINT32_MAX;
    return cpus < info->compute_units ? cpus : info->compute_units;
}

uint64_t rnl_host_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes : UINT64_MAX;
}
