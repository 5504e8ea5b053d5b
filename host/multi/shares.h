/* SPDX-License-Identifier: Apache-2.0 */
/* How many rows of a batch each device gets. Arithmetic alone. */
#ifndef RUNNEL_MULTI_SHARES_H
#define RUNNEL_MULTI_SHARES_H

#include <stdbool.h>
#include <stddef.h>

/* What n rows take: fixed_ns + n * row_ns. */
typedef struct rnl_line {
    double fixed_ns, row_ns;
    bool is_out; /* gets nothing */
} rnl_line;

/* Through two measurements; where they contradict a line, one through the origin and the larger one. */
rnl_line rnl_line_through(size_t rows, double ns, size_t more_rows, double more_ns);
double rnl_line_at(const rnl_line *line, size_t rows);

/*
 * The shares that end first: out_rows, whose sum is `rows`. A device whose fixed part alone takes longer gets nothing.
 * Returns what the longest takes by the lines; 0 when all devices are out.
 */
double rnl_shares_find(const rnl_line *lines, size_t count, size_t rows, size_t *out_rows);

#endif
