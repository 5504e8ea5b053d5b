/* SPDX-License-Identifier: Apache-2.0 */
#include "support/proto_write.h"

#include <stdlib.h>
#include <string.h>

void proto_free(proto *message)
{
    free(message->data);
    *message = (proto){0};
}

void proto_raw(proto *message, const void *data, size_t size)
{
    if (message->size + size > message->capacity) {
        message->capacity = (message->size + size) * 2 + 64;
        message->data = realloc(message->data, message->capacity);
        if (!message->data)
            abort();
    }
    if (size)
        memcpy(message->data + message->size, data, size);
    message->size += size;
}

void proto_number(proto *message, uint64_t value)
{
    uint8_t bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value);
    proto_raw(message, bytes, count);
}

void proto_tag(proto *message, uint32_t field, unsigned wire_type)
{
    proto_number(message, (uint64_t)field << 3 | wire_type);
}

void proto_int(proto *message, uint32_t field, int64_t value)
{
    proto_tag(message, field, 0);
    proto_number(message, (uint64_t)value);
}

void proto_float(proto *message, uint32_t field, float value)
{
    proto_tag(message, field, 5);
    proto_raw(message, &value, sizeof value);
}

void proto_double(proto *message, uint32_t field, double value)
{
    proto_tag(message, field, 1);
    proto_raw(message, &value, sizeof value);
}

void proto_bytes(proto *message, uint32_t field, const void *data, size_t size)
{
    proto_tag(message, field, 2);
    proto_number(message, size);
    proto_raw(message, data, size);
}

void proto_text(proto *message, uint32_t field, const char *text)
{
    proto_bytes(message, field, text, strlen(text));
}

void proto_message(proto *message, uint32_t field, proto *inner)
{
    proto_bytes(message, field, inner->data, inner->size);
    proto_free(inner);
}

void proto_ints(proto *message, uint32_t field, const int64_t *values, size_t count)
{
    proto packed = {0};
    for (size_t i = 0; i < count; i++)
        proto_number(&packed, (uint64_t)values[i]);
    proto_message(message, field, &packed);
}
