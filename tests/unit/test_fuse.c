/* SPDX-License-Identifier: Apache-2.0 */
/* How nodes are grouped, without a device: text in, groups as text out. */
#include "base/memory.h"
#include "device/device.h"
#include "model/evaluate.h"
#include "model/fuse.h"
#include "model/model.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT32 = 1, OPSET = 17, CHANNELS = 4, SIDE = 6, MANY = 40 };

static rnl_device device;
static rnl_model model;
static rnl_planner planner;
static rnl_zone zone;
static rnl_plan plan;
static proto graph_text, bytes;
static float ones[CHANNELS * CHANNELS * 9];

static void add_constant(const char *name, size_t rank, const int64_t *shape)
{
    int64_t count = 1;
    for (size_t i = 0; i < rank; i++)
        count *= shape[i];
    proto tensor = onnx_tensor_raw(name, FLOAT32, rank, shape, ones, (size_t)count * sizeof *ones);
    proto_message(&graph_text, GRAPH_INITIALIZER, &tensor);
}

/* Constants: w, a window of 3x3; v, a vector over the channels; u, the same of rank 1; k, a number. */
static void setup(void)
{
    const int64_t image[] = {1, CHANNELS, SIDE, SIDE};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        ones[i] = 1;
    graph_text = (proto){0};
    zone = (rnl_zone){0};
    device = (rnl_device){.info = {.type = RNL_DEVICE_CPU}};
    add_constant("w", 4, (int64_t[]){CHANNELS, CHANNELS, 3, 3});
    add_constant("v", 3, (int64_t[]){CHANNELS, 1, 1});
    add_constant("u", 1, (int64_t[]){CHANNELS});
    add_constant("k", 0, NULL);
    onnx_value(&graph_text, GRAPH_INPUT, "x", FLOAT32, 4, image);
    onnx_value(&graph_text, GRAPH_INPUT, "y", FLOAT32, 4, image);
}

static void teardown(void)
{
    rnl_zone_free(&zone);
    rnl_zone_free(&plan.zone);
    plan = (rnl_plan){0};
    rnl_free(model.reads_contents);
    rnl_free(model.last_read);
    rnl_constants_free(&model.constants);
    rnl_graph_release(model.graph);
    model.graph = NULL;
    proto_free(&bytes);
}

static void add(const char *op, const char *inputs, const char *output)
{
    proto attributes = {0};
    if (strcmp(op, "Conv") == 0)
        onnx_attribute_ints(&attributes, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    if (strcmp(op, "ReduceMean") == 0)
        onnx_attribute_ints(&attributes, "axes", (int64_t[]){-1}, 1);
    onnx_node(&graph_text, op, output, inputs, output, attributes.data ? &attributes : NULL);
}

static void group_nodes(const char *output)
{
    onnx_value(&graph_text, GRAPH_OUTPUT, output, FLOAT32, SIZE_MAX, NULL);
    bytes = onnx_model(&graph_text, OPSET);
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &model.graph));
    model.device = &device;
    model.root = &model;
    test_ok(rnl_model_find_reads(&model));
    test_ok(rnl_constants_init(&model.constants, model.graph, NULL));
    planner = (rnl_planner){.model = &model, .graph = model.graph, .plan = &plan, .zone = &zone};
    test_ok(rnl_zone_alloc(&zone, model.graph->value_count, sizeof *planner.values, &planner.values));
    test_ok(rnl_zone_alloc(&zone, model.graph->node_count, sizeof *planner.on_host, &planner.on_host));
    for (size_t i = 0; i < model.graph->input_count; i++) {
        rnl_tensor_desc *desc = &planner.values[model.graph->input_values[i]].desc;
        *desc = (rnl_tensor_desc){.dtype = RNL_F32, .rank = model.graph->inputs[i].rank};
        memcpy(desc->shape, model.graph->inputs[i].shape, sizeof desc->shape);
    }
    test_ok(rnl_plan_describe(&planner));
    test_ok(rnl_plan_find_outputs(&planner));
    rnl_plan_mark_needed(&planner);
    test_ok(rnl_fuse(&planner));
}

/* The groups in the order of their last nodes, as "c+b+r s+m": nodes by name; "[2]" behind one that has a chain. */
static const char *groups(void)
{
    static char text[1024];
    text[0] = '\0';
    for (uint32_t i = 0; i < model.graph->node_count; i++) {
        const rnl_group *group = planner.groups[i];
        if (!group || rnl_group_last(group) != i)
            continue;
        for (size_t j = 0; j < group->node_count; j++) {
            strcat(text, j ? "+" : *text ? " " : "");
            strcat(text, model.graph->nodes[group->nodes[j]].name);
        }
        snprintf(text + strlen(text), sizeof text - strlen(text), "[%zu]", group->chain.stage_count);
    }
    return text;
}

static void check(const char *output, const char *expected)
{
    group_nodes(output);
    ck_assert_str_eq(groups(), expected);
}

START_TEST(test_constants_go_into_the_weights)
{
    add("Conv", "x w", "c");
    add("BatchNormalization", "c u u u u", "b");
    add("Mul", "b v", "m");
    add("Sub", "k m", "s");
    add("Relu", "s", "r");
    add("Add", "r v", "a");
    check("a", "c+b+m+s+r+a[2]");
}
END_TEST

START_TEST(test_an_anchor_alone)
{
    add("Conv", "x w", "c");
    add("GlobalMaxPool", "c", "p");
    check("p", "");
}
END_TEST

START_TEST(test_a_value_read_twice_within)
{
    add("Conv", "x w", "c");
    add("Sigmoid", "c", "s");
    add("Mul", "c s", "m");
    check("m", "c+s+m[2]");
}
END_TEST

START_TEST(test_a_value_that_is_an_output)
{
    add("Conv", "x w", "c");
    add("Relu", "c", "r");
    add("Tanh", "r", "t");
    add("Neg", "t", "n");
    onnx_value(&graph_text, GRAPH_OUTPUT, "r", FLOAT32, SIZE_MAX, NULL);
    check("n", "c+r[1] t+n[2]");
}
END_TEST

/* Relu could join, but what it is read with depends on the convolution's own result. */
START_TEST(test_a_reader_between)
{
    add("Conv", "x w", "c");
    add("Relu", "c", "r");
    add("Softmax", "c", "s");
    add("Add", "r s", "a");
    check("a", "r+a[2]");
}
END_TEST

START_TEST(test_the_later_anchor_takes_the_sum)
{
    add("Conv", "x w", "c");
    add("BatchNormalization", "c u u u u", "b");
    add("Conv", "y w", "d");
    add("BatchNormalization", "d u u u u", "e");
    add("Add", "b e", "a");
    add("Relu", "a", "r");
    check("r", "c+b[0] d+e+a+r[2]");
}
END_TEST

START_TEST(test_a_side_without_an_anchor)
{
    add("Conv", "x w", "c");
    add("Sigmoid", "y", "s");
    add("Mul", "s c", "m");
    check("m", "c+s+m[2]");
}
END_TEST

START_TEST(test_other_shapes_end_a_group)
{
    add("Neg", "v", "n");
    add("Tanh", "x", "t");
    add("Sigmoid", "t", "s");
    add("GlobalAveragePool", "s", "p");
    add("Relu", "p", "r");
    add("Abs", "r", "b");
    add("Mul", "s b", "m");
    add("Add", "m n", "a");
    check("a", "t+s[2] r+b[2] m+a[2]");
}
END_TEST

START_TEST(test_vectors_of_a_batch_norm_alone)
{
    add("BatchNormalization", "x u u u u", "b");
    add("Mul", "b v", "m");
    add("Add", "m v", "a");
    check("a", "b+m+a[2]");
    ck_assert_uint_eq(planner.groups[0]->chain.operand_count, 3); /* x, factors, sums */
}
END_TEST

/* Twelve stages at most, and no group of one. */
START_TEST(test_long_chains_are_split)
{
    char name[16], input[16] = "x";
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%d", i);
        add("Tanh", input, name);
        snprintf(input, sizeof input, "%s", name);
    }
    group_nodes(input);
    size_t stages = 0;
    for (uint32_t i = 0; i < MANY; i++)
        if (planner.groups[i] && rnl_group_last(planner.groups[i]) == i)
            stages += planner.groups[i]->chain.stage_count;
    ck_assert_uint_eq(stages, MANY);
    ck_assert_uint_eq(planner.groups[0]->chain.stage_count, RNL_CHAIN_MAX_STAGES);
}
END_TEST

START_TEST(test_a_group_without_room_for_its_end)
{
    char name[16], input[32] = "x";
    add("Tanh", "x", "n0");
    for (int i = 1; i < RNL_CHAIN_MAX_STAGES + 2; i++) {
        snprintf(input, sizeof input, "n%d", i - 1);
        snprintf(name, sizeof name, "n%d", i);
        add("Tanh", input, name);
    }
    snprintf(input, sizeof input, "%s n0", name);
    add("Add", input, "a"); /* reads the first, which so becomes a value of its own */
    group_nodes("a");
    ck_assert_ptr_null(planner.groups[0]);
    ck_assert_uint_eq(planner.groups[1]->chain.stage_count, RNL_CHAIN_MAX_STAGES);
}
END_TEST

START_TEST(test_switched_off)
{
    add("Conv", "x w", "c");
    add("Relu", "c", "r");
    setenv("RUNNEL_FUSE", "off", 1);
    group_nodes("r");
    unsetenv("RUNNEL_FUSE");
    ck_assert_str_eq(groups(), "");
}
END_TEST

/* ---- normalisation -------------------------------------------------------------------------------------------- */

static void add_norm(const char *square)
{
    add("ReduceMean", "x", "m");
    add("Sub", "x m", "d");
    add(square, strcmp(square, "Pow") == 0 ? "d two" : "d d", "p");
    add("ReduceMean", "p", "v_");
    add("Add", "k v_", "e");
    add("Sqrt", "e", "s");
    add("Div", "d s", "q");
}

START_TEST(test_a_normalisation)
{
    const float two = 2;
    proto tensor = onnx_tensor_raw("two", FLOAT32, 0, NULL, &two, sizeof two);
    proto_message(&graph_text, GRAPH_INITIALIZER, &tensor);
    add_norm(_i ? "Mul" : "Pow");
    add("Mul", "v q", "g");
    add("Add", "g k", "b");
    add("Relu", "b", "r");
    check("r", "m+d+p+v_+e+s+q+g+b[0]");
    ck_assert_uint_eq(planner.groups[0]->norm.axes, 8);
    ck_assert_float_eq(planner.groups[0]->norm.epsilon, 1);
    ck_assert_uint_ne(planner.groups[0]->norm.scale, RNL_NO_VALUE);
    ck_assert_uint_ne(planner.groups[0]->norm.bias, RNL_NO_VALUE);
}
END_TEST

START_TEST(test_no_normalisation)
{
    add_norm("Mul");
    add("Add", "q d", "a"); /* what it divides is read again */
    check("a", "e+s[2] q+a[2]");
}
END_TEST

/* ---- folds ---------------------------------------------------------------------------------------------------- */

START_TEST(test_a_run_as_one)
{
    rnl_affine *affine = NULL;
    for (size_t i = 0; i < CHANNELS; i++)
        ones[i] = (float)(i + 1);
    add_constant("t", 3, (int64_t[]){CHANNELS, 1, 1});
    add("Mul", "x t", "m");
    add("Sub", "v m", "s");
    add("Div", "s t", "d");
    group_nodes("d");
    test_ok(rnl_fold_run(&planner, (rnl_fold){0, 2}, CHANNELS, &affine));
    for (size_t i = 0; i < CHANNELS; i++) { /* (1 - (i + 1) x) / (i + 1) */
        ck_assert_double_eq_tol(affine[i].scale, -1, 1e-12);
        ck_assert_double_eq_tol(affine[i].shift, 1.0 / (double)(i + 1), 1e-12);
    }
    ck_assert(rnl_fold_scales(&planner, (rnl_fold){0, 2}));
    ck_assert(rnl_fold_scales(&planner, (rnl_fold){1, 1}));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fuse");
    TCase *tcase = tcase_create("fuse");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_constants_go_into_the_weights);
    tcase_add_test(tcase, test_an_anchor_alone);
    tcase_add_test(tcase, test_a_value_read_twice_within);
    tcase_add_test(tcase, test_a_value_that_is_an_output);
    tcase_add_test(tcase, test_a_reader_between);
    tcase_add_test(tcase, test_the_later_anchor_takes_the_sum);
    tcase_add_test(tcase, test_a_side_without_an_anchor);
    tcase_add_test(tcase, test_other_shapes_end_a_group);
    tcase_add_test(tcase, test_vectors_of_a_batch_norm_alone);
    tcase_add_test(tcase, test_long_chains_are_split);
    tcase_add_test(tcase, test_a_group_without_room_for_its_end);
    tcase_add_test(tcase, test_switched_off);
    tcase_add_loop_test(tcase, test_a_normalisation, 0, 2);
    tcase_add_test(tcase, test_no_normalisation);
    tcase_add_test(tcase, test_a_run_as_one);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
