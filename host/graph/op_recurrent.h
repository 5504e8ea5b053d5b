/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM in resolved form, shared by shape inference and by what runs them. */
#ifndef RUNNEL_GRAPH_OP_RECURRENT_H
#define RUNNEL_GRAPH_OP_RECURRENT_H

#include "graph/op.h"

typedef struct rnl_recurrent {
    int kind; /* 0 RNN, 1 GRU, 2 LSTM: the order of rnl_recurrent_kind */
    int64_t steps, rows, inputs, units, directions, gates;
    bool rows_first; /* layout 1: rows come before steps, and before directions */
    bool first_is_reverse;
    int activations[2][3]; /* of each direction, the order of rnl_activation */
    float alpha[2][3], beta[2][3];
    float clip; /* 0: none */
    bool coupled, reset_after;
} rnl_recurrent;

/* Checks the node's attributes, and its inputs' types and shapes. */
RNL_NODISCARD rnl_status rnl_recurrent_resolve(const rnl_op_context *context, rnl_recurrent *out_recurrent);

#endif
