/* SPDX-License-Identifier: Apache-2.0 */
/* Models that ask for too much: refused, or loaded, within bounds of time and memory. And failing allocation. */
#include "base/memory.h"
#include "graph/graph.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { F32 = 1, I64 = 7 };
enum { NODES = SANITIZED ? 100000 : 1000000 }; /* the latter is the most that are taken */

static char *folder, path[4200];
static rnl_graph *graph;

static void setup(void)
{
    folder = test_folder_create();
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    graph = NULL;
}

static void teardown(void)
{
    rnl_graph_release(graph);
    test_folder_remove(folder);
}

static uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The process's largest memory so far, in MB. */
static long peak_mb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static void write_model(proto *message)
{
    proto model = onnx_model(message, 13);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(model.data, 1, model.size, file), model.size);
    ck_assert_int_eq(fclose(file), 0);
    proto_free(&model);
}

/* The least processor time of some attempts to load the file: other machines may share the caches. */
static rnl_status load_timed(uint64_t enough_ns, uint64_t *out_ns, long *out_mb)
{
    rnl_status status = RNL_OK;
    *out_ns = UINT64_MAX;
    for (int attempt = 0; attempt < (SANITIZED ? 1 : 5) && *out_ns >= enough_ns; attempt++) {
        rnl_graph_release(graph);
        uint64_t start = processor_ns();
        status = rnl_graph_load(path, &graph);
        uint64_t took_ns = processor_ns() - start;
        *out_ns = took_ns < *out_ns ? took_ns : *out_ns;
        if (attempt == 0)
            *out_mb = peak_mb(); /* of the first: what it frees need not go back to the system */
    }
    return status;
}

/* Writes the model and loads it from the file; sanitizers take time and memory of their own. */
static rnl_status load_within_limits(proto *message)
{
    uint64_t took_ns;
    long took_mb;
    write_model(message);
    rnl_status status = load_timed(1000000000, &took_ns, &took_mb);
    ck_assert_msg(SANITIZED || took_ns < 1000000000, "%llu ms", (unsigned long long)(took_ns / 1000000));
    ck_assert_msg(SANITIZED || took_mb < 200, "%ld MB", took_mb);
    return status;
}

static void add_relu(proto *message, size_t from, size_t to)
{
    proto node = {0};
    char name[32];
    snprintf(name, sizeof name, "v%zu", from);
    proto_text(&node, NODE_INPUT, name);
    snprintf(name, sizeof name, "v%zu", to);
    proto_text(&node, NODE_OUTPUT, name);
    proto_text(&node, NODE_OP, "Relu");
    proto_message(message, GRAPH_NODE, &node);
}

static void add_chain(proto *message, size_t count, bool backwards)
{
    char last[32];
    for (size_t i = 0; i < count; i++)
        add_relu(message, backwards ? count - 1 - i : i, backwards ? count - i : i + 1);
    snprintf(last, sizeof last, "v%zu", count);
    onnx_value(message, GRAPH_INPUT, "v0", F32, 0, NULL);
    onnx_value(message, GRAPH_OUTPUT, last, F32, 0, NULL);
}

/*
 * How long a million nodes take depends on the processor (0.6 s on a Zen 4, 1.3 s on a Zen 1); that
 * it grows as the number of nodes does, but for what falls out of the caches, does not. 3 s are too long anywhere.
 */
static void load_many_nodes(bool backwards)
{
    uint64_t part_ns, took_ns;
    long mb;
    proto part = {0}, message = {0};
    add_chain(&part, NODES / 10, backwards);
    write_model(&part);
    test_ok(load_timed(0, &part_ns, &mb));
    add_chain(&message, NODES, backwards);
    write_model(&message);
    test_ok(load_timed(20 * part_ns, &took_ns, &mb));
    ck_assert_msg(SANITIZED || took_ns < 20 * part_ns, "%llu ms, a tenth of it %llu",
                  (unsigned long long)(took_ns / 1000000), (unsigned long long)(part_ns / 1000000));
    ck_assert_msg(SANITIZED || took_ns < 3000000000, "%llu ms", (unsigned long long)(took_ns / 1000000));
    ck_assert_msg(SANITIZED || mb < 200, "%ld MB", mb);
    ck_assert_uint_eq(graph->node_count, NODES);
}

START_TEST(test_a_million_nodes)
{
    load_many_nodes(false);
}
END_TEST

START_TEST(test_a_million_nodes_backwards)
{
    load_many_nodes(true);
    for (size_t i = 0; i < graph->node_count; i += 99999) {
        uint32_t producer = graph->values[graph->nodes[i].inputs[0]].producer;
        ck_assert(i == 0 ? producer == RNL_NO_NODE : producer == i - 1);
    }
}
END_TEST

START_TEST(test_one_node_too_many)
{
    proto message = {0};
    add_chain(&message, 1000001, false);
    test_fails(RNL_RESOURCE_EXHAUSTED, "more than 1000000 nodes", load_within_limits(&message));
}
END_TEST

START_TEST(test_many_empty_nodes)
{
    proto message = {0};
    for (size_t i = 0; i < 5000000; i++)
        proto_bytes(&message, GRAPH_NODE, "", 0);
    test_fails(RNL_RESOURCE_EXHAUSTED, "more than 1000000 nodes", load_within_limits(&message));
    for (size_t i = 0; i < 999999; i++)
        proto_bytes(&message, GRAPH_NODE, "", 0);
    test_fails(RNL_RESOURCE_EXHAUSTED, "bytes of memory allowed", load_within_limits(&message));
}
END_TEST

START_TEST(test_many_operators)
{
    proto message = {0};
    for (size_t i = 0; i < 5000; i++) {
        char op[32], output[32];
        snprintf(op, sizeof op, "Op%zu", i);
        snprintf(output, sizeof output, "y%zu", i);
        onnx_node(&message, op, "", "x", output, NULL);
    }
    onnx_value(&message, GRAPH_INPUT, "x", F32, 0, NULL);
    onnx_value(&message, GRAPH_OUTPUT, "y0", F32, 0, NULL);
    test_fails(RNL_RESOURCE_EXHAUSTED, "different operators", load_within_limits(&message));
}
END_TEST

START_TEST(test_many_small_things)
{
    static const uint32_t fields[] = {GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_INITIALIZER, GRAPH_SPARSE};
    for (size_t k = 0; k < sizeof fields / sizeof fields[0]; k++) {
        proto message = onnx_small_graph();
        for (size_t i = 0; i < 3000000; i++)
            proto_bytes(&message, fields[k], "", 0);
        test_fails(RNL_RESOURCE_EXHAUSTED, "more than", load_within_limits(&message));
    }
}
END_TEST

/* Eight bytes of memory for each byte of the file. */
START_TEST(test_many_packed_numbers)
{
    proto message = onnx_small_graph(), packed = {0};
    for (size_t i = 0; i < 10000000; i++)
        proto_number(&packed, 1);
    proto tensor = onnx_tensor("w", I64, 1, (const int64_t[]){10000000});
    proto_message(&tensor, TENSOR_INT64, &packed);
    proto_message(&message, GRAPH_INITIALIZER, &tensor);
    test_ok(load_within_limits(&message));
    ck_assert_uint_eq(graph->info.parameter_count, 10000000);
}
END_TEST

START_TEST(test_long_lists)
{
    proto message = {0}, attribute = {0}, attributes = {0}, packed = {0};
    for (size_t i = 0; i < 10000000; i++)
        proto_number(&packed, 1);
    proto_text(&attribute, ATTR_NAME, "axes");
    proto_message(&attribute, ATTR_INTS, &packed);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    onnx_node(&message, "Relu", "", "x", "y", &attributes);
    test_fails(RNL_RESOURCE_EXHAUSTED, "more than 4000000 elements", load_within_limits(&message));
    message = onnx_small_graph();
    proto model = onnx_model(&message, 13);
    for (size_t i = 0; i < 65537; i++)
        onnx_entry(&model, MODEL_METADATA, "", "");
    test_fails(RNL_RESOURCE_EXHAUSTED, "more than 65536 properties",
               rnl_graph_load_memory(model.data, model.size, &graph));
    proto_free(&model);
}
END_TEST

/* `levels` graphs inside each other, each in an attribute of the node of the one outside. */
static proto nested_graphs(size_t levels)
{
    proto inner = onnx_small_graph();
    for (size_t i = 1; i < levels; i++) {
        proto attribute = {0}, attributes = {0}, outer = {0};
        proto_text(&attribute, ATTR_NAME, "body");
        proto_message(&attribute, ATTR_G, &inner);
        proto_int(&attribute, ATTR_TYPE, 5);
        proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
        onnx_node(&outer, "Loop", "loop", "x", "y", &attributes);
        onnx_value(&outer, GRAPH_INPUT, "x", F32, 0, NULL);
        onnx_value(&outer, GRAPH_OUTPUT, "y", F32, 0, NULL);
        inner = outer;
    }
    return inner;
}

START_TEST(test_nested_graphs)
{
    proto message = nested_graphs(21);
    test_ok(load_within_limits(&message)); /* the check looks at all levels */
    const rnl_operator_info *rows;
    size_t count;
    test_fails(RNL_UNIMPLEMENTED, "Loop", rnl_graph_check(graph, &rows, &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(rows[0].op_type, "Loop");
    ck_assert_uint_eq(rows[0].unsupported_count, 20);
    ck_assert_uint_eq(rows[1].unsupported_count, 0);
    static const size_t deep[] = {22, 100, 1000, 3000};
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        message = nested_graphs(deep[i]);
        test_fails(RNL_INVALID_ARGUMENT, "nested more than 64 deep", load_within_limits(&message));
    }
}
END_TEST

START_TEST(test_nodes_in_subgraphs_count)
{
    proto inner = {0}, attribute = {0}, attributes = {0}, message = {0};
    for (size_t i = 0; i < 1000000; i++)
        proto_bytes(&inner, GRAPH_NODE, "", 0);
    proto_text(&attribute, ATTR_NAME, "bodies");
    proto_message(&attribute, ATTR_GRAPHS, &inner);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    onnx_node(&message, "Loop", "loop", "x", "y", &attributes);
    test_fails(RNL_RESOURCE_EXHAUSTED, "more than 1000000 nodes", load_within_limits(&message));
}
END_TEST

/* A large model costs its structure, not its weights. */
START_TEST(test_large_weights_are_not_touched)
{
    size_t size = (size_t)100 << 20;
    int64_t shape = (int64_t)size;
    void *weights = calloc(size, 1);
    ck_assert_ptr_nonnull(weights);
    proto message = onnx_small_graph();
    proto tensor = onnx_tensor_raw("w", 3, 1, &shape, weights, size);
    proto_message(&message, GRAPH_INITIALIZER, &tensor);
    proto model = onnx_model(&message, 13);
    free(weights);
    uint64_t start = processor_ns();
    test_ok(rnl_graph_load_memory(model.data, model.size, &graph));
    uint64_t took_us = (processor_ns() - start) / 1000;
    ck_assert_msg(took_us < (SANITIZED ? 100000 : 10000), "%llu us", (unsigned long long)took_us);
    ck_assert_uint_lt(graph->zone.used_bytes, 1 << 20);
    rnl_graph_release(graph);
    graph = NULL;
    proto_free(&model);
}
END_TEST

/* Each allocation fails in turn: an error, nothing lost (LeakSanitizer), and the next call works. */
START_TEST(test_every_allocation_fails)
{
    proto model = onnx_rich_model();
    rnl_status status = RNL_RESOURCE_EXHAUSTED;
    size_t failures = 0;
    for (uint64_t n = 1; status != RNL_OK && n < 1000; n++) {
        rnl_alloc_fail_at(n);
        status = rnl_graph_load_memory(model.data, model.size, &graph);
        rnl_alloc_fail_at(0);
        ck_assert(status == RNL_OK || status == RNL_RESOURCE_EXHAUSTED);
        ck_assert(status == RNL_OK || graph == NULL);
        failures += status != RNL_OK;
    }
    ck_assert_int_eq(status, RNL_OK);
    ck_assert_uint_ge(failures, 8);
    rnl_graph_release(graph);
    graph = NULL;
    proto_free(&model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("graph_limits");
    TCase *cases = tcase_create("all");
    tcase_set_timeout(cases, 200);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, test_a_million_nodes);
    tcase_add_test(cases, test_a_million_nodes_backwards);
    tcase_add_test(cases, test_one_node_too_many);
    tcase_add_test(cases, test_many_empty_nodes);
    tcase_add_test(cases, test_many_operators);
    tcase_add_test(cases, test_many_small_things);
    tcase_add_test(cases, test_many_packed_numbers);
    tcase_add_test(cases, test_long_lists);
    tcase_add_test(cases, test_nested_graphs);
    tcase_add_test(cases, test_nodes_in_subgraphs_count);
    tcase_add_test(cases, test_large_weights_are_not_touched);
    tcase_add_test(cases, test_every_allocation_fails);
    suite_add_tcase(suite, cases);
    return test_run(suite, true);
}
