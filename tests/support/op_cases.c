/* SPDX-License-Identifier: Apache-2.0 */
#include "support/op_cases.h"

#include "base/file.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    rnl_zone *zone;
    const unsigned char *at, *end;
} reader;

static void *allocate(reader *r, size_t count, size_t bytes)
{
    void *memory;
    ck_assert_int_eq(rnl_zone_alloc(r->zone, count, bytes, &memory), RNL_OK);
    return memory;
}

static const unsigned char *take(reader *r, size_t bytes)
{
    ck_assert_uint_le(bytes, (size_t)(r->end - r->at));
    r->at += bytes;
    return r->at - bytes;
}

/* An unsigned integer of 1, 2, 4 or 8 bytes. */
static uint64_t number(reader *r, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, take(r, bytes), bytes);
    return value;
}

static const char *text(reader *r)
{
    const char *copy;
    size_t length = (size_t)number(r, 2);
    ck_assert_int_eq(rnl_zone_text(r->zone, (const char *)take(r, length), length, &copy), RNL_OK);
    return copy;
}

static void read_tensor(reader *r, op_case_tensor *tensor)
{
    tensor->dtype = (rnl_dtype)number(r, 1);
    if (tensor->dtype == RNL_DTYPE_NONE)
        return;
    tensor->rank = (size_t)number(r, 1);
    ck_assert_uint_le(tensor->rank, RNL_MAX_RANK);
    tensor->size_bytes = rnl_dtype_bytes(tensor->dtype);
    for (size_t i = 0; i < tensor->rank; i++) {
        tensor->shape[i] = (int64_t)number(r, 8);
        tensor->size_bytes *= (size_t)tensor->shape[i];
    }
    if (number(r, 1) == 0)
        return;
    char *data = allocate(r, tensor->size_bytes + 1, 1); /* an odd address */
    memcpy(data + 1, take(r, tensor->size_bytes), tensor->size_bytes);
    tensor->data = data + 1;
}

static void read_attribute(reader *r, op_case_attribute *attribute)
{
    attribute->name = text(r);
    attribute->type = (int)number(r, 1);
    size_t count = attribute->type >= 6 ? (size_t)number(r, 4) : 1;
    attribute->count = count;
    if (attribute->type == 1) {
        memcpy(&attribute->f, take(r, 4), 4);
    } else if (attribute->type == 2) {
        attribute->i = (int64_t)number(r, 8);
    } else if (attribute->type == 3) {
        attribute->s = text(r);
    } else if (attribute->type == 4) {
        read_tensor(r, &attribute->tensor);
    } else {
        ck_assert(attribute->type == 6 || attribute->type == 7);
        size_t bytes = attribute->type == 6 ? 4 : 8;
        void *values = allocate(r, count, bytes);
        memcpy(values, take(r, count * bytes), count * bytes);
        attribute->floats = attribute->type == 6 ? values : NULL;
        attribute->ints = attribute->type == 7 ? values : NULL;
    }
}

static void read_case(reader *r, op_case *c)
{
    c->name = text(r);
    c->op_type = text(r);
    c->opset = (int64_t)number(r, 1);
    c->attribute_count = (size_t)number(r, 2);
    c->input_count = (size_t)number(r, 2);
    c->output_count = (size_t)number(r, 2);
    c->attributes = allocate(r, c->attribute_count, sizeof *c->attributes);
    c->inputs = allocate(r, c->input_count, sizeof *c->inputs);
    c->outputs = allocate(r, c->output_count, sizeof *c->outputs);
    for (size_t i = 0; i < c->attribute_count; i++)
        read_attribute(r, &c->attributes[i]);
    for (size_t i = 0; i < c->input_count; i++)
        read_tensor(r, &c->inputs[i]);
    for (size_t i = 0; i < c->output_count; i++)
        read_tensor(r, &c->outputs[i]);
}

op_case *op_cases_load(rnl_zone *zone, size_t *out_count)
{
    char path[4096];
    void *data;
    size_t size;
    const char *here = __FILE__, *slash = strrchr(here, '/');
    snprintf(path, sizeof path, "%.*s/../fixtures/op_cases.bin", (int)(slash ? slash - here : 0), here);
    ck_assert_msg(rnl_file_read(path, 64u << 20, &data, &size) == RNL_OK, "%s", rnl_last_error()->message);
    reader r = {zone, data, (const unsigned char *)data + size};
    ck_assert_int_eq(memcmp(take(&r, 8), "RNLCASE1", 8), 0);
    *out_count = (size_t)number(&r, 4);
    op_case *cases = allocate(&r, *out_count, sizeof *cases);
    for (size_t i = 0; i < *out_count; i++)
        read_case(&r, &cases[i]);
    ck_assert_ptr_eq(r.at, r.end);
    free(data);
    return cases;
}
