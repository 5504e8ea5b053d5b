/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/fip.h"
#include "base/memory.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/instruction_rate.h"
#include <stdlib.h>
#include <string.h>

/* Cycles of a four of terms, as measured on a Zen 1: a run times a block of columns, a block that is widened, and a run
 * that is. */
#define RUN_CYCLES 154
#define BLOCK_CYCLES 25
#define ROWS_CYCLES 18
#define MORE_ITEMS 4 /* of a thread, than there have to be */

bool rnl_fip_pays(rnl_device *device, int64_t rows)
{
    const char *wish = getenv("RUNNEL_FIP");
    if (rows < RNL_FIP_ROWS)
        return false;
    if (wish && (strcmp(wish, "on") == 0 || strcmp(wish, "off") == 0))
        return strcmp(wish, "on") == 0;
    return rnl_device_multiplies_bytes(device) == RNL_INSTRUCTION_MADD8 && rnl_device_gains_by_fip(device);
}

/* Of `blocks` times `runs`, of which `pass_runs` share what is widened. */
static double cost_of(int64_t blocks, int64_t runs, int64_t pass_runs)
{
    const double passes = (double)rnl_divide_up(runs, pass_runs);
    return (double)blocks * ((double)runs * RUN_CYCLES + passes * BLOCK_CYCLES) + (double)runs * ROWS_CYCLES;
}

/* Of the thread that ends last. Whole blocks for each, or some of all items; a smaller last item is as long as the
 * others. */
static double longest(const rnl_fip_shares *s, int64_t runs, int64_t pass_runs, int64_t threads)
{
    const int64_t item_runs = s->runs < pass_runs ? s->runs : pass_runs;
    if (s->block_items % threads == 0)
        return (double)(s->block_items / threads) * cost_of(s->blocks, runs, item_runs);
    return (double)rnl_divide_up(s->run_items * s->block_items, threads) * cost_of(s->blocks, s->runs, item_runs);
}

rnl_fip_shares rnl_fip_split(const rnl_device *device, int64_t runs, int64_t blocks, int64_t pass_runs,
                             int64_t most_runs)
{
    const int64_t threads = rnl_device_units(device), more = MORE_ITEMS * threads;
    const int64_t least_i = rnl_divide_up(blocks, RNL_FIP_BLOCKS), least_j = rnl_divide_up(runs, most_runs);
    rnl_fip_shares best = {.runs = 0};
    double least = 0;
    for (int64_t i = least_i; i <= blocks && i <= least_i + more; ++i)
        for (int64_t j = least_j; j <= runs && j <= least_j + more; ++j) {
            rnl_fip_shares s = {.runs = rnl_divide_up(runs, j), .blocks = rnl_divide_up(blocks, i)};
            s.run_items = rnl_divide_up(runs, s.runs);
            s.block_items = rnl_divide_up(blocks, s.blocks);
            const double cost = longest(&s, runs, pass_runs, threads);
            if (best.runs == 0 || cost < 0.99 * least) {
                best = s;
                least = cost;
            }
        }
    return best;
}
