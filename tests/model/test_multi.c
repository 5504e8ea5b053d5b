/* SPDX-License-Identifier: Apache-2.0 */
/* Several devices from outside: whole requests from many threads, batches that are split, what is refused, cancelling.
 */
#include "support/small_model.h"
#include "support/test_device.h"
#include "support/test_peer.h"
#include <runnel/multi.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 61
#define THREADS 4
#define DEVICES 2

static rnl_device *devices[DEVICES];
static rnl_graph *graph;
static rnl_multi *multi;
static proto bytes;
static float input[ROWS * SMALL_INPUTS];

static void setup(void)
{
    devices[0] = test_open_device();
    devices[1] = test_open_peer(devices[0]);
    bytes = small_model();
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(rnl_multi_open(graph, devices, DEVICES, NULL, &multi));
    for (size_t i = 0; i < ROWS * SMALL_INPUTS; i++)
        input[i] = (float)((int)(i * 37 % 11) - 5) * 0.25f;
}

static void teardown(void)
{
    rnl_multi_release(multi);
    rnl_graph_release(graph);
    for (size_t i = 0; i < DEVICES; i++)
        rnl_device_release(devices[i]);
    proto_free(&bytes);
}

static rnl_tensor input_tensor(int64_t rows)
{
    return (rnl_tensor){.name = "x",
                        .dtype = RNL_F32,
                        .rank = 2,
                        .shape = {rows, SMALL_INPUTS},
                        .data = input,
                        .size_bytes = (size_t)rows * SMALL_INPUTS * sizeof *input};
}

static void check_output(const rnl_tensor *y, int64_t rows)
{
    const float *got = y->data;
    ck_assert_int_eq(y->dtype, RNL_F32);
    ck_assert_uint_eq(y->rank, 2);
    ck_assert_int_eq(y->shape[0], rows);
    ck_assert_int_eq(y->shape[1], SMALL_OUTPUTS);
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < SMALL_OUTPUTS; j++) {
            double sum = small_bias[j];
            for (int k = 0; k < SMALL_INPUTS; k++)
                sum += (double)input[i * SMALL_INPUTS + k] * small_weight[k][j];
            ck_assert_double_eq_tol((double)got[i * SMALL_OUTPUTS + j], sum > 0 ? sum : 0, 1e-6);
        }
}

typedef rnl_status (*run_fn)(rnl_multi *, const rnl_tensor *, size_t, rnl_tensor *, size_t);

static void run_and_check(run_fn run, int64_t rows)
{
    rnl_tensor x = input_tensor(rows), y = {.name = "y"};
    test_ok(run(multi, &x, 1, &y, 1));
    check_output(&y, rows);
    rnl_output_release(y.data);
}

static bool one_thread_only(void)
{
    return strcmp(rnl_device_get_info(devices[0])->platform, "Oclgrind") == 0;
}

START_TEST(test_whole_requests)
{
    rnl_multi_device state[DEVICES];
    for (int64_t rows = 1; rows < 5; rows++)
        run_and_check(rnl_multi_run, rows);
    ck_assert_uint_eq(rnl_multi_get_devices(multi, state, DEVICES), DEVICES);
    for (size_t i = 0; i < DEVICES; i++) {
        ck_assert_ptr_eq(state[i].device, devices[i]);
        ck_assert_uint_ge(state[i].requests, 2); /* measured */
        ck_assert(!state[i].is_lost && state[i].failures == 0);
        ck_assert_uint_gt(state[i].model.weight_bytes, 0);
    }
}
END_TEST

/* What is computed for a batch is what a single device computes, however few rows there are for a device. */
START_TEST(test_split_batches)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 7, 16, 31, ROWS};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int again = 0; again < 2; again++)
            run_and_check(rnl_multi_run_split, sizes[i]);
    rnl_multi_device state[DEVICES];
    rnl_multi_get_devices(multi, state, DEVICES);
    ck_assert_uint_eq(state[0].share + state[1].share, ROWS);
}
END_TEST

/* Shares that are given, so that both devices have rows: as many as there are, fewer than devices, primes. */
START_TEST(test_given_shares)
{
    static const double given[][DEVICES] = {{1, 1}, {3, 1}, {0, 1}, {1e-3, 1e3}};
    static const int64_t sizes[] = {1, 2, 3, 5, 13, 31, ROWS};
    rnl_multi_options options = RNL_MULTI_OPTIONS_INIT;
    rnl_multi_device state[DEVICES];
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        rnl_multi_release(multi);
        options.shares = given[i];
        test_ok(rnl_multi_open(graph, devices, DEVICES, &options, &multi));
        for (size_t j = 0; j < 2 * sizeof sizes / sizeof *sizes; j++)
            run_and_check(rnl_multi_run_split, sizes[j / 2]);
        rnl_multi_get_devices(multi, state, DEVICES);
        const double first = ROWS * given[i][0] / (given[i][0] + given[i][1]);
        ck_assert_double_eq_tol((double)state[0].share, first, 1);
    }
    options.shares = (double[]){-1, 1};
    rnl_multi *other;
    test_fails(RNL_INVALID_ARGUMENT, "not -1", rnl_multi_open(graph, devices, DEVICES, &options, &other));
}
END_TEST

START_TEST(test_memory_of_the_caller)
{
    static const run_fn runs[] = {rnl_multi_run, rnl_multi_run_split, rnl_multi_run_split};
    float output[ROWS * SMALL_OUTPUTS + 1];
    rnl_tensor x = input_tensor(ROWS);
    x.name = NULL;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        rnl_tensor y = {.data = output, .size_bytes = ROWS * SMALL_OUTPUTS * sizeof *output};
        memset(output, 0, sizeof output);
        output[ROWS * SMALL_OUTPUTS] = 77;
        test_ok(runs[i](multi, &x, 1, &y, 1));
        ck_assert_ptr_eq(y.data, output);
        check_output(&y, ROWS);
        ck_assert_float_eq(output[ROWS * SMALL_OUTPUTS], 77);
        y.size_bytes--;
        test_fails(RNL_INVALID_ARGUMENT, "needs 976 bytes, 975 were given", runs[i](multi, &x, 1, &y, 1));
    }
}
END_TEST

START_TEST(test_wrong_calls)
{
    static const run_fn runs[] = {rnl_multi_run, rnl_multi_run_split};
    rnl_device *same[] = {devices[0], devices[0]};
    rnl_multi *other;
    for (size_t i = 0; i < 2; i++) {
        rnl_tensor x = input_tensor(4), y[2] = {{.name = "y"}, {.name = "y"}};
        test_fails(RNL_INVALID_ARGUMENT, "asked for twice", runs[i](multi, &x, 1, y, 2));
        test_fails(RNL_INVALID_ARGUMENT, "missing", runs[i](multi, NULL, 0, y, 1));
        x.name = "z";
        test_fails(RNL_INVALID_ARGUMENT, "no input 'z'", runs[i](multi, &x, 1, y, 1));
        ck_assert_ptr_null(y[0].data);
        x = input_tensor(4);
        y[0].name = "nothing";
        test_fails(RNL_INVALID_ARGUMENT, "no output 'nothing'", runs[i](multi, &x, 1, y, 1));
        y[0].name = "y";
        x.size_bytes--;
        test_fails(RNL_INVALID_ARGUMENT, "bytes", runs[i](multi, &x, 1, y, 1));
        x = input_tensor(4);
        x.shape[0] = INT64_MAX;
        test_fails(RNL_INVALID_ARGUMENT, NULL, runs[i](multi, &x, 1, y, 1));
        x.shape[0] = -1;
        test_fails(RNL_INVALID_ARGUMENT, "negative", runs[i](multi, &x, 1, y, 1));
        x.data = NULL;
        x.buffer = (rnl_buffer *)(void *)input; /* which is never looked at */
        test_fails(RNL_INVALID_ARGUMENT, "device memory", runs[i](multi, &x, 1, y, 1));
        run_and_check(runs[i], 3);
    }
    test_fails(RNL_INVALID_ARGUMENT, "same object", rnl_multi_open(graph, same, 2, NULL, &other));
    test_fails(RNL_INVALID_ARGUMENT, "1 to 64 devices", rnl_multi_open(graph, same, 0, NULL, &other));
}
END_TEST

START_TEST(test_device_lists)
{
    rnl_device *opened[4];
    size_t count = 0;
    test_ok(rnl_multi_open_devices("0:0,0:0", NULL, opened, 4, &count));
    ck_assert_uint_eq(count, 2);
    while (count > 0)
        rnl_device_release(opened[--count]);
    test_ok(rnl_multi_open_devices("all", NULL, opened, 4, &count));
    ck_assert_uint_ge(count, 1);
    while (count > 0)
        rnl_device_release(opened[--count]);
    test_fails(RNL_INVALID_ARGUMENT, "more than 1", rnl_multi_open_devices("0:0,0:0", NULL, opened, 1, &count));
    test_fails(RNL_INVALID_ARGUMENT, "nothing", rnl_multi_open_devices("0:0,", NULL, opened, 4, &count));
    test_fails(RNL_NOT_FOUND, "no such", rnl_multi_open_devices("0:0,no such", NULL, opened, 4, &count));
    ck_assert_uint_eq(count, 0);
}
END_TEST

/* ---- Models whose batches stay whole -------------------------------------------------------------------------- */

enum { FLOAT32 = 1, OPSET = 13 };

static proto one_node(const char *op, const char *inputs, int64_t rows)
{
    proto model = {0};
    onnx_node(&model, op, "node", inputs, "y", NULL);
    onnx_value(&model, GRAPH_INPUT, "x", FLOAT32, 2, (int64_t[]){rows, SMALL_INPUTS});
    onnx_value(&model, GRAPH_OUTPUT, "y", FLOAT32, 2, (int64_t[]){rows, SMALL_INPUTS});
    return onnx_model(&model, OPSET);
}

static void refuse_split(proto model, const char *part)
{
    rnl_tensor x = input_tensor(32), y = {.name = "y"};
    rnl_graph *other = NULL;
    rnl_multi *on_both = NULL;
    test_ok(rnl_graph_load_memory(model.data, model.size, &other));
    test_ok(rnl_multi_open(other, devices, DEVICES, NULL, &on_both));
    test_fails(RNL_FAILED_PRECONDITION, part, rnl_multi_run_split(on_both, &x, 1, &y, 1));
    test_fails(RNL_FAILED_PRECONDITION, part, rnl_multi_check_split(on_both));
    ck_assert_ptr_null(y.data);
    test_ok(rnl_multi_run(on_both, &x, 1, &y, 1));
    rnl_output_release(y.data);
    rnl_multi_release(on_both);
    rnl_graph_release(other);
    proto_free(&model);
}

START_TEST(test_fixed_batch)
{
    refuse_split(one_node("Relu", "x", 32), "the first dimension of input 'x' is not free");
}
END_TEST

/* y has as many rows as x, and the same free dimension, but turned round. */
START_TEST(test_rows_that_are_no_batch)
{
    proto model = {0};
    onnx_node(&model, "Transpose", "node", "x", "y", NULL);
    onnx_value(&model, GRAPH_INPUT, "x", FLOAT32, 2, (int64_t[]){-1, SMALL_INPUTS});
    onnx_value(&model, GRAPH_OUTPUT, "y", FLOAT32, 2, (int64_t[]){-1, -1});
    refuse_split(onnx_model(&model, OPSET), "output 'y' has another number of rows than the inputs");
}
END_TEST

/* ---- Many at a time ------------------------------------------------------------------------------------------- */

static void *call_often(void *argument)
{
    for (int64_t i = 0; i < 40; i++)
        run_and_check(i % 3 == 2 ? rnl_multi_run_split : rnl_multi_run, 1 + (i + *(int *)argument) % 6);
    return NULL;
}

START_TEST(test_many_callers)
{
    pthread_t threads[THREADS];
    int number[THREADS];
    if (one_thread_only())
        return;
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

#define MANY 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t completed, cancelled;

static void complete(void *user, const rnl_error *error)
{
    (void)user;
    pthread_mutex_lock(&lock);
    completed++;
    cancelled += error && error->status == RNL_CANCELLED;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for(size_t count)
{
    pthread_mutex_lock(&lock);
    while (completed < count)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void submit_many(rnl_multi *to, const rnl_tensor *x, rnl_tensor *y, uint64_t *ids)
{
    completed = cancelled = 0;
    for (size_t i = 0; i < MANY; i++) {
        y[i] = (rnl_tensor){.name = "y"};
        test_ok(rnl_multi_submit(to, x, 1, &y[i], 1, complete, NULL, &ids[i]));
    }
}

START_TEST(test_submit)
{
    rnl_tensor x = input_tensor(5), y[MANY], bad = x;
    uint64_t ids[MANY];
    if (one_thread_only())
        return;
    submit_many(multi, &x, y, ids);
    wait_for(MANY);
    for (size_t i = 0; i < MANY; i++) {
        check_output(&y[i], 5);
        rnl_output_release(y[i].data);
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_ne(ids[i], ids[j]);
    }
    bad.rank = 1;
    completed = 0;
    y[0] = (rnl_tensor){.name = "y"};
    test_ok(rnl_multi_submit(multi, &bad, 1, y, 1, complete, NULL, NULL));
    wait_for(1);
    ck_assert_ptr_null(y[0].data);
    test_fails(RNL_INVALID_ARGUMENT, "complete", rnl_multi_submit(multi, &x, 1, y, 1, NULL, NULL, NULL));
    run_and_check(rnl_multi_run, 2);
}
END_TEST

/* Both devices get their turn. */
START_TEST(test_round_robin)
{
    rnl_multi_options options = RNL_MULTI_OPTIONS_INIT;
    rnl_multi_device state[DEVICES];
    rnl_multi_release(multi);
    options.policy = RNL_MULTI_ROUND_ROBIN;
    options.in_flight = 2;
    test_ok(rnl_multi_open(graph, devices, DEVICES, &options, &multi));
    for (int i = 0; i < 10; i++)
        run_and_check(rnl_multi_run, 3);
    rnl_multi_get_devices(multi, state, DEVICES);
    ck_assert_uint_eq(state[0].requests, 5);
    ck_assert_uint_eq(state[1].requests, 5);
}
END_TEST

#define CHAIN_SIZE 32
#define CHAIN_STEPS 2000

START_TEST(test_cancel)
{
    static float matrix[CHAIN_SIZE * CHAIN_SIZE];
    proto chain = small_chain(CHAIN_SIZE, CHAIN_STEPS);
    rnl_multi_options options = RNL_MULTI_OPTIONS_INIT;
    rnl_tensor y[MANY], x = {.name = "x",
                             .dtype = RNL_F32,
                             .rank = 2,
                             .shape = {CHAIN_SIZE, CHAIN_SIZE},
                             .data = matrix,
                             .size_bytes = sizeof matrix};
    rnl_graph *long_graph = NULL;
    rnl_multi *slow = NULL;
    uint64_t ids[MANY];
    if (one_thread_only() || getenv("RUNNEL_TEST_SMALL"))
        return;
    options.policy = RNL_MULTI_ROUND_ROBIN; /* measures nothing first */
    test_ok(rnl_graph_load_memory(chain.data, chain.size, &long_graph));
    test_ok(rnl_multi_open(long_graph, devices, DEVICES, &options, &slow));
    submit_many(slow, &x, y, ids);
    rnl_multi_cancel(slow, ids[MANY - 1]);
    rnl_multi_cancel(slow, 0);
    wait_for(MANY);
    ck_assert_uint_ge(cancelled, MANY - 8);
    submit_many(slow, &x, y, ids);
    rnl_multi_release(slow); /* which cancels as well */
    ck_assert_uint_eq(completed, MANY);
    ck_assert_uint_ge(cancelled, MANY - 8);
    rnl_graph_release(long_graph);
    proto_free(&chain);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("multi");
    TCase *tcase = tcase_create("multi");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_whole_requests);
    tcase_add_test(tcase, test_split_batches);
    tcase_add_test(tcase, test_given_shares);
    tcase_add_test(tcase, test_memory_of_the_caller);
    tcase_add_test(tcase, test_wrong_calls);
    tcase_add_test(tcase, test_device_lists);
    tcase_add_test(tcase, test_fixed_batch);
    tcase_add_test(tcase, test_rows_that_are_no_batch);
    tcase_add_test(tcase, test_many_callers);
    tcase_add_test(tcase, test_submit);
    tcase_add_test(tcase, test_round_robin);
    tcase_add_test(tcase, test_cancel);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
