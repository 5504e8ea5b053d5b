/* SPDX-License-Identifier: Apache-2.0 */
/* gemm:strassen: products with fewer multiplications, on CPUs, with errors bounded by norm. Internal to the family. */
#ifndef RUNNEL_OPS_GEMM_STRASSEN_H
#define RUNNEL_OPS_GEMM_STRASSEN_H

#include "ops/gemm_problem.h"

/*
 * The form of the second factor: sums of its blocks (gemm_strassen_pack.cl), by one or two levels of halving. It
 * depends on the device and the factor's shape.
 */
typedef struct rnl_strassen_form {
    int64_t vector, rows, count;        /* of a tile; count: vectors */
    int64_t levels, parts, products;    /* 2 or 4, 7 or 49 */
    int64_t part_terms, chunks, blocks; /* terms of a part; of all terms; of all columns */
    int64_t floats;
} rnl_strassen_form;

/* A block's floats: an odd number of lines of memory, so that blocks do not meet in the sets of a cache. */
static inline int64_t rnl_strassen_block(int64_t floats)
{
    return ((floats + 15) / 16 | 1) * 16;
}

/* False for what has none: several matrices, other types than float32, no elements, too many of them. */
bool rnl_strassen_form_of(const rnl_device *device, const rnl_view *b, rnl_strassen_form *out_form);
rnl_status rnl_strassen_append_pack(rnl_step_list *list, const rnl_strassen_form *form, const rnl_view *b,
                                    const rnl_view *packed);

/* The processor multiplies faster than its second cache lets slabs pass: plain products are faster there. */
bool rnl_gemm_strassen_loses_slabs(const rnl_device *device);

/* The floats of params.scratch that it needs; 0 when it does not apply. */
int64_t rnl_gemm_strassen_scratch(const rnl_device *device, const rnl_gemm_problem *problem);
bool rnl_gemm_strassen_applies(const rnl_device *device, const void *problem);
bool rnl_gemm_strassen_pays(const rnl_device *device, const void *problem);
rnl_status rnl_gemm_strassen_append(rnl_step_list *list, const char *name, const void *problem);

#endif
