/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver itself, through the OpenCL interface: what the tests on it rely on. */
#include "support/fake_driver.h"
#include "support/test_device.h"
#include <stdlib.h>
#include <string.h>

#define COUNT 1024

static const fake_control *control;
static cl_platform_id platforms[2];
static cl_device_id gpu, cpu;
static cl_context context;
static cl_command_queue queue, other;
static cl_mem buffer;
static int numbers[COUNT], back[COUNT];
static size_t alive;

#define OK(call) ck_assert_int_eq((call), CL_SUCCESS)

static void setup(void)
{
    cl_int code;
    control = fake_driver();
    control->reset();
    alive = fake_count_alive();
    OK(clGetPlatformIDs(2, platforms, NULL));
    OK(clGetDeviceIDs(platforms[0], CL_DEVICE_TYPE_GPU, 1, &gpu, NULL));
    OK(clGetDeviceIDs(platforms[0], CL_DEVICE_TYPE_CPU, 1, &cpu, NULL));
    context = clCreateContext(NULL, 1, &gpu, NULL, NULL, &code);
    OK(code);
    queue = clCreateCommandQueue(context, gpu, CL_QUEUE_PROFILING_ENABLE, &code);
    OK(code);
    other = clCreateCommandQueue(context, gpu, 0, &code);
    OK(code);
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof numbers, NULL, &code);
    OK(code);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i * 7;
}

static void teardown(void)
{
    control->reset();
    clFinish(queue);
    clFinish(other);
    OK(clReleaseMemObject(buffer));
    OK(clReleaseCommandQueue(queue));
    OK(clReleaseCommandQueue(other));
    OK(clReleaseContext(context));
    fake_check_alive(alive);
}

static cl_kernel make_kernel(const char *source, const char *options, const char *name)
{
    cl_int code;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    OK(code);
    OK(clBuildProgram(program, 1, &gpu, options, NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, name, &code);
    OK(code);
    OK(clReleaseProgram(program)); /* the kernel holds it */
    return kernel;
}

START_TEST(a_late_copy_is_waited_for)
{
    cl_int state;
    cl_event event;
    control->delay(20000);
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof numbers, numbers, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, sizeof back, back, 0, NULL, &event));
    OK(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    ck_assert_int_gt(state, CL_COMPLETE);
    OK(clWaitForEvents(1, &event));
    ck_assert_mem_eq(back, numbers, sizeof back);
    cl_ulong start, end;
    OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL));
    OK(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
    ck_assert_uint_gt(end, start);
    OK(clReleaseEvent(event));
}
END_TEST

static void CL_CALLBACK note(cl_event event, cl_int state, void *user)
{
    (void)event;
    *(int *)user = 100 + state;
}

START_TEST(a_user_event_holds_a_queue_back)
{
    cl_int code, state;
    int noted = 0;
    cl_event gate = clCreateUserEvent(context, &code), end;
    OK(code);
    OK(clEnqueueBarrierWithWaitList(other, 1, &gate, NULL));
    OK(clEnqueueMarkerWithWaitList(other, 0, NULL, &end));
    OK(clSetEventCallback(end, CL_COMPLETE, note, &noted));
    OK(clFlush(other));
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL));
    OK(clGetEventInfo(end, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    ck_assert_int_gt(state, CL_COMPLETE);
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clFinish(other)); /* callbacks come before the queue goes on */
    ck_assert_int_eq(noted, 100);
    OK(clReleaseEvent(gate));
    OK(clReleaseEvent(end));
}
END_TEST

START_TEST(kernels_are_found_behind_macros)
{
    static const char source[] = "#line 1 \"mine.cl\"\n#define HEAD(name) __kernel void name(MORE __global int *x)\n"
                                 "#ifdef WITH\n#define MORE const float4 a, __local float *t, long n, \n#else\n"
                                 "#define MORE\n#endif\n__attribute__((reqd_work_group_size(W, 1, 1))) HEAD(f) {}\n"
                                 "__kernel void fake_add(__global int *x, int y) { }\n";
    cl_uint count;
    size_t group[3];
    float four[4] = {0};
    cl_kernel kernel = make_kernel(source, "-DW=8 -D WITH -cl-std=CL1.2", "f");
    OK(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL));
    ck_assert_uint_eq(count, 4);
    OK(clGetKernelWorkGroupInfo(kernel, gpu, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof group, group, NULL));
    ck_assert_uint_eq(group[0], 8);
    ck_assert_int_eq(clSetKernelArg(kernel, 0, sizeof(int), four), CL_INVALID_ARG_SIZE);
    OK(clSetKernelArg(kernel, 0, sizeof four, four));
    ck_assert_int_eq(clSetKernelArg(kernel, 1, 8, four), CL_INVALID_ARG_VALUE);
    OK(clSetKernelArg(kernel, 1, 64, NULL));
    ck_assert_int_eq(clSetKernelArg(kernel, 4, 8, four), CL_INVALID_ARG_INDEX);
    size_t global = 8, local = 8, wrong = 4;
    ck_assert_int_eq(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL),
                     CL_INVALID_KERNEL_ARGS);
    ck_assert_int_eq(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &wrong, 0, NULL, NULL),
                     CL_INVALID_WORK_GROUP_SIZE);
    OK(clReleaseKernel(kernel));
}
END_TEST

START_TEST(an_error_directive_fails_with_our_line)
{
    const char *source = "#line 7 \"mine.cl\"\n#ifndef N\n#error needs N\n#endif\n__kernel void f() {}\n";
    char log[512];
    cl_int code;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    OK(code);
    ck_assert_int_eq(clBuildProgram(program, 1, &gpu, "", NULL, NULL), CL_BUILD_PROGRAM_FAILURE);
    OK(clGetProgramBuildInfo(program, gpu, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL));
    ck_assert_ptr_nonnull(strstr(log, "mine.cl:8"));
    ck_assert_ptr_nonnull(strstr(log, "needs N"));
    ck_assert_int_eq(clBuildProgram(program, 1, &gpu, "-what", NULL, NULL), CL_INVALID_BUILD_OPTIONS);
    OK(clBuildProgram(program, 1, &gpu, "-DN=3", NULL, NULL));
    OK(clReleaseProgram(program));
}
END_TEST

START_TEST(a_binary_is_checked)
{
    const char *source = "__kernel void f(__global int *x) {}\n";
    unsigned char bytes[4096];
    unsigned char *binary = bytes;
    const unsigned char *given = bytes;
    size_t size;
    cl_int code, one;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    OK(clBuildProgram(program, 1, &gpu, "", NULL, NULL));
    OK(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL));
    ck_assert_uint_le(size, sizeof bytes);
    OK(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL));
    OK(clReleaseProgram(program));
    program = clCreateProgramWithBinary(context, 1, &gpu, &size, &given, &one, &code);
    OK(code);
    OK(clBuildProgram(program, 1, &gpu, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "f", &code);
    OK(code);
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(program));
    bytes[size / 2]++;
    ck_assert_ptr_null(clCreateProgramWithBinary(context, 1, &gpu, &size, &given, &one, &code));
    ck_assert_int_eq(code, CL_INVALID_BINARY);
}
END_TEST

START_TEST(a_failed_command_ends_those_behind_it)
{
    cl_event first, second;
    cl_int state;
    control->fail_command(1, CL_OUT_OF_RESOURCES);
    OK(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof numbers, numbers, 0, NULL, &first));
    OK(clEnqueueMarkerWithWaitList(queue, 0, NULL, &second));
    OK(clFinish(queue)); /* says nothing of it */
    OK(clGetEventInfo(first, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    ck_assert_int_eq(state, CL_OUT_OF_RESOURCES);
    OK(clGetEventInfo(second, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    ck_assert_int_eq(state, CL_OUT_OF_RESOURCES);
    ck_assert_int_eq(clWaitForEvents(1, &second), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    OK(clReleaseEvent(first));
    OK(clReleaseEvent(second));
}
END_TEST

START_TEST(handles_are_checked)
{
    cl_int code;
    cl_mem gone = clCreateBuffer(context, 0, 64, NULL, &code);
    OK(clReleaseMemObject(gone));
    ck_assert_int_eq(clEnqueueWriteBuffer(queue, gone, CL_TRUE, 0, 4, numbers, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
    ck_assert_int_eq(clRetainMemObject((cl_mem)queue), CL_INVALID_MEM_OBJECT);
    ck_assert_ptr_null(clCreateCommandQueue(context, cpu, 0, &code));
    ck_assert_int_eq(code, CL_INVALID_DEVICE);
    ck_assert_ptr_null(clCreateBuffer(context, 0, (size_t)65 << 20, NULL, &code));
    ck_assert_int_eq(code, CL_INVALID_BUFFER_SIZE);
    ck_assert_int_eq(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 8, sizeof numbers, numbers, 0, NULL, NULL),
                     CL_INVALID_VALUE);
}
END_TEST

START_TEST(a_mapped_gpu_buffer_has_two_sides)
{
    cl_int code;
    OK(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, sizeof numbers, numbers, 0, NULL, NULL));
    int *host =
        clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, sizeof numbers, 0, NULL, NULL, &code);
    OK(code);
    ck_assert_mem_eq(host, numbers, sizeof numbers);
    host[0] = 1234;
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL));
    ck_assert_int_eq(back[0], 0);
    OK(clEnqueueUnmapMemObject(queue, buffer, host, 0, NULL, NULL));
    OK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL));
    ck_assert_int_eq(back[0], 1234);
    ck_assert_int_eq(clEnqueueUnmapMemObject(queue, buffer, host, 0, NULL, NULL), CL_INVALID_VALUE);
}
END_TEST

START_TEST(sub_buffers_are_aligned_and_overlaps_are_noted)
{
    cl_int code;
    fake_stats stats;
    const cl_buffer_region left = {0, 512}, right = {256, 512}, askew = {4, 64};
    cl_mem a = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &left, &code);
    OK(code);
    cl_mem b = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &right, &code);
    OK(code);
    ck_assert_ptr_null(clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &askew, &code));
    ck_assert_int_eq(code, CL_MISALIGNED_SUB_BUFFER_OFFSET);
    control->get_stats(&stats);
    ck_assert_uint_eq(stats.overlaps, 1);
    OK(clReleaseMemObject(a));
    OK(clReleaseMemObject(b));
}
END_TEST

START_TEST(calls_fail_as_they_are_told_to)
{
    cl_int code;
    control->fail_call("clCreateBuffer", 2, CL_OUT_OF_HOST_MEMORY, false);
    cl_mem first = clCreateBuffer(context, 0, 64, NULL, &code);
    OK(code);
    ck_assert_ptr_null(clCreateBuffer(context, 0, 64, NULL, &code));
    ck_assert_int_eq(code, CL_OUT_OF_HOST_MEMORY);
    control->fail_call(NULL, 1, CL_OUT_OF_RESOURCES, true);
    ck_assert_int_eq(clFlush(queue), CL_OUT_OF_RESOURCES);
    ck_assert_int_eq(clReleaseMemObject(first), CL_OUT_OF_RESOURCES); /* and is released */
    ck_assert_int_eq(clFinish(queue), CL_OUT_OF_RESOURCES);
    control->reset();
    OK(clFinish(queue));
    control->lie(1);
    cl_mem lie = clCreateBuffer(context, 0, 64, NULL, &code);
    OK(code);
    ck_assert_int_eq(clEnqueueWriteBuffer(queue, lie, CL_TRUE, 0, 4, numbers, 0, NULL, NULL),
                     CL_MEM_OBJECT_ALLOCATION_FAILURE);
    OK(clReleaseMemObject(lie));
    control->lose_device(0, 2, CL_OUT_OF_RESOURCES);
    OK(clFlush(queue));
    ck_assert_int_eq(clFlush(queue), CL_OUT_OF_RESOURCES);
    ck_assert_int_eq(clFinish(queue), CL_OUT_OF_RESOURCES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_driver");
    TCase *test_case = tcase_create("fake_driver");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_test(test_case, a_late_copy_is_waited_for);
    tcase_add_test(test_case, a_user_event_holds_a_queue_back);
    tcase_add_test(test_case, kernels_are_found_behind_macros);
    tcase_add_test(test_case, an_error_directive_fails_with_our_line);
    tcase_add_test(test_case, a_binary_is_checked);
    tcase_add_test(test_case, a_failed_command_ends_those_behind_it);
    tcase_add_test(test_case, handles_are_checked);
    tcase_add_test(test_case, a_mapped_gpu_buffer_has_two_sides);
    tcase_add_test(test_case, sub_buffers_are_aligned_and_overlaps_are_noted);
    tcase_add_test(test_case, calls_fail_as_they_are_told_to);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
