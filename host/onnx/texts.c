/* SPDX-License-Identifier: Apache-2.0 */
/* Names and other texts of the file as C strings in the graph's zone. */
#include "onnx/reader.h"

#include "base/memory.h"
#include <string.h>

#define BLOCK_BYTES 16384
#define LARGE_BYTES 1024

/* Many names are short: they share blocks, since the zone aligns each object. */
static rnl_status text_room(rnl_reader *reader, size_t bytes, char **out_text)
{
    if (bytes > LARGE_BYTES)
        return rnl_zone_alloc(&reader->graph->zone, bytes, 1, out_text);
    if (reader->text_left < bytes) {
        TRY(rnl_zone_alloc(&reader->graph->zone, BLOCK_BYTES, 1, &reader->text_room));
        reader->text_left = BLOCK_BYTES;
    }
    *out_text = reader->text_room;
    reader->text_room += bytes;
    reader->text_left -= bytes;
    return RNL_OK;
}

rnl_status rnl_onnx_indices(rnl_reader *reader, const uint32_t *indices, size_t count, const uint32_t **out_copy)
{
    *out_copy = NULL;
    if (count == 0)
        return RNL_OK;
    if (reader->index_left < count) {
        size_t room = count > BLOCK_BYTES / sizeof *indices ? count : BLOCK_BYTES / sizeof *indices;
        TRY(rnl_zone_alloc(&reader->graph->zone, room, sizeof *indices, &reader->index_room));
        reader->index_left = room;
    }
    memcpy(reader->index_room, indices, count * sizeof *indices);
    *out_copy = reader->index_room;
    reader->index_room += count;
    reader->index_left -= count;
    return RNL_OK;
}

/* The length of the printable UTF-8 character at `at`, 0 when there is none. */
static size_t printable(const uint8_t *at, size_t left)
{
    if (at[0] >= 0x20 && at[0] < 0x7f)
        return 1;
    size_t length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    uint32_t code = at[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (at[i] & 0x3fu);
    bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return overlong || surrogate || code < 0xa0 || code > 0x10ffff ? 0 : length;
}

/* The length of the view's text with its unprintable bytes escaped. */
static size_t escaped_length(rnl_view view)
{
    size_t length = 0;
    for (size_t i = 0; i < view.size;) {
        size_t step = printable(view.data + i, view.size - i);
        length += step ? step : 4;
        i += step ? step : 1;
    }
    return length;
}

static void escape(rnl_view view, char *out)
{
    for (size_t i = 0; i < view.size;) {
        size_t step = printable(view.data + i, view.size - i);
        if (step) {
            memcpy(out, view.data + i, step);
            out += step;
            i += step;
        } else {
            static const char digits[] = "0123456789abcdef";
            *out++ = '\\';
            *out++ = 'x';
            *out++ = digits[view.data[i] >> 4];
            *out++ = digits[view.data[i] & 15];
            i++;
        }
    }
    *out = '\0';
}

static rnl_status refuse_nul(const rnl_reader *reader, rnl_view view)
{
    if (view.size == 0 || !memchr(view.data, 0, view.size))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "%s has a text with a NUL byte in it", reader->label);
}

rnl_status rnl_onnx_printable(rnl_reader *reader, rnl_view view, rnl_view *out_view)
{
    *out_view = view;
    TRY(refuse_nul(reader, view));
    size_t length = escaped_length(view);
    if (length == view.size)
        return RNL_OK;
    char *text;
    TRY(text_room(reader, length + 1, &text));
    escape(view, text);
    *out_view = (rnl_view){(const uint8_t *)text, length};
    return RNL_OK;
}

rnl_status rnl_onnx_copy_text(rnl_reader *reader, rnl_view view, const char **out_text)
{
    *out_text = "";
    if (view.size == 0)
        return RNL_OK;
    char *text;
    TRY(text_room(reader, view.size + 1, &text));
    memcpy(text, view.data, view.size);
    *out_text = text;
    return RNL_OK;
}

rnl_status rnl_onnx_text(rnl_reader *reader, rnl_view view, const char **out_text)
{
    *out_text = "";
    TRY(rnl_onnx_printable(reader, view, &view));
    return rnl_onnx_copy_text(reader, view, out_text);
}

rnl_status rnl_onnx_raw_text(rnl_reader *reader, rnl_view view, const char **out_text)
{
    *out_text = "";
    TRY(refuse_nul(reader, view));
    return rnl_onnx_copy_text(reader, view, out_text);
}

rnl_status rnl_onnx_keyword(rnl_reader *reader, rnl_view view, const char **out_text)
{
    *out_text = "";
    if (view.size == 0)
        return RNL_OK;
    if (view.size > RNL_ONNX_MAX_KEYWORD_BYTES)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "%s has an operator, domain or attribute whose name has %zu bytes; at most %d", reader->label,
                    view.size, RNL_ONNX_MAX_KEYWORD_BYTES);
    TRY(rnl_onnx_printable(reader, view, &view));
    uint32_t index = rnl_names_find(&reader->keywords, reader->keyword_texts, sizeof *reader->keyword_texts,
                                    (const char *)view.data, view.size);
    if (index == RNL_NAME_UNKNOWN) {
        index = (uint32_t)reader->keyword_count;
        TRY(rnl_grow(&reader->keyword_texts, &reader->keyword_capacity, reader->keyword_count + 1,
                     sizeof *reader->keyword_texts));
        TRY(rnl_onnx_copy_text(reader, view, &reader->keyword_texts[index]));
        TRY(rnl_names_add(&reader->keywords, (const char *)view.data, view.size, index));
        reader->keyword_count++;
    }
    *out_text = reader->keyword_texts[index];
    return RNL_OK;
}
