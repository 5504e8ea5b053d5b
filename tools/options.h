/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the commands that take a model, checked as far as that goes without the model. */
#ifndef RUNNEL_CLI_OPTIONS_H
#define RUNNEL_CLI_OPTIONS_H

#include "cli.h"

typedef enum rnl_picture_layout { RNL_LAYOUT_OF_MODEL, RNL_LAYOUT_NCHW, RNL_LAYOUT_NHWC } rnl_picture_layout;
typedef enum rnl_picture_color { RNL_COLOR_RGB, RNL_COLOR_BGR } rnl_picture_color;

/* How a picture becomes a tensor: (pixel/255 - mean)/std, the triples in the order of `color`. */
typedef struct rnl_picture_options {
    int64_t height, width; /* 0: the model's, else the picture's */
    double mean[3], std[3];
    rnl_picture_layout layout;
    rnl_picture_color color;
    bool has_mean_or_std;
    const char *first_given; /* "--mean": the first of these options on the command line, or NULL */
} rnl_picture_options;

/* --shape [NAME=]1x3x48x320; no name (NULL) is the model's only input. */
typedef struct rnl_shape_option {
    const char *name;
    size_t name_bytes; /* not NUL-terminated */
    int64_t shape[RNL_MAX_RANK];
    size_t rank;
} rnl_shape_option;

/* Strings are borrowed from argv. */
typedef struct rnl_run_options {
    bool help;
    const char *model;
    const char **inputs; /* "[NAME=]SOURCE" */
    size_t input_count;
    rnl_shape_option *shapes;
    size_t shape_count;
    rnl_picture_options picture;
    const char *output_folder; /* NULL: write nothing */
    const char *device;
    const char *labels;
    uint64_t repeat, top, threads;
    double memory; /* part of the device's; 0: all */
    rnl_precision precision;
    bool deterministic;
    size_t weights_budget; /* bytes; 0: none */
    bool verbose, report;
    const char *trace;    /* run and bench: file; NULL: none */
    uint64_t trace_every; /* run: of runs, so many apart are recorded; 0: all */
    bool pipeline;        /* over the devices that `device` lists */
    uint64_t depth;       /* of it; 0: the default */
    /* bench alone */
    double seconds, warm_seconds;
    bool layers, sort_by_time, tune;
    uint64_t streams; /* sessions to run at a time as well; 0: none */
    const char *json; /* file; NULL: none */
    /* compare alone */
    const char *against; /* "reference", or a device */
    bool all;
    /* quantize alone; its output_folder is a file */
    const char *calibrate; /* folder */
    const char **keep;     /* names of layers */
    size_t keep_count;
    int ranges; /* rnl_quantizer_ranges */
    double percentile, max_error;
    bool signed_activations;
} rnl_run_options;

/* argv[0] is the command: "run", "bench", "compare", "quantize" or "info", which alone may come without a model. Free
 * with rnl_run_options_free whatever it returned. */
rnl_exit rnl_run_options_parse(int argc, char **argv, rnl_run_options *out_options);
/* What options ask of each other; once all are known. */
rnl_exit rnl_run_options_check(const rnl_run_options *options);
void rnl_run_options_free(rnl_run_options *options);
/* The command whose options were parsed last: for messages about its usage. */
const char *rnl_cli_command(void);
/* RUNNEL_VERBOSE=1; its other words are the library's. */
bool rnl_verbose_wanted(void);

#endif
