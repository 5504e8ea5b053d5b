/* SPDX-License-Identifier: Apache-2.0 */
#include "model/nan.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "graph/op_common.h"
#include "model/evaluate.h"
#include <stdlib.h>
#include <string.h>

rnl_nan_mode rnl_nan_wanted(void)
{
    const char *value = getenv("RUNNEL_CHECK_NAN");
    if (!value || !*value || strcmp(value, "0") == 0)
        return RNL_NAN_OFF;
    return strcmp(value, "inf") == 0 ? RNL_NAN_AND_INF : RNL_NAN_ONLY;
}

/* ---- Elements ---- */

static bool is_looked_at(rnl_dtype dtype)
{
    return dtype == RNL_F32 || dtype == RNL_F16 || dtype == RNL_BF16 || dtype == RNL_F64;
}

/* The bits of infinity of each type; a NaN's are more, without the sign. */
static bool is_bad(rnl_dtype dtype, const unsigned char *at, rnl_nan_mode mode)
{
    uint64_t bits = 0, infinity;
    size_t bytes = rnl_dtype_bytes(dtype);
    memcpy(&bits, at, bytes);
    bits &= ~(UINT64_C(1) << (8 * bytes - 1));
    infinity = dtype == RNL_F64   ? UINT64_C(0x7ff0000000000000)
               : dtype == RNL_F32 ? 0x7f800000
               : dtype == RNL_F16 ? 0x7c00
                                  : 0x7f80;
    return bits > infinity || (mode == RNL_NAN_AND_INF && bits == infinity);
}

typedef struct found {
    int64_t count, elements;
    int64_t first[RNL_MAX_RANK];
} found;

/* Elements in the order of their indices; `memory` holds them from the view's lowest on. */
static void scan(const rnl_view *view, const unsigned char *memory, int64_t origin, rnl_nan_mode mode, found *out)
{
    int64_t index[RNL_MAX_RANK] = {0}, at = origin;
    const size_t bytes = rnl_dtype_bytes(view->dtype);
    *out = (found){.elements = rnl_view_elements(view)};
    for (int64_t i = 0; i < out->elements; i++) {
        if (is_bad(view->dtype, memory + (size_t)at * bytes, mode) && out->count++ == 0)
            memcpy(out->first, index, sizeof index);
        for (size_t d = view->rank; d-- > 0;) {
            at += view->stride[d];
            if (++index[d] < view->shape[d])
                break;
            at -= view->stride[d] * view->shape[d];
            index[d] = 0;
        }
    }
}

static bool host_is_bad(rnl_dtype dtype, int64_t elements, const void *data, rnl_nan_mode mode)
{
    const unsigned char *at = data;
    for (int64_t i = 0; is_looked_at(dtype) && i < elements; i++, at += rnl_dtype_bytes(dtype))
        if (is_bad(dtype, at, mode))
            return true;
    return false;
}

/* ---- Planning ---- */

static rnl_status add_source(rnl_plan *plan, struct rnl_nan_check *check, uint32_t value)
{
    const size_t count = check->first_source + check->source_count;
    for (size_t i = check->first_source; i < count; i++)
        if (plan->nan_sources[i] == value)
            return RNL_OK;
    TRY(rnl_grow(&plan->nan_sources, &plan->nan_source_capacity, count + 1, sizeof *plan->nan_sources));
    plan->nan_sources[count] = value;
    check->source_count++;
    return RNL_OK;
}

/* Through values that are in no memory, since nodes are one step. */
static rnl_status add_sources(rnl_planner *planner, struct rnl_nan_check *check, uint32_t node)
{
    const rnl_graph *graph = planner->graph;
    const rnl_nan_mode mode = planner->model->root->nan_mode;
    for (uint32_t i = 0; i < graph->nodes[node].input_count; i++) {
        const uint32_t value = graph->nodes[node].inputs[i];
        if (value == RNL_NO_VALUE || value == check->value)
            continue;
        const rnl_host_tensor *constant = planner->model->constants.tensors[value];
        const rnl_plan_value *it = &planner->values[value];
        const rnl_tensor_desc desc = constant ? rnl_desc_of(constant) : it->desc;
        if (desc.host)
            check->has_tainted_constant |= host_is_bad(desc.dtype, rnl_desc_elements(&desc), desc.host, mode);
        else if (it->placed || it->input)
            TRY(add_source(planner->plan, check, value));
        else if (graph->values[value].producer != RNL_NO_NODE)
            TRY(add_sources(planner, check, graph->values[value].producer));
    }
    return RNL_OK;
}

rnl_status rnl_nan_note(rnl_planner *planner, uint32_t node)
{
    rnl_plan *plan = planner->plan;
    const rnl_node *of = &planner->graph->nodes[node];
    for (uint32_t i = 0; i < of->output_count; i++) {
        const uint32_t value = of->outputs[i];
        if (value == RNL_NO_VALUE || !planner->values[value].placed || !is_looked_at(planner->values[value].view.dtype))
            continue;
        const uint32_t slot = planner->values[value].view.slot;
        if (slot != RNL_NO_SLOT && plan->slots[slot].host) /* a weight, in its ring for a while only */
            continue;
        struct rnl_nan_check check = {.steps = plan->steps.step_count,
                                      .node = node,
                                      .value = value,
                                      .view = planner->values[value].view,
                                      .first_source = plan->nan_source_count};
        TRY(add_sources(planner, &check, node));
        plan->nan_source_count += check.source_count;
        TRY(rnl_grow(&plan->nan_checks, &plan->nan_check_capacity, plan->nan_check_count + 1,
                     sizeof *plan->nan_checks));
        plan->nan_checks[plan->nan_check_count++] = check;
    }
    return RNL_OK;
}

/* ---- Running ---- */

static rnl_status look_at(rnl_session *session, const rnl_view *view, found *out)
{
    int64_t low = 0, high = 0;
    unsigned char *memory = NULL;
    const size_t bytes = rnl_dtype_bytes(view->dtype);
    *out = (found){0};
    for (size_t i = 0; i < view->rank; i++) {
        const int64_t reach = (view->shape[i] - 1) * view->stride[i];
        if (view->shape[i] == 0)
            return RNL_OK;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    const size_t size = (size_t)(high - low + 1) * bytes;
    TRY(rnl_alloc(size, 1, &memory));
    const rnl_status status =
        rnl_slot_read(session->stream, &session->slots[view->slot], (size_t)(view->offset + low) * bytes, size, memory);
    if (status == RNL_OK)
        scan(view, memory, -low, session->model->root->nan_mode, out);
    rnl_free(memory);
    return status;
}

static const char *what(const rnl_session *session)
{
    return session->model->root->nan_mode == RNL_NAN_AND_INF ? "NaN or infinity" : "NaN";
}

/* "3 of 24 elements of 'y' (2x3x4), the first at [0, 1, 2]" */
static void describe(rnl_text *text, const char *name, const rnl_view *view, const found *of)
{
    rnl_text_add(text, "%lld of %lld elements of '%s' (", (long long)of->count, (long long)of->elements, name);
    rnl_text_add_shape(text, view->shape, view->rank);
    rnl_text_add(text, "), the first at [");
    for (size_t i = 0; i < view->rank; i++)
        rnl_text_add(text, "%s%lld", i ? ", " : "", (long long)of->first[i]);
    rnl_text_add(text, "]");
}

rnl_status rnl_nan_begin(rnl_session *session)
{
    const rnl_plan *plan = session->bound;
    const rnl_graph *graph = plan->model->graph;
    if (plan->nan_check_count == 0)
        return RNL_OK;
    TRY(rnl_grow(&session->nan_values, &session->nan_value_capacity, graph->value_count, sizeof *session->nan_values));
    memset(session->nan_values, 0, graph->value_count * sizeof *session->nan_values);
    for (size_t i = 0; i < plan->input_count; i++) {
        const rnl_plan_io *io = &plan->inputs[i];
        found here;
        if (io->slot == RNL_NO_SLOT || !is_looked_at(io->desc.dtype))
            continue;
        const rnl_view view = rnl_view_row_major(io->slot, io->desc.dtype, io->desc.rank, io->desc.shape);
        TRY(look_at(session, &view, &here), "looking at input '%s'", graph->values[io->value].name);
        session->nan_values[io->value] = here.count > 0;
        if (here.count == 0)
            continue;
        rnl_text text = {0};
        describe(&text, graph->values[io->value].name, &view, &here);
        rnl_log(RNL_LOG_WARNING, "%s is in the input already: %s", what(session), text.data ? text.data : "");
        rnl_text_free(&text);
    }
    return RNL_OK;
}

static rnl_status fail(const rnl_session *session, const struct rnl_nan_check *check, const found *here)
{
    const rnl_plan *plan = session->bound;
    const rnl_graph *graph = plan->model->graph;
    const size_t step = check->steps ? check->steps - 1 : 0;
    const bool has_step = check->steps > 0;
    const char *also = has_step ? plan->step_labels[step].also : "";
    rnl_text text = {0};
    describe(&text, graph->values[check->value].name, &check->view, here);
    rnl_status status =
        FAIL(RNL_FAILED_PRECONDITION, "%s came of step %zu (%s): %s; nothing that it read held any", what(session),
             step, has_step ? plan->steps.steps[step].implementation : "", text.data ? text.data : "");
    rnl_text_free(&text);
    if (*also)
        status = rnl_error_add(status, "the step is %s%s: values between are in no memory",
                               graph->nodes[plan->step_labels[step].node].op_type, also);
    return rnl_node_error(graph, &graph->nodes[check->node], status);
}

rnl_status rnl_nan_look(rnl_session *session, size_t steps, size_t *next)
{
    const rnl_plan *plan = session->bound;
    for (; *next < plan->nan_check_count && plan->nan_checks[*next].steps == steps; ++*next) {
        const struct rnl_nan_check *check = &plan->nan_checks[*next];
        bool tainted = check->has_tainted_constant;
        found here;
        TRY(look_at(session, &check->view, &here), "looking at '%s'", plan->model->graph->values[check->value].name);
        for (size_t i = 0; i < check->source_count; i++)
            tainted |= session->nan_values[plan->nan_sources[check->first_source + i]];
        if (here.count > 0 && !tainted)
            return fail(session, check, &here);
        session->nan_values[check->value] = here.count > 0;
    }
    return RNL_OK;
}
