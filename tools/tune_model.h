/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_CLI_TUNE_MODEL_H
#define RUNNEL_CLI_TUNE_MODEL_H

#include "job.h"

/* Tunes an open model for its inputs, and says how many kernels are others now. */
rnl_exit rnl_tune_job(rnl_job *job);

#endif
