/* SPDX-License-Identifier: Apache-2.0 */
/* `runnel bench launch` and `runnel tune launch`: what a launch costs, plainly and replayed from a command list. */
#include "bench.h"
#include "subject.h"

#include <errno.h>
#include <jansson.h>
#include <runnel/command_list.h>
#include <string.h>

#define LAUNCHES 64    /* of a list */
#define FASTER_BY 0.95 /* the driver's way is chosen where it takes at most this part of the other's time */
#define CHANGED_ARGS 2
#define WAYS 3

static const char *const way_names[WAYS] = {"launch", "replay", "native"};
static const char *const way_texts[WAYS] = {"rnl_stream_launch", "replay, enqueued", "replay, command buffer"};

static const char source[] = "__kernel void nothing(__global float *a, int b, int c) {}\n";

typedef struct bench {
    const rnl_subject_options *options;
    rnl_device *device;
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_kernel *kernel;
    rnl_command_list *list; /* NULL: launches */
    size_t launches;        /* of a round */
    bool changes, waits;    /* two arguments before each launch; for the device after each round */
    int32_t values[CHANGED_ARGS];
    double us[WAYS][2][2]; /* by way, changes, waits; 0: not to be had */
} bench;

static rnl_arg value_arg(const int32_t *value)
{
    return (rnl_arg){.kind = RNL_ARG_VALUE, .size_bytes = sizeof *value, .value = value};
}

static const rnl_range one_item = {.dimensions = 1, .global = {1, 1, 1}, .local = {1, 1, 1}};

static void fill_args(const bench *b, rnl_arg *args)
{
    args[0] = (rnl_arg){.kind = RNL_ARG_BUFFER, .buffer = b->buffer};
    args[1] = value_arg(&b->values[0]);
    args[2] = value_arg(&b->values[1]);
}

static rnl_status launch_round(bench *b)
{
    rnl_arg args[1 + CHANGED_ARGS];
    rnl_status status = RNL_OK;
    fill_args(b, args);
    for (size_t i = 0; status == RNL_OK && i < b->launches; i++) {
        b->values[0] += b->changes;
        b->values[1] -= b->changes;
        status = rnl_stream_launch(b->stream, b->kernel, &one_item, args, 1 + CHANGED_ARGS);
    }
    return status;
}

static rnl_status replay_round(bench *b)
{
    rnl_status status = RNL_OK;
    for (size_t i = 0; b->changes && status == RNL_OK && i < b->launches; i++)
        for (uint32_t k = 0; status == RNL_OK && k < CHANGED_ARGS; k++) {
            const rnl_arg arg = value_arg(&b->values[k]);
            b->values[k]++;
            status = rnl_command_list_set_arg(b->list, i, 1 + k, &arg);
        }
    return status == RNL_OK ? rnl_stream_replay(b->stream, b->list) : status;
}

static rnl_status finish(void *user)
{
    return rnl_stream_synchronize(((bench *)user)->stream);
}

static rnl_status enqueue(void *user)
{
    bench *b = user;
    rnl_status status = b->list ? replay_round(b) : launch_round(b);
    return status == RNL_OK && b->waits ? finish(b) : status;
}

static rnl_status make_list(bench *b, rnl_replay_way way)
{
    rnl_command_list_options options = RNL_COMMAND_LIST_OPTIONS_INIT;
    rnl_arg args[1 + CHANGED_ARGS];
    options.way = way;
    fill_args(b, args);
    rnl_status status = rnl_command_list_create(b->device, &options, &b->list);
    for (size_t i = 0; status == RNL_OK && i < b->launches; i++)
        status = rnl_command_list_launch(b->list, b->kernel, &one_item, args, 1 + CHANGED_ARGS, NULL);
    return status;
}

static rnl_status measure_list(bench *b, int way, double *out_us)
{
    const rnl_measured work = {.enqueue = enqueue, .finish = finish, .user = b};
    double ns = 0;
    rnl_status status = way > 0 ? make_list(b, way == 1 ? RNL_REPLAY_ENQUEUE : RNL_REPLAY_NATIVE) : RNL_OK;
    if (status == RNL_OK)
        status = rnl_measure(&work, b->options, &ns, NULL);
    *out_us = ns * 1e-3 / (double)b->launches;
    if (status == RNL_OK && way == 2 && rnl_command_list_get_way(b->list) != RNL_REPLAY_NATIVE)
        *out_us = 0; /* the driver refused it after all */
    rnl_command_list_release(b->list);
    b->list = NULL;
    return status;
}

static rnl_status measure_way(bench *b, int way)
{
    rnl_status status = RNL_OK;
    for (int k = 0; status == RNL_OK && k < 4; k++) {
        b->changes = k & 1;
        b->waits = k & 2;
        b->launches = b->waits ? 1 : LAUNCHES;
        status = measure_list(b, way, &b->us[way][b->changes][b->waits]);
    }
    return status;
}

static rnl_status prepare(bench *b)
{
    rnl_status status = rnl_stream_create(b->device, &b->stream);
    if (status == RNL_OK)
        status = rnl_buffer_create(b->device, RNL_MEMORY_DEVICE, 4096, &b->buffer);
    if (status == RNL_OK)
        status = rnl_kernel_create(b->device, source, NULL, "nothing", &b->kernel);
    return status;
}

static void release(bench *b)
{
    rnl_kernel_release(b->kernel);
    rnl_buffer_release(b->buffer);
    rnl_stream_release(b->stream);
    rnl_device_release(b->device);
}

static void print_row(const bench *b, int way)
{
    printf("%-24s", way_texts[way]);
    for (int k = 0; k < 4; k++)
        if (b->us[way][k & 1][k >> 1] > 0)
            printf(" %12.2f", b->us[way][k & 1][k >> 1]);
        else
            printf(" %12s", "-");
    printf("\n");
    fflush(stdout);
}

static rnl_exit write_json(const bench *b)
{
    char clean[RNL_CLI_NAME_BYTES];
    json_t *rows = json_array();
    for (int way = 0; way < WAYS; way++)
        for (int k = 0; k < 4; k++)
            if (b->us[way][k & 1][k >> 1] > 0)
                json_array_append_new(rows, json_pack("{s:s, s:i, s:b, s:f}", "way", way_names[way],
                                                      "changed_arguments", k & 1 ? CHANGED_ARGS : 0, "waits", k >> 1,
                                                      "us", b->us[way][k & 1][k >> 1]));
    json_t *root = json_pack("{s:s, s:i, s:o}", "device", rnl_device_get_info(b->device)->name, "launches", LAUNCHES,
                             "rows", rows);
    const bool written = root && json_dump_file(root, b->options->json, JSON_INDENT(1)) == 0;
    json_decref(root);
    return written ? RNL_EXIT_DONE
                   : rnl_cli_fail("%s: %s", rnl_cli_clean(b->options->json, clean, sizeof clean), strerror(errno));
}

static rnl_exit measure_all(bench *b)
{
    const int ways = rnl_device_has_native_replay(b->device) ? WAYS : WAYS - 1;
    printf("microseconds a kernel    %d in a row, arguments          one and a wait\n", LAUNCHES);
    printf("%-24s %12s %12s %12s %12s\n", "", "as they are", "2 changed", "as they are", "2 changed");
    for (int way = 0; way < ways; way++) {
        if (measure_way(b, way) != RNL_OK)
            return rnl_cli_fail_library("measuring %s", way_texts[way]);
        print_row(b, way);
    }
    if (ways < WAYS)
        printf("the device has no command buffers, or they failed their trial\n");
    return RNL_EXIT_DONE;
}

static rnl_exit open_bench(const rnl_subject_options *options, bench *b)
{
    *b = (bench){.options = options};
    rnl_exit code = rnl_subject_open(options, &b->device);
    if (code == RNL_EXIT_DONE && prepare(b) != RNL_OK)
        code = rnl_cli_fail_library("preparing launches");
    return code;
}

static rnl_exit run(const rnl_subject_options *options)
{
    bench b;
    rnl_exit code = open_bench(options, &b);
    if (code == RNL_EXIT_DONE)
        code = measure_all(&b);
    if (code == RNL_EXIT_DONE && options->json)
        code = write_json(&b);
    release(&b);
    return code;
}

const rnl_subject rnl_subject_bench_launch = {
    "bench", "launch", "what a kernel's launch costs, plainly and from a command list", "", NULL, NULL, run,
};

/* Long lists, half of the time with arguments that change: sums of both. */
static rnl_exit choose(bench *b)
{
    const double own = b->us[1][0][0] + b->us[1][1][0], native = b->us[2][0][0] + b->us[2][1][0];
    const bool faster = b->us[2][0][0] > 0 && b->us[2][1][0] > 0 && native < own * FASTER_BY;
    if (rnl_device_set_replay(b->device, faster ? RNL_REPLAY_NATIVE : RNL_REPLAY_ENQUEUE) != RNL_OK)
        return rnl_cli_fail_library("keeping the choice");
    printf("command lists are %s on this device from now on\n",
           faster ? "replayed by its command buffers" : "enqueued");
    return RNL_EXIT_DONE;
}

static rnl_exit tune(const rnl_subject_options *options)
{
    bench b;
    rnl_exit code = open_bench(options, &b);
    if (code == RNL_EXIT_DONE)
        code = measure_all(&b);
    if (code == RNL_EXIT_DONE && options->json)
        code = write_json(&b);
    if (code == RNL_EXIT_DONE)
        code = choose(&b);
    release(&b);
    return code;
}

const rnl_subject rnl_subject_tune_launch = {
    "tune", "launch", "measures whether a device's command buffers pay", "", NULL, NULL, tune,
};
