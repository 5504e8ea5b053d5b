/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "kernel/team.h"
#include "ops/gemm_panel.h"
#include "ops/implementation.h"
#include "ops/processor.h"
#include "ops/shares.h"
#include "ops/tuning.h"

/* The tiles that there are, for devices whose registers hold `width` floats. Few, since each is a program. */
typedef struct panel_tile {
    int64_t width, rows, count;
} panel_tile;

static const panel_tile tiles[] = {
    {16, 8, 3}, {16, 7, 4}, {16, 6, 4}, {16, 4, 6}, {16, 2, 8}, {16, 1, 8}, {16, 1, 4}, {8, 4, 3}, {8, 6, 2},
    {8, 2, 4},  {8, 1, 8},  {8, 1, 4},  {4, 4, 3},  {4, 6, 2},  {4, 2, 4},  {4, 1, 8},  {4, 1, 4},
};
#define TILES (sizeof tiles / sizeof *tiles)

#define CACHED_FLOATS 98304  /* of b, that stay in a core's cache while rows pass */
#define BLOCK_DEPTH 128      /* terms, where a tile's columns of b would not */
#define ITEM_CYCLES 12000.0  /* of a work-item, so that starting it costs little */
#define ITEMS_OF_A_THREAD 8  /* so that threads finish together */
#define UNEVEN 0.96          /* of what the thread with most to do has, that single panels cost less */
#define WORTHWHILE 0.97      /* of an earlier tile's cycles: fewer programs then */
#define WORTHWHILE_SMALL 0.8 /* of those of a product of fewer cycles than … */
#define SMALL_CYCLES 300000.0
#define COPIED_ROWS 1024 /* of a, that make up for copying b; fewer where b's rows meet in a cache's sets */
#define COPIED_ROWS_MEET 256
#define SETS_BYTES 4096
/* Panels read side by side that meet in a first cache's sets; where b lies as it does, they are one stretch. */
#define MANY_PANELS 8
#define MANY_PANELS_ROWS 2
/* Registers of 8 floats, as measured on Zen 3: b is best read in panels, which are half as wide there, and fewer times.
 */
#define NARROW 8
#define NARROW_WORTHWHILE 1.01
#define NARROW_COPIED_ROWS 32
#define NARROW_COPIED_TERMS 49152 /* of a in all */
#define NARROW_COPIED_WORK 1.8e7
#define INSIDE_LEAST_ROWS 8 /* with twice as much work */
#define INSIDE_ROWS 12
#define INSIDE_WORK 8e6        /* multiply-adds */
#define INSIDE_FEW_ROWS 64     /* b's panels are copied by who reads them, 128 terms at a time */
#define INSIDE_DEPTH 1024      /* for more rows all terms, if they are no more than so many */
#define INSIDE_ITEMS 2         /* of a thread, where columns are shared */
#define INSIDE_FLOATS 0x100000 /* of all copies, else twice b: with many threads a step in front makes one */

/* Of many terms blocks are taken by some slabs together, where there are so many rows: shares of b are wider then, and
 * a is read for fewer of them. */
typedef struct deep_blocks {
    int64_t terms, rows, depth, cached_floats, slabs;
} deep_blocks;

/* Registers of 16 floats on a Zen 4: 2,000 to 2,064 terms of 2,048 x 2,048 take 3% to 6% less so, 1,024 1% more. */
static const deep_blocks narrow_blocks = {2048, 256, 512, 65536, 16}, wide_blocks = {2000, 256, 512, CACHED_FLOATS, 8};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Cycles of one slab times `count` panels; rough, and the same for all CPUs. */
static double tile_cycles(const panel_tile *tile, int64_t count, int64_t k)
{
    const double vector = tile->width == 16 ? 1.0 : 0.5;
    const double products = vector * (double)(tile->rows * count);
    const double loads = 0.5 * (double)tile->rows + vector * (double)count;
    const double step = products > loads ? products : loads;
    return (double)k * (step + (count == 1 ? 2.0 : 0.5)) + 40 + 3 * (double)(tile->rows * count);
}

static double slab_cycles(const panel_tile *tile, int64_t panels, int64_t k)
{
    return (double)(panels / tile->count) * tile_cycles(tile, tile->count, k) +
           (double)(panels % tile->count) * tile_cycles(tile, 1, k);
}

/* What a tile's cycles may be of an earlier one's. */
static double worthwhile_of(const panel_tile *tile, const panel_tile *best, double best_cycles, bool packs)
{
    if (best_cycles < SMALL_CYCLES)
        return WORTHWHILE_SMALL;
    return packs && tile->width == NARROW && tile->rows > best->rows ? NARROW_WORTHWHILE : WORTHWHILE;
}

static const panel_tile *estimate_tile(const rnl_device *device, const rnl_gemm_problem *problem, int64_t panels,
                                       bool packs)
{
    const panel_tile *best = NULL;
    double best_cycles = 0;
    for (size_t i = 0; i < TILES; ++i) {
        const panel_tile *it = &tiles[i];
        if (it->width != device->vector_width || (best && it->rows >= 2 * problem->m) ||
            (it->rows <= MANY_PANELS_ROWS && it->count == MANY_PANELS && problem->packed))
            continue;
        const double cycles = (double)rnl_divide_up(problem->m, it->rows) * slab_cycles(it, panels, problem->k);
        if (!best || cycles < worthwhile_of(it, best, best_cycles, packs) * best_cycles) {
            best = it;
            best_cycles = cycles;
        }
    }
    return best;
}

/* ---- as measured ------------------------------------------------------------------------------------------------ */

/* The tiles of one register width stand together: a variant is a number among them, first those that copy b. */
static uint32_t count_tiles(const rnl_device *device, const panel_tile **out_first)
{
    uint32_t count = 0;
    for (size_t i = 0; i < TILES; ++i) {
        if (tiles[i].width != device->vector_width)
            continue;
        if (count++ == 0)
            *out_first = &tiles[i];
    }
    return count;
}

/* Of what the best tile depends on. */
static rnl_hash problem_hash(const rnl_gemm_problem *problem)
{
    const int64_t key[] = {'g',
                           'e',
                           'm',
                           'm',
                           1,
                           problem->m,
                           problem->n,
                           problem->k,
                           rnl_dims_elements(&problem->batch),
                           problem->a_m,
                           problem->a_k,
                           problem->packed ? 0 : problem->b_k,
                           problem->packed ? 0 : problem->b_n,
                           problem->packed,
                           problem->a->dtype};
    return rnl_hash_bytes(key, sizeof key);
}

/* ---- shares ----------------------------------------------------------------------------------------------------- */

/* At most `most` panels, in equal shares of whole tiles. */
static int64_t share_of(int64_t panels, int64_t most, int64_t count)
{
    if (most >= panels)
        return panels;
    const int64_t shares = rnl_divide_up(panels, larger(most / count, 1) * count);
    return rnl_divide_up(rnl_divide_up(panels, shares), count) * count;
}

/* NULL: all terms at once. */
static const deep_blocks *deep_blocks_of(const rnl_device *device)
{
    if (device->vector_width == NARROW)
        return &narrow_blocks;
    return device->vector_width > NARROW && !rnl_processor_is_swift() ? &wide_blocks : NULL;
}

/* Panels of b that a work-item takes, and terms at a time, before it is seen whether that is work for all. */
static int64_t share_cache(const rnl_device *device, const rnl_gemm_problem *problem, const panel_tile *tile,
                           bool has_memory, rnl_gemm_panel_plan *plan)
{
    const bool narrow = device->vector_width == NARROW;
    const deep_blocks *deep = deep_blocks_of(device);
    int64_t cached = CACHED_FLOATS;
    plan->depth = problem->k;
    if (has_memory && plan->packs && deep && problem->k >= deep->terms && problem->m >= deep->rows) {
        cached = deep->cached_floats;
        plan->depth = deep->depth;
    } else if (has_memory && !plan->packs && problem->k > 2 * BLOCK_DEPTH) {
        cached = narrow ? CACHED_FLOATS / 2 : CACHED_FLOATS;
        if (cached / plan->vector / problem->k < 2 * tile->count)
            plan->depth = BLOCK_DEPTH;
    }
    return cached / plan->vector / plan->depth;
}

/* Panels of a work-item, in whole tiles or, where a thread would have much more to do than others then, without. */
static int64_t even_panels(const rnl_device *device, const rnl_gemm_panel_plan *plan, int64_t slabs)
{
    const int64_t threads = rnl_device_units(device), panels = plan->panels.panels;
    const int64_t whole = plan->share_panels, even = rnl_even_share(panels, whole);
    if (threads == 1 || threads > RNL_TEAM_MOST_THREADS || even == whole)
        return whole;
    const rnl_extent rows = {slabs, 1, false};
    const int64_t most = rnl_longest_part((uint32_t)threads, (rnl_extent[]){rows, {panels, whole, true}});
    const int64_t less = rnl_longest_part((uint32_t)threads, (rnl_extent[]){rows, {panels, even, true}});
    return (double)less < UNEVEN * (double)most ? even : whole;
}

/* Some microseconds' worth, but work for every processor. */
static void share_work(const rnl_device *device, const rnl_gemm_problem *problem, const panel_tile *tile,
                       bool has_memory, rnl_gemm_panel_plan *plan)
{
    const int64_t slabs = rnl_divide_up(problem->m, tile->rows), panels = plan->panels.panels;
    const int64_t wanted = ITEMS_OF_A_THREAD * larger(device->info.compute_units, 1);
    const int64_t batches = larger(rnl_dims_elements(&problem->batch), 1);
    const int64_t most = share_cache(device, problem, tile, has_memory, plan);
    /* Where there are too few slabs to go round, columns are shared too. */
    const int64_t fair = panels / rnl_divide_up(wanted, slabs * batches);
    plan->share_panels = share_of(panels, most < fair ? most : fair, tile->count);
    if (batches == 1)
        plan->share_panels = even_panels(device, plan, slabs);
    plan->column_items = rnl_divide_up(panels, plan->share_panels);
    const bool is_deep = plan->packs && plan->depth < problem->k;
    const int64_t enough = is_deep ? deep_blocks_of(device)->slabs
                                   : (int64_t)(ITEM_CYCLES / slab_cycles(tile, plan->share_panels, problem->k)) + 1;
    const int64_t spread = larger(slabs * plan->column_items * batches / wanted, 1);
    plan->share_slabs = enough < spread ? enough : spread;
    plan->row_items = rnl_divide_up(slabs, plan->share_slabs);
}

static bool copies_inside(const rnl_device *device, const rnl_gemm_problem *problem)
{
    return device->vector_width == NARROW && problem->dst->dtype == RNL_F32 && problem->batch.rank == 0 &&
           (problem->m <= INSIDE_FEW_ROWS || problem->k <= INSIDE_DEPTH);
}

/* Each work-item copies what it takes of b, which no other processor has to fetch from it then. */
static void share_inside(const rnl_device *device, const rnl_gemm_problem *problem, const panel_tile *tile,
                         rnl_gemm_panel_plan *plan)
{
    const int64_t units = rnl_device_units(device), panels = plan->panels.panels;
    const int64_t slabs = rnl_divide_up(problem->m, tile->rows);
    const int64_t most = problem->m <= INSIDE_FEW_ROWS ? BLOCK_DEPTH : INSIDE_DEPTH;
    plan->depth = rnl_divide_up(problem->k, rnl_divide_up(problem->k, most));
    int64_t columns = rnl_divide_up(panels, larger(CACHED_FLOATS / plan->vector / plan->depth, tile->count));
    int64_t rows = 1;
    if (panels >= units * tile->count * 4)
        columns = rnl_divide_up(larger(columns, INSIDE_ITEMS * units), units) * units;
    else
        rows = units * larger(1, slabs / (12 * units) < 4 ? slabs / (12 * units) : 4);
    plan->share_panels = rnl_divide_up(rnl_divide_up(panels, columns), tile->count) * tile->count;
    plan->column_items = rnl_divide_up(panels, plan->share_panels);
    plan->share_slabs = rnl_divide_up(slabs, rows);
    plan->row_items = rnl_divide_up(slabs, plan->share_slabs);
}

static bool shares_inside(const rnl_device *device, const rnl_gemm_problem *problem, const panel_tile *tile,
                          rnl_gemm_panel_plan *plan)
{
    share_inside(device, problem, tile, plan);
    return plan->row_items * plan->column_items * plan->share_panels * plan->vector * plan->depth <=
           larger(INSIDE_FLOATS, 2 * plan->panels.floats);
}

/* b is better copied than read where it lies. */
static bool copies_b(const rnl_device *device, const rnl_gemm_problem *problem)
{
    const double terms = (double)problem->m * (double)problem->k;
    const int64_t row_bytes = problem->b_k * (int64_t)rnl_dtype_bytes(problem->b->dtype);
    if (problem->b->dtype != RNL_F32)
        return problem->m >= 8;
    if (copies_inside(device, problem))
        return problem->m >= INSIDE_LEAST_ROWS &&
               terms * (double)problem->n >= (problem->m < INSIDE_ROWS ? 2 : 1) * INSIDE_WORK;
    if (device->vector_width == NARROW && problem->m >= NARROW_COPIED_ROWS && terms >= NARROW_COPIED_TERMS &&
        terms * (double)problem->n >= NARROW_COPIED_WORK)
        return true;
    return problem->m >= (row_bytes % SETS_BYTES == 0 ? COPIED_ROWS_MEET : COPIED_ROWS);
}

static const char *copied_form(const rnl_gemm_problem *problem)
{
    return problem->a_k == 1 ? "COPY_K" : problem->a_m == 1 ? "COPY_M" : "COPY_ANY";
}

/* Memory for sums of blocks of terms, and for copies of a. */
static bool add_memory(const rnl_gemm_problem *problem, rnl_gemm_panel_plan *plan)
{
    int64_t floats;
    const bool copies_a = problem->a_k != 1 || problem->a->dtype != RNL_F32;
    plan->form = copies_a ? copied_form(problem) : "ROWS";
    if (plan->depth < problem->k)
        plan->own_floats = plan->rows * plan->vector * plan->share_slabs * plan->share_panels;
    if (copies_a)
        plan->own_floats += plan->rows * plan->depth + plan->vector;
    if (plan->inside)
        plan->own_floats += plan->share_panels * plan->vector * (plan->depth + 2);
    plan->scratch = plan->packs && !plan->inside && !problem->packed ? plan->panels.floats : 0;
    return !__builtin_mul_overflow(plan->row_items * plan->column_items, rnl_dims_elements(&problem->batch), &floats) &&
           !__builtin_mul_overflow(floats, plan->own_floats, &floats) &&
           !__builtin_add_overflow(plan->scratch, floats, &plan->scratch) && plan->scratch < INT64_MAX / 16;
}

static void do_without_memory(const rnl_device *device, const rnl_gemm_problem *problem, const panel_tile *tile,
                              rnl_gemm_panel_plan *plan)
{
    plan->form = problem->a_k == 1 ? "ROWS" : "ANY";
    plan->packs = problem->packed;
    plan->inside = false;
    share_work(device, problem, tile, false, plan);
    plan->own_floats = plan->scratch = 0;
}

uint32_t rnl_gemm_panel_variants(const rnl_device *device)
{
    uint32_t count = 0;
    for (size_t i = 0; i < TILES; ++i)
        count += tiles[i].width == device->vector_width;
    return 2 * count;
}

bool rnl_gemm_panel_plan_make(const rnl_device *device, const rnl_gemm_problem *problem, int64_t floats,
                              rnl_gemm_panel_plan *out_plan)
{
    rnl_gemm_panel_plan plan = {.problem = problem_hash(problem)};
    const panel_tile *tile = NULL;
    const uint32_t count = count_tiles(device, &tile);
    if (count == 0 || !rnl_gemm_panels_of(device, problem->b, &plan.panels))
        return false;
    const bool is_readable = !problem->packed && problem->b_n == 1 && problem->n >= plan.panels.width;
    plan.variants = is_readable ? 2 * count : count;
    /* The table is guarded by a lock of its own. */
    if (problem->variant > plan.variants)
        return false;
    const uint32_t variant = problem->variant
                                 ? problem->variant - 1
                                 : rnl_tuning_get((rnl_device *)(uintptr_t)device, plan.problem, plan.variants);
    const bool is_tuned = variant != RNL_TUNING_NONE;
    plan.packs = problem->packed || !is_readable || (is_tuned ? variant < count : copies_b(device, problem));
    tile = is_tuned ? &tile[variant % count] : estimate_tile(device, problem, plan.panels.panels, plan.packs);
    plan.rows = tile->rows;
    plan.count = tile->count;
    plan.vector = plan.panels.width;
    plan.inside =
        plan.packs && is_readable && copies_inside(device, problem) && shares_inside(device, problem, tile, &plan);
    if (!plan.inside)
        share_work(device, problem, tile, true, &plan);
    if (!add_memory(problem, &plan))
        return false;
    if (floats < plan.scratch && (problem->packed || is_readable))
        do_without_memory(device, problem, tile, &plan);
    *out_plan = plan;
    return floats >= plan.scratch;
}
