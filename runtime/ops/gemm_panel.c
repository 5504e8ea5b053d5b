/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products on CPUs by tiles in registers. The second factor is read where it lies, or from panels, into which each
 * work-item or a step in front copies it unless that was done beforehand.
 */
#include "ops/gemm_panel.h"
#include "base/status.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"

static int64_t given_floats(const rnl_gemm_problem *problem)
{
    const rnl_view *scratch = problem->scratch;
    return scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
}

int64_t rnl_gemm_panel_scratch(const rnl_device *device, const rnl_gemm_problem *problem)
{
    rnl_gemm_panel_plan plan;
    return rnl_gemm_panel_plan_make(device, problem, INT64_MAX, &plan) ? plan.scratch : 0;
}

bool rnl_gemm_panel_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    rnl_gemm_panel_plan plan;
    return rnl_gemm_panel_plan_make(device, problem, given_floats(problem), &plan);
}

/* Copying must be shared by some rows of a; so few rows as here are better multiplied along k, where that can be. */
bool rnl_gemm_panel_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    rnl_gemm_panel_plan plan;
    if (problem->packed)
        return true;
    if (!rnl_device_is_cpu(device) || problem->n < 4 || problem->k < 4 ||
        !rnl_gemm_panel_plan_make(device, problem, given_floats(problem), &plan))
        return false;
    const int64_t rows = rnl_count_to_choose_by(problem->m, RNL_DETERMINISTIC_ROWS);
    return !plan.packs || rows > 16 || (rows >= 8 && (problem->a_k != 1 || problem->b_k != 1));
}

/* The product with its second factor in panels, which a step in front of it makes. */
static rnl_status pack(rnl_step_list *list, const rnl_gemm_panels *form, rnl_gemm_problem *problem, rnl_view *panels)
{
    const rnl_gemm_params params = {
        .alpha = problem->alpha, .beta = problem->beta, .chain = problem->chain, .scratch = problem->scratch};
    TRY(rnl_gemm_append_pack(list, form, problem->b, problem->scratch));
    *panels = rnl_gemm_packed_view(form, problem->b, problem->scratch);
    return rnl_gemm_describe(&params, problem->a, panels, problem->c, problem->dst, problem);
}

static void add_defines(rnl_step_builder *step, const rnl_gemm_problem *problem, const rnl_gemm_panel_plan *plan)
{
    const rnl_dtype type = problem->dst->dtype;
    rnl_step_type(step, "T", type);
    if (problem->a->dtype != type)
        rnl_step_type(step, "T_A", problem->a->dtype);
    rnl_step_define(step, "R=%lld -DW=%lld -DNB=%lld -DA=%s%s", (long long)plan->rows, (long long)plan->vector,
                    (long long)plan->count, plan->form,
                    plan->inside  ? " -DCOPY_B"
                    : plan->packs ? " -DPANELS"
                                  : "");
    if (problem->chain && !rnl_gemm_chain_takes_vectors(problem))
        rnl_step_define(step, "LANES");
}

static rnl_status append_product(rnl_step_list *list, const char *name, const rnl_gemm_problem *problem,
                                 const rnl_gemm_panel_plan *plan)
{
    const int64_t batches = rnl_dims_elements(&problem->batch);
    const size_t items[3] = {(size_t)plan->row_items, (size_t)plan->column_items, (size_t)batches};
    rnl_view own = {.slot = RNL_NO_SLOT};
    rnl_step_builder step;
    if (plan->own_floats) {
        own = *problem->scratch;
        own.offset += plan->scratch - plan->row_items * plan->column_items * batches * plan->own_floats;
    }
    rnl_step_begin(&step, list, name, problem->index64);
    step.step.problem = plan->problem;
    step.step.variants = plan->variants;
    add_defines(&step, problem, plan);
    rnl_gemm_add_arguments(&step, problem, true);
    rnl_step_slot(&step, own.slot);
    rnl_step_offsets(&step, 8, (const rnl_view *const[]){&own}, 1,
                     (const int64_t[]){plan->own_floats, plan->share_slabs, plan->share_panels, plan->depth}, 4);
    rnl_gemm_add_chain(&step, problem);
    rnl_step_range(&step, 3, items, (size_t[3]){1, 1, 1});
    step.step.flops = rnl_gemm_flops(problem);
    step.step.bytes = rnl_gemm_bytes(problem);
    rnl_step_writes(&step, problem->dst->slot);
    if (plan->own_floats)
        rnl_step_writes(&step, own.slot);
    return rnl_step_end(&step, "gemm_panel.cl", "gemm_panel");
}

rnl_status rnl_gemm_panel_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_problem *given = data;
    rnl_gemm_problem problem = *given;
    rnl_gemm_panel_plan plan;
    rnl_view panels = *given->b;
    if (!rnl_gemm_panel_plan_make(list->device, given, given_floats(given), &plan))
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    if (plan.packs && !plan.inside && !given->packed)
        TRY(pack(list, &plan.panels, &problem, &panels));
    if (plan.packs && !plan.inside) {
        panels.dtype = RNL_F32;
        problem.b = &panels;
        problem.b_k = plan.panels.width;
        problem.b_n = plan.panels.width * problem.k;
        problem.index64 |= panels.offset + plan.panels.floats > INT32_MAX;
    }
    problem.index64 |= plan.own_floats && problem.scratch->offset + plan.scratch > INT32_MAX;
    return append_product(list, name, &problem, &plan);
}
