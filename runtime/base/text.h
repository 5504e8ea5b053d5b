/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string that remembers its first failure, so that builders need one check at the end. */
#ifndef RUNNEL_BASE_TEXT_H
#define RUNNEL_BASE_TEXT_H

#include <runnel/rt.h>

typedef struct rnl_text {
    char *data; /* NUL-terminated once anything was added; NULL before */
    size_t length, capacity;
    rnl_status status;
} rnl_text;

RNL_API void rnl_text_add(rnl_text *text, const char *format, ...) RNL_PRINTF(2, 3);
RNL_API void rnl_text_add_bytes(rnl_text *text, const char *bytes, size_t count);
/* "1x3x224x224"; "scalar" for rank 0; "?" for a negative dimension. */
RNL_API void rnl_text_add_shape(rnl_text *text, const int64_t *shape, size_t rank);
/* A JSON string with its quotes; what is not UTF-8 becomes U+FFFD. NULL is an empty one. */
RNL_API void rnl_text_add_json(rnl_text *text, const char *string);
RNL_API void rnl_text_free(rnl_text *text);

#endif
