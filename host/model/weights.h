/* SPDX-License-Identifier: Apache-2.0 */
/* A model's weights on its device: each stored once for each (value, packing). */
#ifndef RUNNEL_MODEL_WEIGHTS_H
#define RUNNEL_MODEL_WEIGHTS_H

#include "graph/graph.h"
#include "ops/op.h"
#include <pthread.h>

typedef enum rnl_packing {
    RNL_PACKING_PLAIN,         /* row-major, as in the file */
    RNL_PACKING_CONV,          /* rnl_conv_weight_layout */
    RNL_PACKING_CONV_TRANSPOSE /* the same, transposed convolution */
} rnl_packing;

typedef struct rnl_weight {
    uint32_t value; /* in the graph */
    uint32_t next;  /* item + 1 of the same value in another packing; 0: none */
    rnl_packing packing;
    int64_t groups; /* of a convolution's packing, else 0 */
    uint32_t block;
    size_t offset_bytes, size_bytes; /* in the block; an empty tensor has 0 bytes */
    rnl_view view;                   /* slot is filled in by whoever asks */
} rnl_weight;

/* Device memory that weights share; none is added once it has been filled. */
typedef struct rnl_weight_block {
    rnl_buffer *buffer;
    size_t used_bytes;
    void *host; /* while it is being filled in place */
} rnl_weight_block;

typedef struct rnl_weights {
    rnl_device *device; /* borrowed from the model */
    const rnl_graph *graph;
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
} rnl_weights;

/* Where a weight lies. The buffer is borrowed. */
typedef struct rnl_weight_place {
    rnl_buffer *buffer;
    size_t offset_bytes, size_bytes;
} rnl_weight_place;

RNL_NODISCARD rnl_status rnl_weights_init(rnl_weights *weights, rnl_device *device, const rnl_graph *graph);
void rnl_weights_free(rnl_weights *weights);

/* Gives the constant `value` a place in this packing when it has none; a flush fills it. Any thread. */
RNL_NODISCARD rnl_status rnl_weights_get(rnl_weights *weights, uint32_t value, rnl_packing packing, int64_t groups,
                                         rnl_weight_place *out_place, rnl_view *out_view);
/* A point in time for rnl_weights_flush: taken before the first weight is asked for. */
uint64_t rnl_weights_mark(rnl_weights *weights);
/*
 * Packs and uploads what has a place so far; steps of other streams may read the weights from then on. Fails when that
 * failed since `mark`, also in another thread; what had not arrived is forgotten, and the next caller uploads it again.
 */
RNL_NODISCARD rnl_status rnl_weights_flush(rnl_weights *weights, uint64_t mark);

/* ---- weights_fill.c ---- */

/* Fills the blocks and items that are not ready, and waits; the caller holds the lock. */
RNL_NODISCARD rnl_status rnl_weights_fill(rnl_weights *weights);

#endif
