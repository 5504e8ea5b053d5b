/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deterministic planning: an item's result has the same bits from run to run, alone and in any batch. The rule, in one
 * place: what decides in which order, and by which kernel, a result's terms are added may not look at the batch. So
 *
 *   - tuning tables are not consulted, since their problems hold the batch;
 *   - no terms are summed in parts that other work-items add up, as many as leave the device busy;
 *   - a convolution is chosen as for one image, a product as for RNL_DETERMINISTIC_ROWS rows, a recurrent layer as for
 *     one row;
 *   - nothing pairs rows of different items (Strassen's algorithm) or treats them by their place (Winograd's inner
 *     product), and CLBlast, whose kernels look at the rows, is out;
 *   - a reduction's way does not depend on how many results there are.
 *
 * What stays open to choice (tiles, shares, slabs, copies of factors) moves the same sums about in the same order; no
 * kernel adds floats by atomics. It holds for the thread that plans, as long as it plans.
 */
#ifndef RUNNEL_OPS_DETERMINISTIC_H
#define RUNNEL_OPS_DETERMINISTIC_H

#include <runnel/rt.h>

#define RNL_DETERMINISTIC_ROWS 64

RNL_API bool rnl_is_deterministic(void);
/* Returns what it was, to be set again. */
RNL_API bool rnl_set_deterministic(bool on);

/* How many rows, images or results a choice may go by: `count`, or `fixed` where it may not look at them. */
static inline int64_t rnl_count_to_choose_by(int64_t count, int64_t fixed)
{
    return rnl_is_deterministic() ? fixed : count;
}

#endif
