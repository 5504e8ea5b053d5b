/* SPDX-License-Identifier: Apache-2.0 */
/* What of this machine the process may use. */
#ifndef RUNNEL_DEVICE_HOST_LIMITS_H
#define RUNNEL_DEVICE_HOST_LIMITS_H

#include <runnel/rt.h>

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

/* A CPU device has no more units for us than this process may run threads: not every driver looks at that. */
uint32_t rnl_usable_units(const rnl_device_info *info);

#endif
