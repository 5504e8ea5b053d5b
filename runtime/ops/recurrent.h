/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers (RNN, GRU, LSTM as ONNX defines them): what comes behind the products, and small layers whole. */
#ifndef RUNNEL_OPS_RECURRENT_H
#define RUNNEL_OPS_RECURRENT_H

#include "ops/op.h"

typedef enum rnl_recurrent_kind { RNL_RNN, RNL_GRU, RNL_LSTM } rnl_recurrent_kind;

#define RNL_ACTIVATION_LIST(X)                                                                                         \
    X(TANH)                                                                                                            \
    X(SIGMOID)                                                                                                         \
    X(RELU) X(AFFINE) X(LEAKY_RELU) X(THRESHOLDED_RELU) X(SCALED_TANH) X(HARD_SIGMOID) X(ELU) X(SOFTSIGN) X(SOFTPLUS)
typedef enum rnl_activation {
#define X(name) RNL_ACTIVATION_##name,
    RNL_ACTIVATION_LIST(X)
#undef X
        RNL_ACTIVATION_COUNT
} rnl_activation;

typedef struct rnl_recurrent_params {
    rnl_recurrent_kind kind;
    rnl_activation activations[3]; /* of the gates, the candidate, the cell's state */
    float alpha[3], beta[3];
    float clip; /* bounds what gates and candidate are activated with; 0: nothing */
    bool coupled, reset_after, first_is_reverse;
} rnl_recurrent_params;

/* The gates' columns, in the order of ONNX's weights; a state's parts. */
#define RNL_RECURRENT_MAX_GATES 4
RNL_API int64_t rnl_recurrent_gates(rnl_recurrent_kind kind);
/* Hidden state alone, or that and the cell's state (LSTM) or what the reset gate leaves (GRU). */
RNL_API int64_t rnl_recurrent_states(rnl_recurrent_kind kind);

/*
 * D directions, B rows (of a batch), T steps, H hidden units, G gates. All but y are of one type, f32 or f64; those
 * that may be left out have RNL_NO_SLOT. Of two directions the second goes backwards.
 */
typedef struct rnl_recurrent_views {
    rnl_view x;         /* [D, T, B, G*H], any strides but the last one's: the input's products */
    rnl_view bias;      /* [D, 2*G*H] dense, or left out: of the input, of the state */
    rnl_view peepholes; /* [D, 3*H] dense, or left out: of input, output, forget gate */
    rnl_view lengths;   /* [B] I32 dense, or left out: how many steps of each row count */
    rnl_view state;     /* [2, states, D, B, H] dense: step s reads part s % 2 and writes the other */
    rnl_view product;   /* [D, B, G*H] dense: the state's products, of this step */
    rnl_view y;         /* [T, D, B, H] of any float type, or left out; 0 where steps do not count */
} rnl_recurrent_views;

/* What follows step `step`'s product of the state and the recurrence weights. */
RNL_API RNL_NODISCARD rnl_status rnl_op_recurrent_cell(rnl_step_list *list, const rnl_recurrent_params *params,
                                                       const rnl_recurrent_views *views, int64_t step);
/*
 * A GRU whose reset gate acts before the product: from the products of the first two gates, state[step % 2, 1] becomes
 * the factor of the last one.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_recurrent_reset(rnl_step_list *list, const rnl_recurrent_params *params,
                                                        const rnl_recurrent_views *views, int64_t step);

/* All steps in one, products included, is faster on this device and possible; y's last stride must be 1. */
RNL_API bool rnl_recurrent_layer_pays(const rnl_device *device, const rnl_recurrent_params *params,
                                      const rnl_recurrent_views *views);
/* `r`: the recurrence weights, [H, D, G*H], dense but for the first stride. `product` lies in the state's slot. */
RNL_API RNL_NODISCARD rnl_status rnl_op_recurrent_layer(rnl_step_list *list, const rnl_recurrent_params *params,
                                                        const rnl_recurrent_views *views, const rnl_view *r);

#endif
