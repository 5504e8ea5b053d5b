/* SPDX-License-Identifier: Apache-2.0 */
/* `--report`: what a run in the precision asked for costs in accuracy. */
#ifndef RUNNEL_CLI_PRECISION_H
#define RUNNEL_CLI_PRECISION_H

#include "job.h"

/* Runs the job's model once more in float32 on the same inputs, and prints how its last run's outputs differ. */
rnl_exit rnl_precision_report(const rnl_job *job, FILE *out);

#endif
