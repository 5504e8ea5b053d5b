/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a CPU multiplies and adds, and that bfloat16 gains nothing where there is no instruction for it. */
#include "ops/instruction.h"
#include "ops/instruction_rate.h"
#include "support/test_device.h"

/* Of one thread: a slow processor under a debugger, and more than any has. */
#define LEAST 1e6
#define MOST 1e13

static void check(rnl_device *device, rnl_rate first, rnl_rate second)
{
    double rates[2] = {0};
    test_ok(rnl_rate_measure(device, first, second, rates));
    for (int i = 0; i < 2; ++i) {
        ck_assert_double_gt(rates[i], LEAST);
        ck_assert_double_lt(rates[i], MOST);
    }
    ck_assert_double_gt(rates[0], rates[1] / 16);
    ck_assert_double_lt(rates[0], rates[1] * 16);
}

START_TEST(rates_are_measured)
{
    rnl_device *device = test_open_device();
    const bool bf16 = rnl_device_runs(device, RNL_INSTRUCTION_BF16),
               madd = rnl_device_runs(device, RNL_INSTRUCTION_MADD8);
    if (device->info.type == RNL_DEVICE_CPU && !device->info.emulated) /* an emulated one takes minutes */
        check(device, bf16 ? RNL_RATE_BF16 : RNL_RATE_F32, RNL_RATE_F32);
    if (device->info.type == RNL_DEVICE_CPU && !device->info.emulated)
        check(device, RNL_RATE_INNER, RNL_RATE_F32);
    if (madd)
        check(device, RNL_RATE_FIP, RNL_RATE_MADD);
    ck_assert(bf16 || !rnl_device_gains_by_bf16(device));
    ck_assert(madd || !rnl_device_gains_by_fip(device));
    ck_assert(device->vector_width == 16 || !rnl_device_gains_by_float_fip(device));
    const bool by_bf16 = rnl_device_gains_by_bf16(device), by_fip = rnl_device_gains_by_fip(device);
    ck_assert(by_bf16 == rnl_device_gains_by_bf16(device));
    ck_assert(by_fip == rnl_device_gains_by_fip(device));
    ck_assert(rnl_device_gains_by_float_fip(device) == rnl_device_gains_by_float_fip(device));
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
