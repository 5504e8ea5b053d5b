/* SPDX-License-Identifier: Apache-2.0 */
/* Products by work-groups through local memory, for GPUs. Their terms are summed in parts where there are few tiles. */
#include "base/status.h"
#include "ops/gemm_problem.h"
#include "ops/implementation.h"
#include "ops/tile.h"

static rnl_tile_product make_product(const rnl_gemm_problem *problem)
{
    return (rnl_tile_product){.rows = problem->m,
                              .columns = problem->n,
                              .depth = problem->k,
                              .layers = rnl_dims_elements(&problem->batch),
                              .kind = problem->variant};
}

int64_t rnl_gemm_tiled_scratch(const rnl_device *device, const rnl_gemm_problem *problem)
{
    const rnl_tile_product product = make_product(problem);
    rnl_tile tile;
    return rnl_tile_choose(device, &product, problem->scratch, &tile) ? rnl_tile_scratch(&tile, &product) : 0;
}

bool rnl_gemm_tiled_applies(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    const rnl_dtype type = problem->dst->dtype;
    const rnl_tile_product product = make_product(problem);
    rnl_tile tile;
    return (type == RNL_F32 || type == RNL_F16 || type == RNL_BF16) && problem->k > 0 && !problem->packed &&
           rnl_tile_choose(device, &product, problem->scratch, &tile);
}

/* One row too: its terms are divided among work-groups, which read b as fast as memory gives it. */
bool rnl_gemm_tiled_pays(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    return device->info.type == RNL_DEVICE_GPU && problem->n >= 8 && problem->k >= 8;
}

static void begin(rnl_step_builder *step, rnl_step_list *list, const char *name, const rnl_gemm_problem *problem,
                  const rnl_tile *tile)
{
    const int64_t parts[4] = {tile->parts, tile->part_depth, tile->quads};
    rnl_step_begin(step, list, name, problem->index64);
    rnl_step_type(step, "T", problem->dst->dtype);
    rnl_tile_define(step, tile);
    rnl_step_define(step, "A_ALONG=%d -DB_ALONG=%d", rnl_gemm_a_along(problem), rnl_gemm_b_along(problem));
    if (problem->chain && !rnl_gemm_chain_takes_vectors(problem))
        rnl_step_define(step, "LANES");
    rnl_gemm_add_arguments(step, problem, false);
    rnl_step_view(step, tile->parts > 1 ? problem->scratch : NULL);
    rnl_step_indices(step, 4, parts, 4, 0);
    rnl_gemm_add_chain(step, problem);
}

static rnl_status append_sum(rnl_step_list *list, const char *name, const rnl_gemm_problem *problem,
                             const rnl_tile *tile, const rnl_tile_product *product)
{
    rnl_step_builder step;
    begin(&step, list, name, problem, tile);
    rnl_tile_sum_range(&step, tile, product);
    step.step.bytes = 4 * (uint64_t)rnl_tile_scratch(tile, product);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "gemm_tiled.cl", "gemm_sum");
}

rnl_status rnl_gemm_tiled_append(rnl_step_list *list, const char *name, const void *data)
{
    rnl_gemm_problem problem = *(const rnl_gemm_problem *)data;
    const rnl_tile_product product = make_product(&problem);
    rnl_tile tile;
    rnl_step_builder step;
    if (!rnl_tile_choose(list->device, &product, problem.scratch, &tile))
        return FAIL(RNL_INTERNAL, "%s does not apply to this matrix product", name);
    const bool parts = tile.parts > 1;
    problem.index64 |= parts && problem.scratch->offset + rnl_tile_scratch(&tile, &product) > INT32_MAX;
    begin(&step, list, name, &problem, &tile);
    rnl_tile_range(&step, &tile, &product);
    step.step.flops = rnl_gemm_flops(&problem);
    step.step.bytes = rnl_gemm_bytes(&problem);
    rnl_step_writes(&step, parts ? problem.scratch->slot : problem.dst->slot);
    TRY(rnl_step_end(&step, "gemm_tiled.cl", "gemm_tiled"));
    return parts ? append_sum(list, name, &problem, &tile, &product) : RNL_OK;
}
