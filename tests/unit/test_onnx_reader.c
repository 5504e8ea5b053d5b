/* SPDX-License-Identifier: Apache-2.0 */
/* What sound files say, and that the graph says the same. Hostile files are in test_graph_hostile.c. */
#include "graph/graph.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"

#include <stdlib.h>
#include <string.h>

enum { F32 = 1, F16 = 10 };

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

START_TEST(test_rich_model)
{
    model = onnx_rich_model();
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
    rnl_graph_info info;
    rnl_graph_get_info(graph, &info);
    ck_assert_int_eq(info.ir_version, 8);
    ck_assert_int_eq(info.opset, 13);
    ck_assert_str_eq(info.producer_name, "tests");
    ck_assert_str_eq(info.producer_version, "");
    ck_assert_str_eq(info.graph_name, "rich");
    ck_assert_uint_eq(info.node_count, 3); /* the Constant has become an initialiser */
    ck_assert_uint_eq(info.initializer_count, 3);
    ck_assert_uint_eq(info.parameter_count, 6 + 1 + 2);
    size_t count;
    const rnl_value_info *inputs = rnl_graph_inputs(graph, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(inputs[0].name, "x");
    ck_assert_int_eq(inputs[0].dtype, RNL_F32);
    ck_assert_uint_eq(inputs[0].rank, 2);
    ck_assert_int_eq(inputs[0].shape[0], -1);
    ck_assert_int_eq(inputs[0].shape[1], 3);
    ck_assert_ptr_null(inputs[0].dim_names[0]);
    const rnl_value_info *outputs = rnl_graph_outputs(graph, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(outputs[0].name, "y");
    ck_assert_uint_eq(outputs[0].rank, SIZE_MAX);
    const rnl_metadata *metadata = rnl_graph_metadata(graph, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(metadata[0].key, "key");
    ck_assert_str_eq(metadata[0].value, "value");
}
END_TEST

START_TEST(test_rich_nodes)
{
    model = onnx_rich_model();
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
    const rnl_node *gemm = &graph->nodes[0], *turn = &graph->nodes[1];
    ck_assert_str_eq(gemm->op_type, "Gemm");
    ck_assert_str_eq(gemm->name, "gemm");
    ck_assert_str_eq(gemm->domain, "");
    ck_assert_int_eq(gemm->opset, 13);
    ck_assert_uint_eq(gemm->input_count, 3);
    ck_assert_str_eq(graph->values[gemm->inputs[2]].name, "bias");
    ck_assert_mem_eq(graph->values[gemm->inputs[2]].constant->data, ((const float[]){1, -2}), 8);
    ck_assert_int_eq(graph->values[gemm->inputs[0]].input_index, 0);
    ck_assert_uint_eq(graph->values[gemm->outputs[0]].producer, 0);
    ck_assert_int_eq(rnl_node_int(gemm, "transB", 7), 0);
    ck_assert_int_eq(rnl_node_int(gemm, "transA", 7), 7);
    ck_assert_int_eq(rnl_node_int(gemm, "alpha", 7), 7); /* another type counts as absent */
    ck_assert(rnl_node_float(gemm, "alpha", 0) == 0.5f);
    size_t count;
    const int64_t *perm = rnl_node_ints(turn, "perm", &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(perm[0], 1);
    ck_assert_int_eq(perm[1], 0);
    ck_assert_ptr_null(rnl_node_ints(turn, "axes", &count));
    ck_assert_uint_eq(count, 0);
}
END_TEST

/* ---- Inputs and outputs ---- */

START_TEST(test_initialiser_among_the_inputs)
{
    proto message = {0};
    proto tensor = onnx_tensor_raw("w", F32, 0, NULL, (const float[]){3}, 4);
    onnx_value(&message, GRAPH_INPUT, "w", F32, 0, NULL);
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_node(&message, "Add", "add", "x w", "y", NULL);
    proto_message(&message, GRAPH_INITIALIZER, &tensor);
    onnx_value(&message, GRAPH_OUTPUT, "y", F32, 0, NULL);
    load(&message, 13);
    size_t count;
    const rnl_value_info *inputs = rnl_graph_inputs(graph, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(inputs[0].name, "x");
    ck_assert_ptr_nonnull(graph->values[graph->nodes[0].inputs[1]].constant);
    ck_assert_int_eq(graph->values[graph->nodes[0].inputs[1]].input_index, -1);
}
END_TEST

START_TEST(test_outputs_without_a_node)
{
    proto message = {0};
    proto tensor = onnx_tensor_raw("w", F32, 0, NULL, (const float[]){3}, 4);
    proto_message(&message, GRAPH_INITIALIZER, &tensor);
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "w", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "x", F32, 0, NULL);
    load(&message, 13);
    ck_assert_uint_eq(graph->output_count, 2);
    ck_assert_ptr_nonnull(graph->values[graph->output_values[0]].constant);
    ck_assert_int_eq(graph->values[graph->output_values[1]].input_index, 0);
    const rnl_operator_info *rows;
    size_t count;
    test_ok(rnl_graph_check(graph, &rows, &count));
    ck_assert_uint_eq(count, 0);
}
END_TEST

static void add_dim(proto *shape, const char *name, int64_t size)
{
    proto dim = {0};
    if (name)
        proto_text(&dim, 2, name);
    else
        proto_int(&dim, 1, size);
    proto_message(shape, 1, &dim);
}

START_TEST(test_dimensions)
{
    proto message = {0}, shape = {0}, tensor = {0}, type = {0}, info = {0};
    add_dim(&shape, "batch", 0);
    add_dim(&shape, NULL, -1);
    add_dim(&shape, NULL, 0);
    add_dim(&shape, "", 0);
    proto_int(&tensor, 1, F16);
    proto_message(&tensor, 2, &shape);
    proto_message(&type, 1, &tensor);
    proto_text(&info, 1, "x");
    proto_message(&info, 2, &type);
    proto_message(&message, GRAPH_INPUT, &info);
    onnx_value(&message, GRAPH_OUTPUT, "x", F16, SIZE_MAX, NULL);
    load(&message, 13);
    const rnl_value_info *x = &graph->inputs[0];
    ck_assert_int_eq(x->dtype, RNL_F16);
    ck_assert_uint_eq(x->rank, 4);
    ck_assert_mem_eq(x->shape, ((const int64_t[]){-1, -1, 0, -1}), 32);
    ck_assert_str_eq(x->dim_names[0], "batch");
    ck_assert_ptr_null(x->dim_names[1]);
    ck_assert_ptr_null(x->dim_names[3]);
}
END_TEST

/* ---- Nodes ---- */

START_TEST(test_optional_inputs)
{
    proto message = {0};
    onnx_node(&message, "Clip", "clip", "x - high - -", "y", NULL);
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&message, GRAPH_INPUT, "high", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "y", F32, 0, NULL);
    load(&message, 13);
    const rnl_node *node = &graph->nodes[0];
    ck_assert_uint_eq(node->input_count, 3); /* those left out at the end do not count */
    ck_assert_uint_eq(node->inputs[1], RNL_NO_VALUE);
    ck_assert_str_eq(graph->values[node->inputs[2]].name, "high");
}
END_TEST

START_TEST(test_nodes_in_any_order)
{
    proto message = {0};
    onnx_node(&message, "Add", "last", "b c", "y", NULL);
    onnx_node(&message, "Relu", "second", "a", "c", NULL);
    onnx_node(&message, "Relu", "first", "x", "a", NULL);
    onnx_node(&message, "Abs", "other", "a", "b", NULL);
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "y", F32, 0, NULL);
    load(&message, 13);
    static const char *const names[] = {"first", "other", "second", "last"};
    for (size_t i = 0; i < 4; i++) {
        ck_assert_str_eq(graph->nodes[i].name, names[i]);
        ck_assert_uint_eq(graph->values[graph->nodes[i].outputs[0]].producer, i);
    }
}
END_TEST

START_TEST(test_domains)
{
    proto message = {0}, node = {0}, import = {0};
    proto_text(&node, NODE_INPUT, "x");
    proto_text(&node, NODE_OUTPUT, "y");
    proto_text(&node, NODE_OP, "Relu");
    proto_text(&node, NODE_DOMAIN, "ai.onnx"); /* another way to write the default domain */
    proto_message(&message, GRAPH_NODE, &node);
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "y", F32, 0, NULL);
    model = onnx_model(&message, 17);
    proto_text(&import, 1, "ai.onnx.ml");
    proto_int(&import, 2, 3);
    proto_message(&model, MODEL_OPSET, &import);
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
    ck_assert_str_eq(graph->nodes[0].domain, "");
    ck_assert_int_eq(graph->nodes[0].opset, 17);
    ck_assert_int_eq(graph->info.opset, 17);
    ck_assert_str_eq(graph->nodes[0].name, ""); /* never NULL */
}
END_TEST

/* Fields that runnel does not read, of every wire type, and in any order. */
START_TEST(test_unknown_fields_are_skipped)
{
    proto message = onnx_small_graph();
    proto_int(&message, 500, 1);
    proto_double(&message, 501, 1);
    proto_float(&message, 502, 1);
    proto_text(&message, GRAPH_VALUE_INFO, "\x01\x02 no message at all");
    proto_text(&message, GRAPH_DOC, "documentation");
    model = (proto){0};
    proto import = {0};
    proto_int(&import, 2, 13);
    proto_message(&model, MODEL_OPSET, &import);
    proto_text(&model, 6, "documentation");
    proto_message(&model, MODEL_GRAPH, &message);
    proto_int(&model, MODEL_IR, 8);
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
    ck_assert_uint_eq(graph->node_count, 1);
}
END_TEST

START_TEST(test_metadata_is_verbatim)
{
    proto message = onnx_small_graph();
    model = onnx_model(&message, 13);
    onnx_entry(&model, MODEL_METADATA, "characters", "a\nb\t\x7f\xff");
    onnx_entry(&model, MODEL_METADATA, "empty", "");
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
    size_t count;
    const rnl_metadata *metadata = rnl_graph_metadata(graph, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(metadata[0].value, "a\nb\t\x7f\xff");
    ck_assert_str_eq(metadata[1].value, "");
}
END_TEST

START_TEST(test_names_become_printable)
{
    proto message = {0};
    onnx_node(&message, "Relu", "gr\xc3\xbc\xc3\x9f", "a\x1b[2J\xff", "\xf0\x9f\x98\x80", NULL);
    onnx_value(&message, GRAPH_INPUT, "a\x1b[2J\xff", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "\xf0\x9f\x98\x80", F32, 0, NULL);
    load(&message, 13);
    ck_assert_str_eq(graph->nodes[0].name, "gr\xc3\xbc\xc3\x9f");
    ck_assert_str_eq(graph->inputs[0].name, "a\\x1b[2J\\xff");
    ck_assert_str_eq(graph->outputs[0].name, "\xf0\x9f\x98\x80");
}
END_TEST

START_TEST(test_references)
{
    proto message = onnx_small_graph();
    load(&message, 13);
    ck_assert_ptr_eq(rnl_graph_retain(graph), graph);
    rnl_graph_release(graph);
    ck_assert_uint_eq(graph->node_count, 1);
    rnl_graph_release(NULL);
    ck_assert_ptr_null(rnl_graph_retain(NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_reader");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, test_rich_model);
    tcase_add_test(cases, test_rich_nodes);
    tcase_add_test(cases, test_initialiser_among_the_inputs);
    tcase_add_test(cases, test_outputs_without_a_node);
    tcase_add_test(cases, test_dimensions);
    tcase_add_test(cases, test_optional_inputs);
    tcase_add_test(cases, test_nodes_in_any_order);
    tcase_add_test(cases, test_domains);
    tcase_add_test(cases, test_unknown_fields_are_skipped);
    tcase_add_test(cases, test_metadata_is_verbatim);
    tcase_add_test(cases, test_names_become_printable);
    tcase_add_test(cases, test_references);
    suite_add_tcase(suite, cases);
    return test_run(suite, true);
}
