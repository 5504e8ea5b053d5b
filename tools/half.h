/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floats to and from float, rounding to the nearest, ties to even. */
#ifndef RUNNEL_CLI_HALF_H
#define RUNNEL_CLI_HALF_H

#include <stdint.h>

float rnl_half_to_float(uint16_t bits);
uint16_t rnl_half_from_float(float value);
float rnl_bfloat_to_float(uint16_t bits);
uint16_t rnl_bfloat_from_float(float value);

#endif
