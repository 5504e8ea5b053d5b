/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are no sound models: each is refused with one sentence that names what is wrong. */
#include "graph/graph.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"

#include <stdlib.h>
#include <string.h>

enum { F32 = 1, U8 = 2, I8 = 3, I32 = 6, I64 = 7, TEXT = 8, U32 = 12, FLOAT8 = 17, INT4 = 22, UINT2 = 25 };

static void check_printable(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        ck_assert_msg(*at == '\n' || (*at >= 0x20 && *at != 0x7f), "byte %u in: %s", *at, text);
}

/* Loads an exact copy, so that a sanitizer sees a read past its end. Frees the model. */
static void refuse(proto *model, rnl_status expected, const char *part)
{
    uint8_t *copy = malloc(model->size ? model->size : 1);
    if (model->size)
        memcpy(copy, model->data, model->size);
    rnl_graph *graph;
    test_fails(expected, part, rnl_graph_load_memory(copy, model->size, &graph));
    ck_assert_ptr_null(graph);
    check_printable(rnl_last_error()->message);
    free(copy);
    proto_free(model);
}

static void refuse_graph(proto *graph, rnl_status expected, const char *part)
{
    proto model = onnx_model(graph, 13);
    refuse(&model, expected, part);
}

static void add_ends(proto *graph)
{
    onnx_value(graph, GRAPH_INPUT, "x", F32, 1, (const int64_t[]){4});
    onnx_value(graph, GRAPH_OUTPUT, "y", F32, 1, (const int64_t[]){4});
}

/* ---- No ONNX file at all ---- */

START_TEST(test_not_onnx)
{
    static const char *const texts[] = {"\x89PNG\r\n\x1a\n", "{\"a\": 1}", "#!/bin/sh\necho hello\n",
                                        "\xff\xd8\xff\xe0",  "PK\x03\x04", "\177ELF"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        proto file = {0};
        proto_raw(&file, texts[i], strlen(texts[i]));
        refuse(&file, RNL_DATA_LOSS, "is not an ONNX model");
    }
    proto empty = {0};
    refuse(&empty, RNL_DATA_LOSS, "is not an ONNX model: it is empty");
    rnl_graph *graph;
    test_fails(RNL_INVALID_ARGUMENT, "NULL", rnl_graph_load_memory(NULL, 5, &graph));
    test_fails(RNL_INVALID_ARGUMENT, "NULL", rnl_graph_load(NULL, &graph));
    test_fails(RNL_NOT_FOUND, "/nowhere/model.onnx", rnl_graph_load("/nowhere/model.onnx", &graph));
}
END_TEST

START_TEST(test_model_fields)
{
    proto model = {0}, graph = onnx_small_graph();
    proto_int(&model, MODEL_IR, 8);
    refuse(&model, RNL_INVALID_ARGUMENT, "no graph");
    proto_message(&model, MODEL_GRAPH, &graph);
    refuse(&model, RNL_INVALID_ARGUMENT, "no IR version");
    graph = onnx_small_graph();
    proto_int(&model, MODEL_IR, 8);
    proto_message(&model, MODEL_GRAPH, &graph);
    refuse(&model, RNL_INVALID_ARGUMENT, "opset_import");
    graph = onnx_small_graph();
    model = onnx_model(&graph, 13);
    graph = onnx_small_graph();
    proto_message(&model, MODEL_GRAPH, &graph);
    refuse(&model, RNL_INVALID_ARGUMENT, "two graphs");
}
END_TEST

START_TEST(test_opsets)
{
    static const int64_t bad[] = {-1, 0, 29, INT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        proto graph = onnx_small_graph();
        proto model = onnx_model(&graph, bad[i]);
        refuse(&model, RNL_UNIMPLEMENTED, "supported: 1 to 28");
    }
    proto graph = onnx_small_graph(), import = {0};
    proto model = onnx_model(&graph, 13);
    proto_text(&import, 1, "ai.onnx");
    proto_int(&import, 2, 14);
    proto_message(&model, MODEL_OPSET, &import);
    refuse(&model, RNL_INVALID_ARGUMENT, "with opset 13 and with 14");
    graph = onnx_small_graph();
    proto_int(&model, MODEL_IR, 8);
    proto_message(&model, MODEL_GRAPH, &graph);
    proto_text(&import, 1, "ai.onnx.ml");
    proto_int(&import, 2, 3);
    proto_message(&model, MODEL_OPSET, &import);
    refuse(&model, RNL_INVALID_ARGUMENT, "'ai.onnx' without importing it");
}
END_TEST

/* ---- Wire format ---- */

START_TEST(test_wrong_wire_types)
{
    proto model = {0}, graph = {0};
    proto_int(&model, MODEL_GRAPH, 5);
    refuse(&model, RNL_DATA_LOSS, "wrong wire type");
    proto_float(&model, MODEL_IR, 8);
    refuse(&model, RNL_DATA_LOSS, "wrong wire type");
    static const uint32_t fields[] = {GRAPH_NODE,  GRAPH_NAME,   GRAPH_INITIALIZER,
                                      GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_SPARSE};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        graph = onnx_small_graph();
        proto_int(&graph, fields[i], 1234567);
        refuse_graph(&graph, RNL_DATA_LOSS, "wrong wire type");
    }
    proto tensor = onnx_tensor("w", F32, 1, (const int64_t[]){1});
    proto_int(&tensor, TENSOR_RAW, 0x0fffffff);
    graph = onnx_small_graph();
    proto_message(&graph, GRAPH_INITIALIZER, &tensor);
    refuse_graph(&graph, RNL_DATA_LOSS, "wrong wire type");
    graph = onnx_small_graph();
    proto_tag(&graph, 40, 3); /* a group */
    refuse_graph(&graph, RNL_DATA_LOSS, "not an ONNX model");
}
END_TEST

START_TEST(test_lengths_beyond_the_end)
{
    static const uint64_t lengths[] = {100000, 0x7fffffff, 0xffffffff, 0x100000000, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        proto graph = onnx_small_graph();
        proto_tag(&graph, GRAPH_INITIALIZER, 2);
        proto_number(&graph, lengths[i]);
        refuse_graph(&graph, RNL_DATA_LOSS, "not an ONNX model");
    }
    proto graph = onnx_small_graph();
    proto_raw(&graph, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12); /* a number without an end */
    refuse_graph(&graph, RNL_DATA_LOSS, "not an ONNX model");
}
END_TEST

/* Ends nothing when the result is a model again; what counts is that nothing is read or freed wrongly. */
static void try_load(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    rnl_graph *graph;
    const rnl_operator_info *rows;
    size_t count;
    if (rnl_graph_load_memory(copy, size, &graph) == RNL_OK)
        (void)(rnl_graph_check(graph, &rows, &count) == RNL_OK);
    else
        ck_assert(rnl_last_error()->length > 0);
    rnl_graph_release(graph);
    free(copy);
}

START_TEST(test_every_truncation)
{
    proto model = onnx_rich_model();
    size_t refused = 0;
    for (size_t size = 0; size < model.size; size++) {
        rnl_graph *graph;
        try_load(model.data, size);
        refused += rnl_graph_load_memory(model.data, size, &graph) != RNL_OK;
        rnl_graph_release(graph);
    }
    ck_assert_uint_ge(refused, model.size - 3); /* but where only producer and metadata are cut off, between fields */
    proto_free(&model);
}
END_TEST

START_TEST(test_every_mutation)
{
    proto model = onnx_rich_model();
    for (size_t at = 0; at < model.size; at++) {
        uint8_t sound = model.data[at];
        for (unsigned value = 0; value < 256; value++) {
            model.data[at] = (uint8_t)value;
            try_load(model.data, model.size);
        }
        model.data[at] = sound;
    }
    proto_free(&model);
}
END_TEST

/* A field that is repeated, left out or moved: cuts and repeats at every pair of places. */
START_TEST(test_cuts_and_repeats)
{
    proto model = onnx_rich_model();
    for (size_t from = 0; from < model.size; from += 3)
        for (size_t to = from + 1; to < model.size; to += 7) {
            proto changed = {0};
            proto_raw(&changed, model.data, from);
            proto_raw(&changed, model.data + to, model.size - to);
            try_load(changed.data, changed.size);
            proto_free(&changed);
            proto_raw(&changed, model.data, to);
            proto_raw(&changed, model.data + from, model.size - from);
            try_load(changed.data, changed.size);
            proto_free(&changed);
        }
    proto_free(&model);
}
END_TEST

/* ---- Names and edges ---- */

START_TEST(test_cycles)
{
    proto graph = {0};
    onnx_node(&graph, "Add", "loop", "x y", "y", NULL);
    add_ends(&graph);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "(Add 'loop') depends on its own output");
    onnx_node(&graph, "Add", "a", "x c", "b", NULL);
    onnx_node(&graph, "Relu", "b", "b", "c", NULL);
    onnx_node(&graph, "Relu", "c", "c", "y", NULL);
    add_ends(&graph);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "depends on its own output");
}
END_TEST

START_TEST(test_missing_values)
{
    proto graph = {0};
    onnx_node(&graph, "Add", "add", "x weights", "y", NULL);
    add_ends(&graph);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT,
                 "node 0 (Add 'add') reads 'weights', which nothing in the graph produces");
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&graph, GRAPH_OUTPUT, "y", F32, 0, NULL);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "produces its output 'y'");
    onnx_node(&graph, "Relu", "relu", "x", "y", NULL);
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 0, NULL);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "no outputs");
}
END_TEST

START_TEST(test_duplicate_producers)
{
    proto graph = onnx_small_graph();
    onnx_node(&graph, "Relu", "again", "x", "y", NULL);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "'y'");
    graph = onnx_small_graph();
    onnx_node(&graph, "Relu", "again", "y", "x", NULL);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "'x'");
    graph = onnx_small_graph();
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 0, NULL);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "'x'");
    graph = onnx_small_graph();
    proto tensor = onnx_tensor_raw("y", U8, 1, (const int64_t[]){1}, "a", 1);
    proto_message(&graph, GRAPH_INITIALIZER, &tensor);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "'y'");
    graph = onnx_small_graph();
    for (int i = 0; i < 2; i++) {
        tensor = onnx_tensor_raw("w", U8, 1, (const int64_t[]){1}, "a", 1);
        proto_message(&graph, GRAPH_INITIALIZER, &tensor);
    }
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "'w'");
    onnx_node(&graph, "Split", "split", "x", "y y", NULL);
    add_ends(&graph);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "'y'");
}
END_TEST

START_TEST(test_bad_names)
{
    proto graph = {0}, node = {0};
    proto_text(&node, NODE_INPUT, "x");
    proto_bytes(&node, NODE_OUTPUT, "y\0z", 3);
    proto_text(&node, NODE_OP, "Relu");
    proto_message(&graph, GRAPH_NODE, &node);
    add_ends(&graph);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "NUL byte");
    proto_text(&node, NODE_OUTPUT, "y");
    proto_message(&graph, GRAPH_NODE, &node);
    add_ends(&graph);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "names no operator");
    char name[1000];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    onnx_node(&graph, name, "", "x", "y", NULL);
    add_ends(&graph);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "999 bytes");
    onnx_node(&graph, "Add", "\x1b[31m\xff\xc0\x80", "x \xed\xa0\x80\x07", "y", NULL);
    add_ends(&graph);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "(Add '\\x1b[31m\\xff\\xc0\\x80') reads '\\xed\\xa0\\x80\\x07'");
    onnx_value(&graph, GRAPH_INPUT, "", F32, 0, NULL);
    add_ends(&graph);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "without a name");
}
END_TEST

/* ---- Tensors ---- */

static void refuse_tensor(proto *tensor, rnl_status expected, const char *part)
{
    proto graph = onnx_small_graph();
    proto_message(&graph, GRAPH_INITIALIZER, tensor);
    refuse_graph(&graph, expected, part);
}

START_TEST(test_tensor_shapes)
{
    static const int64_t huge[2] = {INT64_C(1) << 40, INT64_C(1) << 40}, wide[2] = {INT64_MAX, 1};
    proto tensor = onnx_tensor_raw("w", F32, 2, huge, "", 0);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "too large");
    tensor = onnx_tensor_raw("w", F32, 2, wide, "", 0);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "too large");
    tensor = onnx_tensor_raw("w", F32, 1, huge, "abcd", 4);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "tensor 'w'");
    tensor = onnx_tensor("w", I64, 1, huge);
    proto_int(&tensor, TENSOR_INT64, 1);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "does not fit its 1 elements");
    tensor = onnx_tensor_raw("w", F32, 2, (const int64_t[]){2, -1}, "", 0);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "its dimension 1 is -1");
    tensor = onnx_tensor_raw("w", U8, 9, (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, "a", 1);
    refuse_tensor(&tensor, RNL_UNIMPLEMENTED, "9 dimensions");
    proto graph = onnx_small_graph();
    onnx_value(&graph, GRAPH_INPUT, "z", F32, 9, (const int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1});
    refuse_graph(&graph, RNL_UNIMPLEMENTED, "an input of 9 dimensions");
    graph = onnx_small_graph();
    onnx_value(&graph, GRAPH_INPUT, "z", F32, 2, huge);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "an input whose shape is too large");
}
END_TEST

START_TEST(test_tensor_sizes)
{
    proto tensor = onnx_tensor_raw("w", F32, 1, (const int64_t[]){3}, "0123456789a", 11);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "its shape 3 of float32 needs 12 bytes, but it has 11");
    tensor = onnx_tensor_raw("w", F32, 1, (const int64_t[]){3}, "0123456789abcdef", 16);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "has 16");
    tensor = onnx_tensor("w", F32, 1, (const int64_t[]){3});
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "does not fit its 0 elements");
    tensor = onnx_tensor("w", F32, 1, (const int64_t[]){3});
    proto_bytes(&tensor, TENSOR_FLOATS, "0123456", 7);
    refuse_tensor(&tensor, RNL_DATA_LOSS, "half a number");
    tensor = onnx_tensor("w", F32, 1, (const int64_t[]){3}); /* in the field of another type */
    proto_ints(&tensor, TENSOR_INT64, (const int64_t[]){1, 2, 3}, 3);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "does not fit its 0 elements");
    tensor = onnx_tensor("w", I8, 1, (const int64_t[]){2});
    proto_ints(&tensor, TENSOR_INT32, (const int64_t[]){1, 128}, 2);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "its element 1, 128, does not fit into int8");
    tensor = onnx_tensor("w", U32, 1, (const int64_t[]){1});
    proto_ints(&tensor, TENSOR_UINT64, (const int64_t[]){INT64_C(1) << 32}, 1);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "does not fit into uint32");
}
END_TEST

START_TEST(test_packed_tensor_sizes)
{
    proto tensor = onnx_tensor_raw("w", INT4, 1, (const int64_t[]){3}, "abc", 3);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "its shape 3 of int4 needs 2 bytes, but it has 3");
    tensor = onnx_tensor_raw("w", UINT2, 1, (const int64_t[]){5}, "a", 1);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "its shape 5 of uint2 needs 2 bytes, but it has 1");
    tensor = onnx_tensor_raw("w", INT4, 2, (const int64_t[]){INT64_C(1) << 40, 1 << 20}, "abc", 3);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "bytes, but it has 3");
    tensor = onnx_tensor("w", INT4, 1, (const int64_t[]){4});
    proto_ints(&tensor, TENSOR_INT32, (const int64_t[]){1, 2, 3}, 3);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "does not fit its 3 elements");
    tensor = onnx_tensor("w", INT4, 1, (const int64_t[]){4});
    proto_ints(&tensor, TENSOR_INT32, (const int64_t[]){1, 256}, 2);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "its element 1, 256, does not fit into int4");
    tensor = onnx_tensor("w", FLOAT8, 1, (const int64_t[]){1});
    proto_ints(&tensor, TENSOR_INT32, (const int64_t[]){-129}, 1);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "its element 0, -129, does not fit into float8e4m3fn");
}
END_TEST

START_TEST(test_tensor_kinds)
{
    static const int types[] = {0, -1, 29, 1000000};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        proto tensor = onnx_tensor_raw("w", types[i], 0, NULL, "abcd", 4);
        refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "none of ONNX's");
    }
    proto tensor = onnx_tensor_raw("w", F32, 0, NULL, "abcd", 4);
    proto_int(&tensor, TENSOR_LOCATION, 2);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "data location");
    tensor = onnx_tensor_raw("w", F32, 0, NULL, "abcd", 4);
    proto_text(&tensor, TENSOR_SEGMENT, "");
    refuse_tensor(&tensor, RNL_UNIMPLEMENTED, "segment");
    tensor = onnx_tensor_raw("", F32, 0, NULL, "abcd", 4);
    refuse_tensor(&tensor, RNL_INVALID_ARGUMENT, "without a name");
    proto graph = onnx_small_graph();
    onnx_value(&graph, GRAPH_INPUT, "z", 29, 0, NULL);
    refuse_graph(&graph, RNL_INVALID_ARGUMENT, "element type 29");
}
END_TEST

/* ---- Nodes ---- */

static void refuse_attributes(proto *attributes, rnl_status expected, const char *part)
{
    proto graph = {0};
    onnx_node(&graph, "Relu", "relu", "x", "y", attributes);
    add_ends(&graph);
    refuse_graph(&graph, expected, part);
}

static proto one_attribute(const char *name, int type)
{
    proto attributes = {0}, attribute = {0};
    proto_text(&attribute, ATTR_NAME, name);
    proto_int(&attribute, ATTR_TYPE, type);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    return attributes;
}

START_TEST(test_bad_attributes)
{
    proto attributes = one_attribute("a", 15);
    refuse_attributes(&attributes, RNL_INVALID_ARGUMENT, "none of ONNX's");
    attributes = one_attribute("a", -1);
    refuse_attributes(&attributes, RNL_INVALID_ARGUMENT, "none of ONNX's");
    attributes = one_attribute("a", 0);
    refuse_attributes(&attributes, RNL_INVALID_ARGUMENT, "none of ONNX's");
    attributes = one_attribute("", 2);
    refuse_attributes(&attributes, RNL_INVALID_ARGUMENT, "no name");
    attributes = one_attribute("a", 4);
    refuse_attributes(&attributes, RNL_INVALID_ARGUMENT, "'a' has no tensor");
    onnx_attribute_int(&attributes, "axis", 0);
    onnx_attribute_int(&attributes, "axis", 1);
    refuse_attributes(&attributes, RNL_INVALID_ARGUMENT, "'axis' is given twice");
    proto attribute = {0};
    proto_text(&attribute, ATTR_NAME, "a");
    proto_text(&attribute, ATTR_REFERENCE, "alpha");
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    refuse_attributes(&attributes, RNL_INVALID_ARGUMENT, "outside of any function");
    for (int i = 0; i < 65; i++) {
        char name[8] = {'a', (char)('0' + i / 10), (char)('0' + i % 10)};
        onnx_attribute_int(&attributes, name, i);
    }
    refuse_attributes(&attributes, RNL_RESOURCE_EXHAUSTED, "more than 64 attributes");
}
END_TEST

START_TEST(test_too_many_inputs)
{
    proto graph = {0}, node = {0};
    for (int i = 0; i < RNL_MAX_NODE_INPUTS + 1; i++)
        proto_text(&node, NODE_INPUT, "x");
    proto_text(&node, NODE_OUTPUT, "y");
    proto_text(&node, NODE_OP, "Sum");
    proto_message(&graph, GRAPH_NODE, &node);
    add_ends(&graph);
    refuse_graph(&graph, RNL_UNIMPLEMENTED, "more than 4096 inputs");
    for (int i = 0; i < RNL_MAX_NODE_INPUTS + 1; i++)
        proto_text(&node, NODE_OUTPUT, "");
    proto_message(&graph, GRAPH_NODE, &node);
    refuse_graph(&graph, RNL_UNIMPLEMENTED, "more than 4096 outputs");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_hostile");
    TCase *cases = tcase_create("all");
    tcase_set_timeout(cases, 100);
    tcase_add_test(cases, test_not_onnx);
    tcase_add_test(cases, test_model_fields);
    tcase_add_test(cases, test_opsets);
    tcase_add_test(cases, test_wrong_wire_types);
    tcase_add_test(cases, test_lengths_beyond_the_end);
    tcase_add_test(cases, test_every_truncation);
    tcase_add_test(cases, test_every_mutation);
    tcase_add_test(cases, test_cuts_and_repeats);
    tcase_add_test(cases, test_cycles);
    tcase_add_test(cases, test_missing_values);
    tcase_add_test(cases, test_duplicate_producers);
    tcase_add_test(cases, test_bad_names);
    tcase_add_test(cases, test_tensor_shapes);
    tcase_add_test(cases, test_tensor_sizes);
    tcase_add_test(cases, test_packed_tensor_sizes);
    tcase_add_test(cases, test_tensor_kinds);
    tcase_add_test(cases, test_bad_attributes);
    tcase_add_test(cases, test_too_many_inputs);
    suite_add_tcase(suite, cases);
    return test_run(suite, true);
}
