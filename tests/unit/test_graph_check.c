/* SPDX-License-Identifier: Apache-2.0 */
/* What the check says of models that load but cannot run, or can. */
#include "graph/op.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"

#include <stdio.h>
#include <string.h>

enum { F32 = 1, I32 = 6, I64 = 7, TEXT = 8, BOOL = 9, INT4 = 22, FLOAT6 = 27 };

static proto model, message;
static rnl_graph *graph;
static const rnl_operator_info *rows;
static size_t row_count;

static void setup(void)
{
    model = message = (proto){0};
    graph = NULL;
}

static void teardown(void)
{
    rnl_graph_release(graph);
    graph = NULL;
    proto_free(&model);
}

static void load(int64_t opset)
{
    teardown();
    model = onnx_model(&message, opset);
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
}

static void add_ends(int type)
{
    onnx_value(&message, GRAPH_INPUT, "x", type, 2, (const int64_t[]){2, 3});
    onnx_value(&message, GRAPH_OUTPUT, "y", type, 2, (const int64_t[]){2, 3});
}

static void add_import(const char *domain, int64_t version)
{
    proto import = {0};
    proto_text(&import, 1, domain);
    proto_int(&import, 2, version);
    proto_message(&model, MODEL_OPSET, &import);
}

static void accept(void)
{
    test_ok(rnl_graph_check(graph, &rows, &row_count));
    for (size_t i = 0; i < row_count; i++) {
        ck_assert_uint_eq(rows[i].unsupported_count, 0);
        ck_assert_str_eq(rows[i].reason, "");
    }
}

/* Exactly one row, with this in its reason and in the error. */
static void refuse(const char *part)
{
    test_fails(RNL_UNIMPLEMENTED, part, rnl_graph_check(graph, &rows, &row_count));
    size_t bad = 0;
    for (size_t i = 0; i < row_count; i++)
        if (rows[i].unsupported_count) {
            bad++;
            ck_assert_msg(strstr(rows[i].reason, part) != NULL, "no '%s' in: %s", part, rows[i].reason);
        }
    ck_assert_uint_eq(bad, 1);
}

/* One node from x (float32) to y. */
static void load_node(const char *op, int64_t opset, proto *attributes)
{
    onnx_node(&message, op, "n", "x", "y", attributes);
    add_ends(F32);
    load(opset);
}

START_TEST(test_rows)
{
    onnx_node(&message, "Relu", "r1", "x", "a", NULL);
    onnx_node(&message, "Abs", "a1", "a", "b", NULL);
    onnx_node(&message, "Relu", "r2", "b", "y", NULL);
    add_ends(F32);
    load(13);
    accept();
    ck_assert_uint_eq(row_count, 2);
    ck_assert_str_eq(rows[0].op_type, "Abs");
    ck_assert_uint_eq(rows[0].node_count, 1);
    ck_assert_str_eq(rows[1].op_type, "Relu");
    ck_assert_str_eq(rows[1].domain, "");
    ck_assert_uint_eq(rows[1].node_count, 2);
    for (size_t i = 0; i < 3; i++)
        ck_assert_ptr_nonnull(graph->nodes[i].schema);
}
END_TEST

START_TEST(test_unknown_operator)
{
    onnx_node(&message, "Relu", "fine", "x", "a", NULL);
    onnx_node(&message, "Frobnicate", "first", "x a", "b", NULL);
    onnx_node(&message, "Frobnicate", "second", "b", "y", NULL);
    add_ends(F32);
    load(13);
    refuse("node 1 (Frobnicate 'first'): Frobnicate of opset 13 is not supported (inputs: float32 2x3, float32)");
    ck_assert_uint_eq(row_count, 2);
    ck_assert_uint_eq(rows[0].node_count, 2);
    ck_assert_uint_eq(rows[0].unsupported_count, 2);
    ck_assert_uint_eq(graph->unsupported_count, 2);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "2 of 3 nodes cannot run"));
}
END_TEST

START_TEST(test_other_domain)
{
    proto node = {0};
    proto_text(&node, NODE_INPUT, "x");
    proto_text(&node, NODE_OUTPUT, "y");
    proto_text(&node, NODE_OP, "Relu");
    proto_text(&node, NODE_DOMAIN, "com.example");
    proto_message(&message, GRAPH_NODE, &node);
    add_ends(F32);
    model = onnx_model(&message, 13);
    add_import("com.example", 2);
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
    refuse("operators of the domain 'com.example' (opset 2) are not supported");
    ck_assert_str_eq(rows[0].domain, "com.example");
    ck_assert_ptr_null(graph->nodes[0].schema);
}
END_TEST

/* A domain that runnel knows, of which it has other operators. */
START_TEST(test_known_domain)
{
    proto node = {0};
    proto_text(&node, NODE_INPUT, "x");
    proto_text(&node, NODE_OUTPUT, "y");
    proto_text(&node, NODE_OP, "Relu");
    proto_text(&node, NODE_DOMAIN, "com.microsoft");
    proto_message(&message, GRAPH_NODE, &node);
    add_ends(F32);
    model = onnx_model(&message, 13);
    add_import("com.microsoft", 1);
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
    refuse("Relu of com.microsoft opset 1 is not supported");
}
END_TEST

/* The operators that the table has only from some opset on say so. */
START_TEST(test_opset_of_an_operator)
{
    size_t count;
    const rnl_op_schema *const *schemas = rnl_op_list("", &count);
    for (size_t i = 0; i < count; i++) {
        if (schemas[i]->since <= RNL_OPSET_MIN || rnl_op_find("", schemas[i]->op_type, schemas[i]->since - 1))
            continue;
        load_node(schemas[i]->op_type, schemas[i]->since - 1, NULL);
        refuse("is not supported; supported: opsets ");
    }
}
END_TEST

START_TEST(test_attributes)
{
    proto attributes = {0};
    onnx_attribute_int(&attributes, "axis", 1);
    load_node("Softmax", 13, &attributes);
    accept();
    onnx_attribute_int(&attributes, "frobnication", 1);
    load_node("Softmax", 13, &attributes);
    refuse("its attribute 'frobnication' is not supported");
    onnx_attribute_float(&attributes, "axis", 1);
    load_node("Softmax", 13, &attributes);
    refuse("its attribute 'axis' is a float");
    onnx_attribute_ints(&attributes, "axis", (const int64_t[]){1}, 1);
    load_node("Softmax", 13, &attributes);
    refuse("its attribute 'axis' is ints");
    proto tensor = onnx_tensor("", TEXT, 0, NULL);
    onnx_attribute_tensor(&attributes, "axis", &tensor);
    load_node("Softmax", 13, &attributes);
    refuse("its attribute 'axis' is a tensor");
    proto attribute = {0}, inner = onnx_small_graph();
    proto_text(&attribute, ATTR_NAME, "axis");
    proto_message(&attribute, ATTR_G, &inner);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    load_node("Softmax", 13, &attributes);
    refuse("its attribute 'axis' is a graph");
}
END_TEST

START_TEST(test_counts)
{
    onnx_node(&message, "Relu", "n", "x x", "y", NULL);
    add_ends(F32);
    load(13);
    refuse("it has 2 inputs and needs 1");
    onnx_node(&message, "Relu", "n", "", "y", NULL);
    add_ends(F32);
    load(13);
    refuse("it has 0 inputs and needs 1");
    onnx_node(&message, "Gemm", "n", "- x", "y", NULL);
    add_ends(F32);
    load(13);
    refuse("its input 0 is missing");
    onnx_node(&message, "Relu", "n", "x", "y z", NULL);
    add_ends(F32);
    load(13);
    refuse("it has 2 outputs and needs 1");
}
END_TEST

START_TEST(test_first_type)
{
    onnx_node(&message, "Not", "n", "x", "y", NULL);
    add_ends(F32);
    load(13);
    refuse("its first input is float32; supported: bool");
    onnx_node(&message, "Shape", "s", "x", "a", NULL); /* an int64, whatever x is */
    onnx_node(&message, "Not", "n", "a", "y", NULL);
    add_ends(F32);
    load(13);
    refuse("its first input is int64; supported: bool");
    onnx_node(&message, "Equal", "e", "x x", "a", NULL);
    onnx_node(&message, "Not", "n", "a", "y", NULL);
    add_ends(F32);
    load(13);
    accept();
    proto attributes = {0};
    onnx_attribute_int(&attributes, "to", BOOL);
    onnx_node(&message, "Cast", "c", "x", "a", &attributes);
    onnx_node(&message, "Not", "n", "a", "y", NULL);
    add_ends(F32);
    load(13);
    accept();
}
END_TEST

START_TEST(test_cast_to_a_foreign_type)
{
    static const struct {
        int64_t to;
        const char *reason;
    } cases[] = {{FLOAT6, "its output is float6e2m3"}, {TEXT, "its output is string"}, {99, "of an unknown type"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        proto attributes = {0};
        onnx_attribute_int(&attributes, "to", cases[i].to);
        load_node("Cast", 13, &attributes);
        refuse(cases[i].reason);
    }
}
END_TEST

static void add_foreign(int type, const char *name)
{
    proto tensor = onnx_tensor_raw(name, type, 1, (const int64_t[]){4}, "abcd", 4);
    proto_message(&message, GRAPH_INITIALIZER, &tensor);
}

START_TEST(test_foreign_types)
{
    add_foreign(FLOAT6, "unused");
    onnx_node(&message, "Relu", "n", "x", "y", NULL);
    add_ends(F32);
    load(13);
    accept(); /* nothing uses it */
    add_foreign(FLOAT6, "w");
    onnx_node(&message, "Add", "n", "x w", "y", NULL);
    add_ends(F32);
    load(13);
    refuse("its input 'w' is float6e2m3, which is not supported");
    onnx_node(&message, "Relu", "n", "x", "y", NULL);
    add_ends(INT4);
    load(13);
    refuse("its first input is int4");
    proto sparse = {0}, tensor = onnx_tensor("w", FLOAT6, 1, (const int64_t[]){1});
    proto_message(&sparse, 1, &tensor);
    proto_message(&message, GRAPH_SPARSE, &sparse);
    onnx_node(&message, "Add", "n", "x w", "y", NULL);
    add_ends(F32);
    load(13);
    refuse("its input 'w' is float6e2m3, which is not supported");
}
END_TEST

START_TEST(test_foreign_ends)
{
    onnx_value(&message, GRAPH_INPUT, "x", TEXT, 0, NULL);
    onnx_value(&message, GRAPH_INPUT, "unused", TEXT, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "x", TEXT, 0, NULL);
    load(13);
    test_fails(RNL_UNIMPLEMENTED, "output 'x' is string, which is not supported",
               rnl_graph_check(graph, &rows, &row_count));
    proto sequence = {0}, type = {0}, info = {0};
    proto_message(&type, 4, &sequence); /* TypeProto.sequence_type */
    proto_text(&info, 1, "x");
    proto_message(&info, 2, &type);
    proto_message(&message, GRAPH_INPUT, &info);
    onnx_node(&message, "Relu", "n", "x", "y", NULL);
    onnx_value(&message, GRAPH_OUTPUT, "y", F32, 0, NULL);
    load(13);
    refuse("its input 'x' is not a dense tensor");
}
END_TEST

START_TEST(test_functions)
{
    proto function = {0};
    onnx_node(&message, "Relu", "n", "x", "y", NULL);
    add_ends(F32);
    model = onnx_model(&message, 13);
    proto_text(&function, 1, "Relu");
    proto_text(&function, 10, "local");
    proto_message(&model, MODEL_FUNCTIONS, &function);
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
    accept(); /* one of another domain */
    teardown();
    onnx_node(&message, "Relu", "n", "x", "y", NULL);
    add_ends(F32);
    model = onnx_model(&message, 13);
    proto_text(&function, 1, "Relu");
    proto_text(&function, 10, "ai.onnx");
    proto_message(&model, MODEL_FUNCTIONS, &function);
    ck_assert_int_eq(rnl_graph_load_memory(model.data, model.size, &graph), RNL_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "a call of function 'Relu' has more than its 0 inputs"));
}
END_TEST

START_TEST(test_overload)
{
    proto node = {0};
    proto_text(&node, NODE_INPUT, "x");
    proto_text(&node, NODE_OUTPUT, "y");
    proto_text(&node, NODE_OP, "Relu");
    proto_text(&node, NODE_OVERLOAD, "float");
    proto_message(&message, GRAPH_NODE, &node);
    add_ends(F32);
    load(13);
    refuse("overload");
}
END_TEST

/* The message holds the first reasons, and says how many more there are. */
START_TEST(test_many_reasons)
{
    char op[64], output[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(op, sizeof op, "Unknown%03d", i);
        snprintf(output, sizeof output, "y%d", i);
        onnx_node(&message, op, "n", "x", output, NULL);
    }
    onnx_node(&message, "Relu", "n", "x", "y", NULL);
    add_ends(F32);
    load(13);
    test_fails(RNL_UNIMPLEMENTED, "1000 of 1001 nodes cannot run", rnl_graph_check(graph, &rows, &row_count));
    ck_assert_uint_eq(row_count, 1001);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "Unknown000"));
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, " more"));
    ck_assert_uint_lt(rnl_last_error()->length, RNL_ERROR_MESSAGE_BYTES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_check");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, test_rows);
    tcase_add_test(cases, test_unknown_operator);
    tcase_add_test(cases, test_other_domain);
    tcase_add_test(cases, test_known_domain);
    tcase_add_test(cases, test_opset_of_an_operator);
    tcase_add_test(cases, test_attributes);
    tcase_add_test(cases, test_counts);
    tcase_add_test(cases, test_first_type);
    tcase_add_test(cases, test_cast_to_a_foreign_type);
    tcase_add_test(cases, test_foreign_types);
    tcase_add_test(cases, test_foreign_ends);
    tcase_add_test(cases, test_functions);
    tcase_add_test(cases, test_overload);
    tcase_add_test(cases, test_many_reasons);
    suite_add_tcase(suite, cases);
    return test_run(suite, true);
}
