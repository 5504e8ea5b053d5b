/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_panel.h"
#include "base/memory.h"
#include "ops/conv_step.h"
#include "ops/conv_winograd.h"
#include "ops/implementation.h"
#include "ops/processor.h"
#include "ops/shares.h"
#include "ops/tuning.h"
#include <string.h>

/*
 * The tiles that there are, for devices whose registers hold `width` floats: few, since each is a program for each
 * chain. Their results stay in registers: 32 of 16 floats, 16 of fewer.
 */
typedef struct panel_tile {
    int64_t width;
    rnl_conv_tile tile;
} panel_tile;

static const panel_tile tiles[] = {
    {16, {16, 4, 7}}, {16, {16, 2, 14}}, {16, {16, 1, 28}}, {16, {16, 4, 1}}, {16, {16, 3, 8}}, {16, {8, 3, 8}},
    {16, {8, 1, 14}}, {16, {16, 2, 7}},  {8, {8, 2, 6}},    {8, {8, 4, 3}},   {8, {8, 1, 12}},  {8, {8, 4, 1}},
    {8, {8, 2, 5}},   {4, {4, 2, 6}},    {4, {4, 4, 3}},    {4, {4, 1, 12}},  {4, {4, 4, 1}},
};
#define FEW_PIXELS 8    /* of a whole batch: for these there is a tile that others do without, to be fewer programs */
#define MOST_EXACT 64   /* pixels */
#define WORTHWHILE 0.92 /* of an earlier tile's cost: a model does with fewer programs then */
#define EXACT 0.95      /* the same for a tile that is for few pixels and leaves hardly any over */
#define NARROW 1.1      /* the same for a tile whose weights come as they are needed */
#define ROOMY 0.97      /* the same of a tight tile's, for one that leaves registers free */
#define NEAR_WEIGHTS (128 * 1024) /* bytes of them that stay in a second cache beside pixels and results */
#define MOST_TOGETHER 4
#define FAR_WEIGHTS (1024 * 1024)       /* bytes of them that come from beyond a second cache */
#define LARGE_WEIGHTS (2 * FAR_WEIGHTS) /* for which few terms and pixels do not wait, either: a swift core's */
#define MANY_TERMS 512
#define SOME_TERMS 192
#define MANY_PIXELS 4096
#define ITEMS 16     /* of a unit */
#define ENOUGH 65536 /* half cycles of a work-item */

static int64_t pixel_count(const rnl_conv_problem *problem)
{
    return problem->batch * problem->dst_size[0] * problem->dst_size[1] * problem->dst_size[2];
}

static int64_t weight_bytes(const rnl_conv_problem *problem)
{
    return problem->weight_stride[3] * (int64_t)rnl_dtype_bytes(problem->weight->dtype);
}

/* Where the weights stay in the cache, all of them pass for each pixel, else all pixels for each block of channels. */
static bool weights_fit(const rnl_conv_problem *problem)
{
    return weight_bytes(problem) <= 384 * 1024;
}

/* For a handful of rows, as 7x7 pixels are, of which tiles of 6 leave 5 over. */
static bool is_exact(const panel_tile *it)
{
    return it->tile.vector == 8 && it->tile.pixels == 5;
}

/*
 * A tile of long registers for a handful of rows whose weights come from memory: those of two of its blocks stay in a
 * second cache, so that one can be asked for while the other is multiplied.
 */
static bool is_narrow(const panel_tile *it)
{
    return it->tile.vector == 16 && it->tile.pixels == 7 && it->tile.vectors == 2;
}

static int64_t count_terms(const rnl_conv_problem *problem)
{
    return problem->taps[0] * problem->taps[1] * problem->taps[2] * problem->channels;
}

/* Fewer weights, or of few terms, come without being asked for, and a program is saved. */
static bool needs_narrow(const rnl_conv_problem *problem)
{
    return pixel_count(problem) > FEW_PIXELS && pixel_count(problem) <= MOST_EXACT &&
           count_terms(problem) >= MANY_TERMS && weight_bytes(problem) >= FAR_WEIGHTS;
}

/* A tile for what reads its weights from memory, for few pixels; others do without it, to be fewer programs. */
static bool is_eligible(const rnl_conv_problem *problem, const panel_tile *it)
{
    if (is_exact(it))
        return pixel_count(problem) <= MOST_EXACT;
    if (is_narrow(it))
        return needs_narrow(problem);
    return it->tile.vector != 16 || it->tile.pixels != FEW_PIXELS || it->tile.vectors > 2 ||
           (pixel_count(problem) <= FEW_PIXELS && !weights_fit(problem));
}

/*
 * Results, weights and a pixel take more registers than there are: the last weights are read for each product, or
 * results are moved about, as many times as there are products.
 */
static bool is_tight(const rnl_conv_tile *tile)
{
    return tile->vector == 16 && tile->pixels * tile->vectors + tile->vectors + 1 > 32;
}

/* Half cycles that a tile takes; rough, and the same for all CPUs, but that a swift one multiplies 16 floats as fast as
 * 8. */
static int64_t tile_cost(const rnl_conv_problem *problem, const panel_tile *candidate)
{
    const rnl_conv_tile *tile = &candidate->tile;
    const int64_t taps = problem->taps[0] * problem->taps[1] * problem->taps[2];
    const int64_t products = tile->pixels * tile->vectors;
    const bool halves_gain = candidate->width <= 8 || !rnl_processor_is_swift();
    const int64_t arithmetic = tile->vector > 8 || !halves_gain ? 2 * products : products;
    const int64_t loads = tile->pixels + (tile->vector > 8 ? 2 : 1) * tile->vectors;
    const int64_t needed = arithmetic > loads ? arithmetic : loads, step = needed + (is_tight(tile) ? needed / 24 : 0);
    /* Vectors that are stored in part, in one of the blocks. */
    const int64_t width = tile->vector * tile->vectors;
    const int64_t parts = problem->filters % width ? 24 * tile->pixels / rnl_divide_up(problem->filters, width) : 0;
    return taps * (problem->channels * step + 4 * tile->pixels) + 100 + 8 * tile->pixels + 6 * products + parts;
}

static int64_t tile_runs(const rnl_conv_problem *problem, const rnl_conv_tile *tile)
{
    return rnl_divide_up(pixel_count(problem), tile->pixels);
}

static int64_t tile_blocks(const rnl_conv_problem *problem, const rnl_conv_tile *tile)
{
    return rnl_divide_up(problem->filters, tile->vector * tile->vectors) * problem->groups;
}

static const panel_tile *choose_tile(const rnl_device *device, const rnl_conv_problem *problem)
{
    const panel_tile *best = NULL;
    double best_cost = 0;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; ++i) {
        const panel_tile *it = &tiles[i];
        if (it->width != device->vector_width || !is_eligible(problem, it))
            continue;
        const double cost = (double)tile_cost(problem, it) * (double)tile_runs(problem, &it->tile) *
                            (double)tile_blocks(problem, &it->tile);
        const bool relieves = best && is_tight(&best->tile) && !is_tight(&it->tile) && it->tile.vectors == 3;
        const double enough = is_narrow(it) ? NARROW : relieves ? ROOMY : is_exact(it) ? EXACT : WORTHWHILE;
        if (!best || cost < enough * best_cost) {
            best = it;
            best_cost = cost;
        }
    }
    return best;
}

/* The tiles of one register width stand together: a variant is a number among them. */
static uint32_t count_tiles(const rnl_device *device, const panel_tile **out_first)
{
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; ++i) {
        if (tiles[i].width != device->vector_width)
            continue;
        if (count++ == 0)
            *out_first = &tiles[i];
    }
    return count;
}

static void hash_sizes(int64_t **at, const int64_t sizes[3])
{
    memcpy(*at, sizes, 3 * sizeof *sizes);
    *at += 3;
}

uint32_t rnl_conv_panel_tiles(const rnl_device *device)
{
    const panel_tile *first;
    return count_tiles(device, &first);
}

rnl_hash rnl_conv_panel_hash(const rnl_conv_problem *problem)
{
    /* Variants are numbers in lists: what was noted for other lists is for nothing. */
    const uint64_t lists = rnl_hash_bytes(tiles, sizeof tiles).low ^ rnl_conv_winograd_list();
    int64_t key[32] = {'p', 'a', 'n', 'e', 'l', (int64_t)lists};
    int64_t *at = key + 6;
    hash_sizes(&at, problem->src_size);
    hash_sizes(&at, problem->dst_size);
    hash_sizes(&at, problem->taps);
    hash_sizes(&at, problem->stride);
    hash_sizes(&at, problem->dilation);
    *at++ = problem->batch;
    *at++ = problem->groups;
    *at++ = problem->channels;
    *at++ = problem->filters;
    *at++ = problem->src->dtype;
    *at++ = problem->dst->dtype;
    *at++ = problem->pairs;
    return rnl_hash_bytes(key, sizeof key);
}

/* As measured, else as estimated. */
static const panel_tile *find_tile(rnl_device *device, const rnl_conv_problem *problem, rnl_step *step)
{
    const panel_tile *first = NULL;
    step->problem = rnl_conv_panel_hash(problem);
    step->variants = count_tiles(device, &first) + rnl_conv_winograd_ways(device, problem);
    const uint32_t variant = rnl_tuning_get(device, step->problem, rnl_conv_panel_tiles(device));
    return variant == RNL_TUNING_NONE ? choose_tile(device, problem) : first + variant;
}

bool rnl_conv_panel_applies(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    const panel_tile *first = NULL;
    int64_t pixels = problem->batch;
    for (size_t i = 0; i < 3; ++i)
        if (__builtin_mul_overflow(pixels, problem->dst_size[i], &pixels) || pixels > INT32_MAX / 2 ||
            problem->taps[i] * problem->dilation[i] > INT32_MAX / 4 ||
            problem->channels * problem->taps[2] > INT32_MAX / 4)
            return false;
    return rnl_device_is_cpu(device) && !problem->depthwise && count_tiles(device, &first) > 0;
}

/* What a work-item computes: runs of pixels, and blocks of channels for each of them. */
typedef struct panel_share {
    int64_t runs, blocks;
} panel_share;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t at_least_one(int64_t value)
{
    return value > 1 ? value : 1;
}

/*
 * Blocks of channels for each run of pixels, where not all weights fit: those of a few small blocks do, and a run's
 * pixels are found once for them.
 */
static int64_t blocks_together(const rnl_conv_problem *problem, const panel_tile *tile, int64_t blocks)
{
    const int64_t taps = problem->taps[0] * problem->taps[1] * problem->taps[2];
    const int64_t block = problem->channels * taps * tile->tile.vector * tile->tile.vectors *
                          (int64_t)rnl_dtype_bytes(problem->weight->dtype);
    const int64_t together = at_least_one(NEAR_WEIGHTS / at_least_one(block));
    return smaller(smaller(together, MOST_TOGETHER), blocks);
}

/* Some ten microseconds' worth, but work for every processor, and the same for each. */
static panel_share choose_share(const rnl_device *device, const rnl_conv_problem *problem, const panel_tile *tile)
{
    const int64_t runs = tile_runs(problem, &tile->tile), blocks = tile_blocks(problem, &tile->tile);
    const int64_t wanted = rnl_device_items(device, ITEMS);
    panel_share share = {1, 1};
    if (weights_fit(problem))
        share.blocks = runs >= wanted ? blocks : at_least_one(blocks * runs / wanted);
    else if (tile->tile.vector < 16)
        share.blocks = smaller(blocks_together(problem, tile, blocks), at_least_one(blocks * runs / wanted));
    share.blocks = rnl_even_share(blocks, share.blocks);
    const int64_t enough = rnl_divide_up(ENOUGH, tile_cost(problem, tile) * share.blocks);
    const int64_t most = at_least_one(runs * rnl_divide_up(blocks, share.blocks) / wanted);
    share.runs =
        rnl_fair_share(device, runs, smaller(most, enough), rnl_divide_up(blocks, share.blocks), !weights_fit(problem));
    return share;
}

#define MOST_IN_LINE 24

/* A row of taps is one stretch of few numbers, so that finding it takes as long as its products do: first layers. */
static bool has_short_lines(const rnl_conv_problem *problem, const rnl_conv_tile *tile)
{
    return tile->vector >= 8 && tile->pixels > 1 && !problem->transposed && problem->groups == 1 &&
           (!problem->pairs || problem->taps[2] > 1) && problem->src_stride[3] == problem->channels &&
           (problem->dilation[2] == 1 || problem->taps[2] == 1) && problem->channels * problem->taps[2] <= MOST_IN_LINE;
}

/*
 * Where a handful of pixels passes by weights that come from memory, block by block, each block is asked for while the
 * one before is multiplied, with a slower core only what is not in its second cache. Elsewhere long tiles ask for
 * pixels and results instead, and with 16 registers either costs more than it hides. Few pixels do without, to be fewer
 * programs, unless there is very much of it; many have each block for long.
 */
static bool asks_for_next(const rnl_conv_problem *problem, const panel_tile *it)
{
    const rnl_conv_tile *tile = &it->tile;
    const int64_t pixels = pixel_count(problem);
    const bool is_long = tile->vector == 16 && tile->pixels * tile->vectors >= 24 && tile->vectors > 2;
    const bool is_swift = rnl_processor_is_swift();
    const bool is_some = pixels > MOST_EXACT && count_terms(problem) >= SOME_TERMS &&
                         (is_swift ? !weights_fit(problem) : weight_bytes(problem) >= FAR_WEIGHTS);
    const bool is_large = is_swift && weight_bytes(problem) >= LARGE_WEIGHTS;
    const bool pays = is_long && pixels < MANY_PIXELS && tile_blocks(problem, tile) > 1 && (is_some || is_large);
    return !problem->transposed && (is_exact(it) || is_narrow(it) || pays);
}

rnl_status rnl_conv_panel_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_conv_problem *problem = data;
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    const panel_tile *chosen = find_tile(list->device, problem, &step.step);
    const rnl_conv_tile *tile = &chosen->tile;
    const panel_share share = choose_share(list->device, problem, chosen);
    const size_t runs = (size_t)rnl_divide_up(tile_runs(problem, tile), share.runs);
    const size_t blocks = (size_t)rnl_divide_up(tile_blocks(problem, tile), share.blocks);
    const bool blocks_last = !weights_fit(problem);
    rnl_conv_add_defines(&step, problem, tile);
    rnl_step_define(&step, "NB=%lld", (long long)tile->vectors);
    if (problem->transposed)
        rnl_step_define(&step, "TRANSPOSED");
    if (problem->pairs)
        rnl_step_define(&step, "PAIRS");
    if (asks_for_next(problem, chosen))
        rnl_step_define(&step, rnl_processor_prefers_moves(list->device) ? "NEXT -DSUMS_MOVE" : "NEXT");
    if (tile->vector == 16 && rnl_chain_is_long(problem->chain))
        rnl_step_define(&step, "LONG_CHAIN");
    if (has_short_lines(problem, tile))
        rnl_step_define(&step, "LINE=%lld -DSTEP=%lld", (long long)(problem->channels * problem->taps[2]),
                        (long long)(problem->stride[2] * problem->channels));
    rnl_conv_add_arguments(&step, problem, blocks_last, pixel_count(problem), share.runs, share.blocks);
    rnl_step_range(&step, 2, blocks_last ? (size_t[3]){runs, blocks, 1} : (size_t[3]){blocks, runs, 1},
                   (size_t[3]){1, 1, 1});
    rnl_conv_add_cost(&step, problem);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "conv_panel.cl", "conv_panel");
}
