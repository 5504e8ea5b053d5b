/* SPDX-License-Identifier: Apache-2.0 */
#include "model/stack.h"

#include "base/memory.h"
#include <string.h>

#define FIRST_ROOM 8

static size_t part_bytes(const rnl_stack *stack)
{
    return (size_t)rnl_desc_elements(&stack->part) * rnl_dtype_bytes(stack->part.dtype);
}

static rnl_status check_part(const rnl_stack *stack, const rnl_cell *part)
{
    const rnl_tensor_desc *a = &stack->part, *b = &part->desc;
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (size_t i = 0; i < a->rank && same; i++)
        same = a->shape[i] == b->shape[i];
    if (same)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "one iteration gives %s of shape %s, another %s of shape %s to be joined",
                rnl_dtype_name(a->dtype), rnl_shape_format(a->shape, a->rank).text, rnl_dtype_name(b->dtype),
                rnl_shape_format(b->shape, b->rank).text);
}

/* The stream is idle afterwards: what grew out of its memory is released. */
static rnl_status grow(rnl_stack *stack, rnl_session *session, size_t room)
{
    const size_t bytes = part_bytes(stack);
    rnl_buffer *buffer = NULL;
    size_t total;
    rnl_status status = RNL_OK;
    if (!rnl_size_mul(bytes, room, &total))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%zu iterations give more than any memory can hold", room);
    TRY(rnl_buffer_create(session->model->device, RNL_MEMORY_DEVICE, total, &buffer), "%zu iterations' results", room);
    if (stack->count > 0) {
        GOTO(rnl_stream_copy(session->stream, buffer, 0, stack->buffer, 0, bytes * stack->count));
        GOTO(rnl_stream_synchronize(session->stream));
    }
done:
    if (status != RNL_OK) {
        (void)!rnl_stream_synchronize(session->stream);
        rnl_buffer_release(buffer);
        return status;
    }
    rnl_buffer_release(stack->buffer);
    stack->buffer = buffer;
    stack->room = room;
    return RNL_OK;
}

rnl_status rnl_stack_add(rnl_stack *stack, rnl_session *session, rnl_cell *part, size_t expected)
{
    if (stack->count == 0)
        stack->part = part->desc;
    TRY(check_part(stack, part));
    if (part->desc.rank >= RNL_MAX_RANK)
        return FAIL(RNL_UNIMPLEMENTED, "results of rank %zu cannot be joined: rank %d is the most", part->desc.rank,
                    RNL_MAX_RANK);
    const size_t bytes = part_bytes(stack);
    if (bytes > 0 && stack->count == stack->room)
        TRY(grow(stack, session, stack->room ? 2 * stack->room : expected ? expected : FIRST_ROOM));
    if (bytes > 0 && part->buffer)
        TRY(rnl_stream_copy(session->stream, stack->buffer, bytes * stack->count, part->buffer, part->offset_bytes,
                            bytes));
    else if (bytes > 0)
        TRY(rnl_stream_write(session->stream, stack->buffer, bytes * stack->count, part->host, bytes));
    stack->count++;
    return rnl_stream_synchronize(session->stream); /* the part may go now */
}

static rnl_status turn_round(rnl_stack *stack, rnl_session *session, rnl_cell *cell)
{
    const size_t bytes = part_bytes(stack);
    TRY(rnl_cell_alloc_device(session, cell));
    for (size_t i = 0; i < stack->count && bytes > 0; i++)
        TRY(rnl_stream_copy(session->stream, cell->buffer, bytes * i, stack->buffer, bytes * (stack->count - 1 - i),
                            bytes));
    return rnl_stream_synchronize(session->stream);
}

rnl_status rnl_stack_take(rnl_stack *stack, rnl_session *session, bool backwards, rnl_cell **out_cell)
{
    int64_t shape[RNL_MAX_RANK] = {(int64_t)stack->count};
    for (size_t i = 0; i < stack->part.rank; i++)
        shape[i + 1] = stack->part.shape[i];
    TRY(rnl_cell_create(stack->part.dtype, stack->part.rank + 1, shape, out_cell));
    if (backwards) {
        rnl_status status = turn_round(stack, session, *out_cell);
        if (status != RNL_OK)
            rnl_cell_set(out_cell, NULL);
        return status;
    }
    (*out_cell)->buffer = stack->buffer;
    *stack = (rnl_stack){0};
    return RNL_OK;
}

void rnl_stack_free(rnl_stack *stack)
{
    rnl_buffer_release(stack->buffer);
    *stack = (rnl_stack){0};
}
