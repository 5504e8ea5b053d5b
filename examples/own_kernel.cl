// SPDX-License-Identifier: Apache-2.0
// Horner's rule. DEGREE and TYPE come from the program that loads this file.
// check: -DDEGREE=3 -DTYPE=float
#ifndef DEGREE
#error DEGREE is to be defined: the polynomial's degree
#endif

kernel void polynomial(global TYPE *restrict values, constant const TYPE *restrict coefficients)
{
    const TYPE x = values[get_global_id(0)];
    TYPE sum = coefficients[DEGREE];
    for (int i = DEGREE - 1; i >= 0; i--)
        sum = sum * x + coefficients[i];
    values[get_global_id(0)] = sum;
}
