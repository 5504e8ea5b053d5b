/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of bytes by Winograd's inner product (clkernels/fip.clh): where vpmaddwd is the best that there is, whether
 * it pays, and how rows and columns are shared out. Internal to qgemm and qconv.
 */
#ifndef RUNNEL_OPS_FIP_H
#define RUNNEL_OPS_FIP_H

#include "ops/shares.h"

#define RNL_FIP_ROWS 12  /* of a run: the least that shares are counted in; tiles have three */
#define RNL_FIP_BLOCKS 8 /* of 32 columns, that a work-item takes at most; as in qgemm_panel.cl and qconv_panel.cl */

/*
 * By what the device was measured to do (rnl_device_gains_by_fip), or what RUNNEL_FIP says, on or off, whatever it
 * runs; never for fewer rows than a run has.
 */
bool rnl_fip_pays(rnl_device *device, int64_t rows);

/*
 * Shares of runs that all threads end with together. Up to `pass_runs` runs share weights that were widened; an item
 * takes `most_runs` at most (0: any). All else greater than 0.
 */
rnl_shares rnl_fip_split(const rnl_device *device, int64_t runs, int64_t blocks, int64_t pass_runs, int64_t most_runs);

#endif
