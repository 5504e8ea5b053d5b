/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shares.h"
#include "base/memory.h"
#include "ops/implementation.h"

#define ITEMS 4     /* of a thread, in each direction */
#define BETTER 0.98 /* of the least cost so far, to be worth more work-items */

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
