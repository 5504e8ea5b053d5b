/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program cache on disk. A file is: magic, format version, payload length, key, payload, and XXH3-128 of all of
 * that. Everything is verified before a caller sees the payload, because drivers crash on binaries that are cut off.
 * What goes wrong here is never an error: at most one warning in the log, and the caller compiles.
 */
#ifndef RUNNEL_KERNEL_CACHE_H
#define RUNNEL_KERNEL_CACHE_H

#include "base/hash.h"

#define RNL_CACHE_FORMAT_VERSION 1u
#define RNL_CACHE_HEADER_BYTES 40u
#define RNL_CACHE_HASH_BYTES 16u
#define RNL_CACHE_SUFFIX ".rnlprog"
#define RNL_CACHE_LIBRARY_SUFFIX ".rnllib"

/* False when the cache is off, or was found unusable for writing. */
bool rnl_cache_is_on(void);
/* True when there is a sound file for `key`; *out_payload is freed with rnl_free(). */
bool rnl_cache_read(rnl_hash key, void **out_payload, size_t *out_size);
/* There is a file for `key`, sound or not. */
bool rnl_cache_has_file(rnl_hash key);
/* Replaces the file for `key`. */
void rnl_cache_write(rnl_hash key, const void *payload, size_t size);
/*
 * Libraries, for the system's loader: it wants a file that begins with them, so key and hash are behind. The path is
 * that of a sound one.
 */
bool rnl_cache_find_library(rnl_hash key, char *out_path, size_t capacity);
void rnl_cache_write_library(rnl_hash key, const void *library, size_t size);
/* Deletes the oldest files until the folder is within RUNNEL_CACHE_MAX_MB (512), and what writers that died left. */
void rnl_cache_trim(void);

/* The file format, for the two above. Verifies `file`; the payload lies within it. */
bool rnl_cache_unpack(const void *file, size_t file_size, rnl_hash key, size_t *out_offset, size_t *out_size);
/* The whole file around a payload; freed with rnl_free(). */
RNL_NODISCARD rnl_status rnl_cache_pack(rnl_hash key, const void *payload, size_t size, void **out_file,
                                        size_t *out_file_size);
/* The same around a library. */
bool rnl_cache_check_library(const void *file, size_t file_size, rnl_hash key);
RNL_NODISCARD rnl_status rnl_cache_pack_library(rnl_hash key, const void *library, size_t size, void **out_file,
                                                size_t *out_file_size);
/* The file's name in the cache folder. */
void rnl_cache_file_name(rnl_hash key, const char *suffix, char *out_name, size_t capacity);

#endif
