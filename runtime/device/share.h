/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a device: what stands behind the '/' of a spec. */
#ifndef RUNNEL_DEVICE_SHARE_H
#define RUNNEL_DEVICE_SHARE_H

#include <runnel/rt.h>

typedef enum rnl_share_kind {
    RNL_SHARE_NONE,
    RNL_SHARE_UNITS, /* "/N", "/N.K": the compute units in N parts */
    RNL_SHARE_NUMA   /* "/numa", "/numaK": a part for each NUMA node */
} rnl_share_kind;

#define RNL_SHARE_ANY UINT32_MAX

typedef struct rnl_share {
    rnl_share_kind kind;
    uint32_t count; /* N */
    uint32_t at;    /* K, or RNL_SHARE_ANY: one that is free */
} rnl_share;

/*
 * Splits "0:0/2.1" into the length of "0:0" and a share; without a '/' the share is none. Fails where what follows the
 * last '/' is no share. A number beyond 32 bits is the greatest one: no device has as many units.
 */
RNL_NODISCARD rnl_status rnl_share_parse(const char *spec, size_t *out_length, rnl_share *out_share);

/* The units of part `at` of `count`: equal, or differing by one. */
void rnl_share_range(uint32_t units, uint32_t count, uint32_t at, uint32_t *out_first, uint32_t *out_units);

#endif
