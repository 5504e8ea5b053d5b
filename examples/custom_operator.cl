// SPDX-License-Identifier: Apache-2.0
// Shrinks towards zero: what is nearer than the limit becomes zero. Each tensor is a pointer and the element at which it
// begins.
// check: -DTYPE=float
kernel void shrink(global const TYPE *restrict x, long x_at, global TYPE *restrict y, long y_at, float limit, long count)
{
    const long i = get_global_id(0);
    if (i >= count)
        return;
    const TYPE value = x[x_at + i];
    y[y_at + i] = value > limit ? value - limit : value < -limit ? value + limit : 0;
}
