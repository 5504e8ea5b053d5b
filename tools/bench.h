/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `runnel bench`. */
#ifndef RUNNEL_CLI_BENCH_H
#define RUNNEL_CLI_BENCH_H

#include "job.h"

#include <jansson.h>

/* What the device can do at best, as short kernels found it; 0 before. */
typedef struct rnl_bench_peak {
    double flops_per_s, bytes_per_s;
} rnl_bench_peak;

/* Runs that a bench records, spread over its samples: what a driver takes to keep times is in no sample. */
#define RNL_TRACED_RUNS 10

/* One step: medians over several runs. */
typedef struct rnl_bench_layer {
    rnl_step_profile step; /* time_ns: of the last run */
    size_t index;          /* in the run */
    double ms, min_ms;
    double share;       /* of all steps */
    double reached;     /* the least time that the peaks allow, as a part of `ms` */
    bool compute_bound; /* arithmetic, not memory traffic, sets that least time */
} rnl_bench_layer;

/* Steps of one implementation and operator. */
typedef struct rnl_bench_total {
    const char *implementation, *op_type;
    size_t count;
    double ms, share, reached;
} rnl_bench_total;

typedef struct rnl_bench {
    double *samples_ms; /* of one run each, sorted */
    size_t sample_count, run_count;
    double median_ms, min_ms, p90_ms;
    double traced_ms[RNL_TRACED_RUNS], beside_ms[RNL_TRACED_RUNS]; /* the latter: not recorded, right before */
    size_t traced_count;
    double streams_ms; /* of one run, with several at a time; 0: not measured */
    rnl_bench_peak peak;
    rnl_bench_layer *layers;
    size_t layer_count;
    rnl_bench_total *totals; /* as many as total_count; the longest first */
    size_t total_count;
    double layers_ms, layers_min_ms; /* sums of `ms` and `min_ms` */
    bool device_clock;               /* of all layers */
} rnl_bench;

/* The middle one of a sorted list, or the mean of the middle two. */
double rnl_bench_median(const double *sorted, size_t count);
void rnl_bench_sort(double *values, size_t count);

rnl_exit rnl_bench_find_peak(rnl_device *device, rnl_bench_peak *out_peak);
/* Profiles the job as often as its options say. */
rnl_exit rnl_bench_profile(rnl_job *job, rnl_bench *bench);
void rnl_bench_print_layers(const rnl_job *job, const rnl_bench *bench, FILE *out);
/* Runs as many sessions at a time as the options say. */
rnl_exit rnl_bench_measure_streams(rnl_job *job, rnl_bench *bench);
/* On the devices of a list, each alone and all together. */
rnl_exit rnl_bench_several(rnl_job *job, const char *list);
rnl_exit rnl_bench_write_json(const rnl_job *job, const rnl_bench *bench);
/* To the file that the options name; releases `root`, which may be NULL (memory was short). */
rnl_exit rnl_bench_write_root(const rnl_job *job, json_t *root);
/* --pipeline: stages, and batches a second beside one device's. */
rnl_exit rnl_bench_pipeline(rnl_job *job);

#endif
