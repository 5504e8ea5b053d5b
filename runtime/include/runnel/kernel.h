/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of your own: from text or from a file, with defines; what a kernel takes; the compiler's whole log.
 * rt.h has the short form, rnl_kernel_create, and launching.
 */
#ifndef RUNNEL_KERNEL_H
#define RUNNEL_KERNEL_H

#include <runnel/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All of it is read before the call returns; nothing is kept. */
typedef struct rnl_kernel_options {
    size_t struct_size;
    /* "NAME=VALUE", or "NAME" for 1: as #define lines before the source, so a value may hold blanks and quotes, but no
     * line break. NAME is an identifier. */
    const char *const *defines;
    size_t define_count;
    const char *build_options; /* for the OpenCL compiler ("-cl-std=CL3.0 -cl-mad-enable"); NULL for none */
    const char *source_name;   /* what messages call a source that is text; NULL: "(source)". A file has its path */
    /* Where #include files are looked for, in this order; those in quotes in the including file's folder first. They
     * become part of the source, so that a change of one is noticed by the cache. */
    const char *const *include_folders;
    size_t include_folder_count;
    /* Given the compiler's whole log, in the calling thread, before the call returns; not called when there is none, as
     * for what comes from the cache. The log names the caller's files and lines. */
    void (*log)(void *user, const char *log, size_t length);
    void *log_user;
} rnl_kernel_options;
#define RNL_KERNEL_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(rnl_kernel_options), NULL, 0, NULL, NULL, NULL, 0, NULL, NULL                                           \
    }

/*
 * Builds a source, or takes it from the caches, and gets its kernel `name`. `options` may be NULL. Several kernels of
 * one source with the same options are built once. Any thread.
 * RNL_INVALID_ARGUMENT: it does not compile; the message has the first errors, with files and lines. Or a define is not
 * one. RNL_NOT_FOUND: there is no such kernel, and the message lists those there are; or no such file.
 */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_create_with(rnl_device *device, const char *source, const char *name,
                                                        const rnl_kernel_options *options, rnl_kernel **out_kernel);
/* The same for a file of at most 4 MiB; with its includes 16 MiB. */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_load(rnl_device *device, const char *path, const char *name,
                                                 const rnl_kernel_options *options, rnl_kernel **out_kernel);

typedef struct rnl_kernel_info {
    const char *name; /* borrowed: as long as the kernel */
    uint32_t arg_count;
    bool has_arg_info;             /* rnl_kernel_get_arg has an answer */
    bool from_cache;               /* it was not compiled by this process */
    size_t max_group_items;        /* the largest work-group that this kernel allows on its device */
    size_t preferred_multiple;     /* work-groups are best a multiple of it */
    size_t required_group[3];      /* reqd_work_group_size; 0 where any will do */
    uint64_t local_memory_bytes;   /* that the kernel declares; NVIDIA's is 0: see devices.md */
    uint64_t private_memory_bytes; /* of a work-item, as the driver counts it; 0 when it does not say */
} rnl_kernel_info;
/* Any thread. */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_get_info(const rnl_kernel *kernel, rnl_kernel_info *out_info);

typedef enum rnl_address_space {
    RNL_SPACE_PRIVATE, /* a value */
    RNL_SPACE_GLOBAL,
    RNL_SPACE_CONSTANT,
    RNL_SPACE_LOCAL
} rnl_address_space;

typedef struct rnl_kernel_arg_info {
    const char *name, *type; /* "weights", "float4*"; borrowed: as long as the kernel */
    rnl_address_space space;
    bool is_const, is_restrict, is_volatile; /* of what a pointer points to */
} rnl_kernel_arg_info;
/*
 * The argument `index`, from 0. RNL_UNIMPLEMENTED where the driver does not tell; it is asked when a source is
 * compiled, and the answer is kept with the program in the cache. Any thread.
 */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_get_arg(const rnl_kernel *kernel, uint32_t index,
                                                    rnl_kernel_arg_info *out_arg);
/* What the compiler said to a source that it took: warnings, or "". "" too when it comes from the cache. Borrowed. */
RNL_API const char *rnl_kernel_build_log(const rnl_kernel *kernel);

#ifdef __cplusplus
}
#endif
#endif
