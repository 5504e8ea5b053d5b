/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a pipeline over several devices: what --pipeline adds to a job. */
#ifndef RUNNEL_CLI_PIPED_H
#define RUNNEL_CLI_PIPED_H

#include "cli.h"

#include <runnel/pipeline.h>

struct rnl_job;

typedef struct rnl_piped {
    rnl_device *devices[RNL_PIPELINE_MOST_DEVICES];
    size_t device_count;
    rnl_pipeline *pipeline; /* NULL: not that kind of job */
} rnl_piped;

/* Opens the devices that the job's options list, and says on `out` which. */
rnl_exit rnl_job_open_devices(struct rnl_job *job, FILE *out);
/* Opens the pipeline on the first `count` of them. */
rnl_exit rnl_job_open_pipeline(struct rnl_job *job, size_t count);
/* Nodes, weights and time of each stage. */
void rnl_piped_print_stages(const rnl_piped *piped, FILE *out);
/* All of that. */
rnl_exit rnl_job_open_piped(struct rnl_job *job, FILE *out);
void rnl_piped_free(rnl_piped *piped);

#endif
