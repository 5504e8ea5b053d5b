/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that stay in host memory: the memory that runs take, several sessions, cancelling, what is refused. */
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/pool.h>
#include <runnel/runnel.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define N 32
#define LAYERS 8
#define LAYER_BYTES ((size_t)N * N * sizeof(float)) /* at least: packed they may be larger */
#define ROWS 3
#define THREADS 3

static rnl_device *device;
static rnl_graph *graph;
static proto bytes;
static size_t plain_weights;
static float input[ROWS * N], expected[ROWS * N];

static rnl_tensor input_tensor(int64_t rows)
{
    return (rnl_tensor){
        .dtype = RNL_F32, .rank = 2, .shape = {rows, N}, .data = input, .size_bytes = (size_t)rows * N * sizeof *input};
}

static rnl_status open_model(size_t budget, rnl_model **out_model)
{
    rnl_model_options options = RNL_MODEL_OPTIONS_INIT;
    options.weight_budget_bytes = budget;
    return rnl_model_open(graph, device, &options, out_model);
}

static void run(rnl_session *session, int64_t rows)
{
    const rnl_tensor x = input_tensor(rows);
    rnl_tensor y = {0};
    test_ok(rnl_session_run(session, &x, 1, &y, 1));
    ck_assert_int_eq(memcmp(y.data, expected, (size_t)rows * N * sizeof *expected), 0);
}

/* What a model with its weights on the device gives. */
static void setup(void)
{
    rnl_model *model;
    rnl_session *session;
    rnl_model_stats stats;
    device = test_open_device();
    bytes = small_layers(N, LAYERS);
    for (size_t i = 0; i < ROWS * N; i++)
        input[i] = (float)((int)(i * 37 % 11) - 5) * 0.25f;
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(open_model(0, &model));
    test_ok(rnl_session_create(model, &session));
    const rnl_tensor x = input_tensor(ROWS);
    rnl_tensor y = {.data = expected, .size_bytes = sizeof expected};
    test_ok(rnl_session_run(session, &x, 1, &y, 1));
    rnl_model_get_stats(model, &stats);
    plain_weights = stats.weight_bytes;
    rnl_session_release(session);
    rnl_model_release(model);
}

static void teardown(void)
{
    rnl_graph_release(graph);
    rnl_device_release(device);
    proto_free(&bytes);
}

static size_t device_bytes(void)
{
    rnl_pool_stats stats;
    rnl_device_pool_stats(device, RNL_MEMORY_DEVICE, &stats);
    return stats.asked_bytes;
}

/* From a ring for one layer to one for all of them; a session's memory is its ring and its arena. */
START_TEST(memory_is_bounded)
{
    const size_t layer = plain_weights / LAYERS, budget = layer * (size_t)_i;
    rnl_model *model;
    rnl_session *session;
    rnl_session_stats stats;
    const size_t before = device_bytes();
    test_ok(open_model(budget, &model));
    test_ok(rnl_session_create(model, &session));
    for (int i = 0; i < 3; i++)
        run(session, ROWS);
    rnl_session_get_stats(session, &stats);
    ck_assert_uint_le(stats.weight_ring_bytes, budget);
    ck_assert_uint_gt(stats.weight_ring_bytes, _i < LAYERS ? budget / 2 : plain_weights / 8 * 7);
    ck_assert_uint_le(device_bytes() - before, stats.weight_ring_bytes + stats.arena_bytes);
    rnl_session_release(session);
    rnl_model_release(model);
    ck_assert_uint_eq(device_bytes(), before);
}
END_TEST

START_TEST(too_small_is_refused)
{
    rnl_model *model;
    rnl_session *session;
    const rnl_tensor x = input_tensor(1);
    rnl_tensor y = {0};
    test_ok(open_model(LAYER_BYTES / 2, &model));
    test_ok(rnl_session_create(model, &session));
    test_fails(RNL_RESOURCE_EXHAUSTED, "is too small: this step reads", rnl_session_run(session, &x, 1, &y, 1));
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "MatMul"));
    rnl_session_release(session);
    rnl_model_release(model);
}
END_TEST

static void *run_some(void *model)
{
    rnl_session *session;
    test_ok(rnl_session_create(model, &session));
    for (int i = 0; i < 4; i++)
        run(session, 1 + i % ROWS); /* several plans take turns in a session */
    rnl_session_release(session);
    return NULL;
}

START_TEST(sessions_have_rings_of_their_own)
{
    pthread_t threads[THREADS];
    rnl_model *model;
    test_ok(open_model(plain_weights / LAYERS * 3, &model));
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_some, model), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    rnl_model_release(model);
}
END_TEST

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int endings;

static void complete(void *user, const rnl_error *error)
{
    (void)user;
    pthread_mutex_lock(&lock);
    if (error)
        ck_assert_int_eq(error->status, RNL_CANCELLED);
    endings++;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
}

/* Wherever it is cancelled, nothing hangs, and the next run is right. */
START_TEST(cancelled_anywhere)
{
    rnl_model *model;
    rnl_session *session;
    const rnl_tensor x = input_tensor(ROWS);
    test_ok(open_model(plain_weights / LAYERS * 2, &model));
    test_ok(rnl_session_create(model, &session));
    for (int i = 0; i < 8; i++) {
        rnl_tensor y = {0};
        endings = 0;
        test_ok(rnl_session_submit(session, &x, 1, &y, 1, complete, NULL));
        for (volatile int spin = 0; spin < i * 20000; spin++)
            ;
        rnl_session_cancel(session);
        pthread_mutex_lock(&lock);
        while (endings == 0)
            pthread_cond_wait(&ended, &lock);
        pthread_mutex_unlock(&lock);
        run(session, ROWS);
    }
    rnl_session_release(session);
    rnl_model_release(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("weight_ring");
    TCase *test_case = tcase_create("weight_ring");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_loop_test(test_case, memory_is_bounded, 1, 5);
    tcase_add_loop_test(test_case, memory_is_bounded, LAYERS, LAYERS + 1);
    tcase_add_test(test_case, too_small_is_refused);
    tcase_add_test(test_case, sessions_have_rings_of_their_own);
    tcase_add_test(test_case, cancelled_anywhere);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
