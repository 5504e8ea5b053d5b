/* SPDX-License-Identifier: Apache-2.0 */
/* One batch on several devices: the call, and what is noted for its shape. */
#ifndef RUNNEL_MULTI_SPLIT_H
#define RUNNEL_MULTI_SPLIT_H

#include "multi/multi.h"

/* An output of the whole batch. */
typedef struct rnl_batch_output {
    rnl_dtype dtype;
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
    size_t row_bytes;
} rnl_batch_output;

/* One call. */
typedef struct rnl_batch {
    rnl_multi *multi;
    const rnl_tensor *inputs;
    size_t input_count, rows;
    double work;       /* of all rows */
    rnl_job *jobs;     /* one a member */
    rnl_tensor *parts; /* for each member, inputs, then the graph's outputs */
    size_t *share;     /* rows of each member */
    int64_t *key;      /* what `splits` are found by: ranks and shapes of the inputs */
    bool measures;     /* no results are wanted */
} rnl_batch;

/* What is known of batches of one shape. Guarded by the lock. */
struct rnl_split {
    rnl_split *next;
    int64_t *key;
    rnl_batch_output *outputs; /* the graph's */
    rnl_line *lines;           /* a member's times beside the others */
    size_t *share, *former_share;
    size_t best;              /* the member that is fastest alone */
    double solo_ns, first_ns; /* that one alone; when these shares were first looked at */
    double now_ns, former_ns; /* with `share`, 0: not yet; with `former_share` */
    size_t runs, period;      /* since it was last looked at; until it is looked at */
    bool is_trial, is_stale;  /* stale: measured again with the next call */
    size_t astray,
        patience;      /* looks in a row at which it took far longer than at first; of which so many make it stale */
    bool *is_hopeless; /* a member whose single row takes much longer than the whole elsewhere */
};

/* One of the graph's outputs of the batch, in memory. */
typedef struct rnl_batch_target {
    size_t index; /* in the graph */
    rnl_batch_output of;
    char *data;
} rnl_batch_target;

/*
 * Runs the batch by these shares and waits for all parts; each part's results are put in their place. *out_ns: how long
 * it took. The parts' own times stand in batch->jobs.
 */
RNL_NODISCARD rnl_status rnl_batch_run(rnl_batch *batch, const size_t *share, const rnl_batch_target *targets,
                                       size_t target_count, double *out_ns);
/* Runs the first rows on one member, and forgets the results. */
RNL_NODISCARD rnl_status rnl_batch_time(rnl_batch *batch, size_t member, size_t rows, double *out_ns);
/* Runs the whole on one member, or where that fails on another. Outputs: the graph's, memory the caller's. */
RNL_NODISCARD rnl_status rnl_batch_run_whole(rnl_batch *batch, size_t member, rnl_tensor *outputs);

/* Bytes of a row, where the outermost dimension counts rows; 0 where that is too much to address. */
size_t rnl_row_bytes(rnl_dtype dtype, const int64_t *shape, size_t rank);

rnl_split *rnl_split_find(rnl_multi *multi, const int64_t *key); /* NULL: there is none. The lock is held */
RNL_NODISCARD rnl_status rnl_split_create(rnl_multi *multi, const int64_t *key, rnl_split **out_split);
void rnl_split_free(rnl_split *split);
/* What a new one takes over from a stale one of its shape. The lock is held. */
void rnl_split_inherit(rnl_multi *multi, rnl_split *split);
/* Puts it in front, instead of the one with the same key. The lock is held. */
void rnl_split_note(rnl_multi *multi, rnl_split *split);
/* After a run by the split's shares: times into the lines, and now and then other shares. The lock is held. */
void rnl_split_learn(rnl_multi *multi, const rnl_batch *batch, const size_t *share, double ns);
/* The shares without members that are lost. The lock is held. */
void rnl_split_refresh(const rnl_multi *multi, rnl_split *split, size_t rows);
/* Finds shares for a new shape. *out_outputs: the graph's outputs of the batch, in memory that is the caller's then. */
RNL_NODISCARD rnl_status rnl_split_measure(rnl_batch *batch, rnl_split *split, rnl_tensor *outputs);

#endif
