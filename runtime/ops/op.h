/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator families: from tensor descriptions to launches, without memory.
 *
 * Each family has one function rnl_op_<family>(list, parameters, tensors…): it checks its arguments, picks the first
 * implementation that applies, and appends one or more steps to the list. A step names its memory by slot number;
 * whoever executes it binds slots to buffers. So planning needs no memory, and a plan can be run by many sessions.
 *
 * A tensor is a view: shape and strides in elements, in the order of the operator's definition (N, C, H, W for
 * images). Layout is in the strides alone: a channels-last image has stride[1] == 1. Strides may be 0 (broadcast) or
 * negative for sources; a destination's elements are distinct.
 */
#ifndef RUNNEL_OPS_OP_H
#define RUNNEL_OPS_OP_H

#include "kernel/program.h"

#define RNL_NO_SLOT UINT32_MAX

typedef struct rnl_view {
    uint32_t slot; /* RNL_NO_SLOT: an optional tensor that is not there */
    rnl_dtype dtype;
    size_t rank;
    int64_t offset; /* elements from the slot's start to element (0, 0, …) */
    int64_t shape[RNL_MAX_RANK];
    int64_t stride[RNL_MAX_RANK];
} rnl_view;

/* A dense view: row-major, or, for rank 3 and more, channels last (N, spatial…, C in memory). */
RNL_API rnl_view rnl_view_row_major(uint32_t slot, rnl_dtype dtype, size_t rank, const int64_t *shape);
RNL_API rnl_view rnl_view_channels_last(uint32_t slot, rnl_dtype dtype, size_t rank, const int64_t *shape);
RNL_API bool rnl_view_is_row_major(const rnl_view *view);
RNL_API int64_t rnl_view_elements(const rnl_view *view);
static inline bool rnl_view_exists(const rnl_view *view)
{
    return view && view->slot != RNL_NO_SLOT;
}

typedef enum rnl_step_arg_kind {
    RNL_STEP_SLOT,   /* a buffer */
    RNL_STEP_OFFSET, /* indices, of which the first are views' offsets in elements: the slots' places in their buffers
                        are added when the step is enqueued */
    RNL_STEP_VALUE
} rnl_step_arg_kind;

/* Views whose offsets share an argument. */
#define RNL_STEP_OFFSETS 4
typedef struct rnl_step_arg {
    rnl_step_arg_kind kind;
    uint32_t slot;                                   /* RNL_STEP_SLOT */
    uint32_t size_bytes;                             /* of the value or indices, at most RNL_STEP_VALUE_BYTES */
    uint32_t value_at;                               /* RNL_STEP_VALUE, RNL_STEP_OFFSET: where in the list's `values` */
    uint32_t index_bytes;                            /* RNL_STEP_OFFSET: of each index */
    uint32_t offset_count;                           /* likewise */
    uint32_t offset_slots[RNL_STEP_OFFSETS];         /* RNL_NO_SLOT: the index stays as it is */
    uint32_t offset_element_bytes[RNL_STEP_OFFSETS]; /* of the view's type */
} rnl_step_arg;
#define RNL_STEP_VALUE_BYTES 128 /* sixteen 64-bit indices */

typedef enum rnl_step_kind { RNL_STEP_KERNEL, RNL_STEP_CLBLAST_GEMM } rnl_step_kind;

/* C = alpha * A * B + beta * C, row-major, batched with constant strides (elements). For the library's GEMM only. */
typedef struct rnl_clblast_gemm {
    uint32_t a_slot, b_slot, c_slot;
    bool a_transposed, b_transposed;
    size_t m, n, k, a_ld, b_ld, c_ld, a_offset, b_offset, c_offset;
    size_t batch, a_batch_stride, b_batch_stride, c_batch_stride;
    float alpha, beta;
    rnl_dtype dtype;
} rnl_clblast_gemm;

typedef struct rnl_step {
    rnl_step_kind kind;
    const char *implementation; /* "conv:portable"; static string */
    rnl_program *program;       /* RNL_STEP_KERNEL */
    const char *kernel;         /* entry point's name; static string */
    rnl_range range;
    bool may_be_cut;               /* into parts, one for each thread: see kernel/team.h … */
    bool waits;                    /* … where its kernel can wait for the step before it: has two arguments more */
    uint32_t first_arg, arg_count; /* in the list's `args` */
    uint32_t gemm_at;              /* RNL_STEP_CLBLAST_GEMM: in the list's `gemms` */
    uint32_t write_slot;           /* what it writes; every other slot argument is only read … */
    uint32_t write_slot_2;         /* … but this one, or RNL_NO_SLOT */
    uint32_t write_slot_3;         /* … and this one */
    rnl_hash problem;              /* where `variants` is not 0: what there were that many ways to do, see tuning.h */
    uint32_t variants;
    uint64_t flops, bytes; /* arithmetic and memory traffic that the operation needs, for the roofline */
} rnl_step;

typedef struct rnl_step_list {
    rnl_device *device; /* borrowed */
    rnl_step *steps;
    size_t step_count, step_capacity;
    rnl_step_arg *args;
    size_t arg_count, arg_capacity;
    unsigned char *values;
    size_t value_bytes, value_capacity;
    rnl_clblast_gemm *gemms;
    size_t gemm_count, gemm_capacity;
    bool index64; /* of every step: slots may lie anywhere in their buffers */
} rnl_step_list;

RNL_API void rnl_step_list_init(rnl_step_list *list, rnl_device *device);
RNL_API void rnl_step_list_free(rnl_step_list *list);

#endif
