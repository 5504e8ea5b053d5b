/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions from outside: runs, submissions, cancelling, memory of the caller's, wrong calls. */
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/runnel.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 7

static rnl_device *device;
static rnl_graph *graph;
static rnl_model *model;
static rnl_session *session;
static proto bytes;
static float input[ROWS * SMALL_INPUTS], output[ROWS * SMALL_OUTPUTS];

static void setup(void)
{
    device = test_open_device();
    bytes = small_model();
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(rnl_model_open(graph, device, NULL, &model));
    test_ok(rnl_session_create(model, &session));
    for (size_t i = 0; i < ROWS * SMALL_INPUTS; i++)
        input[i] = (float)((int)(i * 37 % 11) - 5) * 0.25f;
}

static void teardown(void)
{
    rnl_session_release(session);
    rnl_model_release(model);
    rnl_graph_release(graph);
    rnl_device_release(device);
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

static void check_output(const float *got, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < SMALL_OUTPUTS; j++) {
            double sum = small_bias[j];
            for (int k = 0; k < SMALL_INPUTS; k++)
                sum += (double)input[i * SMALL_INPUTS + k] * small_weight[k][j];
            ck_assert_double_eq_tol(got[i * SMALL_OUTPUTS + j], sum > 0 ? sum : 0, 1e-6);
        }
}

static void run_and_check(rnl_session *runner, int64_t rows)
{
    rnl_tensor x = input_tensor(rows), y = {.name = "y"};
    test_ok(rnl_session_run(runner, &x, 1, &y, 1));
    ck_assert_int_eq(y.dtype, RNL_F32);
    ck_assert_uint_eq(y.rank, 2);
    ck_assert_int_eq(y.shape[0], rows);
    ck_assert_int_eq(y.shape[1], SMALL_OUTPUTS);
    check_output(y.data, rows);
}

START_TEST(test_shapes_come_and_go)
{
    rnl_model_stats first, stats;
    run_and_check(session, 1);
    rnl_model_get_stats(model, &first);
    ck_assert_uint_ge(first.weight_bytes, sizeof small_weight + sizeof small_bias); /* packed, they may be larger */
    for (int round = 0; round < 2; round++)
        for (int64_t rows = 1; rows <= ROWS; rows++)
            run_and_check(session, rows);
    rnl_model_get_stats(model, &stats);
    ck_assert_uint_eq(stats.plans_built, ROWS);
    ck_assert_uint_eq(stats.weight_bytes, first.weight_bytes);
}
END_TEST

START_TEST(test_output_tensor_is_passed_again)
{
    rnl_tensor y = {.name = "y"};
    for (int64_t rows = 1; rows <= ROWS; rows++) {
        rnl_tensor x = input_tensor(rows);
        test_ok(rnl_session_run(session, &x, 1, &y, 1));
        ck_assert_int_eq(y.shape[0], rows);
        check_output(y.data, rows);
    }
}
END_TEST

START_TEST(test_output_is_taken)
{
    rnl_tensor x = input_tensor(ROWS), y = {.name = "y"}, foreign = {.data = output};
    test_ok(rnl_session_run(session, &x, 1, &y, 1));
    float *taken = y.data;
    ck_assert_ptr_eq(rnl_session_take_output(session, &foreign), NULL);
    ck_assert_ptr_eq(rnl_session_take_output(session, &y), taken);
    ck_assert_ptr_eq(rnl_session_take_output(session, &y), NULL);
    y.data = NULL;
    ck_assert_ptr_eq(rnl_session_take_output(session, &y), NULL);
    input[0] += 1;
    test_ok(rnl_session_run(session, &x, 1, &y, 1));
    ck_assert_ptr_ne(y.data, taken);
    check_output(y.data, ROWS);
    input[0] -= 1;
    check_output(taken, ROWS);
    rnl_output_release(taken);
    rnl_output_release(NULL);
}
END_TEST

START_TEST(test_no_rows)
{
    rnl_tensor x = input_tensor(0), y = {.name = "y"};
    test_ok(rnl_session_run(session, &x, 1, &y, 1));
    ck_assert_int_eq(y.shape[0], 0);
    run_and_check(session, 2);
}
END_TEST

START_TEST(test_memory_of_the_caller)
{
    rnl_tensor x = input_tensor(ROWS), y = {.data = output, .size_bytes = sizeof output};
    x.name = NULL; /* the model has one input and one output */
    test_ok(rnl_session_run(session, &x, 1, &y, 1));
    check_output(output, ROWS);
    y.size_bytes = sizeof output - 1;
    test_fails(RNL_INVALID_ARGUMENT, "needs 112 bytes, 111 were given", rnl_session_run(session, &x, 1, &y, 1));
    run_and_check(session, 3);
}
END_TEST

START_TEST(test_device_memory)
{
    rnl_buffer *buffer = NULL;
    rnl_stream *stream = NULL;
    size_t x_bytes = ROWS * SMALL_INPUTS * sizeof *input;
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 1024, &buffer));
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_stream_write(stream, buffer, 64, input, x_bytes));
    test_ok(rnl_stream_synchronize(stream));
    rnl_tensor x = input_tensor(ROWS), y = {.name = "y", .buffer = buffer, .offset_bytes = 512, .size_bytes = 512};
    x.data = NULL;
    x.buffer = buffer;
    x.offset_bytes = 64;
    test_ok(rnl_session_run(session, &x, 1, &y, 1));
    test_ok(rnl_stream_read(stream, output, buffer, 512, sizeof output));
    test_ok(rnl_stream_synchronize(stream));
    check_output(output, ROWS);
    x.offset_bytes = 1024 - x_bytes + 1;
    test_fails(RNL_INVALID_ARGUMENT, "past the end of its buffer", rnl_session_run(session, &x, 1, &y, 1));
    rnl_stream_release(stream);
    rnl_buffer_release(buffer);
}
END_TEST

START_TEST(test_wrong_inputs)
{
    rnl_tensor x = input_tensor(2), y = {.name = "y"}, twice[2] = {x, x};
    x.name = "z";
    test_fails(RNL_INVALID_ARGUMENT, "no input 'z'; its inputs are 'x'", rnl_session_run(session, &x, 1, &y, 1));
    x = input_tensor(2);
    x.dtype = RNL_I32;
    test_fails(RNL_INVALID_ARGUMENT, "int32; the model expects float32", rnl_session_run(session, &x, 1, &y, 1));
    x = input_tensor(2);
    x.shape[1] = 4;
    test_fails(RNL_INVALID_ARGUMENT, "shape 2x4; the model expects ?x3", rnl_session_run(session, &x, 1, &y, 1));
    x.rank = 1;
    test_fails(RNL_INVALID_ARGUMENT, "expects ?x3", rnl_session_run(session, &x, 1, &y, 1));
    x = input_tensor(2);
    x.shape[0] = INT64_MAX;
    test_fails(RNL_INVALID_ARGUMENT, "too large", rnl_session_run(session, &x, 1, &y, 1));
    x.shape[0] = -1;
    test_fails(RNL_INVALID_ARGUMENT, "negative", rnl_session_run(session, &x, 1, &y, 1));
    x = input_tensor(2);
    x.size_bytes--;
    test_fails(RNL_INVALID_ARGUMENT, "needs 24 bytes, 23", rnl_session_run(session, &x, 1, &y, 1));
    x = input_tensor(2);
    x.data = NULL;
    test_fails(RNL_INVALID_ARGUMENT, "no memory", rnl_session_run(session, &x, 1, &y, 1));
    test_fails(RNL_INVALID_ARGUMENT, "missing", rnl_session_run(session, NULL, 0, &y, 1));
    test_fails(RNL_INVALID_ARGUMENT, "given twice", rnl_session_run(session, twice, 2, &y, 1));
    x = input_tensor(2);
    y.name = "nothing";
    test_fails(RNL_INVALID_ARGUMENT, "no output 'nothing'; its outputs are 'y'",
               rnl_session_run(session, &x, 1, &y, 1));
    test_fails(RNL_INVALID_ARGUMENT, "session is NULL", rnl_session_run(NULL, &x, 1, &y, 1));
    run_and_check(session, 2);
}
END_TEST

START_TEST(test_release_in_any_order)
{
    rnl_graph_release(graph);
    rnl_device_release(device);
    rnl_model_release(model);
    graph = NULL;
    device = NULL;
    model = NULL;
    run_and_check(session, 4);
}
END_TEST

/* oclgrind's driver crashes when several threads call it. */
static bool one_thread_only(void)
{
    return strcmp(rnl_device_get_info(device)->platform, "Oclgrind") == 0;
}

/* ---- submitting ----------------------------------------------------------------------------------------------- */

typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int count;
    rnl_error error;
} waiter;

static waiter wait_state = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void complete(void *user, const rnl_error *error)
{
    waiter *state = user;
    pthread_mutex_lock(&state->lock);
    state->error = error ? *error : (rnl_error){.status = RNL_OK};
    state->count++;
    pthread_cond_signal(&state->done);
    pthread_mutex_unlock(&state->lock);
}

static rnl_status wait_for(int count)
{
    pthread_mutex_lock(&wait_state.lock);
    while (wait_state.count < count)
        pthread_cond_wait(&wait_state.done, &wait_state.lock);
    pthread_mutex_unlock(&wait_state.lock);
    return wait_state.error.status;
}

START_TEST(test_submit)
{
    rnl_tensor x = input_tensor(ROWS), y = {.name = "y", .data = output, .size_bytes = sizeof output};
    if (one_thread_only())
        return;
    wait_state.count = 0;
    for (int i = 1; i <= 5; i++) {
        memset(output, 0, sizeof output);
        test_ok(rnl_session_submit(session, &x, 1, &y, 1, complete, &wait_state));
        ck_assert_int_eq(wait_for(i), RNL_OK);
        check_output(output, ROWS);
    }
    x.name = "z";
    test_ok(rnl_session_submit(session, &x, 1, &y, 1, complete, &wait_state));
    ck_assert_int_eq(wait_for(6), RNL_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(wait_state.error.message, "no input 'z'"));
    test_fails(RNL_INVALID_ARGUMENT, "complete", rnl_session_submit(session, &x, 1, &y, 1, NULL, NULL));
    run_and_check(session, 2);
}
END_TEST

#define CHAIN_SIZE 64
#define CHAIN_STEPS 3000

typedef struct chain {
    proto bytes;
    rnl_graph *graph;
    rnl_model *model;
    rnl_session *session;
    float *matrix;
    rnl_tensor x, y;
} chain;

static void chain_create(chain *c)
{
    *c = (chain){.bytes = small_chain(CHAIN_SIZE, CHAIN_STEPS)};
    test_ok(rnl_graph_load_memory(c->bytes.data, c->bytes.size, &c->graph));
    test_ok(rnl_model_open(c->graph, device, NULL, &c->model));
    test_ok(rnl_session_create(c->model, &c->session));
    c->matrix = malloc(CHAIN_SIZE * CHAIN_SIZE * sizeof *c->matrix);
    for (size_t i = 0; i < CHAIN_SIZE * CHAIN_SIZE; i++)
        c->matrix[i] = 1;
    c->x = (rnl_tensor){.name = "x",
                        .dtype = RNL_F32,
                        .rank = 2,
                        .shape = {CHAIN_SIZE, CHAIN_SIZE},
                        .data = c->matrix,
                        .size_bytes = CHAIN_SIZE * CHAIN_SIZE * sizeof *c->matrix};
    c->y = (rnl_tensor){.name = "y"};
}

static void chain_release(chain *c)
{
    rnl_session_release(c->session);
    rnl_model_release(c->model);
    rnl_graph_release(c->graph);
    proto_free(&c->bytes);
    free(c->matrix);
}

START_TEST(test_cancel)
{
    chain c;
    if (one_thread_only())
        return;
    chain_create(&c);
    wait_state.count = 0;
    test_ok(rnl_session_submit(c.session, &c.x, 1, &c.y, 1, complete, &wait_state));
    test_fails(RNL_UNAVAILABLE, "still running",
               rnl_session_submit(c.session, &c.x, 1, &c.y, 1, complete, &wait_state));
    rnl_session_cancel(c.session);
    ck_assert_int_eq(wait_for(1), RNL_CANCELLED);
    ck_assert_ptr_nonnull(strstr(wait_state.error.message, "cancelled before step"));
    rnl_session_cancel(c.session); /* nothing runs: no effect on the next run */
    if (!getenv("RUNNEL_TEST_SMALL")) {
        test_ok(rnl_session_run(c.session, &c.x, 1, &c.y, 1));
        ck_assert_float_eq_tol(((float *)c.y.data)[5], 1, 1e-3f);
    }
    chain_release(&c);
}
END_TEST

START_TEST(test_release_while_running)
{
    chain c;
    if (one_thread_only())
        return;
    chain_create(&c);
    wait_state.count = 0;
    test_ok(rnl_session_submit(c.session, &c.x, 1, &c.y, 1, complete, &wait_state));
    chain_release(&c);
    ck_assert_int_eq(wait_state.count, 1);
    ck_assert_int_eq(wait_state.error.status, RNL_CANCELLED);
}
END_TEST

static void *run_in_thread(void *argument)
{
    rnl_session *mine = NULL;
    (void)argument;
    test_ok(rnl_session_create(model, &mine));
    for (int i = 0; i < 20; i++)
        run_and_check(mine, i % ROWS + 1);
    rnl_session_release(mine);
    return NULL;
}

START_TEST(test_sessions_side_by_side)
{
    pthread_t threads[4];
    if (one_thread_only())
        return;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_in_thread, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    rnl_model_stats stats;
    rnl_model_get_stats(model, &stats);
    ck_assert_uint_eq(stats.plans_built, ROWS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("session");
    TCase *tcase = tcase_create("session");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_shapes_come_and_go);
    tcase_add_test(tcase, test_output_tensor_is_passed_again);
    tcase_add_test(tcase, test_output_is_taken);
    tcase_add_test(tcase, test_no_rows);
    tcase_add_test(tcase, test_memory_of_the_caller);
    tcase_add_test(tcase, test_device_memory);
    tcase_add_test(tcase, test_wrong_inputs);
    tcase_add_test(tcase, test_release_in_any_order);
    tcase_add_test(tcase, test_submit);
    tcase_add_test(tcase, test_cancel);
    tcase_add_test(tcase, test_release_while_running);
    tcase_add_test(tcase, test_sessions_side_by_side);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
