/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel takes and needs. */
#include "base/memory.h"
#include "kernel/kernel.h"

static rnl_status ask_group(const rnl_kernel *kernel, cl_kernel_work_group_info what, size_t bytes, void *out_value)
{
    return CL(clGetKernelWorkGroupInfo(kernel->kernel, kernel->device->id, what, bytes, out_value, NULL));
}

static rnl_status find_arg_bytes(rnl_kernel *kernel)
{
    TRY(rnl_alloc(kernel->arg_count, sizeof *kernel->arg_bytes, &kernel->arg_bytes));
    for (cl_uint i = 0; kernel->args.items && i < kernel->arg_count; i++)
        if (kernel->args.items[i].space == RNL_SPACE_PRIVATE)
            kernel->arg_bytes[i] = rnl_reflection_type_bytes(kernel->args.items[i].type);
    return RNL_OK;
}

rnl_status rnl_kernel_describe(rnl_kernel *kernel)
{
    TRY(rnl_kernel_static_local(kernel->device, kernel->kernel, &kernel->static_local_bytes));
    TRY(CL(clGetKernelInfo(kernel->kernel, CL_KERNEL_NUM_ARGS, sizeof kernel->arg_count, &kernel->arg_count, NULL)));
    TRY(ask_group(kernel, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof kernel->required, kernel->required));
    TRY(rnl_reflection_find(rnl_program_reflection(kernel->program), kernel->name, kernel->arg_count, &kernel->args));
    return find_arg_bytes(kernel);
}

rnl_status rnl_kernel_get_info(const rnl_kernel *kernel, rnl_kernel_info *out_info)
{
    rnl_kernel_info info = {.name = kernel->name, .arg_count = kernel->arg_count};
    cl_ulong private_bytes = 0;
    *out_info = (rnl_kernel_info){0};
    info.has_arg_info = kernel->args.items != NULL;
    info.from_cache = rnl_program_from_cache(kernel->program);
    for (int i = 0; i < 3; i++)
        info.required_group[i] = kernel->required[i];
    info.local_memory_bytes = kernel->static_local_bytes;
    TRY(rnl_kernel_max_group(kernel->device, kernel->kernel, &info.max_group_items));
    TRY(ask_group(kernel, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof info.preferred_multiple,
                  &info.preferred_multiple));
    TRY(ask_group(kernel, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof private_bytes, &private_bytes));
    info.private_memory_bytes = private_bytes;
    *out_info = info;
    return RNL_OK;
}

rnl_status rnl_kernel_get_arg(const rnl_kernel *kernel, uint32_t index, rnl_kernel_arg_info *out_arg)
{
    *out_arg = (rnl_kernel_arg_info){0};
    if (index >= kernel->arg_count)
        return FAIL(RNL_INVALID_ARGUMENT, "kernel '%s' has %u arguments, and number %u was asked for", kernel->name,
                    (unsigned)kernel->arg_count, (unsigned)index);
    if (!kernel->args.items)
        return FAIL(RNL_UNIMPLEMENTED, "the driver of %s does not tell what kernel '%s' takes",
                    kernel->device->info.name, kernel->name);
    *out_arg = kernel->args.items[index];
    return RNL_OK;
}
