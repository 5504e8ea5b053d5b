/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/trace.h"
#include "model/evaluate.h"
#include "model/fuse.h"
#include "model/lower.h"
#include "model/narrow.h"
#include "model/place.h"
#include "model/ring.h"
#include "model/tell.h"
#include <string.h>

rnl_plan *rnl_plan_retain(rnl_plan *plan)
{
    if (plan)
        atomic_fetch_add(&plan->references, 1);
    return plan;
}

void rnl_plan_release(rnl_plan *plan)
{
    if (!plan || atomic_fetch_sub(&plan->references, 1) != 1)
        return;
    rnl_step_list_free(&plan->steps);
    rnl_free(plan->nan_checks);
    rnl_free(plan->nan_sources);
    rnl_ring_plan_free(plan->ring);
    rnl_free(plan->step_labels);
    rnl_free(plan->slots);
    rnl_zone_free(&plan->zone);
    rnl_free(plan);
}

static rnl_status plan_alloc(rnl_model *model, const rnl_plan_request *request, rnl_plan **out_plan)
{
    rnl_plan *plan = NULL;
    rnl_status status = RNL_OK;
    TRY(rnl_alloc(1, sizeof *plan, &plan));
    atomic_init(&plan->references, 1);
    rnl_step_list_init(&plan->steps, model->device);
    plan->model = model;
    plan->random_slot = RNL_NO_SLOT;
    plan->first_node = request->first_node;
    plan->input_count = request->input_count;
    GOTO(rnl_zone_alloc(&plan->zone, plan->input_count, sizeof *plan->inputs, &plan->inputs));
    *out_plan = plan;
    return RNL_OK;
done:
    rnl_plan_release(plan);
    return status;
}

/* ---- placing inputs and outputs ------------------------------------------------------------------------------- */

static void place_inputs(rnl_planner *planner, const rnl_plan_request *request)
{
    for (size_t i = 0; i < request->input_count; i++) {
        rnl_plan_io *io = &planner->plan->inputs[i];
        rnl_plan_value *value = &planner->values[request->values[i]];
        io->value = request->values[i];
        io->desc = request->inputs[i];
        io->desc.host = NULL;
        io->slot = RNL_NO_SLOT;
        value->desc = request->inputs[i];
        value->described = true;
        value->input = io;
    }
}

/* An output that the host knows is kept there. */
static rnl_status keep_known(rnl_plan *plan, rnl_plan_io *io)
{
    size_t bytes = (size_t)rnl_desc_elements(&io->desc) * rnl_dtype_bytes(io->desc.dtype);
    void *copy = NULL;
    TRY(rnl_zone_alloc(&plan->zone, bytes ? bytes : 1, 1, &copy));
    memcpy(copy, io->desc.host, bytes);
    io->desc.host = copy;
    return RNL_OK;
}

static rnl_status place_outputs(rnl_planner *planner)
{
    rnl_lowering lowering = {.planner = planner, .list = &planner->plan->steps};
    for (size_t i = 0; i < planner->plan->output_count; i++) {
        rnl_plan_io *io = &planner->plan->outputs[i];
        io->desc = planner->values[io->value].desc;
        io->slot = RNL_NO_SLOT;
        if (io->desc.host) {
            TRY(keep_known(planner->plan, io));
            continue;
        }
        rnl_view view;
        TRY(rnl_lower_value(&lowering, io->value, RNL_LAYOUT_ROW_MAJOR, &view), "output '%s'",
            planner->graph->values[io->value].name);
        io->slot = view.slot;
        io->offset_bytes = (size_t)view.offset * rnl_dtype_bytes(view.dtype);
    }
    return RNL_OK;
}

/* ---- lifetimes ------------------------------------------------------------------------------------------------ */

static void use_slot(rnl_plan *plan, uint32_t slot, int64_t step)
{
    if (slot == RNL_NO_SLOT)
        return;
    rnl_slot *used = &plan->slots[slot];
    if (used->kind != RNL_SLOT_ARENA)
        return;
    used->first_write = step < used->first_write ? step : used->first_write;
    used->last_use = step > used->last_use ? step : used->last_use;
}

static void find_lifetimes(rnl_plan *plan)
{
    const rnl_step_list *list = &plan->steps;
    int64_t end = (int64_t)list->step_count;
    for (size_t i = 0; i < plan->slot_count; i++) {
        bool constant = plan->slots[i].kind == RNL_SLOT_CONSTANT || plan->slots[i].kind == RNL_SLOT_RANDOM;
        plan->slots[i].first_write = constant ? RNL_BEFORE_STEPS : end;
        plan->slots[i].last_use = constant ? end : RNL_BEFORE_STEPS;
    }
    for (size_t i = 0; i < plan->input_count; i++)
        use_slot(plan, plan->inputs[i].slot, RNL_BEFORE_STEPS);
    for (size_t i = 0; i < list->step_count; i++) {
        const rnl_step *step = &list->steps[i];
        for (uint32_t j = 0; j < step->arg_count; j++)
            if (list->args[step->first_arg + j].kind == RNL_STEP_SLOT)
                use_slot(plan, list->args[step->first_arg + j].slot, (int64_t)i);
        if (step->kind == RNL_STEP_CLBLAST_GEMM) {
            use_slot(plan, list->gemms[step->gemm_at].a_slot, (int64_t)i);
            use_slot(plan, list->gemms[step->gemm_at].b_slot, (int64_t)i);
            use_slot(plan, list->gemms[step->gemm_at].c_slot, (int64_t)i);
        }
    }
    for (size_t i = 0; i < plan->output_count; i++)
        use_slot(plan, plan->outputs[i].slot, end);
}

/* ---- finishing ------------------------------------------------------------------------------------------------ */

static rnl_status collect_programs(rnl_plan *plan)
{
    TRY(rnl_zone_alloc(&plan->zone, plan->steps.step_count, sizeof *plan->programs, &plan->programs));
    for (size_t i = 0; i < plan->steps.step_count; i++) {
        rnl_program *program = plan->steps.steps[i].program;
        bool known = !program;
        for (size_t j = 0; j < plan->program_count && !known; j++)
            known = plan->programs[j] == program;
        if (!known)
            plan->programs[plan->program_count++] = program;
    }
    return RNL_OK;
}

static void measure(rnl_plan *plan)
{
    const rnl_step_list *list = &plan->steps;
    plan->size_bytes = sizeof *plan + plan->zone.used_bytes + plan->slot_capacity * sizeof *plan->slots +
                       plan->step_label_capacity * sizeof *plan->step_labels +
                       list->step_capacity * sizeof *list->steps + list->arg_capacity * sizeof *list->args +
                       list->value_capacity + list->gemm_capacity * sizeof *list->gemms +
                       rnl_ring_plan_bytes(plan->ring);
}

static void log_steps(const rnl_planner *planner)
{
    rnl_plan_tell(planner);
    if (!rnl_log_enabled(RNL_LOG_INFO))
        return;
    const rnl_plan *plan = planner->plan;
    for (size_t i = 0; i < plan->steps.step_count; i++) {
        const rnl_step *step = &plan->steps.steps[i];
        uint32_t node = plan->step_labels[i].node;
        rnl_log(RNL_LOG_INFO, "step %zu: %s for %s '%s'%s", i, step->implementation,
                node == RNL_NO_NODE ? "edge" : planner->graph->nodes[node].op_type,
                node == RNL_NO_NODE ? "" : planner->graph->nodes[node].name, plan->step_labels[i].also);
    }
    rnl_log(RNL_LOG_INFO, "planned: %zu steps, %zu programs, arena %zu bytes in %zu block%s", plan->steps.step_count,
            plan->program_count, plan->arena_bytes, plan->block_count, plan->block_count == 1 ? "" : "s");
}

static rnl_status lower_graph(rnl_planner *planner)
{
    TRY(rnl_lower_nodes(planner));
    TRY(place_outputs(planner));
    return rnl_plan_cover_steps(planner, RNL_NO_NODE, NULL);
}

/* Waits for the uploads also when lowering failed: a failure of the stream's is over then. */
static rnl_status lower_and_upload(rnl_planner *planner)
{
    rnl_weights *weights = &planner->model->weights;
    uint64_t mark = rnl_weights_mark(weights);
    rnl_status status = lower_graph(planner);
    rnl_error error = *rnl_last_error();
    const uint64_t start = rnl_trace_start();
    rnl_status uploaded = rnl_weights_flush(weights, mark);
    rnl_trace_stop(start, "place weights");
    if (status == RNL_OK)
        return uploaded == RNL_OK ? RNL_OK : rnl_error_add(uploaded, "placing weights");
    return rnl_error_restore(&error);
}

static rnl_status fill_plan(rnl_planner *planner, const rnl_plan_request *request)
{
    rnl_plan *plan = planner->plan;
    place_inputs(planner, request);
    TRY(rnl_plan_describe(planner));
    TRY(rnl_plan_find_outputs(planner));
    rnl_plan_mark_needed(planner);
    TRY(rnl_fuse(planner));
    TRY(rnl_place_homes(planner));
    TRY(rnl_narrow_find(planner));
    TRY(lower_and_upload(planner));
    find_lifetimes(plan);
    rnl_plan_find_in_place(plan);
    TRY(rnl_arena_assign(plan, rnl_device_get_info(planner->model->device)));
    TRY(rnl_ring_plan_make(plan));
    TRY(collect_programs(plan));
    measure(plan);
    log_steps(planner);
    return RNL_OK;
}

rnl_status rnl_plan_create_noted(rnl_model *model, const rnl_plan_request *request, rnl_plan_note_fn note, void *user,
                                 rnl_plan **out_plan)
{
    *out_plan = NULL;
    rnl_zone zone = {0};
    rnl_planner planner = {.model = model, .graph = model->graph, .zone = &zone};
    rnl_status status = RNL_OK;
    GOTO(plan_alloc(model, request, &planner.plan));
    GOTO(rnl_zone_alloc(&zone, model->graph->value_count, sizeof *planner.values, &planner.values));
    GOTO(rnl_zone_alloc(&zone, model->graph->node_count, sizeof *planner.on_host, &planner.on_host));
    GOTO(fill_plan(&planner, request));
    if (note)
        GOTO(note(user, &planner));
    *out_plan = planner.plan;
    planner.plan = NULL;
done:
    rnl_plan_release(planner.plan);
    rnl_zone_free(&zone);
    return status;
}

rnl_status rnl_plan_create(rnl_model *model, const rnl_plan_request *request, rnl_plan **out_plan)
{
    return rnl_plan_create_noted(model, request, NULL, NULL, out_plan);
}
