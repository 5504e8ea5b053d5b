/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution of 8-bit integers into 8-bit integers, and what its implementations share. Internal to the family. */
#ifndef RUNNEL_OPS_QCONV_PROBLEM_H
#define RUNNEL_OPS_QCONV_PROBLEM_H

#include "ops/qconv_panel.h"
#include "ops/step_build.h"

/* The views behind weight, in the kernels' order. */
enum {
    RNL_QCONV_BIAS,
    RNL_QCONV_ZA,
    RNL_QCONV_A_SCALE,
    RNL_QCONV_B_SCALE,
    RNL_QCONV_DST_SCALE,
    RNL_QCONV_ZD,
    RNL_QCONV_ADDEND,
    RNL_QCONV_ADDEND_SCALE,
    RNL_QCONV_ADDEND_ZERO,
    RNL_QCONV_SUM_SCALE,
    RNL_QCONV_SUM_ZERO,
    RNL_QCONV_VIEWS
};

typedef struct rnl_qconv_problem {
    const rnl_qconv_params *params;
    const rnl_view *src, *weight, *packed, *dst;
    const rnl_view *views[RNL_QCONV_VIEWS]; /* NULL where there is none */
    int64_t depth;                          /* products of a result */
    uint64_t flops;
} rnl_qconv_problem;

/* False: it is none for these implementations, whatever the device. `packed` is left NULL. */
bool rnl_qconv_problem_of(const rnl_qconv_params *params, const rnl_qconv_end *end, const rnl_view *src,
                          const rnl_view *weight, const rnl_view *dst, rnl_qconv_problem *out_problem);
/* Integers of a panel of packed weights. */
int64_t rnl_qconv_panel_ints(const rnl_qconv_problem *problem);
/*
 * All arguments from dst on. flags: those of qconv_end.clh, of which this sets the first, the strides of bias and
 * b_scale, and a panel's integers.
 */
void rnl_qconv_add_arguments(rnl_step_builder *step, const rnl_qconv_problem *problem, int32_t flags[8]);
/* What it computes and reads, and what it writes. */
void rnl_qconv_add_cost(rnl_step_builder *step, const rnl_qconv_problem *problem);

/* qconv:amx: up to two spatial dimensions, by x86's matrix tiles, with the bytes of params.scratch that it wants. */
bool rnl_qconv_amx_applies(const rnl_device *device, const rnl_qconv_problem *problem);
bool rnl_qconv_amx_pays(const rnl_device *device, const rnl_qconv_problem *problem);
int64_t rnl_qconv_amx_scratch(const rnl_device *device, const rnl_qconv_problem *problem);
rnl_status rnl_qconv_amx_append(rnl_step_list *list, const rnl_qconv_problem *problem);

/* qconv:winograd, where params.winograd says so. 0 bytes: it does not apply. */
int64_t rnl_qconv_winograd_scratch(const rnl_device *device, const rnl_qconv_problem *problem);
rnl_status rnl_qconv_winograd_append(rnl_step_list *list, const rnl_qconv_problem *problem);

#endif
