/* SPDX-License-Identifier: Apache-2.0 */
/* What of this machine the process may use. */
#ifndef RUNNEL_DEVICE_HOST_LIMITS_H
#define RUNNEL_DEVICE_HOST_LIMITS_H

#include <runnel/rt.h>
#include <sched.h>

/*
 * The least limit of the control groups (version 1 and 2) that the file `groups` ("/proc/self/cgroup") names and of
 * those above them, below `root` ("/sys/fs/cgroup"); UINT64_MAX without one. Memory is in bytes, processors are rounded
 * up.
 */
uint64_t rnl_cgroup_memory_limit(const char *groups, const char *root);
uint64_t rnl_cgroup_cpu_limit(const char *groups, const char *root);

/* The machine's main memory; UINT64_MAX when it does not say. */
uint64_t rnl_host_memory_bytes(void);

/* The processors that this process may run on at once: its affinity and its control groups' limit. At least 1. */
uint32_t rnl_host_cpus(void);

/*
 * Of the processors that this thread may run on (*out_all), `count` from the `first`-th on. False where those are not
 * `whole`: a control group gives less time than processors, or the affinity has changed.
 */
bool rnl_host_processors(uint32_t first, uint32_t count, uint32_t whole, cpu_set_t *out_all, cpu_set_t *out_part);

/* A CPU device has no more units for us than this process may run threads: not every driver looks at that. */
uint32_t rnl_usable_units(const rnl_device_info *info);

#endif
