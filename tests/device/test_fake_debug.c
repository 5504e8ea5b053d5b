/* SPDX-License-Identifier: Apache-2.0 */
/* RUNNEL_SYNC on a driver whose clFinish says nothing of a command that failed. */
#include "support/fake_driver.h"
#include "support/test_device.h"
#include <runnel/kernel.h>
#include <stdlib.h>

START_TEST(the_command_that_fails_is_named)
{
    const fake_control *control = fake_driver();
    rnl_device *device = test_open_device();
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_kernel *kernel;
    const rnl_range range = {1, {4}, {1}};
    setenv("RUNNEL_SYNC", "1", 1);
    test_ok(rnl_stream_create(device, &stream));
    unsetenv("RUNNEL_SYNC");
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 64, &buffer));
    test_ok(rnl_kernel_create(device, "__kernel void broken(__global int *x) {}\n", NULL, "broken", &kernel));
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = buffer}};
    test_ok(rnl_stream_launch(stream, kernel, &range, args, 1));
    control->fail_command(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "kernel 'broken'", rnl_stream_launch(stream, kernel, &range, args, 1));
    rnl_kernel_release(kernel);
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    rnl_device_release(device);
    control->reset();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_debug");
    TCase *test_case = tcase_create("fake_debug");
    tcase_add_test(test_case, the_command_that_fails_is_named);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
