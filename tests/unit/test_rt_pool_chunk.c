/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a chunk are free, against a model that counts every unit; and size classes. No device is used. */
#include "base/memory.h"
#include "device/chunk.h"
#include "support/test_device.h"
#include <stdlib.h>
#include <string.h>

#define ALIGN ((size_t)128)
#define UNITS 4096u
#define MOST_PIECES 512

static rnl_spares spares;
static rnl_chunk *chunk;
static unsigned char owner[UNITS]; /* the model: 1 where a unit is in use */
static rnl_pool_block *pieces[MOST_PIECES];

static void open_chunk(void)
{
    rnl_spares_init(&spares);
    memset(owner, 0, sizeof owner);
    memset(pieces, 0, sizeof pieces);
    test_ok(rnl_chunk_create(RNL_MEMORY_DEVICE, UNITS * ALIGN, ALIGN, &spares, &chunk));
}

static void close_chunk(void)
{
    rnl_chunk_destroy(chunk, &spares);
    rnl_spares_free(&spares);
    rnl_alloc_fail_at(0);
}

static size_t largest_run(size_t *free_units)
{
    size_t best = 0, run = 0;
    *free_units = 0;
    for (size_t i = 0; i < UNITS; i++) {
        run = owner[i] ? 0 : run + 1;
        *free_units += !owner[i];
        best = run > best ? run : best;
    }
    return best;
}

/* Pieces tile the chunk, no two neighbours are free, and what is measured is what the model has. */
static void check_chunk(void)
{
    size_t at = 0, busy = 0, free_units, free_bytes = 0, largest = 0;
    const rnl_pool_block *lower = NULL;
    for (const rnl_pool_block *block = chunk->first; block; lower = block, block = block->upper) {
        ck_assert_ptr_eq(block->lower, lower);
        ck_assert_uint_eq(block->offset, at);
        ck_assert_uint_gt(block->capacity_bytes, 0);
        ck_assert_uint_eq(block->capacity_bytes % ALIGN, 0);
        bool is_free = block->state == RNL_BLOCK_FREE;
        ck_assert(!(is_free && lower && lower->state == RNL_BLOCK_FREE));
        size_t wrong = 0;
        for (size_t i = 0; i < block->capacity_bytes / ALIGN; i++)
            wrong += owner[at / ALIGN + i] != !is_free;
        ck_assert_uint_eq(wrong, 0);
        busy += !is_free;
        at += block->capacity_bytes;
    }
    ck_assert_uint_eq(at, UNITS * ALIGN);
    ck_assert_uint_eq(chunk->busy, busy);
    rnl_chunk_measure(chunk, &free_bytes, &largest);
    ck_assert_uint_eq(largest, largest_run(&free_units) * ALIGN);
    ck_assert_uint_eq(free_bytes, free_units * ALIGN);
}

static void put(size_t index)
{
    rnl_pool_block *block = pieces[index];
    memset(owner + block->offset / ALIGN, 0, block->capacity_bytes / ALIGN);
    chunk->busy--;
    rnl_chunk_join(chunk, block, &spares);
    pieces[index] = NULL;
}

/* There is none only where the model has no run of that length. */
static void take(size_t index, size_t bytes)
{
    size_t unused;
    test_ok(rnl_chunk_cut(chunk, bytes, &spares, &pieces[index]));
    rnl_pool_block *block = pieces[index];
    if (!block) {
        ck_assert_uint_lt(largest_run(&unused) * ALIGN, bytes);
        return;
    }
    ck_assert_uint_eq(block->capacity_bytes, bytes);
    ck_assert_int_eq(block->state, RNL_BLOCK_IN_USE);
    size_t taken = 0;
    for (size_t i = 0; i < bytes / ALIGN; i++)
        taken += owner[block->offset / ALIGN + i];
    ck_assert_uint_eq(taken, 0);
    memset(owner + block->offset / ALIGN, 1, bytes / ALIGN);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

START_TEST(random_pieces_agree_with_the_model)
{
    uint64_t state = (uint64_t)_i * 77 + 5;
    for (int round = 0; round < 4000; round++) {
        size_t index = (size_t)(next_random(&state) % MOST_PIECES);
        size_t most = (size_t)1 << next_random(&state) % 16;
        if (pieces[index])
            put(index);
        else
            take(index, rnl_pool_class_bytes((size_t)(next_random(&state) % most) + 1, ALIGN));
        if (round % 32 == 0)
            check_chunk();
    }
    for (size_t i = 0; i < MOST_PIECES; i++)
        if (pieces[i])
            put(i);
    check_chunk();
    ck_assert_uint_eq(chunk->first->capacity_bytes, UNITS * ALIGN);
}
END_TEST

START_TEST(the_smallest_hole_that_fits_is_taken)
{
    for (size_t i = 0; i < 8; i++)
        take(i, (i % 2 ? 1 : 4 + i) * ALIGN); /* 4 1 6 1 8 1 10 1 */
    put(4);
    put(2);
    put(6);
    take(8, 5 * ALIGN);
    ck_assert_uint_eq(pieces[8]->offset, 5 * ALIGN);
    take(9, 9 * ALIGN);
    ck_assert_uint_eq(pieces[9]->offset, 21 * ALIGN);
    take(10, 8 * ALIGN);
    ck_assert_uint_eq(pieces[10]->offset, 12 * ALIGN);
    check_chunk();
}
END_TEST

START_TEST(a_failed_allocation_changes_nothing)
{
    take(0, ALIGN);
    rnl_spares_free(&spares);
    rnl_alloc_fail_at(1);
    test_fails(RNL_RESOURCE_EXHAUSTED, "out of memory", rnl_chunk_cut(chunk, ALIGN, &spares, &pieces[1]));
    ck_assert_ptr_null(pieces[1]);
    check_chunk();
    take(1, ALIGN);
    check_chunk();
}
END_TEST

START_TEST(ready_neighbours_count_as_one_run)
{
    size_t free_bytes = 0, largest = 0;
    take(0, 8 * ALIGN);
    take(1, 8 * ALIGN);
    take(2, (UNITS / 2) * ALIGN);
    take(3, (UNITS / 4) * ALIGN);
    pieces[0]->state = pieces[1]->state = RNL_BLOCK_READY;
    rnl_chunk_measure(chunk, &free_bytes, &largest);
    ck_assert_uint_eq(free_bytes, (UNITS / 4) * ALIGN);
    ck_assert_uint_eq(largest, (UNITS / 4 - 16) * ALIGN);
    pieces[3]->state = RNL_BLOCK_PENDING;
    free_bytes = largest = 0;
    rnl_chunk_measure(chunk, &free_bytes, &largest);
    ck_assert_uint_eq(largest, (UNITS / 4 - 16) * ALIGN);
}
END_TEST

START_TEST(a_class_wastes_at_most_an_eighth)
{
    for (size_t align = 64; align <= 4096; align *= 2)
        for (size_t size = 1; size < (size_t)1 << 40; size += size / 7 + 1) {
            size_t bytes = rnl_pool_class_bytes(size, align);
            ck_assert_uint_ge(bytes, size);
            ck_assert_uint_eq(bytes % align, 0);
            ck_assert_uint_le(bytes - size, size / 8 + align - 1);
            ck_assert_uint_eq(rnl_pool_class_bytes(bytes, align), bytes);
        }
    ck_assert_uint_eq(rnl_pool_class_bytes(SIZE_MAX, 128), SIZE_MAX);
}
END_TEST

/* A block of a class serves all requests of it, and not all of the next one. */
START_TEST(classes_are_numbered_without_gaps)
{
    size_t index = 0;
    for (size_t size = ALIGN; size < (size_t)1 << 44;) {
        size_t next = rnl_pool_class_bytes(size + 1, ALIGN);
        ck_assert_uint_eq(rnl_pool_class_index(size, ALIGN), index + 1);
        ck_assert_uint_eq(rnl_pool_class_index(next - 1, ALIGN), index + 1);
        size = next;
        index++;
    }
    ck_assert_uint_eq(rnl_pool_class_index(ALIGN - 1, ALIGN), 0);
    ck_assert_uint_lt(rnl_pool_class_index(SIZE_MAX, ALIGN), RNL_POOL_CLASSES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool chunk");
    TCase *test_case = tcase_create("chunk");
    tcase_add_checked_fixture(test_case, open_chunk, close_chunk);
    tcase_add_loop_test(test_case, random_pieces_agree_with_the_model, 0, 8);
    tcase_add_test(test_case, the_smallest_hole_that_fits_is_taken);
    tcase_add_test(test_case, a_failed_allocation_changes_nothing);
    tcase_add_test(test_case, ready_neighbours_count_as_one_run);
    tcase_add_test(test_case, a_class_wastes_at_most_an_eighth);
    tcase_add_test(test_case, classes_are_numbered_without_gaps);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
