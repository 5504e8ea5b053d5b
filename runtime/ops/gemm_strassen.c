/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm_strassen.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include "ops/processor.h"
#include <unistd.h>

#define SUMS 3                /* of products, that a level keeps */
#define TOGETHER (512 * 1024) /* floats of slabs that pass b's blocks together */
#define GAIN 1.03             /* over plain products, to be worth more memory */
#define STORING 16.0          /* cycles of storing a vector to one of a slab's blocks, as measured on Zen 3 */
#define BYTES_A_CYCLE 7.0     /* that memory gives to all threads together */

/* How the work is cut: a work-item does some slabs of parts * rows rows, and some column blocks of each. */
typedef struct strassen_plan {
    rnl_strassen_form form;
    int64_t slabs, share_slabs, share_blocks, together;
    int64_t slab_items, block_items, slab_floats;
    int64_t packed; /* floats of b's sums, when a step in front makes them */
    int64_t scratch;
    double cost;
} strassen_plan;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Cycles of a work-item where a cycle does one vector's multiply-adds. */
static double item_cost(const strassen_plan *plan)
{
    const rnl_strassen_form *form = &plan->form;
    const double terms = (double)form->part_terms, sums = (double)(form->rows * form->count);
    const double copying = (double)(form->products * form->rows) * terms / (double)form->vector * STORING;
    const double product = (double)form->products * (1.05 * terms * sums + 100);
    return (double)(plan->share_slabs * form->chunks) * (copying + (double)plan->share_blocks * product);
}

/* Some work-items for each thread, which all take as long; each has memory of its own. */
static void choose_shares(const rnl_device *device, strassen_plan *plan)
{
    const int64_t units = rnl_device_units(device), most = 4 * units, blocks = plan->form.blocks;
    strassen_plan best = {.cost = 0}, it = *plan;
    for (int64_t i = 1; i <= blocks && i <= most; ++i)
        for (int64_t j = 1; j <= it.slabs && j <= most; ++j) {
            it.share_blocks = rnl_divide_up(blocks, i);
            it.block_items = rnl_divide_up(blocks, it.share_blocks);
            it.share_slabs = rnl_divide_up(it.slabs, j);
            it.slab_items = rnl_divide_up(it.slabs, it.share_slabs);
            it.cost = item_cost(&it) * (double)rnl_divide_up(it.slab_items * it.block_items, units);
            if (best.slabs == 0 || it.cost < 0.98 * best.cost)
                best = it;
        }
    *plan = best;
}

static bool add_memory(strassen_plan *plan)
{
    const rnl_strassen_form *form = &plan->form;
    const int64_t tile = form->rows * form->count * form->vector;
    const int64_t sums = form->levels == 2 ? 5 * SUMS : SUMS;
    const int64_t copied = form->products * rnl_strassen_block(form->part_terms * form->rows);
    const int64_t done = form->chunks > 1 ? plan->share_blocks * form->parts * form->parts * tile : 0;
    plan->slab_floats = copied + sums * tile + done;
    const int64_t fit = larger(TOGETHER / plan->slab_floats, 1);
    /* As many each time. */
    plan->together = rnl_divide_up(plan->share_slabs, rnl_divide_up(plan->share_slabs, fit));
    const int64_t items = plan->slab_items * plan->block_items;
    int64_t own;
    return !__builtin_mul_overflow(items * plan->together, plan->slab_floats, &own) &&
           !__builtin_add_overflow(own, plan->packed, &plan->scratch);
}

static bool make_plan(const rnl_device *device, const rnl_gemm_problem *problem, strassen_plan *out_plan)
{
    strassen_plan plan = {.slabs = 0};
    if (problem->dst->dtype != RNL_F32 || problem->batch.rank > 0 || problem->k < 1 || problem->m > INT32_MAX ||
        (problem->packed && !problem->sums) || !rnl_strassen_form_of(device, problem->b, &plan.form))
        return false;
    plan.packed = problem->sums ? 0 : plan.form.floats;
    plan.slabs = rnl_divide_up(problem->m, plan.form.parts * plan.form.rows);
    choose_shares(device, &plan);
    if (!add_memory(&plan))
        return false;
    *out_plan = plan;
    return true;
}

int64_t rnl_gemm_strassen_scratch(const rnl_device *device, const rnl_gemm_problem *problem)
{
    strassen_plan plan;
    return make_plan(device, problem, &plan) ? plan.scratch : 0;
}

bool rnl_gemm_strassen_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const rnl_view *scratch = problem->scratch;
    const int64_t given = scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
    strassen_plan plan;
    return problem->normwise && problem->variant == 0 && make_plan(device, problem, &plan) && plan.scratch <= given;
}

/*
 * With b's sums, which are more than b, on their way from memory, and made where they were not packed. They pass once
 * for the slabs that are together, which takes longer than the products where few are.
 */
static double whole_cost(const rnl_device *device, const strassen_plan *plan)
{
    const double floats = (double)plan->form.floats, made = (double)plan->packed / (double)plan->form.vector;
    const double pass = floats * sizeof(float) / BYTES_A_CYCLE;
    const double passes = (double)(plan->slab_items * rnl_divide_up(plan->share_slabs, plan->together)) * pass;
    const double products = plan->cost + pass;
    return (products > passes ? products : passes) + made * STORING / (double)rnl_device_units(device);
}

/* Of plain products by the same tiles. */
static double direct_cost(const rnl_device *device, const rnl_gemm_problem *problem, const rnl_strassen_form *form)
{
    const double k = (double)problem->k, floats = (double)problem->n * k;
    const double tiles =
        (double)(rnl_divide_up(problem->m, form->rows) * rnl_divide_up(problem->n, form->count * form->vector));
    return tiles * (1.07 * k * (double)(form->rows * form->count) + 100) / (double)rnl_device_units(device) +
           floats * sizeof(float) / BYTES_A_CYCLE;
}

/*
 * Where a cycle does two multiply-adds of 16 floats, slabs do not come fast enough from beyond a second cache: 1,024
 * and 2,048 cubed 214 and 160 of 270 GFLOP/s, and plain products 252 and 236, on a Zen 5 with 1 MiB of it. A Xeon of
 * model 207 has 2 MiB.
 */
bool rnl_gemm_strassen_loses_slabs(const rnl_device *device)
{
    return device->vector_width == 16 && rnl_processor_is_swift() &&
           sysconf(_SC_LEVEL2_CACHE_SIZE) < (long)(TOGETHER * sizeof(float));
}

bool rnl_gemm_strassen_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    strassen_plan plan;
    return rnl_device_is_cpu(device) && !rnl_is_deterministic() && !rnl_gemm_strassen_loses_slabs(device) &&
           make_plan(device, problem, &plan) &&
           (uint64_t)plan.scratch <= device->info.max_allocation_bytes / sizeof(float) &&
           GAIN * whole_cost(device, &plan) < direct_cost(device, problem, &plan.form);
}

static rnl_status append_product(rnl_step_list *list, const char *name, const rnl_gemm_problem *problem,
                                 const strassen_plan *plan, const rnl_view *sums)
{
    const rnl_strassen_form *form = &plan->form;
    const int64_t own_floats = plan->together * plan->slab_floats;
    rnl_view own = *problem->scratch;
    rnl_step_builder step;
    own.offset += plan->packed;
    const bool index64 = problem->index64 || own.offset + plan->scratch > INT32_MAX - 65536 ||
                         sums->offset + form->floats > INT32_MAX - 65536;
    rnl_step_begin(&step, list, name, index64);
    rnl_step_type(&step, "T", RNL_F32);
    rnl_step_define(&step, "R=%lld -DW=%lld -DNB=%lld -DLEVELS=%lld", (long long)form->rows, (long long)form->vector,
                    (long long)form->count, (long long)form->levels);
    if (problem->chain && !rnl_gemm_chain_takes_vectors(problem))
        rnl_step_define(&step, "LANES");
    rnl_gemm_add_arguments(&step, problem, true);
    rnl_step_slot(&step, sums->slot);
    rnl_step_slot(&step, own.slot);
    rnl_step_offsets(&step, 8, (const rnl_view *const[]){sums, &own}, 2,
                     (const int64_t[]){own_floats, plan->share_slabs, plan->share_blocks, plan->together,
                                       form->part_terms, form->chunks},
                     6);
    rnl_gemm_add_chain(&step, problem);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)plan->slab_items, (size_t)plan->block_items, 1}, (size_t[3]){1, 1, 1});
    step.step.flops = rnl_gemm_flops(problem);
    step.step.bytes = rnl_gemm_bytes(problem);
    rnl_step_writes(&step, problem->dst->slot);
    rnl_step_writes(&step, own.slot);
    return rnl_step_end(&step, "gemm_strassen.cl", "gemm_strassen");
}

rnl_status rnl_gemm_strassen_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const rnl_view *sums = problem->sums ? problem->sums : problem->scratch;
    strassen_plan plan;
    if (!make_plan(list->device, problem, &plan))
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    if (!problem->sums)
        TRY(rnl_strassen_append_pack(list, &plan.form, problem->b, sums));
    return append_product(list, name, problem, &plan, sums);
}
