/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in files beside the model, and paths that lead elsewhere. */
#include "graph/graph.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { F32 = 1 };

static char *folder, *model_path;
static rnl_graph *graph;

static char *path_in_folder(const char *name)
{
    char *path = NULL;
    ck_assert_int_ge(asprintf(&path, "%s/%s", folder, name), 0);
    return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
    char *path = path_in_folder(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    free(path);
}

static void setup(void)
{
    static const float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    folder = test_folder_create();
    model_path = path_in_folder("model.onnx");
    graph = NULL;
    write_file("weights.bin", data, sizeof data);
    char *sub = path_in_folder("sub");
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    free(sub);
    write_file("sub/more.bin", data, sizeof data);
}

static void teardown(void)
{
    rnl_graph_release(graph);
    free(model_path);
    test_folder_remove(folder);
}

/* A tensor of four floats; NULL leaves an entry out. */
static void add_tensor(proto *message, const char *name, const char *location, const char *offset, const char *length)
{
    proto tensor = onnx_tensor(name, F32, 1, (const int64_t[]){4});
    if (location)
        onnx_entry(&tensor, TENSOR_EXTERNAL, "location", location);
    if (offset)
        onnx_entry(&tensor, TENSOR_EXTERNAL, "offset", offset);
    if (length)
        onnx_entry(&tensor, TENSOR_EXTERNAL, "length", length);
    onnx_entry(&tensor, TENSOR_EXTERNAL, "checksum", "0123");
    proto_int(&tensor, TENSOR_LOCATION, 1);
    proto_message(message, GRAPH_INITIALIZER, &tensor);
}

static rnl_status load(proto *message)
{
    proto model = onnx_model(message, 13);
    write_file("model.onnx", model.data, model.size);
    proto_free(&model);
    return rnl_graph_load(model_path, &graph);
}

static const rnl_host_tensor *constant(const char *name)
{
    for (size_t i = 0; i < graph->value_count; i++)
        if (strcmp(graph->values[i].name, name) == 0)
            return graph->values[i].constant;
    return NULL;
}

static void refuse(rnl_status expected, const char *part, const char *location, const char *offset, const char *length)
{
    proto message = onnx_small_graph();
    add_tensor(&message, "w", location, offset, length);
    test_fails(expected, part, load(&message));
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "tensor 'w'"));
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, model_path));
    ck_assert_ptr_null(graph);
}

START_TEST(test_reads)
{
    proto message = onnx_small_graph();
    add_tensor(&message, "a", "weights.bin", NULL, NULL);
    add_tensor(&message, "b", "./weights.bin", "16", "16");
    add_tensor(&message, "c", "sub/more.bin", "4", NULL);
    test_ok(load(&message));
    ck_assert_mem_eq(constant("a")->data, ((const float[]){0, 1, 2, 3}), 16);
    ck_assert_mem_eq(constant("b")->data, ((const float[]){4, 5, 6, 7}), 16);
    ck_assert_mem_eq(constant("c")->data, ((const float[]){1, 2, 3, 4}), 16);
    ck_assert_uint_eq(graph->external_count, 2); /* each file once */
}
END_TEST

START_TEST(test_model_in_the_working_folder)
{
    proto message = onnx_small_graph();
    add_tensor(&message, "a", "weights.bin", "0", "16");
    test_ok(load(&message));
    rnl_graph_release(graph);
    graph = NULL;
    ck_assert_int_eq(chdir(folder), 0);
    test_ok(rnl_graph_load("model.onnx", &graph));
    ck_assert_mem_eq(constant("a")->data, ((const float[]){0, 1, 2, 3}), 16);
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(test_paths_that_leave_the_folder)
{
    static const char *const paths[] = {"../weights.bin",     "/etc/passwd", "sub/../../weights.bin",
                                        "sub/../weights.bin", "..",          ".",
                                        "sub//more.bin",      "sub/"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        refuse(RNL_INVALID_ARGUMENT, paths[i], paths[i], NULL, NULL);
    refuse(RNL_INVALID_ARGUMENT, "no location", "", NULL, NULL);
    refuse(RNL_INVALID_ARGUMENT, "no location", NULL, NULL, NULL);
    refuse(RNL_NOT_FOUND, "absent.bin", "absent.bin", NULL, NULL);
    refuse(RNL_FAILED_PRECONDITION, "sub", "sub", NULL, NULL); /* a folder */
}
END_TEST

START_TEST(test_links)
{
    char *link_path = path_in_folder("link.bin"), *link_folder = path_in_folder("linked");
    ck_assert_int_eq(symlink("weights.bin", link_path), 0);
    ck_assert_int_eq(symlink("sub", link_folder), 0);
    refuse(RNL_FAILED_PRECONDITION, "link", "link.bin", NULL, NULL);
    refuse(RNL_FAILED_PRECONDITION, "link", "linked/more.bin", NULL, NULL);
    char *pipe_path = path_in_folder("pipe");
    ck_assert_int_eq(mkfifo(pipe_path, 0600), 0);
    refuse(RNL_FAILED_PRECONDITION, "not a regular file", "pipe", NULL, NULL); /* and does not wait for a writer */
    free(link_path);
    free(link_folder);
    free(pipe_path);
}
END_TEST

START_TEST(test_parts_that_are_not_there)
{
    static const char *const numbers[] = {"-1", "+1", "", "1x", " 1", "0x10", "99999999999999999999"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        refuse(RNL_INVALID_ARGUMENT, "the offset of its external data is not a number", "weights.bin", numbers[i],
               NULL);
        refuse(RNL_INVALID_ARGUMENT, "the length of its external data is not a number", "weights.bin", NULL,
               numbers[i]);
    }
    refuse(RNL_INVALID_ARGUMENT, "has 8 bytes, its shape needs 16", "weights.bin", NULL, "8");
    refuse(RNL_INVALID_ARGUMENT, "lies outside of the file of 32", "weights.bin", "17", NULL);
    refuse(RNL_INVALID_ARGUMENT, "lies outside of the file of 32", "weights.bin", "18446744073709551615", NULL);
    write_file("empty.bin", "", 0);
    refuse(RNL_INVALID_ARGUMENT, "lies outside of the file of 0", "empty.bin", NULL, NULL);
}
END_TEST

START_TEST(test_no_folder_in_memory)
{
    proto message = onnx_small_graph();
    add_tensor(&message, "w", "weights.bin", NULL, NULL);
    proto model = onnx_model(&message, 13);
    test_fails(RNL_INVALID_ARGUMENT, "read from memory", rnl_graph_load_memory(model.data, model.size, &graph));
    ck_assert_ptr_null(graph);
    proto_free(&model);
}
END_TEST

START_TEST(test_path_is_no_file)
{
    test_fails(RNL_FAILED_PRECONDITION, folder, rnl_graph_load(folder, &graph));
    ck_assert_ptr_null(graph);
    write_file("model.onnx", "", 0);
    test_fails(RNL_DATA_LOSS, "model.onnx is not an ONNX model: it is empty", rnl_graph_load(model_path, &graph));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("onnx_external");
    TCase *cases = tcase_create("all");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, test_reads);
    tcase_add_test(cases, test_model_in_the_working_folder);
    tcase_add_test(cases, test_paths_that_leave_the_folder);
    tcase_add_test(cases, test_links);
    tcase_add_test(cases, test_parts_that_are_not_there);
    tcase_add_test(cases, test_no_folder_in_memory);
    tcase_add_test(cases, test_path_is_no_file);
    suite_add_tcase(suite, cases);
    return test_run(suite, true);
}
