/* SPDX-License-Identifier: Apache-2.0 */
#include "support/proto_onnx.h"

#include <string.h>

enum { INFO_NAME = 1, INFO_TYPE = 2, TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2, SHAPE_DIM = 1 };
enum { F32 = 1, I64 = 7 };

void onnx_value(proto *graph, uint32_t field, const char *name, int type, size_t rank, const int64_t *shape)
{
    proto info = {0}, outer = {0}, tensor = {0}, dims = {0};
    for (size_t i = 0; rank != SIZE_MAX && i < rank; i++) {
        proto dim = {0};
        if (shape[i] >= 0)
            proto_int(&dim, 1, shape[i]);
        proto_message(&dims, SHAPE_DIM, &dim);
    }
    proto_int(&tensor, TENSOR_ELEMENT, type);
    if (rank != SIZE_MAX)
        proto_message(&tensor, TENSOR_SHAPE, &dims);
    proto_message(&outer, TYPE_TENSOR, &tensor);
    proto_text(&info, INFO_NAME, name);
    proto_message(&info, INFO_TYPE, &outer);
    proto_message(graph, field, &info);
    proto_free(&dims);
}

static void add_names(proto *node, uint32_t field, const char *names)
{
    while (*names) {
        size_t length = strcspn(names, " ");
        bool empty = length == 1 && names[0] == '-';
        proto_bytes(node, field, names, empty ? 0 : length);
        names += length + (names[length] == ' ');
    }
}

void onnx_node_of(proto *graph, const char *domain, const char *op, const char *name, const char *inputs,
                  const char *outputs, proto *attributes)
{
    proto node = {0};
    add_names(&node, NODE_INPUT, inputs);
    add_names(&node, NODE_OUTPUT, outputs);
    proto_text(&node, NODE_NAME, name);
    proto_text(&node, NODE_OP, op);
    if (attributes) {
        proto_raw(&node, attributes->data, attributes->size);
        proto_free(attributes);
    }
    if (domain[0])
        proto_text(&node, NODE_DOMAIN, domain);
    proto_message(graph, GRAPH_NODE, &node);
}

void onnx_node(proto *graph, const char *op, const char *name, const char *inputs, const char *outputs,
               proto *attributes)
{
    onnx_node_of(graph, "", op, name, inputs, outputs, attributes);
}

static void finish_attribute(proto *attributes, proto *attribute, const char *name, int type)
{
    proto_text(attribute, ATTR_NAME, name);
    proto_int(attribute, ATTR_TYPE, type);
    proto_message(attributes, NODE_ATTRIBUTE, attribute);
}

void onnx_attribute_int(proto *attributes, const char *name, int64_t value)
{
    proto attribute = {0};
    proto_int(&attribute, ATTR_I, value);
    finish_attribute(attributes, &attribute, name, 2);
}

void onnx_attribute_float(proto *attributes, const char *name, float value)
{
    proto attribute = {0};
    proto_float(&attribute, ATTR_F, value);
    finish_attribute(attributes, &attribute, name, 1);
}

void onnx_attribute_text(proto *attributes, const char *name, const char *value)
{
    proto attribute = {0};
    proto_text(&attribute, ATTR_S, value);
    finish_attribute(attributes, &attribute, name, 3);
}

void onnx_attribute_ints(proto *attributes, const char *name, const int64_t *values, size_t count)
{
    proto attribute = {0};
    for (size_t i = 0; i < count; i++) /* not packed, as ONNX's own library writes them */
        proto_int(&attribute, ATTR_INTS, values[i]);
    finish_attribute(attributes, &attribute, name, 7);
}

void onnx_attribute_tensor(proto *attributes, const char *name, proto *tensor)
{
    proto attribute = {0};
    proto_message(&attribute, ATTR_T, tensor);
    finish_attribute(attributes, &attribute, name, 4);
}

proto onnx_tensor(const char *name, int type, size_t rank, const int64_t *shape)
{
    proto tensor = {0};
    for (size_t i = 0; i < rank; i++)
        proto_int(&tensor, TENSOR_DIMS, shape[i]);
    proto_int(&tensor, TENSOR_TYPE, type);
    proto_text(&tensor, TENSOR_NAME, name);
    return tensor;
}

proto onnx_tensor_raw(const char *name, int type, size_t rank, const int64_t *shape, const void *data, size_t size)
{
    proto tensor = onnx_tensor(name, type, rank, shape);
    proto_bytes(&tensor, TENSOR_RAW, data, size);
    return tensor;
}

void onnx_import(proto *model, const char *domain, int64_t opset)
{
    proto import = {0};
    proto_text(&import, 1, domain);
    proto_int(&import, 2, opset);
    proto_message(model, MODEL_OPSET, &import);
}

proto onnx_model(proto *graph, int64_t opset)
{
    proto model = {0};
    proto_int(&model, MODEL_IR, 8);
    proto_message(&model, MODEL_GRAPH, graph);
    onnx_import(&model, "", opset);
    return model;
}

void onnx_entry(proto *message, uint32_t field, const char *key, const char *value)
{
    proto entry = {0};
    proto_text(&entry, ENTRY_KEY, key);
    proto_text(&entry, ENTRY_VALUE, value);
    proto_message(message, field, &entry);
}

proto onnx_small_graph(void)
{
    proto graph = {0};
    proto_text(&graph, GRAPH_NAME, "small");
    onnx_node(&graph, "Relu", "relu", "x", "y", NULL);
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 2, (const int64_t[]){2, 3});
    onnx_value(&graph, GRAPH_OUTPUT, "y", F32, 2, (const int64_t[]){2, 3});
    return graph;
}

proto onnx_rich_model(void)
{
    static const float weights[6] = {1, -2, 3, -4, 5, -6};
    proto graph = {0}, attributes = {0};
    proto tensor = onnx_tensor_raw("", F32, 1, (const int64_t[]){2}, weights, 8);
    onnx_attribute_tensor(&attributes, "value", &tensor);
    onnx_node(&graph, "Constant", "c", "", "bias", &attributes);
    onnx_attribute_int(&attributes, "transB", 0);
    onnx_attribute_float(&attributes, "alpha", 0.5f);
    onnx_node(&graph, "Gemm", "gemm", "x w bias", "g", &attributes);
    onnx_attribute_ints(&attributes, "perm", (const int64_t[]){1, 0}, 2);
    onnx_node(&graph, "Transpose", "turn", "g", "t", &attributes);
    onnx_node(&graph, "Reshape", "reshape", "t shape", "y", NULL);
    proto_text(&graph, GRAPH_NAME, "rich");
    tensor = onnx_tensor_raw("w", F32, 2, (const int64_t[]){3, 2}, weights, sizeof weights);
    proto_message(&graph, GRAPH_INITIALIZER, &tensor);
    tensor = onnx_tensor("shape", I64, 1, (const int64_t[]){1});
    proto_ints(&tensor, TENSOR_INT64, (const int64_t[]){-1}, 1);
    proto_message(&graph, GRAPH_INITIALIZER, &tensor);
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 2, (const int64_t[]){-1, 3});
    onnx_value(&graph, GRAPH_OUTPUT, "y", F32, SIZE_MAX, NULL);
    proto model = onnx_model(&graph, 13);
    proto_text(&model, MODEL_PRODUCER, "tests");
    onnx_entry(&model, MODEL_METADATA, "key", "value");
    return model;
}
