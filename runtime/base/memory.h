/* SPDX-License-Identifier: Apache-2.0 */
/* Checked sizes, and allocation that tests can make fail. */
#ifndef RUNNEL_BASE_MEMORY_H
#define RUNNEL_BASE_MEMORY_H

#include <runnel/rt.h>

/* False on overflow; *out is then unspecified. */
static inline bool rnl_size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool rnl_size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
/* Of numbers that are not negative: INT64_MAX on overflow, which no allocation and no view check lets pass. */
static inline int64_t rnl_saturating_mul(int64_t a, int64_t b)
{
    int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
static inline int64_t rnl_saturating_add(int64_t a, int64_t b)
{
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
static inline size_t rnl_align_up(size_t value, size_t alignment) /* power of two; value far below SIZE_MAX */
{
    return (value + alignment - 1) & ~(alignment - 1);
}
/* Rounded up; a at least 0, b greater. */
static inline int64_t rnl_divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* The largest of equal shares of `count` that are not larger than `share`; both greater than 0. */
static inline int64_t rnl_even_share(int64_t count, int64_t share)
{
    return rnl_divide_up(count, rnl_divide_up(count, share));
}

/* Product of the dimensions in *out_count; false when one is negative or the product exceeds INT64_MAX. Rank 0 gives 1.
 */
RNL_API bool rnl_shape_elements(const int64_t *shape, size_t rank, int64_t *out_count);

/*
 * Zeroed memory for `count` elements, in *(void **)out_pointer. RNL_RESOURCE_EXHAUSTED when it does not fit or
 * overflows. count 0 gives a unique pointer. Released with rnl_free.
 */
RNL_API RNL_NODISCARD rnl_status rnl_alloc(size_t count, size_t element_bytes, void *out_pointer);
/*
 * Grows *(void **)pointer, of *capacity elements, to hold at least `needed`; doubles. New elements are zeroed.
 */
RNL_API RNL_NODISCARD rnl_status rnl_grow(void *pointer, size_t *capacity, size_t needed, size_t element_bytes);
/* NULL when there is none, without an error. Not zeroed. */
RNL_API void *rnl_malloc(size_t size_bytes);
RNL_API void rnl_free(void *memory);
RNL_API RNL_NODISCARD rnl_status rnl_strdup(const char *text, char **out_copy);

/*
 * Has the whole pages inside this part of new memory ready to be written: one call instead of a fault for each of them.
 * What they hold stays. Elsewhere than on a recent Linux it does nothing.
 */
RNL_API void rnl_memory_expect(void *memory, size_t size_bytes);

/*
 * What is read here and there, or once from end to end, costs a look at the page's address every 4 KiB: this part of
 * new memory gets pages of 2 MiB where the system has some to spare. They become whole ones as they are written.
 */
RNL_API void rnl_memory_prefer_large_pages(void *memory, size_t size_bytes);

/* New memory, which begins where a page of 2 MiB may, until it is unmapped. NULL where there is none. Any thread. */
RNL_API void *rnl_memory_map_aligned(size_t size_bytes);
RNL_API void rnl_memory_unmap_aligned(void *memory);

/* For tests: the n-th allocation from now on fails (1 = the next); 0 = never. One-shot. Counts over all threads. */
RNL_API void rnl_alloc_fail_at(uint64_t n);

#endif
