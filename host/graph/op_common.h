/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator files share: checks of a node's inputs, and setting its outputs. */
#ifndef RUNNEL_GRAPH_OP_COMMON_H
#define RUNNEL_GRAPH_OP_COMMON_H

#include "base/memory.h"
#include "graph/op_params.h"
#include <inttypes.h>

/* A shape as text, "2x3", without allocating: FAIL(…, "%s", rnl_shape_format(shape, rank).text). */
typedef struct rnl_shape_words {
    char text[192];
} rnl_shape_words;
rnl_shape_words rnl_shape_format(const int64_t *shape, size_t rank);

/* Every infer function starts here: counts of inputs and outputs, presence, input 0's type, ranks and sizes. */
RNL_NODISCARD rnl_status rnl_infer_begin(rnl_op_context *context);
/* Writes outputs[index] (nothing when the node has fewer outputs); refuses ranks and element counts out of bounds. */
RNL_NODISCARD rnl_status rnl_output_set(rnl_op_context *context, size_t index, rnl_dtype dtype, const int64_t *shape,
                                        size_t rank);
/* Output `index` gets input 0's shape. */
RNL_NODISCARD rnl_status rnl_output_like(rnl_op_context *context, size_t index, rnl_dtype dtype);

static inline bool rnl_input_exists(const rnl_op_context *context, size_t index)
{
    return index < context->input_count && context->inputs[index].dtype != RNL_DTYPE_NONE;
}
/* The caller has checked the shape before. */
int64_t rnl_desc_elements(const rnl_tensor_desc *desc);
/* True when the contents are there, or there are none. */
bool rnl_desc_known(const rnl_tensor_desc *desc);

/* Inputs first … last (those that are there) must have the type of input `first`. */
RNL_NODISCARD rnl_status rnl_same_dtype(const rnl_op_context *context, size_t first, size_t last);
/* Input `index` must have one of these types (RNL_TYPE_BIT). */
RNL_NODISCARD rnl_status rnl_check_dtype(const rnl_op_context *context, size_t index, uint32_t types);
/* Input `index` must be one-dimensional with this many elements. */
RNL_NODISCARD rnl_status rnl_check_vector(const rnl_op_context *context, size_t index, int64_t size);
/* Input `index` must broadcast to `shape` without changing it. */
RNL_NODISCARD rnl_status rnl_check_broadcast_to(const rnl_op_context *context, size_t index, const int64_t *shape,
                                                size_t rank);

/* Output 0 of a product by numpy's rules: a vector is a row on the left and a column on the right, and its axis
 * vanishes. */
RNL_NODISCARD rnl_status rnl_matmul_output(rnl_op_context *context, size_t a_index, size_t b_index, rnl_dtype dtype);
/* By Gemm's: two matrices, by transA and transB, and input c_index broadcasts to the result. */
RNL_NODISCARD rnl_status rnl_gemm_output(rnl_op_context *context, size_t a_index, size_t b_index, size_t c_index,
                                         rnl_dtype dtype);

/* Input `index` must have one element. */
RNL_NODISCARD rnl_status rnl_check_single(const rnl_op_context *context, size_t index);
/* A zero point, which may be left out, has the type of the values. */
RNL_NODISCARD rnl_status rnl_check_zero_point(const rnl_op_context *context, size_t values, size_t zero_point);
/* Two quantised factors and a result: scales follow the factors and stand at `result`, zero points behind them. */
RNL_NODISCARD rnl_status rnl_check_qlinear(const rnl_op_context *context, size_t first, size_t second, size_t result);

/* The axes in an integer list, as bits; a repeated one is refused. */
RNL_NODISCARD rnl_status rnl_axes_bits(const int64_t *axes, size_t count, size_t rank, uint32_t *out_bits);
/* An attribute that must be there. */
RNL_NODISCARD rnl_status rnl_require_int(const rnl_node *node, const char *name, int64_t *out_value);
/* The position of a string attribute's value in `choices` (" NOTSET VALID "-like list of `count` words). */
RNL_NODISCARD rnl_status rnl_choose(const rnl_node *node, const char *name, const char *const *choices, size_t count,
                                    int *out_choice);
/* A host-known float tensor of one dimension (any float type); see rnl_desc_ints. */
RNL_NODISCARD rnl_status rnl_desc_floats(const rnl_tensor_desc *desc, const char *what, float *out_values,
                                         size_t capacity, size_t *out_count);

#endif
