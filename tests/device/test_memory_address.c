/* SPDX-License-Identifier: Apache-2.0 */
/* Where a CPU's memory objects lie: where the driver maps them, also when others have been destroyed. */
#include "device/device.h"
#include "kernel/memory_address.h"
#include "support/test_device.h"

#include <string.h>

#define COUNT 300
#define BYTES 4096

static rnl_device *device;
static cl_command_queue queue;

static void setup(void)
{
    cl_int code;
    device = test_open_device();
    queue = clCreateCommandQueue(device->context, device->id, 0, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
}

static void teardown(void)
{
    clReleaseCommandQueue(queue);
    rnl_device_release(device);
}

static cl_mem create(void *host)
{
    cl_int code;
    cl_mem memory =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | (host ? CL_MEM_USE_HOST_PTR : 0), BYTES, host, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return memory;
}

static cl_mem create_part(cl_mem whole, size_t origin)
{
    cl_int code;
    const cl_buffer_region region = {origin, BYTES / 4};
    cl_mem memory = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return memory;
}

static void *map(cl_mem memory, size_t bytes)
{
    cl_int code;
    void *host = clEnqueueMapBuffer(queue, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(clEnqueueUnmapMemObject(queue, memory, host, 0, NULL, NULL), CL_SUCCESS);
    ck_assert_int_eq(clFinish(queue), CL_SUCCESS);
    return host;
}

static void check(cl_mem memory, size_t bytes)
{
    void *const expected = map(memory, bytes);
    ck_assert_ptr_eq(rnl_memory_address(queue, memory), expected);
    ck_assert_ptr_eq(rnl_memory_address(queue, memory), expected);
}

START_TEST(whole_and_parts)
{
    static _Alignas(4096) unsigned char host[2 * BYTES];
    cl_mem own = create(NULL);
    check(own, BYTES);
    for (size_t offset = 0; offset < BYTES; offset += BYTES / 2 + 4) {
        cl_mem callers = create(host + offset);
        check(callers, BYTES);
        clReleaseMemObject(callers);
    }
    for (size_t origin = 0; origin < BYTES; origin += BYTES / 4) {
        cl_mem part = create_part(own, origin);
        check(part, BYTES / 4);
        ck_assert_ptr_eq(rnl_memory_address(queue, part), (char *)rnl_memory_address(queue, own) + origin);
        clReleaseMemObject(part);
    }
    clReleaseMemObject(own);
}
END_TEST

/* New objects get the handles of old ones. */
START_TEST(destroyed_ones)
{
    static cl_mem memories[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        check(memories[i] = create(NULL), BYTES);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = round; i < COUNT; i += 2 + round)
            clReleaseMemObject(memories[i]);
        for (size_t i = round; i < COUNT; i += 2 + round)
            memories[i] = create(NULL);
        for (size_t i = 0; i < COUNT; i++)
            check(memories[i], BYTES);
    }
    for (size_t i = 0; i < COUNT; i++)
        clReleaseMemObject(memories[i]);
}
END_TEST

START_TEST(none)
{
    ck_assert_ptr_null(rnl_memory_address(queue, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory_address");
    TCase *tcase = tcase_create("memory_address");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 0);
    tcase_add_test(tcase, whole_and_parts);
    tcase_add_test(tcase, destroyed_ones);
    tcase_add_test(tcase, none);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
