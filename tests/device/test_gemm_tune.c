/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning products: what is noted is what is prepared from then on, and a cancelled run changes nothing. */
#include "support/product_case.h"
#include "support/test_device.h"
#include <stdlib.h>
#include <string.h>

static rnl_device *device;
static char *folder;

static void open_device(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    unsetenv("RUNNEL_CACHE");
    unsetenv("RUNNEL_GEMM");
    device = test_open_device();
}

static void close_device(void)
{
    rnl_device_release(device);
    test_folder_remove(folder);
}

static const char *chosen(const rnl_gemm_desc *desc)
{
    rnl_gemm *gemm;
    rnl_gemm_info info;
    test_ok(rnl_gemm_create(device, desc, &gemm));
    rnl_gemm_get_info(gemm, &info);
    rnl_gemm_release(gemm);
    return strchr(info.implementation, ':') + 1;
}

typedef struct told {
    size_t count, last;
    size_t cancel_at;
} told;

static bool listen(void *user, const rnl_gemm_trial *trial)
{
    told *it = user;
    ck_assert_uint_eq(trial->done, ++it->count);
    ck_assert_uint_ge(trial->total, trial->done);
    ck_assert_ptr_nonnull(trial->implementation);
    it->last = trial->index;
    return it->count != it->cancel_at;
}

static rnl_gemm_desc small(int64_t m)
{
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    desc.m = m, desc.n = 32, desc.k = 24;
    desc.beta = 1;
    desc.bias = RNL_GEMM_BIAS_COLUMNS;
    return desc;
}

START_TEST(notes_the_fastest)
{
    const rnl_gemm_desc descs[2] = {small(16), small(3)};
    rnl_gemm_trial best[2];
    told it = {0};
    rnl_gemm_tune_options options = RNL_GEMM_TUNE_OPTIONS_INIT;
    options.seconds = 1e-3;
    options.progress = listen;
    options.user = &it;
    test_ok(rnl_gemm_tune(device, descs, 2, &options, best));
    ck_assert_uint_gt(it.count, 1);
    ck_assert_uint_eq(it.last, 1);
    for (int i = 0; i < 2; i++) {
        ck_assert(best[i].ns > 0);
        ck_assert_str_eq(chosen(&descs[i]), best[i].implementation);
    }
    product_case_run(device, &(product_case){.desc = descs[0]});
    /* Kept for the next process. */
    rnl_device_release(device);
    device = test_open_device();
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq(chosen(&descs[i]), best[i].implementation);
}
END_TEST

START_TEST(cancelled)
{
    const rnl_gemm_desc desc = small(8);
    const char *before = chosen(&desc);
    told it = {.cancel_at = 2};
    rnl_gemm_tune_options options = RNL_GEMM_TUNE_OPTIONS_INIT;
    options.seconds = 1e-3;
    options.progress = listen;
    options.user = &it;
    if (!getenv("RUNNEL_TEST_SMALL"))
        test_fails(RNL_CANCELLED, "cancelled", rnl_gemm_tune(device, &desc, 1, &options, NULL));
    ck_assert_str_eq(chosen(&desc), before);
}
END_TEST

START_TEST(refused)
{
    rnl_gemm_desc desc = small(8);
    rnl_gemm_tune_options options = RNL_GEMM_TUNE_OPTIONS_INIT;
    test_ok(rnl_gemm_tune(device, NULL, 0, NULL, NULL));
    test_fails(RNL_INVALID_ARGUMENT, "device is NULL", rnl_gemm_tune(NULL, &desc, 1, NULL, NULL));
    test_fails(RNL_INVALID_ARGUMENT, "descs is NULL", rnl_gemm_tune(device, NULL, 1, NULL, NULL));
    options.struct_size = 0;
    test_fails(RNL_INVALID_ARGUMENT, "struct_size", rnl_gemm_tune(device, &desc, 1, &options, NULL));
    desc.m = -4;
    test_fails(RNL_INVALID_ARGUMENT, "m is -4", rnl_gemm_tune(device, &desc, 1, NULL, NULL));
    desc = small(4);
    desc.implementation = "portable";
    test_fails(RNL_UNIMPLEMENTED, "named implementation", rnl_gemm_tune(device, &desc, 1, NULL, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm_tune");
    TCase *tests = tcase_create("tune");
    tcase_set_timeout(tests, 0);
    tcase_add_checked_fixture(tests, open_device, close_device);
    tcase_add_test(tests, notes_the_fastest);
    tcase_add_test(tests, cancelled);
    tcase_add_test(tests, refused);
    suite_add_tcase(suite, tests);
    return test_run(suite, false);
}
