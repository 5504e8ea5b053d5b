/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products on a device: c = end(alpha * op(a) * op(b) + beta * c).
 *
 *     rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
 *     desc.m = 128, desc.n = 384, desc.k = 1536;
 *     rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
 *     operands.a = a, operands.b = b, operands.c = c;
 *     status = rnl_gemm_run(stream, &desc, &operands);
 *
 * rnl_gemm_run prepares a description at its first use on a stream and finds it again. Whoever wants to hold what is
 * prepared, or to pack an operand beforehand, makes an rnl_gemm.
 *
 * Sizes, leading dimensions, strides and offsets are in elements. Everything is enqueued: nothing waits. Nothing that
 * is passed in is kept longer than the call, but the buffers' memory is in use until the stream has been synchronised.
 * The conventions of rt.h hold.
 */
#ifndef RUNNEL_GEMM_H
#define RUNNEL_GEMM_H

#include <runnel/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_gemm rnl_gemm;
typedef struct rnl_packed rnl_packed;

/* ---- What is multiplied --------------------------------------------------------------------------------------- */

typedef enum rnl_gemm_order { RNL_GEMM_ROW_MAJOR, RNL_GEMM_COLUMN_MAJOR } rnl_gemm_order;

typedef enum rnl_gemm_bias {
    RNL_GEMM_BIAS_NONE,
    RNL_GEMM_BIAS_COLUMNS, /* n elements: one for each column of c */
    RNL_GEMM_BIAS_ROWS     /* m elements: one for each row of c */
} rnl_gemm_bias;

typedef enum rnl_gemm_activation {
    RNL_GEMM_LINEAR,
    RNL_GEMM_RELU,
    RNL_GEMM_GELU,      /* x/2 * (1 + erf(x / sqrt 2)) */
    RNL_GEMM_GELU_TANH, /* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
    RNL_GEMM_SILU       /* x / (1 + exp -x) */
} rnl_gemm_activation;

/*
 * How far float32 results may be from the exact ones. u is 2^-24, ab the sum of products.
 *
 * ELEMENTWISE: each |error of ab| <= about k u sum |a| |b| over its own terms, as any order of adding up gives.
 * NORMWISE: each <= 21 (k + 80)^2 u max|a| max|b|, over all of the matrices: an element that is much smaller than the
 * largest ones may have no correct digit, and what is not finite makes NaN of other rows and columns too. Large
 * products on CPUs are faster then, by Strassen's algorithm in Winograd's variant, of up to two levels (the bound: N.
 * J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, 2002, theorem 23.3). Other products are as
 * elementwise. Who names the implementation "strassen" has asked for it.
 */
typedef enum rnl_gemm_accuracy { RNL_GEMM_ELEMENTWISE, RNL_GEMM_NORMWISE } rnl_gemm_accuracy;

/* As a batch stride: all products of the batch share one matrix. */
#define RNL_GEMM_SHARED (-1)

/*
 * op(a) is m x k, op(b) k x n, c m x n; op(x) is x, or x transposed. Products, by types of a, b and c (0: F32):
 *
 *     F32 F32 F32, F16 F16 F16, BF16 BF16 BF16    sums in float32, rounded once, when stored
 *     I8|U8 I8|U8 I32      sum = (a - a_zero) * (b - b_zero) + bias, exactly, wrapping at 32 bits
 *     I8|U8 I8|U8 I8|U8    saturate(round(sum * scale) + c_zero), halves to even
 *     I8|U8 I8|U8 F32      x = sum of products * scale, then as below from x += bias on
 *
 * Floats end with x = alpha * ab + beta * c, x += bias, x += residual, activation(x). What stands in c does not matter
 * where beta is 0, nor what stands in a and b where alpha is 0: they may be absent. Integers take alpha 1 and beta 0;
 * with c of integers the bias is I32, and there is neither residual nor activation.
 */
typedef struct rnl_gemm_desc {
    size_t struct_size;
    rnl_gemm_order order; /* of all matrices */
    bool transpose_a, transpose_b;
    int64_t m, n, k;
    int64_t lda, ldb, ldc, ld_residual; /* from row to row (column-major: column to column); 0: dense */
    rnl_dtype a_type, b_type, c_type;   /* a bias and a residual have c's, but see above */
    float alpha, beta;                  /* 1 and 0 in the INIT macro */
    rnl_gemm_bias bias;
    bool residual; /* a matrix like c is added */
    rnl_gemm_activation activation;

    int64_t batch; /* products; 0: one */
    /* From one product's matrix to the next one's; 0: right behind it, RNL_GEMM_SHARED: the same. */
    int64_t stride_a, stride_b, stride_c, stride_residual;

    int32_t a_zero, b_zero, c_zero; /* zero points: within their types */
    float scale;                    /* of integers (a's * b's / c's); 0: operands.scales */

    const char *implementation; /* "panel", "clblast", …: that one and no other; NULL: the best */
    rnl_gemm_accuracy accuracy;
} rnl_gemm_desc;
#define RNL_GEMM_DESC_INIT                                                                                             \
    {                                                                                                                  \
        sizeof(rnl_gemm_desc), RNL_GEMM_ROW_MAJOR, false, false, 0, 0, 0, 0, 0, 0, 0, RNL_DTYPE_NONE, RNL_DTYPE_NONE,  \
            RNL_DTYPE_NONE, 1, 0, RNL_GEMM_BIAS_NONE, false, RNL_GEMM_LINEAR, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL,         \
            RNL_GEMM_ELEMENTWISE                                                                                       \
    }

typedef struct rnl_gemm_operands {
    size_t struct_size;
    rnl_buffer *a, *b, *c;
    int64_t a_offset, b_offset, c_offset;  /* of the first matrix, from the buffer's start */
    const rnl_packed *packed_a, *packed_b; /* instead of a or b */
    rnl_buffer *bias, *residual;           /* a residual may be c itself */
    int64_t bias_offset, residual_offset;
    rnl_buffer *scales; /* n F32, one for each column of c, where desc.scale is 0 */
    int64_t scales_offset;
    /* Where the matrices of a batch lie anywhere: desc.batch offsets each, added to a_offset and so on, in place of
     * the stride. Given one of them, each product is launched by itself. */
    const int64_t *a_offsets, *b_offsets, *c_offsets, *residual_offsets;
    const float *alpha, *beta; /* in place of the description's; a new pair takes some microseconds to prepare */
} rnl_gemm_operands;
#define RNL_GEMM_OPERANDS_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(rnl_gemm_operands), NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, 0, 0, NULL, 0, NULL, NULL, NULL, \
            NULL, NULL, NULL                                                                                           \
    }

/* ---- One call ------------------------------------------------------------------------------------------------- */

/*
 * Enqueues a product. The stream keeps the last 32 descriptions prepared, with their scratch memory, until it is
 * released (which then waits for its products). The stream's thread. RNL_INVALID_ARGUMENT names what is wrong, before
 * anything is enqueued: sizes that overflow, a leading dimension or stride that is too small, a buffer that is missing,
 * too small or another device's. RNL_UNIMPLEMENTED: types that are not in the list above, or an implementation that
 * does not take this product on this device.
 */
RNL_API RNL_NODISCARD rnl_status rnl_gemm_run(rnl_stream *stream, const rnl_gemm_desc *desc,
                                              const rnl_gemm_operands *operands);

/* ---- Prepared ------------------------------------------------------------------------------------------------- */

/*
 * Checks a description, chooses how to compute it, and compiles what it takes (CLBlast compiles at the first product).
 * Any thread; the object then belongs to one stream's thread at a time. It has scratch memory of the pool's, so its
 * products on a second stream must wait for those on the first, and it is released, like a buffer, after its streams
 * have been synchronised.
 */
RNL_API RNL_NODISCARD rnl_status rnl_gemm_create(rnl_device *device, const rnl_gemm_desc *desc, rnl_gemm **out_gemm);
RNL_API rnl_gemm *rnl_gemm_retain(rnl_gemm *gemm);
RNL_API void rnl_gemm_release(rnl_gemm *gemm);
/*
 * Enqueues the product of these operands; errors as rnl_gemm_run's. A caller that is hundreds of products ahead of a
 * CPU waits for some of them.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_gemm(rnl_stream *stream, rnl_gemm *gemm, const rnl_gemm_operands *operands);

/* Of the last product that was enqueued; before the first, of one whose operands are not packed. */
typedef struct rnl_gemm_info {
    const char *implementation; /* "gemm:panel"; static. "" for an empty product */
    uint32_t launches;
    uint64_t flops, bytes; /* that the product needs at least */
    size_t scratch_bytes;
} rnl_gemm_info;
RNL_API void rnl_gemm_get_info(const rnl_gemm *gemm, rnl_gemm_info *out_info);

/* ---- Packed operands ------------------------------------------------------------------------------------------ */

typedef enum rnl_gemm_side { RNL_GEMM_SIDE_A, RNL_GEMM_SIDE_B } rnl_gemm_side;

/*
 * Enqueues a copy of an operand (a or b of `operands`, its offset and stride; nothing else is read) in the form that
 * the device reads fastest, in memory of its own: for weights, which are multiplied often. Products that ask for the
 * same matrices of the same types and orientation on the same device take it, whatever the other operand is. Which side
 * gains, and what, depends on the device and the order; the other side, too, may be packed. Release it after the
 * streams that use it have been synchronised. Any thread may use it once the stream that packs it has got there.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_gemm_pack(rnl_stream *stream, rnl_gemm *gemm, rnl_gemm_side side,
                                                      const rnl_gemm_operands *operands, rnl_packed **out_packed);
RNL_API rnl_packed *rnl_packed_retain(rnl_packed *packed);
RNL_API void rnl_packed_release(rnl_packed *packed);
RNL_API size_t rnl_packed_size(const rnl_packed *packed); /* bytes */

/* ---- Choosing by measurement ---------------------------------------------------------------------------------- */

/* One measurement of rnl_gemm_tune. */
typedef struct rnl_gemm_trial {
    size_t done, total; /* of all measurements; total is an estimate */
    size_t index;       /* of the description */
    const char *implementation;
    uint32_t variant;
    double ns; /* a product; 0: this one could not be measured */
} rnl_gemm_trial;

typedef struct rnl_gemm_tune_options {
    size_t struct_size;
    double seconds; /* for each description, about; 0: 1 */
    /* Called after each trial, on the calling thread; false ends with RNL_CANCELLED and changes nothing. */
    bool (*progress)(void *user, const rnl_gemm_trial *trial);
    void *user;
} rnl_gemm_tune_options;
#define RNL_GEMM_TUNE_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(rnl_gemm_tune_options), 0, NULL, NULL                                                                   \
    }

/*
 * Measures every implementation and tile that a product can use on this device, with operands of its own, and notes the
 * fastest in the device's tuning table, a file in the cache folder: products prepared later, in this process and in
 * others, and models' too, go by it. `best` (may be NULL) has `count` entries for the winners. Where CLBlast is a
 * candidate, its own parameters are tried as well. `options` may be NULL. Blocks. Any thread; nothing else should run
 * on the device.
 */
RNL_API RNL_NODISCARD rnl_status rnl_gemm_tune(rnl_device *device, const rnl_gemm_desc *descs, size_t count,
                                               const rnl_gemm_tune_options *options, rnl_gemm_trial *best);
/* Writes the names that desc.implementation takes, best first, at most `capacity`; returns how many there are. */
RNL_API size_t rnl_gemm_implementations(const char **out_names, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
