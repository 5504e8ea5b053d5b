/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "base/verbose.h"
#include "device/trace.h"
#include "device/watch.h"
#include "kernel/build_log.h"
#include "kernel/cache.h"
#include "kernel/native.h"
#include "kernel/program_internal.h"
#include "kernel/reflection.h"
#include "kernel/source.h"
#include <stdlib.h>
#include <string.h>

/* Never a flag that lets the compiler assume there is no NaN or infinity. */
#define STANDARD_OPTIONS "-cl-std=CL1.2"
/* Clang counts its warnings on the standard error of the process, and has some for vectors wider than the processor's.
 */
#define OWN_OPTIONS STANDARD_OPTIONS " -w"
/*
 * pocl's compiler reads the declarations of all functions of OpenCL C for each program, which takes 0.16 s
 * of the 0.23 that a small one takes to build, but not where this says that they have been read. We declare those that
 * we call.
 */
#define DECLARED " -D_OPENCL_H_"

static bool declarations_are(const char *wish)
{
    const char *given = getenv("RUNNEL_DECLARATIONS");
    return given && strcmp(given, wish) == 0;
}

static bool declares(const rnl_program *program)
{
    const rnl_device *device = program->registry->device;
    return program->file && device->binaries_compile && !declarations_are("driver") &&
           !atomic_load(&device->needs_header);
}

/* Not every compiler takes the second of two standards. */
static bool states_standard(const char *options)
{
    return strstr(options, "-cl-std=") != NULL;
}

rnl_status rnl_program_get_text(const rnl_program *program, rnl_text *out_source, rnl_text *out_options)
{
    const char *options = program->options;
    const bool declared = declares(program);
    if (program->file)
        rnl_text_add(out_options, OWN_OPTIONS "%s%s", declared ? DECLARED : "",
                     program->registry->device->asks_for_rounding ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    else
        rnl_text_add(out_options, "%s-cl-kernel-arg-info", states_standard(options) ? "" : STANDARD_OPTIONS " ");
    rnl_text_add(out_options, "%s%s", options[0] ? " " : "", options);
    TRY(out_options->status);
    if (program->file)
        return declared ? rnl_source_get_declared(program->file, out_source)
                        : rnl_source_get(program->file, out_source);
    rnl_text_add_bytes(out_source, program->source, strlen(program->source));
    return out_source->status;
}

rnl_status rnl_program_get_key(const rnl_program *program, rnl_hash *out_key)
{
    rnl_text source = {0}, options = {0};
    rnl_status status = rnl_program_get_text(program, &source, &options);
    if (status == RNL_OK)
        status = rnl_program_cache_key(program->registry->device, source.data, options.data, out_key);
    rnl_text_free(&source);
    rnl_text_free(&options);
    return status;
}

bool rnl_program_is_on_disk(const rnl_program *program)
{
    rnl_hash key;
    return rnl_cache_is_on() && rnl_program_get_key(program, &key) == RNL_OK && rnl_cache_has_file(key);
}

rnl_status rnl_program_get_binary(cl_program program, void **out_binary, size_t *out_size)
{
    size_t size = 0;
    unsigned char *binary;
    *out_binary = NULL;
    TRY(CL(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL)));
    *out_size = size;
    if (size == 0)
        return FAIL(RNL_UNIMPLEMENTED, "the driver gives no binary");
    TRY(rnl_alloc(size, 1, &binary));
    rnl_status status = CL(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL));
    if (status != RNL_OK) {
        rnl_free(binary);
        return status;
    }
    *out_binary = binary;
    return RNL_OK;
}

/* A program to compile, and what it is compiled from. */
typedef struct job {
    const rnl_program *program;
    rnl_device *device;
    rnl_text source, options;
    rnl_compiled *out;
    bool is_refused; /* the compiler found something wrong */
} job;

static rnl_status fail_build(job *build, cl_program program, cl_int code)
{
    rnl_text log = {0};
    if ((code != CL_BUILD_PROGRAM_FAILURE && code != CL_INVALID_BUILD_OPTIONS) ||
        rnl_build_log_get(build->device, program, build->source.data, &log) != RNL_OK) {
        rnl_text_free(&log);
        return rnl_cl_status(code, "clBuildProgram");
    }
    rnl_status status = rnl_build_log_fail(build->device, code, build->options.data, log.data);
    build->out->log = log.data;
    return status;
}

/* Takes the program: releases it when it does not build. */
static rnl_status build_program(job *build, cl_program program)
{
    cl_int code = RNL_CL_RUN(clBuildProgram(program, 1, &build->device->id, build->options.data, NULL, NULL));
    if (code == CL_SUCCESS) {
        build->out->program = program;
        return RNL_OK;
    }
    build->is_refused = code == CL_BUILD_PROGRAM_FAILURE;
    rnl_status status = fail_build(build, program, code);
    clReleaseProgram(program);
    return status;
}

/* What there is to know about a caller's program once it is compiled. Nothing of it is needed to run. */
static rnl_status examine(job *build)
{
    rnl_text reflection = {0}, log = {0};
    rnl_status status = rnl_reflection_get(build->device, build->out->program, &reflection);
    if (status == RNL_OK)
        status = rnl_build_log_get(build->device, build->out->program, build->source.data, &log);
    if (status == RNL_OK) {
        build->out->reflection = reflection.data;
        build->out->log = log.data;
        return RNL_OK;
    }
    rnl_text_free(&reflection);
    rnl_text_free(&log);
    clReleaseProgram(build->out->program);
    build->out->program = NULL;
    return status;
}

/* From a binary, which stays the caller's. */
static rnl_status build_binary(job *build, const void *binary, size_t size)
{
    rnl_device *device = build->device;
    const unsigned char *bytes = binary;
    cl_int code, binary_code = CL_SUCCESS;
    cl_program program =
        CL_NEW(&code, clCreateProgramWithBinary(device->context, 1, &device->id, &size, &bytes, &binary_code, &code));
    if (code == CL_SUCCESS && binary_code == CL_SUCCESS)
        return build_program(build, program);
    if (program)
        clReleaseProgram(program);
    return rnl_cl_status(code != CL_SUCCESS ? code : binary_code, "clCreateProgramWithBinary");
}

/* Its processor's own instructions, instead of the comments that they were to the compiler. */
static rnl_status make_native(job *build)
{
    cl_program program = build->out->program;
    void *binary = NULL;
    size_t size;
    rnl_text text = {0};
    build->out->program = NULL;
    rnl_status status = rnl_program_get_binary(program, &binary, &size);
    clReleaseProgram(program);
    if (status == RNL_OK)
        status = rnl_native_translate(binary, size, &text);
    if (status == RNL_OK)
        status = build_binary(build, text.data, text.length);
    rnl_free(binary);
    rnl_text_free(&text);
    return status;
}

static rnl_status build_source(job *build)
{
    cl_int code;
    const char *source = build->source.data;
    if (!build->device->info.compiler_available)
        return FAIL(RNL_FAILED_PRECONDITION, "%s has no compiler for OpenCL C", build->device->info.name);
    cl_program program = CL_NEW(&code, clCreateProgramWithSource(build->device->context, 1, &source, NULL, &code));
    TRY(rnl_cl_status(code, "clCreateProgramWithSource"));
    TRY(build_program(build, program));
    if (!build->program->file)
        return examine(build);
    return rnl_native_is_asked(build->device, source) ? make_native(build) : RNL_OK;
}

static bool read_cache(job *build, void **out_binary, size_t *out_size)
{
    if (build->program->untracked || !rnl_cache_read(build->out->key, out_binary, out_size))
        return false;
    if (build->program->file || rnl_program_unpack(*out_binary, out_size, &build->out->reflection))
        return true;
    rnl_free(*out_binary);
    return false;
}

static void forget(job *build)
{
    rnl_free(build->out->reflection);
    rnl_free(build->out->log);
    build->out->reflection = build->out->log = NULL;
}

/* False when the cache has none, or the driver does not take it: then the source is compiled. */
static bool build_cached(job *build)
{
    void *binary;
    size_t size;
    if (!read_cache(build, &binary, &size))
        return false;
    const rnl_status status = build_binary(build, binary, size);
    rnl_free(binary);
    if (status != RNL_OK)
        forget(build);
    return status == RNL_OK;
}

static void tell(const job *build, rnl_status status, uint64_t start)
{
    char place[RNL_PLACE_BYTES];
    if (!rnl_verbose_is_on(RNL_VERBOSE_BUILD))
        return;
    rnl_place_text(build->device, place);
    rnl_verbose_write(&(rnl_verbose_event){RNL_VERBOSE_BUILD, place,
                                           status != RNL_OK         ? "failed"
                                           : build->out->from_cache ? "loaded"
                                                                    : "compiled",
                                           build->program->name, build->options.data,
                                           (double)(rnl_clock_ns() - start) / 1e6});
}

static rnl_status load_or_build(job *build)
{
    build->is_refused = false;
    rnl_text_free(&build->source);
    rnl_text_free(&build->options);
    TRY(rnl_program_get_text(build->program, &build->source, &build->options));
    TRY(rnl_program_cache_key(build->device, build->source.data, build->options.data, &build->out->key));
    build->out->from_cache = build_cached(build);
    return build->out->from_cache ? RNL_OK : build_source(build);
}

/* What failed with our declarations, once more with the driver's, which others are built with then, too. */
static rnl_status build_with_header(job *build)
{
    forget(build);
    atomic_store(&build->device->needs_header, true);
    const rnl_status status = load_or_build(build);
    if (status != RNL_OK)
        atomic_store(&build->device->needs_header, false);
    else
        rnl_log(RNL_LOG_WARNING, "%s needs its driver's declarations: programs take longer to compile",
                build->device->info.name);
    return status;
}

rnl_status rnl_program_compile(const rnl_program *program, rnl_compiled *out_compiled)
{
    rnl_device *device = program->registry->device;
    job build = {.program = program, .device = device, .out = out_compiled};
    uint64_t start = rnl_clock_ns(), span = rnl_trace_start();
    const bool declared = declares(program);
    *out_compiled = (rnl_compiled){0};
    rnl_status status = load_or_build(&build);
    if (status != RNL_OK && build.is_refused && declared && !declarations_are("own"))
        status = build_with_header(&build);
    GOTO(status, "building %s", program->name);
    atomic_fetch_add(out_compiled->from_cache ? &device->programs_loaded : &device->programs_compiled, 1);
    rnl_trace_stop(span, "%s %s", out_compiled->from_cache ? "load" : "compile", program->name);
    rnl_log(RNL_LOG_INFO, "%s %s in %.1f ms", out_compiled->from_cache ? "loaded" : "compiled", program->name,
            (double)(rnl_clock_ns() - start) / 1e6);
done:
    tell(&build, status, start);
    rnl_text_free(&build.source);
    rnl_text_free(&build.options);
    return status;
}
