/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/team_cut.h"

#define MOST_GROUP ((size_t)1 << 16)

size_t rnl_team_groups_along(const rnl_range *range, uint32_t dimension)
{
    return dimension < range->dimensions ? range->global[dimension] / range->local[dimension] : 1;
}

size_t rnl_team_groups(const rnl_range *range)
{
    return rnl_team_groups_along(range, 0) * rnl_team_groups_along(range, 1) * rnl_team_groups_along(range, 2);
}

size_t rnl_team_groups_in(const rnl_range *range, const rnl_team_cut *cut, const rnl_team_piece *piece)
{
    return rnl_team_groups(range) / (cut->rows * cut->columns) * piece->rows * piece->columns;
}

/* How much longer the longest stretch takes than with equal ones. */
static double unevenness(size_t count, uint32_t threads)
{
    return (double)((count + threads - 1) / threads * threads) / (double)count;
}

bool rnl_team_can_cut(const rnl_range *range)
{
    if (range->dimensions == 3 && range->local[2] > 1)
        return false;
    for (uint32_t d = 0; d < range->dimensions; d++)
        if (range->local[d] > MOST_GROUP || (range->local[d] & (range->local[d] - 1)) != 0 ||
            range->global[d] > INT32_MAX)
            return false;
    return true;
}

/* Whole rows where that is fair enough: it takes one launch a thread, which mostly reads what it wrote before. For what
 * may be cut see team.clh. */
rnl_team_cut rnl_team_choose_cut(const rnl_range *range, uint32_t threads, bool one_piece)
{
    const uint32_t outer = rnl_team_groups_along(range, 2) > 1 ? 2 : 1;
    const size_t rows = rnl_team_groups_along(range, outer), columns = rnl_team_groups_along(range, 0);
    const double by_rows = unevenness(rows, threads), by_columns = unevenness(columns, threads);
    if (by_rows <= RNL_TEAM_FAIR || (by_rows <= by_columns && one_piece))
        return (rnl_team_cut){outer, 0, rows, 1};
    if (one_piece || by_columns <= RNL_TEAM_FAIR)
        return (rnl_team_cut){0, outer, columns, 1};
    return (rnl_team_cut){outer, 0, rows, columns};
}

static size_t part_start(size_t count, uint32_t threads, uint32_t thread)
{
    return (count * thread + threads - 1) / threads;
}

uint32_t rnl_team_find_pieces(const rnl_team_cut *cut, uint32_t threads, uint32_t thread,
                              rnl_team_piece out_pieces[RNL_TEAM_MOST_PIECES])
{
    const size_t width = cut->columns, count = cut->rows * width, to = part_start(count, threads, thread + 1);
    size_t from = part_start(count, threads, thread);
    uint32_t found = 0;
    while (from < to) {
        const size_t row = from / width, column = from % width, left = to - from;
        rnl_team_piece *it = &out_pieces[found++];
        if (column == 0 && left >= width)
            *it = (rnl_team_piece){row, left / width, 0, width};
        else
            *it = (rnl_team_piece){row, 1, column, left < width - column ? left : width - column};
        from += it->rows * it->columns;
    }
    return found;
}
