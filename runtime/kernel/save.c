/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/memory.h"
#include "kernel/cache.h"
#include "kernel/program_internal.h"
#include <stdlib.h>

/* The program's binary for its one device; freed with free(). */
static rnl_status get_binary(cl_program program, void **out_binary, size_t *out_size)
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
        free(binary);
        return status;
    }
    *out_binary = binary;
    return RNL_OK;
}

static void save(const rnl_program *program)
{
    void *binary;
    size_t size;
    if (get_binary(program->program, &binary, &size) != RNL_OK) {
        rnl_log(RNL_LOG_WARNING, "%s is not kept: %s", program->name, rnl_last_error()->message);
        return;
    }
    rnl_cache_write(program->cache_key, binary, size);
    free(binary);
}

/* Marks and returns a program to save, so that no two threads save one. Built programs do not change any more. */
static rnl_program *next_unsaved(struct rnl_program_registry *registry)
{
    pthread_mutex_lock(&registry->lock);
    rnl_program *program = registry->programs;
    while (program && (program->state != PROGRAM_BUILT || program->from_cache || program->saved))
        program = program->next;
    if (program)
        program->saved = true;
    pthread_mutex_unlock(&registry->lock);
    return program;
}

void rnl_device_save_programs(rnl_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct rnl_program_registry *registry = device->programs;
    pthread_mutex_unlock(&device->lock);
    if (!registry || !rnl_cache_is_on())
        return;
    rnl_error before = *rnl_last_error();
    rnl_program *program;
    bool any = false;
    while ((program = next_unsaved(registry))) {
        save(program);
        any = true;
    }
    if (any)
        rnl_cache_trim();
    rnl_error_restore(&before); /* nothing here is the caller's failure */
}
