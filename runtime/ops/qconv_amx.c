/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "base/status.h"
#include "ops/amx.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/qconv_problem.h"

/* As in qconv_amx.cl. */
#define ROWS 16  /* of a tile */
#define CHUNK 64 /* channels of a tile's row */
#define BLOCK 32 /* filters */
#define PAIR_BYTES (2 * ROWS * BLOCK * 4)
#define TAIL_BYTES (2 * ROWS * BLOCK * 4)
#define CHANNEL_BYTES (2 * BLOCK * 4)
#define PLACE_BYTES (2 * ROWS * 4) /* of a tile */

#define STEP_BYTES (CHUNK * BLOCK)      /* of weights */
#define MOST_PICTURE ((int64_t)1 << 20) /* bytes, so that a second cache of 2 MiB holds weights beside it */
#define NARROW_ROW 8                    /* up to here tiles span rows: they would be half empty */

/* Cycles, as measured on a Xeon of 2 MiB of second cache and 4,096 products of bytes a cycle and core. */
#define POSITION_CYCLES 6.0      /* of 64 channels, copied */
#define PIXEL_CYCLES 14.0        /* of 32 results */
#define TILES_CYCLES 60.0        /* of a pair, whatever its channels */
#define STEP_CYCLES 36.0         /* of loading four tiles from the first cache … */
#define SECOND_CYCLES 16.0       /* … and two of them from the second one */
#define FIRST_CACHE (24 << 10)   /* of what is read again and again */
#define SECOND_CACHE (1 << 20)   /* likewise */
#define BYTES_A_CYCLE 4.0        /* of memory, or of what another core has written */
#define CACHE_BYTES_A_CYCLE 40.0 /* of the second cache */
#define VECTOR_PRODUCTS 110.0    /* a cycle, of qconv:panel */

/* The convolution as the kernel sees it: of images, or of one line of pixels where it moves over single ones. */
typedef struct amx_case {
    rnl_qconv_params params;
    rnl_view src, dst, addend;
    bool direct; /* tiles are read from the image */
} amx_case;

/* How the work is cut: a work-item does some bands, of rows or columns of an image, and some blocks of filters. */
typedef struct amx_plan {
    int64_t chunks, taps, blocks;
    int64_t rows, height, width; /* of a tile, of a band */
    bool spans;                  /* a tile may span rows */
    int64_t tiles, bands, share_bands, band_items, share_blocks, block_items;
    int64_t places, planes, item_bytes; /* of a work-item's memory: where they begin, all of it */
    double cost;
} amx_plan;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the case --------------------------------------------------------------------------------------------------- */

/* N, C, W becomes N, C, 1, W. */
static rnl_view in_two_dimensions(const rnl_view *view)
{
    rnl_view wide = *view;
    if (view->rank != 3)
        return wide;
    wide.rank = 4;
    wide.shape[3] = view->shape[2];
    wide.stride[3] = view->stride[2];
    wide.shape[2] = 1;
    wide.stride[2] = view->shape[2] * view->stride[2];
    return wide;
}

/* Dimension `outer` is one with the last one. */
static bool is_run(const rnl_view *view, size_t outer)
{
    return view->shape[outer] == 1 || view->stride[outer] == view->shape[3] * view->stride[3];
}

static void join(rnl_view *view, size_t outer)
{
    view->shape[3] *= view->shape[outer];
    view->shape[outer] = 1;
}

static void make_case(const rnl_qconv_problem *problem, amx_case *out)
{
    static const size_t outer[2] = {2, 0};
    const rnl_view *addend = problem->views[RNL_QCONV_ADDEND];
    *out = (amx_case){.params = *problem->params,
                      .src = in_two_dimensions(problem->src),
                      .dst = in_two_dimensions(problem->dst),
                      .addend = in_two_dimensions(addend ? addend : problem->dst)};
    rnl_qconv_params *p = &out->params;
    if (p->spatial == 1) {
        p->kernel[1] = p->kernel[0];
        p->stride[1] = p->stride[0];
        p->dilation[1] = p->dilation[0];
        p->pad_begin[1] = p->pad_begin[0];
        p->kernel[0] = p->stride[0] = p->dilation[0] = 1;
        p->pad_begin[0] = 0;
        p->spatial = 2;
    }
    out->direct = out->src.shape[1] % CHUNK == 0;
    bool dense = true;
    for (size_t i = 0; i < 2; ++i) {
        out->direct &= p->kernel[i] == 1 && p->pad_begin[i] == 0 &&
                       (out->dst.shape[2 + i] - 1) * p->stride[i] < out->src.shape[2 + i];
        dense &= p->stride[i] == 1 && out->src.shape[2 + i] == out->dst.shape[2 + i];
    }
    for (size_t i = 0; i < 2 && out->direct && dense; ++i) {
        dense = is_run(&out->src, outer[i]) && is_run(&out->dst, outer[i]) && is_run(&out->addend, outer[i]);
        if (dense) {
            join(&out->src, outer[i]);
            join(&out->dst, outer[i]);
            join(&out->addend, outer[i]);
        }
    }
}

/* ---- the plan --------------------------------------------------------------------------------------------------- */

static int64_t positions(int64_t results, int64_t stride, int64_t taps, int64_t dilation)
{
    return (results - 1) * (taps == 1 ? 1 : stride) + (taps - 1) * dilation + 1;
}

static int64_t columns_of(const amx_case *it, const amx_plan *plan)
{
    return positions(plan->width, it->params.stride[1], it->params.kernel[1], it->params.dilation[1]);
}

/* Positions of a band. */
static int64_t picture_positions(const amx_case *it, const amx_plan *plan)
{
    return positions(plan->height, it->params.stride[0], it->params.kernel[0], it->params.dilation[0]) *
           columns_of(it, plan);
}

/* A plane has room for tiles that begin at its last positions, and an odd number of lines. */
static int64_t picture_bytes(const amx_case *it, const amx_plan *plan)
{
    return it->direct ? 0 : ((picture_positions(it, plan) + ROWS * it->params.stride[1]) | 1) * CHUNK * plan->chunks;
}

/* Cycles of a band's products and results. */
static double band_cost(const amx_case *it, const amx_plan *plan)
{
    const double pairs = (double)rnl_divide_up(plan->tiles, 2), steps = (double)(plan->taps * plan->chunks);
    const double copied = it->direct ? 0 : (double)(picture_positions(it, plan) * plan->chunks) * POSITION_CYCLES;
    const double adding = 4.0 * (double)plan->rows;
    const bool near_a = picture_positions(it, plan) * plan->chunks * CHUNK <= FIRST_CACHE;
    const bool near_b = plan->tiles > 2 && steps * STEP_BYTES <= FIRST_CACHE;
    const double loading = STEP_CYCLES + (near_a ? 0 : SECOND_CYCLES) + (near_b ? 0 : SECOND_CYCLES);
    const double block = pairs * (steps * (adding > loading ? adding : loading) + TILES_CYCLES) +
                         (double)(plan->height * plan->width) * PIXEL_CYCLES;
    return copied + (double)plan->share_blocks * block;
}

/* Weights come from memory once, while the first band is computed, and then stay in a cache or not; a part of the image
 * was written by others. */
static double item_cost(const amx_case *it, const amx_plan *plan)
{
    const double weights = (double)(plan->share_blocks * plan->taps * plan->chunks * STEP_BYTES);
    const double band = band_cost(it, plan), first = weights / BYTES_A_CYCLE;
    const double next = weights / (weights > SECOND_CACHE ? BYTES_A_CYCLE : CACHE_BYTES_A_CYCLE);
    const double image = (double)(plan->share_bands * picture_positions(it, plan) * plan->chunks * CHUNK);
    const double others = plan->block_items > 1 ? image * (1 - 1 / (double)plan->block_items) : 0;
    return (band > first ? band : first) + (double)(plan->share_bands - 1) * (band + next) + others / BYTES_A_CYCLE;
}

/* Bands and blocks of work-items so that all threads end together. */
static void choose_shares(const rnl_device *device, const amx_case *it, amx_plan *plan)
{
    const int64_t units = rnl_device_units(device);
    amx_plan best = {0}, now = *plan;
    for (int64_t i = 1; i <= now.blocks && i <= units; ++i) {
        now.share_blocks = rnl_divide_up(now.blocks, i);
        now.block_items = rnl_divide_up(now.blocks, now.share_blocks);
        now.share_bands = rnl_divide_up(now.bands, rnl_divide_up(units, now.block_items));
        now.band_items = rnl_divide_up(now.bands, now.share_bands);
        now.cost = item_cost(it, &now) * (double)rnl_divide_up(now.band_items * now.block_items, units);
        if (best.cost == 0 || now.cost < 0.99 * best.cost)
            best = now;
    }
    *plan = best;
}

/* Tiles that are read from the image find all their pixels there. */
static bool reads_beyond(const amx_case *it, const amx_plan *plan)
{
    const int64_t rest = it->dst.shape[3] % plan->width;
    return it->direct && (plan->width < plan->rows || (rest != 0 && rest < plan->rows));
}

static void try_band(const rnl_device *device, const amx_case *it, int64_t height, int64_t width, bool always,
                     amx_plan *best)
{
    const rnl_qconv_params *p = &it->params;
    amx_plan plan = {.height = height, .width = width, .taps = p->kernel[0] * p->kernel[1]};
    plan.chunks = rnl_divide_up(it->src.shape[1], CHUNK);
    plan.blocks = rnl_divide_up(it->dst.shape[1], BLOCK);
    plan.spans = !it->direct && width <= NARROW_ROW && width == it->dst.shape[3] && height > 1 && p->stride[0] == 1 &&
                 p->stride[1] == 1;
    const int64_t line = plan.spans ? (height - 1) * columns_of(it, &plan) + width : width;
    plan.rows = rnl_divide_up(line, rnl_divide_up(line, ROWS));
    plan.tiles = rnl_divide_up(line, plan.rows) * (plan.spans ? 1 : height);
    plan.bands = it->dst.shape[0] * rnl_divide_up(it->dst.shape[2], height) * rnl_divide_up(it->dst.shape[3], width);
    if (!always && (picture_bytes(it, &plan) > MOST_PICTURE || reads_beyond(it, &plan)))
        return;
    choose_shares(device, it, &plan);
    if (best->cost != 0 && plan.cost >= 0.98 * best->cost)
        return;
    plan.places = 2 * PAIR_BYTES + TAIL_BYTES + plan.share_blocks * CHANNEL_BYTES;
    plan.planes = plan.places + rnl_divide_up(plan.tiles, 2) * 2 * PLACE_BYTES;
    plan.item_bytes = plan.planes + picture_bytes(it, &plan);
    *best = plan;
}

static bool has_sizes(const amx_case *it)
{
    int64_t pixels = it->dst.shape[0];
    bool fits = it->params.stride[1] <= 1 << 10;
    for (size_t i = 0; i < 2; ++i)
        fits = fits && !__builtin_mul_overflow(pixels, it->dst.shape[2 + i], &pixels) && pixels <= INT32_MAX / 256 &&
               it->params.kernel[i] * it->params.dilation[i] <= 1 << 12 && it->params.pad_begin[i] <= 1 << 20;
    return fits && it->dst.shape[1] <= 1 << 20;
}

/* Fewer and fewer bands are tried less and less densely. */
static bool make_plan(const rnl_device *device, const amx_case *it, amx_plan *out_plan)
{
    const int64_t height = it->dst.shape[2], width = it->dst.shape[3], least = 2 * ROWS;
    amx_plan best = {0};
    if (!has_sizes(it))
        return false;
    for (int64_t parts = 1; parts <= height; parts += 1 + parts / 8)
        try_band(device, it, rnl_divide_up(height, parts), width, false, &best);
    if (height == 1)
        for (int64_t parts = 2, most = rnl_divide_up(width, least); parts <= most; parts += 1 + parts / 8)
            try_band(device, it, 1, rnl_divide_up(rnl_divide_up(width, parts), least) * least, false, &best);
    if (best.cost == 0)
        try_band(device, it, 1, it->direct ? width : smaller(width, least), true, &best);
    *out_plan = best;
    int64_t bytes;
    return !__builtin_mul_overflow(best.band_items * best.block_items, best.item_bytes, &bytes) &&
           bytes < INT32_MAX / 2;
}

static int64_t plan_bytes(const amx_plan *plan)
{
    return plan->band_items * plan->block_items * plan->item_bytes;
}

/* ---- the step --------------------------------------------------------------------------------------------------- */

int64_t rnl_qconv_amx_scratch(const rnl_device *device, const rnl_qconv_problem *problem)
{
    amx_case it;
    amx_plan plan;
    make_case(problem, &it);
    return make_plan(device, &it, &plan) ? plan_bytes(&plan) : 0;
}

bool rnl_qconv_amx_applies(const rnl_device *device, const rnl_qconv_problem *problem)
{
    amx_case it;
    amx_plan plan;
    if (problem->params->spatial > 2 || rnl_amx_wish_is("off") || !rnl_device_is_cpu(device) ||
        !(rnl_amx_wish_is("model") || rnl_device_runs(device, RNL_INSTRUCTION_AMX_INT8)))
        return false;
    make_case(problem, &it);
    return rnl_view_elements(problem->dst) > 0 && make_plan(device, &it, &plan);
}

bool rnl_qconv_amx_pays(const rnl_device *device, const rnl_qconv_problem *problem)
{
    amx_case it;
    amx_plan plan;
    const double products = (double)rnl_view_elements(problem->dst) * (double)problem->depth;
    make_case(problem, &it);
    return rnl_amx_wish_is("on") || rnl_amx_wish_is("model") ||
           (make_plan(device, &it, &plan) && plan.cost < products / VECTOR_PRODUCTS / (double)rnl_device_units(device));
}

rnl_status rnl_qconv_amx_append(rnl_step_list *list, const rnl_qconv_problem *problem)
{
    rnl_qconv_problem in_kernel = *problem;
    rnl_view memory = *problem->params->scratch;
    amx_case it;
    amx_plan plan;
    rnl_step_builder step;
    make_case(problem, &it);
    if (!make_plan(list->device, &it, &plan) || memory.offset > INT32_MAX / 2)
        return FAIL(RNL_INTERNAL, "matrix tiles do not apply to this convolution");
    in_kernel.params = &it.params;
    in_kernel.src = &it.src;
    in_kernel.dst = &it.dst;
    if (problem->views[RNL_QCONV_ADDEND])
        in_kernel.views[RNL_QCONV_ADDEND] = &it.addend;
    const int32_t shape[4] = {(int32_t)plan.rows, (int32_t)plan.height, (int32_t)plan.width, plan.spans};
    int32_t flags[8] = {0, (int32_t)plan.bands, (int32_t)plan.share_bands, (int32_t)plan.share_blocks,
                        (int32_t)it.direct};
    const rnl_view *views[] = {&memory};
    rnl_step_begin(&step, list, "qconv:amx", false);
    rnl_step_define(&step, "T_A=%s%s", rnl_dtype_define(problem->src->dtype),
                    rnl_amx_wish_is("model") ? " -DMODEL" : "");
    rnl_step_slot(&step, memory.slot);
    rnl_step_offsets(&step, 4, views, 1, (const int64_t[]){plan.item_bytes, plan.places, plan.planes}, 3);
    rnl_step_value(&step, shape, sizeof shape);
    rnl_qconv_add_arguments(&step, &in_kernel, flags);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)plan.block_items, (size_t)plan.band_items, 1}, (size_t[3]){1, 1, 1});
    rnl_qconv_add_cost(&step, problem);
    rnl_step_writes(&step, memory.slot);
    return rnl_step_end(&step, "qconv_amx.cl", "qconv_amx");
}
