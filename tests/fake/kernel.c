/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels: what a launch needs is checked, and nothing is computed. Two of them do what their names say, for tests of
 * order: fake_add(__global int *x, int value) adds to each element, fake_scale(a, b, by, local) writes b = a * by.
 */
#include "fake/fake.h"
#include <stdlib.h>
#include <string.h>

static cl_kernel create_kernel(cl_program program, const fake_function *function)
{
    fake_argument *arguments = calloc(function->parameter_count + 1, sizeof *arguments);
    cl_kernel kernel = fake_create(FAKE_KERNEL, sizeof *kernel);
    if (!kernel || !arguments)
        abort();
    kernel->program = fake_hold(program);
    kernel->function = function;
    kernel->arguments = arguments;
    return kernel;
}

cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *out_code)
{
    ATTEMPT_NEW(fake_enter("clCreateKernel"), out_code);
    ATTEMPT_NEW(fake_check(program, FAKE_PROGRAM), out_code);
    REQUIRE_NEW(program->unit && program->unit->code == CL_SUCCESS, CL_INVALID_PROGRAM_EXECUTABLE, out_code);
    REQUIRE_NEW(name, CL_INVALID_VALUE, out_code);
    const fake_function *function = program->unit->functions;
    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    REQUIRE_NEW(function, CL_INVALID_KERNEL_NAME, out_code);
    return fake_made(create_kernel(program, function), CL_SUCCESS, out_code);
}

cl_int clCreateKernelsInProgram(cl_program program, cl_uint capacity, cl_kernel *out, cl_uint *out_count)
{
    cl_uint count = 0;
    ENTER("clCreateKernelsInProgram");
    ATTEMPT(fake_check(program, FAKE_PROGRAM));
    REQUIRE(program->unit && program->unit->code == CL_SUCCESS, CL_INVALID_PROGRAM_EXECUTABLE);
    for (const fake_function *at = program->unit->functions; at; at = at->next)
        count++;
    REQUIRE(!out || capacity >= count, CL_INVALID_VALUE);
    if (out_count)
        *out_count = count;
    for (const fake_function *at = program->unit->functions; at && out; at = at->next)
        *out++ = create_kernel(program, at);
    return fake_leave(CL_SUCCESS);
}

void fake_destroy_kernel(void *object)
{
    cl_kernel kernel = object;
    free(kernel->arguments);
    fake_drop(kernel->program);
}

cl_int clRetainKernel(cl_kernel kernel)
{
    ENTER("clRetainKernel");
    return fake_leave(fake_retain(kernel, FAKE_KERNEL));
}

cl_int clReleaseKernel(cl_kernel kernel)
{
    cl_int fault = fake_enter("clReleaseKernel"), code = fake_release(kernel, FAKE_KERNEL);
    return fake_leave(fault != CL_SUCCESS ? fault : code);
}

/* ---- Arguments ---- */

static cl_int set_memory(fake_argument *argument, size_t size, const void *value)
{
    cl_mem memory = NULL;
    if (size != sizeof memory)
        return CL_INVALID_ARG_SIZE;
    if (value)
        memcpy(&memory, value, sizeof memory);
    if (memory && fake_check(memory, FAKE_MEMORY) != CL_SUCCESS)
        return CL_INVALID_MEM_OBJECT;
    argument->memory = memory;
    return CL_SUCCESS;
}

static cl_int set_argument(const fake_parameter *parameter, fake_argument *argument, size_t size, const void *value)
{
    if (parameter->kind == FAKE_ARG_MEMORY)
        return set_memory(argument, size, value);
    if (parameter->kind == FAKE_ARG_LOCAL && value)
        return CL_INVALID_ARG_VALUE;
    if (parameter->kind == FAKE_ARG_VALUE && !value)
        return CL_INVALID_ARG_VALUE;
    if (size == 0 || (parameter->bytes > 0 && size != parameter->bytes))
        return CL_INVALID_ARG_SIZE;
    if (value && size > sizeof argument->value)
        return CL_INVALID_ARG_SIZE;
    if (value)
        memcpy(argument->value, value, size);
    return CL_SUCCESS;
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint at, size_t size, const void *value)
{
    ENTER("clSetKernelArg");
    ATTEMPT(fake_check(kernel, FAKE_KERNEL));
    REQUIRE(at < kernel->function->parameter_count, CL_INVALID_ARG_INDEX);
    fake_argument *argument = &kernel->arguments[at];
    ATTEMPT(set_argument(&kernel->function->parameters[at], argument, size, value));
    argument->bytes = size;
    argument->is_set = true;
    return fake_leave(CL_SUCCESS);
}

/* ---- Launches ---- */

static void run_add(fake_command *command)
{
    int by, element;
    memcpy(&by, command->pattern, sizeof by);
    for (size_t i = 0; i < command->items && (i + 1) * sizeof by <= command->bytes; i++) {
        memcpy(&element, command->to + i * sizeof element, sizeof element);
        element += by;
        memcpy(command->to + i * sizeof element, &element, sizeof element);
    }
}

static void run_scale(fake_command *command)
{
    int by, element;
    memcpy(&by, command->pattern, sizeof by);
    for (size_t i = 0; i < command->items && (i + 1) * sizeof by <= command->bytes; i++) {
        memcpy(&element, command->from + i * sizeof element, sizeof element);
        element *= by;
        memcpy(command->to + i * sizeof element, &element, sizeof element);
    }
}

static void run_nothing(fake_command *command)
{
    (void)command;
}

/* What the kernel computes, from its arguments as they are now. */
static void choose_work(cl_kernel kernel, fake_command *command)
{
    const fake_argument *a = kernel->arguments;
    const cl_uint count = kernel->function->parameter_count;
    command->run = run_nothing;
    if (count == 2 && strcmp(kernel->function->name, "fake_add") == 0 && a[0].memory) {
        command->run = run_add;
        command->to = a[0].memory->data;
        command->bytes = a[0].memory->bytes;
        memcpy(command->pattern, a[1].value, sizeof(int));
    }
    if (count == 4 && strcmp(kernel->function->name, "fake_scale") == 0 && a[0].memory && a[1].memory) {
        command->run = run_scale;
        command->from = a[0].memory->data;
        command->to = a[1].memory->data;
        command->bytes = a[0].memory->bytes < a[1].memory->bytes ? a[0].memory->bytes : a[1].memory->bytes;
        memcpy(command->pattern, a[2].value, sizeof(int));
    }
}

static cl_int check_arguments(cl_command_queue queue, cl_kernel kernel)
{
    size_t local = 0;
    for (cl_uint i = 0; i < kernel->function->parameter_count; i++) {
        const fake_argument *argument = &kernel->arguments[i];
        if (!argument->is_set)
            return CL_INVALID_KERNEL_ARGS;
        if (argument->memory) {
            cl_int code = fake_use_memory("clEnqueueNDRangeKernel", queue, argument->memory, 0, 0);
            if (code != CL_SUCCESS)
                return code;
        }
        if (kernel->function->parameters[i].kind == FAKE_ARG_LOCAL)
            local += argument->bytes;
    }
    return local <= queue->device->local ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

static cl_int check_range(cl_device_id device, const fake_function *function, cl_uint dimensions, const size_t *global,
                          const size_t *local)
{
    size_t group = 1;
    if (dimensions < 1 || dimensions > 3)
        return CL_INVALID_WORK_DIMENSION;
    if (!global)
        return CL_INVALID_GLOBAL_WORK_SIZE;
    if (!local)
        return function->group[0] ? CL_INVALID_WORK_GROUP_SIZE : CL_SUCCESS;
    for (cl_uint i = 0; i < dimensions; i++) {
        if (global[i] == 0)
            return CL_INVALID_GLOBAL_WORK_SIZE;
        if (local[i] == 0 || global[i] % local[i] != 0 || (function->group[0] && local[i] != function->group[i]))
            return CL_INVALID_WORK_GROUP_SIZE;
        if (local[i] > device->group || (i == 2 && local[i] > 64))
            return CL_INVALID_WORK_ITEM_SIZE;
        group *= local[i];
    }
    return group <= device->group ? CL_SUCCESS : CL_INVALID_WORK_GROUP_SIZE;
}

/* The kernel and its buffers, to be held until it has run. Freed by the caller. */
static fake_object **list_held(cl_kernel kernel, size_t *out_count)
{
    fake_object **held = calloc(kernel->function->parameter_count + 1, sizeof *held);
    if (!held)
        abort();
    held[0] = &kernel->object;
    *out_count = 1;
    for (cl_uint i = 0; i < kernel->function->parameter_count; i++)
        if (kernel->arguments[i].memory)
            held[(*out_count)++] = &kernel->arguments[i].memory->object;
    return held;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                              const size_t *global, const size_t *local, cl_uint wait_count, const cl_event *waits,
                              cl_event *out_event)
{
    fake_command launch = {.items = 1};
    (void)offset;
    ENTER("clEnqueueNDRangeKernel");
    ATTEMPT(fake_command_check("clEnqueueNDRangeKernel", queue, wait_count, waits));
    ATTEMPT(fake_check(kernel, FAKE_KERNEL));
    REQUIRE(kernel->program->context == queue->context, CL_INVALID_CONTEXT);
    ATTEMPT(check_range(queue->device, kernel->function, dimensions, global, local));
    ATTEMPT(check_arguments(queue, kernel));
    for (cl_uint i = 0; i < dimensions; i++)
        launch.items *= global[i];
    choose_work(kernel, &launch);
    launch.held = list_held(kernel, &launch.held_count);
    cl_int code =
        fake_command_enqueue(queue, &launch, CL_COMMAND_NDRANGE_KERNEL, wait_count, waits, CL_FALSE, out_event);
    free(launch.held);
    return fake_leave(code);
}

/* ---- Queries ---- */

static cl_int answer_text(const char *text, size_t size, void *out, size_t *out_bytes)
{
    return fake_answer(text, strlen(text) + 1, size, out, out_bytes);
}

cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info what, size_t size, void *out, size_t *out_bytes)
{
    ENTER("clGetKernelInfo");
    ATTEMPT(fake_check(kernel, FAKE_KERNEL));
    switch (what) {
    case CL_KERNEL_FUNCTION_NAME:
        return fake_leave(answer_text(kernel->function->name, size, out, out_bytes));
    case CL_KERNEL_NUM_ARGS:
        return fake_leave(ANSWER(cl_uint, kernel->function->parameter_count));
    case CL_KERNEL_REFERENCE_COUNT:
        return fake_leave(ANSWER(cl_uint, kernel->object.references));
    case CL_KERNEL_CONTEXT:
        return fake_leave(ANSWER(cl_context, kernel->program->context));
    case CL_KERNEL_PROGRAM:
        return fake_leave(ANSWER(cl_program, kernel->program));
    case CL_KERNEL_ATTRIBUTES:
        return fake_leave(answer_text("", size, out, out_bytes));
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}

/* Only for programs built with -cl-kernel-arg-info, as the standard has it. */
cl_int clGetKernelArgInfo(cl_kernel kernel, cl_uint at, cl_kernel_arg_info what, size_t size, void *out,
                          size_t *out_bytes)
{
    ENTER("clGetKernelArgInfo");
    ATTEMPT(fake_check(kernel, FAKE_KERNEL));
    REQUIRE(at < kernel->function->parameter_count, CL_INVALID_ARG_INDEX);
    REQUIRE(strstr(kernel->program->options, "-cl-kernel-arg-info"), CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
    const fake_parameter *parameter = &kernel->function->parameters[at];
    switch (what) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
        return fake_leave(ANSWER(cl_kernel_arg_address_qualifier, parameter->address));
    case CL_KERNEL_ARG_ACCESS_QUALIFIER:
        return fake_leave(ANSWER(cl_kernel_arg_access_qualifier, CL_KERNEL_ARG_ACCESS_NONE));
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
        return fake_leave(ANSWER(cl_kernel_arg_type_qualifier, CL_KERNEL_ARG_TYPE_NONE));
    case CL_KERNEL_ARG_TYPE_NAME:
        return fake_leave(answer_text(parameter->type, size, out, out_bytes));
    case CL_KERNEL_ARG_NAME:
        return fake_leave(answer_text(parameter->name, size, out, out_bytes));
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}

static cl_ulong local_bytes(cl_kernel kernel)
{
    cl_ulong bytes = 0;
    for (cl_uint i = 0; i < kernel->function->parameter_count; i++)
        if (kernel->function->parameters[i].kind == FAKE_ARG_LOCAL)
            bytes += kernel->arguments[i].bytes;
    return bytes;
}

/* Arrays that a kernel declares in local memory are not counted: the scanner does not see them. */
cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t size,
                                void *out, size_t *out_bytes)
{
    ENTER("clGetKernelWorkGroupInfo");
    ATTEMPT(fake_check(kernel, FAKE_KERNEL));
    device = device ? device : kernel->program->context->devices[0];
    REQUIRE(fake_has_device(kernel->program->context, device), CL_INVALID_DEVICE);
    switch (what) {
    case CL_KERNEL_WORK_GROUP_SIZE:
        return fake_leave(ANSWER(size_t, device->group));
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
        return fake_leave(fake_answer(kernel->function->group, sizeof kernel->function->group, size, out, out_bytes));
    case CL_KERNEL_LOCAL_MEM_SIZE:
        return fake_leave(ANSWER(cl_ulong, local_bytes(kernel)));
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
        return fake_leave(ANSWER(size_t, device->type == CL_DEVICE_TYPE_GPU ? 32 : 1));
    case CL_KERNEL_PRIVATE_MEM_SIZE:
        return fake_leave(ANSWER(cl_ulong, 0));
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}
