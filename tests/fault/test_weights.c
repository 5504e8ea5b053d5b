/* SPDX-License-Identifier: Apache-2.0 */
/* Weights on their way to the device: in place and through staging, from a file and from the caller's memory. */
#include "base/file.h"
#include "device/device.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"
#include <runnel/runnel.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than one piece of staging memory; every STEP-th number is looked at. */
enum { NUMBERS = 3000000, STEP = 4099, SAMPLES = (NUMBERS + STEP - 1) / STEP };
/* A convolution whose rows of output channels have to be padded. */
enum { CHANNELS = 24, FILTERS = 40, TAPS = 9, SIDE = 5, PIXELS = SIDE * SIDE };
enum { FLOAT32 = 1, INT64 = 7, OPSET = 13 };

static rnl_device *device;
static proto bytes;
static int64_t indices[SAMPLES];
static float *numbers, weight[FILTERS * CHANNELS * TAPS], image[CHANNELS * PIXELS];

static float number(size_t i)
{
    return (float)((int)(i * 7919 % 1000003) - 500000) / 1024;
}

static proto make_model(void)
{
    proto graph = {0}, attributes = {0};
    onnx_attribute_ints(&attributes, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    onnx_node(&graph, "Conv", "conv", "x w", "y", &attributes);
    onnx_node(&graph, "Gather", "gather", "c indices", "samples", NULL);
    onnx_node(&graph, "Add", "add", "samples s", "z", NULL);
    proto tensors[] = {
        onnx_tensor_raw("w", FLOAT32, 4, (int64_t[]){FILTERS, CHANNELS, 3, 3}, weight, sizeof weight),
        onnx_tensor_raw("c", FLOAT32, 1, (int64_t[]){NUMBERS}, numbers, NUMBERS * sizeof *numbers),
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        proto_message(&graph, GRAPH_INITIALIZER, &tensors[i]);
    onnx_value(&graph, GRAPH_INPUT, "x", FLOAT32, 4, (int64_t[]){1, CHANNELS, SIDE, SIDE});
    onnx_value(&graph, GRAPH_INPUT, "indices", INT64, 1, (int64_t[]){SAMPLES});
    onnx_value(&graph, GRAPH_INPUT, "s", FLOAT32, 1, (int64_t[]){1});
    onnx_value(&graph, GRAPH_OUTPUT, "y", FLOAT32, 4, (int64_t[]){1, FILTERS, SIDE, SIDE});
    onnx_value(&graph, GRAPH_OUTPUT, "z", FLOAT32, 1, (int64_t[]){SAMPLES});
    return onnx_model(&graph, OPSET);
}

static void setup(void)
{
    device = test_open_device();
    numbers = malloc(NUMBERS * sizeof *numbers);
    ck_assert_ptr_nonnull(numbers);
    for (size_t i = 0; i < NUMBERS; i++)
        numbers[i] = number(i);
    for (size_t i = 0; i < sizeof weight / sizeof *weight; i++)
        weight[i] = (float)((int)(i * 31 % 17) - 8) / 16;
    for (size_t i = 0; i < sizeof image / sizeof *image; i++)
        image[i] = (float)((int)(i * 13 % 23) - 11) / 8;
    for (int64_t i = 0; i < SAMPLES; i++)
        indices[i] = i * STEP;
    bytes = make_model();
}

static void teardown(void)
{
    rnl_device_release(device);
    proto_free(&bytes);
    free(numbers);
}

/* ---- right answers -------------------------------------------------------------------------------------------- */

static double convolved(int filter, int row, int column)
{
    double sum = 0;
    for (int channel = 0; channel < CHANNELS; channel++)
        for (int tap = 0; tap < TAPS; tap++) {
            int y = row + tap / 3 - 1, x = column + tap % 3 - 1;
            if (y >= 0 && y < SIDE && x >= 0 && x < SIDE)
                sum +=
                    (double)weight[(filter * CHANNELS + channel) * TAPS + tap] * image[channel * PIXELS + y * SIDE + x];
        }
    return sum;
}

static void run_and_check(rnl_model *model)
{
    rnl_session *session;
    float s = 0.5f;
    rnl_tensor inputs[] = {
        {.name = "x",
         .dtype = RNL_F32,
         .rank = 4,
         .shape = {1, CHANNELS, SIDE, SIDE},
         .data = image,
         .size_bytes = sizeof image},
        {.name = "indices",
         .dtype = RNL_I64,
         .rank = 1,
         .shape = {SAMPLES},
         .data = indices,
         .size_bytes = sizeof indices},
        {.name = "s", .dtype = RNL_F32, .rank = 1, .shape = {1}, .data = &s, .size_bytes = sizeof s}};
    rnl_tensor outputs[] = {{.name = "y"}, {.name = "z"}};
    test_ok(rnl_session_create(model, &session));
    test_ok(rnl_session_run(session, inputs, 3, outputs, 2));
    const float *y = outputs[0].data, *z = outputs[1].data;
    for (int i = 0; i < FILTERS * PIXELS; i++)
        ck_assert_double_eq_tol(y[i], convolved(i / PIXELS, i % PIXELS / SIDE, i % SIDE), 1e-3);
    for (size_t i = 0; i < SAMPLES; i++)
        ck_assert_float_eq(z[i], number(i * STEP) + s);
    rnl_session_release(session);
}

static void open_and_check(rnl_graph *graph)
{
    rnl_model *model;
    test_ok(rnl_model_open(graph, device, NULL, &model));
    run_and_check(model);
    rnl_model_release(model);
}

/* ---- the ways ------------------------------------------------------------------------------------------------- */

START_TEST(test_from_memory)
{
    rnl_graph *graph;
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    open_and_check(graph);
    open_and_check(graph);
    rnl_graph_release(graph);
}
END_TEST

START_TEST(test_through_staging)
{
    rnl_graph *graph;
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    bool before = device->maps_in_place;
    device->maps_in_place = false;
    open_and_check(graph);
    device->maps_in_place = before;
    rnl_graph_release(graph);
}
END_TEST

/* Memory of this process that pages of the file take, in KiB; *out_maps: how many maps of it there are. */
static long mapped_kib(const char *path, int *out_maps)
{
    char line[8192];
    long sum = 0, kib;
    bool ours = false;
    FILE *maps = fopen("/proc/self/smaps", "re");
    ck_assert_ptr_nonnull(maps);
    *out_maps = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            ours = strstr(line, path) != NULL;
            *out_maps += ours;
        }
        if (ours && sscanf(line, "Rss: %ld kB", &kib) == 1)
            sum += kib;
    }
    fclose(maps);
    return sum;
}

static void check_pages(const char *path)
{
    int maps;
    ck_assert_int_lt(mapped_kib(path, &maps), 256);
    ck_assert_int_eq(maps, 1);
}

START_TEST(test_pages_of_the_file_are_given_back)
{
    char *folder = test_folder_create(), path[4096];
    rnl_graph *graph;
    rnl_model *model;
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    test_ok(rnl_file_replace(path, bytes.data, bytes.size));
    test_ok(rnl_graph_load(path, &graph));
    test_ok(rnl_model_open(graph, device, NULL, &model));
    check_pages(path);
    run_and_check(model);
    open_and_check(graph); /* the file is read again */
    check_pages(path);
    rnl_model_release(model);
    rnl_graph_release(graph);
    test_folder_remove(folder);
}
END_TEST

static void *open_in_thread(void *graph)
{
    open_and_check(graph);
    return NULL;
}

START_TEST(test_models_side_by_side)
{
    pthread_t threads[2];
    rnl_graph *graph;
    if (strcmp(rnl_device_get_info(device)->platform, "Oclgrind") == 0)
        return; /* which crashes when several threads call it */
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    for (size_t i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, open_in_thread, graph), 0);
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    rnl_graph_release(graph);
}
END_TEST

START_TEST(test_too_little_memory)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    rnl_graph *graph;
    rnl_model *model;
    options.memory_limit_bytes = 8 << 20;
    rnl_device *small = test_open_device_with(&options);
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_fails(RNL_RESOURCE_EXHAUSTED, "placing weight 'c'", rnl_model_open(graph, small, NULL, &model));
    rnl_device_stats stats;
    rnl_device_get_stats(small, &stats);
    ck_assert_uint_eq(stats.pool_in_use_bytes, 0);
    rnl_graph_release(graph);
    rnl_device_release(small);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("weights");
    TCase *tcase = tcase_create("weights");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 200);
    tcase_add_test(tcase, test_from_memory);
    tcase_add_test(tcase, test_through_staging);
    tcase_add_test(tcase, test_pages_of_the_file_are_given_back);
    tcase_add_test(tcase, test_models_side_by_side);
    tcase_add_test(tcase, test_too_little_memory);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
