/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of numbers are squared on several streams: while one batch is copied, another one computes. Then a second
 * stream takes a result over, without the host's waiting for it.
 */
#include <runnel/stream_pool.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 65536
#define BATCHES 12
#define STREAMS 3

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != RNL_OK) {                                                                                        \
            fprintf(stderr, "%s\n", rnl_last_error()->message);                                                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char source[] = "kernel void square(global const float *in, global float *out)\n"
                             "{\n"
                             "    size_t i = get_global_id(0);\n"
                             "    out[i] = in[i] * in[i];\n"
                             "}\n";

/* What a stream's batches use: batches that share a stream run one after the other. */
typedef struct lane {
    rnl_buffer *in, *out;
    rnl_kernel *kernel;
} lane;

static float numbers[BATCHES][COUNT], squares[BATCHES][COUNT];

static void push(rnl_stream_pool *pool, const lane *lanes, int batch)
{
    rnl_stream *stream;
    uint64_t number;
    CHECK(rnl_stream_pool_begin(pool, &stream, &number)); /* blocks while as many batches are under way as may be */
    const lane *with = &lanes[number % STREAMS];
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = with->in},
                            {.kind = RNL_ARG_BUFFER, .buffer = with->out}};
    const rnl_range range = {1, {COUNT, 1, 1}, {16, 1, 1}};
    CHECK(rnl_stream_write(stream, with->in, 0, numbers[batch], sizeof numbers[batch]));
    CHECK(rnl_stream_launch(stream, with->kernel, &range, args, 2));
    CHECK(rnl_stream_read(stream, squares[batch], with->out, 0, sizeof squares[batch]));
    CHECK(rnl_stream_pool_end(pool, stream, NULL));
}

/* The first stream's bytes pass to the second one's buffer when they are there. */
static float hand_over(rnl_device *device)
{
    rnl_stream *first, *second;
    rnl_buffer *a, *b;
    rnl_event *filled;
    const float value = 42;
    float back = 0;
    CHECK(rnl_stream_create(device, &first));
    CHECK(rnl_stream_create(device, &second));
    CHECK(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof value, &a));
    CHECK(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof value, &b));
    CHECK(rnl_stream_fill(first, a, 0, &value, sizeof value, sizeof value));
    CHECK(rnl_stream_record(first, &filled));
    CHECK(rnl_stream_wait(second, filled)); /* on the device: the host goes on */
    rnl_event_release(filled);
    CHECK(rnl_stream_copy(second, b, 0, a, 0, sizeof value));
    CHECK(rnl_stream_read(second, &back, b, 0, sizeof back));
    CHECK(rnl_stream_synchronize(second));
    rnl_buffer_release(a);
    rnl_buffer_release(b);
    rnl_stream_release(first);
    rnl_stream_release(second);
    return back;
}

int main(void)
{
    rnl_device *device;
    rnl_stream_pool *pool;
    rnl_stream_pool_options options = RNL_STREAM_POOL_OPTIONS_INIT;
    lane lanes[STREAMS];
    int wrong = 0;
    options.stream_count = STREAMS;
    options.batch_limit = 2 * STREAMS;
    CHECK(rnl_device_open(NULL, NULL, &device));
    CHECK(rnl_stream_pool_create(device, &options, &pool));
    for (int i = 0; i < STREAMS; i++) {
        CHECK(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof numbers[0], &lanes[i].in));
        CHECK(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof numbers[0], &lanes[i].out));
        CHECK(rnl_kernel_create(device, source, NULL, "square", &lanes[i].kernel));
    }
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < COUNT; i++)
            numbers[batch][i] = (float)(i % 1000 + batch);
        push(pool, lanes, batch);
    }
    CHECK(rnl_stream_pool_synchronize(pool, NULL));
    for (int batch = 0; batch < BATCHES; batch++)
        for (int i = 0; i < COUNT; i++)
            wrong += squares[batch][i] != numbers[batch][i] * numbers[batch][i];
    printf("%d batches of %d numbers on %d streams: %d wrong\n", BATCHES, COUNT, STREAMS, wrong);
    const float handed = hand_over(device);
    printf("handed over from one stream to another: %g\n", (double)handed);
    for (int i = 0; i < STREAMS; i++) {
        rnl_buffer_release(lanes[i].in);
        rnl_buffer_release(lanes[i].out);
        rnl_kernel_release(lanes[i].kernel);
    }
    rnl_stream_pool_release(pool);
    rnl_device_release(device);
    return wrong != 0 || handed != 42;
}
