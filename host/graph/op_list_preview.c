/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of ai.onnx.preview: sorted by name. */
#include "graph/op_list.h"

static const rnl_op_schema *const rows[] = {
    ROW("FlexAttention", 1, 1, 3, 3, 1, FLOATS, 0, rnl_infer_attention, NULL, " scale softmax_precision "),
    /* What one with modifiers becomes: graph_splice.c. */
    ROW("FlexAttention.scores", 1, 1, 2, 2, 1, FLOATS, 0, rnl_infer_flex_scores, NULL, " scale softmax_precision "),
    ROW("FlexAttention.values", 1, 1, 3, 3, 1, FLOATS, 0, rnl_infer_flex_values, NULL, ""),
};

const rnl_op_domain rnl_op_domain_preview = {"ai.onnx.preview", rows, sizeof rows / sizeof *rows};
