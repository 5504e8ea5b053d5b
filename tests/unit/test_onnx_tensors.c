/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and attributes of sound files: every type, in every way that ONNX has to write it. */
#include "graph/graph.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { F32 = 1, U8, I8, U16, I16, I32, I64, BOOL = 9, F16, F64, U32, U64, BF16 = 16, U4 = 21, I4, F4, U2 = 25, I2 };

static proto model; /* the graph's memory */
static rnl_graph *graph;

static void setup(void)
{
    model = (proto){0};
    graph = NULL;
}

static void teardown(void)
{
    rnl_graph_release(graph);
    proto_free(&model);
}

static void load(proto *graph_message, int64_t opset)
{
    teardown();
    model = onnx_model(graph_message, opset);
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
}

/* A graph of one Add of x and the initialiser; returns what the reader made of the initialiser. */
static const rnl_host_tensor *load_initializer(proto *tensor)
{
    proto message = {0};
    onnx_node(&message, "Add", "add", "x w", "y", NULL);
    proto_message(&message, GRAPH_INITIALIZER, tensor);
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "y", F32, 0, NULL);
    load(&message, 13);
    for (size_t i = 0; i < graph->value_count; i++)
        if (strcmp(graph->values[i].name, "w") == 0)
            return graph->values[i].constant;
    return NULL;
}

static void check_tensor(const rnl_host_tensor *tensor, int dtype, const void *data, size_t size)
{
    ck_assert_ptr_nonnull(tensor);
    ck_assert_int_eq(tensor->dtype, dtype);
    ck_assert_uint_eq(tensor->size_bytes, size);
    ck_assert_mem_eq(tensor->data, data, size);
}

/* ---- Initialisers of all types, raw and typed, packed and not ---- */

START_TEST(test_raw_is_a_view)
{
    static const float data[4] = {1, 2, 3, NAN};
    proto tensor = onnx_tensor_raw("w", F32, 2, (const int64_t[]){2, 2}, data, sizeof data);
    const rnl_host_tensor *made = load_initializer(&tensor);
    check_tensor(made, RNL_F32, data, sizeof data);
    ck_assert_uint_eq(made->rank, 2);
    const uint8_t *at = made->data;
    ck_assert(at > model.data && at < model.data + model.size);
}
END_TEST

START_TEST(test_packed_floats_are_a_view)
{
    static const float data[3] = {1, 2, 3};
    proto tensor = onnx_tensor("w", F32, 1, (const int64_t[]){3});
    proto_bytes(&tensor, TENSOR_FLOATS, data, sizeof data);
    const rnl_host_tensor *made = load_initializer(&tensor);
    check_tensor(made, RNL_F32, data, sizeof data);
    const uint8_t *at = made->data;
    ck_assert(at > model.data && at < model.data + model.size);
}
END_TEST

START_TEST(test_floats_in_pieces)
{
    static const float data[5] = {1, 2, 3, 4, 5};
    proto tensor = onnx_tensor("w", F32, 1, (const int64_t[]){5});
    proto_float(&tensor, TENSOR_FLOATS, 1);
    proto_bytes(&tensor, TENSOR_FLOATS, data + 1, 8);
    proto_bytes(&tensor, TENSOR_FLOATS, data + 3, 4);
    proto_float(&tensor, TENSOR_FLOATS, 5);
    check_tensor(load_initializer(&tensor), RNL_F32, data, sizeof data);
    tensor = onnx_tensor("w", F32, 1, (const int64_t[]){1});
    proto_float(&tensor, TENSOR_FLOATS, 1);
    check_tensor(load_initializer(&tensor), RNL_F32, data, 4);
}
END_TEST

START_TEST(test_doubles)
{
    static const double data[3] = {1.5, -2.5, INFINITY};
    proto tensor = onnx_tensor("w", F64, 1, (const int64_t[]){3});
    proto_bytes(&tensor, TENSOR_DOUBLES, data, sizeof data);
    check_tensor(load_initializer(&tensor), RNL_F64, data, sizeof data);
    tensor = onnx_tensor("w", F64, 1, (const int64_t[]){3});
    for (size_t i = 0; i < 3; i++)
        proto_double(&tensor, TENSOR_DOUBLES, data[i]);
    check_tensor(load_initializer(&tensor), RNL_F64, data, sizeof data);
}
END_TEST

/* The low bits of a byte come first; those left over in the last one mean nothing. */
START_TEST(test_less_than_a_byte)
{
    static const struct {
        int type;
        int64_t count, packed[2];
        int8_t elements[6];
    } cases[] = {
        {I4, 3, {0x8f, 0xf7}, {-1, -8, 7}},        {U4, 3, {0x8f, 0xf7}, {15, 8, 7}},
        {F4, 4, {0x8f, 0x07}, {15, 8, 7, 0}},      {I2, 6, {0xe4, 0xf6}, {0, 1, -2, -1, -2, 1}},
        {U2, 6, {0xe4, 0xf6}, {0, 1, 2, 3, 2, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint8_t bytes[2] = {(uint8_t)cases[i].packed[0], (uint8_t)cases[i].packed[1]};
        size_t count = (size_t)cases[i].count;
        proto tensor = onnx_tensor_raw("w", cases[i].type, 1, &cases[i].count, bytes, 2);
        check_tensor(load_initializer(&tensor), cases[i].type, cases[i].elements, count);
        tensor = onnx_tensor("w", cases[i].type, 1, &cases[i].count);
        proto_ints(&tensor, TENSOR_INT32, cases[i].packed, 2);
        check_tensor(load_initializer(&tensor), cases[i].type, cases[i].elements, count);
    }
    proto tensor = onnx_tensor_raw("w", I4, 1, (const int64_t[]){0}, "", 0);
    ck_assert_uint_eq(load_initializer(&tensor)->size_bytes, 0);
}
END_TEST

START_TEST(test_floats_of_eight_bits)
{
    static const int64_t codes[3] = {0x7f, 0x80, 0xff};
    static const uint8_t bytes[3] = {0x7f, 0x80, 0xff};
    for (int type = 17; type <= 24; type++) {
        if (type >= U4 && type <= F4)
            continue;
        proto tensor = onnx_tensor_raw("w", type, 1, (const int64_t[]){3}, bytes, 3);
        check_tensor(load_initializer(&tensor), type, bytes, 3);
        tensor = onnx_tensor("w", type, 1, (const int64_t[]){3});
        proto_ints(&tensor, TENSOR_INT32, codes, 3);
        check_tensor(load_initializer(&tensor), type, bytes, 3);
    }
}
END_TEST

/* The same numbers, packed and then one by one. */
static void check_varints(int type, uint32_t field, const int64_t *values, size_t count, const void *data, size_t size)
{
    int64_t shape = (int64_t)count;
    proto tensor = onnx_tensor("w", type, 1, &shape);
    proto_ints(&tensor, field, values, count);
    check_tensor(load_initializer(&tensor), type, data, size);
    tensor = onnx_tensor("w", type, 1, &shape);
    for (size_t i = 0; i < count; i++)
        proto_int(&tensor, field, values[i]);
    check_tensor(load_initializer(&tensor), type, data, size);
}

START_TEST(test_integers)
{
    check_varints(U8, TENSOR_INT32, (const int64_t[]){0, 255}, 2, (const uint8_t[]){0, 255}, 2);
    check_varints(I8, TENSOR_INT32, (const int64_t[]){-128, 127}, 2, (const int8_t[]){-128, 127}, 2);
    check_varints(U16, TENSOR_INT32, (const int64_t[]){0, 65535}, 2, (const uint16_t[]){0, 65535}, 4);
    check_varints(I16, TENSOR_INT32, (const int64_t[]){-32768, 32767}, 2, (const int16_t[]){-32768, 32767}, 4);
    check_varints(I32, TENSOR_INT32, (const int64_t[]){INT32_MIN, INT32_MAX}, 2,
                  (const int32_t[]){INT32_MIN, INT32_MAX}, 8);
    check_varints(I64, TENSOR_INT64, (const int64_t[]){INT64_MIN, INT64_MAX}, 2,
                  (const int64_t[]){INT64_MIN, INT64_MAX}, 16);
    check_varints(U32, TENSOR_UINT64, (const int64_t[]){0, UINT32_MAX}, 2, (const uint32_t[]){0, UINT32_MAX}, 8);
    check_varints(U64, TENSOR_UINT64, (const int64_t[]){0, -1}, 2, (const uint64_t[]){0, UINT64_MAX}, 16);
    check_varints(BOOL, TENSOR_INT32, (const int64_t[]){0, 1, 2}, 3, (const uint8_t[]){0, 1, 1}, 3);
    check_varints(F16, TENSOR_INT32, (const int64_t[]){0x3c00, 0xfc00}, 2, (const uint16_t[]){0x3c00, 0xfc00}, 4);
    check_varints(BF16, TENSOR_INT32, (const int64_t[]){0x3f80, 0xff80}, 2, (const uint16_t[]){0x3f80, 0xff80}, 4);
}
END_TEST

START_TEST(test_scalar_and_empty)
{
    proto tensor = onnx_tensor_raw("w", I64, 0, NULL, (const int64_t[]){42}, 8);
    const rnl_host_tensor *made = load_initializer(&tensor);
    check_tensor(made, RNL_I64, (const int64_t[]){42}, 8);
    ck_assert_uint_eq(made->rank, 0);
    tensor = onnx_tensor("w", I64, 2, (const int64_t[]){0, 3}); /* no data field at all */
    made = load_initializer(&tensor);
    ck_assert_uint_eq(made->size_bytes, 0);
    tensor = onnx_tensor_raw("w", I64, 1, (const int64_t[]){0}, "", 0);
    ck_assert_uint_eq(load_initializer(&tensor)->size_bytes, 0);
}
END_TEST

/* The dimensions packed, which ONNX's schema does not do but protocol buffers allow. */
START_TEST(test_packed_dimensions)
{
    proto tensor = {0};
    proto_ints(&tensor, TENSOR_DIMS, (const int64_t[]){1, 2, 300}, 3);
    proto_int(&tensor, TENSOR_TYPE, U8);
    proto_text(&tensor, TENSOR_NAME, "w");
    static const uint8_t data[600];
    proto_bytes(&tensor, TENSOR_RAW, data, sizeof data);
    const rnl_host_tensor *made = load_initializer(&tensor);
    ck_assert_uint_eq(made->rank, 3);
    ck_assert_int_eq(made->shape[2], 300);
}
END_TEST

/* ---- Attributes ---- */

static const rnl_node *load_node(proto *attributes)
{
    proto message = {0};
    onnx_node(&message, "Thing", "thing", "x", "y", attributes);
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "y", F32, 0, NULL);
    load(&message, 13);
    return &graph->nodes[0];
}

START_TEST(test_attribute_lists)
{
    proto attributes = {0}, attribute = {0};
    static const float floats[3] = {1, 2, 3};
    proto_text(&attribute, ATTR_NAME, "packed");
    proto_bytes(&attribute, ATTR_FLOATS, floats, sizeof floats);
    proto_int(&attribute, ATTR_TYPE, 6);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    proto_text(&attribute, ATTR_NAME, "single");
    proto_float(&attribute, ATTR_FLOATS, 4);
    proto_float(&attribute, ATTR_FLOATS, 5);
    proto_int(&attribute, ATTR_TYPE, 6);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    proto_text(&attribute, ATTR_NAME, "ints");
    proto_ints(&attribute, ATTR_INTS, (const int64_t[]){-5, 0, 1000000}, 3);
    proto_int(&attribute, ATTR_INTS, 7);
    proto_int(&attribute, ATTR_TYPE, 7);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    proto_text(&attribute, ATTR_NAME, "texts");
    proto_text(&attribute, ATTR_STRINGS, "one");
    proto_text(&attribute, ATTR_STRINGS, "");
    proto_int(&attribute, ATTR_TYPE, 8);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    onnx_attribute_text(&attributes, "text", "SAME_UPPER");
    const rnl_node *node = load_node(&attributes);
    size_t count;
    ck_assert_mem_eq(rnl_node_floats(node, "packed", &count), floats, sizeof floats);
    ck_assert_uint_eq(count, 3);
    ck_assert_mem_eq(rnl_node_floats(node, "single", &count), ((const float[]){4, 5}), 8);
    ck_assert_uint_eq(count, 2);
    ck_assert_mem_eq(rnl_node_ints(node, "ints", &count), ((const int64_t[]){-5, 0, 1000000, 7}), 32);
    ck_assert_uint_eq(count, 4);
    const rnl_attribute *texts = rnl_node_attribute(node, "texts");
    ck_assert_uint_eq(texts->count, 2);
    ck_assert_str_eq(texts->strings[0], "one");
    ck_assert_str_eq(texts->strings[1], "");
    ck_assert_str_eq(rnl_node_string(node, "text", ""), "SAME_UPPER");
    ck_assert_str_eq(rnl_node_string(node, "none", "NOTSET"), "NOTSET");
}
END_TEST

/* Before IR 2 an attribute did not say its type. */
START_TEST(test_attribute_types_are_guessed)
{
    proto attributes = {0}, attribute = {0};
    proto_text(&attribute, ATTR_NAME, "i");
    proto_int(&attribute, ATTR_I, -3);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    proto_text(&attribute, ATTR_NAME, "f");
    proto_float(&attribute, ATTR_F, 2);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    proto_text(&attribute, ATTR_NAME, "s");
    proto_text(&attribute, ATTR_S, "text");
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    proto_text(&attribute, ATTR_NAME, "ints");
    proto_int(&attribute, ATTR_INTS, 1);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    const rnl_node *node = load_node(&attributes);
    size_t count;
    ck_assert_int_eq(rnl_node_int(node, "i", 0), -3);
    ck_assert(rnl_node_float(node, "f", 0) == 2);
    ck_assert_str_eq(rnl_node_string(node, "s", ""), "text");
    ck_assert_ptr_nonnull(rnl_node_ints(node, "ints", &count));
}
END_TEST

/* Writers of proto3 leave out what is zero. */
START_TEST(test_zero_attribute_is_left_out)
{
    proto attributes = {0}, attribute = {0};
    proto_text(&attribute, ATTR_NAME, "axis");
    proto_int(&attribute, ATTR_TYPE, 2);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    ck_assert_int_eq(rnl_node_int(load_node(&attributes), "axis", -1), 0);
}
END_TEST

/* ---- Constants ---- */

static const rnl_host_tensor *load_constant(proto *attribute)
{
    proto message = {0}, attributes = {0};
    proto_message(&attributes, NODE_ATTRIBUTE, attribute);
    onnx_node(&message, "Constant", "c", "", "w", &attributes);
    onnx_node(&message, "Add", "add", "x w", "y", NULL);
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "y", F32, 0, NULL);
    load(&message, 13);
    ck_assert_uint_eq(graph->node_count, 1);
    ck_assert_uint_eq(graph->info.initializer_count, 1);
    return graph->values[graph->nodes[0].inputs[1]].constant;
}

START_TEST(test_constant_forms)
{
    proto attribute = {0};
    proto_text(&attribute, ATTR_NAME, "value_float");
    proto_float(&attribute, ATTR_F, 2.5f);
    proto_int(&attribute, ATTR_TYPE, 1);
    const rnl_host_tensor *made = load_constant(&attribute);
    check_tensor(made, RNL_F32, (const float[]){2.5f}, 4);
    ck_assert_uint_eq(made->rank, 0);
    proto_text(&attribute, ATTR_NAME, "value_int");
    proto_int(&attribute, ATTR_I, -9);
    proto_int(&attribute, ATTR_TYPE, 2);
    made = load_constant(&attribute);
    check_tensor(made, RNL_I64, (const int64_t[]){-9}, 8);
    ck_assert_uint_eq(made->rank, 0);
    proto_text(&attribute, ATTR_NAME, "value_floats");
    proto_bytes(&attribute, ATTR_FLOATS, (const float[]){1, 2}, 8);
    proto_int(&attribute, ATTR_TYPE, 6);
    made = load_constant(&attribute);
    check_tensor(made, RNL_F32, (const float[]){1, 2}, 8);
    ck_assert_uint_eq(made->rank, 1);
    ck_assert_int_eq(made->shape[0], 2);
    proto_text(&attribute, ATTR_NAME, "value_ints");
    proto_int(&attribute, ATTR_TYPE, 7); /* an empty list */
    made = load_constant(&attribute);
    ck_assert_uint_eq(made->rank, 1);
    ck_assert_int_eq(made->shape[0], 0);
}
END_TEST

START_TEST(test_identity_of_an_initialiser)
{
    proto message = {0};
    proto tensor = onnx_tensor_raw("w", F32, 1, (const int64_t[]){1}, (const float[]){3}, 4);
    proto_message(&message, GRAPH_INITIALIZER, &tensor);
    onnx_node(&message, "Identity", "i", "w", "v", NULL);
    onnx_node(&message, "Identity", "j", "v", "u", NULL);
    onnx_node(&message, "Add", "add", "x u", "y", NULL);
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "y", F32, 0, NULL);
    load(&message, 13);
    ck_assert_uint_eq(graph->node_count, 1);
    ck_assert_uint_eq(graph->info.parameter_count, 1);
    check_tensor(graph->values[graph->nodes[0].inputs[1]].constant, RNL_F32, (const float[]){3}, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_tensors");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, test_raw_is_a_view);
    tcase_add_test(cases, test_packed_floats_are_a_view);
    tcase_add_test(cases, test_floats_in_pieces);
    tcase_add_test(cases, test_doubles);
    tcase_add_test(cases, test_less_than_a_byte);
    tcase_add_test(cases, test_floats_of_eight_bits);
    tcase_add_test(cases, test_integers);
    tcase_add_test(cases, test_scalar_and_empty);
    tcase_add_test(cases, test_packed_dimensions);
    tcase_add_test(cases, test_attribute_lists);
    tcase_add_test(cases, test_attribute_types_are_guessed);
    tcase_add_test(cases, test_zero_attribute_is_left_out);
    tcase_add_test(cases, test_constant_forms);
    tcase_add_test(cases, test_identity_of_an_initialiser);
    suite_add_tcase(suite, cases);
    return test_run(suite, true);
}
