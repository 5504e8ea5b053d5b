/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the model's functions: the function's nodes are read as if they stood where the call does. Names inside are
 * translated: a parameter's is the caller's, any other gets a prefix that no other call has.
 */
#include "onnx/reader.h"

#include "base/memory.h"
#include <stdio.h>
#include <string.h>

#define PREFIX_BYTES (4 * RNL_ONNX_MAX_KEYWORD_BYTES + 32)

const rnl_scope *rnl_onnx_call(const rnl_reader *reader)
{
    return reader->scope ? reader->scope : reader->within;
}

rnl_reader *rnl_onnx_root(rnl_reader *reader)
{
    while (reader->parent)
        reader = reader->parent;
    return reader;
}

/* In the reader's buffer until the next name is made. */
static rnl_status prefixed(rnl_reader *reader, rnl_view name, rnl_view *out_view)
{
    const char *prefix = reader->scope->prefix;
    const size_t length = strlen(prefix), size = length + name.size;
    TRY(rnl_grow(&reader->scope_text, &reader->scope_text_capacity, size + 1, 1));
    memcpy(reader->scope_text, prefix, length);
    memcpy(reader->scope_text + length, name.data, name.size);
    *out_view = (rnl_view){(const uint8_t *)reader->scope_text, size};
    return RNL_OK;
}

rnl_status rnl_onnx_scoped(rnl_reader *reader, rnl_view name, rnl_view *out_view)
{
    const rnl_scope *scope = reader->scope;
    *out_view = name;
    if (!scope || name.size == 0)
        return RNL_OK;
    TRY(rnl_onnx_printable(reader, name, &name));
    const rnl_function *function = scope->function;
    const uint32_t index = rnl_names_find(&function->parameters, function->parameter_names,
                                          sizeof *function->parameter_names, (const char *)name.data, name.size);
    if (index != RNL_NAME_UNKNOWN && (index < function->input_count || scope->actual[index].size > 0)) {
        *out_view = scope->actual[index];
        return RNL_OK;
    }
    return prefixed(reader, name, out_view);
}

rnl_status rnl_onnx_keep_name(rnl_reader *reader, rnl_view *name)
{
    const char *copy;
    if (!reader->scope || name->size == 0)
        return RNL_OK;
    TRY(rnl_onnx_copy_text(reader, *name, &copy));
    name->data = (const uint8_t *)copy;
    return RNL_OK;
}

/* ---- attributes ------------------------------------------------------------------------------------------------ */

static const rnl_attribute *find_attribute(const rnl_attribute *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

static bool is_declared(const rnl_function *function, const char *name)
{
    for (size_t i = 0; i < function->declared_count; i++)
        if (strcmp(function->declared[i], name) == 0)
            return true;
    return false;
}

rnl_status rnl_onnx_refer(rnl_reader *reader, const char *name, rnl_view reference, const rnl_attribute **out_attribute)
{
    const rnl_scope *scope = rnl_onnx_call(reader);
    const char *wanted;
    *out_attribute = NULL;
    if (!scope)
        return FAIL(RNL_INVALID_ARGUMENT, "the attribute '%s' refers to a function's, outside of any function", name);
    TRY(rnl_onnx_keyword(reader, reference, &wanted));
    *out_attribute = find_attribute(scope->attributes, scope->attribute_count, wanted);
    if (!*out_attribute)
        *out_attribute = find_attribute(scope->function->defaults, scope->function->default_count, wanted);
    if (!*out_attribute && !is_declared(scope->function, wanted))
        return FAIL(RNL_INVALID_ARGUMENT, "the attribute '%s' refers to '%s', which function '%s' does not have", name,
                    wanted, scope->function->name);
    return RNL_OK;
}

/* ---- calls ----------------------------------------------------------------------------------------------------- */

typedef struct call {
    rnl_reader *reader;
    rnl_scope *scope;
    size_t inputs, outputs;
} call;

/* A parameter's name outside: `at` counts the call's inputs or outputs, of which there are `most` parameters. */
static rnl_status add_actual(call *made, rnl_view name, const char *what, size_t first, size_t most, size_t *at)
{
    rnl_reader *reader = made->reader;
    if (*at == most)
        return FAIL(RNL_INVALID_ARGUMENT, "a call of function '%s' has more than its %zu %s",
                    made->scope->function->name, most, what);
    TRY(rnl_onnx_scoped(reader, name, &name));
    TRY(rnl_onnx_keep_name(reader, &name));
    made->scope->actual[first + (*at)++] = name;
    return RNL_OK;
}

static bool on_input(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    call *made = *arg;
    rnl_view name;
    return rnl_onnx_take(made->reader, stream, &name) &&
           rnl_onnx_ok(made->reader,
                       add_actual(made, name, "inputs", 0, made->scope->function->input_count, &made->inputs));
}

static bool on_output(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    call *made = *arg;
    const rnl_function *function = made->scope->function;
    rnl_view name;
    return rnl_onnx_take(made->reader, stream, &name) &&
           rnl_onnx_ok(made->reader, add_actual(made, name, "outputs", function->input_count, function->output_count,
                                                &made->outputs));
}

static bool on_attribute(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    call *made = *arg;
    rnl_view bytes;
    return rnl_onnx_take(made->reader, stream, &bytes) &&
           rnl_onnx_ok(made->reader, rnl_onnx_read_attribute(made->reader, bytes));
}

/* Names and attributes of the call, as the caller's scope has them. */
static rnl_status read_call(rnl_reader *reader, rnl_view bytes, rnl_scope *scope)
{
    const rnl_function *function = scope->function;
    call made = {.reader = reader, .scope = scope};
    rnl_pb_Node message = {
        .input = {{on_input}, &made}, .output = {{on_output}, &made}, .attribute = {{on_attribute}, &made}};
    const size_t parameters = function->input_count + function->output_count;
    TRY(rnl_zone_alloc(&reader->graph->zone, parameters, sizeof *scope->actual, &scope->actual));
    reader->attribute_count = 0;
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_Node_fields, &message, "a node"));
    scope->attribute_count = reader->attribute_count;
    TRY(rnl_zone_alloc(&reader->graph->zone, scope->attribute_count, sizeof *scope->attributes, &scope->attributes));
    if (scope->attribute_count)
        memcpy(scope->attributes, reader->attributes, scope->attribute_count * sizeof *scope->attributes);
    return RNL_OK;
}

static bool on_node(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view bytes;
    return rnl_onnx_take(reader, stream, &bytes) && rnl_onnx_ok(reader, rnl_onnx_read_node(reader, bytes));
}

/* What the call takes from the function is there now. */
static rnl_status check_outputs(rnl_reader *reader, const rnl_scope *scope)
{
    const rnl_function *function = scope->function;
    for (size_t i = function->input_count; i < function->input_count + function->output_count; i++) {
        uint32_t value;
        if (scope->actual[i].size == 0)
            continue;
        TRY(rnl_onnx_find_value(reader, scope->actual[i], &value));
        if (value == RNL_NO_VALUE)
            return FAIL(RNL_INVALID_ARGUMENT, "nothing in function '%s' produces its output '%s'", function->name,
                        function->parameter_names[i]);
    }
    return RNL_OK;
}

/* Calls in the graphs within a function's nodes are met only here. */
static rnl_status check_call(rnl_reader *root, const rnl_scope *scope)
{
    const rnl_function *function = scope->function;
    unsigned depth = 1;
    for (const rnl_scope *outer = scope->outer; outer; outer = outer->outer) {
        if (outer->function == function)
            return FAIL(RNL_INVALID_ARGUMENT, "function '%s' of %s calls itself", function->name, root->label);
        depth++;
    }
    if (depth > RNL_ONNX_MAX_DEPTH)
        return FAIL(RNL_INVALID_ARGUMENT, "functions of %s call each other more than %d deep", root->label,
                    RNL_ONNX_MAX_DEPTH);
    root->call_count++;
    root->called_bytes += function->bytes.size;
    if (root->called_bytes > RNL_ONNX_MAX_CALLED_BYTES)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%s calls functions too often: their text has more than %d MiB",
                    root->label, RNL_ONNX_MAX_CALLED_BYTES >> 20);
    return RNL_OK;
}

rnl_status rnl_onnx_inline(rnl_reader *reader, const rnl_function *function, rnl_view bytes)
{
    char prefix[PREFIX_BYTES];
    const rnl_scope *caller = reader->scope;
    rnl_scope scope = {.outer = rnl_onnx_call(reader), .function = function, .prefix = prefix};
    rnl_pb_Function message = {.node = {{on_node}, reader}};
    TRY(check_call(rnl_onnx_root(reader), &scope));
    TRY(read_call(reader, bytes, &scope));
    snprintf(prefix, sizeof prefix, "%s#%zu/", function->name, rnl_onnx_root(reader)->call_count);
    reader->scope = &scope;
    rnl_status status = rnl_onnx_decode(reader, function->bytes, rnl_pb_Function_fields, &message, "a function");
    reader->scope = caller;
    TRY(status, "function '%s'", function->name);
    return check_outputs(reader, &scope);
}
