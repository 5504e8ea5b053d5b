/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_amx.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/amx.h"
#include "ops/conv_step.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include <stdlib.h>
#include <string.h>

#define ROWS 16                               /* of a tile */
#define SUM_SHORTS (2 * ROWS * RNL_AMX_BLOCK) /* of a tile of pixels */
#define PLACE_SHORTS 8                        /* of a pixel, at most */
#define SEGMENT 48                            /* parts of steps whose weights pass at once, as in conv_amx.cl */
#define BAND_SHORTS ((int64_t)640 * 1024) /* of a picture, so that a second cache of 2 MiB holds weights beside it */
#define STEP_BYTES 2048                   /* of weights, of a part of 32 channels of a tap and 32 filters */
#define FEW_WEIGHTS (768 * 1024)          /* bytes that stay in a second cache while bands pass */

/* Cycles, as measured on a Xeon of 2 MiB of second cache, whose matrix tiles lower its clock. */
#define POSITION_CYCLES 18.0 /* of 32 channels, copied in three parts … */
#define COPY_CYCLES 8.0      /* … or in one */
#define STEP_CYCLES 270.0    /* of a pair of tiles in three parts … */
#define ROW_CYCLES 16.0      /* … of each row of them */
#define SHORT_CYCLES 120.0   /* of a pair in one part, whose loads take longest */
#define PIXEL_CYCLES 22.0    /* of 32 results */
#define TILES_CYCLES 150.0   /* whatever their channels */
#define BYTES_A_CYCLE 5.0    /* of memory */
#define FEW_PICTURE (320 * 1024)
#define FEW_PIXELS 512       /* of a band that is nothing but places of results */
#define FEW_BYTES (1 << 20)  /* of an image that lies in a second cache */
#define DIRECT_PRODUCTS 21.0 /* a cycle, of conv:panel, in float32 … */
#define PAIRS_PRODUCTS 14.0  /* … and of conv:bf16 */
#define GAIN 1.05            /* over it, to be worth more memory */

/* How the work is cut: a work-item does some bands, of rows or columns of an image, and some blocks of 32 filters. */
typedef struct amx_plan {
    int64_t parts, chunks, depth, blocks;
    int64_t rows, height, width; /* of a tile, of a band */
    bool line;                   /* as the weights' */
    bool direct;                 /* tiles are read from the image itself */
    bool spans;                  /* a tile may span rows */
    bool pairs_first;            /* all blocks of a pair of tiles, and then the next pair */
    int64_t tiles;               /* of a band */
    int64_t bands, share_bands, band_items, share_blocks, block_items;
    int64_t places, planes, item_shorts; /* of a work-item's memory: where they begin, all of it */
    double cost;
} amx_plan;

bool rnl_conv_amx_is_on(const rnl_device *device)
{
    return !rnl_amx_wish_is("off") && rnl_device_runs(device, RNL_INSTRUCTION_AMX_BF16);
}

static rnl_amx_layout find_layout(const rnl_conv_problem *problem)
{
    return rnl_amx_find_layout(problem->amx, problem->transposed, problem->weight->rank, problem->weight->shape);
}

/* Single pixels that are there, of bfloat16, whose channels fill all chunks. */
static bool reads_image(const rnl_conv_problem *problem, const rnl_amx_layout *layout)
{
    bool reads =
        problem->amx == 1 && !layout->line && problem->src->dtype == RNL_BF16 && problem->channels % layout->depth == 0;
    int64_t row = 0, end = 0;
    for (size_t i = 1; i < 3; ++i)
        reads = reads && problem->taps[i] == 1 && problem->pad[i] == 0 &&
                (problem->dst_size[i] - 1) * problem->stride[i] < problem->src_size[i];
    return reads && !__builtin_mul_overflow(problem->src_stride[2], problem->src_size[1] + problem->stride[1], &row) &&
           !__builtin_mul_overflow(problem->src_stride[3], problem->src_size[2] + ROWS * problem->stride[2], &end) &&
           !__builtin_add_overflow(end, row, &end) && end < INT32_MAX;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t positions(int64_t results, int64_t stride, int64_t taps, int64_t dilation)
{
    return (results - 1) * (taps == 1 ? 1 : stride) + (taps - 1) * dilation + 1;
}

/* Positions of a band's picture. */
static int64_t picture_positions(const rnl_conv_problem *problem, const amx_plan *plan)
{
    return positions(plan->height, problem->stride[1], problem->taps[1], problem->dilation[1]) *
           positions(plan->width, problem->stride[2], problem->taps[2], problem->dilation[2]);
}

/* A plane has room for tiles that begin at its last positions, and an odd number of lines. */
static int64_t plane_shorts(const rnl_conv_problem *problem, const amx_plan *plan)
{
    const int64_t count = picture_positions(problem, plan) + ROWS * problem->stride[2];
    if (plan->line)
        return ((count * RNL_AMX_PITCH / RNL_AMX_BLOCK + 2) | 1) * RNL_AMX_BLOCK;
    return (count | 1) * RNL_AMX_BLOCK;
}

static int64_t picture_shorts(const rnl_conv_problem *problem, const amx_plan *plan)
{
    return plan->direct ? picture_positions(problem, plan) * plan->chunks * plan->depth
                        : plane_shorts(problem, plan) * plan->chunks * plan->parts;
}

static int64_t count_tiles(const rnl_conv_problem *problem, const amx_plan *plan)
{
    const int64_t columns = positions(plan->width, problem->stride[2], problem->taps[2], problem->dilation[2]);
    const int64_t line = plan->spans ? (plan->height - 1) * columns + plan->width : plan->width;
    return rnl_divide_up(line, plan->rows) * (plan->spans ? 1 : plan->height);
}

static int64_t step_count(const rnl_conv_problem *problem, const amx_plan *plan)
{
    return plan->chunks * problem->taps[1] * (plan->line ? 1 : problem->taps[2]);
}

/* Cycles of a band. */
static double band_cost(const rnl_conv_problem *problem, const amx_plan *plan)
{
    const double pairs = (double)rnl_divide_up(plan->tiles, 2), chunks = (double)plan->chunks;
    const double steps = (double)step_count(problem, plan);
    const double step = plan->parts == 1 ? SHORT_CYCLES : STEP_CYCLES + ROW_CYCLES * (double)plan->rows;
    const bool large = 2 * picture_shorts(problem, plan) > FEW_PICTURE;
    const double position = plan->direct ? 0 : plan->parts == 1 ? COPY_CYCLES : POSITION_CYCLES;
    const double copying = (double)picture_positions(problem, plan) * chunks * position;
    const double size = plan->line ? 0.25 : large ? 2.5 : 1; /* it leaves no room for weights */
    const double block = pairs * (steps * step + TILES_CYCLES) + (double)(plan->height * plan->width) * PIXEL_CYCLES;
    const double weights = steps * (double)plan->parts * STEP_BYTES;
    return size * copying + (double)plan->share_blocks * (block + (plan->pairs_first ? 0 : weights / BYTES_A_CYCLE));
}

/* Cycles of what comes from memory and goes there, which products wait for: weights of as many bytes as one has. */
static double memory_cost(const rnl_device *device, const rnl_conv_problem *problem, int64_t weight_bytes)
{
    const double batch = (double)problem->batch;
    const double sources = batch * (double)(problem->src_size[1] * problem->src_size[2]) * (double)problem->channels *
                           (double)rnl_dtype_bytes(problem->src->dtype);
    const double results = batch * (double)(problem->dst_size[1] * problem->dst_size[2]) * (double)problem->filters *
                           (double)rnl_dtype_bytes(problem->dst->dtype);
    const double weights = (double)rnl_view_elements(problem->weight) * (double)weight_bytes;
    const double bytes =
        (sources > FEW_BYTES ? sources : 0) + (results > FEW_BYTES ? results : 0) + (weights > FEW_BYTES ? weights : 0);
    return bytes / BYTES_A_CYCLE / (double)rnl_device_units(device);
}

/* What a work-item reads that others have written: each of them has some channels, of all pixels. In three parts
 * reading all weights instead takes longer. */
static double others_cost(const rnl_conv_problem *problem, const amx_plan *plan)
{
    if (plan->parts > 1)
        return 0;
    const double image = (double)(plan->share_bands * picture_positions(problem, plan) * problem->channels) *
                         (double)rnl_dtype_bytes(problem->src->dtype);
    return image * (1 - 1 / (double)plan->block_items) / BYTES_A_CYCLE;
}

/* Bands and blocks of work-items so that all threads end together. */
static void choose_shares(const rnl_device *device, const rnl_conv_problem *problem, amx_plan *plan)
{
    const int64_t units = rnl_device_units(device);
    amx_plan best = {0}, it = *plan;
    for (int64_t i = 1; i <= it.blocks && i <= units; ++i) {
        it.share_blocks = rnl_divide_up(it.blocks, i);
        it.block_items = rnl_divide_up(it.blocks, it.share_blocks);
        it.share_bands = rnl_divide_up(it.bands, rnl_divide_up(4 * units, it.block_items));
        it.pairs_first = it.share_blocks * step_count(problem, &it) * it.parts * STEP_BYTES <= FEW_WEIGHTS;
        it.band_items = rnl_divide_up(it.bands, it.share_bands);
        it.cost = (band_cost(problem, &it) * (double)it.share_bands + others_cost(problem, &it)) *
                  (double)rnl_divide_up(it.band_items * it.block_items, units);
        if (best.cost == 0 || it.cost < 0.99 * best.cost)
            best = it;
    }
    *plan = best;
}

/* Tiles that span rows, where they are fewer. */
static void try_spanning(const rnl_conv_problem *problem, amx_plan *plan)
{
    amx_plan it = *plan;
    if (it.direct || it.height == 1 || it.width < problem->dst_size[2] || problem->stride[1] > 1 ||
        problem->stride[2] > 1)
        return;
    it.spans = true;
    it.rows = ROWS;
    it.tiles = count_tiles(problem, &it);
    if (it.tiles < plan->tiles)
        *plan = it;
}

/* Sums of all tiles of a band where weights pass in segments, else of two pairs; what they begin with; where results
 * go. */
static void lay_out(const rnl_conv_problem *problem, amx_plan *plan)
{
    const bool whole = plan->pairs_first || plan->tiles <= 2 || step_count(problem, plan) < 2 * SEGMENT / plan->parts;
    const int64_t tiles = rnl_divide_up(plan->tiles, 2) * 2, shifts = plan->share_blocks * RNL_AMX_BLOCK * 2;
    plan->places = shifts + (whole ? 4 : tiles) * SUM_SHORTS;
    plan->planes = plan->places + tiles * ROWS * PLACE_SHORTS;
    const int64_t shorts = plan->planes + (plan->direct ? 0 : picture_shorts(problem, plan));
    plan->item_shorts = rnl_divide_up(shorts, RNL_AMX_BLOCK) * RNL_AMX_BLOCK;
}

static void try_band(const rnl_device *device, const rnl_conv_problem *problem, int64_t height, int64_t width,
                     amx_plan *best)
{
    const rnl_amx_layout layout = find_layout(problem);
    amx_plan plan = {.parts = problem->amx, .line = layout.line, .height = height, .width = width};
    plan.chunks = layout.chunks;
    plan.depth = layout.depth;
    plan.direct = reads_image(problem, &layout);
    plan.blocks = rnl_divide_up(problem->filters, RNL_AMX_BLOCK);
    plan.rows = rnl_divide_up(width, rnl_divide_up(width, ROWS));
    plan.tiles = count_tiles(problem, &plan);
    try_spanning(problem, &plan);
    plan.bands =
        problem->batch * rnl_divide_up(problem->dst_size[1], height) * rnl_divide_up(problem->dst_size[2], width);
    const bool large = picture_shorts(problem, &plan) > BAND_SHORTS;
    if (large && (height > 1 || width > 2 * ROWS))
        return;
    choose_shares(device, problem, &plan);
    if (plan.direct && plan.pairs_first && height * width > FEW_PIXELS)
        return;
    if (best->cost == 0 || plan.cost < 0.98 * best->cost) {
        lay_out(problem, &plan);
        *best = plan;
    }
}

static bool make_plan(const rnl_device *device, const rnl_conv_problem *problem, amx_plan *out_plan)
{
    const int64_t height = problem->dst_size[1], width = problem->dst_size[2];
    int64_t pixels = problem->batch;
    amx_plan best = {0};
    for (size_t i = 0; i < 3; ++i)
        if (__builtin_mul_overflow(pixels, problem->dst_size[i], &pixels) || pixels > INT32_MAX / 256)
            return false;
    if (problem->channels > 1 << 16 || problem->filters > 1 << 24 || problem->stride[2] > 1 << 10 ||
        problem->taps[1] * problem->dilation[1] > 1 << 12 || problem->taps[2] * problem->dilation[2] > 1 << 12)
        return false;
    if (height > 1)
        for (int64_t parts = 1; parts <= height; ++parts)
            try_band(device, problem, rnl_divide_up(height, parts), width, &best);
    else
        for (int64_t parts = 1, most = rnl_divide_up(width, 2 * ROWS); parts <= most; ++parts)
            try_band(device, problem, 1,
                     smaller(width, rnl_divide_up(rnl_divide_up(width, parts), 2 * ROWS) * (2 * ROWS)), &best);
    if (best.cost == 0)
        try_band(device, problem, 1, smaller(width, 2 * ROWS), &best);
    *out_plan = best;
    return true;
}

static int64_t plan_floats(const amx_plan *plan)
{
    return rnl_divide_up(plan->band_items * plan->block_items * plan->item_shorts, 2);
}

int64_t rnl_conv_amx_scratch(const rnl_device *device, const rnl_conv_problem *problem)
{
    amx_plan plan;
    return make_plan(device, problem, &plan) ? plan_floats(&plan) : 0;
}

static bool has_shape(const rnl_conv_problem *problem)
{
    return !problem->transposed && problem->groups == 1 && problem->channels > 0 && problem->taps[0] == 1 &&
           problem->src_size[0] == 1 && problem->dst_size[0] == 1 && problem->pad[0] == 0 &&
           (problem->dilation[2] == 1 || !find_layout(problem).line);
}

bool rnl_conv_amx_applies(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    const rnl_view *scratch = problem->scratch;
    const int64_t given = scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
    amx_plan plan;
    return problem->amx && rnl_device_is_cpu(device) && has_shape(problem) && make_plan(device, problem, &plan) &&
           plan_floats(&plan) <= given &&
           (rnl_amx_wish_is("model") || rnl_device_runs(device, RNL_INSTRUCTION_AMX_BF16));
}

/* How much Winograd's way gains: little where its weights, up to four times as large, are most of what it reads. */
static double winograd_gain(const rnl_conv_problem *problem, double pixels)
{
    if (problem->taps[1] != 3 || problem->taps[2] != 3 || problem->stride[1] != 1 || problem->stride[2] != 1)
        return 1;
    return pixels >= 3000 ? 2.9 : pixels >= 700 ? 2.3 : pixels >= 150 ? 1.3 : 1;
}

/* Cycles of plain products. */
static double direct_cost(const rnl_device *device, const rnl_conv_problem *problem)
{
    const double pixels = (double)(problem->batch * problem->dst_size[1] * problem->dst_size[2]);
    const double products =
        pixels * (double)problem->filters * (double)problem->channels * (double)(problem->taps[1] * problem->taps[2]);
    const bool pairs = problem->amx == 1;
    return products / (pairs ? PAIRS_PRODUCTS : DIRECT_PRODUCTS) / winograd_gain(problem, pixels) /
               (double)rnl_device_units(device) +
           memory_cost(device, problem, pairs ? 2 : 4);
}

static double tiles_cost(const rnl_device *device, const rnl_conv_problem *problem, const amx_plan *plan)
{
    return plan->cost + memory_cost(device, problem, 2 * problem->amx);
}

double rnl_conv_amx_estimate(const rnl_device *device, int64_t batch, int64_t pixels, int64_t channels, int64_t filters)
{
    const rnl_view image = {.dtype = RNL_F32}, weight = {.rank = 3, .shape = {filters, channels, 1}};
    const rnl_conv_problem problem = {.src = &image,
                                      .weight = &weight,
                                      .dst = &image,
                                      .amx = 3,
                                      .batch = batch,
                                      .groups = 1,
                                      .channels = channels,
                                      .filters = filters,
                                      .src_size = {1, 1, pixels},
                                      .dst_size = {1, 1, pixels},
                                      .taps = {1, 1, 1},
                                      .stride = {1, 1, 1},
                                      .dilation = {1, 1, 1}};
    const double direct = direct_cost(device, &problem);
    amx_plan plan;
    if (!make_plan(device, &problem, &plan))
        return direct;
    const double tiles = tiles_cost(device, &problem, &plan);
    return tiles < direct ? tiles : direct;
}

bool rnl_conv_amx_pays(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    amx_plan plan;
    if (rnl_amx_wish_is("off") || !make_plan(device, problem, &plan))
        return false;
    return rnl_amx_wish_is("on") || rnl_amx_wish_is("model") ||
           GAIN * tiles_cost(device, problem, &plan) < direct_cost(device, problem);
}

static void add_own(rnl_step_builder *step, const rnl_conv_problem *problem, const amx_plan *plan)
{
    const int32_t shape[8] = {(int32_t)plan->rows, (int32_t)plan->height, (int32_t)plan->width,
                              plan->spans | plan->pairs_first << 1 | plan->direct << 2, (int32_t)plan->depth};
    rnl_view shorts = *problem->scratch;
    shorts.dtype = RNL_BF16;
    shorts.offset *= 2;
    const rnl_view *views[] = {&shorts};
    rnl_step_slot(step, problem->scratch->slot);
    rnl_step_offsets(step, 4, views, 1, (const int64_t[]){plan->item_shorts, plan->places, plan->planes}, 3);
    rnl_step_value(step, shape, sizeof shape);
}

rnl_status rnl_conv_amx_append(rnl_step_list *list, const char *name, const void *data)
{
    static const rnl_conv_tile tile = {.vector = 16, .pixels = 1};
    rnl_conv_problem problem = *(const rnl_conv_problem *)data;
    amx_plan plan;
    rnl_step_builder step;
    if (!make_plan(list->device, &problem, &plan))
        return FAIL(RNL_INTERNAL, "%s does not apply to this convolution", name);
    problem.index64 |= 2 * problem.scratch->offset + 2 * plan_floats(&plan) > INT32_MAX - 65536;
    rnl_step_begin(&step, list, name, problem.index64);
    rnl_conv_add_defines(&step, &problem, &tile);
    rnl_step_define(&step, "NUMBER=%lld", (long long)plan.parts);
    if (plan.line)
        rnl_step_define(&step, "LINE");
    if (rnl_amx_wish_is("model"))
        rnl_step_define(&step, "MODEL");
    add_own(&step, &problem, &plan);
    rnl_conv_add_arguments(&step, &problem, false, plan.bands, plan.share_bands, plan.share_blocks);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)plan.block_items, (size_t)plan.band_items, 1}, (size_t[3]){1, 1, 1});
    rnl_conv_add_cost(&step, &problem);
    rnl_step_writes(&step, problem.dst->slot);
    rnl_step_writes(&step, problem.scratch->slot);
    return rnl_step_end(&step, "conv_amx.cl", "conv_amx");
}
