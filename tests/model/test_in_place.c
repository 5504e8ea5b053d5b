/* SPDX-License-Identifier: Apache-2.0 */
/* A run's inputs and outputs: used where they are on a device in the host's memory, and right wherever they are. */
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/memory.h>
#include <runnel/runnel.h>

#include <stdlib.h>
#include <string.h>

#define ROWS 4096
#define FEW_ROWS 256 /* where a device is slow */
#define IN_BYTES (rows * SMALL_INPUTS * sizeof(float))
#define OUT_BYTES (rows * SMALL_OUTPUTS * sizeof(float))

static rnl_device *device;
static rnl_graph *graph;
static rnl_model *model;
static rnl_session *session;
static proto bytes;
static char *memory;
static size_t rows;
static float input[ROWS * SMALL_INPUTS];

static void setup(void)
{
    unsetenv("RUNNEL_ARENA"); /* which the sanitizers' runs set: values have no place of the caller's then */
    device = test_open_device();
    rows = getenv("RUNNEL_TEST_SMALL") ? FEW_ROWS : ROWS;
    bytes = small_model();
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(rnl_model_open(graph, device, NULL, &model));
    test_ok(rnl_session_create(model, &session));
    memory = aligned_alloc(4096, 1 << 20);
    for (size_t i = 0; i < rows * SMALL_INPUTS; i++)
        input[i] = (float)((int)(i * 37 % 11) - 5) * 0.25f;
}

static void teardown(void)
{
    rnl_session_release(session);
    rnl_model_release(model);
    rnl_graph_release(graph);
    rnl_device_release(device);
    proto_free(&bytes);
    free(memory);
}

static rnl_tensor input_at(char *at)
{
    memcpy(at, input, IN_BYTES);
    return (rnl_tensor){.name = "x",
                        .dtype = RNL_F32,
                        .rank = 2,
                        .shape = {(int64_t)rows, SMALL_INPUTS},
                        .data = at,
                        .size_bytes = IN_BYTES};
}

static rnl_tensor output_at(char *at, size_t size)
{
    return (rnl_tensor){.name = "y", .data = at, .size_bytes = size};
}

static void check_output(const char *at)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < SMALL_OUTPUTS; j++) {
            float got;
            double sum = small_bias[j];
            memcpy(&got, at + (i * SMALL_OUTPUTS + j) * sizeof got, sizeof got);
            for (size_t k = 0; k < SMALL_INPUTS; k++)
                sum += (double)input[i * SMALL_INPUTS + k] * small_weight[k][j];
            ck_assert_double_eq_tol(got, sum > 0 ? sum : 0, 1e-6);
        }
}

static rnl_copy_stats run(rnl_tensor *x, rnl_tensor *y, size_t output_count)
{
    rnl_copy_stats before, after;
    rnl_device_get_copy_stats(device, &before);
    test_ok(rnl_session_run(session, x, 1, y, output_count));
    rnl_device_get_copy_stats(device, &after);
    after.to_device_bytes -= before.to_device_bytes;
    after.to_host_bytes -= before.to_host_bytes;
    after.on_device_bytes -= before.on_device_bytes;
    after.in_place_bytes -= before.in_place_bytes;
    return after;
}

static bool shares_memory(void)
{
    return rnl_device_get_info(device)->type == RNL_DEVICE_CPU;
}

START_TEST(a_run_copies_nothing)
{
    for (int round = 0; round < 4; round++) {
        char *in = memory + 64 * round, *out = memory + (1 << 19) + 16 * round;
        rnl_tensor x = input_at(in), y = output_at(out, OUT_BYTES + 100 * (size_t)round);
        memset(out, 0x7f, OUT_BYTES + 512);
        rnl_copy_stats stats = run(&x, &y, 1);
        check_output(out);
        for (size_t i = OUT_BYTES; i < OUT_BYTES + 512; i++)
            ck_assert_int_eq(out[i], 0x7f);
        ck_assert_mem_eq(in, input, IN_BYTES);
        if (!shares_memory())
            continue;
        ck_assert_uint_eq(stats.in_place_bytes, IN_BYTES + OUT_BYTES);
        if (round > 0) /* the first one plans */
            ck_assert_uint_eq(stats.to_device_bytes + stats.to_host_bytes + stats.on_device_bytes, 0);
    }
}
END_TEST

START_TEST(memory_that_is_lent_is_written_in_place)
{
    for (int round = 0; round < 2; round++) {
        rnl_tensor x = input_at(memory), y = output_at(NULL, 0);
        rnl_copy_stats stats = run(&x, &y, 1);
        check_output(y.data);
        if (shares_memory())
            ck_assert_uint_eq(stats.in_place_bytes, IN_BYTES + OUT_BYTES);
    }
}
END_TEST

START_TEST(unaligned_memory_is_copied)
{
    char *out = memory + (1 << 19) + 4;
    rnl_tensor x = input_at(memory + 4), y = output_at(out, OUT_BYTES);
    rnl_copy_stats stats = run(&x, &y, 1);
    check_output(out);
    ck_assert_uint_eq(stats.in_place_bytes, 0);
    ck_assert_uint_ge(stats.to_device_bytes, IN_BYTES);
    ck_assert_uint_ge(stats.to_host_bytes, OUT_BYTES);
}
END_TEST

START_TEST(an_output_may_lie_on_the_input)
{
    for (size_t shift = 0; shift < 128; shift += 64) {
        rnl_tensor x = input_at(memory + shift), y = output_at(memory, OUT_BYTES);
        run(&x, &y, 1);
        check_output(memory);
    }
}
END_TEST

START_TEST(an_output_may_be_asked_for_twice)
{
    char *first = memory + (1 << 19), *second = memory + 3 * (1 << 18);
    rnl_tensor x = input_at(memory);
    rnl_tensor both[] = {output_at(first, OUT_BYTES), output_at(second, OUT_BYTES)};
    run(&x, both, 2);
    check_output(first);
    check_output(second);
}
END_TEST

START_TEST(a_refused_run_leaves_the_session_usable)
{
    char *out = memory + (1 << 19);
    rnl_tensor x = input_at(memory), y = output_at(out, OUT_BYTES - 1);
    test_fails(RNL_INVALID_ARGUMENT, "output 'y' needs", rnl_session_run(session, &x, 1, &y, 1));
    y = output_at(out, OUT_BYTES);
    x.data = NULL;
    test_fails(RNL_INVALID_ARGUMENT, "no memory", rnl_session_run(session, &x, 1, &y, 1));
    x = input_at(memory);
    run(&x, &y, 1);
    check_output(out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("in_place");
    TCase *test_case = tcase_create("in_place");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_test(test_case, a_run_copies_nothing);
    tcase_add_test(test_case, memory_that_is_lent_is_written_in_place);
    tcase_add_test(test_case, unaligned_memory_is_copied);
    tcase_add_test(test_case, an_output_may_lie_on_the_input);
    tcase_add_test(test_case, an_output_may_be_asked_for_twice);
    tcase_add_test(test_case, a_refused_run_leaves_the_session_usable);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
