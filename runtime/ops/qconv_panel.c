/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qconv_panel.h"
#include "base/memory.h"
#include "ops/fip.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/processor.h"
#include "ops/qconv_problem.h"
#include "ops/qgemm_pack.h"

#define MAX_BLOCKS 16 /* of a work-item, as in qconv_panel.cl */
/* Of a tile: its sums, a row of weights and a pixel fill 32 registers; or its sums and those of the one before. */
#define MOST_PIXELS 14
#define FEW_PIXELS 7
#define NEAR_BYTES (384 << 10) /* of weights that a work-item reads for each tile: they stay in a core's cache */
#define FAR_BYTES (64 << 10)   /* the same where the next ones are asked for meanwhile: the first ones come from far */
#define ITEMS 32               /* of a unit */
#define MAX_FLAT 256           /* steps of taps that may go as one, as in qconv_windows.clh … */
#define SHORT_TAP 16           /* … where that is worth a program of its own: steps of a row of taps */
#define FIP_RUNS 5             /* that share widened weights, as in qconv_panel.cl */

/* Fewer pixels a tile where those leave fewer over. */
static int64_t pixels_of_tile(int64_t most, int64_t fewer, int64_t pixels)
{
    const int64_t wide = rnl_divide_up(pixels, most) * most, narrow = rnl_divide_up(pixels, fewer) * fewer;
    if (pixels <= 4)
        return 4;
    return (wide - narrow) * 10 > pixels ? fewer : most;
}

/* More of them where there would be few work-items. */
static int64_t enough_groups(int64_t groups, int64_t blocks, int64_t row_items, int64_t items)
{
    while (groups < blocks && groups * row_items < items / 2)
        groups = 2 * groups < blocks ? 2 * groups : blocks;
    return groups;
}

/* by_rows: neighbours are work-items of the same runs. */
static rnl_shares split(const rnl_device *device, int64_t runs, int64_t blocks, int64_t most_blocks, bool by_rows)
{
    rnl_shares p = {.rows = runs, .blocks = blocks};
    const int64_t items = rnl_device_items(device, ITEMS), threads = rnl_device_units(device);
    const int64_t most = most_blocks < 1 ? 1 : most_blocks > MAX_BLOCKS ? MAX_BLOCKS : most_blocks;
    const int64_t groups = rnl_divide_up(blocks, most), wish = rnl_divide_up(runs * groups, items);
    const int64_t each = wish < runs ? wish : runs;
    p.each_rows = by_rows ? rnl_stretch_share(device, runs, rnl_divide_up(items / threads, groups)) : 0;
    const bool has_stretches = p.each_rows > 0;
    p.each_blocks =
        rnl_divide_up(blocks, has_stretches ? groups : enough_groups(groups, blocks, rnl_divide_up(runs, each), items));
    p.block_items = rnl_divide_up(blocks, p.each_blocks);
    if (!has_stretches)
        p.each_rows = rnl_fair_share(device, runs, each, p.block_items, !by_rows);
    p.row_items = rnl_divide_up(runs, p.each_rows);
    return p;
}

/* How a device multiplies this: pixels of a tile, or of a run by fip.clh, and channels of a block. */
typedef struct vectors {
    rnl_instruction instruction;
    bool fip;
    int64_t pixels, channels;
} vectors;

static vectors vectors_of(rnl_device *device, int64_t pixels)
{
    vectors v = {rnl_device_multiplies_bytes(device), false, RNL_FIP_ROWS, RNL_QGEMM_PANEL};
    const bool halves = rnl_instruction_has_8_lanes(v.instruction); /* half the registers, of half the width */
    v.fip = v.instruction == RNL_INSTRUCTION_MADD8 && rnl_fip_pays(device, pixels);
    if (v.fip)
        return v;
    v.channels /= halves ? 2 : 1;
    v.pixels = halves                     ? pixels_of_tile(6, 5, pixels)
               : rnl_processor_is_swift() ? pixels_of_tile(MOST_PIXELS, 10, pixels)
                                          : pixels_of_tile(FEW_PIXELS, 5, pixels);
    return v;
}

static bool has_short_taps(const rnl_qconv_problem *problem)
{
    const rnl_qconv_params *p = problem->params;
    const int64_t row = problem->src->shape[1] / 4 * p->kernel[p->spatial - 1], steps = problem->depth / 4;
    return row < steps && row <= SHORT_TAP && steps <= MAX_FLAT;
}

static rnl_status append(rnl_step_list *list, const rnl_qconv_problem *problem)
{
    rnl_step_builder step;
    const int64_t filters = problem->dst->shape[1], pixels = rnl_view_elements(problem->dst) / filters;
    const vectors v = vectors_of(list->device, pixels);
    const int64_t runs = rnl_divide_up(pixels, v.pixels), blocks = rnl_divide_up(filters, v.channels);
    const int64_t block_bytes = 4 * rnl_qconv_panel_ints(problem) * v.channels / RNL_QGEMM_PANEL;
    const bool by_rows = v.instruction == RNL_INSTRUCTION_VNNI; /* as in qconv_panel.cl */
    const rnl_shares p =
        v.fip ? rnl_fip_split(list->device, runs, blocks, FIP_RUNS, 0)
              : split(list->device, runs, blocks, (by_rows ? FAR_BYTES : NEAR_BYTES) / block_bytes, by_rows);
    const size_t row_items = (size_t)p.row_items, block_items = (size_t)p.block_items;
    int32_t flags[8] = {0, (int32_t)pixels, (int32_t)p.each_rows, (int32_t)p.each_blocks};
    rnl_step_begin(&step, list, "qconv:panel", false);
    rnl_step_define(&step, "%s%s -DT_A=%s -DP=%lld%s", rnl_instruction_define(v.instruction), v.fip ? " -DFIP" : "",
                    rnl_dtype_define(problem->src->dtype), (long long)v.pixels,
                    by_rows && has_short_taps(problem) ? " -DFLAT" : "");
    rnl_qconv_add_arguments(&step, problem, flags);
    rnl_step_range(&step, 2, (size_t[3]){by_rows ? block_items : row_items, by_rows ? row_items : block_items},
                   (size_t[3]){1, 1});
    rnl_qconv_add_cost(&step, problem);
    return rnl_step_end(&step, "qconv_panel.cl", "qconv_panel");
}

/* ---- the choice ------------------------------------------------------------------------------------------------- */

static bool has_vectors(const rnl_device *device)
{
    return rnl_device_multiplies_bytes(device) != RNL_INSTRUCTION_COUNT;
}

static bool prefers_tiles(const rnl_device *device, const rnl_qconv_problem *problem)
{
    return rnl_qconv_amx_applies(device, problem) && (rnl_qconv_amx_pays(device, problem) || !has_vectors(device));
}

bool rnl_qconv_panel_applies(rnl_device *device, const rnl_qconv_params *params, const rnl_qconv_end *end,
                             const rnl_view *src, const rnl_view *weight, const rnl_view *dst)
{
    rnl_qconv_problem problem;
    return rnl_qconv_problem_of(params, end, src, weight, dst, &problem) &&
           (has_vectors(device) || rnl_qconv_amx_applies(device, &problem));
}

int64_t rnl_qconv_scratch(const rnl_device *device, const rnl_qconv_params *params, const rnl_qconv_end *end,
                          const rnl_view *src, const rnl_view *weight, const rnl_view *dst)
{
    rnl_qconv_problem problem;
    if (!rnl_qconv_problem_of(params, end, src, weight, dst, &problem))
        return 0;
    if (params->winograd)
        return rnl_qconv_winograd_scratch(device, &problem);
    return prefers_tiles(device, &problem) ? rnl_qconv_amx_scratch(device, &problem) : 0;
}

rnl_status rnl_op_qconv_panel(rnl_step_list *list, const rnl_qconv_params *params, const rnl_qconv_end *end,
                              const rnl_view *src, const rnl_view *weight, const rnl_view *packed, const rnl_view *dst)
{
    rnl_qconv_problem problem;
    const rnl_view *scratch = params->scratch;
    if (!rnl_qconv_problem_of(params, end, src, weight, dst, &problem) || !rnl_view_exists(packed))
        return FAIL(RNL_INVALID_ARGUMENT, "an integer convolution does not fit the step for it");
    problem.packed = packed;
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    if (params->winograd)
        return rnl_qconv_winograd_append(list, &problem);
    if (rnl_view_exists(scratch) && scratch->dtype == RNL_U8 && prefers_tiles(list->device, &problem) &&
        rnl_view_elements(scratch) >= rnl_qconv_amx_scratch(list->device, &problem))
        return rnl_qconv_amx_append(list, &problem);
    if (!has_vectors(list->device))
        return FAIL(RNL_INVALID_ARGUMENT, "an integer convolution needs instructions or scratch memory");
    return append(list, &problem);
}
