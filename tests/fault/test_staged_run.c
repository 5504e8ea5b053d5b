/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs of a run on a device with memory of its own, which a CPU pretends to be: through pinned memory. */
#include "device/device.h"
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/memory.h>
#include <runnel/runnel.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 150001   /* more than one piece, and a rest */
#define FEW_ROWS 5000 /* where a device is slow */

static rnl_device *device;
static rnl_graph *graph;
static rnl_model *model;
static rnl_session *session;
static proto bytes;
static size_t rows;
static float input[ROWS * SMALL_INPUTS], output[2][ROWS * SMALL_OUTPUTS];

static void setup(void)
{
    device = test_open_device();
    rows = getenv("RUNNEL_TEST_SMALL") ? FEW_ROWS : ROWS;
    device->maps_in_place = device->info.unified_memory = false;
    bytes = small_model();
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(rnl_model_open(graph, device, NULL, &model));
    test_ok(rnl_session_create(model, &session));
}

static void teardown(void)
{
    rnl_session_release(session);
    rnl_model_release(model);
    rnl_graph_release(graph);
    rnl_device_release(device);
    proto_free(&bytes);
}

static rnl_copy_stats stats_now(void)
{
    rnl_copy_stats stats;
    rnl_device_get_copy_stats(device, &stats);
    return stats;
}

static size_t in_bytes(void)
{
    return rows * SMALL_INPUTS * sizeof(float);
}

static size_t out_bytes(void)
{
    return rows * SMALL_OUTPUTS * sizeof(float);
}

static void check_output(const float *got)
{
    size_t wrong = 0;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < SMALL_OUTPUTS; j++) {
            double sum = small_bias[j];
            for (size_t k = 0; k < SMALL_INPUTS; k++)
                sum += (double)input[i * SMALL_INPUTS + k] * small_weight[k][j];
            wrong += !(fabs(got[i * SMALL_OUTPUTS + j] - (sum > 0 ? sum : 0)) < 1e-6); /* nor is NaN right */
        }
    ck_assert_uint_eq(wrong, 0);
}

static void run(void *first, void *second)
{
    rnl_tensor x = {
        .dtype = RNL_F32, .rank = 2, .shape = {(int64_t)rows, SMALL_INPUTS}, .data = input, .size_bytes = in_bytes()};
    rnl_tensor y[2] = {{.data = first, .size_bytes = out_bytes()}, {.data = second, .size_bytes = out_bytes()}};
    test_ok(rnl_session_run(session, &x, 1, y, second ? 2 : 1));
    check_output(y[0].data);
    if (second)
        check_output(y[1].data);
}

START_TEST(inputs_and_outputs_are_staged)
{
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < rows * SMALL_INPUTS; i++)
            input[i] = (float)((int)((i + (size_t)round) * 37 % 11) - 5) * 0.25f;
        memset(output, 0, sizeof output);
        uint64_t before = stats_now().staged_bytes;
        run(output[0], NULL);
        ck_assert_uint_eq(stats_now().staged_bytes - before, in_bytes() + out_bytes());
        run(NULL, NULL);
        run(output[0], output[1]); /* one output, asked for twice */
    }
    ck_assert_uint_eq(stats_now().in_place_bytes, 0);
    ck_assert_uint_gt(stats_now().pinned_bytes, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("staged_run");
    TCase *test_case = tcase_create("staged_run");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_test(test_case, inputs_and_outputs_are_staged);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
