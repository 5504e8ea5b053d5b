/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/describe.h"

#include "device/pool_parts.h"
#include <string.h>

#define MOST_NUMBERS 16

void rnl_describe_range(rnl_text *text, const rnl_range *range)
{
    for (uint32_t i = 0; i < range->dimensions && i < 3; i++)
        rnl_text_add(text, "%s%zu", i ? "x" : "", range->global[i]);
    rnl_text_add(text, " work-items in groups of ");
    for (uint32_t i = 0; i < range->dimensions && i < 3; i++)
        rnl_text_add(text, "%s%zu", i ? "x" : "", range->local[i]);
}

void rnl_describe_buffer(rnl_text *text, uint32_t index, const rnl_buffer *buffer)
{
    rnl_text_add(text, "; %u: %zu bytes", (unsigned)index, buffer->size_bytes);
    if (buffer->block && buffer->block->label)
        rnl_text_add(text, " labelled '%s'", buffer->block->label->name);
}

static bool starts_with(const char *type, const char *word)
{
    return strncmp(type, word, strlen(word)) == 0;
}

/* An integer of that size is a million at most, far from any float but the smallest. */
static void add_unknown(rnl_text *text, const void *value)
{
    int32_t whole;
    float number;
    memcpy(&whole, value, sizeof whole);
    memcpy(&number, value, sizeof number);
    if (whole > -(1 << 29) && whole < 1 << 29)
        rnl_text_add(text, " %d", (int)whole);
    else
        rnl_text_add(text, " 0x%x (%g)", (unsigned)whole, (double)number);
}

static void add_float(rnl_text *text, const void *value)
{
    float number;
    memcpy(&number, value, sizeof number);
    rnl_text_add(text, " %g", (double)number);
}

static void add_double(rnl_text *text, const void *value)
{
    double number;
    memcpy(&number, value, sizeof number);
    rnl_text_add(text, " %g", number);
}

static void add_integer(rnl_text *text, const char *type, const void *value, size_t bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, value, bytes); /* the host is little-endian, as all of the library's are */
    const unsigned unused = 64 - 8 * (unsigned)bytes;
    if (type[0] == 'u')
        rnl_text_add(text, " %llu", (unsigned long long)bits);
    else
        rnl_text_add(text, " %lld", (long long)((int64_t)(bits << unused) >> unused));
}

static size_t bytes_of_one(const char *type)
{
    static const struct {
        const char *word;
        size_t bytes;
    } types[] = {{"char", 1}, {"uchar", 1}, {"short", 2}, {"ushort", 2}, {"int", 4},
                 {"uint", 4}, {"long", 8},  {"ulong", 8}, {"float", 4},  {"double", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (starts_with(type, types[i].word))
            return types[i].bytes;
    return 0;
}

void rnl_describe_value(rnl_text *text, uint32_t index, const char *type, const void *value, size_t size_bytes)
{
    const char *at = value;
    size_t bytes = bytes_of_one(type);
    rnl_text_add(text, "; %u:%s%s", (unsigned)index, *type ? " " : "", type);
    if (bytes == 0 && (*type || size_bytes % 4 != 0)) {
        rnl_text_add(text, " %zu bytes", size_bytes);
        return;
    }
    bytes = bytes ? bytes : 4;
    for (size_t i = 0; i < size_bytes / bytes && i < MOST_NUMBERS; i++, at += bytes)
        if (!*type)
            add_unknown(text, at);
        else if (starts_with(type, "float"))
            add_float(text, at);
        else if (starts_with(type, "double"))
            add_double(text, at);
        else
            add_integer(text, type, at, bytes);
}

void rnl_describe_launch(rnl_text *text, const rnl_kernel *kernel, const rnl_range *range, const rnl_arg *args,
                         size_t arg_count)
{
    rnl_text_add(text, "%s of %s, ", kernel->name, rnl_program_name(kernel->program));
    rnl_describe_range(text, range);
    for (uint32_t i = 0; i < arg_count; i++) {
        const char *type = kernel->args.items ? kernel->args.items[i].type : "";
        if (args[i].kind == RNL_ARG_BUFFER)
            rnl_describe_buffer(text, i, args[i].buffer);
        else if (args[i].kind == RNL_ARG_VALUE)
            rnl_describe_value(text, i, type, args[i].value, args[i].size_bytes);
        else
            rnl_text_add(text, "; %u: %zu bytes of local memory", (unsigned)i, args[i].size_bytes);
    }
}
