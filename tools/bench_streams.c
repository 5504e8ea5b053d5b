/* SPDX-License-Identifier: Apache-2.0 */
/* runnel bench streams: how much of copying hides behind computing, or the other way round. */
#include "bench.h"
#include "parse.h"
#include "progress.h"
#include "subject.h"

#include <errno.h>
#include <jansson.h>
#include <runnel/stream_pool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_STREAMS 8
#define MOST_ROUNDS (1 << 24)
#define SAMPLE_SECONDS 0.2 /* so long that filling and draining the streams is about a hundredth of it */

/* Takes part in a batch. */
enum { COPY = 1, COMPUTE = 2 };

static const int stream_counts[] = {1, 2, 4, 8};
#define COUNTS (sizeof stream_counts / sizeof *stream_counts)

static const char source[] = "kernel void work(global const float *in, global float *out, int rounds)\n"
                             "{\n"
                             "    size_t i = get_global_id(0);\n"
                             "    float x = in[i];\n"
                             "    for (int r = 0; r < rounds; ++r)\n"
                             "        x = mad(x, 0.5f, 0.5f);\n"
                             "    out[i] = x;\n"
                             "}\n";

/* What one stream's batches use. */
typedef struct lane {
    rnl_buffer *from, *in, *out, *to; /* pinned, device, device, pinned */
    rnl_kernel *kernel;
} lane;

typedef struct bench {
    rnl_subject_options options;
    rnl_device *device;
    const rnl_device_info *info;
    size_t bytes;
    int32_t rounds;
    lane lanes[MOST_STREAMS];
    rnl_stream_pool *pool;
    size_t stream_count;
    int parts;
    json_t *rows;
} bench;

static struct {
    uint64_t mib;
} asked;

/* ---- A batch ---- */

static rnl_status launch(const bench *b, const lane *with, rnl_stream *stream)
{
    const size_t most = b->info->emulated ? 16 : b->info->type == RNL_DEVICE_CPU ? 1024 : 256;
    const size_t local = most < b->info->max_work_group_size ? most : b->info->max_work_group_size;
    const rnl_range range = {1, {b->bytes / sizeof(float) / local * local, 1, 1}, {local, 1, 1}};
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = with->in},
                            {.kind = RNL_ARG_BUFFER, .buffer = with->out},
                            {.kind = RNL_ARG_VALUE, .size_bytes = sizeof b->rounds, .value = &b->rounds}};
    return rnl_stream_launch(stream, with->kernel, &range, args, 3);
}

static rnl_status enqueue(void *user)
{
    const bench *b = user;
    rnl_stream *stream;
    uint64_t number;
    rnl_status status = rnl_stream_pool_begin(b->pool, &stream, &number);
    if (status != RNL_OK)
        return status;
    /* One thread begins all batches, so the pool's streams take turns. */
    const lane *with = &b->lanes[number % b->stream_count];
    if (b->parts & COPY)
        status = rnl_stream_copy(stream, with->in, 0, with->from, 0, b->bytes);
    if (status == RNL_OK && (b->parts & COMPUTE))
        status = launch(b, with, stream);
    if (status == RNL_OK && (b->parts & COPY))
        status = rnl_stream_copy(stream, with->to, 0, with->out, 0, b->bytes);
    const rnl_status ended = rnl_stream_pool_end(b->pool, stream, NULL);
    return status == RNL_OK ? ended : status;
}

static rnl_status finish(void *user)
{
    const bench *b = user;
    return rnl_stream_pool_synchronize(b->pool, NULL);
}

/* Milliseconds a batch of these parts on that many streams. */
static rnl_status measure(bench *b, size_t streams, int parts, double *out_ms)
{
    rnl_stream_pool_options options = RNL_STREAM_POOL_OPTIONS_INIT;
    const rnl_measured work = {enqueue, finish, b};
    double ns = 0;
    options.stream_count = (uint32_t)streams;
    options.batch_limit = (uint32_t)streams * 2;
    b->stream_count = streams;
    b->parts = parts;
    rnl_status status = rnl_stream_pool_create(b->device, &options, &b->pool);
    if (status == RNL_OK)
        status = rnl_measure(&work, &b->options, &ns, NULL);
    rnl_stream_pool_release(b->pool);
    b->pool = NULL;
    *out_ms = ns * 1e-6;
    return status;
}

/* ---- Setting up ---- */

static rnl_status create_lane(bench *b, lane *it)
{
    const float one = 1;
    rnl_stream *stream = NULL;
    rnl_status status = rnl_buffer_create(b->device, RNL_MEMORY_PINNED, b->bytes, &it->from);
    if (status == RNL_OK)
        status = rnl_buffer_create(b->device, RNL_MEMORY_PINNED, b->bytes, &it->to);
    if (status == RNL_OK)
        status = rnl_buffer_create(b->device, RNL_MEMORY_DEVICE, b->bytes, &it->in);
    if (status == RNL_OK)
        status = rnl_buffer_create(b->device, RNL_MEMORY_DEVICE, b->bytes, &it->out);
    if (status == RNL_OK)
        status = rnl_kernel_create(b->device, source, NULL, "work", &it->kernel);
    if (status == RNL_OK)
        status = rnl_stream_create(b->device, &stream);
    if (status != RNL_OK)
        return status;
    float *from = rnl_buffer_host(it->from);
    for (size_t i = 0; i < b->bytes / sizeof *from; i++)
        from[i] = 1;
    memset(rnl_buffer_host(it->to), 0, b->bytes);
    status = rnl_stream_fill(stream, it->in, 0, &one, sizeof one, b->bytes);
    if (status == RNL_OK)
        status = rnl_stream_fill(stream, it->out, 0, &one, sizeof one, b->bytes);
    if (status == RNL_OK)
        status = rnl_stream_synchronize(stream);
    rnl_stream_release(stream);
    return status;
}

static void release_lane(lane *it)
{
    rnl_buffer_release(it->from);
    rnl_buffer_release(it->in);
    rnl_buffer_release(it->out);
    rnl_buffer_release(it->to);
    rnl_kernel_release(it->kernel);
}

/* Sets `rounds` so that computing takes about as long as copying in and out, where several streams do. */
static rnl_status calibrate(bench *b)
{
    const rnl_subject_options usual = b->options;
    double copy_ms = 0, few_ms = 0, many_ms = 0;
    b->options.repeat = 3;
    b->options.seconds = 0;
    rnl_status status = measure(b, 4, COPY, &copy_ms);
    for (b->rounds = 1; status == RNL_OK; b->rounds *= 2) {
        few_ms = many_ms;
        status = measure(b, 1, COMPUTE, &many_ms);
        if (many_ms >= copy_ms || b->rounds >= MOST_ROUNDS / 2)
            break;
    }
    /* Between the last two, time grows with the rounds. */
    if (many_ms > copy_ms && copy_ms > few_ms && many_ms > few_ms)
        b->rounds -= (int32_t)((double)b->rounds / 2 * (many_ms - copy_ms) / (many_ms - few_ms));
    b->options = usual;
    return status;
}

/* ---- What comes out ---- */

static rnl_exit report(const bench *b, size_t streams, double copy_ms, double compute_ms, double both_ms)
{
    const double ideal = copy_ms > compute_ms ? copy_ms : compute_ms;
    const double shorter = copy_ms > compute_ms ? compute_ms : copy_ms;
    const double hidden = (copy_ms + compute_ms - both_ms) / shorter;
    printf("%7zu %9.3f %9.3f %9.3f %9.3f %8.1f%% %8.1f\n", streams, copy_ms, compute_ms, ideal, both_ms, 100 * hidden,
           2 * (double)b->bytes / both_ms * 1e-6);
    fflush(stdout);
    if (b->rows)
        json_array_append_new(b->rows, json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "streams", (json_int_t)streams,
                                                 "copy_ms", copy_ms, "compute_ms", compute_ms, "ideal_ms", ideal,
                                                 "batch_ms", both_ms, "hidden", hidden));
    return RNL_EXIT_DONE;
}

static rnl_exit measure_count(bench *b, size_t streams)
{
    double copy_ms = 0, compute_ms = 0, both_ms = 0;
    rnl_status status = measure(b, streams, COPY, &copy_ms);
    if (status == RNL_OK)
        status = measure(b, streams, COMPUTE, &compute_ms);
    if (status == RNL_OK)
        status = measure(b, streams, COPY | COMPUTE, &both_ms);
    if (status != RNL_OK)
        return rnl_cli_fail_library("batches on %zu stream%s", streams, streams == 1 ? "" : "s");
    return report(b, streams, copy_ms, compute_ms, both_ms);
}

/* The fixed point of the kernel's arithmetic is 1, whatever the rounds. */
static rnl_exit check_results(const bench *b)
{
    for (size_t k = 0; k < MOST_STREAMS; k++) {
        const float *to = rnl_buffer_host(b->lanes[k].to);
        for (size_t i = 0; i < b->bytes / sizeof *to; i++)
            if (to[i] != 1)
                return rnl_cli_fail("stream %zu brought back %g instead of 1 at %zu", k, (double)to[i], i);
    }
    return RNL_EXIT_DONE;
}

static rnl_exit write_json(const bench *b)
{
    char clean[RNL_CLI_NAME_BYTES];
    json_t *root = json_pack("{s:s, s:I, s:I, s:O}", "device", b->info->name, "bytes", (json_int_t)b->bytes, "rounds",
                             (json_int_t)b->rounds, "rows", b->rows);
    const bool written = root && json_dump_file(root, b->options.json, JSON_INDENT(1)) == 0;
    json_decref(root);
    return written ? RNL_EXIT_DONE
                   : rnl_cli_fail("%s: %s", rnl_cli_clean(b->options.json, clean, sizeof clean), strerror(errno));
}

/* A batch each way: long enough on a GPU that enqueueing is nothing beside it. */
static size_t batch_bytes(const rnl_device_info *info)
{
    size_t bytes = (size_t)asked.mib << 20;
    if (bytes == 0)
        bytes = info->emulated ? (size_t)1 << 16 : info->type == RNL_DEVICE_CPU ? (size_t)2 << 20 : (size_t)32 << 20;
    return bytes;
}

static rnl_exit measure_all(bench *b)
{
    rnl_status status = RNL_OK;
    for (size_t i = 0; status == RNL_OK && i < MOST_STREAMS; i++)
        status = create_lane(b, &b->lanes[i]);
    if (status == RNL_OK)
        status = calibrate(b);
    if (status != RNL_OK)
        return rnl_cli_fail_library("batches of %zu bytes each way", b->bytes);
    printf("a batch: %.2f MiB in, %d rounds of arithmetic, %.2f MiB out\n", (double)b->bytes / 1048576, (int)b->rounds,
           (double)b->bytes / 1048576);
    puts("streams   copy ms   compute     ideal     batch   hidden     GB/s");
    rnl_exit code = RNL_EXIT_DONE;
    for (size_t i = 0; code == RNL_EXIT_DONE && i < COUNTS; i++)
        code = measure_count(b, (size_t)stream_counts[i]);
    return code == RNL_EXIT_DONE ? check_results(b) : code;
}

static rnl_exit run(const rnl_subject_options *options)
{
    bench b = {.options = *options};
    const double least = options->seconds > 0 ? SAMPLE_SECONDS * (double)options->repeat : 0;
    rnl_exit code = rnl_subject_open(options, &b.device);
    if (code != RNL_EXIT_DONE)
        return code;
    b.info = rnl_device_get_info(b.device);
    b.options.seconds = options->seconds > least ? options->seconds : least;
    b.rows = options->json ? json_array() : NULL;
    b.bytes = batch_bytes(b.info);
    code = measure_all(&b);
    if (code == RNL_EXIT_DONE && options->json)
        code = write_json(&b);
    json_decref(b.rows);
    for (size_t i = 0; i < MOST_STREAMS; i++)
        release_lane(&b.lanes[i]);
    rnl_device_release(b.device);
    return code;
}

enum { OPTION_SIZE = RNL_SUBJECT_OPTION };

static rnl_exit take(int code, const char *value)
{
    char clean[RNL_CLI_NAME_BYTES];
    rnl_cli_clean(value, clean, sizeof clean);
    if (code == 0)
        return rnl_cli_usage("bench", "streams: '%s' is one argument too many", clean);
    if (rnl_parse_whole(value, 1024, &asked.mib) && asked.mib > 0)
        return RNL_EXIT_DONE;
    return rnl_cli_usage("bench", "--size %s: not a whole number from 1 to 1024", clean);
}

static const struct option extra[] = {
    {"size", required_argument, NULL, OPTION_SIZE},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "\n"
    "Pushes batches through copy-in, compute and copy-out on 1, 2, 4 and 8 streams, from and to pinned memory. "
    "Computing\n"
    "is made to take about as long as copying. A row says how long a batch takes with copies alone, with the kernel\n"
    "alone, the longer of the two, which is the ideal, and with both; how much of the shorter one that hides; and "
    "what\n"
    "is copied a second, both directions together.\n"
    "\n"
    "      --size MIB             a batch copies so much in and out (default 32; 2 on a CPU)\n";

const rnl_subject rnl_subject_bench_streams = {
    "bench", "streams", "copies hidden behind computing, on 1 to 8 streams", help, extra, take, run,
};
