/* SPDX-License-Identifier: Apache-2.0 */
/* A program and a device's programs, for the files of this folder. */
#ifndef RUNNEL_KERNEL_PROGRAM_INTERNAL_H
#define RUNNEL_KERNEL_PROGRAM_INTERNAL_H

#include "base/hash.h"
#include "base/text.h"
#include "kernel/program.h"

typedef enum program_state { PROGRAM_DECLARED, PROGRAM_BUILDING, PROGRAM_BUILT, PROGRAM_FAILED } program_state;

struct rnl_program {
    struct rnl_program_registry *registry;
    struct rnl_program *next;
    char *file;   /* of ours; NULL for a caller's source */
    char *source; /* a caller's */
    char *options, *name;
    bool untracked;                   /* not all of its source is known: it is not kept */
    rnl_hash text_hash, options_hash; /* of the file's name or the caller's source, and of the options */
    /* Guarded by the registry's lock, and fixed once built. */
    program_state state;
    cl_program program;
    rnl_hash cache_key;
    bool from_cache, to_save, saved; /* saved: or tried */
    char *reflection, *log;          /* of a caller's program; NULL when there is none */
    rnl_error *failure;              /* of the last build, for those who waited for it */
    unsigned failures;
    struct rnl_program_function *functions; /* kernel/team_functions.c; under the registry's lock */
    rnl_hash library_key;                   /* of what it would be built from, once `has_library_key` */
    bool has_library_key, is_left, is_new;  /* is_new: another process has compiled it for this one */
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

/* What the driver compiles, and how. */
RNL_NODISCARD rnl_status rnl_program_get_text(const rnl_program *program, rnl_text *out_source, rnl_text *out_options);
/* Of what it would be built from now. */
RNL_NODISCARD rnl_status rnl_program_get_key(const rnl_program *program, rnl_hash *out_key);
/* The disk cache has a file for it, sound or not. */
bool rnl_program_is_on_disk(const rnl_program *program);

/* Functions of its kernels, which teams call (kernel/team_functions.c). */
void rnl_program_free_functions(rnl_program *program);
/* That another process has found a kernel's function in this library: keeps it on disk. */
void rnl_program_keep_library(rnl_program *program, const char *kernel, const char *path);

/* What building gives. */
typedef struct rnl_compiled {
    cl_program program; /* NULL when it fails */
    rnl_hash key;
    bool from_cache;
    char *reflection, *log; /* of a caller's program; NULL when there is none. The log also when it fails */
} rnl_compiled;

/* Builds from the disk cache or from source; no lock is held. */
RNL_NODISCARD rnl_status rnl_program_compile(const rnl_program *program, rnl_compiled *out_compiled);

/* What the driver gives of a built program for its one device; freed with rnl_free(). */
RNL_NODISCARD rnl_status rnl_program_get_binary(cl_program program, void **out_binary, size_t *out_size);

/*
 * A caller's program is kept with its reflection behind its binary: packs them, and takes them apart. Unpacking
 * shortens *size to the binary's. *out_reflection is freed with rnl_free(); false when the file is none of ours.
 */
RNL_NODISCARD rnl_status rnl_program_pack(void **binary, size_t *size, const char *reflection);
bool rnl_program_unpack(const void *binary, size_t *size, char **out_reflection);

#endif
