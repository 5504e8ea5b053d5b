/* SPDX-License-Identifier: Apache-2.0 */
/* What `runnel compare` is made of. */
#ifndef RUNNEL_CLI_COMPARE_H
#define RUNNEL_CLI_COMPARE_H

#include "job.h"

/* How two tensors differ. A number of both types that is NaN, or the same infinity, is equal. */
typedef struct rnl_difference {
    bool is_there;   /* false: only one side has it */
    bool same_shape; /* and type; the rest is 0 without it */
    size_t count;    /* elements */
    size_t wrong;    /* beyond the bound; of integers: not equal */
    double excess;   /* the largest difference as a multiple of the bound; of integers: infinity where one differs */
    double absolute; /* largest |got - expected| */
    double relative; /* largest |got - expected| / |expected|, where expected is not 0 */
    double nmse;     /* sum of (got - expected)^2 / sum of expected^2 */
} rnl_difference;

/* 1e-4 + relative * |expected|: 1e-3, for 16-bit floats four units in the last place. */
double rnl_difference_bound(rnl_dtype dtype, double expected);
void rnl_difference_find(const rnl_tensor *got, const rnl_tensor *expected, rnl_difference *out_difference);

/*
 * Runs job->options.model in Python on job's inputs. Fills job->output_count tensors, whose data is
 * freed by the caller; those that it has not stay without data.
 */
rnl_exit rnl_compare_reference(const rnl_job *job, rnl_tensor *out_values);

#endif
