/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of com.microsoft, which onnxruntime's tools put into models: sorted by name. */
#include "graph/op_list.h"

static const rnl_op_schema *const rows[] = {
    ROW("Gelu", 1, 1, 1, 1, 1, FLOATS, 0, rnl_infer_unary, rnl_evaluate_unary, ""),
};

const rnl_op_domain rnl_op_domain_microsoft = {"com.microsoft", rows, sizeof rows / sizeof *rows};
