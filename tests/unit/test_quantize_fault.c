/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each allocation between opening a model and writing its quantised file fails once: one message, nothing written,
 * nothing lost, and the next call works.
 */
#include "base/file.h"
#include "base/memory.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"
#include <runnel/quantize.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { F32 = 1, OPSET = 9, CHANNELS = 3, PIXELS = 16, SEEN = CHANNELS * PIXELS };

static char *folder, model_path[4200], result_path[4200];

/* Layers to fold, a residual sum, a pool and a join that follow in integers, and attributes that become inputs. */
static proto make_model(void)
{
    static const float weight[CHANNELS * CHANNELS] = {1, -2, 0.5f, 3, -1, 4, 0.25f, -3, 2};
    static const float bias[CHANNELS] = {0.5f, -1, 2};
    proto graph = {0}, clip = {0}, pool = {0}, join = {0}, sizes = {0};
    onnx_attribute_float(&clip, "min", 0);
    onnx_attribute_float(&clip, "max", 6);
    onnx_attribute_ints(&pool, "kernel_shape", (int64_t[]){2, 2}, 2);
    onnx_attribute_int(&join, "axis", 0);
    onnx_attribute_ints(&sizes, "axes", (int64_t[]){0}, 1);
    onnx_node(&graph, "Conv", "first", "x w b", "a", NULL);
    onnx_node(&graph, "Mul", "factor", "a c", "m", NULL);
    onnx_node(&graph, "Clip", "clip", "m", "r", &clip);
    onnx_node(&graph, "Conv", "second", "r w", "d", NULL);
    onnx_node(&graph, "Add", "sum", "r d", "e", NULL);
    onnx_node(&graph, "MaxPool", "pool", "e", "f", &pool);
    onnx_node(&graph, "Concat", "join", "f f", "g", &join);
    onnx_node(&graph, "Conv", "third", "g w b", "h", NULL);
    onnx_node(&graph, "Unsqueeze", "more", "h", "y", &sizes);
    proto tensors[] = {
        onnx_tensor_raw("w", F32, 4, (int64_t[]){CHANNELS, CHANNELS, 1, 1}, weight, sizeof weight),
        onnx_tensor_raw("b", F32, 1, (int64_t[]){CHANNELS}, bias, sizeof bias),
        onnx_tensor_raw("c", F32, 3, (int64_t[]){CHANNELS, 1, 1}, bias, sizeof bias),
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        proto_message(&graph, GRAPH_INITIALIZER, &tensors[i]);
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 4, (int64_t[]){1, CHANNELS, 4, 4});
    onnx_value(&graph, GRAPH_OUTPUT, "y", F32, SIZE_MAX, NULL);
    return onnx_model(&graph, OPSET);
}

static void setup(void)
{
    proto model = make_model();
    folder = test_folder_create();
    snprintf(model_path, sizeof model_path, "%s/model.onnx", folder);
    snprintf(result_path, sizeof result_path, "%s/result.onnx", folder);
    test_ok(rnl_file_write(model_path, model.data, model.size));
    proto_free(&model);
}

static void teardown(void)
{
    rnl_alloc_fail_at(0);
    test_folder_remove(folder);
}

typedef rnl_status (*look_fn)(rnl_quantizer *q, const rnl_tensor *tensors, size_t count);

/* All values of the model that a run could show. */
static rnl_status look(rnl_quantizer *q, look_fn at)
{
    static const char *const names[] = {"x", "a", "m", "r", "d", "e", "f", "g", "h", "y"};
    float seen[SEEN];
    for (size_t i = 0; i < SEEN; i++)
        seen[i] = (float)i / 8 - 2;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const rnl_tensor tensor = {.name = names[i],
                                   .dtype = RNL_F32,
                                   .rank = 4,
                                   .shape = {1, CHANNELS, 4, 4},
                                   .data = seen,
                                   .size_bytes = sizeof seen};
        const rnl_status status = at(q, &tensor, 1);
        if (status != RNL_OK)
            return status;
    }
    return RNL_OK;
}

static rnl_status quantise(rnl_quantizer_ranges ranges)
{
    rnl_quantizer_options options = RNL_QUANTIZER_OPTIONS_INIT;
    rnl_quantizer *q;
    void *data = NULL;
    size_t bytes;
    options.ranges = ranges;
    rnl_status status = rnl_quantizer_open(model_path, &options, &q);
    if (status == RNL_OK)
        status = rnl_quantizer_build(q, RNL_QUANTIZER_FLOAT, RNL_QUANTIZER_ALL, &data, &bytes);
    if (status == RNL_OK)
        status = look(q, rnl_quantizer_observe);
    if (status == RNL_OK)
        status = look(q, rnl_quantizer_count);
    if (status == RNL_OK)
        status = rnl_quantizer_write(q, result_path);
    rnl_quantizer_free(data);
    rnl_quantizer_release(q);
    return status;
}

/* The model, and the result where there is to be one; no temporary file either. */
static void check_folder(unsigned expected)
{
    unsigned files = 0;
    DIR *listing = opendir(folder);
    ck_assert_ptr_nonnull(listing);
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;)
        files += entry->d_name[0] != '.' || (entry->d_name[1] != '\0' && strcmp(entry->d_name, "..") != 0);
    closedir(listing);
    ck_assert_uint_eq(files, expected);
}

static void take_result(void **data, size_t *size)
{
    check_folder(2);
    test_ok(rnl_file_read(result_path, 1 << 20, data, size));
    ck_assert_int_eq(remove(result_path), 0);
}

/* What an allocation that is done without leaves is right all the same. */
static void check_result(const void *expected, size_t expected_size)
{
    void *data;
    size_t size;
    rnl_alloc_fail_at(0);
    take_result(&data, &size);
    ck_assert_uint_eq(size, expected_size);
    ck_assert_mem_eq(data, expected, size);
    rnl_free(data);
}

START_TEST(test_every_allocation)
{
    const rnl_quantizer_ranges ranges = (rnl_quantizer_ranges)_i;
    enum { BEYOND = 20 };
    void *expected;
    size_t size;
    unsigned failed = 0;
    test_ok(quantise(ranges));
    take_result(&expected, &size);
    for (uint64_t n = 1, passed = 0; passed < BEYOND; n++) {
        rnl_alloc_fail_at(n);
        const rnl_status status = quantise(ranges);
        rnl_alloc_fail_at(0);
        if (status == RNL_OK) {
            passed++;
            check_result(expected, size);
            continue;
        }
        passed = 0;
        failed++;
        ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
        ck_assert_int_eq(rnl_last_error()->status, status);
        ck_assert_uint_gt(strlen(rnl_last_error()->message), 10);
        check_folder(1);
    }
    ck_assert_uint_gt(failed, 100);
    test_ok(quantise(ranges));
    check_result(expected, size);
    rnl_free(expected);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantize_fault");
    TCase *tests = tcase_create("faults");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, test_every_allocation, RNL_RANGES_MIN_MAX, RNL_RANGES_MSE + 1);
    suite_add_tcase(suite, tests);
    return test_run(suite, true);
}
