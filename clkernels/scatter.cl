// SPDX-License-Identifier: Apache-2.0
// Writes updates into dst at places that come from a tensor, in the updates' order: the last one to a place stays, or
// REDUCE combines what is there with each. What is out of range is left out.
//
// Defines:
//   T0, T_DST   type of dst and updates, the same; without REDUCE bits are moved: the unsigned integer of the size
//   REDUCE      OP_ADD, OP_MUL, OP_MAX, OP_MIN, or absent
//   T_INDEX     I32 or I64
//
// Entry points:
//   scatter_lines   a work-item for each line: what one update and the next have apart, it writes one after the other
// check: -DT0=U32 -DT_DST=U32 -DT_INDEX=I64
// check: -DT0=F16 -DT_DST=F16 -DT_INDEX=I32 -DREDUCE=OP_ADD
// check: -DT0=I64 -DT_DST=I64 -DT_INDEX=I64 -DREDUCE=OP_MAX -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T0) || !defined(T_INDEX)
#error "scatter.cl needs T0, T_DST and T_INDEX"
#endif
#include "tuple.clh"
#ifdef REDUCE
#include "map_ops.clh"
#define UPDATE(at, x) REDUCE(LOAD(T0, dst, at), x)
#else
#define UPDATE(at, x) x
#endif

#define ADD_PART(i)                                                                                                    \
    if (tuple > i) {                                                                                                   \
        const long part = counted_of(LOAD(T_INDEX, indices, which + i * tuple_stride), tuple_shape.s##i);              \
        inside = inside && part >= 0 && part < (long)tuple_shape.s##i;                                                 \
        to += inside ? (idx_t)part * tuple_step.s##i : 0;                                                              \
    }

// Lines have strides in dst, indices and updates; along a line, indices and updates are walked in the order of `line_`.
#define ARGUMENTS                                                                                                      \
    __global STORAGE(T0) *dst, const idx_t dst_offset, __global const STORAGE(T_INDEX) *indices,                       \
        const idx_t indices_offset, __global const STORAGE(T0) *updates, const idx_t updates_offset, TUPLE_ARGUMENTS,  \
        const idx_t lines, const int deep, const idx8_t shape, const idx8_t dst_stride, const idx8_t indices_stride,   \
        const idx8_t updates_stride, const idx_t line_length, const int line_deep, const idx8_t line_shape,            \
        const idx8_t line_indices_stride, const idx8_t line_updates_stride

__kernel void scatter_lines(ARGUMENTS)
{
    const idx_t line = (idx_t)get_global_id(0);
    const idx_t to_line = dst_offset + element_index(line, deep, shape, dst_stride);
    const idx_t which_line = indices_offset + element_index(line, deep, shape, indices_stride);
    const idx_t from_line = updates_offset + element_index(line, deep, shape, updates_stride);
    if (line >= lines)
        return;
    for (idx_t i = 0; i < line_length; ++i) {
        const idx_t which = which_line + element_index(i, line_deep, line_shape, line_indices_stride);
        const idx_t from = from_line + element_index(i, line_deep, line_shape, line_updates_stride);
        idx_t to = to_line;
        bool inside = true;
        FOR_TUPLE(ADD_PART)
        if (inside)
            STORE(T0, dst, to, UPDATE(to, LOAD(T0, updates, from)));
    }
}
