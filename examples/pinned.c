/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that is made piece by piece goes to a device through a ring of pinned slots: one slot is filled while others
 * travel. Then it goes on to a second device, if there is one, and back.
 */
#include <runnel/memory.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE 65536 /* numbers */
#define PIECES 24
#define SLOTS 3
#define BYTES (sizeof(int) * PIECE)

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != RNL_OK) {                                                                                        \
            fprintf(stderr, "%s\n", rnl_last_error()->message);                                                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int number(int piece, int i)
{
    return piece * 1000003 + i * 7;
}

static void send(rnl_staging *staging, rnl_stream *stream, rnl_buffer *memory)
{
    for (int piece = 0; piece < PIECES; piece++) {
        int *slot;
        CHECK(rnl_staging_begin(staging, (void **)&slot)); /* waits until the slot's earlier copy has happened */
        for (int i = 0; i < PIECE; i++)
            slot[i] = number(piece, i);
        CHECK(rnl_staging_submit(staging, stream, memory, (size_t)piece * BYTES, BYTES));
    }
}

/* The next pieces are under way while one is looked at. */
static int count_wrong(rnl_staging *staging, rnl_stream *stream, rnl_buffer *memory)
{
    int wrong = 0, asked = 0;
    for (int piece = 0; piece < PIECES; piece++) {
        const int *slot;
        size_t bytes;
        for (; asked < PIECES && asked < piece + SLOTS - 1; asked++)
            CHECK(rnl_staging_request(staging, stream, memory, (size_t)asked * BYTES, BYTES));
        CHECK(rnl_staging_take(staging, (const void **)&slot, &bytes));
        for (int i = 0; i < PIECE; i++)
            wrong += slot[i] != number(piece, i);
    }
    return wrong;
}

/* Another device than the one that is open; NULL when there is none. */
static rnl_device *open_second(const rnl_device_info *first)
{
    rnl_device_info infos[16];
    rnl_device *device = NULL;
    size_t count;
    CHECK(rnl_device_list(infos, 16, &count));
    for (size_t i = 0; i < count && i < 16 && !device; i++) {
        char spec[32];
        snprintf(spec, sizeof spec, "%u:%u", (unsigned)infos[i].platform_index, (unsigned)infos[i].device_index);
        bool same = infos[i].platform_index == first->platform_index && infos[i].device_index == first->device_index;
        if (!same && !infos[i].emulated)
            CHECK(rnl_device_open(spec, NULL, &device));
    }
    return device;
}

/* To the second device and back to the first, into memory that was wiped; the caller is never blocked. */
static void go_round(rnl_device *second, rnl_stream *stream, rnl_buffer *memory)
{
    rnl_stream *far;
    rnl_buffer *copy;
    CHECK(rnl_stream_create(second, &far));
    CHECK(rnl_buffer_create(second, RNL_MEMORY_DEVICE, PIECES * BYTES, &copy));
    CHECK(rnl_stream_copy_across(far, copy, 0, stream, memory, 0, PIECES * BYTES));
    CHECK(rnl_stream_fill(stream, memory, 0, "\0\0\0", 4, PIECES * BYTES));
    CHECK(rnl_stream_copy_across(stream, memory, 0, far, copy, 0, PIECES * BYTES));
    CHECK(rnl_stream_synchronize(far));
    rnl_buffer_release(copy);
    rnl_stream_release(far);
}

int main(void)
{
    rnl_device *device, *second;
    rnl_stream *stream;
    rnl_buffer *memory;
    rnl_staging *staging;
    rnl_copy_stats stats;
    CHECK(rnl_device_open(NULL, NULL, &device));
    CHECK(rnl_stream_create(device, &stream));
    CHECK(rnl_buffer_create(device, RNL_MEMORY_DEVICE, PIECES * BYTES, &memory));
    CHECK(rnl_staging_create(device, BYTES, SLOTS, &staging));
    send(staging, stream, memory);
    if ((second = open_second(rnl_device_get_info(device)))) {
        go_round(second, stream, memory);
        printf("went round by %s\n", rnl_device_get_info(second)->name);
    }
    int wrong = count_wrong(staging, stream, memory);
    rnl_device_get_copy_stats(device, &stats);
    printf("%d pieces of %zu KiB through %d pinned slots of %s: %d wrong\n", PIECES, BYTES >> 10, SLOTS,
           rnl_device_get_info(device)->name, wrong);
    printf("pinned at most: %.1f MiB of %.0f allowed\n", (double)stats.pinned_peak_bytes / (1 << 20),
           (double)stats.pinned_limit_bytes / (1 << 20));
    rnl_staging_release(staging);
    rnl_buffer_release(memory);
    rnl_stream_release(stream);
    rnl_device_release(second);
    rnl_device_release(device);
    return wrong != 0;
}
