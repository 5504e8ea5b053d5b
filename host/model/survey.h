/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run of a graph takes on a device, node by node: found by planning it without memory, so also where it does not
 * fit. For cutting it into parts.
 */
#ifndef RUNNEL_MODEL_SURVEY_H
#define RUNNEL_MODEL_SURVEY_H

#include "model/model.h"

/* A node's own; what fused nodes do counts for the one whose place they take. */
typedef struct rnl_survey_node {
    uint64_t flops, bytes; /* at least */
    uint32_t steps;
    uint64_t time_ns; /* measured, or 0 */
} rnl_survey_node;

typedef struct rnl_survey {
    rnl_zone zone;
    size_t node_count, value_count;
    rnl_survey_node *nodes;
    /* One a value each: */
    rnl_tensor_desc *descs; /* host: contents known while planning */
    rnl_dtype *dtypes;
    bool *is_there;       /* some memory holds it, or the host knows it: a cut may go through it */
    size_t *weight_bytes; /* a constant's, as it is packed */
    uint32_t end_node;    /* from here on shapes depend on what is computed */
    size_t total_weight_bytes, arena_bytes;
    bool is_measured;
} rnl_survey;

/* `inputs` as for rnl_model_prepare. */
RNL_NODISCARD rnl_status rnl_survey_create(rnl_graph *graph, rnl_device *device, const rnl_model_options *options,
                                           const rnl_tensor *inputs, size_t input_count, rnl_survey *out_survey);
/* Opens the graph on the device and notes how long each node takes there. */
RNL_NODISCARD rnl_status rnl_survey_measure(rnl_survey *survey, rnl_graph *graph, rnl_device *device,
                                            const rnl_model_options *options, const rnl_tensor *inputs,
                                            size_t input_count);
void rnl_survey_free(rnl_survey *survey);

#endif
