/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people type them. Each takes the whole text or refuses it; nothing is recorded. */
#ifndef RUNNEL_CLI_PARSE_H
#define RUNNEL_CLI_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal digits only, no sign and no blanks, at most `limit`. */
bool rnl_parse_whole(const char *text, uint64_t limit, uint64_t *out_number);
/* A plain decimal number from 0 to `limit`: "0.5". */
bool rnl_parse_seconds(const char *text, double limit, double *out_seconds);
/* "1x3x48x320": 1 to `capacity` sizes of 0 to 2^40 each. */
bool rnl_parse_shape(const char *text, int64_t *out_shape, size_t capacity, size_t *out_rank);
/* "0.5" (for all three) or "0.485,0.456,0.406"; finite numbers. */
bool rnl_parse_triple(const char *text, double out_triple[3]);

#endif
