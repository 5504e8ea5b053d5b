/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "base/status.h"
#include "kernel/cache.h"
#include "kernel/program_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const unsigned char magic[8] = {'R', 'N', 'L', 'P', 'R', 'O', 'G', '\n'};

/* Little-endian on every machine. */
static void put(unsigned char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static void put_hash(unsigned char *at, rnl_hash hash)
{
    put(at, hash.low, 8);
    put(at + 8, hash.high, 8);
}

static void put_header(unsigned char *at, rnl_hash key, uint64_t payload_size)
{
    memcpy(at, magic, sizeof magic);
    put(at + 8, RNL_CACHE_FORMAT_VERSION, 4);
    put(at + 12, RNL_CACHE_HEADER_BYTES, 4);
    put(at + 16, payload_size, 8);
    put_hash(at + 24, key);
}

rnl_status rnl_cache_pack(rnl_hash key, const void *payload, size_t size, void **out_file, size_t *out_file_size)
{
    size_t total;
    unsigned char *file;
    *out_file = NULL;
    *out_file_size = 0;
    if (!rnl_size_add(size, RNL_CACHE_HEADER_BYTES + RNL_CACHE_HASH_BYTES, &total))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a program of %zu bytes is too large to keep", size);
    TRY(rnl_alloc(total, 1, &file));
    put_header(file, key, size);
    if (size)
        memcpy(file + RNL_CACHE_HEADER_BYTES, payload, size);
    put_hash(file + total - RNL_CACHE_HASH_BYTES, rnl_hash_bytes(file, total - RNL_CACHE_HASH_BYTES));
    *out_file = file;
    *out_file_size = total;
    return RNL_OK;
}

bool rnl_cache_unpack(const void *file, size_t file_size, rnl_hash key, size_t *out_offset, size_t *out_size)
{
    const unsigned char *bytes = file;
    unsigned char header[RNL_CACHE_HEADER_BYTES], hash[RNL_CACHE_HASH_BYTES];
    *out_offset = *out_size = 0;
    if (file_size < RNL_CACHE_HEADER_BYTES + RNL_CACHE_HASH_BYTES)
        return false;
    size_t payload_size = file_size - RNL_CACHE_HEADER_BYTES - RNL_CACHE_HASH_BYTES;
    /* There is one right header for this key and this size, and one right hash. */
    put_header(header, key, payload_size);
    if (memcmp(header, bytes, sizeof header) != 0)
        return false;
    put_hash(hash, rnl_hash_bytes(bytes, file_size - RNL_CACHE_HASH_BYTES));
    if (memcmp(hash, bytes + file_size - RNL_CACHE_HASH_BYTES, sizeof hash) != 0)
        return false;
    *out_offset = RNL_CACHE_HEADER_BYTES;
    *out_size = payload_size;
    return true;
}

#define LIBRARY_END (2 * RNL_CACHE_HASH_BYTES)

rnl_status rnl_cache_pack_library(rnl_hash key, const void *library, size_t size, void **out_file,
                                  size_t *out_file_size)
{
    size_t total;
    unsigned char *file;
    *out_file = NULL;
    *out_file_size = 0;
    if (!rnl_size_add(size, LIBRARY_END, &total))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a library of %zu bytes is too large to keep", size);
    TRY(rnl_alloc(total, 1, &file));
    if (size)
        memcpy(file, library, size);
    put_hash(file + size, key);
    put_hash(file + size + RNL_CACHE_HASH_BYTES, rnl_hash_bytes(file, size + RNL_CACHE_HASH_BYTES));
    *out_file = file;
    *out_file_size = total;
    return RNL_OK;
}

bool rnl_cache_check_library(const void *file, size_t file_size, rnl_hash key)
{
    const unsigned char *bytes = file;
    unsigned char end[LIBRARY_END];
    if (file_size < LIBRARY_END)
        return false;
    put_hash(end, key);
    put_hash(end + RNL_CACHE_HASH_BYTES, rnl_hash_bytes(bytes, file_size - RNL_CACHE_HASH_BYTES));
    return memcmp(bytes + file_size - LIBRARY_END, end, LIBRARY_END) == 0;
}

void rnl_cache_file_name(rnl_hash key, const char *suffix, char *out_name, size_t capacity)
{
    snprintf(out_name, capacity, "%016" PRIx64 "%016" PRIx64 "%s", key.high, key.low, suffix);
}

/* ---- A caller's program: the binary, the reflection, its length in 8 bytes ---- */

#define LENGTH_BYTES 8

rnl_status rnl_program_pack(void **binary, size_t *size, const char *reflection)
{
    const size_t length = strlen(reflection);
    size_t total;
    unsigned char *packed;
    if (!rnl_size_add(*size, length + LENGTH_BYTES, &total))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a program of %zu bytes is too large to keep", *size);
    TRY(rnl_alloc(total, 1, &packed));
    memcpy(packed, *binary, *size);
    memcpy(packed + *size, reflection, length);
    put(packed + *size + length, length, LENGTH_BYTES);
    rnl_free(*binary);
    *binary = packed;
    *size = total;
    return RNL_OK;
}

bool rnl_program_unpack(const void *binary, size_t *size, char **out_reflection)
{
    const unsigned char *bytes = binary;
    uint64_t length = 0;
    *out_reflection = NULL;
    if (*size < LENGTH_BYTES)
        return false;
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        length |= (uint64_t)bytes[*size - LENGTH_BYTES + i] << (8 * i);
    if (length > *size - LENGTH_BYTES)
        return false;
    const size_t binary_size = *size - LENGTH_BYTES - (size_t)length;
    char *text;
    if (rnl_alloc((size_t)length + 1, 1, &text) != RNL_OK)
        return false;
    memcpy(text, bytes + binary_size, (size_t)length);
    *out_reflection = text;
    *size = binary_size;
    return true;
}
