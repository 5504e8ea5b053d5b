/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_BASE_HASH_H
#define RUNNEL_BASE_HASH_H

#include <runnel/rt.h>

typedef struct rnl_hash {
    uint64_t low, high;
} rnl_hash;

/* XXH3, 128 bits. */
RNL_API rnl_hash rnl_hash_bytes(const void *data, size_t size_bytes);
static inline bool rnl_hash_equal(rnl_hash a, rnl_hash b)
{
    return a.low == b.low && a.high == b.high;
}

#endif
