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
    const size_t room = text->status == RNL_OK ? text->capacity - text->length : 0;
    const int length = vsnprintf(room > 0 ? text->data + text->length : NULL, room, format, args);
    if (length < 0) {
        if (text->status == RNL_OK)
            text->status = FAIL(RNL_INTERNAL, "a message could not be formatted");
    } else if ((size_t)length < room || reserve(text, (size_t)length)) {
        if ((size_t)length >= room) /* what was there first held a part of it */
            vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    if (text->data && text->status != RNL_OK)
        text->data[text->length] = '\0';
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

/* Bytes of the valid UTF-8 character here; 0: it is none. */
static size_t character_bytes(const unsigned char *at)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } kinds[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t more = 0; more < 4; more++) {
        if ((at[0] & kinds[more].mask) != kinds[more].lead)
            continue;
        uint32_t code = at[0] & (unsigned char)~kinds[more].mask;
        for (size_t i = 1; i <= more; i++) {
            if ((at[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (at[i] & 0x3fu);
        }
        const bool is_surrogate = code >= 0xd800 && code < 0xe000;
        return code < kinds[more].least || code > 0x10ffff || is_surrogate ? 0 : more + 1;
    }
    return 0;
}

void rnl_text_add_json(rnl_text *text, const char *string)
{
    const unsigned char *at = (const unsigned char *)(string ? string : "");
    rnl_text_add_bytes(text, "\"", 1);
    while (*at) {
        const size_t bytes = character_bytes(at);
        if (bytes == 0)
            rnl_text_add_bytes(text, "\xef\xbf\xbd", 3);
        else if (*at == '"' || *at == '\\')
            rnl_text_add(text, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            rnl_text_add(text, "\\u%04x", *at);
        else
            rnl_text_add_bytes(text, (const char *)at, bytes);
        at += bytes ? bytes : 1;
    }
    rnl_text_add_bytes(text, "\"", 1);
}

void rnl_text_free(rnl_text *text)
{
    if (!text)
        return;
    rnl_free(text->data);
    *text = (rnl_text){0};
}
