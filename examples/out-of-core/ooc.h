/* SPDX-License-Identifier: Apache-2.0 */
/* Out of core: what the parts of this example share. */
#ifndef OOC_H
#define OOC_H

#include <runnel/rt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != RNL_OK) {                                                                                        \
            fprintf(stderr, "out-of-core: %s\n", rnl_last_error()->message);                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define MOST_SLOTS 3 /* of a kind of tile: one arrives, one is computed with, one leaves */

typedef struct ooc_options {
    const char *what;   /* "gemm", "axpy", "chain" */
    size_t m, n, k;     /* of the product: c (m x n) = a (m x k) * b (k x n) */
    size_t elements;    /* of each vector */
    size_t budget;      /* bytes of device memory for tiles; 0: a tenth of the data */
    size_t depth;       /* rows of b in a tile; 0: chosen from the budget */
    size_t samples;     /* results that are compared with float64; for vectors all are where there are fewer */
    const char *device; /* rnl_device_open's */
    bool pageable;      /* the arrays are ordinary memory instead of pinned memory */
    bool in_core;       /* measure that as well, where the device has room */
    double require;     /* fail where less than this part of the possible speed is reached */
} ooc_options;

/* Copy in, compute, copy out. */
typedef struct ooc_streams {
    rnl_device *device;
    rnl_stream *in, *compute, *out;
} ooc_streams;

/* A large array in host memory. */
typedef struct ooc_array {
    float *data;
    rnl_buffer *pinned; /* which it lies in, or NULL */
} ooc_array;

void ooc_open(const ooc_options *options, size_t data_bytes, ooc_streams *out_streams);
void ooc_close(ooc_streams *streams);
void ooc_synchronize(ooc_streams *streams);

/* Filled with numbers in [-1, 1) that follow from `seed` and the index. */
ooc_array ooc_array_create(const ooc_options *options, rnl_device *device, size_t elements, unsigned seed);
void ooc_array_release(ooc_array *array);
float ooc_value(size_t index, unsigned seed);

rnl_buffer *ooc_device_memory(rnl_device *device, size_t elements);

/* *event, if there is one, is a point that `stream` waits for from now on, on the device; the host goes on. */
void ooc_wait(rnl_stream *stream, rnl_event *event);
/* A new point in the stream takes *event's place. */
void ooc_record(rnl_stream *stream, rnl_event **event);
void ooc_drop(rnl_event **events, size_t count);

/* For tiles. */
size_t ooc_budget(const ooc_options *options, size_t data_bytes);
double ooc_seconds(void);
/*
 * Says how much device memory is in use: tiles, and what products need besides. Ends the process where that is more
 * than the budget, or where arrays are not pinned that should be: those have device memory behind them.
 */
void ooc_check_memory(const ooc_options *options, rnl_device *device, size_t data_bytes);

/* Each returns false where results are wrong, or the speed is below what is required. */
bool ooc_gemm(const ooc_options *options);
bool ooc_vectors(const ooc_options *options);

#endif
