/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_DEVICE_MEMORY_LIMIT_H
#define RUNNEL_DEVICE_MEMORY_LIMIT_H

#include <runnel/rt.h>

/*
 * The least memory limit of the control groups (version 1 and 2) that the file `groups` ("/proc/self/cgroup") names and
 * of those above them, below `root` ("/sys/fs/cgroup"); UINT64_MAX without one.
 */
uint64_t rnl_cgroup_memory_limit(const char *groups, const char *root);

#endif
