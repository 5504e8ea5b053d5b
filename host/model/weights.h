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
    rnl_packing packing;
    int64_t groups; /* of a convolution's packing, else 0 */
    rnl_buffer *buffer;
    rnl_view view; /* slot is filled in by whoever asks */
    size_t size_bytes;
} rnl_weight;

typedef struct rnl_weights {
    rnl_device *device; /* borrowed from the model */
    const rnl_graph *graph;
    rnl_stream *stream; /* uploads */
    pthread_mutex_t lock;
    rnl_weight *items;
    size_t count, capacity;
    void **staged; /* host memory that an upload still reads */
    size_t staged_count, staged_capacity;
    size_t uploaded_count; /* items known to be on the device; what lies behind waits for a flush */
    uint64_t failures;     /* flushes that failed: whoever asked for a weight before one must not use it */
    size_t size_bytes;
} rnl_weights;

RNL_NODISCARD rnl_status rnl_weights_init(rnl_weights *weights, rnl_device *device, const rnl_graph *graph);
void rnl_weights_free(rnl_weights *weights);

/* The constant `value` in this packing, uploaded when it is new. The buffer is borrowed. Any thread. */
RNL_NODISCARD rnl_status rnl_weights_get(rnl_weights *weights, uint32_t value, rnl_packing packing, int64_t groups,
                                         rnl_buffer **out_buffer, rnl_view *out_view);
/* A point in time for rnl_weights_flush: taken before the first weight is asked for. */
uint64_t rnl_weights_mark(rnl_weights *weights);
/*
 * Waits for the uploads so far; steps of other streams may read the weights from then on. Fails when an upload failed
 * since `mark`, also another thread's; what had not arrived is forgotten, and the next caller uploads it again.
 */
RNL_NODISCARD rnl_status rnl_weights_flush(rnl_weights *weights, uint64_t mark);

#endif
