/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/fip.h"
#include "base/memory.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/instruction_rate.h"
#include <stdlib.h>
#include <string.h>

/* Cycles of a four of terms, as measured on a Zen 1: a run times a block of columns, a block that is widened, and a run that
 * is. */
#define RUN_CYCLES 154
#define BLOCK_CYCLES 14
#define ROWS_CYCLES 18
#define MORE_ITEMS 4 /* of a thread, than there have to be */

bool rnl_fip_pays(rnl_device *device, int64_t rows)
{
    const char *wish = getenv("RUNNEL_FIP");
    if (rows < RNL_FIP_ROWS || rnl_device_multiplies_bytes(device) != RNL_INSTRUCTION_MADD8)
        return false;
    if (wish && (strcmp(wish, "on") == 0 || strcmp(wish, "off") == 0))
        return strcmp(wish, "on") == 0;
    return rnl_device_gains_by_fip(device);
}

static double cost_of(const rnl_fip_shares *s, int64_t pass_runs, int64_t threads)
{
    const double runs = (double)s->runs, passes = (double)rnl_divide_up(s->runs, pass_runs);
    const double item = (double)s->blocks * (runs * RUN_CYCLES + passes * BLOCK_CYCLES) + runs * ROWS_CYCLES;
    return item * (double)rnl_divide_up(s->run_items * s->block_items, threads);
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
            const double cost = cost_of(&s, pass_runs, threads);
            if (best.runs == 0 || cost < 0.99 * least) {
                best = s;
                least = cost;
            }
        }
    return best;
}
