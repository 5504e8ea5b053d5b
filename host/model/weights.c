/* SPDX-License-Identifier: Apache-2.0 */
#include "model/weights.h"

#include "base/memory.h"
#include "ops/conv.h"
#include <stdlib.h>
#include <string.h>

rnl_status rnl_weights_init(rnl_weights *weights, rnl_device *device, const rnl_graph *graph)
{
    *weights = (rnl_weights){.device = device, .graph = graph};
    TRY(rnl_stream_create(device, &weights->stream));
    if (pthread_mutex_init(&weights->lock, NULL) != 0) {
        rnl_stream_release(weights->stream);
        weights->stream = NULL;
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no mutex for the model's weights");
    }
    return RNL_OK;
}

static void free_staged(rnl_weights *weights)
{
    for (size_t i = 0; i < weights->staged_count; i++)
        free(weights->staged[i]);
    weights->staged_count = 0;
}

void rnl_weights_free(rnl_weights *weights)
{
    if (!weights->stream)
        return;
    (void)!rnl_stream_synchronize(weights->stream);
    free_staged(weights);
    for (size_t i = 0; i < weights->count; i++)
        rnl_buffer_release(weights->items[i].buffer);
    free(weights->items);
    free(weights->staged);
    rnl_stream_release(weights->stream);
    pthread_mutex_destroy(&weights->lock);
    weights->stream = NULL;
}

/* Scatters a row-major tensor into a packed view, one innermost row at a time. */
static void pack(const rnl_host_tensor *source, const rnl_view *view, unsigned char *target)
{
    size_t bytes = rnl_dtype_bytes(source->dtype), rank = view->rank;
    int64_t index[RNL_MAX_RANK] = {0};
    const unsigned char *from = source->data;
    int64_t inner = view->shape[rank - 1], inner_stride = view->stride[rank - 1];
    int64_t rows = rnl_view_elements(view) / (inner ? inner : 1);
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = view->offset;
        for (size_t i = 0; i + 1 < rank; i++)
            at += index[i] * view->stride[i];
        for (int64_t i = 0; i < inner; i++, from += bytes)
            memcpy(target + (size_t)(at + i * inner_stride) * bytes, from, bytes);
        for (size_t i = rank - 1; i-- > 0;) {
            if (++index[i] < view->shape[i])
                break;
            index[i] = 0;
        }
    }
}

static rnl_status pack_conv(rnl_weights *weights, const rnl_host_tensor *tensor, rnl_weight *weight)
{
    int64_t elements = 0;
    bool transposed = weight->packing == RNL_PACKING_CONV_TRANSPOSE;
    rnl_conv_weight_layout(transposed, weight->groups, 0, tensor->dtype, tensor->rank, tensor->shape, &weight->view,
                           &elements);
    size_t bytes;
    if (elements < 0 || !rnl_size_mul((size_t)elements, rnl_dtype_bytes(tensor->dtype), &bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a packed weight overflows the address space");
    void *packed = NULL;
    TRY(rnl_grow(&weights->staged, &weights->staged_capacity, weights->staged_count + 1, sizeof *weights->staged));
    TRY(rnl_alloc(bytes ? bytes : 1, 1, &packed));
    pack(tensor, &weight->view, packed);
    weights->staged[weights->staged_count++] = packed;
    TRY(rnl_buffer_create(weights->device, RNL_MEMORY_DEVICE, bytes ? bytes : 1, &weight->buffer));
    weight->size_bytes = bytes;
    return bytes ? rnl_stream_write(weights->stream, weight->buffer, 0, packed, bytes) : RNL_OK;
}

static rnl_status upload_plain(rnl_weights *weights, const rnl_host_tensor *tensor, rnl_weight *weight)
{
    size_t bytes = tensor->size_bytes;
    weight->view = rnl_view_row_major(0, tensor->dtype, tensor->rank, tensor->shape);
    TRY(rnl_buffer_create(weights->device, RNL_MEMORY_DEVICE, bytes ? bytes : 1, &weight->buffer));
    weight->size_bytes = bytes;
    return bytes ? rnl_stream_write(weights->stream, weight->buffer, 0, tensor->data, bytes) : RNL_OK;
}

static rnl_status add(rnl_weights *weights, rnl_weight *weight)
{
    const rnl_value *value = &weights->graph->values[weight->value];
    rnl_status status = RNL_OK;
    GOTO(rnl_grow(&weights->items, &weights->capacity, weights->count + 1, sizeof *weights->items));
    if (weight->packing == RNL_PACKING_PLAIN)
        GOTO(upload_plain(weights, value->constant, weight));
    else
        GOTO(pack_conv(weights, value->constant, weight));
    weights->items[weights->count++] = *weight;
    weights->size_bytes += weight->size_bytes;
    return RNL_OK;
done:
    rnl_buffer_release(weight->buffer);
    return rnl_error_add(status, "placing weight '%s'", value->name);
}

rnl_status rnl_weights_get(rnl_weights *weights, uint32_t value, rnl_packing packing, int64_t groups,
                           rnl_buffer **out_buffer, rnl_view *out_view)
{
    *out_buffer = NULL;
    pthread_mutex_lock(&weights->lock);
    rnl_weight *found = NULL;
    for (size_t i = 0; i < weights->count && !found; i++) {
        rnl_weight *item = &weights->items[i];
        if (item->value == value && item->packing == packing && item->groups == groups)
            found = item;
    }
    rnl_status status = RNL_OK;
    rnl_weight weight = {.value = value, .packing = packing, .groups = groups};
    if (!found) {
        status = add(weights, &weight);
        found = &weight;
    }
    if (status == RNL_OK) {
        *out_buffer = found->buffer;
        *out_view = found->view;
    }
    pthread_mutex_unlock(&weights->lock);
    return status;
}

uint64_t rnl_weights_mark(rnl_weights *weights)
{
    pthread_mutex_lock(&weights->lock);
    uint64_t mark = weights->failures;
    pthread_mutex_unlock(&weights->lock);
    return mark;
}

/* Plans in the making may still hold the buffers that are forgotten here; their flush fails by its mark. */
static void forget_pending(rnl_weights *weights)
{
    rnl_error error = *rnl_last_error();
    rnl_stream *stream = NULL;
    while (weights->count > weights->uploaded_count) {
        rnl_weight *item = &weights->items[--weights->count];
        weights->size_bytes -= item->size_bytes;
        rnl_buffer_release(item->buffer);
    }
    if (rnl_stream_create(weights->device, &stream) == RNL_OK) {
        rnl_stream_release(weights->stream);
        weights->stream = stream;
    }
    weights->failures++;
    rnl_error_restore(&error);
}

rnl_status rnl_weights_flush(rnl_weights *weights, uint64_t mark)
{
    pthread_mutex_lock(&weights->lock);
    rnl_status status = rnl_stream_synchronize(weights->stream);
    free_staged(weights);
    if (status != RNL_OK)
        forget_pending(weights);
    else if (weights->failures != mark)
        status = FAIL(RNL_UNAVAILABLE, "an upload of weights failed in another thread");
    weights->uploaded_count = weights->count;
    pthread_mutex_unlock(&weights->lock);
    return status;
}
