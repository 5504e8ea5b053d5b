/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes written as text, so that tests are tables.
 *
 * Tensors, separated by spaces: "f32:2x3" (shape only), "i64:2=1,-1" (with values), "f32:" (a scalar), "-" (left out).
 * Attributes: "axis:i=1 pads:is=0,1 alpha:f=0.5 scales:fs=1,2 mode:s=edge".
 */
#ifndef RUNNEL_TESTS_OP_TEXT_H
#define RUNNEL_TESTS_OP_TEXT_H

#include "unit/op_node.h"
#include <stdio.h>

#define OP_TEXT_VALUES 64

typedef struct op_text {
    op_node n;
    char words[2048];
    size_t used;
    unsigned char data[OP_NODE_MAX][OP_TEXT_VALUES * 8 + 1]; /* from byte 1 on: unaligned */
    int64_t ints[16][OP_TEXT_VALUES];
    float floats[16][OP_TEXT_VALUES];
} op_text;

static inline rnl_dtype op_text_dtype(const char *name)
{
    static const struct {
        const char *name;
        rnl_dtype dtype;
    } types[] = {{"f32", RNL_F32}, {"f64", RNL_F64}, {"f16", RNL_F16},  {"bf16", RNL_BF16}, {"i8", RNL_I8},
                 {"i16", RNL_I16}, {"i32", RNL_I32}, {"i64", RNL_I64},  {"u8", RNL_U8},     {"u16", RNL_U16},
                 {"u32", RNL_U32}, {"u64", RNL_U64}, {"bool", RNL_BOOL}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].dtype;
    return RNL_DTYPE_NONE;
}

static inline rnl_number op_text_number(const char *text, rnl_dtype dtype)
{
    rnl_number number;
    if (rnl_dtype_kind(dtype) == RNL_NUMBER_FLOAT)
        number.f = strtod(text, NULL);
    else if (rnl_dtype_kind(dtype) == RNL_NUMBER_SIGNED)
        number.i = strtoll(text, NULL, 10);
    else
        number.u = strtoull(text, NULL, 10);
    return number;
}

/* Splits off the next word at `separator`; false at the end. */
static inline bool op_text_word(const char **text, char separator, char *word, size_t size)
{
    size_t length = strcspn(*text, (char[]){separator, '\0'});
    if (**text == '\0')
        return false;
    ck_assert_uint_lt(length, size);
    memcpy(word, *text, length);
    word[length] = '\0';
    *text += length + ((*text)[length] != '\0');
    return true;
}

/* "f32:2x3=1,2": values go to `data` when there are any. */
static inline rnl_tensor_desc op_text_tensor(const char *word, unsigned char *data)
{
    char type[8], shape[128], item[64];
    rnl_tensor_desc desc = {.dtype = RNL_DTYPE_NONE};
    if (strcmp(word, "-") == 0)
        return desc;
    op_text_word(&word, ':', type, sizeof type);
    desc.dtype = op_text_dtype(type);
    const char *dims = shape, *equals = strchr(word, '=');
    snprintf(shape, sizeof shape, "%.*s", (int)(equals ? equals - word : 120), word);
    while (op_text_word(&dims, 'x', item, sizeof item)) {
        if (desc.rank < RNL_MAX_RANK)
            desc.shape[desc.rank] = strtoll(item, NULL, 10);
        desc.rank++;
    }
    if (!equals)
        return desc;
    desc.host = data;
    for (int64_t i = 0; (word = equals + 1) && op_text_word(&word, ',', item, sizeof item); i++, equals = word - 1) {
        ck_assert_int_lt(i, OP_TEXT_VALUES);
        rnl_element_store(data, i, desc.dtype, op_text_number(item, desc.dtype));
    }
    return desc;
}

static inline void op_text_attribute(op_text *t, const char *word)
{
    char name[64], type[4], item[64];
    size_t at = t->n.node.attribute_count, count = 0;
    op_text_word(&word, ':', name, sizeof name);
    op_text_word(&word, '=', type, sizeof type);
    char *kept = t->words + t->used;
    t->used += (size_t)snprintf(kept, 128, "%s", name) + 1;
    char *value = t->words + t->used;
    t->used += (size_t)snprintf(value, 256, "%s", word) + 1;
    while (op_text_word(&word, ',', item, sizeof item)) {
        t->ints[at][count] = strtoll(item, NULL, 10);
        t->floats[at][count++] = strtof(item, NULL);
    }
    bool list = type[1] == 's';
    if (type[0] == 's')
        op_node_string(&t->n, kept, value);
    else if (list && type[0] == 'i')
        op_node_ints(&t->n, kept, t->ints[at], count);
    else if (list)
        *op_node_attribute(&t->n, kept, RNL_ATTRIBUTE_FLOATS) =
            (rnl_attribute){.name = kept, .type = RNL_ATTRIBUTE_FLOATS, .count = count, .floats = t->floats[at]};
    else if (type[0] == 'i')
        op_node_int(&t->n, kept, t->ints[at][0]);
    else
        op_node_float(&t->n, kept, t->floats[at][0]);
}

static inline void op_text_init(op_text *t, const char *op_type, int64_t opset, const char *inputs,
                                const char *attributes, size_t outputs)
{
    char word[512];
    op_node_init(&t->n, op_type, opset, outputs);
    t->used = 0;
    while (op_text_word(&inputs, ' ', word, sizeof word)) {
        size_t at = t->n.context.input_count;
        op_node_input(&t->n, RNL_DTYPE_NONE, 0, NULL, NULL);
        t->n.inputs[at] = op_text_tensor(word, t->data[at] + 1);
    }
    while (op_text_word(&attributes, ' ', word, sizeof word))
        op_text_attribute(t, word);
}

#endif
