/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of ours behind our own declarations of OpenCL C's functions: pocl's compiler reads no others then. */
#include "device/device.h"
#include "kernel/program.h"
#include "support/test_device.h"
#include <stdio.h>
#include <stdlib.h>

static char *folder;
static rnl_device *device;

/* A kernel that calls one function; hypot is none that ours call. */
static void write_kernel(const char *name, const char *call)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert(fprintf(file, "__kernel void f(__global float *x)\n{\n    x[0] = %s;\n}\n", call) > 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void open_all(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_KERNEL_DIR", folder, 1);
    setenv("RUNNEL_CACHE", "off", 1);
    unsetenv("RUNNEL_DECLARATIONS");
    write_kernel("known.cl", "fma(x[1], x[2], x[3]) + convert_float(max(2, (int)get_global_id(0)))");
    write_kernel("unknown.cl", "hypot(x[1], x[2])");
    write_kernel("wrong.cl", "not_there");
    device = test_open_device();
}

static void close_all(void)
{
    rnl_device_release(device);
    test_folder_remove(folder);
    unsetenv("RUNNEL_KERNEL_DIR");
    unsetenv("RUNNEL_CACHE");
    unsetenv("RUNNEL_DECLARATIONS");
}

/* In seldom used options, so that each is a program of its own. */
static rnl_status build(const char *file, const char *options)
{
    rnl_program *program;
    test_ok(rnl_program_get(device, file, options, &program));
    return rnl_program_build(program);
}

static bool needs_header(void)
{
    return atomic_load(&device->needs_header);
}

START_TEST(of_ours)
{
    setenv("RUNNEL_DECLARATIONS", "own", 1);
    test_ok(build("known.cl", ""));
    if (device->binaries_compile)
        test_fails(RNL_INVALID_ARGUMENT, "hypot", build("unknown.cl", ""));
    else
        test_ok(build("unknown.cl", ""));
    ck_assert(!needs_header());
}
END_TEST

START_TEST(of_the_driver)
{
    setenv("RUNNEL_DECLARATIONS", "driver", 1);
    test_ok(build("unknown.cl", ""));
    ck_assert(!needs_header());
}
END_TEST

/* Once ours do not do, the driver's are taken; an error that both find is none of the declarations'. */
START_TEST(of_both)
{
    test_ok(build("known.cl", "-DA"));
    test_fails(RNL_INVALID_ARGUMENT, "not_there", build("wrong.cl", "-DA"));
    ck_assert(!needs_header());
    test_ok(build("unknown.cl", "-DA"));
    ck_assert(needs_header() == device->binaries_compile);
    test_ok(build("known.cl", "-DB"));
    test_fails(RNL_INVALID_ARGUMENT, "not_there", build("wrong.cl", "-DB"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("declarations");
    TCase *tests = tcase_create("declarations");
    tcase_add_checked_fixture(tests, open_all, close_all);
    tcase_add_test(tests, of_ours);
    tcase_add_test(tests, of_the_driver);
    tcase_add_test(tests, of_both);
    suite_add_tcase(suite, tests);
    return test_run(suite, false);
}
