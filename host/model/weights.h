/* SPDX-License-Identifier: Apache-2.0 */
/* A model's weights on its device: each stored once for each key. */
#ifndef RUNNEL_MODEL_WEIGHTS_H
#define RUNNEL_MODEL_WEIGHTS_H

#include "graph/graph.h"
#include "ops/qconv_winograd.h"
#include "ops/qgemm.h"
#include <pthread.h>

typedef enum rnl_packing {
    RNL_PACKING_PLAIN,           /* row-major, as in the file */
    RNL_PACKING_MAPPED,          /* the file's own bytes, from the host's memory: see rnl_weights_can_map */
    RNL_PACKING_CONV,            /* rnl_conv_weight_layout */
    RNL_PACKING_CONV_TRANSPOSE,  /* the same, transposed convolution */
    RNL_PACKING_CONV_WINOGRAD,   /* rnl_conv_winograd_layout of tiles of 4x4 pixels … */
    RNL_PACKING_CONV_WINOGRAD_2, /* … and of 2x2 */
    RNL_PACKING_CONV_PAIRS,      /* rnl_conv_pairs_layout */
    RNL_PACKING_MATRIX_PAIRS,    /* K x N, the same */
    RNL_PACKING_TURNED_PAIRS,    /* N x K, the same */
    RNL_PACKING_MATRIX,          /* K x N, as the weights of a convolution of single pixels */
    RNL_PACKING_MATRIX_TURNED,   /* N x K, the same */
    RNL_PACKING_FIP,             /* rnl_conv_fip_layout of a convolution's weights, or of N x K … */
    RNL_PACKING_FIP_MATRIX,      /* … and of K x N */
    RNL_PACKING_STRASSEN,        /* rnl_conv_strassen_layout of a convolution's weights, or of N x K … */
    RNL_PACKING_STRASSEN_MATRIX, /* … and of K x N */
    RNL_PACKING_AMX,             /* rnl_conv_amx_layout in three parts, of a convolution's weights, or of N x K … */
    RNL_PACKING_AMX_MATRIX,      /* … and of K x N */
    RNL_PACKING_AMX_BF16,        /* in one part, of the former … */
    RNL_PACKING_AMX_BF16_MATRIX, /* … and of the latter */
    RNL_PACKING_TURNED,          /* …, K as a matrix K x …; halves as float32 */
    RNL_PACKING_BYTES,           /* K x N of 8 bits, as rnl_op_qgemm reads it best */
    RNL_PACKING_BYTES_TURNED,    /* N x K, the same */
    RNL_PACKING_BYTES_WINDOWS,   /* a convolution's weights M x C x …, the same as a matrix (…, C) x M */
    RNL_PACKING_BYTES_LINES, /* … with each line of taps, of the last dimension, filled up to a multiple of 4 bytes */
    RNL_PACKING_BYTES_WINOGRAD, /* M x C x 3 x 3 of signed bytes, by rnl_qconv_winograd_pack … */
    RNL_PACKING_BYTES_WINOGRAD_LAST = RNL_PACKING_BYTES_WINOGRAD + RNL_QCONV_WINOGRAD_FORMS - 1, /* … in its forms */
    RNL_PACKING_SCALE, /* not the value but a float vector, made while planning: factors … */
    RNL_PACKING_SHIFT  /* … and what is added */
} rnl_packing;

/* What tells weights apart. */
typedef struct rnl_weight_key {
    uint32_t value; /* in the graph */
    rnl_packing packing;
    int64_t groups;       /* of a convolution's packing, else 0 */
    uint32_t first, last; /* the nodes whose constants are worked in (fold.h), RNL_NO_NODE: none */
} rnl_weight_key;

typedef struct rnl_weight {
    rnl_weight_key key;
    uint32_t next; /* item + 1 of the same value under another key; 0: none */
    uint32_t block;
    double *numbers; /* while it waits to be filled: the vector, or a factor for each output channel; NULL: none */
    size_t number_count;
    size_t offset_bytes, size_bytes; /* in the block; an empty tensor has 0 bytes */
    rnl_view view;                   /* slot is filled in by whoever asks */
} rnl_weight;

/* Device memory, or host memory, that weights share; none is added once it has been filled. */
typedef struct rnl_weight_block {
    rnl_buffer *buffer;
    size_t size_bytes, used_bytes;
    void *host;     /* while it is being filled in place; with a budget for as long as it lives */
    void *own;      /* pageable host memory, where pinned memory is not to be had; then there is no buffer */
    bool is_mapped; /* a part of the model's file, which nothing fills */
} rnl_weight_block;

/* Of memory that was allocated for it. */
static inline size_t rnl_weight_own_bytes(const rnl_weight *weight)
{
    return weight->key.packing == RNL_PACKING_MAPPED ? 0 : weight->size_bytes;
}

typedef struct rnl_weights {
    rnl_device *device; /* borrowed from the model */
    const rnl_graph *graph;
    const rnl_host_tensor *const *constants;
    bool stay_on_host;  /* and pass through rings of device memory: ring.h */
    rnl_stream *stream; /* uploads */
    pthread_mutex_t lock;
    uint32_t *first; /* item + 1 of each value; 0: none */
    rnl_weight *items;
    size_t count, capacity;
    rnl_weight_block *blocks;
    size_t block_count, block_capacity;
    /* Items and blocks known to be filled; what lies behind waits for a flush. */
    size_t ready_items, ready_blocks;
    size_t expected_bytes; /* constants that have no place yet */
    uint64_t failures;     /* flushes that failed: whoever asked for a weight before one must not use it */
    size_t size_bytes;
    bool is_dry; /* nothing gets memory: plans are made to look at, not to run */
} rnl_weights;

/* Where a weight lies. The buffer is borrowed; there is none for one that stays on the host. */
typedef struct rnl_weight_place {
    rnl_buffer *buffer;
    size_t offset_bytes, size_bytes;
    const void *host; /* NULL: it is on the device */
    uint32_t block, item;
} rnl_weight_place;

/* `constants`, one a value, are the model's and stay. */
RNL_NODISCARD rnl_status rnl_weights_init(rnl_weights *weights, rnl_device *device, const rnl_graph *graph,
                                          const rnl_host_tensor *const *constants, bool stay_on_host);
void rnl_weights_free(rnl_weights *weights);
/* Bytes behind what a block is used for that its commands ask the cache for. */
size_t rnl_weights_ahead_bytes(const rnl_weights *weights);

/* True when there is a weight of this key. Any thread. */
bool rnl_weights_has(rnl_weights *weights, const rnl_weight_key *key);
/*
 * Gives the constant of the key a place when it has none; a flush fills it. `numbers` are copied when it is new: a
 * vector's elements, or factors for the output channels (NULL: none). Any thread.
 */
RNL_NODISCARD rnl_status rnl_weights_get(rnl_weights *weights, const rnl_weight_key *key, const double *numbers,
                                         size_t number_count, rnl_weight_place *out_place, rnl_view *out_view);
/*
 * True for a large constant that lies in the model's file, on a device that reads the host's memory where it is: a
 * table of which a run reads a few rows then takes no memory but that of the pages it reads. Its elements need not be
 * aligned.
 */
bool rnl_weights_can_map(const rnl_weights *weights, uint32_t value);
/* A point in time for rnl_weights_flush: taken before the first weight is asked for. */
uint64_t rnl_weights_mark(rnl_weights *weights);
/*
 * Packs and uploads what has a place so far; steps of other streams may read the weights from then on. Fails when that
 * failed since `mark`, also in another thread; what had not arrived is forgotten, and the next caller uploads it again.
 */
RNL_NODISCARD rnl_status rnl_weights_flush(rnl_weights *weights, uint64_t mark);

/* ---- weights_fill.c ---- */

static inline bool rnl_packing_is_vector(rnl_packing packing)
{
    return packing == RNL_PACKING_SCALE || packing == RNL_PACKING_SHIFT;
}

/* The first dimension is the input channels'. */
static inline bool rnl_packing_is_transposed(rnl_packing packing)
{
    return packing == RNL_PACKING_CONV_TRANSPOSE || packing == RNL_PACKING_MATRIX ||
           packing == RNL_PACKING_MATRIX_PAIRS || packing == RNL_PACKING_STRASSEN_MATRIX ||
           packing == RNL_PACKING_FIP_MATRIX || packing == RNL_PACKING_AMX_MATRIX ||
           packing == RNL_PACKING_AMX_BF16_MATRIX;
}

static inline bool rnl_packing_is_fip(rnl_packing packing)
{
    return packing == RNL_PACKING_FIP || packing == RNL_PACKING_FIP_MATRIX;
}

static inline bool rnl_packing_is_strassen(rnl_packing packing)
{
    return packing == RNL_PACKING_STRASSEN || packing == RNL_PACKING_STRASSEN_MATRIX;
}

/* Pixels of a tile in each direction; 0: the packing is not for Winograd's way. */
static inline int64_t rnl_packing_winograd_side(rnl_packing packing)
{
    return packing == RNL_PACKING_CONV_WINOGRAD ? 4 : packing == RNL_PACKING_CONV_WINOGRAD_2 ? 2 : 0;
}

/* Of 8 bits; 0 likewise. */
static inline int64_t rnl_packing_bytes_winograd_form(rnl_packing packing)
{
    const bool is_one = packing >= RNL_PACKING_BYTES_WINOGRAD && packing <= RNL_PACKING_BYTES_WINOGRAD_LAST;
    return is_one ? (int64_t)(packing - RNL_PACKING_BYTES_WINOGRAD) + 1 : 0;
}

/* For matrix tiles: parts of a number; 0: not for them. */
static inline int64_t rnl_packing_amx_parts(rnl_packing packing)
{
    if (packing < RNL_PACKING_AMX || packing > RNL_PACKING_AMX_BF16_MATRIX)
        return 0;
    return packing <= RNL_PACKING_AMX_MATRIX ? 3 : 1;
}

/* Of bfloat16, from a constant of float32. */
static inline bool rnl_packing_is_pairs(rnl_packing packing)
{
    return packing >= RNL_PACKING_CONV_PAIRS && packing <= RNL_PACKING_TURNED_PAIRS;
}
/* The shape M x C x … of such a weight's tensor. */
void rnl_weights_pairs_shape(const rnl_host_tensor *tensor, rnl_packing packing, int64_t shape[RNL_MAX_RANK]);

/* A factor of 8-bit integers, packed for products. */
static inline bool rnl_packing_is_bytes(rnl_packing packing)
{
    return packing >= RNL_PACKING_BYTES && packing <= RNL_PACKING_BYTES_LINES;
}
/* How such a factor lies in its tensor, whose rank fits the packing. */
rnl_qgemm_source rnl_weights_bytes_source(const rnl_host_tensor *tensor, rnl_packing packing);

/* Fills the blocks and items that are not ready, and waits; the caller holds the lock. */
RNL_NODISCARD rnl_status rnl_weights_fill(rnl_weights *weights);

#endif
