/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pool_class.h"

#include "base/memory.h"

size_t rnl_pool_class_bytes(size_t size_bytes, size_t align_bytes)
{
    size_t step = align_bytes;
    unsigned bits = 64u - (unsigned)__builtin_clzll((unsigned long long)(size_bytes / align_bytes) | 1u);
    /* Up to sixteen times the alignment it is the step; above, steps are an eighth of the power of two below. */
    if (bits > 4)
        step <<= bits - 4;
    return size_bytes > SIZE_MAX - step ? size_bytes : rnl_align_up(size_bytes, step);
}

size_t rnl_pool_class_index(size_t size_bytes, size_t align_bytes)
{
    unsigned long long units = size_bytes / align_bytes;
    unsigned bits = 64u - (unsigned)__builtin_clzll(units | 1u);
    unsigned step = bits > 4 ? bits - 4 : 0;
    size_t index = 8u * step + (size_t)(units >> step);
    return index < RNL_POOL_CLASSES ? index : RNL_POOL_CLASSES - 1;
}
