// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: what comes behind the matrix products of a step in time, and, for CPUs, a small layer as a whole.
//
// Defines:
//   KIND         RNN, GRU or LSTM
//   T            type of the sums and states: F32 or F64
//   T_Y          type of y
//   V            units of a vector: 1, 4, 8 or 16, at most the units; 1 for F64
//   ACT_F        activations by name, of the gates …
//   ACT_G        … of the candidate state; GRU and LSTM
//   ACT_H        … and of the cell's state; LSTM
//   INDEX64, USE_F64  see common.clh
//
// Entry points:
//   recurrent_cell    one step: a work-item for V units of a row of a direction
//   recurrent_reset   GRU whose reset gate comes before the product: what it leaves of the state
//   recurrent_layer   all steps; a work-item for a row of a direction. V > 1
//
// The last vector of a row is moved back to be full: its units are computed twice, from the same state.
// check: -DKIND=LSTM -DT=F32 -DT_Y=F32 -DV=16 -DACT_F=SIGMOID -DACT_G=TANH -DACT_H=TANH
// check: -DKIND=LSTM -DT=F32 -DT_Y=BF16 -DV=1 -DACT_F=HARD_SIGMOID -DACT_G=AFFINE -DACT_H=SCALED_TANH -DINDEX64
// check: -DKIND=GRU -DT=F32 -DT_Y=F32 -DV=8 -DACT_F=SIGMOID -DACT_G=TANH
// check: -DKIND=GRU -DT=F32 -DT_Y=F16 -DV=4 -DACT_F=SOFTSIGN -DACT_G=THRESHOLDED_RELU
// check: -DKIND=RNN -DT=F32 -DT_Y=F32 -DV=4 -DACT_F=LEAKY_RELU
// check: -DKIND=RNN -DT=F64 -DT_Y=F64 -DV=1 -DACT_F=ELU -DUSE_F64
#include "common.clh"
#if !defined(KIND) || !defined(T) || !defined(T_Y) || !defined(V)
#error "recurrent.cl needs KIND, T, T_Y and V"
#endif
#include "recurrent.clh"

#define STATE_KINDS (KIND == RNN ? 1 : 2)

// Where a row of a direction lies at a step.
static inline place place_of(const idx_t direction, const idx_t row, const idx_t step, const idx_t x_offset,
                             const idx4_t x_stride, const idx_t bias_offset, const idx_t peepholes_offset,
                             __global const int *lengths, const idx_t lengths_offset, const idx_t y_offset,
                             const idx4_t y_stride, const idx4_t sizes, const int flags, const idx_t product_offset,
                             const idx_t state_offset)
{
    const idx_t units = sizes.s2, each = sizes.s0 * sizes.s1 * units, line = direction * sizes.s1 + row;
    const idx_t length = length_of(lengths, lengths_offset + row, (int)sizes.s3, flags);
    const idx_t time = time_of(step, length, direction > 0 || (flags & FIRST_IS_REVERSE));
    place at;
    at.active = step < length;
    at.x = x_offset + direction * x_stride.s0 + time * x_stride.s1 + row * x_stride.s2;
    at.y = y_offset + time * y_stride.s0 + direction * y_stride.s1 + row * y_stride.s2;
    at.bias = bias_offset + direction * 2 * GATES * units;
    at.peepholes = peepholes_offset + direction * 3 * units;
    at.product = product_offset + line * GATES * units;
    at.kind = each;
    at.state = state_offset + (step & 1) * STATE_KINDS * each + line * units;
    at.next = state_offset + (1 - (step & 1)) * STATE_KINDS * each + line * units;
    return at;
}

#define PLACE(direction, row, step, product_offset)                                                                    \
    place_of(direction, row, step, x_offset, x_stride, bias_offset, peepholes_offset, lengths, lengths_offset,         \
             y_offset, y_stride, sizes, flags, product_offset, state_offset)

__kernel void recurrent_cell(LAYER_ARGUMENTS, __global const STORAGE(T) *product, const idx_t product_offset,
                             __global STORAGE(T) *state, const idx_t state_offset, const idx_t step)
{
    const idx_t wish = (idx_t)get_global_id(0) * V, row = (idx_t)get_global_id(1);
    const idx_t direction = (idx_t)get_global_id(2);
    if (wish >= sizes.s2 || row >= sizes.s1 || direction >= sizes.s0)
        return;
    const place at = PLACE(direction, row, step, product_offset);
    step_units(at, min(wish, sizes.s2 - V), sizes.s2, x, product, bias, peepholes, state, y, flags, numbers);
}

#if KIND == GRU
__kernel void recurrent_reset(LAYER_ARGUMENTS, __global const STORAGE(T) *product, const idx_t product_offset,
                              __global STORAGE(T) *state, const idx_t state_offset, const idx_t step)
{
    const idx_t wish = (idx_t)get_global_id(0) * V, row = (idx_t)get_global_id(1);
    const idx_t direction = (idx_t)get_global_id(2);
    if (wish >= sizes.s2 || row >= sizes.s1 || direction >= sizes.s0)
        return;
    const place at = PLACE(direction, row, step, product_offset);
    reset_units(at, min(wish, sizes.s2 - V), sizes.s2, x, product, bias, state, at.state + at.kind, flags, numbers);
}
#endif

#if V > 1
#define BLOCKS 8 // of vectors whose sums stay in registers

// product[n] = the sum of h[k] * r[k, n] over k, n from `first` to `end`, which are V or more apart.
static inline void times_matrix(__global const STORAGE(T) *h, const idx_t units, __global const STORAGE(T) *r,
                                const idx_t r_stride, __global STORAGE(T) *product, const idx_t first, const idx_t end)
{
    idx_t n = first;
    for (; n + BLOCKS * V <= end; n += BLOCKS * V) {
        value_t sum[BLOCKS];
#pragma unroll
        for (int i = 0; i < BLOCKS; i++)
            sum[i] = (value_t)(0);
        for (idx_t k = 0; k < units; k++) {
            const value_t factor = (value_t)(LOAD(T, h, k));
#pragma unroll
            for (int i = 0; i < BLOCKS; i++)
                sum[i] = fma(factor, UNITS(r, k * r_stride + n + i * V), sum[i]);
        }
#pragma unroll
        for (int i = 0; i < BLOCKS; i++)
            SET_UNITS(T, product, n + i * V, sum[i]);
    }
    for (; n < end; n += V) {
        const idx_t at = min(n, end - V);
        value_t even = (value_t)(0), odd = (value_t)(0);
        idx_t k = 0;
        for (; k + 2 <= units; k += 2) {
            even = fma((value_t)(LOAD(T, h, k)), UNITS(r, k * r_stride + at), even);
            odd = fma((value_t)(LOAD(T, h, k + 1)), UNITS(r, (k + 1) * r_stride + at), odd);
        }
        if (k < units)
            even = fma((value_t)(LOAD(T, h, k)), UNITS(r, k * r_stride + at), even);
        SET_UNITS(T, product, at, even + odd);
    }
}

// r [unit, direction, gates x units] is dense; the products are written into the state's memory, where `product` is too.
__kernel void recurrent_layer(LAYER_ARGUMENTS, __global const STORAGE(T) *r, const idx_t r_offset, const idx_t r_stride,
                              __global STORAGE(T) *state, const idx_t state_offset,
                              __global const STORAGE(T) *product, const idx_t product_offset)
{
    const idx_t row = (idx_t)get_global_id(0), direction = (idx_t)get_global_id(1);
    if (row >= sizes.s1 || direction >= sizes.s0)
        return;
    const idx_t units = sizes.s2, line = GATES * units, length = length_of(lengths, lengths_offset + row,
                                                                           (int)sizes.s3, flags);
    __global const STORAGE(T) *matrix = r + r_offset + direction * line;
    for (idx_t step = 0; step < sizes.s3; step++) {
        const place at = PLACE(direction, row, step, product_offset);
        __global STORAGE(T) *sums = state + at.product;
        if (step < length) {
#if KIND == GRU
            times_matrix(state + at.state, units, matrix, r_stride, sums, 0, flags & RESET_AFTER ? line : 2 * units);
            if (!(flags & RESET_AFTER)) {
                for (idx_t j = 0; j < units; j += V)
                    reset_units(at, min(j, units - V), units, x, state, bias, state, at.state + at.kind, flags,
                                numbers);
                times_matrix(state + at.state + at.kind, units, matrix, r_stride, sums, 2 * units, line);
            }
#else
            times_matrix(state + at.state, units, matrix, r_stride, sums, 0, line);
#endif
        }
        for (idx_t j = 0; j < units; j += V)
            step_units(at, min(j, units - V), units, x, state, bias, peepholes, state, y, flags, numbers);
    }
}
#endif
