/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/fip.h"
#include "base/memory.h"
#include "ops/instruction.h"
#include "ops/instruction_rate.h"
#include <stdlib.h>
#include <string.h>

/* Cycles of a four of terms, as measured on a Zen 1: a run times a block of columns, a block that is widened, and a run
 * that is. */
#define RUN_CYCLES 154
#define BLOCK_CYCLES 25
#define ROWS_CYCLES 18

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

/* Whole blocks for each thread, or some of all items: a smaller last item is as long as the others. */
static double shares_cost(const rnl_shares *shares, int64_t threads, const void *data)
{
    const int64_t pass_runs = *(const int64_t *)data;
    const int64_t shared = shares->each_rows < pass_runs ? shares->each_rows : pass_runs;
    if (shares->block_items % threads == 0)
        return (double)(shares->block_items / threads) * cost_of(shares->each_blocks, shares->rows, shared);
    return (double)rnl_shares_rounds(shares, threads) * cost_of(shares->each_blocks, shares->each_rows, shared);
}

rnl_shares rnl_fip_split(const rnl_device *device, int64_t runs, int64_t blocks, int64_t pass_runs, int64_t most_runs)
{
    return rnl_choose_shares(device, runs, blocks, most_runs, RNL_FIP_BLOCKS, shares_cost, &pass_runs, NULL);
}
