/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products that follow each other, by a team of threads: right beside everything else that a stream does, and
 * where calls fail. Where the device has no team everything runs the usual way, and must do as well.
 */
#include "kernel/team_parts.h"
#include "support/fault.h"
#include "support/test_device.h"
#include <runnel/gemm.h>
#include <runnel/interop.h>
#include <runnel/pool.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIDE 128 /* a single row of which is multiplied by stretches of terms where those are (gemm_row.cl) */
#define COUNT 40 /* products, a multiple of FACTORS */
#define FACTORS 2
#define MOST_CALLS 4000

typedef struct chain {
    rnl_device *device;
    rnl_stream *stream;
    rnl_buffer *factor, *rows[2]; /* 1 x SIDE, there and back */
} chain;

/* Turns a row by one column, and doubles or halves it: exact, and each product's result shows. */
static void fill_factor(float factor[SIDE * SIDE])
{
    memset(factor, 0, SIDE * SIDE * sizeof *factor);
    for (int i = 0; i < SIDE; i++)
        factor[i * SIDE + (i + 1) % SIDE] = i % 2 ? 2.0f : 0.5f;
}

static void fill_row(float row[SIDE])
{
    for (int i = 0; i < SIDE; i++)
        row[i] = (float)(i - 40);
}

/* After a multiple of two products: an element has been doubled as often as halved. */
static void check_row(const float row[SIDE], int products)
{
    int wrong = 0; /* an assertion writes a message, whatever comes of it */
    for (int i = 0; i < SIDE; i++)
        wrong += row[(i + products) % SIDE] != (float)(i - 40);
    ck_assert_int_eq(wrong, 0);
}

static void put_row(const chain *it)
{
    float row[SIDE];
    fill_row(row);
    test_ok(rnl_stream_write(it->stream, it->rows[0], 0, row, sizeof row));
    test_ok(rnl_stream_synchronize(it->stream));
}

static void get_row(const chain *it, int products)
{
    float row[SIDE];
    test_ok(rnl_stream_read(it->stream, row, it->rows[products % 2], 0, sizeof row));
    test_ok(rnl_stream_synchronize(it->stream));
    check_row(row, products);
}

static chain open_chain(rnl_device *device)
{
    static float factor[SIDE * SIDE];
    chain made = {.device = device};
    fill_factor(factor);
    test_ok(rnl_stream_create(device, &made.stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof factor, &made.factor));
    for (int i = 0; i < 2; i++)
        test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, SIDE * sizeof(float), &made.rows[i]));
    test_ok(rnl_stream_write(made.stream, made.factor, 0, factor, sizeof factor));
    put_row(&made);
    return made;
}

static void close_chain(chain *it)
{
    rnl_buffer_release(it->factor);
    for (int i = 0; i < 2; i++)
        rnl_buffer_release(it->rows[i]);
    rnl_stream_release(it->stream);
}

static rnl_status multiply(rnl_stream *stream, rnl_buffer *a, rnl_buffer *b, rnl_buffer *c)
{
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    desc.m = 1, desc.n = desc.k = SIDE;
    operands.a = a, operands.b = b, operands.c = c;
    return rnl_gemm_run(stream, &desc, &operands);
}

static rnl_status turn(const chain *it, int from, int products)
{
    rnl_status status = RNL_OK;
    for (int i = from; i < from + products && status == RNL_OK; i++)
        status = multiply(it->stream, it->rows[i % 2], it->factor, it->rows[(i + 1) % 2]);
    return status;
}

/* The team's launches meanwhile: at least so many, or none where there is no team. */
static void check_launches(const rnl_device *device, bool has_team, uint64_t before, uint64_t least)
{
    const uint64_t launches = rnl_device_team_launches(device) - before;
    if (has_team)
        ck_assert_uint_ge(launches, least);
    else
        ck_assert_uint_eq(launches, 0);
}

START_TEST(test_in_a_row)
{
    rnl_device *device = test_open_device();
    chain it = open_chain(device);
    test_ok(turn(&it, 0, COUNT));
    get_row(&it, COUNT);
    const bool has_team = rnl_device_has_team(device);
    ck_assert(has_team || !test_must_have_team(device));
    const uint64_t before = rnl_device_team_launches(device);
    put_row(&it);
    test_ok(turn(&it, 0, COUNT));
    get_row(&it, COUNT);
    check_launches(device, has_team, before, COUNT - 6); /* some first ones are not its */
    const uint64_t by_team = rnl_device_team_launches(device);
    setenv("RUNNEL_TEAM", "off", 1);
    put_row(&it);
    test_ok(turn(&it, 0, COUNT));
    get_row(&it, COUNT);
    ck_assert_uint_eq(rnl_device_team_launches(device), by_team);
    close_chain(&it);
    rnl_device_release(device);
}
END_TEST

/* More than threads have places for, and with pauses in which they leave. */
START_TEST(test_far_ahead)
{
    const int count = 8 * (int)RNL_TEAM_INBOX_PLACES;
    rnl_device *device = test_open_device();
    chain it = open_chain(device);
    test_ok(turn(&it, 0, COUNT));
    get_row(&it, COUNT);
    const bool has_team = rnl_device_has_team(device);
    const uint64_t before = rnl_device_team_launches(device);
    put_row(&it);
    for (int i = 0; i < count; i += count / 4) {
        const struct timespec pause = {.tv_nsec = i * 1000};
        test_ok(turn(&it, i, count / 4));
        nanosleep(&pause, NULL);
    }
    get_row(&it, count);
    check_launches(device, has_team, before, (uint64_t)count - 6);
    close_chain(&it);
    rnl_device_release(device);
}
END_TEST

/* Each is waited for, or something else comes in between: going to the team and back would cost more. */
START_TEST(test_alone)
{
    rnl_device *device = test_open_device();
    chain it = open_chain(device);
    rnl_event *event;
    for (int i = 0; i < COUNT; i++) {
        test_ok(turn(&it, i, 1));
        if (i % 2) {
            test_ok(rnl_stream_synchronize(it.stream));
        } else {
            test_ok(rnl_stream_record(it.stream, &event));
            rnl_event_release(event);
        }
    }
    get_row(&it, COUNT);
    check_launches(device, false, 0, 0);
    close_chain(&it);
    rnl_device_release(device);
}
END_TEST

/* What is released in the stream's order is another's soon, which must not be while the team uses it. */
#define TALL 2048 /* rows, so that the team is behind */

typedef struct tall {
    float right[TALL * SIDE], wrong[TALL * SIDE], result[TALL * SIDE];
} tall;

static void fill_tall(tall *it)
{
    for (int i = 0; i < TALL * SIDE; i++) {
        it->right[i] = (float)(i % 64 - 31);
        it->wrong[i] = -1e9f;
    }
}

static void check_tall(const tall *it)
{
    int wrong = 0;
    for (int row = 0; row < TALL; row++)
        for (int i = 0; i < SIDE; i++)
            wrong += it->result[row * SIDE + (i + 1) % SIDE] != it->right[row * SIDE + i] * (i % 2 ? 2.0f : 0.5f);
    ck_assert_int_eq(wrong, 0);
}

static rnl_buffer *put_tall(rnl_device *device, rnl_stream *stream, const float *values)
{
    rnl_buffer *made;
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, TALL * SIDE * sizeof *values, &made));
    test_ok(rnl_stream_write(stream, made, 0, values, TALL * SIDE * sizeof *values));
    return made;
}

START_TEST(test_released_in_order)
{
    rnl_device *device = test_open_device();
    chain it = open_chain(device), other = open_chain(device);
    tall *values = malloc(sizeof *values);
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    ck_assert_ptr_nonnull(values);
    fill_tall(values);
    desc.m = TALL, desc.n = desc.k = SIDE;
    operands.b = it.factor;
    operands.c = put_tall(device, it.stream, values->wrong);
    for (int i = 0; i < 20; i++) {
        operands.a = put_tall(device, it.stream, values->right);
        test_ok(rnl_stream_synchronize(it.stream));
        for (int j = 0; j < 12; j++)
            test_ok(rnl_gemm_run(it.stream, &desc, &operands));
        test_ok(rnl_buffer_release_after(operands.a, it.stream));
        for (int j = 0; j < 4; j++)
            test_ok(rnl_buffer_release_after(put_tall(device, other.stream, values->wrong), other.stream));
        test_ok(rnl_stream_read(it.stream, values->result, operands.c, 0, sizeof values->result));
        test_ok(rnl_stream_synchronize(it.stream));
        check_tall(values);
    }
    test_ok(rnl_stream_synchronize(other.stream));
    rnl_buffer_release(operands.c);
    close_chain(&it);
    close_chain(&other);
    rnl_device_release(device);
    free(values);
}
END_TEST

/* One stream goes on where the other has got to, there and back. */
START_TEST(test_across_streams)
{
    rnl_device *device = test_open_device();
    chain it = open_chain(device);
    rnl_stream *streams[2] = {it.stream, NULL};
    test_ok(rnl_stream_create(device, &streams[1]));
    for (int i = 0; i < COUNT; i += 10) {
        rnl_event *event;
        it.stream = streams[i / 10 % 2];
        test_ok(turn(&it, i, 10));
        test_ok(rnl_stream_record(it.stream, &event));
        test_ok(rnl_stream_wait(streams[(i / 10 + 1) % 2], event));
        rnl_event_release(event);
    }
    it.stream = streams[0];
    get_row(&it, COUNT);
    test_ok(rnl_stream_synchronize(streams[1]));
    rnl_stream_release(streams[1]);
    close_chain(&it);
    rnl_device_release(device);
}
END_TEST

/* A stream that waits for the host holds up no other's products. */
START_TEST(test_one_waits)
{
    rnl_device *device = test_open_device();
    chain it = open_chain(device), other = open_chain(device);
    cl_int code;
    test_ok(turn(&other, 0, COUNT));
    get_row(&other, COUNT);
    put_row(&other);
    cl_event gate = clCreateUserEvent(rnl_device_get_cl_context(device), &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    test_ok(rnl_stream_wait_cl_event(it.stream, gate));
    test_ok(turn(&it, 0, COUNT));
    test_ok(turn(&other, 0, COUNT));
    get_row(&other, COUNT);
    ck_assert_int_eq(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    get_row(&it, COUNT);
    clReleaseEvent(gate);
    close_chain(&it);
    close_chain(&other);
    rnl_device_release(device);
}
END_TEST

/* What the kernels tell of the threads' sleep, and products enough for it to be looked at once. */
static void sleep_and_turn(const chain *it, bool keeps_on)
{
    const uint64_t hour = UINT64_C(10000000000000); /* of cycles; at 2.8 GHz */
    for (int i = 0; i < 9; i++) {
        if (i == 0 || keeps_on)
            __atomic_fetch_add((uint64_t *)(void *)&it->device->team->words[2], hour, __ATOMIC_SEQ_CST);
        put_row(it);
        test_ok(turn(it, 0, COUNT));
        get_row(it, COUNT);
    }
}

/* Where threads keep sleeping for long they are left alone for some time, and then they are tried again. */
START_TEST(test_rests)
{
    rnl_device *device = test_open_device();
    chain it = open_chain(device);
    unsetenv("RUNNEL_TEAM");
    test_ok(turn(&it, 0, COUNT)); /* each kernel has been launched as a whole */
    get_row(&it, COUNT);
    if (rnl_device_has_team(device)) {
        rnl_team *team = device->team;
        sleep_and_turn(&it, false);
        ck_assert_uint_eq(atomic_load(&team->rests), 0);
        sleep_and_turn(&it, true);
        const unsigned rests = atomic_load(&team->rests);
        ck_assert_uint_gt(rests, 0);
        const uint64_t before = it.stream->team_launches;
        test_ok(turn(&it, 0, COUNT));
        test_ok(rnl_stream_synchronize(it.stream));
        ck_assert_uint_eq(it.stream->team_launches, before);
        ck_assert_uint_lt(atomic_load(&team->rests), rests);
        atomic_store(&team->rests, 1);
        test_ok(turn(&it, 0, COUNT));
        test_ok(rnl_stream_synchronize(it.stream));
        ck_assert_uint_gt(it.stream->team_launches, before);
    }
    close_chain(&it);
    rnl_device_release(device);
}
END_TEST

static rnl_status pack_factor(const chain *it)
{
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    rnl_gemm *gemm;
    rnl_packed *packed = NULL;
    desc.m = 1, desc.n = desc.k = SIDE;
    operands.b = it->factor;
    test_ok(rnl_gemm_create(it->device, &desc, &gemm));
    rnl_status status = RNL_OK;
    for (int i = 0; i < 2 && status == RNL_OK; i++) {
        status = rnl_stream_gemm_pack(it->stream, gemm, RNL_GEMM_SIDE_B, &operands, &packed);
        rnl_packed_release(packed);
    }
    rnl_gemm_release(gemm);
    return status;
}

/* Others may enqueue there without this library's knowing. */
START_TEST(test_handed_out)
{
    rnl_device *device = test_open_device();
    chain it = open_chain(device);
    float row[SIDE];
    test_ok(turn(&it, 0, COUNT / 2));
    cl_command_queue queue = rnl_stream_get_cl_queue(it.stream);
    const uint64_t before = rnl_device_team_launches(device);
    test_ok(pack_factor(&it));
    test_ok(turn(&it, COUNT / 2, COUNT / 2));
    ck_assert_int_eq(
        clEnqueueReadBuffer(queue, rnl_buffer_get_cl_mem(it.rows[0]), CL_TRUE, 0, sizeof row, row, 0, NULL, NULL),
        CL_SUCCESS);
    check_row(row, COUNT);
    ck_assert_uint_eq(rnl_device_team_launches(device), before);
    close_chain(&it);
    rnl_device_release(device);
}
END_TEST

/* The n-th call fails: a message, nothing hangs, and another stream's products are right. */
START_TEST(test_every_call)
{
    rnl_device *device = test_open_device();
    chain it = open_chain(device);
    bool more = true;
    test_ok(turn(&it, 0, COUNT));
    get_row(&it, COUNT);
    for (uint64_t n = 1; more && n < MOST_CALLS; n++) {
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        const rnl_status status = turn(&it, 0, 12), end = rnl_stream_synchronize(it.stream);
        more = !test_cl_fault_left();
        ck_assert(more == (status != RNL_OK || end != RNL_OK));
        if (more)
            ck_assert_uint_gt(strlen(rnl_last_error()->message), 10);
        rnl_stream_release(it.stream);
        test_ok(rnl_stream_create(device, &it.stream));
        put_row(&it);
        test_ok(turn(&it, 0, 12));
        get_row(&it, 12);
        put_row(&it);
    }
    ck_assert(!more);
    close_chain(&it);
    rnl_device_release(device);
}
END_TEST

static void setup(void)
{
    setenv("RUNNEL_TEAM", "on", 1);
}

int main(void)
{
    setenv("POCL_MAX_PTHREAD_COUNT", "4", 0); /* more than two can meet in more ways */
    Suite *suite = suite_create("team_products");
    TCase *tcase = tcase_create("team_products");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_set_timeout(tcase, 0);
    tcase_add_test(tcase, test_in_a_row);
    tcase_add_test(tcase, test_far_ahead);
    tcase_add_test(tcase, test_alone);
    tcase_add_test(tcase, test_released_in_order);
    tcase_add_test(tcase, test_across_streams);
    tcase_add_test(tcase, test_one_waits);
    tcase_add_test(tcase, test_rests);
    tcase_add_test(tcase, test_handed_out);
    tcase_add_test(tcase, test_every_call);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
