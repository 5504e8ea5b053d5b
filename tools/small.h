/* SPDX-License-Identifier: Apache-2.0 */
/* The types of which an element is the low bits of a byte, and the floats of 8 bits. */
#ifndef RUNNEL_CLI_SMALL_H
#define RUNNEL_CLI_SMALL_H

#include <runnel/rt.h>

bool rnl_small_is(rnl_dtype dtype);
bool rnl_small_is_float(rnl_dtype dtype);
/* 0 for a type that is none of these. */
double rnl_small_to_double(rnl_dtype dtype, uint8_t byte);
/* The code of 1, below which all codes of floats are those of smaller numbers. */
uint8_t rnl_small_one(rnl_dtype dtype);

#endif
