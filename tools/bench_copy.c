/* SPDX-License-Identifier: Apache-2.0 */
/* `runnel bench copy`: how fast memory travels between the host and a device, and between two devices. */
#include "subject.h"

#include <errno.h>
#include <jansson.h>
#include <runnel/memory.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_BYTES ((size_t)4 << 10)
#define MOST_BYTES ((size_t)256 << 20)
#define EMULATED_BYTES ((size_t)1 << 20)

enum { OPTION_TO = RNL_SUBJECT_OPTION };
static const struct option extra[] = {{"to", required_argument, NULL, OPTION_TO}, {0}};
static const char help[] =
    "      --to SPEC              also copy to this device and back, through pinned memory\n"
    "  pageable: plain host memory, the way that is noted for the device (runnel tune copy)\n"
    "  pinned:   a pinned buffer, mapped once and for life\n"
    "  mapped:   the host is given the device's memory (or, where the device takes it, the device the host's), and\n"
    "            gives it back; nothing is read or written, so in place it takes the same time for any size\n";

static const char *to_spec;

typedef struct side {
    rnl_device *device;
    rnl_stream *stream;
    rnl_buffer *memory, *pinned, *mapped;
} side;

typedef struct bench {
    const rnl_subject_options *options;
    side near, far, far_second, near_second; /* the second streams are for both directions at once */
    void *pageable;
    size_t most, size;
    json_t *rows;
} bench;

static rnl_exit take(int code, const char *value)
{
    if (code != OPTION_TO)
        return rnl_cli_usage("bench", "copy: takes no operand");
    to_spec = value;
    return RNL_EXIT_DONE;
}

/* ---- Pieces of work ---- */

static rnl_status write_pageable(void *user)
{
    bench *b = user;
    return rnl_stream_write(b->near.stream, b->near.memory, 0, b->pageable, b->size);
}

static rnl_status read_pageable(void *user)
{
    bench *b = user;
    return rnl_stream_read(b->near.stream, b->pageable, b->near.memory, 0, b->size);
}

static rnl_status write_pinned(void *user)
{
    bench *b = user;
    return rnl_stream_copy(b->near.stream, b->near.memory, 0, b->near.pinned, 0, b->size);
}

static rnl_status read_pinned(void *user)
{
    bench *b = user;
    return rnl_stream_copy(b->near.stream, b->near.pinned, 0, b->near.memory, 0, b->size);
}

static rnl_status map(bench *b, rnl_map_access access)
{
    void *host;
    rnl_status status = rnl_stream_map(b->near.stream, b->near.mapped, 0, b->size, access, &host);
    return status == RNL_OK ? rnl_stream_unmap(b->near.stream, b->near.mapped) : status;
}

static rnl_status map_to_write(void *user)
{
    return map(user, RNL_MAP_OVERWRITE);
}

static rnl_status map_to_read(void *user)
{
    return map(user, RNL_MAP_READ);
}

static rnl_status finish_near(void *user)
{
    return rnl_stream_synchronize(((bench *)user)->near.stream);
}

static rnl_status send(void *user)
{
    bench *b = user;
    return rnl_stream_copy_across(b->far.stream, b->far.memory, 0, b->near.stream, b->near.memory, 0, b->size);
}

static rnl_status fetch(void *user)
{
    bench *b = user;
    return rnl_stream_copy_across(b->near_second.stream, b->near_second.memory, 0, b->far_second.stream,
                                  b->far_second.memory, 0, b->size);
}

static rnl_status exchange(void *user)
{
    rnl_status status = send(user);
    return status == RNL_OK ? fetch(user) : status;
}

static rnl_status finish_all(void *user)
{
    bench *b = user;
    rnl_stream *all[] = {b->near.stream, b->far.stream, b->near_second.stream, b->far_second.stream};
    rnl_status status = RNL_OK;
    for (size_t i = 0; i < 4; i++) {
        rnl_status ended = rnl_stream_synchronize(all[i]);
        status = status == RNL_OK ? ended : status;
    }
    return status;
}

/* ---- Measuring ---- */

static const char *size_text(size_t bytes, char text[24])
{
    if (bytes >= (size_t)1 << 20)
        snprintf(text, 24, "%zu MiB", bytes >> 20);
    else
        snprintf(text, 24, "%zu KiB", bytes >> 10);
    return text;
}

typedef struct column {
    const char *name;
    rnl_status (*enqueue)(void *user);
    rnl_status (*finish)(void *user);
    size_t times; /* the size that one piece of work moves */
} column;

static const column host_columns[] = {
    {"to_device_pageable", write_pageable, finish_near, 1}, {"to_device_pinned", write_pinned, finish_near, 1},
    {"to_device_mapped", map_to_write, finish_near, 1},     {"to_host_pageable", read_pageable, finish_near, 1},
    {"to_host_pinned", read_pinned, finish_near, 1},        {"to_host_mapped", map_to_read, finish_near, 1}};
static const column across_columns[] = {{"across_there", send, finish_all, 1},
                                        {"across_back", fetch, finish_all, 1},
                                        {"across_both", exchange, finish_all, 2}};

static rnl_status measure_row(bench *b, const column *columns, size_t count)
{
    char text[24];
    json_t *row = json_pack("{s:I}", "bytes", (json_int_t)b->size);
    rnl_status status = RNL_OK;
    printf("%8s", size_text(b->size, text));
    for (size_t i = 0; status == RNL_OK && i < count; i++) {
        double ns = 0;
        status = rnl_measure(&(rnl_measured){columns[i].enqueue, columns[i].finish, b}, b->options, &ns, NULL);
        if (status != RNL_OK)
            break;
        double gigabytes = (double)(b->size * columns[i].times) / ns;
        printf(" %10.2f", gigabytes);
        fflush(stdout);
        json_object_set_new(row, columns[i].name, json_real(gigabytes));
    }
    putchar('\n');
    if (b->rows)
        json_array_append(b->rows, row);
    json_decref(row);
    return status;
}

static rnl_status measure_table(bench *b, const column *columns, size_t count)
{
    rnl_status status = RNL_OK;
    for (b->size = LEAST_BYTES; status == RNL_OK && b->size <= b->most; b->size *= 4)
        status = measure_row(b, columns, count);
    return status;
}

/* ---- Setting up ---- */

static size_t most_bytes(const rnl_device_info *info)
{
    size_t most = info->emulated ? EMULATED_BYTES : MOST_BYTES;
    while (most > LEAST_BYTES && (most > info->max_allocation_bytes || most > info->global_memory_bytes / 16))
        most /= 4;
    return most;
}

static rnl_status set_up(bench *b, side *at, bool with_host)
{
    rnl_status status = rnl_stream_create(at->device, &at->stream);
    if (status == RNL_OK)
        status = rnl_buffer_create(at->device, RNL_MEMORY_DEVICE, b->most, &at->memory);
    if (status == RNL_OK)
        status = rnl_stream_fill(at->stream, at->memory, 0, "\1", 1, b->most);
    if (status == RNL_OK && with_host)
        status = rnl_buffer_create(at->device, RNL_MEMORY_PINNED, b->most, &at->pinned);
    if (status == RNL_OK && with_host &&
        rnl_buffer_wrap_host(at->device, b->pageable, b->most, &at->mapped) == RNL_UNIMPLEMENTED)
        status = rnl_buffer_create(at->device, RNL_MEMORY_DEVICE, b->most, &at->mapped);
    return status == RNL_OK ? rnl_stream_synchronize(at->stream) : status;
}

static void tear_down(side *at)
{
    rnl_buffer_release(at->mapped);
    rnl_buffer_release(at->pinned);
    rnl_buffer_release(at->memory);
    rnl_stream_release(at->stream);
}

static rnl_exit bench_host(bench *b)
{
    rnl_status status = set_up(b, &b->near, true);
    if (status == RNL_OK) {
        printf("GB/s           to device: pageable, pinned, mapped        to host: pageable, pinned, mapped\n");
        status = measure_table(b, host_columns, sizeof host_columns / sizeof *host_columns);
    }
    return status == RNL_OK ? RNL_EXIT_DONE : rnl_cli_fail_library("measuring copies");
}

static rnl_exit bench_across(bench *b)
{
    char name[RNL_CLI_NAME_BYTES];
    const rnl_device_info *info = rnl_device_get_info(b->far.device);
    const size_t most = most_bytes(info);
    b->most = most < b->most ? most : b->most;
    b->far_second.device = b->far.device;
    b->near_second.device = b->near.device;
    printf("\nto %u:%u %s\n", (unsigned)info->platform_index, (unsigned)info->device_index,
           rnl_cli_clean(info->name, name, sizeof name));
    rnl_status status = set_up(b, &b->far, false);
    if (status == RNL_OK)
        status = set_up(b, &b->far_second, false);
    if (status == RNL_OK)
        status = set_up(b, &b->near_second, false);
    if (status == RNL_OK) {
        printf("GB/s          there       back     both\n");
        status = measure_table(b, across_columns, sizeof across_columns / sizeof *across_columns);
    }
    return status == RNL_OK ? RNL_EXIT_DONE : rnl_cli_fail_library("measuring copies between devices");
}

static rnl_exit write_json(const bench *b)
{
    char clean[RNL_CLI_NAME_BYTES];
    json_t *root =
        json_pack("{s:s, s:O}", "device", rnl_device_get_info(b->near.device)->name, "gigabytes_per_s", b->rows);
    const bool written = root && json_dump_file(root, b->options->json, JSON_INDENT(1)) == 0;
    json_decref(root);
    return written ? RNL_EXIT_DONE
                   : rnl_cli_fail("%s: %s", rnl_cli_clean(b->options->json, clean, sizeof clean), strerror(errno));
}

static rnl_exit run(const rnl_subject_options *options)
{
    bench b = {.options = options};
    rnl_exit code = rnl_subject_open(options, &b.near.device);
    if (code == RNL_EXIT_DONE && to_spec && rnl_device_open(to_spec, NULL, &b.far.device) != RNL_OK)
        code = rnl_cli_fail_library("opening the device to copy to");
    if (code == RNL_EXIT_DONE) {
        b.most = most_bytes(rnl_device_get_info(b.near.device));
        b.pageable = aligned_alloc(4096, b.most);
        b.rows = options->json ? json_array() : NULL;
        if (b.pageable)
            memset(b.pageable, 1, b.most);
        code = b.pageable ? bench_host(&b) : rnl_cli_fail("out of memory");
    }
    if (code == RNL_EXIT_DONE && to_spec)
        code = bench_across(&b);
    if (code == RNL_EXIT_DONE && options->json)
        code = write_json(&b);
    side *sides[] = {&b.near_second, &b.far_second, &b.far, &b.near};
    for (size_t i = 0; i < 4; i++)
        tear_down(sides[i]);
    rnl_device_release(b.far.device);
    rnl_device_release(b.near.device);
    json_decref(b.rows);
    free(b.pageable);
    return code;
}

const rnl_subject rnl_subject_bench_copy = {
    "bench", "copy", "copies to and from a device, and between two", help, extra, take, run};
