/* SPDX-License-Identifier: Apache-2.0 */
/* What `runnel quantize` is made of. */
#ifndef RUNNEL_CLI_QUANTIZE_H
#define RUNNEL_CLI_QUANTIZE_H

#include "calibrate.h"

#include <runnel/quantize.h>

/* A model that the quantizer built, ready to run. */
typedef struct rnl_built {
    void *data;
    rnl_graph *graph;
    rnl_model *model;
    rnl_session *session;
    rnl_tensor *outputs;
    size_t output_count;
} rnl_built;

/* How far an output of the quantised model is from that in float32, over all sets. */
typedef struct rnl_cost {
    bool is_float;
    double signal, noise; /* sums of squares */
    double largest, sum;  /* of absolute differences */
    size_t count;
    size_t rows, agreeing; /* of classes, along the last dimension: the largest is the same one */
} rnl_cost;

typedef struct rnl_quantizing {
    rnl_run_options options;
    rnl_graph *graph;
    rnl_device *device;
    rnl_quantizer *quantizer;
    rnl_calibration calibration;
    rnl_built plain; /* in float32 */
    const rnl_quantizer_layer *layers;
    size_t layer_count, own_count;
    rnl_cost *costs; /* of each output of the model with all that is quantised */
} rnl_quantizing;

rnl_exit rnl_built_open(rnl_quantizing *job, rnl_quantizer_form form, size_t only, rnl_built *out_built);
/* Runs the calibration's last set; `wanted`: the first so many outputs. */
rnl_exit rnl_built_run(rnl_quantizing *job, rnl_built *built, size_t wanted);
void rnl_built_free(rnl_built *built);

/* Runs both models on the first `sets` sets and compares their first `wanted` outputs. `what` is said meanwhile. */
rnl_exit rnl_cost_find(rnl_quantizing *job, size_t only, size_t sets, size_t wanted, rnl_cost *out_costs);
/* The root of noise over signal of the output that is worst. */
double rnl_cost_worst(const rnl_quantizing *job, const rnl_cost *costs);
/* Keeps layers in float32 until --max-error holds; fills job->costs. */
rnl_exit rnl_cost_limit(rnl_quantizing *job);
void rnl_cost_print(const rnl_quantizing *job, FILE *out);

#endif
