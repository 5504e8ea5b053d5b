/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan.h"
#include "support/test_device.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS 64

static rnl_plan plan;
static rnl_slot slots[SLOTS];
static rnl_device_info info;

static void setup(void)
{
    memset(&plan, 0, sizeof plan);
    memset(slots, 0, sizeof slots);
    plan.slots = slots;
    info = (rnl_device_info){.base_align_bytes = 128, .max_allocation_bytes = 1 << 20};
    unsetenv("RUNNEL_ARENA");
}

static void teardown(void)
{
    rnl_zone_free(&plan.zone);
    unsetenv("RUNNEL_ARENA");
}

static void add(size_t bytes, int64_t first_write, int64_t last_use)
{
    slots[plan.slot_count++] =
        (rnl_slot){.kind = RNL_SLOT_ARENA, .size_bytes = bytes, .first_write = first_write, .last_use = last_use};
}

static bool overlap(const rnl_slot *a, const rnl_slot *b)
{
    return a->block == b->block && a->offset_bytes < b->offset_bytes + b->size_bytes &&
           b->offset_bytes < a->offset_bytes + a->size_bytes;
}

/* The rule itself, written without the code under test: memory is shared only when one's last use comes before the
 * other's first write. */
static void check_rule(void)
{
    for (size_t i = 0; i < plan.slot_count; i++) {
        ck_assert_uint_eq(slots[i].offset_bytes % info.base_align_bytes, 0);
        ck_assert(slots[i].offset_bytes + slots[i].size_bytes <= info.max_allocation_bytes);
        ck_assert_uint_lt(slots[i].block, plan.block_count);
        ck_assert(slots[i].offset_bytes + slots[i].size_bytes <= plan.block_bytes[slots[i].block]);
        for (size_t j = 0; j < i; j++)
            if (overlap(&slots[i], &slots[j]))
                ck_assert(slots[i].last_use < slots[j].first_write || slots[j].last_use < slots[i].first_write);
    }
}

START_TEST(test_chain_shares)
{
    for (int64_t i = 0; i < 10; i++)
        add(1000, i, i + 1);
    ck_assert_int_eq(rnl_arena_assign(&plan, &info), RNL_OK);
    check_rule();
    ck_assert_uint_eq(plan.block_count, 1);
    ck_assert_uint_le(plan.arena_bytes, 2 * 1024); /* two live at a time */
}
END_TEST

START_TEST(test_read_while_written_is_apart)
{
    add(100, 0, 3);
    add(100, 3, 4);
    ck_assert_int_eq(rnl_arena_assign(&plan, &info), RNL_OK);
    ck_assert(!overlap(&slots[0], &slots[1]));
}
END_TEST

START_TEST(test_blocks_keep_to_the_largest_allocation)
{
    for (int i = 0; i < 5; i++)
        add(600 << 10, 0, 9);
    ck_assert_int_eq(rnl_arena_assign(&plan, &info), RNL_OK);
    check_rule();
    ck_assert_uint_eq(plan.block_count, 5);
}
END_TEST

START_TEST(test_too_large_is_refused)
{
    add((1 << 20) + 1, 0, 1);
    ck_assert_int_eq(rnl_arena_assign(&plan, &info), RNL_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "1048577"));
}
END_TEST

START_TEST(test_constants_are_never_shared)
{
    add(500, RNL_BEFORE_STEPS, 20);
    slots[0].kind = RNL_SLOT_CONSTANT;
    for (int64_t i = 0; i < 20; i++)
        add(500, i, i);
    ck_assert_int_eq(rnl_arena_assign(&plan, &info), RNL_OK);
    for (size_t i = 1; i < plan.slot_count; i++)
        ck_assert(!overlap(&slots[0], &slots[i]));
}
END_TEST

START_TEST(test_off_gives_each_a_block)
{
    setenv("RUNNEL_ARENA", "off", 1);
    for (int64_t i = 0; i < 6; i++)
        add(100, i, i);
    ck_assert_int_eq(rnl_arena_assign(&plan, &info), RNL_OK);
    ck_assert_uint_eq(plan.block_count, 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_uint_eq(slots[i].offset_bytes, 0);
}
END_TEST

START_TEST(test_random_lifetimes)
{
    srand((unsigned)_i + 1);
    for (int i = 0; i < SLOTS; i++) {
        int64_t first = rand() % 40 - 1;
        add((size_t)(rand() % 5000 + 1), first, first + rand() % 8);
    }
    ck_assert_int_eq(rnl_arena_assign(&plan, &info), RNL_OK);
    check_rule();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arena");
    TCase *tcase = tcase_create("assign");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_chain_shares);
    tcase_add_test(tcase, test_read_while_written_is_apart);
    tcase_add_test(tcase, test_blocks_keep_to_the_largest_allocation);
    tcase_add_test(tcase, test_too_large_is_refused);
    tcase_add_test(tcase, test_constants_are_never_shared);
    tcase_add_test(tcase, test_off_gives_each_a_block);
    tcase_add_loop_test(tcase, test_random_lifetimes, 0, 50);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
