/* SPDX-License-Identifier: Apache-2.0 */
/* A program and a device's programs, for the files of this folder. */
#ifndef RUNNEL_KERNEL_PROGRAM_INTERNAL_H
#define RUNNEL_KERNEL_PROGRAM_INTERNAL_H

#include "base/hash.h"
#include "kernel/program.h"

typedef enum program_state { PROGRAM_DECLARED, PROGRAM_BUILDING, PROGRAM_BUILT, PROGRAM_FAILED } program_state;

struct rnl_program {
    struct rnl_program_registry *registry;
    struct rnl_program *next;
    char *file;   /* of ours; NULL for a caller's source */
    char *source; /* a caller's */
    char *options, *name;
    rnl_hash text_hash, options_hash; /* of the file's name or the caller's source, and of the options */
    /* Guarded by the registry's lock, and fixed once built. */
    program_state state;
    cl_program program;
    rnl_hash cache_key;
    bool from_cache, to_save, saved; /* saved: or tried */
    rnl_error *failure;              /* of the last build, for those who waited for it */
    unsigned failures;
};

struct rnl_program_registry {
    rnl_device *device; /* which owns the registry */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a build has ended, or there is a hurry; on the monotonic clock */
    rnl_program *programs;
    pthread_t saver;
    bool has_saver, saving; /* a thread is to be joined; it will look at the list again before it ends */
    bool hurry;             /* somebody waits for it */
};

/* The device's registry, made with its first program. */
RNL_NODISCARD rnl_status rnl_program_registry_get(rnl_device *device, struct rnl_program_registry **out_registry);

/* Builds from the disk cache or from source; no lock is held. */
RNL_NODISCARD rnl_status rnl_program_compile(const rnl_program *program, cl_program *out_program, rnl_hash *out_key,
                                             bool *out_from_cache);

#endif
