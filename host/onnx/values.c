/* SPDX-License-Identifier: Apache-2.0 */
/* The values that the graph is given: inputs and initialisers; and its outputs. */
#include "onnx/reader.h"

#include "base/memory.h"
#include <limits.h>
#include <string.h>

static uint32_t find_printable(const rnl_reader *reader, rnl_view name)
{
    uint32_t index = rnl_names_find(&reader->values, reader->graph->values, sizeof *reader->graph->values,
                                    (const char *)name.data, name.size);
    return index == RNL_NAME_UNKNOWN ? RNL_NO_VALUE : index;
}

rnl_status rnl_onnx_find_value(rnl_reader *reader, rnl_view name, uint32_t *out_value)
{
    *out_value = RNL_NO_VALUE;
    TRY(rnl_onnx_printable(reader, name, &name));
    *out_value = find_printable(reader, name);
    return RNL_OK;
}

/* Only a subgraph has more values than were counted: those that it captures. */
static rnl_status make_room(rnl_reader *reader)
{
    rnl_graph *graph = reader->graph;
    rnl_value *values;
    if (graph->value_count < reader->value_capacity)
        return RNL_OK;
    size_t capacity = 2 * reader->value_capacity + 8;
    if (capacity > 2 * (size_t)RNL_ONNX_MAX_VALUES)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%s has more than %d values", reader->label, RNL_ONNX_MAX_VALUES);
    TRY(rnl_zone_alloc(&graph->zone, capacity, sizeof *values, &values));
    if (graph->value_count)
        memcpy(values, graph->values, graph->value_count * sizeof *values);
    graph->values = values;
    reader->value_capacity = capacity;
    return RNL_OK;
}

rnl_status rnl_onnx_define_value(rnl_reader *reader, rnl_view name, const char *what, uint32_t *out_value)
{
    rnl_graph *graph = reader->graph;
    if (name.size == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "%s has %s without a name", reader->label, what);
    TRY(rnl_onnx_printable(reader, name, &name));
    *out_value = find_printable(reader, name);
    if (*out_value != RNL_NO_VALUE)
        return FAIL(RNL_INVALID_ARGUMENT, "the name '%s' of %s is taken: something else produces it",
                    graph->values[*out_value].name, what);
    TRY(make_room(reader));
    rnl_value *value = &graph->values[graph->value_count];
    *value = (rnl_value){.producer = RNL_NO_NODE, .input_index = -1};
    TRY(rnl_onnx_copy_text(reader, name, &value->name));
    *out_value = (uint32_t)graph->value_count;
    TRY(rnl_names_add(&reader->values, value->name, name.size, *out_value));
    graph->value_count++;
    return RNL_OK;
}

rnl_status rnl_onnx_reach_value(rnl_reader *reader, rnl_view name, uint32_t *out_value)
{
    TRY(rnl_onnx_find_value(reader, name, out_value));
    if (*out_value != RNL_NO_VALUE || !reader->parent)
        return RNL_OK;
    TRY(rnl_onnx_define_value(reader, name, "a captured value", out_value));
    reader->graph->capture_count++; /* the last values that are defined */
    return RNL_OK;
}

static rnl_status add_constant(rnl_reader *reader, rnl_view name, const rnl_host_tensor *tensor)
{
    uint32_t value;
    TRY(rnl_onnx_define_value(reader, name, "an initialiser", &value));
    rnl_host_tensor *copy;
    TRY(rnl_zone_alloc(&reader->graph->zone, 1, sizeof *copy, &copy));
    *copy = *tensor;
    reader->graph->values[value].constant = copy;
    return RNL_OK;
}

static rnl_status read_initializer(rnl_reader *reader, rnl_view bytes)
{
    rnl_view name;
    rnl_host_tensor tensor;
    TRY(rnl_onnx_read_tensor(reader, bytes, "an initialiser", &name, &tensor));
    return add_constant(reader, name, &tensor);
}

static rnl_status read_sparse(rnl_reader *reader, rnl_view bytes)
{
    rnl_view name;
    rnl_host_tensor tensor;
    TRY(rnl_onnx_read_sparse(reader, bytes, "a sparse initialiser", &name, &tensor));
    return add_constant(reader, name, &tensor);
}

static bool on_initializer(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view bytes;
    return rnl_onnx_take(reader, stream, &bytes) && rnl_onnx_ok(reader, read_initializer(reader, bytes));
}

static bool on_sparse(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view bytes;
    return rnl_onnx_take(reader, stream, &bytes) && rnl_onnx_ok(reader, read_sparse(reader, bytes));
}

static bool on_input(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view bytes;
    return rnl_onnx_take(reader, stream, &bytes) &&
           rnl_onnx_ok(reader,
                       rnl_onnx_read_value_info(reader, bytes, "an input", &reader->inputs[reader->input_count++]));
}

static bool on_output(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view bytes;
    return rnl_onnx_take(reader, stream, &bytes) &&
           rnl_onnx_ok(reader,
                       rnl_onnx_read_value_info(reader, bytes, "an output", &reader->outputs[reader->output_count++]));
}

/* Older files list initialisers among the inputs too; such inputs are constants. */
static rnl_status add_inputs(rnl_reader *reader)
{
    rnl_graph *graph = reader->graph;
    TRY(rnl_zone_alloc(&graph->zone, reader->input_count, sizeof *graph->inputs, &graph->inputs));
    TRY(rnl_zone_alloc(&graph->zone, reader->input_count, sizeof *graph->input_values, &graph->input_values));
    for (size_t i = 0; i < reader->input_count; i++) {
        uint32_t value;
        if (reader->parent && reader->inputs[i].is_no_tensor)
            graph->refusal = "has an input that is not a tensor, which is not supported";
        TRY(rnl_onnx_find_value(reader, reader->inputs[i].name, &value));
        if (value != RNL_NO_VALUE && graph->values[value].constant)
            continue;
        TRY(rnl_onnx_define_value(reader, reader->inputs[i].name, "an input", &value));
        graph->values[value].input_index = (int32_t)graph->input_count;
        graph->inputs[graph->input_count] = reader->inputs[i].info;
        graph->inputs[graph->input_count].name = graph->values[value].name;
        graph->input_values[graph->input_count++] = value;
    }
    return RNL_OK;
}

rnl_status rnl_onnx_read_outputs(rnl_reader *reader)
{
    rnl_graph *graph = reader->graph;
    if (reader->output_count == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "%s has no outputs", reader->label);
    TRY(rnl_zone_alloc(&graph->zone, reader->output_count, sizeof *graph->outputs, &graph->outputs));
    TRY(rnl_zone_alloc(&graph->zone, reader->output_count, sizeof *graph->output_values, &graph->output_values));
    for (size_t i = 0; i < reader->output_count; i++) {
        uint32_t value;
        rnl_view name;
        TRY(rnl_onnx_printable(reader, reader->outputs[i].name, &name));
        TRY(rnl_onnx_reach_value(reader, name, &value));
        if (value == RNL_NO_VALUE)
            return FAIL(RNL_INVALID_ARGUMENT, "nothing in %s produces its output '%.*s'", reader->label,
                        (int)(name.size < INT_MAX ? name.size : INT_MAX), (const char *)name.data);
        graph->outputs[i] = reader->outputs[i].info;
        graph->outputs[i].name = graph->values[value].name;
        graph->output_values[i] = value;
    }
    graph->output_count = reader->output_count;
    return RNL_OK;
}

rnl_status rnl_onnx_read_values(rnl_reader *reader, rnl_view bytes)
{
    rnl_graph *graph = reader->graph;
    const rnl_survey *survey = &reader->survey;
    size_t count = survey->initializers + survey->sparse_initializers + survey->inputs + survey->node_outputs;
    TRY(rnl_zone_alloc(&graph->zone, count, sizeof *graph->values, &graph->values));
    reader->value_capacity = count;
    TRY(rnl_names_reserve(&reader->values, count));
    TRY(rnl_alloc(survey->inputs, sizeof *reader->inputs, &reader->inputs));
    TRY(rnl_alloc(survey->outputs, sizeof *reader->outputs, &reader->outputs));
    rnl_view_field name = {.reader = reader};
    rnl_pb_GraphValues message = {.name = RNL_ONNX_VIEW(&name),
                                  .initializer = {{on_initializer}, reader},
                                  .input = {{on_input}, reader},
                                  .output = {{on_output}, reader},
                                  .sparse_initializer = {{on_sparse}, reader}};
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_GraphValues_fields, &message, "its graph"));
    TRY(rnl_onnx_text(reader, name.view, &graph->info.graph_name));
    return add_inputs(reader);
}
