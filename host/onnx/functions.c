/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a model: what they take, and how much a call of each adds to the graph. inline.c makes the calls. */
#include "onnx/reader.h"

#include "base/memory.h"
#include <stdio.h>
#include <string.h>

size_t rnl_onnx_function_key(const char *name, const char *domain, const char *overload, char key[RNL_ONNX_KEY_BYTES])
{
    return (size_t)snprintf(key, RNL_ONNX_KEY_BYTES, *overload ? "%s\n%s\n%s" : "%s\n%s", name, domain, overload);
}

static rnl_function *find(rnl_reader *reader, const char *key, size_t length)
{
    reader = rnl_onnx_root(reader);
    const uint32_t index =
        rnl_names_find(&reader->functions, reader->function_list, sizeof *reader->function_list, key, length);
    return index == RNL_NAME_UNKNOWN ? NULL : &reader->function_list[index];
}

/* Operator, domain and overload, as functions and their calls name them. */
typedef struct call_fields {
    rnl_view_field op_type, domain, overload;
} call_fields;

static rnl_status make_key(rnl_reader *reader, const call_fields *fields, const char **out_name,
                           char key[RNL_ONNX_KEY_BYTES], size_t *out_length)
{
    const char *domain, *overload;
    TRY(rnl_onnx_keyword(reader, fields->op_type.view, out_name));
    TRY(rnl_onnx_keyword(reader, rnl_onnx_plain_domain(fields->domain.view), &domain));
    TRY(rnl_onnx_keyword(reader, fields->overload.view, &overload));
    *out_length = rnl_onnx_function_key(*out_name, domain, overload, key);
    return RNL_OK;
}

rnl_status rnl_onnx_read_function(rnl_reader *reader, rnl_view bytes)
{
    const rnl_view_field none = {.reader = reader};
    call_fields fields = {none, none, none};
    rnl_pb_Function message = {.name = RNL_ONNX_VIEW(&fields.op_type),
                               .domain = RNL_ONNX_VIEW(&fields.domain),
                               .overload = RNL_ONNX_VIEW(&fields.overload)};
    char key[RNL_ONNX_KEY_BYTES];
    const char *name;
    size_t length;
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_Function_fields, &message, "a function"));
    if (reader->function_count == RNL_ONNX_MAX_FUNCTIONS)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%s has more than %d functions", reader->label, RNL_ONNX_MAX_FUNCTIONS);
    TRY(make_key(reader, &fields, &name, key, &length));
    if (find(reader, key, length))
        return FAIL(RNL_INVALID_ARGUMENT, "%s has two functions named '%s' in one domain", reader->label, name);
    TRY(rnl_grow(&reader->function_list, &reader->function_capacity, reader->function_count + 1,
                 sizeof *reader->function_list));
    rnl_function *function = &reader->function_list[reader->function_count];
    *function = (rnl_function){.name = name, .bytes = bytes};
    reader->function_count++;
    TRY(rnl_zone_text(&reader->graph->zone, key, length, &function->key));
    return rnl_names_add(&reader->functions, key, length, (uint32_t)(function - reader->function_list));
}

void rnl_onnx_free_functions(rnl_reader *reader)
{
    for (size_t i = 0; i < reader->function_count; i++) {
        rnl_names_free(&reader->function_list[i].parameters);
        rnl_free(reader->function_list[i].parameter_names);
    }
    rnl_names_free(&reader->functions);
    rnl_free(reader->function_list);
}

/* ---- calls ---------------------------------------------------------------------------------------------------- */

static bool on_counted(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    ++*(size_t *)*arg;
    return pb_read(stream, NULL, stream->bytes_left);
}

/* The function that a node calls, or NULL, and how many outputs the node has. */
static rnl_status find_called(rnl_reader *reader, rnl_view node, rnl_function **out_function, size_t *out_outputs)
{
    const rnl_view_field none = {.reader = reader};
    call_fields fields = {none, none, none};
    rnl_pb_Node message = {.output = {{on_counted}, out_outputs},
                           .op_type = RNL_ONNX_VIEW(&fields.op_type),
                           .domain = RNL_ONNX_VIEW(&fields.domain),
                           .overload = RNL_ONNX_VIEW(&fields.overload)};
    char key[RNL_ONNX_KEY_BYTES];
    const char *name;
    size_t length;
    *out_function = NULL;
    *out_outputs = 0;
    TRY(rnl_onnx_decode(reader, node, rnl_pb_Node_fields, &message, "a node"));
    TRY(make_key(reader, &fields, &name, key, &length));
    *out_function = find(reader, key, length);
    return RNL_OK;
}

rnl_status rnl_onnx_find_function(rnl_reader *reader, rnl_view node, rnl_function **out_function)
{
    size_t outputs;
    *out_function = NULL;
    return rnl_onnx_root(reader)->function_count ? find_called(reader, node, out_function, &outputs) : RNL_OK;
}

/* ---- what a function takes ------------------------------------------------------------------------------------ */

static rnl_status add_parameter(rnl_reader *reader, rnl_function *function, rnl_view view)
{
    const size_t index = function->input_count + function->output_count;
    if (index == RNL_MAX_NODE_INPUTS)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "function '%s' has more than %d parameters", function->name,
                    RNL_MAX_NODE_INPUTS);
    const char *name;
    TRY(rnl_onnx_text(reader, view, &name));
    if (rnl_names_find(&function->parameters, function->parameter_names, sizeof *function->parameter_names, name,
                       strlen(name)) != RNL_NAME_UNKNOWN)
        return FAIL(RNL_INVALID_ARGUMENT, "function '%s' has two parameters named '%s'", function->name, name);
    TRY(rnl_grow(&function->parameter_names, &function->parameter_capacity, index + 1,
                 sizeof *function->parameter_names));
    function->parameter_names[index] = name;
    return rnl_names_add(&function->parameters, name, strlen(name), (uint32_t)index);
}

typedef struct details {
    rnl_reader *reader;
    rnl_function *function;
    rnl_opset opsets[RNL_ONNX_MAX_IMPORTS];
} details;

static bool on_input(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    details *all = *arg;
    rnl_view view;
    if (!rnl_onnx_take(all->reader, stream, &view) ||
        !rnl_onnx_ok(all->reader, add_parameter(all->reader, all->function, view)))
        return false;
    all->function->input_count++;
    return true;
}

static bool on_output(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    details *all = *arg;
    rnl_view view;
    if (!rnl_onnx_take(all->reader, stream, &view) ||
        !rnl_onnx_ok(all->reader, add_parameter(all->reader, all->function, view)))
        return false;
    all->function->output_count++;
    return true;
}

static rnl_status add_declared(rnl_reader *reader, rnl_function *function, rnl_view view)
{
    if (function->declared_count == RNL_ONNX_MAX_ATTRIBUTES)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "function '%s' has more than %d attributes", function->name,
                    RNL_ONNX_MAX_ATTRIBUTES);
    return rnl_onnx_keyword(reader, view, &function->declared[function->declared_count++]);
}

static bool on_declared(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    details *all = *arg;
    rnl_view view;
    return rnl_onnx_take(all->reader, stream, &view) &&
           rnl_onnx_ok(all->reader, add_declared(all->reader, all->function, view));
}

static bool on_default(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    details *all = *arg;
    rnl_view view;
    return rnl_onnx_take(all->reader, stream, &view) &&
           rnl_onnx_ok(all->reader, rnl_onnx_read_attribute(all->reader, view));
}

static bool on_opset(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    details *all = *arg;
    rnl_view view;
    return rnl_onnx_take(all->reader, stream, &view) &&
           rnl_onnx_ok(all->reader, rnl_onnx_read_opset(all->reader, view, all->opsets, &all->function->opset_count));
}

/* An output of the same name as an input would have to be a copy of it: no node makes one. */
static rnl_status read_details(rnl_reader *reader, rnl_function *function)
{
    details all = {.reader = reader, .function = function};
    rnl_pb_Function inputs = {.input = {{on_input}, &all}};
    rnl_pb_Function rest = {.output = {{on_output}, &all},
                            .attribute = {{on_declared}, &all},
                            .opset_import = {{on_opset}, &all},
                            .attribute_proto = {{on_default}, &all}};
    reader->attribute_count = 0;
    TRY(rnl_onnx_decode(reader, function->bytes, rnl_pb_Function_fields, &inputs, "a function"));
    TRY(rnl_onnx_decode(reader, function->bytes, rnl_pb_Function_fields, &rest, "a function"));
    rnl_attribute *defaults;
    rnl_opset *opsets;
    TRY(rnl_zone_alloc(&reader->graph->zone, reader->attribute_count, sizeof *defaults, &defaults));
    TRY(rnl_zone_alloc(&reader->graph->zone, function->opset_count, sizeof *opsets, &opsets));
    if (reader->attribute_count)
        memcpy(defaults, reader->attributes, reader->attribute_count * sizeof *defaults);
    if (function->opset_count)
        memcpy(opsets, all.opsets, function->opset_count * sizeof *opsets);
    function->defaults = defaults;
    function->default_count = reader->attribute_count;
    function->opsets = opsets;
    return RNL_OK;
}

/* ---- how much a call adds ------------------------------------------------------------------------------------- */

typedef struct tally {
    rnl_reader *reader;
    size_t nodes, outputs;
    unsigned depth;
} tally;

static rnl_status count_function(rnl_reader *reader, rnl_function *function, unsigned depth);

static rnl_status check_tally(const tally *sum)
{
    const char *label = sum->reader->label;
    if (sum->nodes > RNL_ONNX_MAX_NODES)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%s has more than %d nodes with those of the functions that it calls",
                    label, RNL_ONNX_MAX_NODES);
    if (sum->outputs > RNL_ONNX_MAX_VALUES)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%s has more than %d values with those of the functions that it calls",
                    label, RNL_ONNX_MAX_VALUES);
    return RNL_OK;
}

static rnl_status count_node(tally *sum, rnl_view node, unsigned depth)
{
    rnl_function *called;
    size_t outputs;
    TRY(find_called(sum->reader, node, &called, &outputs));
    sum->outputs += outputs;
    sum->nodes += called ? 0 : 1;
    if (called) {
        TRY(count_function(sum->reader, called, depth + 1));
        sum->nodes += called->nodes;
        sum->outputs += called->node_outputs;
        sum->depth = called->depth > sum->depth ? called->depth : sum->depth;
    }
    return check_tally(sum);
}

static bool on_node(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    tally *sum = *arg;
    rnl_view bytes;
    return rnl_onnx_take(sum->reader, stream, &bytes) &&
           rnl_onnx_ok(sum->reader, count_node(sum, bytes, sum->reader->counting_depth));
}

static rnl_status count_body(rnl_reader *reader, rnl_function *function, unsigned depth)
{
    tally sum = {.reader = reader};
    rnl_pb_Function message = {.node = {{on_node}, &sum}};
    const unsigned outer = reader->counting_depth;
    TRY(read_details(reader, function));
    TRY(rnl_onnx_survey_function(reader, function->bytes));
    reader->counting_depth = depth;
    TRY(rnl_onnx_decode(reader, function->bytes, rnl_pb_Function_fields, &message, "a function"));
    reader->counting_depth = outer;
    function->nodes = sum.nodes;
    function->node_outputs = sum.outputs;
    function->depth = sum.depth + 1;
    return RNL_OK;
}

static rnl_status count_function(rnl_reader *reader, rnl_function *function, unsigned depth)
{
    if (function->state == RNL_FUNCTION_COUNTING)
        return FAIL(RNL_INVALID_ARGUMENT, "function '%s' of %s calls itself", function->name, reader->label);
    if (function->state == RNL_FUNCTION_NEW && depth <= RNL_ONNX_MAX_DEPTH) {
        function->state = RNL_FUNCTION_COUNTING;
        TRY(count_body(reader, function, depth), "function '%s'", function->name);
        function->state = RNL_FUNCTION_COUNTED;
    }
    if (depth > RNL_ONNX_MAX_DEPTH || function->depth > RNL_ONNX_MAX_DEPTH)
        return FAIL(RNL_INVALID_ARGUMENT, "functions of %s call each other more than %d deep", reader->label,
                    RNL_ONNX_MAX_DEPTH);
    return RNL_OK;
}

rnl_status rnl_onnx_count_functions(rnl_reader *reader)
{
    for (size_t i = 0; i < reader->function_count; i++)
        TRY(count_function(reader, &reader->function_list[i], 1));
    return RNL_OK;
}

rnl_status rnl_onnx_count_calls(rnl_reader *reader, rnl_view graph)
{
    if (rnl_onnx_root(reader)->function_count == 0)
        return RNL_OK;
    tally sum = {.reader = reader};
    rnl_pb_GraphNodes message = {.node = {{on_node}, &sum}};
    TRY(rnl_onnx_decode(reader, graph, rnl_pb_GraphNodes_fields, &message, "its graph"));
    reader->survey.nodes = sum.nodes;
    reader->survey.node_outputs = sum.outputs;
    return RNL_OK;
}
