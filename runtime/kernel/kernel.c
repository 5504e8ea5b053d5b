/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the caller's own source. */
#include "kernel/kernel.h"

#include "base/memory.h"
#include "kernel/user_source.h"
#include <string.h>

static rnl_status copy_options(const rnl_kernel_options *given, rnl_kernel_options *out_options)
{
    *out_options = (rnl_kernel_options)RNL_KERNEL_OPTIONS_INIT;
    if (!given)
        return RNL_OK;
    if (given->struct_size < sizeof given->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "kernel options were not initialised with RNL_KERNEL_OPTIONS_INIT");
    memcpy(out_options, given, given->struct_size < sizeof *out_options ? given->struct_size : sizeof *out_options);
    if ((out_options->define_count > 0 && !out_options->defines) ||
        (out_options->include_folder_count > 0 && !out_options->include_folders))
        return FAIL(RNL_INVALID_ARGUMENT, "kernel options count defines or include folders that are not there");
    return RNL_OK;
}

static rnl_status find_program(rnl_device *device, const char *source, const char *path,
                               const rnl_kernel_options *options, rnl_program **out_program)
{
    rnl_user_source made;
    *out_program = NULL;
    TRY(rnl_user_source_make(source, path, options, &made));
    rnl_status status = rnl_program_get_user(device, made.text.data, options->build_options, made.title.data,
                                             made.untracked, out_program);
    rnl_user_source_free(&made);
    return status;
}

/* Hands the log out, of a failure too, which stays this thread's error. */
static rnl_status give_log(rnl_status built, rnl_program *program, const rnl_kernel_options *options, char **out_log)
{
    const rnl_error error = *rnl_last_error();
    rnl_status status = rnl_program_copy_log(program, out_log);
    if (status == RNL_OK && options->log && (*out_log)[0])
        options->log(options->log_user, *out_log, strlen(*out_log));
    return built == RNL_OK ? status : rnl_error_restore(&error);
}

static rnl_status fill_kernel(rnl_kernel *kernel, const char *source, const char *path, const char *name,
                              const rnl_kernel_options *options)
{
    TRY(rnl_strdup(name, &kernel->name));
    TRY(find_program(kernel->device, source, path, options, &kernel->program));
    TRY(give_log(rnl_program_build(kernel->program), kernel->program, options, &kernel->build_log));
    TRY(rnl_program_create_kernel(kernel->program, name, &kernel->kernel));
    return rnl_kernel_describe(kernel);
}

static rnl_status create(rnl_device *device, const char *source, const char *path, const char *name,
                         const rnl_kernel_options *given, rnl_kernel **out_kernel)
{
    rnl_kernel *kernel;
    rnl_kernel_options options;
    *out_kernel = NULL;
    if ((!source && !path) || !name)
        return FAIL(RNL_INVALID_ARGUMENT, "a kernel needs a source and a name");
    TRY(copy_options(given, &options));
    TRY(rnl_alloc(1, sizeof *kernel, &kernel));
    atomic_init(&kernel->references, 1);
    kernel->device = rnl_device_retain(device);
    rnl_status status = fill_kernel(kernel, source, path, name, &options);
    if (status != RNL_OK) {
        rnl_kernel_release(kernel);
        return status;
    }
    *out_kernel = kernel;
    return RNL_OK;
}

rnl_status rnl_kernel_create(rnl_device *device, const char *source, const char *options, const char *name,
                             rnl_kernel **out_kernel)
{
    rnl_kernel_options whole = RNL_KERNEL_OPTIONS_INIT;
    whole.build_options = options;
    return create(device, source, NULL, name, &whole, out_kernel);
}

rnl_status rnl_kernel_create_with(rnl_device *device, const char *source, const char *name,
                                  const rnl_kernel_options *options, rnl_kernel **out_kernel)
{
    return create(device, source, NULL, name, options, out_kernel);
}

rnl_status rnl_kernel_load(rnl_device *device, const char *path, const char *name, const rnl_kernel_options *options,
                           rnl_kernel **out_kernel)
{
    return create(device, NULL, path, name, options, out_kernel);
}

rnl_kernel *rnl_kernel_retain(rnl_kernel *kernel)
{
    if (kernel)
        atomic_fetch_add_explicit(&kernel->references, 1, memory_order_relaxed);
    return kernel;
}

void rnl_kernel_release(rnl_kernel *kernel)
{
    if (!kernel || atomic_fetch_sub_explicit(&kernel->references, 1, memory_order_acq_rel) != 1)
        return;
    if (kernel->kernel)
        clReleaseKernel(kernel->kernel);
    rnl_device_release(kernel->device);
    rnl_reflected_free(&kernel->args);
    rnl_free(kernel->arg_bytes);
    rnl_free(kernel->build_log);
    rnl_free(kernel->name);
    rnl_free(kernel);
}

const char *rnl_kernel_build_log(const rnl_kernel *kernel)
{
    return kernel->build_log;
}
