/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of host tensors, whatever their type. */
#ifndef RUNNEL_CLI_VALUES_H
#define RUNNEL_CLI_VALUES_H

#include "cli.h"

/* False when a size is negative, or the bytes do not fit in size_t. */
bool rnl_values_bytes(rnl_dtype dtype, const int64_t *shape, size_t rank, size_t *out_count, size_t *out_bytes);
/* Sets data and size_bytes from dtype and shape, filled with zeros; free(data). `what` names the tensor in the failure.
 */
rnl_exit rnl_values_allocate(rnl_tensor *tensor, const char *what);

/* Floats uniform in [0,1), integers and bool 0 or 1: a function of the seed and the type alone. */
void rnl_values_random(rnl_tensor *tensor, size_t count, uint64_t seed);

/* Exact for every integer type where long double has 64 bits of mantissa. */
long double rnl_values_load(rnl_dtype dtype, const void *data, size_t index);
/* Float types only; the nearest value. */
void rnl_values_store(rnl_dtype dtype, void *data, size_t index, double value);
bool rnl_dtype_is_float(rnl_dtype dtype);

#define RNL_SHAPE_TEXT_BYTES 256
/* "[1,3,224,224]", "[]" for a scalar; a free dimension (-1) is its name from `dim_names` (may be NULL), else "?". */
const char *rnl_shape_text(const int64_t *shape, const char *const *dim_names, size_t rank, char *out_text);

#endif
