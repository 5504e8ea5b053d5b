/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX messages for tests, by ONNX's published field numbers. */
#ifndef RUNNEL_TESTS_PROTO_ONNX_H
#define RUNNEL_TESTS_PROTO_ONNX_H

#include "support/proto_write.h"

enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { MODEL_METADATA = 14, MODEL_FUNCTIONS = 25 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_DOC = 10, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { GRAPH_VALUE_INFO = 13, GRAPH_SPARSE = 15 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum { NODE_OVERLOAD = 8 };
enum { ATTR_NAME = 1, ATTR_F = 2, ATTR_I = 3, ATTR_S = 4, ATTR_T = 5, ATTR_G = 6, ATTR_FLOATS = 7, ATTR_INTS = 8 };
enum { ATTR_STRINGS = 9, ATTR_TENSORS = 10, ATTR_GRAPHS = 11, ATTR_TYPE = 20, ATTR_REFERENCE = 21, ATTR_SPARSE = 22 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_SEGMENT = 3, TENSOR_FLOATS = 4, TENSOR_INT32 = 5, TENSOR_STRINGS = 6 };
enum { TENSOR_INT64 = 7, TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_DOUBLES = 10, TENSOR_UINT64 = 11 };
enum { TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

/* ValueInfoProto as a graph's input or output (`field`). rank SIZE_MAX: no shape. -1: neither value nor name. */
void onnx_value(proto *graph, uint32_t field, const char *name, int type, size_t rank, const int64_t *shape);
/* A node with space-separated inputs and outputs; "-" is an empty name. Takes over `attributes`, NODE_ATTRIBUTE fields
 * (NULL: none). */
void onnx_node(proto *graph, const char *op, const char *name, const char *inputs, const char *outputs,
               proto *attributes);
/* The same of another domain, which the model has to import. */
void onnx_node_of(proto *graph, const char *domain, const char *op, const char *name, const char *inputs,
                  const char *outputs, proto *attributes);
void onnx_import(proto *model, const char *domain, int64_t opset);
/* Append a NODE_ATTRIBUTE field to `attributes`. */
void onnx_attribute_int(proto *attributes, const char *name, int64_t value);
void onnx_attribute_float(proto *attributes, const char *name, float value);
void onnx_attribute_text(proto *attributes, const char *name, const char *value);
void onnx_attribute_ints(proto *attributes, const char *name, const int64_t *values, size_t count);
void onnx_attribute_tensor(proto *attributes, const char *name, proto *tensor);
/* TensorProto without data. */
proto onnx_tensor(const char *name, int type, size_t rank, const int64_t *shape);
proto onnx_tensor_raw(const char *name, int type, size_t rank, const int64_t *shape, const void *data, size_t size);
/* ModelProto: IR 8 and one opset of the default domain; takes over the graph. */
proto onnx_model(proto *graph, int64_t opset);
/* key/value as field `field` of `message`. */
void onnx_entry(proto *message, uint32_t field, const char *key, const char *value);
/* "Relu" from x to y, both float32 of 2x3: the smallest sound graph. */
proto onnx_small_graph(void);
/* A model that uses most of what the reader knows, in a few hundred bytes. */
proto onnx_rich_model(void);

#endif
