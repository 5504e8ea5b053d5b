/* SPDX-License-Identifier: Apache-2.0 */
/* The device that a command works on. */
#ifndef RUNNEL_CLI_DEVICE_H
#define RUNNEL_CLI_DEVICE_H

#include <runnel/rt.h>

typedef struct rnl_device_wish {
    const char *spec; /* NULL: the default */
    uint64_t threads; /* of a CPU device; 0 = all */
    double memory;    /* part of the device's memory; 0 = all, or a share's */
    bool has_others;  /* the command opens other devices too */
} rnl_device_wish;

/* To be called before any other OpenCL call: a share, or so many threads, is had best then. */
RNL_NODISCARD rnl_status rnl_cli_device_open(const rnl_device_wish *wish, rnl_device **out_device);
/* "0:0", or "0:0, 1 of 2 compute units". Returns `out`. */
const char *rnl_cli_device_name(const rnl_device_info *info, char *out, size_t capacity);

#endif
