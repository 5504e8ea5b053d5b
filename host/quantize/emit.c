/* SPDX-License-Identifier: Apache-2.0 */
/* The model put together again: messages that nothing changes are copied as they are. */
#include "quantize/edit.h"

#include "base/memory.h"
#include <string.h>

typedef struct emitter {
    rnl_quantizer *q;
    bool upgrades; /* to RNL_QUANTIZE_OPSET */
    rnl_text body, tensors;
    uint32_t *uses; /* of each value, by nodes as they are written */
} emitter;

void rnl_edit_name(const rnl_quantizer *q, uint32_t base, const char *kind, rnl_text *out)
{
    rnl_text_add(out, "%s%s%s", q->values[base].name, q->mark, kind);
}

void rnl_edit_tensor(rnl_text *out, const char *name, rnl_dtype dtype, const int64_t *shape, size_t rank,
                     const void *data, size_t size_bytes)
{
    rnl_text tensor = {0};
    for (size_t i = 0; i < rank; i++)
        rnl_wire_varint(&tensor, RNL_PB_TENSOR_DIMS, (uint64_t)shape[i]);
    rnl_wire_varint(&tensor, RNL_PB_TENSOR_TYPE, (uint64_t)dtype);
    rnl_wire_text(&tensor, RNL_PB_TENSOR_NAME, name);
    rnl_wire_bytes(&tensor, RNL_PB_TENSOR_RAW, data, size_bytes);
    rnl_wire_message(out, RNL_PB_GRAPH_INITIALIZER, &tensor);
}

void rnl_edit_linear(rnl_text *nodes, const char *op_type, const char *x, const char *scale, const char *zero,
                     const char *y, int64_t axis)
{
    static const uint64_t type_int = 2;
    rnl_text node = {0}, attribute = {0};
    rnl_wire_text(&node, RNL_PB_NODE_INPUT, x);
    rnl_wire_text(&node, RNL_PB_NODE_INPUT, scale);
    rnl_wire_text(&node, RNL_PB_NODE_INPUT, zero);
    rnl_wire_text(&node, RNL_PB_NODE_OUTPUT, y);
    rnl_wire_text(&node, RNL_PB_NODE_NAME, y);
    rnl_wire_text(&node, RNL_PB_NODE_OP, op_type);
    if (axis >= 0) {
        rnl_wire_text(&attribute, RNL_PB_ATTRIBUTE_NAME, "axis");
        rnl_wire_varint(&attribute, RNL_PB_ATTRIBUTE_INT, (uint64_t)axis);
        rnl_wire_varint(&attribute, RNL_PB_ATTRIBUTE_TYPE, type_int);
        rnl_wire_message(&node, RNL_PB_NODE_ATTRIBUTE, &attribute);
    }
    rnl_wire_message(nodes, RNL_PB_GRAPH_NODE, &node);
}

/* ---- values that are quantised --------------------------------------------------------------------------------- */

/* Only such an output is the quantised value itself; what comes before it has a name of its own then. */
static bool is_renamed(const rnl_edit_value *value)
{
    return value->is_quantised && value->is_integer && value->is_output;
}

/* What computes the value writes this; `quantised`: what its readers read. */
static void name_value(const rnl_quantizer *q, uint32_t index, bool quantised, rnl_text *out)
{
    const rnl_edit_value *value = &q->values[index];
    if (value->is_quantised && quantised != is_renamed(value))
        rnl_edit_name(q, index, "_float", out);
    else
        rnl_text_add(out, "%s", value->name);
}

static rnl_status add_scale(emitter *e, uint32_t index, const char *scale_name, const char *zero_name)
{
    const bool is_signed = e->q->options.signed_activations;
    rnl_edit_scale scale;
    TRY(rnl_edit_scale_of(e->q, index, &scale));
    const int8_t zero_signed = (int8_t)scale.zero;
    const uint8_t zero = (uint8_t)scale.zero;
    rnl_edit_tensor(&e->tensors, scale_name, RNL_F32, NULL, 0, &scale.scale, sizeof scale.scale);
    rnl_edit_tensor(&e->tensors, zero_name, is_signed ? RNL_I8 : RNL_U8, NULL, 0,
                    is_signed ? (const void *)&zero_signed : &zero, 1);
    return RNL_OK;
}

/* QuantizeLinear and DequantizeLinear of a value, behind what computes it. */
static rnl_status add_pair(emitter *e, uint32_t index)
{
    rnl_text names[5] = {{0}, {0}, {0}, {0}, {0}};
    rnl_status status = RNL_OK;
    if (!e->q->values[index].is_quantised)
        return RNL_OK;
    name_value(e->q, index, false, &names[0]);
    rnl_edit_name(e->q, index, "_scale", &names[1]);
    rnl_edit_name(e->q, index, "_zero", &names[2]);
    rnl_edit_name(e->q, index, "", &names[3]);
    name_value(e->q, index, true, &names[4]);
    for (int i = 0; i < 5; i++)
        GOTO(names[i].status);
    GOTO(add_scale(e, index, names[1].data, names[2].data));
    rnl_edit_linear(&e->body, "QuantizeLinear", names[0].data, names[1].data, names[2].data, names[3].data, -1);
    rnl_edit_linear(&e->body, "DequantizeLinear", names[3].data, names[1].data, names[2].data, names[4].data, -1);
done:
    for (int i = 0; i < 5; i++)
        rnl_text_free(&names[i]);
    return status;
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

static void add_end(const rnl_quantizer *q, uint32_t number, uint32_t value, bool quantised, rnl_text *out)
{
    rnl_text name = {0};
    if (value == RNL_NO_VALUE)
        rnl_text_add(&name, "%s", "");
    else
        name_value(q, value, quantised, &name);
    out->status = out->status == RNL_OK ? name.status : out->status;
    rnl_wire_bytes(out, number, name.data, name.length);
    rnl_text_free(&name);
}

static void add_inputs(emitter *e, const rnl_edit_node *node, uint32_t from, rnl_text *out)
{
    for (uint32_t i = from; i < node->input_count; i++) {
        const uint32_t value = node->inputs[i];
        const bool quantised = value != RNL_NO_VALUE && rnl_edit_reads_quantised(e->q, node, i);
        add_end(e->q, RNL_PB_NODE_INPUT, value, quantised, out);
        if (value != RNL_NO_VALUE)
            e->uses[value]++;
    }
}

static bool is_dropped(const emitter *e, const rnl_edit_node *node, const rnl_wire_field *field)
{
    rnl_wire_field name = {0};
    char text[64];
    if (field->number != RNL_PB_NODE_ATTRIBUTE || !e->upgrades ||
        !rnl_wire_find(field->contents, RNL_PB_ATTRIBUTE_NAME, &name) || name.contents.size >= sizeof text)
        return false;
    memcpy(text, name.contents.data, name.contents.size);
    text[name.contents.size] = '\0';
    return rnl_edit_drops(e->q, node, text);
}

static rnl_status check_node(const emitter *e, const rnl_edit_node *node)
{
    const char *obstacle = e->upgrades ? rnl_edit_obstacle(e->q, node) : NULL;
    if (!obstacle)
        return RNL_OK;
    return FAIL(RNL_UNIMPLEMENTED,
                "%s has opset %d, and scales for each channel need %d, where %s '%s' %s: convert it first "
                "(onnx.version_converter)",
                e->q->path, (int)e->q->opset, RNL_QUANTIZE_OPSET, node->op_type, node->name, obstacle);
}

static rnl_status add_node(emitter *e, const rnl_edit_node *node)
{
    const rnl_edit_layer *layer = node->layer == RNL_NO_LAYER ? NULL : &e->q->layers[node->layer];
    rnl_text out = {0};
    rnl_bytes rest = node->bytes;
    rnl_wire_field field;
    rnl_status status = RNL_OK;
    GOTO(check_node(e, node));
    if (layer && (layer->is_active || layer->is_folded)) {
        add_end(e->q, RNL_PB_NODE_INPUT, node->inputs[0], rnl_edit_reads_quantised(e->q, node, 0), &out);
        e->uses[node->inputs[0]]++;
        GOTO(rnl_edit_layer_weights(e->q, layer, &e->body, &e->tensors, &out));
    } else {
        add_inputs(e, node, 0, &out);
        if (e->upgrades && node->typed)
            rnl_edit_add_inputs(e->q, node, &out, &e->tensors);
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        add_end(e->q, RNL_PB_NODE_OUTPUT, node->outputs[i], false, &out);
    while (rnl_wire_next(&rest, &field))
        if (field.number != RNL_PB_NODE_INPUT && field.number != RNL_PB_NODE_OUTPUT && !is_dropped(e, node, &field))
            rnl_wire_copy(&out, field.whole);
    rnl_wire_message(&e->body, RNL_PB_GRAPH_NODE, &out);
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != RNL_NO_VALUE)
            GOTO(add_pair(e, node->outputs[i]));
done:
    rnl_text_free(&out);
    return status;
}

/* A Constant whose tensor nobody reads any more. */
static bool is_unused(const emitter *e, const rnl_edit_node *node)
{
    const uint32_t output = node->output_count == 1 ? node->outputs[0] : RNL_NO_VALUE;
    if (!rnl_edit_is(node, "Constant") || output == RNL_NO_VALUE)
        return false;
    const rnl_edit_value *value = &e->q->values[output];
    return !e->uses[output] && value->was_read && !value->is_output && !value->is_captured;
}

/* Constants come before the nodes that read them, so that they are written when those have been. */
static rnl_status add_nodes(emitter *e)
{
    rnl_text constants = {0}, others;
    rnl_status status = RNL_OK;
    for (uint32_t i = 0; i < e->q->value_count; i++)
        if (e->q->values[i].is_input)
            GOTO(add_pair(e, i));
    for (size_t i = 0; i < e->q->node_count; i++)
        if (!e->q->nodes[i].is_gone && !rnl_edit_is(&e->q->nodes[i], "Constant"))
            GOTO(add_node(e, &e->q->nodes[i]));
    for (size_t i = 0; i < e->q->node_count; i++)
        if (rnl_edit_is(&e->q->nodes[i], "Constant") && !is_unused(e, &e->q->nodes[i]))
            rnl_wire_bytes(&constants, RNL_PB_GRAPH_NODE, e->q->nodes[i].bytes.data, e->q->nodes[i].bytes.size);
    others = e->body;
    GOTO(others.status);
    rnl_text_add_bytes(&constants, others.data, others.length);
    e->body = constants;
    rnl_text_free(&others);
    return e->body.status;
done:
    rnl_text_free(&constants);
    return status;
}

/* ---- the rest of the graph ------------------------------------------------------------------------------------- */

static uint32_t value_named(const emitter *e, const rnl_wire_field *field, uint32_t number)
{
    rnl_wire_field name = {0};
    rnl_wire_find(field->contents, number, &name);
    return rnl_edit_find(e->q, (const char *)name.contents.data, name.contents.size);
}

/* Contents that lie in another file are put inside: the new file may lie elsewhere. */
static rnl_status add_initializer(emitter *e, const rnl_wire_field *field, uint32_t index)
{
    const rnl_host_tensor *tensor = e->q->values[index].constant;
    rnl_wire_field location = {0};
    rnl_wire_find(field->contents, RNL_PB_TENSOR_LOCATION, &location);
    if (location.value == 0) {
        rnl_wire_copy(&e->body, field->whole);
        return RNL_OK;
    }
    if (!tensor || rnl_dtype_width(tensor->dtype) != 8 * rnl_dtype_bytes(tensor->dtype))
        return FAIL(RNL_UNIMPLEMENTED, "tensor '%s' of %s lies in another file, in elements of less than a byte",
                    e->q->values[index].name, e->q->path);
    rnl_edit_tensor(&e->body, e->q->values[index].name, tensor->dtype, tensor->shape, tensor->rank, tensor->data,
                    tensor->size_bytes);
    return RNL_OK;
}

static bool has_gone(const emitter *e, uint32_t index)
{
    const rnl_edit_value *value = &e->q->values[index];
    return value->constant && value->was_read && !e->uses[index] && !value->is_output && !value->is_captured;
}

static rnl_status add_field(emitter *e, const rnl_wire_field *field)
{
    uint32_t index = RNL_NO_VALUE;
    if (field->number == RNL_PB_GRAPH_NODE)
        return RNL_OK;
    if (field->number == RNL_PB_GRAPH_INITIALIZER)
        index = value_named(e, field, RNL_PB_TENSOR_NAME);
    else if (field->number == RNL_PB_GRAPH_INPUT || field->number == RNL_PB_GRAPH_VALUE_INFO)
        index = value_named(e, field, RNL_PB_VALUE_NAME);
    if (index != RNL_NO_VALUE && has_gone(e, index))
        return RNL_OK;
    if (field->number == RNL_PB_GRAPH_VALUE_INFO && index != RNL_NO_VALUE && !e->q->values[index].constant &&
        e->q->values[index].producer == RNL_NO_NODE) /* folded */
        return RNL_OK;
    if (field->number == RNL_PB_GRAPH_INITIALIZER && index != RNL_NO_VALUE)
        return add_initializer(e, field, index);
    rnl_wire_copy(&e->body, field->whole);
    return RNL_OK;
}

static void add_output(emitter *e, uint32_t index)
{
    static const uint64_t type_float = 1;
    rnl_text name = {0}, value = {0}, type = {0}, tensor = {0};
    name_value(e->q, index, true, &name);
    rnl_wire_bytes(&value, RNL_PB_VALUE_NAME, name.data, name.length);
    rnl_wire_varint(&tensor, RNL_PB_TENSOR_TYPE_ELEMENT, type_float);
    rnl_wire_message(&type, RNL_PB_TYPE_TENSOR, &tensor);
    rnl_wire_message(&value, RNL_PB_VALUE_TYPE, &type);
    e->body.status = e->body.status == RNL_OK ? name.status : e->body.status;
    rnl_wire_message(&e->body, RNL_PB_GRAPH_OUTPUT, &value);
    rnl_text_free(&name);
}

static rnl_status add_graph(emitter *e, rnl_quantizer_form form)
{
    rnl_bytes rest = e->q->body;
    rnl_wire_field field;
    TRY(add_nodes(e));
    while (rnl_wire_next(&rest, &field))
        TRY(add_field(e, &field));
    rnl_text_add_bytes(&e->body, e->tensors.data, e->tensors.length);
    for (size_t i = 0; form != RNL_QUANTIZER_FILE && i < e->q->shown_count; i++)
        add_output(e, e->q->shown[i]);
    return e->tensors.status == RNL_OK ? e->body.status : e->tensors.status;
}

/* ---- the model ------------------------------------------------------------------------------------------------- */

/* The default domain's, raised. */
static void add_opset(emitter *e, const rnl_wire_field *field, rnl_text *out)
{
    rnl_wire_field domain = {0};
    rnl_text opset = {0};
    rnl_wire_find(field->contents, RNL_PB_OPSET_DOMAIN, &domain);
    const bool is_default =
        domain.contents.size == 0 || (domain.contents.size == 7 && memcmp(domain.contents.data, "ai.onnx", 7) == 0);
    if (!e->upgrades || !is_default) {
        rnl_wire_copy(out, field->whole);
        return;
    }
    rnl_wire_text(&opset, RNL_PB_OPSET_DOMAIN, "");
    rnl_wire_varint(&opset, RNL_PB_OPSET_VERSION, RNL_QUANTIZE_OPSET);
    rnl_wire_message(out, RNL_PB_MODEL_OPSET, &opset);
}

static void add_model(emitter *e, rnl_text *out)
{
    static const uint64_t ir_of_opset = 7;
    rnl_bytes rest = e->q->model;
    rnl_wire_field field;
    while (rnl_wire_next(&rest, &field)) {
        if (field.number == RNL_PB_MODEL_GRAPH)
            rnl_wire_message(out, RNL_PB_MODEL_GRAPH, &e->body);
        else if (field.number == RNL_PB_MODEL_OPSET)
            add_opset(e, &field, out);
        else if (field.number == RNL_PB_MODEL_IR && e->upgrades && field.value < ir_of_opset)
            rnl_wire_varint(out, RNL_PB_MODEL_IR, ir_of_opset);
        else
            rnl_wire_copy(out, field.whole);
    }
}

rnl_status rnl_edit_emit(rnl_quantizer *q, rnl_quantizer_form form, rnl_text *out)
{
    rnl_status status = RNL_OK;
    emitter e = {.q = q, .upgrades = form != RNL_QUANTIZER_FLOAT && q->opset < RNL_QUANTIZE_OPSET};
    GOTO(rnl_alloc(q->value_count + 1, sizeof *e.uses, &e.uses));
    GOTO(add_graph(&e, form));
    add_model(&e, out);
    GOTO(out->status);
    if (out->length > INT32_MAX)
        GOTO(FAIL(RNL_RESOURCE_EXHAUSTED, "%s would have %zu bytes quantised, and a model in one file at most 2 GiB",
                  q->path, out->length));
done:
    rnl_free(e.uses);
    rnl_text_free(&e.body);
    rnl_text_free(&e.tensors);
    return status;
}
