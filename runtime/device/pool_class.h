/* SPDX-License-Identifier: Apache-2.0 */
/* Size classes: sizes are rounded up to one of eight between two powers of two. */
#ifndef RUNNEL_DEVICE_POOL_CLASS_H
#define RUNNEL_DEVICE_POOL_CLASS_H

#include <stddef.h>
#include <stdint.h>

#define RNL_POOL_CLASSES 384 /* 2^48 times the alignment and more are all in the last one */

/* The capacity that a request of this size is rounded up to: at most an eighth more. */
size_t rnl_pool_class_bytes(size_t size_bytes, size_t align_bytes);
/*
 * The class of a block: the greatest whose requests it can serve. `align_bytes` is a power of two. Sizes that
 * rnl_pool_class_bytes gave have their own class; others the class below. Below `align_bytes` it is 0, which no request
 * has.
 */
size_t rnl_pool_class_index(size_t size_bytes, size_t align_bytes);

#endif
