/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a CPU multiplies and adds, and that bfloat16 gains nothing where there is no instruction for it. */
#include "ops/instruction.h"
#include "ops/instruction_rate.h"
#include "support/test_device.h"

/* Of one thread: a slow processor under a debugger, and more than any has. */
#define LEAST 1e6
#define MOST 1e13

START_TEST(rates_are_measured)
{
    rnl_device *device = test_open_device();
    double floats = 0, pairs = 0;
    if (device->info.type == RNL_DEVICE_CPU && !device->info.emulated) { /* an emulated one takes minutes */
        test_ok(rnl_rate_measure(device, "", &floats));
        ck_assert_double_gt(floats, LEAST);
        ck_assert_double_lt(floats, MOST);
    }
    if (rnl_device_runs(device, RNL_INSTRUCTION_BF16)) {
        test_ok(rnl_rate_measure(device, "BF16", &pairs));
        ck_assert_double_gt(pairs, floats / 16);
        ck_assert_double_lt(pairs, floats * 16);
    } else {
        ck_assert(!rnl_device_gains_by_bf16(device));
    }
    const bool gains = rnl_device_gains_by_bf16(device);
    ck_assert(gains == rnl_device_gains_by_bf16(device));
    rnl_device_release(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("instruction_rate");
    TCase *test_case = tcase_create("instruction_rate");
    tcase_set_timeout(test_case, 120);
    tcase_add_test(test_case, rates_are_measured);
    suite_add_tcase(suite, test_case);
    return test_run(suite, true);
}
