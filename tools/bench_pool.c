/* SPDX-License-Identifier: Apache-2.0 */
/* `runnel bench pool`: what memory costs from the pool and from the driver. */
#include "bench.h"
#include "subject.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <runnel/pool.h>
#include <stdatomic.h>
#include <string.h>

#define THREADS 8
#define SIZES 4
#define LAUNCHED 256 /* small buffers that launches take in turn */

static const size_t sizes[SIZES] = {(size_t)4 << 10, (size_t)64 << 10, (size_t)1 << 20, (size_t)16 << 20};

enum { POOL, POOL_ORDERED, POOL_THREADS, DRIVER, DRIVER_TOUCHED, WAYS };
static const char *const way_names[WAYS] = {"pool", "pool_ordered", "pool_threads", "driver", "driver_touched"};
static const char *const way_texts[WAYS] = {"pool", "in order", "8 threads", "driver", "and touched"};

typedef struct bench {
    const rnl_subject_options *options;
    rnl_device *device, *exact; /* exact: each buffer comes from the driver and goes back to it */
    rnl_stream *stream, *exact_stream;
    size_t size;
    double ns[SIZES][WAYS];
    rnl_kernel *kernel;
    rnl_buffer *launched[LAUNCHED];
    size_t next;
    double launch_ns[2]; /* buffers that are parts of a chunk, and memory of their own */
} bench;

/* ---- One allocation and release ---- */

static rnl_status from_pool(void *user)
{
    bench *b = user;
    rnl_buffer *buffer;
    rnl_status status = rnl_buffer_create(b->device, RNL_MEMORY_DEVICE, b->size, &buffer);
    rnl_buffer_release(buffer);
    return status;
}

static rnl_status from_pool_in_order(void *user)
{
    bench *b = user;
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    rnl_buffer *buffer;
    options.stream = b->stream;
    rnl_status status = rnl_buffer_create_with(b->device, RNL_MEMORY_DEVICE, b->size, &options, &buffer);
    return status == RNL_OK ? rnl_buffer_release_after(buffer, b->stream) : status;
}

static rnl_status from_driver(void *user)
{
    bench *b = user;
    rnl_buffer *buffer;
    rnl_status status = rnl_buffer_create(b->exact, RNL_MEMORY_DEVICE, b->size, &buffer);
    rnl_buffer_release(buffer);
    return status;
}

static rnl_status from_driver_touched(void *user)
{
    bench *b = user;
    rnl_buffer *buffer;
    rnl_status status = rnl_buffer_create(b->exact, RNL_MEMORY_DEVICE, b->size, &buffer);
    if (status == RNL_OK)
        status = rnl_stream_fill(b->exact_stream, buffer, 0, "\0\0\0\0", 4, b->size);
    if (status == RNL_OK)
        status = rnl_stream_synchronize(b->exact_stream);
    rnl_buffer_release(buffer);
    return status;
}

static rnl_status finish(void *user)
{
    return rnl_stream_synchronize(((bench *)user)->stream);
}

/* ---- Threads ---- */

typedef struct worker {
    bench *b;
    pthread_t thread;
    uint64_t count;
    _Atomic int *waiting; /* threads that are not there yet */
    rnl_status status;
} worker;

static void *work(void *argument)
{
    worker *own = argument;
    atomic_fetch_sub(own->waiting, 1);
    while (atomic_load(own->waiting) > 0)
        ;
    for (uint64_t i = 0; own->status == RNL_OK && i < own->count; i++)
        own->status = from_pool(own->b);
    return NULL;
}

/* Nanoseconds until one of all threads' allocations is done: that of one thread, over the threads that really run. */
static rnl_status run_threads(bench *b, uint64_t count, double *out_ns)
{
    worker workers[THREADS] = {{0}};
    _Atomic int waiting = THREADS + 1;
    int started = 0;
    rnl_status status = RNL_OK;
    for (; started < THREADS; started++) {
        workers[started] = (worker){.b = b, .count = count, .waiting = &waiting};
        if (pthread_create(&workers[started].thread, NULL, work, &workers[started]) != 0)
            break;
    }
    const uint64_t start = rnl_now_ns();
    atomic_store(&waiting, 0); /* whoever has not come yet passes at once */
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        status = status == RNL_OK ? workers[i].status : status;
    }
    *out_ns = (double)(rnl_now_ns() - start) / ((double)count * (started ? started : 1));
    return status;
}

static rnl_status measure_threads(bench *b, double *out_ns)
{
    double samples[64], ns = 0;
    uint64_t wanted = b->options->repeat < 64 ? b->options->repeat : 64, count = 10000;
    rnl_status status = run_threads(b, count, &ns);
    if (ns > 0)
        count = (uint64_t)(20e6 / (ns * THREADS)) + 1;
    for (uint64_t i = 0; status == RNL_OK && i < wanted; i++)
        status = run_threads(b, count, &samples[i]);
    if (status != RNL_OK)
        return status;
    rnl_bench_sort(samples, wanted);
    *out_ns = rnl_bench_median(samples, wanted);
    return RNL_OK;
}

/* ---- Launches on many small buffers ---- */

static const char source[] = "__kernel void nothing(__global float *a) {}\n";

static rnl_status launch(void *user)
{
    bench *b = user;
    const rnl_range one_item = {.dimensions = 1, .global = {1, 1, 1}, .local = {1, 1, 1}};
    const rnl_arg arg = {.kind = RNL_ARG_BUFFER, .buffer = b->launched[b->next++ % LAUNCHED]};
    return rnl_stream_launch(b->stream, b->kernel, &one_item, &arg, 1);
}

static rnl_status measure_launches(bench *b, bool own_memory)
{
    const rnl_measured work_to_do = {.enqueue = launch, .finish = finish, .user = b};
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    rnl_status status = RNL_OK;
    options.own_memory = own_memory;
    for (size_t i = 0; status == RNL_OK && i < LAUNCHED; i++)
        status = rnl_buffer_create_with(b->device, RNL_MEMORY_DEVICE, 4096, &options, &b->launched[i]);
    if (status == RNL_OK)
        status = rnl_measure(&work_to_do, b->options, &b->launch_ns[own_memory], NULL);
    rnl_status ended = finish(b);
    for (size_t i = 0; i < LAUNCHED; i++) {
        rnl_buffer_release(b->launched[i]);
        b->launched[i] = NULL;
    }
    return status == RNL_OK ? ended : status;
}

/* ---- */

static rnl_status measure_size(bench *b, size_t index)
{
    rnl_status (*const functions[WAYS])(void *) = {[POOL] = from_pool,
                                                   [POOL_ORDERED] = from_pool_in_order,
                                                   [DRIVER] = from_driver,
                                                   [DRIVER_TOUCHED] = from_driver_touched};
    rnl_status status = RNL_OK;
    b->size = sizes[index];
    for (int way = 0; status == RNL_OK && way < WAYS; way++) {
        const rnl_measured measured = {.enqueue = functions[way], .finish = finish, .user = b};
        status = way == POOL_THREADS ? measure_threads(b, &b->ns[index][way])
                                     : rnl_measure(&measured, b->options, &b->ns[index][way], NULL);
    }
    return status;
}

static rnl_status prepare(bench *b)
{
    rnl_device_options exact = RNL_DEVICE_OPTIONS_INIT;
    const rnl_device_info *info = rnl_device_get_info(b->device);
    char spec[32];
    exact.compute_units = info->compute_units; /* of a share, too */
    exact.memory_fraction = b->options->memory;
    exact.pool_exact = true;
    snprintf(spec, sizeof spec, "%u:%u", (unsigned)info->platform_index, (unsigned)info->device_index);
    rnl_status status = rnl_device_open(spec, &exact, &b->exact);
    if (status == RNL_OK)
        status = rnl_stream_create(b->device, &b->stream);
    if (status == RNL_OK)
        status = rnl_stream_create(b->exact, &b->exact_stream);
    if (status == RNL_OK)
        status = rnl_kernel_create(b->device, source, NULL, "nothing", &b->kernel);
    return status;
}

static void release(bench *b)
{
    rnl_kernel_release(b->kernel);
    rnl_stream_release(b->stream);
    rnl_stream_release(b->exact_stream);
    rnl_device_release(b->exact);
    rnl_device_release(b->device);
}

static void print_row(const bench *b, size_t index)
{
    printf("%8zu KiB", sizes[index] >> 10);
    for (int way = 0; way < WAYS; way++)
        printf(" %12.3f", b->ns[index][way] * 1e-3);
    printf(" %8.0f x\n", b->ns[index][DRIVER_TOUCHED] / b->ns[index][POOL]);
    fflush(stdout);
}

static rnl_exit measure_all(bench *b)
{
    printf("microseconds an allocation and its release\n%12s", "");
    for (int way = 0; way < WAYS; way++)
        printf(" %12s", way_texts[way]);
    printf(" %10s\n", "faster by");
    for (size_t i = 0; i < SIZES; i++) {
        if (measure_size(b, i) != RNL_OK)
            return rnl_cli_fail_library("measuring %zu bytes", sizes[i]);
        print_row(b, i);
    }
    for (int own = 0; own < 2; own++)
        if (measure_launches(b, own) != RNL_OK)
            return rnl_cli_fail_library("measuring launches");
    printf("a launch on %d small buffers in turn: %.2f us as parts of a chunk, %.2f us with memory of their own\n",
           LAUNCHED, b->launch_ns[0] * 1e-3, b->launch_ns[1] * 1e-3);
    return RNL_EXIT_DONE;
}

static rnl_exit write_json(const bench *b)
{
    char clean[RNL_CLI_NAME_BYTES];
    json_t *rows = json_array();
    for (size_t i = 0; i < SIZES; i++) {
        json_t *row = json_pack("{s:I}", "bytes", (json_int_t)sizes[i]);
        for (int way = 0; row && way < WAYS; way++)
            json_object_set_new(row, way_names[way], json_real(b->ns[i][way]));
        json_array_append_new(rows, row);
    }
    json_t *root =
        json_pack("{s:s, s:i, s:f, s:f, s:o}", "device", rnl_device_get_info(b->device)->name, "threads", THREADS,
                  "launch_shared_ns", b->launch_ns[0], "launch_own_ns", b->launch_ns[1], "ns", rows);
    const bool written = root && json_dump_file(root, b->options->json, JSON_INDENT(1)) == 0;
    json_decref(root);
    return written ? RNL_EXIT_DONE
                   : rnl_cli_fail("%s: %s", rnl_cli_clean(b->options->json, clean, sizeof clean), strerror(errno));
}

static rnl_exit run(const rnl_subject_options *options)
{
    bench b = {.options = options};
    rnl_exit code = rnl_subject_open(options, &b.device);
    if (code == RNL_EXIT_DONE && prepare(&b) != RNL_OK)
        code = rnl_cli_fail_library("preparing");
    if (code == RNL_EXIT_DONE)
        code = measure_all(&b);
    if (code == RNL_EXIT_DONE && options->json)
        code = write_json(&b);
    release(&b);
    return code;
}

const rnl_subject rnl_subject_bench_pool = {
    "bench",
    "pool",
    "what memory costs from the pool and from the driver",
    "  pool         rnl_buffer_create and rnl_buffer_release\n"
    "  in order     rnl_buffer_create_with a stream, rnl_buffer_release_after it\n"
    "  8 threads    as `pool`, from eight threads at once, over all of them\n"
    "  driver       the same without a pool: clCreateBuffer and clReleaseMemObject\n"
    "  and touched  with the memory filled and waited for between them; `faster by` compares `pool` with it\n\n",
    NULL,
    NULL,
    run,
};
