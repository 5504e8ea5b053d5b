/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_block_plan.h"
#include "base/memory.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/processor.h"

/* Tiles whose sums stay in registers of `width` floats. Few, since each pair is a program for each chain. */
typedef struct block_tile {
    int64_t width, pixels, vectors;
    bool is_for_swift; /* a program more, for cores whose products take most of their time */
} block_tile;

static const block_tile tiles[] = {{16, 8, 3, false}, {16, 7, 4, false}, {16, 14, 2, false}, {8, 6, 2, false},
                                   {8, 5, 2, false},  {8, 4, 3, false},  {4, 6, 2, false}};
static const block_tile last_tiles[] = {{16, 14, 2, false}, {16, 7, 4, false}, {16, 8, 3, true}, {16, 28, 1, false},
                                        {8, 6, 2, false},   {8, 4, 3, false},  {8, 5, 2, false}, {4, 6, 2, false}};
#define WORTHWHILE 0.9       /* of an earlier tile's cost */
#define WORTHWHILE_FINE 0.95 /* the same with registers of up to 8 floats, and for swift cores' tile */
#define FEW_PIXELS 64        /* for more of them it matters little how many of the last tile's are left over */
#define ENOUGH_PIXELS 96     /* of results at a time, which weights pass by together */
#define MOST_FLOATS (1 << 26)
/* With registers of 16 floats a block of bands of 4 and 3 rows is still as fast as its convolutions, one of 2 and 1 is
 * not. */
#define MOST_UNEVEN 0.3
/* Of a projection, in floats, which leave no room in a second cache beside the pixels: a tile of short registers,
 * whose sums are few, would ask for them more often than they come. */
#define MANY_WEIGHTS (1 << 16)

/* That wastes the fewest sums, where so many threads share the channels. */
static const block_tile *choose_tile(const block_tile *list, size_t count, int64_t width, int64_t channels,
                                     int64_t pixels, int64_t threads)
{
    const block_tile *best = NULL;
    double best_cost = 0;
    for (size_t i = 0; i < count; ++i) {
        const block_tile *it = &list[i];
        if (it->width != width || (it->is_for_swift && !rnl_processor_is_swift()))
            continue;
        const int64_t computed = pixels > FEW_PIXELS ? pixels : rnl_divide_up(pixels, it->pixels) * it->pixels;
        const int64_t slices = rnl_divide_up(rnl_divide_up(channels, width * it->vectors), threads) * threads;
        const double cost = (double)(slices * it->vectors) * (double)computed;
        if (!best || cost < (width > 8 && !it->is_for_swift ? WORTHWHILE : WORTHWHILE_FINE) * best_cost) {
            best = it;
            best_cost = cost;
        }
    }
    return best;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many threads an image is for. */
static int64_t threads_an_image(const rnl_device *device, const rnl_conv_block_shape *shape)
{
    const int64_t units = rnl_device_units(device);
    return units / common_divisor(rnl_count_to_choose_by(shape->batch, 1), units);
}

/*
 * Each thread gets as many images, or parts of them: bands of rows, or of the channels where nothing sums over them.
 * Then a work-item has one slice of a single image's, whose rows stay near.
 */
static void share_out(const rnl_device *device, const rnl_conv_block_shape *shape, rnl_conv_block_plan *plan)
{
    const int64_t units = rnl_device_units(device), split = threads_an_image(device, shape);
    const int64_t slices = rnl_divide_up(shape->hidden, plan->vector * plan->vectors);
    const bool by_channels = !shape->projects && slices >= split;
    plan->parts = by_channels ? split : 1;
    plan->slices = by_channels && shape->batch == 1 ? 1 : rnl_divide_up(slices, plan->parts);
    plan->parts = rnl_divide_up(slices, plan->slices);
    plan->bands = by_channels ? 1 : least(split, shape->dst_size[0]);
    const int64_t bands = shape->batch * plan->bands;
    plan->share = rnl_divide_up(bands, least(bands, rnl_divide_up(units, plan->parts)));
    plan->items = rnl_divide_up(bands, plan->share);
}

static int64_t rows_at_once(const rnl_conv_block_shape *shape, int64_t bands)
{
    const int64_t rows = rnl_divide_up(ENOUGH_PIXELS, shape->dst_size[1]),
                  most = rnl_divide_up(shape->dst_size[0], bands);
    const int64_t steps = rnl_divide_up(most, rows);
    return rnl_divide_up(most, steps);
}

/* Results of a row: with few registers, eight sums together with the vectors that the kernel computes at once. */
static int64_t columns_at_once(const rnl_conv_block_plan *plan, int64_t width)
{
    if (plan->vector == 16)
        return width >= 7 ? 7 : 1;
    if (plan->vectors % 2 == 1 && width >= 8)
        return 8;
    return width >= 4 ? 4 : 1;
}

static bool multiplies_pairs(const rnl_device *device, const rnl_conv_block_shape *shape)
{
    return rnl_device_runs(device, RNL_INSTRUCTION_BF16) && device->vector_width >= 8 &&
           (!shape->expands || shape->channels % 2 == 0) && (!shape->projects || shape->hidden % 2 == 0);
}

static bool is_possible(const rnl_device *device, const rnl_conv_block_shape *shape)
{
    return rnl_device_is_cpu(device) && (shape->expands || shape->projects) && shape->batch > 0 &&
           shape->channels > 0 && shape->hidden > 0 && shape->filters > 0 && shape->dst_size[0] > 0 &&
           shape->dst_size[1] > 0 && shape->batch < INT32_MAX / 1024 && shape->src_size[0] < 1 << 16 &&
           shape->src_size[1] < 1 << 16 && shape->dst_size[0] < 1 << 16 && shape->dst_size[1] < 1 << 16 &&
           shape->channels < 1 << 16 && shape->hidden < 1 << 16 && shape->filters < 1 << 16 &&
           (shape->taps == 3 || shape->taps == 5) && (shape->stride == 1 || shape->stride == 2) &&
           shape->pad_begin[0] >= 0 && shape->pad_begin[0] < shape->taps && shape->pad_begin[1] >= 0 &&
           shape->pad_begin[1] < shape->taps && (!shape->pairs || multiplies_pairs(device, shape));
}

bool rnl_conv_block_make_plan(const rnl_device *device, const rnl_conv_block_shape *shape,
                              rnl_conv_block_plan *out_plan)
{
    rnl_conv_block_plan plan = {.vector = device->vector_width};
    if (!is_possible(device, shape))
        return false;
    const block_tile *tile = choose_tile(tiles, sizeof tiles / sizeof *tiles, plan.vector, shape->hidden,
                                         shape->expands ? shape->src_size[0] * shape->src_size[1] : INT32_MAX,
                                         shape->projects ? 1 : threads_an_image(device, shape));
    if (!tile)
        return false;
    plan.pixels = tile->pixels;
    plan.vectors = tile->vectors;
    share_out(device, shape, &plan);
    plan.rows = rows_at_once(shape, plan.bands);
    tile = choose_tile(last_tiles, sizeof last_tiles / sizeof *last_tiles, plan.vector, shape->filters,
                       plan.rows * shape->dst_size[1], 1);
    plan.project_pixels = tile->pixels;
    plan.project_vectors = tile->vectors;
    plan.weights_once = shape->projects && plan.vector < 16 && shape->hidden * shape->filters > MANY_WEIGHTS;
    plan.columns = columns_at_once(&plan, shape->dst_size[1]);
    plan.ring_rows = (plan.rows - 1) * shape->stride + shape->taps;
    const int64_t read = (shape->dst_size[1] - 1) * shape->stride + shape->taps;
    const int64_t written = shape->src_size[1] + shape->pad_begin[1];
    plan.ring_width = read > written ? read : written;
    plan.between = shape->projects ? plan.rows * shape->dst_size[1] + plan.project_pixels : 0;
    const int64_t slice = plan.vector * plan.vectors;
    plan.own_floats = plan.slices * slice * plan.ring_rows * plan.ring_width;
    plan.own_floats += plan.slices * slice * plan.between / (shape->pairs ? 2 : 1);
    if (plan.own_floats > MOST_FLOATS)
        return false;
    *out_plan = plan;
    return true;
}

/* Sums of a band that ends before row `end` of the result. */
static double band_cost(const rnl_conv_block_shape *shape, int64_t first, int64_t end)
{
    const int64_t from = first * shape->stride - shape->pad_begin[0];
    const int64_t to = (end - 1) * shape->stride - shape->pad_begin[0] + shape->taps;
    const int64_t read = least(to, shape->src_size[0]) - (from > 0 ? from : 0);
    const double expand = shape->expands ? (double)shape->channels : 1; /* or a copy */
    const double project = shape->projects ? (double)shape->filters : 0;
    return (double)(read * shape->src_size[1]) * expand +
           (double)((end - first) * shape->dst_size[1]) * ((double)(shape->taps * shape->taps) + project);
}

double rnl_conv_block_waste(const rnl_conv_block_shape *shape, const rnl_conv_block_plan *plan)
{
    const double all = band_cost(shape, 0, shape->dst_size[0]);
    double sum = 0, longest = 0;
    for (int64_t i = 0; i < plan->bands; ++i) {
        const double cost =
            band_cost(shape, shape->dst_size[0] * i / plan->bands, shape->dst_size[0] * (i + 1) / plan->bands);
        sum += cost;
        longest = cost > longest ? cost : longest;
    }
    const double uneven = longest * (double)plan->bands / all - 1;
    return plan->vector < 16 || uneven > MOST_UNEVEN ? uneven : sum / all - 1;
}
