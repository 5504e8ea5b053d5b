/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs put together by hand, as a reader does: order, constants, attributes, messages. */
#include "graph/graph_build.h"
#include "support/test_device.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NODES 2000

static rnl_graph *graph;
static uint32_t edges[MAX_NODES][4]; /* inputs, then the output, of each node */

static void setup(void)
{
    test_ok(rnl_graph_create(1 << 20, &graph));
    test_ok(rnl_zone_alloc(&graph->zone, 2 * MAX_NODES, sizeof *graph->values, &graph->values));
    test_ok(rnl_zone_alloc(&graph->zone, MAX_NODES, sizeof *graph->nodes, &graph->nodes));
}

static void teardown(void)
{
    rnl_graph_release(graph);
}

static uint32_t add_value(const char *name)
{
    graph->values[graph->value_count] = (rnl_value){.name = name, .producer = RNL_NO_NODE, .input_index = -1};
    return (uint32_t)graph->value_count++;
}

/* One with two inputs, of which the second may be RNL_NO_VALUE. */
static rnl_node *add_node(const char *op, const char *name, uint32_t a, uint32_t b, uint32_t output)
{
    size_t i = graph->node_count++;
    edges[i][0] = a;
    edges[i][1] = b;
    edges[i][3] = output;
    graph->values[output].producer = (uint32_t)i;
    graph->nodes[i] = (rnl_node){.name = name,
                                 .domain = "",
                                 .op_type = op,
                                 .opset = 13,
                                 .input_count = b == RNL_NO_VALUE ? 1 : 2,
                                 .output_count = 1,
                                 .inputs = edges[i],
                                 .outputs = edges[i] + 3};
    return &graph->nodes[i];
}

START_TEST(test_empty)
{
    test_ok(rnl_graph_finish(graph));
    const rnl_operator_info *rows;
    size_t count;
    test_ok(rnl_graph_check(graph, &rows, &count));
    ck_assert_uint_eq(count, 0);
    rnl_graph_info info;
    rnl_graph_get_info(graph, &info);
    ck_assert_str_eq(info.producer_name, "");
    ck_assert_uint_eq(info.node_count, 0);
}
END_TEST

START_TEST(test_sorted_stays)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    uint32_t x = add_value("x"), y = add_value("y");
    add_node("Relu", names[0], x, RNL_NO_VALUE, add_value("1"));
    add_node("Relu", names[1], y, RNL_NO_VALUE, add_value("2"));
    add_node("Relu", names[2], 2, RNL_NO_VALUE, add_value("3"));
    add_node("Relu", names[3], 3, RNL_NO_VALUE, add_value("4"));
    add_node("Add", names[4], 4, 5, add_value("5"));
    test_ok(rnl_graph_finish(graph));
    for (size_t i = 0; i < 5; i++)
        ck_assert_str_eq(graph->nodes[i].name, names[i]);
}
END_TEST

/* Random graphs in random order, against the definition of a topological order. */
START_TEST(test_shuffled)
{
    srand(1);
    static uint32_t place[MAX_NODES];
    uint32_t x = add_value("x");
    for (uint32_t i = 0; i < MAX_NODES; i++) {
        place[i] = i;
        add_value("v");
    }
    for (uint32_t i = MAX_NODES - 1; i > 0; i--) {
        uint32_t other = (uint32_t)rand() % (i + 1), kept = place[i];
        place[i] = place[other];
        place[other] = kept;
    }
    for (uint32_t i = 0; i < MAX_NODES; i++) { /* node i makes value 1 + place[i] from values of lower places */
        uint32_t a = place[i] ? 1 + (uint32_t)rand() % place[i] : x, b = place[i] ? place[i] : x;
        add_node("Add", "", a, b, 1 + place[i]);
    }
    test_ok(rnl_graph_finish(graph));
    ck_assert_uint_eq(graph->node_count, MAX_NODES);
    for (uint32_t i = 0; i < MAX_NODES; i++) {
        ck_assert_uint_eq(graph->values[graph->nodes[i].outputs[0]].producer, i);
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t producer = graph->values[graph->nodes[i].inputs[k]].producer;
            ck_assert(producer == RNL_NO_NODE || producer < i);
        }
    }
}
END_TEST

START_TEST(test_long_cycle)
{
    for (uint32_t i = 0; i < 1000; i++)
        add_value("v");
    for (uint32_t i = 0; i < 1000; i++)
        add_node("Relu", "ring", (i + 999) % 1000, RNL_NO_VALUE, i);
    test_fails(RNL_INVALID_ARGUMENT, "(Relu 'ring') depends on its own output", rnl_graph_finish(graph));
}
END_TEST

START_TEST(test_constants_fold)
{
    static const float number = 2;
    rnl_host_tensor tensor = {.dtype = RNL_F32, .data = &number, .size_bytes = sizeof number};
    rnl_attribute value = {.name = "value", .type = RNL_ATTRIBUTE_TENSOR, .tensor = &tensor};
    uint32_t c = add_value("c"), i = add_value("i"), x = add_value("x"), y = add_value("y");
    rnl_node *constant = add_node("Constant", "c", 0, RNL_NO_VALUE, c);
    constant->input_count = 0;
    constant->attributes = &value;
    constant->attribute_count = 1;
    add_node("Identity", "i", c, RNL_NO_VALUE, i);
    add_node("Add", "add", x, i, y);
    test_ok(rnl_graph_finish(graph));
    ck_assert_uint_eq(graph->node_count, 1);
    ck_assert_uint_eq(graph->info.node_count, 1);
    ck_assert_uint_eq(graph->info.initializer_count, 1);
    ck_assert_ptr_eq(graph->values[i].constant, &tensor);
    ck_assert_uint_eq(graph->values[i].producer, RNL_NO_NODE);
    ck_assert_uint_eq(graph->values[y].producer, 0);
}
END_TEST

/* A Constant whose value is no tensor stays, and the check names it. */
START_TEST(test_constant_that_cannot_fold)
{
    rnl_attribute value = {.name = "value_string", .type = RNL_ATTRIBUTE_STRING, .s = "text"};
    rnl_node *constant = add_node("Constant", "c", 0, RNL_NO_VALUE, add_value("c"));
    constant->input_count = 0;
    constant->attributes = &value;
    constant->attribute_count = 1;
    test_ok(rnl_graph_finish(graph));
    const rnl_operator_info *rows;
    size_t count;
    test_fails(RNL_UNIMPLEMENTED, "Constant", rnl_graph_check(graph, &rows, &count));
    ck_assert_uint_eq(count, 1);
}
END_TEST

START_TEST(test_attributes)
{
    static const float floats[] = {1, 2};
    static const int64_t ints[] = {3};
    rnl_attribute attributes[] = {
        {.name = "f", .type = RNL_ATTRIBUTE_FLOAT, .f = 1.5f},
        {.name = "i", .type = RNL_ATTRIBUTE_INT, .i = -2},
        {.name = "s", .type = RNL_ATTRIBUTE_STRING, .s = "text"},
        {.name = "floats", .type = RNL_ATTRIBUTE_FLOATS, .count = 2, .floats = floats},
        {.name = "ints", .type = RNL_ATTRIBUTE_INTS, .count = 1, .ints = ints},
    };
    rnl_node node = {.attributes = attributes, .attribute_count = 5};
    size_t count;
    ck_assert(rnl_node_float(&node, "f", 0) == 1.5f);
    ck_assert(rnl_node_float(&node, "i", 7) == 7); /* another type counts as absent */
    ck_assert_int_eq(rnl_node_int(&node, "i", 0), -2);
    ck_assert_int_eq(rnl_node_int(&node, "f", 7), 7);
    ck_assert_int_eq(rnl_node_int(&node, "none", 7), 7);
    ck_assert_str_eq(rnl_node_string(&node, "s", ""), "text");
    ck_assert_ptr_null(rnl_node_string(&node, "ints", NULL));
    ck_assert_ptr_eq(rnl_node_floats(&node, "floats", &count), floats);
    ck_assert_uint_eq(count, 2);
    ck_assert_ptr_eq(rnl_node_ints(&node, "ints", &count), ints);
    ck_assert_uint_eq(count, 1);
    ck_assert_ptr_null(rnl_node_ints(&node, "floats", &count));
    ck_assert_uint_eq(count, 0);
    ck_assert_ptr_null(rnl_node_floats(&node, "none", &count));
    ck_assert_uint_eq(count, 0);
}
END_TEST

START_TEST(test_node_error)
{
    uint32_t x = add_value("x");
    add_node("Relu", "first", x, RNL_NO_VALUE, add_value("a"));
    add_node("Relu", "second", x, RNL_NO_VALUE, add_value("b"));
    test_ok(rnl_graph_finish(graph));
    rnl_status status = FAIL(RNL_UNAVAILABLE, "the cause");
    status = rnl_node_error(graph, &graph->nodes[1], status);
    ck_assert_int_eq(status, RNL_UNAVAILABLE);
    ck_assert_str_eq(rnl_last_error()->message, "the cause\nnode 1 (Relu 'second')");
}
END_TEST

START_TEST(test_budget)
{
    void *memory;
    rnl_graph *small;
    test_ok(rnl_graph_create(4096, &small));
    test_fails(RNL_RESOURCE_EXHAUSTED, "4096", rnl_zone_alloc(&small->zone, 1, 8192, &memory));
    rnl_graph_release(small);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, test_empty);
    tcase_add_test(cases, test_sorted_stays);
    tcase_add_test(cases, test_shuffled);
    tcase_add_test(cases, test_long_cycle);
    tcase_add_test(cases, test_constants_fold);
    tcase_add_test(cases, test_constant_that_cannot_fold);
    tcase_add_test(cases, test_attributes);
    tcase_add_test(cases, test_node_error);
    tcase_add_test(cases, test_budget);
    suite_add_tcase(suite, cases);
    return test_run(suite, true);
}
