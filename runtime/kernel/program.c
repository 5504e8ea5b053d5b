/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/program.h"

#include "base/memory.h"
#include "base/text.h"
#include "kernel/program_internal.h"
#include "kernel/reflection.h"
#include <string.h>

/* ---- The registry ---- */

static void free_program(rnl_program *program)
{
    if (!program)
        return;
    if (program->program)
        clReleaseProgram(program->program);
    rnl_free(program->file);
    rnl_free(program->source);
    rnl_free(program->options);
    rnl_free(program->name);
    rnl_free(program->reflection);
    rnl_free(program->log);
    rnl_free(program->failure);
    rnl_program_free_functions(program);
    rnl_free(program);
}

static void free_registry(struct rnl_program_registry *registry)
{
    /* What nobody has saved yet is saved with the device's end. */
    rnl_device_save_programs(registry->device);
    rnl_device_finish_saving(registry->device);
    while (registry->programs) {
        rnl_program *next = registry->programs->next;
        free_program(registry->programs);
        registry->programs = next;
    }
    pthread_cond_destroy(&registry->changed);
    pthread_mutex_destroy(&registry->lock);
    rnl_free(registry);
}

static rnl_status make_registry(rnl_device *device)
{
    struct rnl_program_registry *registry;
    TRY(rnl_alloc(1, sizeof *registry, &registry));
    registry->device = device;
    pthread_mutex_init(&registry->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&registry->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    device->programs = registry;
    device->free_programs = free_registry;
    return RNL_OK;
}

rnl_status rnl_program_registry_get(rnl_device *device, struct rnl_program_registry **out_registry)
{
    rnl_status status = RNL_OK;
    pthread_mutex_lock(&device->lock);
    if (!device->programs)
        status = make_registry(device);
    *out_registry = device->programs;
    pthread_mutex_unlock(&device->lock);
    return status;
}

/* ---- Getting ---- */

/* A program as it was asked for. One of `file` and `source` is NULL. */
typedef struct wish {
    const char *file, *source, *options;
    const char *title; /* NULL: the file's name, or "(source)", and the options */
    bool untracked;
} wish;

static rnl_status make_program(const wish *wanted, rnl_program **out_program)
{
    const char *file = wanted->file, *options = wanted->options;
    rnl_program *program;
    rnl_status status = RNL_OK;
    rnl_text name = {0};
    TRY(rnl_alloc(1, sizeof *program, &program));
    if (file)
        GOTO(rnl_strdup(file, &program->file));
    else
        GOTO(rnl_strdup(wanted->source, &program->source));
    GOTO(rnl_strdup(options, &program->options));
    program->untracked = wanted->untracked;
    if (wanted->title)
        rnl_text_add(&name, "%s", wanted->title);
    else
        rnl_text_add(&name, "%s%s%s", file ? file : "(source)", options[0] ? " " : "", options);
    GOTO(name.status);
    program->name = name.data;
    *out_program = program;
    return RNL_OK;
done:
    rnl_text_free(&name);
    free_program(program);
    return status;
}

static rnl_program *find(struct rnl_program_registry *registry, bool ours, rnl_hash text, rnl_hash options)
{
    for (rnl_program *program = registry->programs; program; program = program->next)
        if ((program->file != NULL) == ours && rnl_hash_equal(program->text_hash, text) &&
            rnl_hash_equal(program->options_hash, options))
            return program;
    return NULL;
}

static rnl_status get(rnl_device *device, wish wanted, rnl_program **out_program)
{
    struct rnl_program_registry *registry;
    const char *text = wanted.file ? wanted.file : wanted.source, *options = wanted.options ? wanted.options : "";
    *out_program = NULL;
    if (!text)
        return FAIL(RNL_INVALID_ARGUMENT, "a program needs a source, and there is none");
    wanted.options = options;
    TRY(rnl_program_registry_get(device, &registry));
    rnl_hash text_hash = rnl_hash_bytes(text, strlen(text)), options_hash = rnl_hash_bytes(options, strlen(options));
    rnl_status status = RNL_OK;
    pthread_mutex_lock(&registry->lock);
    rnl_program *program = find(registry, wanted.file != NULL, text_hash, options_hash);
    if (!program) {
        status = make_program(&wanted, &program);
        if (status == RNL_OK) {
            program->registry = registry;
            program->text_hash = text_hash;
            program->options_hash = options_hash;
            program->next = registry->programs;
            registry->programs = program;
        }
    }
    pthread_mutex_unlock(&registry->lock);
    *out_program = status == RNL_OK ? program : NULL;
    return status;
}

rnl_status rnl_program_get(rnl_device *device, const char *file, const char *options, rnl_program **out_program)
{
    return get(device, (wish){.file = file, .options = options}, out_program);
}

rnl_status rnl_program_get_user(rnl_device *device, const char *text, const char *options, const char *title,
                                bool untracked, rnl_program **out_program)
{
    const wish wanted = {.source = text, .options = options, .title = title, .untracked = untracked};
    return get(device, wanted, out_program);
}

/* ---- Building ---- */

/* Keeps this thread's error for those who wait. Without memory for it they get a shorter message. */
static void keep_failure(rnl_program *program)
{
    if (!program->failure)
        program->failure = rnl_malloc(sizeof *program->failure);
    if (program->failure)
        *program->failure = *rnl_last_error();
}

/* Of one that was left. */
static atomic_ullong *count_of(const rnl_program *program)
{
    rnl_device *device = program->registry->device;
    return program->is_new ? &device->programs_compiled : &device->programs_loaded;
}

/* Called with the lock held, which is given up meanwhile. */
static rnl_status build_now(rnl_program *program)
{
    struct rnl_program_registry *registry = program->registry;
    rnl_compiled built = {0};
    program->state = PROGRAM_BUILDING;
    pthread_mutex_unlock(&registry->lock);
    rnl_status status = rnl_program_compile(program, &built);
    pthread_mutex_lock(&registry->lock);
    if (program->is_left)
        atomic_fetch_sub(count_of(program), 1);
    program->is_left = false;
    program->program = built.program;
    program->cache_key = built.key;
    program->from_cache = built.from_cache;
    program->reflection = built.reflection;
    rnl_free(program->log);
    program->log = built.log;
    program->state = status == RNL_OK ? PROGRAM_BUILT : PROGRAM_FAILED;
    if (status != RNL_OK) {
        program->failures++;
        keep_failure(program);
    }
    pthread_cond_broadcast(&registry->changed);
    return status;
}

/* Called with the lock held: waits for the thread that builds, and shares its answer. */
static rnl_status wait_for_build(rnl_program *program)
{
    unsigned failures = program->failures;
    while (program->state == PROGRAM_BUILDING && program->failures == failures)
        pthread_cond_wait(&program->registry->changed, &program->registry->lock);
    if (program->failures == failures)
        return RNL_OK;
    return program->failure ? rnl_error_restore(program->failure)
                            : FAIL(RNL_INTERNAL, "building %s failed in another thread", program->name);
}

rnl_status rnl_program_build(rnl_program *program)
{
    rnl_status status = RNL_OK;
    pthread_mutex_lock(&program->registry->lock);
    if (program->state == PROGRAM_BUILDING)
        status = wait_for_build(program);
    else if (program->state != PROGRAM_BUILT)
        status = build_now(program);
    pthread_mutex_unlock(&program->registry->lock);
    return status;
}

void rnl_program_leave(rnl_program *program)
{
    pthread_mutex_lock(&program->registry->lock);
    if (program->state == PROGRAM_DECLARED && !program->is_left) {
        program->is_left = true;
        program->from_cache = !program->is_new;
        atomic_fetch_add(count_of(program), 1);
    }
    pthread_mutex_unlock(&program->registry->lock);
}

bool rnl_program_is_left(const rnl_program *program)
{
    pthread_mutex_lock(&program->registry->lock);
    const bool is_left = program->is_left;
    pthread_mutex_unlock(&program->registry->lock);
    return is_left;
}

bool rnl_program_is_built(const rnl_program *program)
{
    pthread_mutex_lock(&program->registry->lock);
    bool built = program->state == PROGRAM_BUILT;
    pthread_mutex_unlock(&program->registry->lock);
    return built;
}

bool rnl_program_from_cache(const rnl_program *program)
{
    pthread_mutex_lock(&program->registry->lock);
    bool from_cache = program->from_cache;
    pthread_mutex_unlock(&program->registry->lock);
    return from_cache;
}

const char *rnl_program_name(const rnl_program *program)
{
    return program->name;
}

const char *rnl_program_file(const rnl_program *program)
{
    return program->file ? program->file : "(source)";
}

const char *rnl_program_reflection(const rnl_program *program)
{
    return program->reflection ? program->reflection : "";
}

rnl_status rnl_program_copy_log(rnl_program *program, char **out_log)
{
    pthread_mutex_lock(&program->registry->lock);
    rnl_status status = rnl_strdup(program->log ? program->log : "", out_log);
    pthread_mutex_unlock(&program->registry->lock);
    return status;
}

static rnl_status fail_name(const rnl_program *program, const char *name, cl_int code)
{
    rnl_text names = {0};
    rnl_status status = rnl_reflection_names(program->program, &names);
    if (status == RNL_OK)
        status = rnl_error_set(RNL_NOT_FOUND, code, "there is no kernel '%s' in %s%s%s", name, program->name,
                               names.length > 0 ? "; there are: " : ", nor any other", names.data);
    rnl_text_free(&names);
    return status;
}

rnl_status rnl_program_create_kernel(rnl_program *program, const char *name, cl_kernel *out_kernel)
{
    cl_int code;
    *out_kernel = NULL;
    TRY(rnl_program_build(program));
    cl_kernel kernel = CL_NEW(&code, clCreateKernel(program->program, name, &code));
    if (code == CL_INVALID_KERNEL_NAME || code == CL_INVALID_PROGRAM_EXECUTABLE) /* rusticl, of a program without any */
        return fail_name(program, name, code);
    TRY(rnl_cl_status(code, "clCreateKernel"), "kernel '%s' of %s", name, program->name);
    *out_kernel = kernel;
    return RNL_OK;
}
