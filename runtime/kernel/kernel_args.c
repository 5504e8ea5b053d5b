/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and ranges: checked here, because drivers differ in what they notice, and know no names. */
#include "base/memory.h"
#include "kernel/kernel.h"
#include <stdio.h>
#include <string.h>

#define ARG_TEXT_BYTES 256

/* "3", or "3 (float scale)" where the driver tells. */
static const char *describe(const rnl_kernel *kernel, uint32_t index, char *text)
{
    static const char *const spaces[] = {"", "global ", "constant ", "local "};
    const rnl_kernel_arg_info *info = kernel->args.items ? &kernel->args.items[index] : NULL;
    if (info)
        snprintf(text, ARG_TEXT_BYTES, "%u (%s%s %s)", (unsigned)index, spaces[info->space], info->type, info->name);
    else
        snprintf(text, ARG_TEXT_BYTES, "%u", (unsigned)index);
    return text;
}

static const char *name_of_kind(rnl_arg_kind kind)
{
    return kind == RNL_ARG_VALUE ? "a value" : kind == RNL_ARG_BUFFER ? "a buffer" : "local memory";
}

static rnl_status check_kind(const rnl_kernel *kernel, uint32_t index, const rnl_arg *arg)
{
    static const rnl_arg_kind kinds[] = {
        [RNL_SPACE_PRIVATE] = RNL_ARG_VALUE,
        [RNL_SPACE_GLOBAL] = RNL_ARG_BUFFER,
        [RNL_SPACE_CONSTANT] = RNL_ARG_BUFFER,
        [RNL_SPACE_LOCAL] = RNL_ARG_LOCAL,
    };
    char text[ARG_TEXT_BYTES];
    if (!kernel->args.items)
        return RNL_OK;
    const rnl_address_space space = kernel->args.items[index].space;
    /* Images and samplers count as values or as global memory, depending on the driver. */
    const bool plain = space == RNL_SPACE_LOCAL || kernel->arg_bytes[index] > 0 ||
                       (space != RNL_SPACE_PRIVATE && kernel->args.items[index].type[0] &&
                        kernel->args.items[index].type[strlen(kernel->args.items[index].type) - 1] == '*');
    if (plain && arg->kind != kinds[space])
        return FAIL(RNL_INVALID_ARGUMENT, "argument %s is %s, and %s was given", describe(kernel, index, text),
                    name_of_kind(kinds[space]), name_of_kind(arg->kind));
    if (arg->kind == RNL_ARG_VALUE && kernel->arg_bytes[index] > 0 && arg->size_bytes != kernel->arg_bytes[index])
        return FAIL(RNL_INVALID_ARGUMENT, "argument %s has %zu bytes, and %zu were given",
                    describe(kernel, index, text), kernel->arg_bytes[index], arg->size_bytes);
    return RNL_OK;
}

rnl_status rnl_kernel_check_arg(const rnl_kernel *kernel, uint32_t index, const rnl_arg *arg)
{
    char text[ARG_TEXT_BYTES];
    switch (arg->kind) {
    case RNL_ARG_BUFFER:
        if (!arg->buffer)
            return FAIL(RNL_INVALID_ARGUMENT, "argument %s has no buffer", describe(kernel, index, text));
        if (arg->buffer->device != kernel->device)
            return FAIL(RNL_INVALID_ARGUMENT, "argument %s is a buffer of %s, which is another device",
                        describe(kernel, index, text), arg->buffer->device->info.name);
        break;
    case RNL_ARG_VALUE:
        if (!arg->value || arg->size_bytes == 0)
            return FAIL(RNL_INVALID_ARGUMENT, "argument %s has no value", describe(kernel, index, text));
        break;
    case RNL_ARG_LOCAL:
        if (arg->size_bytes == 0)
            return FAIL(RNL_INVALID_ARGUMENT, "argument %s asks for 0 bytes of local memory",
                        describe(kernel, index, text));
        break;
    default:
        return FAIL(RNL_INVALID_ARGUMENT, "argument %s is of the unknown kind %d", describe(kernel, index, text),
                    (int)arg->kind);
    }
    return check_kind(kernel, index, arg);
}

static cl_int set_arg(cl_kernel object, uint32_t index, const rnl_arg *arg)
{
    switch (arg->kind) {
    case RNL_ARG_BUFFER:
        return clSetKernelArg(object, index, sizeof arg->buffer->memory, &arg->buffer->memory);
    case RNL_ARG_VALUE:
        return clSetKernelArg(object, index, arg->size_bytes, arg->value);
    default:
        return clSetKernelArg(object, index, arg->size_bytes, NULL);
    }
}

rnl_status rnl_kernel_set_arg(const rnl_kernel *kernel, cl_kernel object, uint32_t index, const rnl_arg *arg)
{
    char text[ARG_TEXT_BYTES];
    const cl_int code = RNL_CL_RUN(set_arg(object, index, arg));
    if (code == CL_SUCCESS)
        return RNL_OK;
    return rnl_error_add(rnl_cl_status(code, "clSetKernelArg"), "argument %s, given as %s of %zu bytes",
                         describe(kernel, index, text), name_of_kind(arg->kind),
                         arg->kind == RNL_ARG_BUFFER ? arg->buffer->size_bytes : arg->size_bytes);
}

rnl_status rnl_kernel_local_bytes(const rnl_kernel *kernel, const rnl_arg *args, size_t arg_count, size_t *out_bytes)
{
    *out_bytes = 0;
    for (size_t i = 0; i < arg_count; i++)
        if (args[i].kind == RNL_ARG_LOCAL && !rnl_size_add(*out_bytes, args[i].size_bytes, out_bytes))
            return FAIL(RNL_RESOURCE_EXHAUSTED, "kernel '%s' asks for too much local memory", kernel->name);
    return RNL_OK;
}

rnl_status rnl_kernel_check_range(const rnl_kernel *kernel, cl_kernel object, const rnl_range *range,
                                  size_t local_bytes)
{
    const size_t *required = kernel->required;
    TRY(rnl_kernel_check(kernel->device, object, range, kernel->static_local_bytes, local_bytes));
    for (uint32_t i = 0; required[0] > 0 && i < 3; i++) {
        const size_t given = i < range->dimensions ? range->local[i] : 1;
        if (given != required[i])
            return FAIL(RNL_INVALID_ARGUMENT,
                        "a work-group of %zu work-items in dimension %u was asked for, and the "
                        "kernel requires %zu",
                        given, (unsigned)i, required[i]);
    }
    return RNL_OK;
}
