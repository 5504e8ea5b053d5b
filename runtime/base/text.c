/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/memory.h"
#include "base/status.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* True when `count` more bytes and a NUL fit. */
static bool reserve(rnl_text *text, size_t count)
{
    if (text->status != RNL_OK)
        return false;
    size_t needed;
    if (!rnl_size_add(text->length, count, &needed) || !rnl_size_add(needed, 1, &needed)) {
        text->status =
            FAIL(RNL_RESOURCE_EXHAUSTED, "out of memory: a text of %zu bytes and %zu more", text->length, count);
        return false;
    }
    text->status = rnl_grow(&text->data, &text->capacity, needed, 1);
    return text->status == RNL_OK;
}

void rnl_text_add_bytes(rnl_text *text, const char *bytes, size_t count)
{
    if (!reserve(text, count))
        return;
    if (count)
        memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

void rnl_text_add(rnl_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    if (length < 0) {
        if (text->status == RNL_OK)
            text->status = FAIL(RNL_INTERNAL, "a message could not be formatted");
    } else if (reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
    va_end(args);
}

void rnl_text_add_shape(rnl_text *text, const int64_t *shape, size_t rank)
{
    if (rank == 0)
        rnl_text_add(text, "scalar");
    for (size_t i = 0; i < rank; i++) {
        if (i > 0)
            rnl_text_add(text, "x");
        if (shape[i] < 0)
            rnl_text_add(text, "?");
        else
            rnl_text_add(text, "%" PRId64, shape[i]);
    }
}

void rnl_text_free(rnl_text *text)
{
    if (!text)
        return;
    rnl_free(text->data);
    *text = (rnl_text){0};
}
