/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm_bf16.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/shares.h"
#include <stdlib.h>
#include <string.h>

#define PANEL 32
#define WIDTH 16 /* of a vector */

/* False where another implementation is forced: its packed form is another. */
static bool is_wanted(void)
{
    const char *forced = getenv("RUNNEL_GEMM");
    return !forced || !*forced || strcmp(forced, "bf16") == 0;
}

static bool find_panels(const rnl_view *b, rnl_gemm_panels *out_panels)
{
    rnl_gemm_panels panels = {.width = PANEL, .matrices = 1};
    if (b->rank < 2 || b->dtype != RNL_BF16 || rnl_view_elements(b) <= 0)
        return false;
    const int64_t rows = rnl_divide_up(b->shape[b->rank - 2], 2);
    panels.panels = rnl_divide_up(b->shape[b->rank - 1], PANEL);
    for (size_t i = 0; i + 2 < b->rank; ++i)
        if (b->shape[i] != 1 && b->stride[i] != 0 &&
            __builtin_mul_overflow(panels.matrices, b->shape[i], &panels.matrices))
            return false;
    if (__builtin_mul_overflow(rows * PANEL, panels.panels, &panels.floats) ||
        __builtin_mul_overflow(panels.floats, panels.matrices, &panels.floats) || panels.floats > INT64_MAX / 16)
        return false;
    *out_panels = panels;
    return true;
}

bool rnl_gemm_bf16_panels_of(const rnl_device *device, const rnl_view *b, rnl_gemm_panels *out_panels)
{
    return b->dtype == RNL_BF16 && is_wanted() && rnl_device_runs(device, RNL_INSTRUCTION_BF16) &&
           find_panels(b, out_panels);
}

/* The dimensions along which the matrices differ, the last one first. */
static rnl_dims find_matrices(const rnl_view *b)
{
    rnl_dims matrices = {.views = 1};
    for (size_t i = b->rank - 2; i-- > 0;) {
        if (b->shape[i] == 1 || b->stride[i] == 0)
            continue;
        matrices.shape[matrices.rank] = b->shape[i];
        matrices.stride[0][matrices.rank++] = b->stride[i];
    }
    return matrices;
}

rnl_status rnl_gemm_bf16_append_pack(rnl_step_list *list, const rnl_gemm_panels *panels, const rnl_view *b,
                                     const rnl_view *packed)
{
    const int64_t k = b->shape[b->rank - 2], n = b->shape[b->rank - 1];
    const int64_t b_k = b->stride[b->rank - 2], b_n = b->stride[b->rank - 1];
    const size_t items[3] = {(size_t)panels->panels * (PANEL / WIDTH), (size_t)panels->matrices, 1};
    const rnl_dims matrices = find_matrices(b);
    rnl_step_builder step;
    size_t local[3];
    bool index64;
    TRY(rnl_views_check((const rnl_view *const[]){b, packed}, 2, &index64));
    rnl_step_begin(&step, list, "gemm:bf16", index64 || panels->floats + packed->offset > INT32_MAX);
    rnl_step_define(&step, "FORM=%s", b_n == 1 ? "N" : "ANY");
    rnl_step_view(&step, b);
    rnl_step_view(&step, packed);
    rnl_step_indices(&step, 4, (const int64_t[]){k, n, panels->panels, panels->matrices}, 4, 0);
    rnl_step_indices(&step, 4, (const int64_t[]){b_k, b_n}, 2, 0);
    rnl_step_indices(&step, 8, matrices.shape, matrices.rank, 1);
    rnl_step_indices(&step, 8, matrices.stride[0], matrices.rank, 0);
    rnl_tile_group(list->device, items, local);
    rnl_step_range(&step, 2, items, local);
    step.step.bytes = (uint64_t)panels->floats * 2 * sizeof(float);
    rnl_step_writes(&step, packed->slot);
    return rnl_step_end(&step, "gemm_bf16_pack.cl", "gemm_bf16_pack");
}

static int64_t given_floats(const rnl_gemm_problem *problem)
{
    const rnl_view *scratch = problem->scratch;
    return scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
}

int64_t rnl_gemm_bf16_scratch(const rnl_device *device, const rnl_gemm_problem *problem)
{
    rnl_gemm_panels panels;
    (void)device;
    return !problem->packed && find_panels(problem->b, &panels) ? panels.floats : 0;
}

bool rnl_gemm_bf16_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    rnl_gemm_panels panels;
    if (problem->dst->dtype != RNL_BF16 || !find_panels(problem->b, &panels))
        return false;
    if (problem->packed)
        return rnl_gemm_bf16_panels_of(device, problem->b, &panels);
    return given_floats(problem) >= panels.floats && rnl_device_runs(device, RNL_INSTRUCTION_BF16);
}

/* Copying b must be shared by some rows of a. */
bool rnl_gemm_bf16_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    (void)device;
    return problem->packed ||
           (rnl_count_to_choose_by(problem->m, RNL_DETERMINISTIC_ROWS) >= 4 && problem->n >= 4 && problem->k >= 2);
}

static rnl_status append_product(rnl_step_list *list, const char *name, const rnl_gemm_problem *p)
{
    const int64_t rows = rnl_gemm_tile_rows_of_8(p->m);
    const int64_t panels = rnl_divide_up(p->n, PANEL), batches = rnl_dims_elements(&p->batch);
    const int64_t tiles = rnl_tiles_of_item(list->device, rnl_divide_up(p->m, rows), panels * batches, p->k);
    const int64_t row_items = rnl_divide_up(p->m, rows * tiles);
    const bool rows_first = !rnl_shares_evenly(list->device, p->m, rows * tiles);
    const size_t items[3] = {(size_t)(rows_first ? row_items : panels), (size_t)(rows_first ? panels : row_items),
                             (size_t)batches};
    static const size_t local[3] = {1, 1, 1};
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, p->index64);
    rnl_step_define(&step, "R=%lld", (long long)rows);
    if (p->a_k != 1)
        rnl_step_define(&step, "APART");
    if (p->chain && !rnl_gemm_chain_takes_vectors(p))
        rnl_step_define(&step, "LANES");
    rnl_gemm_add_arguments(&step, p, rows_first);
    rnl_step_int(&step, (int32_t)tiles);
    rnl_gemm_add_chain(&step, p);
    rnl_step_range(&step, 3, items, local);
    step.step.flops = rnl_gemm_flops(p);
    step.step.bytes = rnl_gemm_bytes(p);
    rnl_step_writes(&step, p->dst->slot);
    return rnl_step_end(&step, "gemm_bf16.cl", "gemm_bf16");
}

rnl_status rnl_gemm_bf16_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_gemm_problem *given = data;
    rnl_gemm_problem problem = *given;
    rnl_gemm_panels panels;
    rnl_view packed = *given->b;
    if (!find_panels(given->b, &panels))
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    if (!given->packed) {
        const rnl_gemm_params params = {.alpha = given->alpha, .beta = given->beta, .chain = given->chain};
        TRY(rnl_gemm_bf16_append_pack(list, &panels, given->b, given->scratch));
        packed = rnl_gemm_packed_view(&panels, given->b, given->scratch);
        TRY(rnl_gemm_describe(&params, given->a, &packed, given->c, given->dst, &problem));
    }
    packed.dtype = RNL_F32; /* integers of as many bytes */
    problem.b = &packed;
    problem.b_n = panels.floats / panels.matrices / panels.panels;
    problem.index64 |= packed.offset + panels.floats > INT32_MAX;
    return append_product(list, name, &problem);
}
