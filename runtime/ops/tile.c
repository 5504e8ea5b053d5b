/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/tile.h"
#include "base/memory.h"
#include "ops/deterministic.h"

#define MOST_PARTS 32
#define MOST_FLOATS (INT64_C(1) << 24) /* of the parts' sums: they should stay in a GPU's cache */
#define MOST_LAYERS 65535              /* NVIDIA's limit of a range's third dimension */

/*
 * A rough model of a compute unit, in its cycles: a step of a tile takes as long as its multiplications at the rate
 * that the tile reaches, and not less than memory takes to answer. Measured on one NVIDIA GPU; only the proportions
 * matter.
 */
#define MULTIPLICATIONS 128.0 /* in a cycle */
#define ANSWER 700.0
#define SECOND_KERNEL 4000.0
#define STORED_FLOATS 8.0 /* in a cycle */

typedef struct tile_kind {
    int64_t rows, columns, depth, item_rows, item_columns;
    double rate; /* of MULTIPLICATIONS */
} tile_kind;

static const tile_kind kinds[] = {
    {128, 128, 8, 8, 8, 0.60},
    {64, 64, 16, 8, 4, 0.45},
    {32, 32, 16, 4, 4, 0.30},
};

static int64_t items_of(int64_t rows, int64_t columns, int64_t item_rows, int64_t item_columns)
{
    return rows / item_rows * (columns / item_columns);
}

/* The integrated GPUs of Intel have few registers, and no way to ask for more. */
static bool overflows_registers(const rnl_device *device, const tile_kind *kind)
{
    return device->info.vendor_id == RNL_VENDOR_INTEL && device->info.type == RNL_DEVICE_GPU &&
           device->info.unified_memory && kind->item_rows * kind->item_columns > 16;
}

/* As in tile.clh: two tiles of each factor, each row four floats longer. Emulated devices allow kernels fewer
 * work-items than they report. */
static bool fits(const rnl_device *device, const tile_kind *kind)
{
    const int64_t bytes = 2 * kind->depth * (kind->rows + 4 + kind->columns + 4) * (int64_t)sizeof(float);
    const int64_t items = items_of(kind->rows, kind->columns, kind->item_rows, kind->item_columns);
    return !device->info.emulated && !overflows_registers(device, kind) &&
           (uint64_t)bytes <= device->info.local_memory_bytes && (uint64_t)items <= device->info.max_work_group_size;
}

static rnl_tile make_tile(const tile_kind *kind, const rnl_tile_product *product, int64_t parts)
{
    const int64_t steps = rnl_divide_up(rnl_divide_up(product->depth, kind->depth), parts);
    rnl_tile tile = {.rows = kind->rows,
                     .columns = kind->columns,
                     .depth = kind->depth,
                     .item_rows = kind->item_rows,
                     .item_columns = kind->item_columns,
                     .part_depth = steps * kind->depth,
                     .row_tiles = rnl_divide_up(product->rows, kind->rows),
                     .column_tiles = rnl_divide_up(product->columns, kind->columns),
                     .quads = rnl_divide_up(product->columns, 4)};
    tile.parts = rnl_divide_up(product->depth, tile.part_depth);
    return tile;
}

static double cycles(const rnl_device *device, const tile_kind *kind, const rnl_tile_product *product,
                     const rnl_tile *tile)
{
    const double units = device->info.compute_units ? (double)device->info.compute_units : 1;
    const double groups =
        (double)tile->row_tiles * (double)tile->column_tiles * (double)product->layers * (double)tile->parts;
    const double work = (double)(kind->rows * kind->columns * kind->depth) / MULTIPLICATIONS / kind->rate;
    const double share = (double)(int64_t)((groups + units - 1) / units); /* work-groups of one compute unit */
    const double step = share * work > ANSWER ? share * work : ANSWER;
    double sum = (double)(tile->part_depth / kind->depth) * step;
    if (tile->parts > 1)
        sum += SECOND_KERNEL + 2 * (double)tile->parts * (double)product->layers * (double)product->rows *
                                   (double)product->columns / STORED_FLOATS / units;
    return sum;
}

uint32_t rnl_tile_kinds(void)
{
    return sizeof kinds / sizeof *kinds;
}

bool rnl_tile_choose(const rnl_device *device, const rnl_tile_product *product, const rnl_view *scratch,
                     rnl_tile *out_tile)
{
    const int64_t given = scratch && scratch->dtype == RNL_F32 ? rnl_view_elements(scratch) : 0;
    const int64_t floats = given < MOST_FLOATS ? given : MOST_FLOATS;
    const int64_t most_parts = rnl_count_to_choose_by(MOST_PARTS, 1);
    double best = 0;
    bool found = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        if (product->kind != 0 && product->kind != i + 1)
            continue;
        for (int64_t parts = 1; fits(device, &kinds[i]) && parts <= most_parts; parts *= 2) {
            const rnl_tile tile = make_tile(&kinds[i], product, parts);
            const double time = cycles(device, &kinds[i], product, &tile);
            if (product->layers > MOST_LAYERS / tile.parts || rnl_tile_scratch(&tile, product) > floats ||
                (found && time >= best))
                continue;
            best = time;
            *out_tile = tile;
            found = true;
        }
    }
    return found;
}

int64_t rnl_tile_scratch(const rnl_tile *tile, const rnl_tile_product *product)
{
    int64_t floats = tile->quads * 4;
    if (tile->parts == 1)
        return 0;
    if (__builtin_mul_overflow(floats, product->rows, &floats) ||
        __builtin_mul_overflow(floats, product->layers, &floats) ||
        __builtin_mul_overflow(floats, tile->parts, &floats))
        return INT64_MAX;
    return floats;
}

/* Intel's GPUs give a thread half of the registers that it can have unless they are asked for them, and the compiler
 * packs as many work-items as it can into one: large tiles would not stay in registers. */
static bool wants_more_registers(const rnl_device *device, const rnl_tile *tile)
{
    return device->info.vendor_id == RNL_VENDOR_INTEL && device->info.type == RNL_DEVICE_GPU &&
           tile->item_rows * tile->item_columns > 16;
}

void rnl_tile_define(rnl_step_builder *step, const rnl_tile *tile)
{
    rnl_step_define(step, "BM=%d -DBN=%d -DBK=%d -DTM=%d -DTN=%d%s", (int)tile->rows, (int)tile->columns,
                    (int)tile->depth, (int)tile->item_rows, (int)tile->item_columns,
                    wants_more_registers(step->list->device, tile) ? " -DSUB_GROUP=16 -cl-intel-256-GRF-per-thread"
                                                                   : "");
}

void rnl_tile_range(rnl_step_builder *step, const rnl_tile *tile, const rnl_tile_product *product)
{
    const size_t items = (size_t)items_of(tile->rows, tile->columns, tile->item_rows, tile->item_columns);
    const size_t groups = (size_t)tile->row_tiles * (size_t)tile->column_tiles;
    rnl_step_range(step, 3, (size_t[3]){groups * items, 1, (size_t)product->layers * (size_t)tile->parts},
                   (size_t[3]){items, 1, 1});
}

void rnl_tile_sum_range(rnl_step_builder *step, const rnl_tile *tile, const rnl_tile_product *product)
{
    rnl_step_range(step, 3, (size_t[3]){(size_t)tile->quads * (size_t)product->rows, 1, (size_t)product->layers},
                   (size_t[3]){64, 1, 1});
}
