/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that come with the library: sorted, for the kind of CPU that they are for alone, and behind the device's own.
 */
#include "ops/tuning.h"
#include "ops/tuning_shipped.h"
#include "support/test_device.h"
#include <stdlib.h>

static rnl_device *device;
static char *folder;

static void start(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    device = test_open_device();
}

static void stop(void)
{
    rnl_device_release(device);
    unsetenv("RUNNEL_CACHE_DIR");
    test_folder_remove(folder);
}

static bool is_before(rnl_hash a, rnl_hash b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

START_TEST(tables_are_sorted)
{
    for (const rnl_shipped_table *it = rnl_shipped_tables; it->vector_width; it++) {
        ck_assert_uint_gt(it->count, 0);
        ck_assert_uint_le(it->least_threads, it->most_threads);
        for (size_t i = 1; i < it->count; i++)
            ck_assert(is_before(it->entries[i - 1].problem, it->entries[i].problem));
        for (size_t i = 0; i < it->count; i++)
            ck_assert_uint_eq(rnl_tuning_shipped_get(it, it->entries[i].problem), it->entries[i].variant);
        ck_assert_uint_eq(rnl_tuning_shipped_get(it, (rnl_hash){1, 1}), UINT32_MAX);
    }
    ck_assert_uint_eq(rnl_tuning_shipped_get(NULL, (rnl_hash){1, 1}), UINT32_MAX);
}
END_TEST

START_TEST(another_kind_has_none)
{
    const uint32_t width = device->vector_width, units = device->info.compute_units;
    device->vector_width = 2;
    ck_assert_ptr_null(rnl_tuning_shipped_for(device));
    device->vector_width = width;
    device->info.compute_units = UINT32_MAX;
    ck_assert_ptr_null(rnl_tuning_shipped_for(device));
    device->info.compute_units = units;
}
END_TEST

START_TEST(a_device_goes_by_its_own_first)
{
    const rnl_shipped_table *table = rnl_tuning_shipped_for(device);
    if (!table)
        return;
    const rnl_shipped_entry *first = &table->entries[0];
    ck_assert_uint_eq(rnl_tuning_get(device, first->problem, first->variant + 1), first->variant);
    ck_assert_uint_eq(rnl_tuning_get(device, first->problem, first->variant), RNL_TUNING_NONE);
    test_ok(rnl_tuning_set(device, first->problem, first->variant + 1));
    ck_assert_uint_eq(rnl_tuning_get(device, first->problem, first->variant + 2), first->variant + 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tuning_shipped");
    TCase *tests = tcase_create("shipped");
    tcase_add_checked_fixture(tests, start, stop);
    tcase_add_test(tests, tables_are_sorted);
    tcase_add_test(tests, another_kind_has_none);
    tcase_add_test(tests, a_device_goes_by_its_own_first);
    suite_add_tcase(suite, tests);
    return test_run(suite, false);
}
