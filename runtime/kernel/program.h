/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs: one of our .cl files (or a caller's source) with one set of defines, built once for a device and kept, in
 * memory for the device's life and on disk for the next process.
 *
 * Getting a program is cheap and compiles nothing: planning collects the programs it needs and builds those that are
 * new.
 */
#ifndef RUNNEL_KERNEL_PROGRAM_H
#define RUNNEL_KERNEL_PROGRAM_H

#include "base/hash.h"
#include "device/device.h"

typedef struct rnl_program rnl_program;

/* `file` is an embedded file's name ("conv.cl"); `options` the -D set in a canonical order. Borrowed, lives as long as
 * the device. */
RNL_API RNL_NODISCARD rnl_status rnl_program_get(rnl_device *device, const char *file, const char *options,
                                                 rnl_program **out_program);
/* The same for a caller's source with its includes. `title` is what messages call it, NULL: "(source)" and the options;
 * `untracked` keeps it out of the cache. */
RNL_API RNL_NODISCARD rnl_status rnl_program_get_user(rnl_device *device, const char *text, const char *options,
                                                      const char *title, bool untracked, rnl_program **out_program);
/* Builds from the disk cache or from source, once; other threads wait for the one that builds. */
RNL_API RNL_NODISCARD rnl_status rnl_program_build(rnl_program *program);
RNL_API bool rnl_program_is_built(const rnl_program *program);
/*
 * That its kernels' functions are used without it: until it is built, it counts as loaded from the cache, or compiled
 * where another process has done so for this one.
 */
RNL_API void rnl_program_leave(rnl_program *program);
RNL_API bool rnl_program_is_left(const rnl_program *program);
RNL_API bool rnl_program_from_cache(const rnl_program *program);
/* "conv.cl -DSRC=F32 …": for messages. Borrowed. */
RNL_API const char *rnl_program_name(const rnl_program *program);
RNL_API const char *rnl_program_file(const rnl_program *program);
/* What the kernels of a caller's program take (reflection.h); "" when that is not known. Borrowed, once it is built. */
RNL_API const char *rnl_program_reflection(const rnl_program *program);
/* What the compiler said when it last built a caller's program; "" when nothing. Freed with rnl_free(). */
RNL_API RNL_NODISCARD rnl_status rnl_program_copy_log(rnl_program *program, char **out_log);
/* A kernel object of the caller's own (clSetKernelArg is not thread-safe for a shared one). Builds first when needed.
 */
RNL_API RNL_NODISCARD rnl_status rnl_program_create_kernel(rnl_program *program, const char *name,
                                                           cl_kernel *out_kernel);
/* Of everything that a compiled program depends on: source, options, device, driver, processor. */
RNL_NODISCARD rnl_status rnl_program_cache_key(const rnl_device *device, const char *source, const char *options,
                                               rnl_hash *out_key);
/*
 * Writes what was compiled from source since the last call to the disk cache. Called after a first launch: some drivers
 * compile then, and their binary holds what was compiled so far. A failure is one warning in the log, never an error.
 * On pocl a thread of the device's does it, bit by bit; the device's release hurries it and waits for it, and a process
 * that ends without releasing the device loses what is not saved yet. The environment must not change meanwhile.
 */
RNL_API void rnl_device_save_programs(rnl_device *device);
/* Has that thread save all at once, and waits for it. */
RNL_API void rnl_device_finish_saving(rnl_device *device);

#endif
