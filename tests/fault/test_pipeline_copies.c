/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines over devices that are made to look as if they had memory of their own: what crosses is pinned and copied.
 */
#include "device/device.h"
#include "support/small_model.h"
#include "support/test_device.h"
#include "support/test_peer.h"
#include <runnel/pipeline.h>

#define SIZE 96
#define NODES 7
#define BATCHES 11

static rnl_device *devices[2];
static proto bytes;
static float x[BATCHES][SIZE * SIZE], y[BATCHES][SIZE * SIZE];

static void setup(void)
{
    devices[0] = test_open_device();
    devices[1] = test_open_peer(devices[0]);
    bytes = small_chain(SIZE, NODES);
}

static void teardown(void)
{
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(test_pool_in_use(devices[i]), 0);
        rnl_device_release(devices[i]);
    }
    proto_free(&bytes);
}

static void complete(void *user, const rnl_error *error)
{
    ck_assert_msg(!error, "%s", error ? error->message : "");
    ++*(size_t *)user;
}

static rnl_tensor matrix(float *data)
{
    return (rnl_tensor){
        .dtype = RNL_F32, .rank = 2, .shape = {SIZE, SIZE}, .data = data, .size_bytes = sizeof(float) * SIZE * SIZE};
}

/* Each product with a matrix of 1/n gives the mean of each row. */
static void check(const float *in, const float *out)
{
    for (size_t i = 0; i < SIZE; i++) {
        double mean = 0;
        for (size_t k = 0; k < SIZE; k++)
            mean += in[i * SIZE + k] / (double)SIZE;
        for (size_t k = 0; k < SIZE; k++)
            ck_assert_double_eq_tol(out[i * SIZE + k], mean, 1e-5);
    }
}

/* The loop goes over which of the two has memory of its own: the first, the second, both. */
START_TEST(values_cross)
{
    rnl_pipeline_options options = RNL_PIPELINE_OPTIONS_INIT;
    rnl_pipeline_stage stages[2];
    rnl_tensor inputs[BATCHES], outputs[BATCHES];
    rnl_pipeline *pipeline;
    rnl_graph *graph;
    size_t ended = 0;
    devices[0]->maps_in_place = devices[0]->maps_in_place && _i == 1;
    devices[1]->maps_in_place = devices[1]->maps_in_place && _i == 0;
    options.estimate = true;
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(rnl_pipeline_create(graph, devices, 2, &options, &pipeline));
    rnl_graph_release(graph);
    ck_assert_uint_eq(rnl_pipeline_get_stages(pipeline, stages, 2), 2);
    ck_assert_uint_eq(stages[1].crossing_bytes, sizeof x[0]);
    for (size_t b = 0; b < BATCHES; b++) {
        for (size_t i = 0; i < SIZE * SIZE; i++)
            x[b][i] = (float)((i * 7 + b * 13) % 31) / 31.0f;
        inputs[b] = matrix(x[b]);
        outputs[b] = matrix(y[b]);
        test_ok(rnl_pipeline_submit(pipeline, &inputs[b], 1, &outputs[b], 1, complete, &ended));
    }
    rnl_pipeline_wait(pipeline);
    ck_assert_uint_eq(ended, BATCHES);
    for (size_t b = 0; b < BATCHES; b++)
        check(x[b], y[b]);
    rnl_pipeline_release(pipeline);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipeline_copies");
    TCase *test_case = tcase_create("pipeline_copies");
    tcase_set_timeout(test_case, 120);
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_loop_test(test_case, values_cross, 0, 3);
    suite_add_tcase(suite, test_case);
    return test_run(suite, true);
}
