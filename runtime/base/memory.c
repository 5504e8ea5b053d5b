/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "base/clock.h"
#include "base/status.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_TABLE ((size_t)8 << 20) /* bytes, whose pages are large ones */
#define LARGE_PAGE ((size_t)2 << 20)
#define EXPECTED_TOGETHER ((size_t)8 << 20) /* bytes that are made ready in one call */
/* Of a large page: 0.5 ms are usual, 3 where a virtual machine's host finds it first, 5 where it has to be made. */
#define SLOW_NS 4000000u

static atomic_ullong allocations_to_failure; /* 0: none is to fail */

void rnl_alloc_fail_at(uint64_t n)
{
    atomic_store(&allocations_to_failure, n);
}

/* Counts this allocation; true when it is the one that fails. */
static bool fails_now(void)
{
    unsigned long long left = atomic_load_explicit(&allocations_to_failure, memory_order_relaxed);
    while (left > 0)
        if (atomic_compare_exchange_weak(&allocations_to_failure, &left, left - 1))
            return left == 1;
    return false;
}

static void *libc_allocate(void *user, size_t size_bytes)
{
    (void)user;
    return malloc(size_bytes);
}

static void *libc_resize(void *user, void *memory, size_t size_bytes)
{
    (void)user;
    return realloc(memory, size_bytes);
}

static void libc_release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static rnl_allocator allocator = {sizeof allocator, NULL, libc_allocate, libc_resize, libc_release};
static atomic_bool large_pages_are_scarce;
static atomic_bool has_allocated; /* from then on the allocator stays */

rnl_status rnl_allocator_set(const rnl_allocator *given)
{
    if (!given || given->struct_size < sizeof *given || !given->allocate || !given->resize || !given->release)
        return FAIL(RNL_INVALID_ARGUMENT, "an allocator needs its three functions and RNL_ALLOCATOR_INIT");
    if (atomic_load(&has_allocated))
        return FAIL(RNL_FAILED_PRECONDITION, "the allocator was set after memory had been allocated");
    allocator = *given;
    return RNL_OK;
}

void *rnl_malloc(size_t size_bytes)
{
    if (!atomic_load_explicit(&has_allocated, memory_order_relaxed))
        atomic_store(&has_allocated, true);
    return fails_now() ? NULL : allocator.allocate(allocator.user, size_bytes ? size_bytes : 1);
}

/* Tables of a million names are read here and there. The C library's zeros cost nothing where they are new pages. */
static void *allocate_zeros(size_t size_bytes)
{
    if (allocator.allocate == libc_allocate) {
        atomic_store(&has_allocated, true);
        void *zeros = fails_now() ? NULL : calloc(size_bytes ? size_bytes : 1, 1);
        if (zeros && size_bytes >= LARGE_TABLE)
            rnl_memory_prefer_large_pages(zeros, size_bytes);
        return zeros;
    }
    void *memory = rnl_malloc(size_bytes);
    return memory ? memset(memory, 0, size_bytes) : NULL;
}

void rnl_free(void *memory)
{
    if (memory)
        allocator.release(allocator.user, memory);
}

static rnl_status out_of_memory(size_t count, size_t element_bytes)
{
    if (element_bytes == 1)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "out of memory: %zu bytes were asked for", count);
    return FAIL(RNL_RESOURCE_EXHAUSTED, "out of memory: %zu elements of %zu bytes were asked for", count,
                element_bytes);
}

static void store_pointer(void *where, void *pointer)
{
    memcpy(where, &pointer, sizeof pointer); /* *where is a pointer of any type */
}

bool rnl_shape_elements(const int64_t *shape, size_t rank, int64_t *out_count)
{
    int64_t count = 1;
    bool zero = false;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return false;
        zero = zero || shape[i] == 0;
    }
    for (size_t i = 0; i < rank && !zero; i++)
        if (__builtin_mul_overflow(count, shape[i], &count))
            return false;
    *out_count = zero ? 0 : count;
    return true;
}

rnl_status rnl_alloc(size_t count, size_t element_bytes, void *out_pointer)
{
    store_pointer(out_pointer, NULL);
    size_t bytes;
    if (!rnl_size_mul(count, element_bytes, &bytes) || bytes > PTRDIFF_MAX)
        return out_of_memory(count, element_bytes);
    void *memory = allocate_zeros(bytes);
    if (!memory)
        return out_of_memory(count, element_bytes);
    store_pointer(out_pointer, memory);
    return RNL_OK;
}

rnl_status rnl_grow(void *pointer, size_t *capacity, size_t needed, size_t element_bytes)
{
    if (needed <= *capacity)
        return RNL_OK;
    size_t target = *capacity > SIZE_MAX / 2 || needed > *capacity * 2 ? needed : *capacity * 2;
    if (target < 8)
        target = 8;
    size_t bytes;
    if (!rnl_size_mul(target, element_bytes, &bytes) || bytes > PTRDIFF_MAX || fails_now())
        return out_of_memory(target, element_bytes);
    void *old;
    memcpy(&old, pointer, sizeof old);
    char *memory = allocator.resize(allocator.user, old, bytes ? bytes : 1);
    if (!memory)
        return out_of_memory(target, element_bytes);
    memset(memory + *capacity * element_bytes, 0, bytes - *capacity * element_bytes);
    store_pointer(pointer, memory);
    *capacity = target;
    return RNL_OK;
}

rnl_status rnl_strdup(const char *text, char **out_copy)
{
    size_t bytes = strlen(text) + 1;
    TRY(rnl_alloc(bytes, 1, out_copy));
    memcpy(*out_copy, text, bytes);
    return RNL_OK;
}

/* The whole pages inside. */
static void find_pages(void *memory, size_t size_bytes, uintptr_t page, uintptr_t *out_first, uintptr_t *out_end)
{
    const uintptr_t at = (uintptr_t)memory;
    *out_first = (at + page - 1) & ~(page - 1);
    *out_end = (at + size_bytes) & ~(page - 1);
}

/* Whole ones: else the system, which joins what lies side by side, has one for the end of this and the start of that.
 */
void rnl_memory_prefer_large_pages(void *memory, size_t size_bytes)
{
    uintptr_t first, end;
    find_pages(memory, size_bytes, LARGE_PAGE, &first, &end);
    if (first < end && !atomic_load(&large_pages_are_scarce))
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE); /* nothing depends on the answer, here and below */
}

/* In front of it, on a page of its own, stands how much is mapped. */
void *rnl_memory_map_aligned(size_t size_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes;
    if (!rnl_size_add(size_bytes, LARGE_PAGE + 2 * page, &bytes) || bytes > PTRDIFF_MAX || fails_now())
        return NULL;
    char *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    const uintptr_t wish = ((uintptr_t)all + page + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
    const size_t before = wish - page - (uintptr_t)all, used = (page + size_bytes + page - 1) & ~(page - 1);
    if (before > 0)
        munmap(all, before);
    if (before + used < bytes)
        munmap(all + before + used, bytes - before - used);
    memcpy(all + before, &used, sizeof used);
    return all + before + page;
}

void rnl_memory_unmap_aligned(void *memory)
{
    size_t used;
    char *first = (char *)memory - sysconf(_SC_PAGESIZE);
    memcpy(&used, first, sizeof used);
    munmap(first, used);
}

#ifdef MADV_POPULATE_WRITE /* new with Linux 5.14 */
/* A system without large pages at hand moves others' small ones together first, in the thread that asks, which takes
 * ten times as long as small ones would: nobody asks again then. */
static void populate(uintptr_t first, size_t size_bytes)
{
    if (atomic_load(&large_pages_are_scarce))
        (void)madvise((void *)first, size_bytes, MADV_NOHUGEPAGE);
    const uint64_t begin = rnl_clock_thread_ns();
    (void)madvise((void *)first, size_bytes, MADV_POPULATE_WRITE);
    if (size_bytes >= LARGE_PAGE && rnl_clock_thread_ns() - begin > (uint64_t)size_bytes * SLOW_NS / LARGE_PAGE)
        atomic_store(&large_pages_are_scarce, true);
}
#endif

void rnl_memory_expect(void *memory, size_t size_bytes)
{
#ifdef MADV_POPULATE_WRITE
    uintptr_t first, end;
    find_pages(memory, size_bytes, (uintptr_t)sysconf(_SC_PAGESIZE), &first, &end);
    while (first < end) {
        const size_t part = end - first < EXPECTED_TOGETHER ? end - first : EXPECTED_TOGETHER;
        populate(first, part);
        first += part;
    }
#else
    (void)memory, (void)size_bytes;
#endif
}
