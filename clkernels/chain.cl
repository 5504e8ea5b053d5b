// SPDX-License-Identifier: Apache-2.0
// dst = a chain of elementwise stages on operands.
//
// Defines:
//   T_DST   type of dst
//   V       elements of a vector along the columns, where dst has stride 1 and operands have stride 1 or 0; 1: any
//           strides
//   and those of chain.clh
// check: -DT_DST=F32 -DV=16 -DSTAGES=1 -DS1=OP_RELU(y0) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
// check: -DT_DST=F16 -DV=4 -DSTAGES=1 -DS1=OP_ADD(y0,y1) -DOPERANDS=2 -DT_Y0=BF16 -DY0_STEP=1 -DT_Y1=F32 -DY1_STEP=0
// check: -DT_DST=F32 -DV=1 -DSTAGES=2 -DS1=OP_EXP(y0) -DS2=OP_MUL(v1,K(0)) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=0 -DINDEX64
#include "common.clh"
#include "walk.clh"
#include "lanes.clh"
#if !defined(T_DST) || !defined(V)
#error "chain.cl needs T_DST and V"
#endif
#include "map_ops.clh"
#define FLOATV value_t
#define STRIDES_T idx8_t
#include "chain.clh"
#include "pieces.clh"

#if V == 1
#define ALONG(step, stride) (column * (stride).s7)
#define STORE_WHOLE(to, value) STORE(T_DST, dst, to, value)
#else
#define ALONG(step, stride) (column * (step))
#define STORE_WHOLE(to, value) STOREV(T_DST, V, dst, to, value)
#endif

#define BLOCK_OF(i) const idx_t block##i = offset_y##i + block_index(block, size, shape, stride_y##i);
#define ROW_OF(i) const idx_t row##i = block##i + row * stride_y##i.s6;
#define AT(i) const idx_t at##i = row##i + ALONG(Y##i##_STEP, stride_y##i);

#define RESULT_ARGUMENTS __global STORAGE(T_DST) *dst, const idx_t dst_offset, PIECE_ARGUMENTS, const idx8_t dst_stride
WORK compute_piece(RESULT_ARGUMENTS CHAIN_ARGUMENTS, const idx4_t here)
{
    FIND_PIECE_AT(here)
    for (idx_t block = first_block; block < end_block; ++block) {
        const idx_t to_block = dst_offset + block_index(block, size, shape, dst_stride);
        FOR_OPERANDS(BLOCK_OF)
        for (idx_t row = first_row; row < end_row; ++row) {
            const idx_t to_row = to_block + row * dst_stride.s6;
            FOR_OPERANDS(ROW_OF)
            idx_t column = first_column;
            for (; column + V <= end_column; column += V) {
                FOR_OPERANDS(AT)
                LOAD_OPERANDS
                CHAIN
                STORE_WHOLE(to_row + ALONG(1, dst_stride), CHAIN_RESULT);
            }
#if V > 1
            if (column < end_column) {
                FOR_OPERANDS(AT)
                LOAD_OPERANDS_PART((int)(end_column - column))
                CHAIN
                STORE_FIRST(T_DST, V, dst, to_row + column, CHAIN_RESULT, chain_count);
            }
#endif
        }
    }
}

NOT_VECTORIZED __kernel void chain(RESULT_ARGUMENTS CHAIN_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    compute_piece(dst, dst_offset, size, piece, shape, dst_stride PASS_CHAIN_ARGUMENTS, PIECE_HERE);
    TEAM_LEAVE
}
