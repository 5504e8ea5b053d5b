/* SPDX-License-Identifier: Apache-2.0 */
/* From the arguments to a session with its inputs: what `run` and `bench` share. */
#ifndef RUNNEL_CLI_JOB_H
#define RUNNEL_CLI_JOB_H

#include "inputs.h"
#include "piped.h"
#include "several.h"

typedef struct rnl_job {
    rnl_run_options options;
    rnl_graph *graph;
    const rnl_value_info *output_infos;
    rnl_tensor *outputs;
    size_t output_count;
    size_t own_count; /* with `exposed`: of them, the model's own */
    rnl_input_set inputs;
    rnl_device *device;
    rnl_model *model;
    rnl_session *session;
    rnl_trace *trace;    /* trace.h */
    rnl_piped piped;     /* instead of the three, with --pipeline */
    rnl_several several; /* instead of the three, where there are several devices */
} rnl_job;

/* The graph, and which source each input has. No device yet. `exposed`: with all that its nodes compute as outputs. */
rnl_exit rnl_job_load(rnl_job *job, bool exposed);
/* Reads or makes the inputs. */
rnl_exit rnl_job_read_inputs(rnl_job *job);
/* Opens device, model and session; says on `out` which device, and which inputs were made up. */
rnl_exit rnl_job_open(rnl_job *job, FILE *out);
/* The same on the devices of a list. */
rnl_exit rnl_job_open_several(rnl_job *job, const char *list, FILE *out);
/* Outputs, in memory of the session's, hold until the next run. */
rnl_exit rnl_job_run(rnl_job *job, double *out_ms);
void rnl_job_free(rnl_job *job);

#endif
