/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <xxhash.h>

rnl_hash rnl_hash_bytes(const void *data, size_t size_bytes)
{
    XXH128_hash_t hash = XXH3_128bits(data, size_bytes);
    return (rnl_hash){.low = hash.low64, .high = hash.high64};
}
