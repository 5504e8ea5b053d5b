/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shares.h"
#include "base/memory.h"
#include "kernel/team.h"
#include "kernel/team_cut.h"
#include "ops/implementation.h"

#define ITEMS 4          /* of a thread, in each direction */
#define BETTER 0.98      /* of the least cost so far, to be worth more work-items */
#define MOST_TILES 8     /* of a work-item, one below the other, or more of … */
#define MOST_TERMS 16384 /* in all */
#define MANY_ITEMS 64    /* of a thread, for which it does not matter who has one more */

int64_t rnl_shares_rounds(const rnl_shares *shares, int64_t threads)
{
    return rnl_divide_up(shares->row_items * shares->block_items, threads);
}

static int64_t least_items(int64_t count, int64_t most)
{
    return most > 0 ? rnl_divide_up(count, most) : 1;
}

rnl_shares rnl_choose_shares(const rnl_device *device, int64_t rows, int64_t blocks, int64_t most_rows,
                             int64_t most_blocks, rnl_shares_cost cost, const void *of, double *out_cost)
{
    const int64_t threads = rnl_device_units(device), more = ITEMS * threads;
    const int64_t least_i = least_items(blocks, most_blocks), least_j = least_items(rows, most_rows);
    rnl_shares best = {0};
    double least = 0;
    for (int64_t i = least_i; i <= blocks && i < least_i + more; ++i)
        for (int64_t j = least_j; j <= rows && j < least_j + more; ++j) {
            rnl_shares it = {rows, blocks, rnl_divide_up(rows, j), rnl_divide_up(blocks, i), 0, 0};
            it.row_items = rnl_divide_up(rows, it.each_rows);
            it.block_items = rnl_divide_up(blocks, it.each_blocks);
            const double its = cost(&it, threads, of);
            if (best.row_items == 0 || its < BETTER * least) {
                best = it;
                least = its;
            }
        }
    if (out_cost)
        *out_cost = least;
    return best;
}

static int64_t start_of(const rnl_extent *it, size_t item)
{
    const int64_t items = rnl_divide_up(it->count, it->share), at = (int64_t)item;
    if (it->shorter_first)
        return at == 0 ? 0 : it->count - (items - at) * it->share;
    return at * it->share < it->count ? at * it->share : it->count;
}

static int64_t count_between(const rnl_extent *it, size_t first, size_t items)
{
    return start_of(it, first + items) - start_of(it, first);
}

int64_t rnl_longest_part(uint32_t threads, const rnl_extent extents[2])
{
    rnl_range range = {.dimensions = 2, .global = {1, 1, 1}, .local = {1, 1, 1}};
    for (int i = 0; i < 2; i++)
        range.global[i] = (size_t)rnl_divide_up(extents[i].count, extents[i].share);
    const rnl_team_cut cut = rnl_team_choose_cut(&range, threads, false);
    const rnl_extent *outer = &extents[cut.outer], *inner = &extents[cut.inner];
    int64_t longest = 0;
    for (uint32_t thread = 0; thread < threads; thread++) {
        rnl_team_piece pieces[RNL_TEAM_MOST_PIECES];
        const uint32_t found = rnl_team_find_pieces(&cut, threads, thread, pieces);
        int64_t part = 0;
        for (uint32_t i = 0; i < found; i++) {
            const rnl_team_piece *it = &pieces[i];
            part += count_between(outer, it->row, it->rows) *
                    (cut.columns > 1 ? count_between(inner, it->column, it->columns) : inner->count);
        }
        longest = part > longest ? part : longest;
    }
    return longest;
}

/* Of `count` rows in work-items of `share`, each for each of the others. */
static int64_t longest_of(uint32_t threads, int64_t count, int64_t share, int64_t others, bool is_first)
{
    const rnl_extent rows = {count, share, false}, beside = {others, 1, false};
    return rnl_longest_part(threads,
                            is_first ? (const rnl_extent[]){rows, beside} : (const rnl_extent[]){beside, rows});
}

int64_t rnl_fair_share(const rnl_device *device, int64_t count, int64_t wish, int64_t others, bool is_first)
{
    const int64_t share = rnl_even_share(count, wish), most = share + share / 3, least = (share + 1) / 2;
    const int64_t threads = rnl_device_units(device);
    if (threads == 1 || threads > RNL_TEAM_MOST_THREADS || count >= MANY_ITEMS * threads * share)
        return share;
    int64_t best = share, shortest = longest_of((uint32_t)threads, count, share, others, is_first);
    for (int64_t items = rnl_divide_up(count, most); items <= rnl_divide_up(count, least); items++) {
        const int64_t it = rnl_divide_up(count, items);
        if (it < least)
            break;
        const int64_t longest = longest_of((uint32_t)threads, count, it, others, is_first);
        if (longest * 100 < shortest * 99) {
            best = it;
            shortest = longest;
        }
    }
    return best;
}

int64_t rnl_stretch_share(const rnl_device *device, int64_t count, int64_t parts)
{
    const int64_t threads = rnl_device_units(device);
    for (int64_t i = parts; i > 0; --i) {
        const int64_t share = rnl_divide_up(count, threads * i), items = rnl_divide_up(count, share);
        if (items % threads == 0 && (double)(items * share) <= RNL_TEAM_FAIR * (double)count)
            return share;
    }
    return 0;
}

int64_t rnl_tiles_of_item(const rnl_device *device, int64_t row_tiles, int64_t others, int64_t terms)
{
    const int64_t enough = 4 * (int64_t)device->info.compute_units;
    const int64_t most = terms > 0 && terms < MOST_TERMS / MOST_TILES ? MOST_TERMS / terms : MOST_TILES;
    int64_t tiles = 1;
    if (!rnl_device_is_cpu(device))
        return 1;
    while (2 * tiles <= most && row_tiles / (2 * tiles) * others >= enough)
        tiles *= 2;
    /* Stretches of rows, where there are any nearly as long: they can be shared out (rnl_shares_evenly). */
    const int64_t share = rnl_even_share(row_tiles, tiles), threads = rnl_device_units(device);
    const int64_t even = rnl_stretch_share(device, row_tiles, rnl_divide_up(row_tiles, threads * share));
    return 2 * even >= share && even <= share ? even : share;
}

bool rnl_shares_evenly(const rnl_device *device, int64_t count, int64_t share)
{
    const int64_t threads = rnl_device_units(device), items = rnl_divide_up(rnl_divide_up(count, share), threads);
    return (double)(items * threads) * (double)share <= RNL_TEAM_FAIR * (double)count;
}
