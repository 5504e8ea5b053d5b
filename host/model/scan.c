/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scan: its inputs are cut along an axis, and the body runs on each piece. Pieces along the first axis lie where they
 * are; another axis is brought to the front on the host, and the results' to its place. Before opset 9 there is a batch
 * in front, whose rows are scanned one after the other.
 */
#include "base/memory.h"
#include "graph/host_element.h"
#include "model/late.h"
#include "model/stack.h"
#include <string.h>

typedef struct scan {
    rnl_frame *frame;
    const rnl_node *node;
    rnl_graph *body;
    bool has_batch;
    uint32_t first; /* of the node's inputs: behind the lengths */
    uint32_t states, scanned, stacked;
    int64_t length, batch;
    rnl_cell **sources; /* what is cut, its axis in front (behind the batch) */
    rnl_cell **inputs;  /* of the body */
    rnl_cell **outputs;
    rnl_stack *stacks;       /* of one row: one for each output that is joined */
    rnl_stack *batch_stacks; /* of the rows: one for each of the node's outputs */
    bool *backwards;         /* one for each that is cut */
} scan;

/* ---- axes ----------------------------------------------------------------------------------------------------- */

static int64_t attribute_int(const rnl_node *node, const char *name, size_t index)
{
    size_t count;
    const int64_t *values = rnl_node_ints(node, name, &count);
    return index < count ? values[index] : 0;
}

/* Moves an axis on the host: from `from` to `to`, the others keep their order. */
static rnl_status move_axis(rnl_session *session, rnl_cell *cell, size_t from, size_t to, rnl_cell **out_cell)
{
    const size_t rank = cell->desc.rank, size = rnl_dtype_bytes(cell->desc.dtype);
    size_t order[RNL_MAX_RANK] = {0};
    int64_t shape[RNL_MAX_RANK], stride[RNL_MAX_RANK];
    rnl_walk walk;
    for (size_t i = 0, next = 0; i < rank; i++) {
        next += next == from;
        order[i] = i == to ? from : next++;
    }
    TRY(rnl_cell_to_host(session, cell));
    rnl_dense_strides(cell->desc.shape, rank, stride);
    for (size_t i = 0; i < rank; i++)
        shape[i] = cell->desc.shape[order[i]];
    TRY(rnl_cell_create(cell->desc.dtype, rank, shape, out_cell));
    rnl_status status = rnl_cell_alloc_host(*out_cell);
    if (status != RNL_OK) {
        rnl_cell_set(out_cell, NULL);
        return status;
    }
    rnl_walk_init(&walk, shape, rank);
    walk.operands = 1;
    for (size_t i = 0; i < rank; i++)
        walk.stride[0][i] = stride[order[i]];
    walk.at[0] = 0;
    unsigned char *to_bytes = (*out_cell)->owned;
    for (; walk.left > 0; rnl_walk_next(&walk), to_bytes += size)
        memcpy(to_bytes, (const unsigned char *)cell->host + (size_t)walk.at[0] * size, size);
    return RNL_OK;
}

/* ---- beginning ------------------------------------------------------------------------------------------------ */

static rnl_status cut_input(scan *s, uint32_t index)
{
    rnl_session *session = s->frame->session;
    const size_t front = s->has_batch ? 1 : 0;
    rnl_cell *cell = NULL;
    size_t axis = front;
    TRY(rnl_frame_input(s->frame, s->node, s->first + s->states + index, &cell));
    if (!cell)
        return FAIL(RNL_INVALID_ARGUMENT, "its input %u is missing", s->first + s->states + index);
    if (cell->desc.rank <= front)
        return FAIL(RNL_INVALID_ARGUMENT, "its input %u has rank %zu and no axis to be cut along",
                    s->first + s->states + index, cell->desc.rank);
    if (!s->has_batch)
        TRY(rnl_axis_resolve(attribute_int(s->node, "scan_input_axes", index), cell->desc.rank, "scan_input_axes",
                             &axis));
    s->backwards[index] = attribute_int(s->node, s->has_batch ? "directions" : "scan_input_directions", index) != 0;
    int64_t length = cell->desc.shape[axis];
    if (index == 0)
        s->length = length;
    if (length != s->length || (s->has_batch && cell->desc.shape[0] != s->batch))
        return FAIL(RNL_INVALID_ARGUMENT, "its inputs to be cut have lengths %lld and %lld", (long long)s->length,
                    (long long)length);
    if (axis == front) {
        s->sources[index] = rnl_cell_retain(cell);
        return RNL_OK;
    }
    return move_axis(session, cell, axis, front, &s->sources[index]);
}

static rnl_status allocate(scan *s)
{
    TRY(rnl_alloc(s->scanned, sizeof *s->sources, &s->sources));
    TRY(rnl_alloc(s->scanned, sizeof *s->backwards, &s->backwards));
    TRY(rnl_alloc(s->states + s->scanned, sizeof *s->inputs, &s->inputs));
    TRY(rnl_alloc(s->body->output_count, sizeof *s->outputs, &s->outputs));
    TRY(rnl_alloc(s->stacked + 1u, sizeof *s->stacks, &s->stacks));
    return rnl_alloc(s->states + s->stacked + 1u, sizeof *s->batch_stacks, &s->batch_stacks);
}

static rnl_status begin_scan(scan *s)
{
    const rnl_node *node = s->node;
    rnl_cell *cell = NULL;
    s->has_batch = node->opset < 9;
    s->first = s->has_batch ? 1 : 0;
    s->body = rnl_node_graph(node, "body");
    s->scanned = (uint32_t)rnl_node_int(node, "num_scan_inputs", 1);
    s->states = rnl_node_own_inputs(node) - s->first - s->scanned;
    s->stacked = (uint32_t)s->body->output_count - s->states;
    TRY(allocate(s));
    s->batch = 1;
    TRY(rnl_frame_input(s->frame, node, s->first + s->states, &cell));
    if (s->has_batch && cell && cell->desc.rank > 0)
        s->batch = cell->desc.shape[0];
    for (uint32_t i = 0; i < s->scanned; i++)
        TRY(cut_input(s, i));
    for (uint32_t i = 0; i < s->scanned; i++) /* once, not piece by piece */
        TRY(rnl_cell_to_device(s->frame->session, s->sources[i]));
    return rnl_stream_synchronize(s->frame->session->stream);
}

/* ---- one row -------------------------------------------------------------------------------------------------- */

/* Part `index` along the first axis. */
static rnl_status take_part(rnl_cell *cell, int64_t index, rnl_cell **out_part)
{
    size_t bytes = rnl_cell_bytes(cell) / (size_t)(cell->desc.shape[0] ? cell->desc.shape[0] : 1);
    return rnl_cell_part(cell, bytes * (size_t)index, cell->desc.rank - 1, cell->desc.shape + 1, out_part);
}

static rnl_status set_piece(scan *s, uint32_t index, int64_t row, int64_t piece, int64_t length)
{
    rnl_cell *source = s->sources[index], *part = NULL, **input = &s->inputs[s->states + index];
    int64_t at = s->backwards[index] ? length - 1 - piece : piece;
    rnl_cell_set(input, NULL);
    if (!s->has_batch)
        return take_part(source, at, input);
    TRY(take_part(source, row, &part));
    rnl_status status = take_part(part, at, input);
    rnl_cell_release(part);
    return status;
}

static rnl_status iterate(scan *s, int64_t row, int64_t piece, int64_t length)
{
    rnl_session *session = s->frame->session;
    rnl_status status = RNL_OK;
    for (uint32_t i = 0; i < s->scanned; i++)
        TRY(set_piece(s, i, row, piece, length));
    TRY(rnl_call_graph(s->frame, s->node, s->body, s->inputs, s->outputs));
    for (uint32_t i = 0; i < s->states; i++)
        rnl_cell_set(&s->inputs[i], s->outputs[i]);
    for (uint32_t i = 0; i < s->stacked; i++)
        GOTO(rnl_stack_add(&s->stacks[i], session, s->outputs[s->states + i], (size_t)s->length));
done:
    for (size_t i = 0; i < s->body->output_count; i++)
        rnl_cell_set(&s->outputs[i], NULL);
    return status;
}

static rnl_status set_states(scan *s, int64_t row)
{
    for (uint32_t i = 0; i < s->states; i++) {
        rnl_cell *cell = NULL;
        TRY(rnl_frame_input(s->frame, s->node, s->first + i, &cell));
        if (!cell)
            return FAIL(RNL_INVALID_ARGUMENT, "its input %u is missing", s->first + i);
        rnl_cell_set(&s->inputs[i], NULL);
        if (!s->has_batch) {
            s->inputs[i] = rnl_cell_retain(cell);
            continue;
        }
        if (cell->desc.rank == 0 || cell->desc.shape[0] != s->batch)
            return FAIL(RNL_INVALID_ARGUMENT, "its input %u has no batch of %lld", s->first + i, (long long)s->batch);
        TRY(take_part(cell, row, &s->inputs[i]));
    }
    return RNL_OK;
}

static rnl_status run_row(scan *s, int64_t row, int64_t length)
{
    TRY(set_states(s, row));
    for (int64_t i = 0; i < length; i++) {
        if (rnl_session_is_cancelled(s->frame->session))
            return FAIL(RNL_CANCELLED, "the run was cancelled before iteration %lld", (long long)i);
        TRY(iterate(s, row, i, length), "iteration %lld", (long long)i);
    }
    return RNL_OK;
}

/* A row's joined results, as many parts as the longest row has: zeros behind a shorter one's. */
static rnl_status pad_stack(rnl_stack *stack, rnl_session *session, int64_t length)
{
    rnl_cell *zeros = NULL;
    rnl_status status = RNL_OK;
    if (stack->count >= (size_t)length)
        return RNL_OK;
    TRY(rnl_cell_create(stack->part.dtype, stack->part.rank, stack->part.shape, &zeros));
    GOTO(rnl_cell_alloc_host(zeros));
    memset(zeros->owned, 0, rnl_cell_bytes(zeros));
    while (stack->count < (size_t)length)
        GOTO(rnl_stack_add(stack, session, zeros, (size_t)length));
done:
    rnl_cell_release(zeros);
    return status;
}

static rnl_status join(scan *s, uint32_t index, bool backwards, rnl_cell **out_cell)
{
    rnl_stack *stack = &s->stacks[index];
    if (stack->count == 0)
        return rnl_cell_of_nothing(&s->body->outputs[s->states + index], out_cell);
    TRY(pad_stack(stack, s->frame->session, s->length));
    return rnl_stack_take(stack, s->frame->session, backwards, out_cell);
}

/* ---- ending --------------------------------------------------------------------------------------------------- */

static rnl_status give_joined(scan *s, uint32_t index)
{
    rnl_cell *joined = NULL, *moved = NULL;
    rnl_status status = RNL_OK;
    size_t axis = 0;
    TRY(join(s, index, attribute_int(s->node, "scan_output_directions", index) != 0, &joined));
    GOTO(rnl_axis_resolve(attribute_int(s->node, "scan_output_axes", index), joined->desc.rank, "scan_output_axes",
                          &axis));
    if (axis != 0)
        GOTO(move_axis(s->frame->session, joined, 0, axis, &moved));
    rnl_frame_give(s->frame, s->node, s->states + index, moved ? moved : joined);
done:
    rnl_cell_release(joined);
    rnl_cell_release(moved);
    return status;
}

static rnl_status run_plain(scan *s)
{
    TRY(run_row(s, 0, s->length));
    for (uint32_t i = 0; i < s->states; i++)
        rnl_frame_give(s->frame, s->node, i, s->inputs[i]);
    for (uint32_t i = 0; i < s->stacked; i++)
        TRY(give_joined(s, i));
    return RNL_OK;
}

static rnl_status row_length(scan *s, rnl_cell *lengths, int64_t row, int64_t *out_length)
{
    *out_length = s->length;
    if (!lengths)
        return RNL_OK;
    if (rnl_desc_elements(&lengths->desc) != s->batch)
        return FAIL(RNL_INVALID_ARGUMENT, "sequence_lens has shape %s; the batch is %lld",
                    rnl_shape_format(lengths->desc.shape, lengths->desc.rank).text, (long long)s->batch);
    TRY(rnl_cell_to_host(s->frame->session, lengths));
    *out_length = rnl_element_load(lengths->host, row, lengths->desc.dtype).i;
    if (*out_length < 0 || *out_length > s->length)
        return FAIL(RNL_INVALID_ARGUMENT, "sequence_lens holds %lld; the sequences have %lld", (long long)*out_length,
                    (long long)s->length);
    return RNL_OK;
}

static rnl_status keep_row(scan *s)
{
    rnl_session *session = s->frame->session;
    for (uint32_t i = 0; i < s->states; i++)
        TRY(rnl_stack_add(&s->batch_stacks[i], session, s->inputs[i], (size_t)s->batch));
    for (uint32_t i = 0; i < s->stacked; i++) {
        rnl_cell *joined = NULL;
        TRY(join(s, i, false, &joined));
        rnl_status status = rnl_stack_add(&s->batch_stacks[s->states + i], session, joined, (size_t)s->batch);
        rnl_cell_release(joined);
        TRY(status);
    }
    return RNL_OK;
}

static rnl_status run_batch(scan *s)
{
    rnl_cell *lengths = NULL;
    TRY(rnl_frame_input(s->frame, s->node, 0, &lengths));
    if (s->batch == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "a batch of no rows has no result");
    for (int64_t row = 0; row < s->batch; row++) {
        int64_t length;
        TRY(row_length(s, lengths, row, &length));
        TRY(run_row(s, row, length));
        TRY(keep_row(s));
    }
    for (uint32_t i = 0; i < s->states + s->stacked; i++) {
        rnl_cell *joined = NULL;
        TRY(rnl_stack_take(&s->batch_stacks[i], s->frame->session, false, &joined));
        rnl_frame_give(s->frame, s->node, i, joined);
        rnl_cell_release(joined);
    }
    return RNL_OK;
}

static void free_scan(scan *s)
{
    for (uint32_t i = 0; s->sources && i < s->scanned; i++)
        rnl_cell_release(s->sources[i]);
    for (uint32_t i = 0; s->inputs && i < s->states + s->scanned; i++)
        rnl_cell_release(s->inputs[i]);
    for (uint32_t i = 0; s->stacks && i < s->stacked; i++)
        rnl_stack_free(&s->stacks[i]);
    for (uint32_t i = 0; s->batch_stacks && i < s->states + s->stacked; i++)
        rnl_stack_free(&s->batch_stacks[i]);
    rnl_free(s->sources);
    rnl_free(s->backwards);
    rnl_free(s->inputs);
    rnl_free(s->outputs);
    rnl_free(s->stacks);
    rnl_free(s->batch_stacks);
}

rnl_status rnl_run_scan(rnl_frame *frame, const rnl_node *node)
{
    scan s = {.frame = frame, .node = node};
    rnl_status status = RNL_OK;
    GOTO(begin_scan(&s));
    GOTO(s.has_batch ? run_batch(&s) : run_plain(&s));
done:
    if (status != RNL_OK) {
        rnl_error error = *rnl_last_error();
        (void)!rnl_stream_synchronize(frame->session->stream); /* before the stacks' memory goes */
        status = rnl_error_restore(&error);
    }
    free_scan(&s);
    return status;
}
