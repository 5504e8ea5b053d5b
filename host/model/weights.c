/* SPDX-License-Identifier: Apache-2.0 */
#include "model/weights.h"

#include "base/memory.h"
#include "device/buffer.h"
#include "device/wrap.h"
#include "model/plan.h"
#include "ops/conv.h"
#include "ops/qconv_winograd.h"
#include <runnel/memory.h>
#include <string.h>

/* Weights share blocks: fewer objects for the driver. A large weight has one to itself. */
#define BLOCK_BYTES ((size_t)16 << 20)
#define LARGE_BYTES ((size_t)4 << 20)
/*
 * Kernels for CPUs ask the cache for weights that are this far ahead, also at the end of a block. Memory that is not
 * there, or has not been written yet, takes as long to ask for as 200 instructions.
 */
#define ASKED_AHEAD_BYTES ((size_t)4 << 10)
/* Of the constants that the first plan has no use for, others will want few. */
#define LATER_BYTES ((size_t)256 << 10)

/* None where a checker is to see who reads behind a weight. */
size_t rnl_weights_ahead_bytes(const rnl_weights *weights)
{
    return weights->device->maps_in_place && !rnl_arena_is_off() ? ASKED_AHEAD_BYTES : 0;
}

static size_t count_constants(const rnl_graph *graph, const rnl_host_tensor *const *constants)
{
    size_t bytes = 0;
    for (size_t i = 0; i < graph->value_count; i++)
        if (constants[i] && constants[i]->size_bytes < LARGE_BYTES && bytes < BLOCK_BYTES << 8)
            bytes += constants[i]->size_bytes;
    return bytes;
}

rnl_status rnl_weights_init(rnl_weights *weights, rnl_device *device, const rnl_graph *graph,
                            const rnl_host_tensor *const *constants, bool stay_on_host)
{
    *weights = (rnl_weights){.device = device,
                             .graph = graph,
                             .constants = constants,
                             .stay_on_host = stay_on_host,
                             .expected_bytes = count_constants(graph, constants)};
    TRY(rnl_alloc(graph->value_count, sizeof *weights->first, &weights->first));
    rnl_status status = rnl_stream_create(device, &weights->stream);
    if (status == RNL_OK && pthread_mutex_init(&weights->lock, NULL) != 0)
        status = FAIL(RNL_RESOURCE_EXHAUSTED, "no mutex for the model's weights");
    if (status == RNL_OK)
        return RNL_OK;
    rnl_stream_release(weights->stream);
    rnl_free(weights->first);
    *weights = (rnl_weights){0};
    return status;
}

static void release_block(rnl_weight_block *block)
{
    rnl_buffer_release(block->buffer);
    rnl_free(block->own);
}

void rnl_weights_free(rnl_weights *weights)
{
    if (!weights->stream)
        return;
    for (size_t i = 0; i < weights->block_count; i++)
        release_block(&weights->blocks[i]);
    for (size_t i = 0; i < weights->count; i++)
        rnl_free(weights->items[i].numbers);
    rnl_free(weights->blocks);
    rnl_free(weights->items);
    rnl_free(weights->first);
    rnl_stream_release(weights->stream);
    pthread_mutex_destroy(&weights->lock);
    weights->stream = NULL;
}

/* ---- places --------------------------------------------------------------------------------------------------- */

/* Pinned memory travels faster, but is the pool's: it must not take what the device's memory needs. */
static bool may_pin(const rnl_weights *weights, size_t bytes)
{
    rnl_copy_stats copies;
    rnl_device_stats device;
    if (weights->device->maps_in_place)
        return false;
    rnl_device_get_copy_stats(weights->device, &copies);
    rnl_device_get_stats(weights->device, &device);
    const uint64_t limit = copies.pinned_limit_bytes < device.pool_budget_bytes / 4 ? copies.pinned_limit_bytes
                                                                                    : device.pool_budget_bytes / 4;
    return bytes <= limit && copies.pinned_bytes <= limit - bytes;
}

static rnl_status allocate_on_host(const rnl_weights *weights, rnl_weight_block *block)
{
    if (may_pin(weights, block->size_bytes) &&
        rnl_buffer_create(weights->device, RNL_MEMORY_PINNED, block->size_bytes, &block->buffer) == RNL_OK &&
        !block->buffer->pageable) {
        block->host = rnl_buffer_host(block->buffer);
        return RNL_OK;
    }
    rnl_buffer_release(block->buffer);
    block->buffer = NULL;
    TRY(rnl_alloc(block->size_bytes, 1, &block->own));
    block->host = block->own;
    return RNL_OK;
}

static rnl_status add_block(rnl_weights *weights, size_t bytes)
{
    TRY(rnl_grow(&weights->blocks, &weights->block_capacity, weights->block_count + 1, sizeof *weights->blocks));
    rnl_weight_block *block = &weights->blocks[weights->block_count];
    *block = (rnl_weight_block){.size_bytes = bytes};
    if (weights->stay_on_host)
        TRY(allocate_on_host(weights, block));
    else
        TRY(rnl_buffer_create(weights->device, RNL_MEMORY_DEVICE, bytes, &block->buffer),
            "the model's weights do not fit: a budget for weights (weight_budget_bytes, --weights-budget) leaves them "
            "on "
            "the host");
    weights->block_count++;
    return RNL_OK;
}

static bool lies_in(const rnl_map *map, const rnl_host_tensor *tensor)
{
    const uintptr_t at = (uintptr_t)tensor->data, start = (uintptr_t)map->data;
    return map->data && at >= start && at - start <= map->size_bytes &&
           map->size_bytes - (at - start) >= tensor->size_bytes;
}

bool rnl_weights_can_map(const rnl_weights *weights, uint32_t value)
{
    const rnl_host_tensor *tensor = weights->constants[value];
    const rnl_graph *graph = weights->graph;
    if (!tensor || tensor->size_bytes < LARGE_BYTES ||
        tensor->size_bytes > rnl_device_get_info(weights->device)->max_allocation_bytes - RNL_WRAP_ALIGN_BYTES)
        return false;
    bool found = lies_in(&graph->file, tensor);
    for (size_t i = 0; i < graph->external_count && !found; i++)
        found = lies_in(&graph->external[i], tensor);
    return found && rnl_device_wraps(weights->device);
}

/* A map begins at a page, so what lies before the tensor in its first line of memory is of the map too. */
static rnl_status map_block(rnl_weights *weights, const rnl_host_tensor *tensor, rnl_weight *weight)
{
    const size_t before = (uintptr_t)tensor->data % RNL_WRAP_ALIGN_BYTES;
    TRY(rnl_grow(&weights->blocks, &weights->block_capacity, weights->block_count + 1, sizeof *weights->blocks));
    rnl_weight_block *block = &weights->blocks[weights->block_count];
    *block = (rnl_weight_block){.is_mapped = true};
    TRY(rnl_buffer_wrap_host(weights->device, (void *)((uintptr_t)tensor->data - before), before + tensor->size_bytes,
                             &block->buffer));
    weight->block = (uint32_t)weights->block_count++;
    weight->offset_bytes = before;
    return RNL_OK;
}

/* The rest of a block that is not filled yet; false when the weight needs a new one. */
static bool find_room(rnl_weights *weights, rnl_weight *weight, size_t align)
{
    const size_t needed = weight->size_bytes + rnl_weights_ahead_bytes(weights); /* of a small weight */
    for (size_t i = weights->ready_blocks; i < weights->block_count; i++) {
        const rnl_weight_block *block = &weights->blocks[i];
        size_t size = block->size_bytes, at = rnl_align_up(block->used_bytes, align);
        if (block->is_mapped || at > size || size - at < needed)
            continue;
        weight->block = (uint32_t)i;
        weight->offset_bytes = at;
        return true;
    }
    return false;
}

/* Near a limit of the device's memory a block is no larger than its first weight. */
static rnl_status find_place(rnl_weights *weights, rnl_weight *weight)
{
    size_t align = rnl_device_get_info(weights->device)->base_align_bytes;
    bool alone = rnl_arena_is_off() || weight->size_bytes >= LARGE_BYTES;
    size_t bytes = weight->size_bytes ? weight->size_bytes : 1;
    if (!alone && find_room(weights, weight, align))
        return RNL_OK;
    size_t wanted = weights->expected_bytes < BLOCK_BYTES ? weights->expected_bytes : BLOCK_BYTES;
    wanted = alone || wanted < bytes ? bytes : wanted;
    wanted = rnl_size_add(wanted, rnl_weights_ahead_bytes(weights), &wanted) ? wanted : bytes;
    rnl_status status = add_block(weights, wanted);
    if (status == RNL_RESOURCE_EXHAUSTED && wanted > bytes)
        status = add_block(weights, bytes);
    TRY(status);
    weight->block = (uint32_t)(weights->block_count - 1);
    weight->offset_bytes = 0;
    return RNL_OK;
}

static rnl_status describe_turned(const rnl_host_tensor *tensor, rnl_weight *weight)
{
    const rnl_dtype dtype = tensor->dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    int64_t shape[2] = {tensor->shape[tensor->rank - 1], 1};
    for (size_t i = 0; i + 1 < tensor->rank; i++)
        shape[1] *= tensor->shape[i];
    weight->view = rnl_view_row_major(0, dtype, 2, shape);
    if (!rnl_size_mul(tensor->size_bytes / rnl_dtype_bytes(tensor->dtype), rnl_dtype_bytes(dtype), &weight->size_bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a turned weight overflows the address space");
    return RNL_OK;
}

static rnl_status describe_bytes(const rnl_weights *weights, const rnl_host_tensor *tensor, rnl_weight *weight)
{
    const rnl_qgemm_source source = rnl_weights_bytes_source(tensor, weight->key.packing);
    const int64_t shape[2] = {rnl_qgemm_source_rows(&source), source.columns};
    const rnl_view matrix = rnl_view_row_major(0, tensor->dtype, 2, shape);
    TRY(rnl_qgemm_packed_bytes(weights->device, &matrix, &weight->size_bytes));
    weight->view =
        rnl_view_row_major(0, RNL_I32, 1, (const int64_t[]){(int64_t)(weight->size_bytes / sizeof(int32_t))});
    return RNL_OK;
}

static rnl_status describe_bytes_winograd(const rnl_host_tensor *tensor, rnl_weight *weight)
{
    const int64_t bytes = rnl_qconv_winograd_bytes(rnl_packing_bytes_winograd_form(weight->key.packing), tensor->shape);
    if (bytes == INT64_MAX)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a packed weight overflows the address space");
    weight->size_bytes = (size_t)bytes;
    weight->view = rnl_view_row_major(0, RNL_I32, 1, (const int64_t[]){bytes / (int64_t)sizeof(int32_t)});
    return RNL_OK;
}

static rnl_status describe_pairs(const rnl_host_tensor *tensor, rnl_weight *weight)
{
    int64_t shape[RNL_MAX_RANK], elements = 0;
    rnl_weights_pairs_shape(tensor, weight->key.packing, shape);
    rnl_conv_pairs_layout(weight->key.groups, 0, tensor->rank, shape, &weight->view, &elements);
    if (elements < 0 || !rnl_size_mul((size_t)elements, sizeof(uint32_t), &weight->size_bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a packed weight overflows the address space");
    return RNL_OK;
}

static rnl_status describe(const rnl_weights *weights, const rnl_host_tensor *tensor, rnl_weight *weight)
{
    int64_t elements = 0;
    rnl_packing packing = weight->key.packing;
    if (rnl_packing_is_vector(packing)) {
        weight->view = rnl_view_row_major(0, RNL_F32, 1, (const int64_t[]){(int64_t)weight->number_count});
        weight->size_bytes = weight->number_count * sizeof(float);
        return RNL_OK;
    }
    if (packing == RNL_PACKING_PLAIN || packing == RNL_PACKING_MAPPED) {
        weight->view = rnl_view_row_major(0, tensor->dtype, tensor->rank, tensor->shape);
        weight->size_bytes = tensor->size_bytes;
        return RNL_OK;
    }
    if (packing == RNL_PACKING_TURNED)
        return describe_turned(tensor, weight);
    if (rnl_packing_is_bytes(packing))
        return describe_bytes(weights, tensor, weight);
    if (rnl_packing_bytes_winograd_form(packing))
        return describe_bytes_winograd(tensor, weight);
    if (rnl_packing_is_pairs(packing))
        return describe_pairs(tensor, weight);
    if (rnl_packing_winograd_side(packing))
        rnl_conv_winograd_layout(rnl_packing_winograd_side(packing), 0, tensor->shape, &weight->view, &elements);
    else if (rnl_packing_amx_parts(packing))
        rnl_conv_amx_layout(rnl_packing_amx_parts(packing), rnl_packing_is_transposed(packing), 0, tensor->rank,
                            tensor->shape, &weight->view, &elements);
    else if (rnl_packing_is_fip(packing))
        rnl_conv_fip_layout(rnl_packing_is_transposed(packing), 0, tensor->rank, tensor->shape, &weight->view,
                            &elements);
    else if (rnl_packing_is_strassen(packing))
        rnl_conv_strassen_layout(rnl_packing_is_transposed(packing), 0, tensor->rank, tensor->shape, &weight->view,
                                 &elements);
    else
        rnl_conv_weight_layout(rnl_packing_is_transposed(packing), weight->key.groups, 0, tensor->dtype, tensor->rank,
                               tensor->shape, &weight->view, &elements);
    if (elements < 0 || !rnl_size_mul((size_t)elements, rnl_dtype_bytes(tensor->dtype), &weight->size_bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a packed weight overflows the address space");
    return RNL_OK;
}

static rnl_status keep_numbers(const double *numbers, size_t count, rnl_weight *weight)
{
    weight->number_count = count;
    if (!numbers)
        return RNL_OK;
    TRY(rnl_alloc(count, sizeof *numbers, &weight->numbers));
    if (count)
        memcpy(weight->numbers, numbers, count * sizeof *numbers);
    return RNL_OK;
}

static rnl_status place(rnl_weights *weights, const rnl_host_tensor *constant, rnl_weight *weight)
{
    if (weight->key.packing == RNL_PACKING_MAPPED)
        TRY(map_block(weights, constant, weight));
    else
        TRY(find_place(weights, weight));
    weights->blocks[weight->block].used_bytes = weight->offset_bytes + weight->size_bytes;
    return RNL_OK;
}

static rnl_status add(rnl_weights *weights, const double *numbers, size_t count, rnl_weight *weight)
{
    const rnl_host_tensor *constant = weights->constants[weight->key.value];
    rnl_status status = RNL_OK;
    GOTO(rnl_grow(&weights->items, &weights->capacity, weights->count + 1, sizeof *weights->items));
    GOTO(keep_numbers(numbers, count, weight));
    GOTO(describe(weights, constant, weight));
    if (!weights->is_dry)
        GOTO(place(weights, constant, weight));
    weight->next = weights->first[weight->key.value];
    weights->items[weights->count++] = *weight;
    weights->first[weight->key.value] = (uint32_t)weights->count;
    weights->size_bytes += rnl_weight_own_bytes(weight);
    size_t source = rnl_packing_is_vector(weight->key.packing) ? 0 : constant->size_bytes;
    size_t placed = source < LARGE_BYTES ? source : 0;
    weights->expected_bytes -= placed < weights->expected_bytes ? placed : weights->expected_bytes;
    return RNL_OK;
done:
    rnl_free(weight->numbers);
    return rnl_error_add(status, "placing weight '%s'", weights->graph->values[weight->key.value].name);
}

/* Item + 1, or 0. */
static uint32_t find(const rnl_weights *weights, const rnl_weight_key *key)
{
    uint32_t at = weights->first[key->value];
    for (; at; at = weights->items[at - 1].next) {
        const rnl_weight_key *other = &weights->items[at - 1].key;
        if (other->packing == key->packing && other->groups == key->groups && other->first == key->first &&
            other->last == key->last)
            break;
    }
    return at;
}

bool rnl_weights_has(rnl_weights *weights, const rnl_weight_key *key)
{
    pthread_mutex_lock(&weights->lock);
    bool has = find(weights, key) != 0;
    pthread_mutex_unlock(&weights->lock);
    return has;
}

static rnl_weight_place place_of(const rnl_weights *weights, const rnl_weight *weight)
{
    rnl_weight_place place = {
        .offset_bytes = weight->offset_bytes, .size_bytes = weight->size_bytes, .block = weight->block};
    if (weights->is_dry)
        return place;
    const rnl_weight_block *block = &weights->blocks[weight->block];
    if (weights->stay_on_host && !block->is_mapped)
        place.host = (const char *)block->host + weight->offset_bytes;
    else
        place.buffer = block->buffer;
    return place;
}

rnl_status rnl_weights_get(rnl_weights *weights, const rnl_weight_key *key, const double *numbers, size_t number_count,
                           rnl_weight_place *out_place, rnl_view *out_view)
{
    *out_place = (rnl_weight_place){0};
    pthread_mutex_lock(&weights->lock);
    uint32_t at = find(weights, key);
    rnl_status status = RNL_OK;
    rnl_weight weight = {.key = *key};
    if (at)
        weight = weights->items[at - 1];
    else
        status = add(weights, numbers, number_count, &weight);
    if (status == RNL_OK) {
        *out_place = place_of(weights, &weight);
        out_place->item = at ? at - 1 : (uint32_t)weights->count - 1;
        *out_view = weight.view;
    }
    pthread_mutex_unlock(&weights->lock);
    return status;
}

/* ---- flushing ------------------------------------------------------------------------------------------------- */

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
    while (weights->count > weights->ready_items) {
        rnl_weight *item = &weights->items[--weights->count];
        weights->size_bytes -= rnl_weight_own_bytes(item);
        weights->first[item->key.value] = item->next;
        rnl_free(item->numbers);
    }
    while (weights->block_count > weights->ready_blocks)
        release_block(&weights->blocks[--weights->block_count]);
    if (rnl_stream_create(weights->device, &stream) == RNL_OK) {
        rnl_stream_release(weights->stream);
        weights->stream = stream;
    }
    weights->failures++;
    rnl_error_restore(&error);
}

/* The vectors and factors have been worked in. */
static void drop_numbers(rnl_weights *weights)
{
    for (size_t i = weights->ready_items; i < weights->count; i++) {
        rnl_free(weights->items[i].numbers);
        weights->items[i].numbers = NULL;
    }
}

rnl_status rnl_weights_flush(rnl_weights *weights, uint64_t mark)
{
    pthread_mutex_lock(&weights->lock);
    rnl_status status = weights->ready_items < weights->count && !weights->is_dry ? rnl_weights_fill(weights) : RNL_OK;
    if (status != RNL_OK)
        forget_pending(weights);
    drop_numbers(weights);
    if (status == RNL_OK && weights->failures != mark)
        status = FAIL(RNL_UNAVAILABLE, "an upload of weights failed in another thread");
    weights->ready_items = weights->count;
    weights->ready_blocks = weights->block_count;
    if (weights->expected_bytes > LATER_BYTES)
        weights->expected_bytes = LATER_BYTES;
    pthread_mutex_unlock(&weights->lock);
    return status;
}
