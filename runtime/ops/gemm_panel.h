/* SPDX-License-Identifier: Apache-2.0 */
/* How gemm:panel does a product. Internal to the family. */
#ifndef RUNNEL_OPS_GEMM_PANEL_H
#define RUNNEL_OPS_GEMM_PANEL_H

#include "ops/gemm_pack.h"

typedef struct rnl_gemm_panel_plan {
    rnl_gemm_panels panels;
    bool packs;                  /* b is read in panels; else as it is */
    bool inside;                 /* … that each work-item copies for itself; else a step in front, or beforehand */
    int64_t rows, vector, count; /* of a tile; count: panels */
    const char *form;            /* gemm_panel.cl's A */
    int64_t share_slabs, share_panels; /* that a work-item takes */
    int64_t depth;                     /* terms that it takes at a time */
    int64_t row_items, column_items;
    int64_t own_floats; /* a work-item's memory */
    int64_t scratch;    /* floats for all of them and, in front, for b's panels */
    rnl_hash problem;   /* for the tuning table */
    uint32_t variants;
} rnl_gemm_panel_plan;

/* The most that a product's variants are. */
uint32_t rnl_gemm_panel_variants(const rnl_device *device);
/*
 * The tile, and whether b is copied, are as measured, else as estimated. With fewer floats of scratch than that takes
 * nothing is copied; false where that cannot be, or b has no packed form.
 */
bool rnl_gemm_panel_plan_make(const rnl_device *device, const rnl_gemm_problem *problem, int64_t floats,
                              rnl_gemm_panel_plan *out_plan);

#endif
