/* SPDX-License-Identifier: Apache-2.0 */
/* The insides of <runnel/gemm.h>: a checked description, and its plans. */
#ifndef RUNNEL_OPS_GEMM_API_H
#define RUNNEL_OPS_GEMM_API_H

#include "device/buffer.h"
#include "ops/chain.h"
#include "ops/execute.h"
#include <runnel/gemm.h>

/* One operand of all products; rows and columns are those of op(x). */
typedef struct rnl_gemm_matrix {
    const char *name; /* "a" */
    rnl_dtype dtype;
    int64_t rows, columns, row_stride, column_stride;
    int64_t batch_stride; /* 0: shared */
    int64_t span, whole;  /* elements from the first to behind the last: of one matrix, and of a batch's */
} rnl_gemm_matrix;

typedef struct rnl_gemm_form {
    rnl_gemm_desc desc; /* with defaults filled in */
    rnl_gemm_matrix a, b, c, residual;
    uint32_t variant; /* of desc.implementation: see rnl_gemm_params */
    bool integers;
    bool empty;   /* nothing is written */
    bool swapped; /* c's transpose is computed, from b's and a's */
} rnl_gemm_form;

/* What the description says, or RNL_INVALID_ARGUMENT or RNL_UNIMPLEMENTED. */
RNL_NODISCARD rnl_status rnl_gemm_form_of(const rnl_gemm_desc *desc, rnl_gemm_form *out_form);

typedef enum rnl_gemm_store {
    RNL_GEMM_PLAIN,  /* as described */
    RNL_GEMM_DENSE,  /* packed: row-major, one matrix behind the other */
    RNL_GEMM_FORMED, /* packed: as rnl_op_gemm_pack or rnl_op_qgemm_pack write it, … */
    RNL_GEMM_SUMMED  /* … and behind that as rnl_op_gemm_pack_sums does */
} rnl_gemm_store;

struct rnl_packed {
    atomic_uint references;
    rnl_buffer *buffer;
    rnl_gemm_side side; /* all of it as computed: see rnl_gemm_form.swapped */
    rnl_gemm_store store;
    rnl_dtype dtype;
    int64_t rows, columns, matrices;
    bool integers;
};

/* Of one plan. Operands are named as the user does. */
typedef struct rnl_gemm_mode {
    float alpha, beta;
    rnl_gemm_store a, b;
    bool single; /* one product of the batch */
    bool wide;   /* 64-bit indices */
} rnl_gemm_mode;

enum {
    RNL_GEMM_SLOT_A,
    RNL_GEMM_SLOT_B,
    RNL_GEMM_SLOT_C,
    RNL_GEMM_SLOT_BIAS,
    RNL_GEMM_SLOT_RESIDUAL,
    RNL_GEMM_SLOT_SCALES,
    RNL_GEMM_SLOT_CONSTANTS,
    RNL_GEMM_SLOT_SCRATCH,
    RNL_GEMM_SLOTS
};

/* Bytes of RNL_GEMM_SLOT_CONSTANTS: three zero points and a scale, each where any type of it is aligned. */
#define RNL_GEMM_CONSTANT_BYTES 16
void rnl_gemm_constants(const rnl_gemm_desc *desc, unsigned char out_bytes[4 * RNL_GEMM_CONSTANT_BYTES]);

/* Where the tuning table has what is the fastest for the product in this mode. */
RNL_NODISCARD rnl_status rnl_gemm_form_place(const rnl_gemm_form *form, const rnl_gemm_mode *mode, rnl_device *device,
                                             rnl_hash *out_place);
/* Appends the steps of a product in this mode; *out_scratch_bytes is the size of its RNL_GEMM_SLOT_SCRATCH. */
RNL_NODISCARD rnl_status rnl_gemm_form_append(const rnl_gemm_form *form, const rnl_gemm_mode *mode, rnl_step_list *list,
                                              size_t *out_scratch_bytes);
/* Appends what packs an operand into RNL_GEMM_SLOT_SCRATCH of so many bytes, unless `list` is NULL. */
RNL_NODISCARD rnl_status rnl_gemm_form_pack(const rnl_gemm_form *form, rnl_gemm_side side, bool wide,
                                            rnl_device *device, rnl_step_list *list, rnl_gemm_store *out_store,
                                            size_t *out_bytes);
/* The side in the product that is computed. */
static inline rnl_gemm_side rnl_gemm_side_of(const rnl_gemm_form *form, rnl_gemm_side side)
{
    return form->swapped ? (side == RNL_GEMM_SIDE_A ? RNL_GEMM_SIDE_B : RNL_GEMM_SIDE_A) : side;
}

/* The views of one product, as it is computed: a times b. */
typedef struct rnl_gemm_product {
    rnl_view a, b, c, bias, scales, scratch, packed, sums;
    rnl_view a_zero, b_zero, c_zero, scale;
    rnl_chain chain;
    bool packed_b, packed_sums;
} rnl_gemm_product;

/* So many elements, one behind the other. */
rnl_view rnl_gemm_line(uint32_t slot, rnl_dtype dtype, int64_t count);
/* Bytes of 4-byte elements. */
RNL_NODISCARD rnl_status rnl_gemm_scratch_bytes(int64_t elements, size_t *out_bytes);
/* The parts of the above for products of integers. */
RNL_NODISCARD rnl_status rnl_gemm_append_integers(const rnl_gemm_form *form, rnl_step_list *list, rnl_gemm_product *p,
                                                  size_t *out_scratch_bytes);
RNL_NODISCARD rnl_status rnl_gemm_packed_integers(rnl_device *device, const rnl_view *view, size_t *out_bytes);
RNL_NODISCARD rnl_status rnl_gemm_pack_integers(rnl_step_list *list, const rnl_view *from, const rnl_view *to);

typedef struct rnl_gemm_plan {
    rnl_gemm_mode mode;
    rnl_step_list steps; /* device NULL: no plan */
    size_t scratch_bytes;
    uint64_t used; /* the larger, the later */
} rnl_gemm_plan;
#define RNL_GEMM_PLANS 6

/* Scratch memory for products that run one after the other. */
typedef struct rnl_gemm_workspace {
    rnl_buffer *scratch;
} rnl_gemm_workspace;

struct rnl_gemm {
    atomic_uint references;
    rnl_device *device;
    rnl_gemm_form form;
    char *implementation; /* what form.desc.implementation points to */
    rnl_gemm_info info;
    rnl_kernel_set *kernels;
    rnl_gemm_plan plans[RNL_GEMM_PLANS];
    uint64_t uses;
    const rnl_gemm_plan *noted; /* in `info` */
    rnl_gemm_workspace own, *workspace;
    rnl_buffer *constants; /* integers only */
    unsigned char constant_bytes[4 * RNL_GEMM_CONSTANT_BYTES];
    bool constants_written;
};

/* As rnl_gemm_create, with a variant of desc.implementation, and with scratch memory that others use too and none of it
 * yet, or with its own (NULL). */
RNL_NODISCARD rnl_status rnl_gemm_create_in(rnl_device *device, const rnl_gemm_desc *desc, uint32_t variant,
                                            rnl_gemm_workspace *workspace, rnl_gemm **out_gemm);
/* The plan of a mode, made if need be. Its programs are built. */
RNL_NODISCARD rnl_status rnl_gemm_find_plan(rnl_gemm *gemm, const rnl_gemm_mode *mode, rnl_gemm_plan **out_plan);
/* Has `info` tell of this plan. */
void rnl_gemm_note(rnl_gemm *gemm, const rnl_gemm_plan *plan);
/* Scratch memory of at least that size. Waits for `stream` (NULL: nothing runs) where there was less. */
RNL_NODISCARD rnl_status rnl_gemm_reserve(rnl_gemm_workspace *workspace, rnl_device *device, rnl_stream *stream,
                                          size_t size_bytes);

/* A checked copy of what the caller gave. */
RNL_NODISCARD rnl_status rnl_gemm_operands_of(const rnl_stream *stream, const rnl_gemm *gemm,
                                              const rnl_gemm_operands *given, rnl_gemm_operands *out_operands);
/* The mode in which these operands are multiplied, once all that is read and written was found to be there. */
RNL_NODISCARD rnl_status rnl_gemm_mode_of(const rnl_gemm *gemm, const rnl_gemm_operands *operands,
                                          rnl_gemm_mode *out_mode);
/* `elements` from `offset` on lie within a buffer of this device; *wide is set where int does not count so far. */
RNL_NODISCARD rnl_status rnl_gemm_check_range(const rnl_device *device, const char *name, const rnl_buffer *buffer,
                                              rnl_dtype dtype, int64_t offset, int64_t elements, bool *wide);

#endif
