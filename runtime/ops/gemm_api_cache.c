/* SPDX-License-Identifier: Apache-2.0 */
/* The products that a stream has prepared for rnl_gemm_run. */
#include "base/memory.h"
#include "base/status.h"
#include "ops/gemm_api.h"
#include <string.h>

#define KEPT 32 /* as <runnel/gemm.h> says */
#define KEY_SIZES 28

/* All of a description but the implementation's name. */
typedef struct cache_key {
    int64_t values[KEY_SIZES];
} cache_key;

typedef struct cache_entry {
    cache_key key;
    rnl_gemm *gemm;
    uint64_t used; /* the larger, the later */
} cache_entry;

struct rnl_gemm_cache {
    cache_entry entries[KEPT];
    uint64_t uses;
    rnl_gemm_workspace workspace;
};

static int64_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static cache_key key_of(const rnl_gemm_desc *d)
{
    return (cache_key){{d->m,
                        d->n,
                        d->k,
                        d->order,
                        d->transpose_a,
                        d->transpose_b,
                        d->lda,
                        d->ldb,
                        d->ldc,
                        d->ld_residual,
                        d->a_type,
                        d->b_type,
                        d->c_type,
                        bits_of(d->alpha),
                        bits_of(d->beta),
                        d->bias,
                        d->residual,
                        d->activation,
                        d->batch,
                        d->stride_a,
                        d->stride_b,
                        d->stride_c,
                        d->stride_residual,
                        d->a_zero,
                        d->b_zero,
                        d->c_zero,
                        bits_of(d->scale),
                        d->accuracy}};
}

static bool has_name(const rnl_gemm *gemm, const char *implementation)
{
    return gemm->implementation && implementation ? strcmp(gemm->implementation, implementation) == 0
                                                  : !gemm->implementation && !implementation;
}

/* Its products are done: nothing uses its memory. */
static void free_cache(rnl_stream *stream)
{
    struct rnl_gemm_cache *cache = stream->gemms;
    rnl_error error = *rnl_last_error();
    (void)!rnl_stream_synchronize(stream);
    rnl_error_restore(&error);
    for (size_t i = 0; i < KEPT; ++i)
        rnl_gemm_release(cache->entries[i].gemm);
    rnl_buffer_release(cache->workspace.scratch);
    rnl_free(cache);
    stream->gemms = NULL;
}

static rnl_status find_cache(rnl_stream *stream, struct rnl_gemm_cache **out_cache)
{
    if (!stream->gemms) {
        TRY(rnl_alloc(1, sizeof *stream->gemms, &stream->gemms));
        stream->free_gemms = free_cache;
    }
    *out_cache = stream->gemms;
    return RNL_OK;
}

/* In place of the one that was used longest ago. */
static rnl_status add(rnl_stream *stream, struct rnl_gemm_cache *cache, const rnl_gemm_desc *desc, cache_entry *entry)
{
    rnl_gemm *gemm;
    TRY(rnl_gemm_create_in(stream->device, desc, 0, &cache->workspace, &gemm));
    if (entry->gemm) {
        const rnl_status status = rnl_stream_synchronize(stream);
        if (status != RNL_OK) {
            rnl_gemm_release(gemm);
            return status;
        }
        rnl_gemm_release(entry->gemm);
    }
    entry->gemm = gemm;
    entry->key = key_of(desc);
    return RNL_OK;
}

static rnl_status find(rnl_stream *stream, const rnl_gemm_desc *desc, rnl_gemm **out_gemm)
{
    struct rnl_gemm_cache *cache = NULL;
    const cache_key key = key_of(desc);
    TRY(find_cache(stream, &cache));
    cache_entry *entry = cache->entries;
    for (size_t i = 0; i < KEPT; ++i) {
        cache_entry *it = &cache->entries[i];
        if (it->gemm && memcmp(&it->key, &key, sizeof key) == 0 && has_name(it->gemm, desc->implementation)) {
            it->used = ++cache->uses;
            *out_gemm = it->gemm;
            return RNL_OK;
        }
        if (it->used < entry->used)
            entry = it;
    }
    TRY(add(stream, cache, desc, entry));
    entry->used = ++cache->uses;
    *out_gemm = entry->gemm;
    return RNL_OK;
}

rnl_status rnl_gemm_run(rnl_stream *stream, const rnl_gemm_desc *desc, const rnl_gemm_operands *operands)
{
    rnl_gemm_desc whole = RNL_GEMM_DESC_INIT;
    rnl_gemm *gemm = NULL;
    if (!stream || !desc)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: %s is NULL", stream ? "desc" : "the stream");
    if (desc->struct_size == 0 || desc->struct_size > sizeof whole)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: desc.struct_size is %zu; use RNL_GEMM_DESC_INIT",
                    desc->struct_size);
    memcpy(&whole, desc, desc->struct_size);
    whole.struct_size = sizeof whole;
    TRY(rnl_stream_check_only(stream));
    TRY(find(stream, &whole, &gemm));
    return rnl_stream_gemm(stream, gemm, operands);
}
