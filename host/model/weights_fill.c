/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling weights: on devices whose memory the host can write, packed straight into it by a few threads; elsewhere
 * through two pieces of pinned memory, one of which is filled while the other travels. Either way the pages of the
 * model's file are given back as soon as they have been read.
 */
#include "base/memory.h"
#include "device/buffer.h"
#include "graph/host_element.h"
#include "model/weights.h"
#include "ops/conv.h"
#include "ops/qconv_winograd.h"
#include <string.h>

#define PIECE_BYTES ((size_t)8 << 20)
#define LARGE_BYTES ((size_t)64 << 10) /* from here on the system is told about pages */
#define TURNED_BLOCK 16
#define MAX_THREADS 4
#define BYTES_A_THREAD ((size_t)4 << 20) /* less than that is not worth a thread */

/* A weight, or a piece of one that is copied as it is. */
typedef struct job {
    const rnl_weight *weight;
    size_t offset_bytes, size_bytes;
} job;

typedef struct job_list {
    const rnl_weights *weights;
    job *jobs;
    size_t count, capacity;
    size_t total_bytes, largest_bytes;
    atomic_size_t next;
} job_list;

static const rnl_host_tensor *tensor_of(const rnl_weights *weights, const rnl_weight *weight)
{
    return weights->constants[weight->key.value];
}

static rnl_status list_jobs(const rnl_weights *weights, job_list *list)
{
    for (size_t i = weights->ready_items; i < weights->count; i++) {
        const rnl_weight *weight = &weights->items[i];
        size_t most = weight->key.packing == RNL_PACKING_PLAIN ? PIECE_BYTES : SIZE_MAX;
        for (size_t at = 0; at < rnl_weight_own_bytes(weight);) {
            size_t left = weight->size_bytes - at, bytes = left < most ? left : most;
            TRY(rnl_grow(&list->jobs, &list->capacity, list->count + 1, sizeof *list->jobs));
            list->jobs[list->count++] = (job){weight, at, bytes};
            list->largest_bytes = bytes > list->largest_bytes ? bytes : list->largest_bytes;
            list->total_bytes += bytes;
            at += bytes;
        }
    }
    return RNL_OK;
}

/* ---- the source ----------------------------------------------------------------------------------------------- */

typedef void (*map_fn)(const rnl_map *map, const void *start, size_t size_bytes);

/* For the map that the memory lies in; a caller's memory and the graph's own lie in none. */
static void for_map(const rnl_graph *graph, map_fn tell, const void *start, size_t size_bytes)
{
    tell(&graph->file, start, size_bytes);
    for (size_t i = 0; i < graph->external_count; i++)
        tell(&graph->external[i], start, size_bytes);
}

/* Pages at the edges of tensors, and those that the system has read around them. */
static void forget_rest(const rnl_graph *graph)
{
    rnl_map_forget(&graph->file, graph->file.data, graph->file.size_bytes);
    for (size_t i = 0; i < graph->external_count; i++)
        rnl_map_forget(&graph->external[i], graph->external[i].data, graph->external[i].size_bytes);
}

static void fill_vector(const rnl_weight *weight, float *target)
{
    for (size_t i = 0; i < weight->number_count; i++)
        target[i] = (float)weight->numbers[i];
}

/* Blocks of as many rows as columns, so that neither source nor target leaves the cache. */
static void fill_turned(const rnl_host_tensor *tensor, const rnl_view *view, void *target)
{
    const int64_t columns = view->shape[0], rows = view->shape[1];
    float *floats = target;
    double *doubles = target;
    for (int64_t r0 = 0; r0 < rows; r0 += TURNED_BLOCK)
        for (int64_t c0 = 0; c0 < columns; c0 += TURNED_BLOCK)
            for (int64_t c = c0; c < columns && c < c0 + TURNED_BLOCK; c++)
                for (int64_t r = r0; r < rows && r < r0 + TURNED_BLOCK; r++) {
                    const double value = rnl_element_load(tensor->data, r * columns + c, tensor->dtype).f;
                    if (view->dtype == RNL_F64)
                        doubles[c * rows + r] = value;
                    else
                        floats[c * rows + r] = (float)value;
                }
}

rnl_qgemm_source rnl_weights_bytes_source(const rnl_host_tensor *tensor, rnl_packing packing)
{
    const int64_t *shape = tensor->shape;
    int64_t taps = 1;
    for (size_t i = 2; i < tensor->rank; i++)
        taps *= shape[i];
    const int64_t width = shape[tensor->rank - 1];
    switch (packing) {
    case RNL_PACKING_BYTES_WINDOWS:
        return (rnl_qgemm_source){tensor->dtype, taps, shape[1], shape[0], 1, taps, shape[1] * taps, 1, 0};
    case RNL_PACKING_BYTES_LINES:
        return (rnl_qgemm_source){tensor->dtype, width,           shape[1],     shape[0], 1,
                                  taps,          shape[1] * taps, taps / width, width};
    case RNL_PACKING_BYTES_TURNED:
        return (rnl_qgemm_source){tensor->dtype, 1, shape[1], shape[0], 0, 1, shape[1], 1, 0};
    default:
        return (rnl_qgemm_source){tensor->dtype, 1, shape[0], shape[1], 0, shape[1], 1, 1, 0};
    }
}

static void fill_bytes(const rnl_host_tensor *tensor, rnl_packing packing, void *target)
{
    const rnl_qgemm_source source = rnl_weights_bytes_source(tensor, packing);
    rnl_qgemm_pack_host(&source, tensor->data, target);
}

void rnl_weights_pairs_shape(const rnl_host_tensor *tensor, rnl_packing packing, int64_t shape[RNL_MAX_RANK])
{
    memcpy(shape, tensor->shape, tensor->rank * sizeof *shape);
    if (packing == RNL_PACKING_MATRIX_PAIRS) {
        shape[0] = tensor->shape[1];
        shape[1] = tensor->shape[0];
    }
}

static void fill_pairs(const rnl_host_tensor *tensor, const rnl_weight *weight, void *target)
{
    int64_t shape[RNL_MAX_RANK];
    rnl_weights_pairs_shape(tensor, weight->key.packing, shape);
    rnl_conv_pairs_pack(rnl_packing_is_transposed(weight->key.packing), weight->key.groups, tensor->rank, shape,
                        tensor->data, weight->numbers, target);
}

static void fill_packed(const rnl_host_tensor *tensor, const rnl_weight *weight, void *target)
{
    if (rnl_packing_is_bytes(weight->key.packing))
        fill_bytes(tensor, weight->key.packing, target);
    else if (rnl_packing_bytes_winograd_form(weight->key.packing))
        rnl_qconv_winograd_pack(rnl_packing_bytes_winograd_form(weight->key.packing), tensor->shape, tensor->data,
                                target);
    else if (rnl_packing_is_pairs(weight->key.packing))
        fill_pairs(tensor, weight, target);
    else if (rnl_packing_winograd_side(weight->key.packing))
        rnl_conv_winograd_pack(rnl_packing_winograd_side(weight->key.packing), tensor->shape, tensor->data,
                               weight->numbers, target);
    else if (rnl_packing_amx_parts(weight->key.packing))
        rnl_conv_amx_pack(rnl_packing_amx_parts(weight->key.packing), rnl_packing_is_transposed(weight->key.packing),
                          tensor->rank, tensor->shape, tensor->data, weight->numbers, target);
    else if (rnl_packing_is_fip(weight->key.packing))
        rnl_conv_fip_pack(rnl_packing_is_transposed(weight->key.packing), tensor->rank, tensor->shape, tensor->data,
                          weight->numbers, target);
    else if (rnl_packing_is_strassen(weight->key.packing))
        rnl_conv_strassen_pack(rnl_packing_is_transposed(weight->key.packing), tensor->shape, tensor->data,
                               weight->numbers, target);
    else if (weight->key.packing == RNL_PACKING_TURNED)
        fill_turned(tensor, &weight->view, target);
    else
        rnl_conv_pack(rnl_packing_is_transposed(weight->key.packing), weight->key.groups, tensor->dtype, tensor->rank,
                      tensor->shape, tensor->data, weight->numbers, target);
}

static void do_job(const rnl_weights *weights, const job *todo, void *target)
{
    if (rnl_packing_is_vector(todo->weight->key.packing)) {
        fill_vector(todo->weight, target);
        return;
    }
    const rnl_host_tensor *tensor = tensor_of(weights, todo->weight);
    bool piece = todo->weight->key.packing == RNL_PACKING_PLAIN;
    const unsigned char *source = (const unsigned char *)tensor->data + todo->offset_bytes;
    size_t source_bytes = piece ? todo->size_bytes : tensor->size_bytes;
    bool large = source_bytes >= LARGE_BYTES;
    if (large)
        for_map(weights->graph, rnl_map_expect, source, source_bytes);
    if (piece)
        memcpy(target, source, source_bytes);
    else
        fill_packed(tensor, todo->weight, target);
    if (large)
        for_map(weights->graph, rnl_map_forget, source, source_bytes);
}

/* ---- in place ------------------------------------------------------------------------------------------------- */

/* From the end: the largest weights come last in most networks, and a thread should not begin one when others are done.
 */
static void *do_jobs(void *argument)
{
    job_list *list = argument;
    size_t at;
    while ((at = atomic_fetch_add(&list->next, 1)) < list->count) {
        const job *todo = &list->jobs[list->count - 1 - at];
        const rnl_weight_block *block = &list->weights->blocks[todo->weight->block];
        unsigned char *target = (unsigned char *)block->host + todo->weight->offset_bytes + todo->offset_bytes;
        if (todo->size_bytes >= LARGE_BYTES)
            rnl_memory_expect(target, todo->size_bytes);
        do_job(list->weights, todo, target);
    }
    return NULL;
}

static void run_jobs(job_list *list)
{
    pthread_t threads[MAX_THREADS];
    size_t units = rnl_device_get_info(list->weights->device)->compute_units, started = 0;
    size_t wanted = list->total_bytes / BYTES_A_THREAD;
    wanted = wanted < units ? wanted : units;
    wanted = wanted < MAX_THREADS ? wanted : MAX_THREADS;
    while (started + 1 < wanted && pthread_create(&threads[started], NULL, do_jobs, list) == 0)
        started++;
    do_jobs(list);
    for (size_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* What is asked for ahead has to be there: memory that nobody has written is not. */
static void write_end(const rnl_weights *weights, const rnl_weight_block *block)
{
    const size_t left = block->size_bytes - block->used_bytes, ahead = rnl_weights_ahead_bytes(weights);
    memset((unsigned char *)block->host + block->used_bytes, 0, left < ahead ? left : ahead);
}

static rnl_status fill_in_place(rnl_weights *weights, job_list *list)
{
    rnl_status status = RNL_OK;
    for (size_t i = weights->ready_blocks; i < weights->block_count; i++)
        if (!weights->blocks[i].is_mapped) {
            GOTO(rnl_buffer_map(weights->stream, weights->blocks[i].buffer, &weights->blocks[i].host));
            write_end(weights, &weights->blocks[i]);
        }
    run_jobs(list);
done:
    for (size_t i = weights->ready_blocks; i < weights->block_count; i++) {
        rnl_weight_block *block = &weights->blocks[i];
        rnl_status unmapped = block->host ? rnl_buffer_unmap(weights->stream, block->buffer, block->host) : RNL_OK;
        status = status == RNL_OK ? unmapped : status;
        block->host = NULL;
    }
    return status;
}

/* ---- through pinned memory ------------------------------------------------------------------------------------ */

typedef struct staging {
    rnl_buffer *pieces[2];
    rnl_event *sent[2]; /* the end of a piece's last copy */
    size_t at, used_bytes;
} staging;

/* Goes on to the other piece when this one is full, and waits until what it held has been copied. */
static rnl_status make_room(rnl_weights *weights, staging *ring, size_t bytes)
{
    if (rnl_buffer_size(ring->pieces[ring->at]) - ring->used_bytes >= bytes)
        return RNL_OK;
    TRY(rnl_stream_record(weights->stream, &ring->sent[ring->at]));
    ring->at = 1 - ring->at;
    ring->used_bytes = 0;
    if (!ring->pieces[ring->at])
        return rnl_buffer_create(weights->device, RNL_MEMORY_PINNED, rnl_buffer_size(ring->pieces[1 - ring->at]),
                                 &ring->pieces[ring->at]);
    rnl_event *sent = ring->sent[ring->at];
    ring->sent[ring->at] = NULL;
    rnl_status status = rnl_event_synchronize(sent);
    rnl_event_release(sent);
    return status;
}

static rnl_status send(rnl_weights *weights, staging *ring, const job *todo)
{
    TRY(make_room(weights, ring, todo->size_bytes));
    rnl_buffer *piece = ring->pieces[ring->at];
    do_job(weights, todo, (unsigned char *)rnl_buffer_host(piece) + ring->used_bytes);
    TRY(rnl_stream_copy(weights->stream, weights->blocks[todo->weight->block].buffer,
                        todo->weight->offset_bytes + todo->offset_bytes, piece, ring->used_bytes, todo->size_bytes));
    ring->used_bytes = rnl_align_up(ring->used_bytes + todo->size_bytes, 64);
    if (ring->used_bytes > rnl_buffer_size(piece))
        ring->used_bytes = rnl_buffer_size(piece);
    return RNL_OK;
}

static rnl_status fill_through_staging(rnl_weights *weights, const job_list *list)
{
    staging ring = {0};
    size_t bytes = list->total_bytes < PIECE_BYTES ? list->total_bytes : PIECE_BYTES;
    rnl_status status = RNL_OK;
    if (list->count == 0)
        return RNL_OK;
    GOTO(rnl_buffer_create(weights->device, RNL_MEMORY_PINNED,
                           bytes > list->largest_bytes ? bytes : list->largest_bytes, &ring.pieces[0]));
    for (size_t i = 0; i < list->count; i++)
        GOTO(send(weights, &ring, &list->jobs[i]));
done:
    /* The pieces may not be released before their copies have ended. */
    if (status == RNL_OK)
        status = rnl_stream_synchronize(weights->stream);
    else
        (void)!rnl_stream_synchronize(weights->stream);
    for (size_t i = 0; i < 2; i++) {
        rnl_event_release(ring.sent[i]);
        rnl_buffer_release(ring.pieces[i]);
    }
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

rnl_status rnl_weights_fill(rnl_weights *weights)
{
    job_list list = {.weights = weights};
    rnl_status status = RNL_OK;
    GOTO(list_jobs(weights, &list));
    if (weights->stay_on_host)
        run_jobs(&list);
    else if (weights->device->maps_in_place)
        GOTO(fill_in_place(weights, &list));
    else
        GOTO(fill_through_staging(weights, &list));
    status = rnl_stream_synchronize(weights->stream);
    forget_rest(weights->graph);
done:
    rnl_free(list.jobs);
    return status;
}
