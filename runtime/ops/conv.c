/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv.h"
#include "ops/conv_amx.h"
#include "ops/conv_depthwise.h"
#include "ops/conv_fip.h"
#include "ops/conv_pairs.h"
#include "ops/conv_panel.h"
#include "ops/conv_phases.h"
#include "ops/conv_step.h"
#include "ops/conv_strassen.h"
#include "ops/conv_tiled.h"
#include "ops/conv_winograd.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include <stdlib.h>

/* Pixels of one row that have the same taps. */
static int64_t run_pixels(const rnl_conv_problem *problem)
{
    const int64_t phases = problem->transposed ? problem->stride[2] : 1;
    return (problem->dst_size[2] + phases - 1) / phases;
}

/* As many pixels as keep the accumulators of two vectors in registers, fewer for short rows. */
static int64_t choose_pixels(const rnl_conv_problem *problem, int64_t vector)
{
    const int64_t most = vector == 16 ? 7 : vector == 8 ? 6 : 4, pixels = run_pixels(problem);
    if (pixels >= most)
        return most;
    return pixels <= 1 ? 1 : pixels <= 2 ? 2 : pixels <= 4 ? 4 : most;
}

static rnl_conv_tile choose_tile(const rnl_device *device, const rnl_conv_problem *problem)
{
    rnl_conv_tile tile = {.vector = device->vector_width};
    while (tile.vector > 4 && problem->filters <= tile.vector / 2)
        tile.vector /= 2;
    tile.vectors = problem->filters > tile.vector ? 2 : 1;
    tile.pixels = choose_pixels(problem, tile.vector);
    return tile;
}

static void add_grid(rnl_step_builder *step, const rnl_conv_problem *problem, const rnl_conv_tile *tile, int64_t blocks,
                     bool blocks_last)
{
    const int64_t phases = problem->transposed ? problem->stride[2] : 1;
    const size_t runs = (size_t)((run_pixels(problem) + tile->pixels - 1) / tile->pixels * phases);
    const size_t rows = (size_t)(problem->batch * problem->dst_size[0] * problem->dst_size[1]);
    const size_t first[3] = {(size_t)blocks, runs, rows}, last[3] = {runs, rows, (size_t)blocks};
    size_t local[3];
    rnl_tile_group(step->list->device, blocks_last ? last : first, local);
    rnl_step_range(step, 3, blocks_last ? last : first, local);
}

static rnl_status append_portable(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_conv_problem *problem = data;
    const rnl_conv_tile tile = choose_tile(list->device, problem);
    const int64_t width = tile.vector * tile.vectors, blocks = (problem->filters + width - 1) / width * problem->groups;
    /* On a CPU the weights of one block stay in the cache while all pixels pass. */
    const bool blocks_last = rnl_device_is_cpu(list->device);
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    rnl_conv_add_defines(&step, problem, &tile);
    rnl_step_define(&step, "NB=%lld", (long long)tile.vectors);
    if (problem->transposed)
        rnl_step_define(&step, "TRANSPOSED");
    rnl_conv_add_arguments(&step, problem, blocks_last, problem->batch * problem->dst_size[0] * problem->dst_size[1], 0,
                           0);
    add_grid(&step, problem, &tile, blocks, blocks_last);
    rnl_conv_add_cost(&step, problem);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "conv.cl", "conv");
}

static const rnl_implementation implementations[] = {
    {"conv:amx", rnl_conv_amx_applies, rnl_conv_amx_pays, rnl_conv_amx_append},
    {"conv:winograd", rnl_conv_winograd_applies, rnl_conv_winograd_pays, rnl_conv_winograd_append},
    {"conv:fip", rnl_conv_fip_applies, rnl_conv_fip_pays, rnl_conv_fip_append},
    {"conv:strassen", rnl_conv_strassen_applies, rnl_conv_strassen_pays, rnl_conv_strassen_append},
    {"conv:depthwise", rnl_conv_depthwise_applies, NULL, rnl_conv_depthwise_append},
    {"conv:tiled", rnl_conv_tiled_applies, rnl_conv_tiled_pays, rnl_conv_tiled_append},
    {"conv:panel", rnl_conv_panel_applies, NULL, rnl_conv_panel_append},
    {"conv:portable", NULL, NULL, append_portable},
};
#define IMPLEMENTATIONS (sizeof implementations / sizeof *implementations)
#define AMX 0 /* the first four */
#define WINOGRAD 1
#define FIP 2
#define STRASSEN 3

/* What the choice goes by: in deterministic plans one image of the batch. */
static const rnl_implementation *choose(const rnl_device *device, const rnl_conv_problem *problem)
{
    rnl_conv_problem seen = *problem;
    seen.batch = rnl_count_to_choose_by(problem->batch, 1);
    return rnl_implementation_choose(implementations, IMPLEMENTATIONS, getenv("RUNNEL_CONV"), device, &seen);
}

static const rnl_implementation pairs[] = {{"conv:bf16", rnl_conv_pairs_applies, NULL, rnl_conv_pairs_append}};

static const rnl_view plenty = {.dtype = RNL_F32, .rank = 1, .shape = {INT64_MAX}, .stride = {1}};

rnl_status rnl_conv_scratch(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                            const rnl_view *weight, const rnl_view *bias, const rnl_view *dst, int64_t *out_floats)
{
    rnl_conv_problem problem;
    *out_floats = 0;
    TRY(rnl_conv_describe(params, false, src, weight, bias, dst, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    if (problem.pairs)
        return RNL_OK;
    problem.scratch = &plenty;
    const rnl_implementation *chosen = choose(device, &problem);
    if (problem.amx)
        *out_floats = rnl_conv_amx_scratch(device, &problem);
    else if (problem.winograd)
        *out_floats = rnl_conv_winograd_scratch(device, &problem);
    else if (problem.fip)
        *out_floats = rnl_conv_fip_scratch(device, &problem);
    else if (problem.strassen)
        *out_floats = rnl_conv_strassen_scratch(device, &problem);
    else if (chosen && chosen->append == rnl_conv_tiled_append)
        *out_floats = rnl_conv_tiled_scratch(device, &problem);
    return RNL_OK;
}

/* Whether `wanted` is chosen where the weights' form, amx, winograd, fip or strassen, allows it; out_side of Winograd's
 * tiles.
 */
static rnl_status would_choose(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                               const rnl_view *weight, const rnl_view *dst, size_t wanted, bool *out_chosen,
                               int64_t *out_side)
{
    rnl_conv_params wish = *params;
    rnl_conv_problem problem;
    rnl_view image = *src;
    *out_chosen = false;
    wish.chain = NULL;
    wish.fip = wish.strassen = wish.pairs = false;
    wish.amx = wish.winograd = 0;
    wish.scratch = &plenty;
    image.dtype = weight->dtype; /* for Winograd's way bfloat16 would do as well */
    TRY(rnl_conv_describe(&wish, false, &image, weight, NULL, dst, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    problem.batch = rnl_count_to_choose_by(problem.batch, 1);
    problem.winograd = wanted == WINOGRAD ? rnl_conv_winograd_side(device, &problem) : 0;
    problem.fip = wanted == FIP;
    problem.strassen = wanted == STRASSEN;
    problem.pairs = params->pairs;
    problem.amx = wanted == AMX ? params->amx : 0;
    if (wanted == AMX)
        image.dtype = src->dtype;
    *out_chosen = choose(device, &problem) == &implementations[wanted];
    *out_side = problem.winograd;
    return RNL_OK;
}

rnl_status rnl_conv_prefers_winograd(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                                     const rnl_view *weight, const rnl_view *dst, int64_t *out_side)
{
    bool chosen = false;
    int64_t side = 0;
    if (params->spatial == 2)
        TRY(would_choose(device, params, src, weight, dst, WINOGRAD, &chosen, &side));
    *out_side = chosen ? side : 0;
    return RNL_OK;
}

rnl_status rnl_conv_prefers_fip(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                                const rnl_view *weight, const rnl_view *dst, bool *out_prefers)
{
    int64_t side;
    *out_prefers = false;
    return src->dtype == RNL_F32 && !params->pairs && rnl_conv_fip_is_on(device) &&
                   rnl_conv_fip_takes(false, weight->rank, weight->shape, params->groups, weight->dtype)
               ? would_choose(device, params, src, weight, dst, FIP, out_prefers, &side)
               : RNL_OK;
}

rnl_status rnl_conv_prefers_strassen(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                                     const rnl_view *weight, const rnl_view *dst, bool *out_prefers)
{
    int64_t side;
    *out_prefers = false;
    return src->dtype == RNL_F32 && !params->pairs &&
                   rnl_conv_strassen_takes(weight->rank, weight->shape, params->groups, weight->dtype)
               ? would_choose(device, params, src, weight, dst, STRASSEN, out_prefers, &side)
               : RNL_OK;
}

rnl_status rnl_conv_prefers_amx(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                                const rnl_view *weight, const rnl_view *dst, bool *out_prefers)
{
    int64_t side;
    *out_prefers = false;
    return weight->dtype == RNL_F32 && rnl_conv_amx_takes(params->amx, weight->rank, weight->shape, params->groups)
               ? would_choose(device, params, src, weight, dst, AMX, out_prefers, &side)
               : RNL_OK;
}

rnl_status rnl_op_conv(rnl_step_list *list, const rnl_conv_params *params, const rnl_view *src, const rnl_view *weight,
                       const rnl_view *bias, const rnl_view *dst)
{
    rnl_conv_problem problem;
    TRY(rnl_conv_describe(params, false, src, weight, bias, dst, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    /* Nothing else reads these weights. */
    if (problem.pairs)
        return rnl_implementation_append(pairs, 1, NULL, list, &problem);
    if (problem.amx)
        return rnl_implementation_append(&implementations[AMX], 1, "amx", list, &problem);
    if (problem.winograd)
        return rnl_implementation_append(&implementations[WINOGRAD], 1, "winograd", list, &problem);
    if (problem.fip)
        return rnl_implementation_append(&implementations[FIP], 1, "fip", list, &problem);
    if (problem.strassen)
        return rnl_implementation_append(&implementations[STRASSEN], 1, "strassen", list, &problem);
    const rnl_implementation *chosen = choose(list->device, &problem);
    return chosen->append(list, chosen->name, &problem); /* the last one takes everything */
}

rnl_status rnl_op_conv_transpose(rnl_step_list *list, const rnl_conv_params *params, const rnl_view *src,
                                 const rnl_view *weight, const rnl_view *bias, const rnl_view *dst)
{
    static const rnl_implementation transposed[] = {
        {"conv-transpose:panel", rnl_conv_phases_apply, NULL, rnl_conv_phases_append},
        {"conv-transpose:portable", NULL, NULL, append_portable},
    };
    rnl_conv_problem problem;
    TRY(rnl_conv_describe(params, true, src, weight, bias, dst, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    return rnl_implementation_append(transposed, 2, getenv("RUNNEL_CONV"), list, &problem);
}
