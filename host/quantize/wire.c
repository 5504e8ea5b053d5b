/* SPDX-License-Identifier: Apache-2.0 */
#include "quantize/wire.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, CONTENTS = 2, FIXED32 = 5 };

static bool take_varint(rnl_bytes *rest, uint64_t *out_value)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 10 && i < rest->size; i++) {
        value |= (uint64_t)(rest->data[i] & 0x7f) << (7 * i);
        if (rest->data[i] & 0x80)
            continue;
        rest->data += i + 1;
        rest->size -= i + 1;
        *out_value = value;
        return true;
    }
    return false;
}

static bool skip(rnl_bytes *rest, uint64_t count)
{
    if (count > rest->size)
        return false;
    rest->data += count;
    rest->size -= (size_t)count;
    return true;
}

bool rnl_wire_next(rnl_bytes *rest, rnl_wire_field *out_field)
{
    rnl_bytes at = *rest;
    uint64_t tag, size;
    if (at.size == 0 || !take_varint(&at, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX)
        return false;
    *out_field = (rnl_wire_field){.number = (uint32_t)(tag >> 3)};
    bool sound = false;
    switch (tag & 7) {
    case VARINT:
        sound = take_varint(&at, &out_field->value);
        break;
    case FIXED64:
        sound = skip(&at, 8);
        break;
    case FIXED32:
        sound = skip(&at, 4);
        break;
    case CONTENTS:
        if (!take_varint(&at, &size))
            return false;
        out_field->has_contents = true;
        out_field->contents = (rnl_bytes){at.data, (size_t)size};
        sound = skip(&at, size);
        break;
    default: /* groups, which ONNX never had */
        return false;
    }
    if (!sound)
        return false;
    out_field->whole = (rnl_bytes){rest->data, rest->size - at.size};
    *rest = at;
    return true;
}

bool rnl_wire_find(rnl_bytes message, uint32_t number, rnl_wire_field *out_field)
{
    rnl_wire_field field;
    bool found = false;
    while (rnl_wire_next(&message, &field))
        if (field.number == number) {
            *out_field = field;
            found = true;
        }
    return found;
}

static void add_varint(rnl_text *out, uint64_t value)
{
    char bytes[10];
    size_t count = 0;
    do {
        const uint64_t more = value >> 7;
        bytes[count++] = (char)((value & 0x7f) | (more ? 0x80 : 0));
        value = more;
    } while (value);
    rnl_text_add_bytes(out, bytes, count);
}

void rnl_wire_varint(rnl_text *out, uint32_t number, uint64_t value)
{
    add_varint(out, (uint64_t)number << 3 | VARINT);
    add_varint(out, value);
}

void rnl_wire_bytes(rnl_text *out, uint32_t number, const void *data, size_t size)
{
    add_varint(out, (uint64_t)number << 3 | CONTENTS);
    add_varint(out, size);
    rnl_text_add_bytes(out, data, size);
}

void rnl_wire_text(rnl_text *out, uint32_t number, const char *text)
{
    rnl_wire_bytes(out, number, text, strlen(text));
}

void rnl_wire_message(rnl_text *out, uint32_t number, rnl_text *inner)
{
    if (out->status == RNL_OK && inner->status != RNL_OK)
        out->status = inner->status;
    rnl_wire_bytes(out, number, inner->data, inner->length);
    rnl_text_free(inner);
    *inner = (rnl_text){0};
}

void rnl_wire_copy(rnl_text *out, rnl_bytes bytes)
{
    rnl_text_add_bytes(out, (const char *)bytes.data, bytes.size);
}
