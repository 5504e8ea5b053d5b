/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "kernel/cache.h"
#include "kernel/program_internal.h"
#include "kernel/source.h"
#include <string.h>

/* Never a flag that lets the compiler assume there is no NaN or infinity. */
#define STANDARD_OPTIONS "-cl-std=CL1.2"

/* The compiler's log, "" when it has none; freed with rnl_free(). */
static rnl_status get_build_log(const rnl_device *device, cl_program program, char **out_log)
{
    size_t bytes = 0;
    char *log;
    *out_log = NULL;
    TRY(CL(clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes)));
    TRY(rnl_alloc(bytes + 1, 1, &log));
    rnl_status status = CL(clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL));
    if (status != RNL_OK) {
        rnl_free(log);
        return status;
    }
    for (size_t end = strlen(log); end > 0 && strchr(" \n\r", log[end - 1]); end--)
        log[end - 1] = '\0';
    *out_log = log;
    return RNL_OK;
}

static rnl_status fail_build(const rnl_device *device, cl_program program, cl_int code)
{
    char *log = NULL;
    if (code != CL_BUILD_PROGRAM_FAILURE || get_build_log(device, program, &log) != RNL_OK)
        return rnl_cl_status(code, "clBuildProgram");
    rnl_status status = rnl_error_set(RNL_INVALID_ARGUMENT, code, "the OpenCL compiler of %s refuses the source:\n%s",
                                      device->info.name, log[0] ? log : "(it does not say why)");
    rnl_free(log);
    return status;
}

/* Takes the program: releases it when it does not build. */
static rnl_status build(const rnl_device *device, cl_program program, const char *options, cl_program *out_program)
{
    cl_int code = RNL_CL_RUN(clBuildProgram(program, 1, &device->id, options, NULL, NULL));
    if (code == CL_SUCCESS) {
        *out_program = program;
        return RNL_OK;
    }
    rnl_status status = fail_build(device, program, code);
    clReleaseProgram(program);
    return status;
}

static rnl_status build_source(const rnl_device *device, const char *source, const char *options,
                               cl_program *out_program)
{
    cl_int code;
    cl_program program = CL_NEW(&code, clCreateProgramWithSource(device->context, 1, &source, NULL, &code));
    TRY(rnl_cl_status(code, "clCreateProgramWithSource"));
    return build(device, program, options, out_program);
}

/* False when the cache has none, or the driver does not take it: then the source is compiled. */
static bool build_cached(const rnl_device *device, rnl_hash key, const char *options, cl_program *out_program)
{
    void *binary;
    size_t size;
    cl_int code, binary_code = CL_SUCCESS;
    if (!rnl_cache_read(key, &binary, &size))
        return false;
    const unsigned char *bytes = binary;
    cl_program program =
        CL_NEW(&code, clCreateProgramWithBinary(device->context, 1, &device->id, &size, &bytes, &binary_code, &code));
    rnl_free(binary);
    if (code == CL_SUCCESS && binary_code == CL_SUCCESS)
        return build(device, program, options, out_program) == RNL_OK;
    if (program)
        clReleaseProgram(program);
    return false;
}

static rnl_status get_text(const rnl_program *program, rnl_text *out_source, rnl_text *out_options)
{
    const bool rounding = program->file && program->registry->device->asks_for_rounding;
    rnl_text_add(out_options, STANDARD_OPTIONS "%s%s%s", rounding ? " -cl-fp32-correctly-rounded-divide-sqrt" : "",
                 program->options[0] ? " " : "", program->options);
    TRY(out_options->status);
    if (program->file)
        return rnl_source_get(program->file, out_source);
    rnl_text_add_bytes(out_source, program->source, strlen(program->source));
    return out_source->status;
}

rnl_status rnl_program_compile(const rnl_program *program, cl_program *out_program, rnl_hash *out_key,
                               bool *out_from_cache)
{
    rnl_device *device = program->registry->device;
    rnl_text source = {0}, options = {0};
    rnl_status status = RNL_OK;
    uint64_t start = rnl_clock_ns();
    GOTO(get_text(program, &source, &options), "building %s", program->name);
    GOTO(rnl_program_cache_key(device, source.data, options.data, out_key), "building %s", program->name);
    *out_from_cache = build_cached(device, *out_key, options.data, out_program);
    if (!*out_from_cache) {
        if (!device->info.compiler_available)
            GOTO(FAIL(RNL_FAILED_PRECONDITION, "%s has no compiler for OpenCL C", device->info.name), "building %s",
                 program->name);
        GOTO(build_source(device, source.data, options.data, out_program), "building %s", program->name);
    }
    atomic_fetch_add(*out_from_cache ? &device->programs_loaded : &device->programs_compiled, 1);
    rnl_log(RNL_LOG_INFO, "%s %s in %.1f ms", *out_from_cache ? "loaded" : "compiled", program->name,
            (double)(rnl_clock_ns() - start) / 1e6);
done:
    rnl_text_free(&source);
    rnl_text_free(&options);
    return status;
}
