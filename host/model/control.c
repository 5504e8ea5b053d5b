/* SPDX-License-Identifier: Apache-2.0 */
/* If and Loop: the host reads a condition and runs a graph. */
#include "base/memory.h"
#include "model/late.h"
#include "model/stack.h"

rnl_status rnl_run_if(rnl_frame *frame, const rnl_node *node)
{
    rnl_cell *condition = NULL, **outputs = NULL;
    int64_t chosen;
    rnl_status status = RNL_OK;
    TRY(rnl_frame_input(frame, node, 0, &condition));
    TRY(rnl_cell_int(frame->session, condition, "the condition", &chosen));
    rnl_graph *graph = rnl_node_graph(node, chosen ? "then_branch" : "else_branch");
    TRY(rnl_alloc(graph->output_count, sizeof *outputs, &outputs));
    GOTO(rnl_call_graph(frame, node, graph, NULL, outputs), "%s", chosen ? "then_branch" : "else_branch");
    for (uint32_t i = 0; i < node->output_count; i++)
        rnl_frame_give(frame, node, i, outputs[i]);
done:
    for (size_t i = 0; i < graph->output_count; i++)
        rnl_cell_release(outputs[i]);
    rnl_free(outputs);
    return status;
}

#define MOST_EXPECTED 4096

/* ---- Loop ----------------------------------------------------------------------------------------------------- */

typedef struct loop {
    rnl_frame *frame;
    const rnl_node *node;
    rnl_graph *body;
    int64_t trips; /* at most; -1: no limit */
    bool goes_on;
    uint32_t states, stacked;
    rnl_cell **inputs;  /* of the body: the iteration's number, the condition, the states */
    rnl_cell **outputs; /* of one iteration */
    rnl_stack *stacks;  /* one for each output that is joined */
} loop;

static rnl_status begin_loop(loop *l)
{
    rnl_frame *frame = l->frame;
    const uint32_t own = rnl_node_own_inputs(l->node);
    rnl_cell *trips = NULL, *condition = NULL;
    int64_t first = 1;
    l->body = rnl_node_graph(l->node, "body");
    l->states = own > 2 ? own - 2 : 0;
    l->stacked = (uint32_t)l->body->output_count - 1 - l->states;
    l->trips = -1;
    TRY(rnl_alloc(l->states + 2u, sizeof *l->inputs, &l->inputs));
    TRY(rnl_alloc(l->body->output_count, sizeof *l->outputs, &l->outputs));
    TRY(rnl_alloc(l->stacked + 1u, sizeof *l->stacks, &l->stacks));
    TRY(rnl_frame_input(frame, l->node, 0, &trips));
    TRY(rnl_frame_input(frame, l->node, 1, &condition));
    if (trips)
        TRY(rnl_cell_int(frame->session, trips, "the trip count", &l->trips));
    if (trips && l->trips < 0)
        l->trips = 0;
    if (condition)
        TRY(rnl_cell_int(frame->session, condition, "the condition", &first));
    l->goes_on = first != 0;
    for (uint32_t i = 0; i < l->states; i++) {
        rnl_cell *state = NULL;
        TRY(rnl_frame_input(frame, l->node, i + 2, &state));
        if (!state)
            return FAIL(RNL_INVALID_ARGUMENT, "its input %u is missing", i + 2);
        l->inputs[i + 2] = rnl_cell_retain(state);
    }
    return RNL_OK;
}

/* Bodies declare scalars, some of them tensors of one element. */
static rnl_status set_number(const loop *l, size_t index, rnl_dtype dtype, int64_t value)
{
    size_t rank = l->body->inputs[index].rank == 1 ? 1 : 0;
    rnl_cell_set(&l->inputs[index], NULL);
    return rnl_cell_of_int(dtype, rank, value, &l->inputs[index]);
}

/* A trip count says how many results there will be, unless it stands for no limit. */
static size_t room_for(const loop *l)
{
    return l->trips > 0 && l->trips <= MOST_EXPECTED ? (size_t)l->trips : 0;
}

static rnl_status iterate(loop *l, int64_t number)
{
    rnl_session *session = l->frame->session;
    int64_t condition = 0;
    rnl_status status = RNL_OK;
    TRY(set_number(l, 0, RNL_I64, number));
    TRY(set_number(l, 1, RNL_BOOL, 1));
    TRY(rnl_call_graph(l->frame, l->node, l->body, l->inputs, l->outputs));
    GOTO(rnl_cell_int(session, l->outputs[0], "the condition", &condition));
    for (uint32_t i = 0; i < l->states; i++)
        rnl_cell_set(&l->inputs[i + 2], l->outputs[i + 1]);
    for (uint32_t i = 0; i < l->stacked; i++)
        GOTO(rnl_stack_add(&l->stacks[i], session, l->outputs[1 + l->states + i], room_for(l)));
    l->goes_on = condition != 0;
done:
    for (size_t i = 0; i < l->body->output_count; i++)
        rnl_cell_set(&l->outputs[i], NULL);
    return status;
}

rnl_status rnl_cell_of_nothing(const rnl_value_info *info, rnl_cell **out_cell)
{
    int64_t shape[RNL_MAX_RANK] = {0};
    const size_t rank = info->rank == SIZE_MAX ? 0 : info->rank;
    *out_cell = NULL;
    if (rank >= RNL_MAX_RANK || rnl_dtype_bytes(info->dtype) == 0)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "there is no iteration, and '%s' of its body has no type that tells what "
                    "its result is",
                    info->name);
    for (size_t i = 0; i < rank; i++)
        shape[i + 1] = info->shape[i] < 0 ? 0 : info->shape[i];
    return rnl_cell_create(info->dtype, rank + 1, shape, out_cell);
}

static rnl_status end_loop(loop *l)
{
    for (uint32_t i = 0; i < l->states; i++)
        rnl_frame_give(l->frame, l->node, i, l->inputs[i + 2]);
    for (uint32_t i = 0; i < l->stacked; i++) {
        rnl_cell *joined = NULL;
        if (l->stacks[i].count == 0)
            TRY(rnl_cell_of_nothing(&l->body->outputs[1 + l->states + i], &joined));
        else
            TRY(rnl_stack_take(&l->stacks[i], l->frame->session, false, &joined));
        rnl_frame_give(l->frame, l->node, l->states + i, joined);
        rnl_cell_release(joined);
    }
    return RNL_OK;
}

static void free_loop(loop *l)
{
    for (uint32_t i = 0; l->inputs && i < l->states + 2; i++)
        rnl_cell_release(l->inputs[i]);
    for (uint32_t i = 0; l->stacks && i < l->stacked; i++)
        rnl_stack_free(&l->stacks[i]);
    rnl_free(l->inputs);
    rnl_free(l->outputs);
    rnl_free(l->stacks);
}

rnl_status rnl_run_loop(rnl_frame *frame, const rnl_node *node)
{
    loop l = {.frame = frame, .node = node};
    rnl_status status = RNL_OK;
    GOTO(begin_loop(&l));
    for (int64_t i = 0; l.goes_on && (l.trips < 0 || i < l.trips); i++) {
        if (rnl_session_is_cancelled(frame->session))
            GOTO(FAIL(RNL_CANCELLED, "the run was cancelled before iteration %lld", (long long)i));
        GOTO(iterate(&l, i), "iteration %lld", (long long)i);
    }
    GOTO(end_loop(&l));
done:
    if (status != RNL_OK) {
        rnl_error error = *rnl_last_error();
        (void)!rnl_stream_synchronize(frame->session->stream); /* before the stacks' memory goes */
        status = rnl_error_restore(&error);
    }
    free_loop(&l);
    return status;
}
