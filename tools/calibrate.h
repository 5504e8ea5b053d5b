/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of inputs: each file is one input, each folder in it holds NAME.npy (or a picture) for all of them. */
#ifndef RUNNEL_CLI_CALIBRATE_H
#define RUNNEL_CLI_CALIBRATE_H

#include "inputs.h"

typedef struct rnl_calibration {
    const rnl_run_options *options;
    const rnl_value_info *infos; /* the model's inputs; borrowed */
    size_t input_count;
    char **paths;                 /* input_count for each set */
    size_t set_count, path_count; /* path_count: places for them */
    rnl_input_set set;            /* the one that was read last */
} rnl_calibration;

/* Finds the files; reads none. Free with rnl_calibration_free whatever it returned. */
rnl_exit rnl_calibration_find(const rnl_graph *graph, const rnl_run_options *options, rnl_calibration *out);
/* Reads a set in the place of the last one. Floats must be finite. */
rnl_exit rnl_calibration_read(rnl_calibration *calibration, size_t index);
/* What a message calls the set: its first file. */
const char *rnl_calibration_name(const rnl_calibration *calibration, size_t index);
void rnl_calibration_free(rnl_calibration *calibration);

#endif
