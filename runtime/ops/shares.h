/* SPDX-License-Identifier: Apache-2.0 */
/* How rows and blocks of columns are shared out among a CPU's threads. Internal to the families of operators. */
#ifndef RUNNEL_OPS_SHARES_H
#define RUNNEL_OPS_SHARES_H

#include "device/device.h"

typedef struct rnl_shares {
    int64_t rows, blocks;           /* of all */
    int64_t each_rows, each_blocks; /* of a work-item, the last of which may have less */
    int64_t row_items, block_items;
} rnl_shares;

/* Of the thread that ends last. */
typedef double (*rnl_shares_cost)(const rnl_shares *shares, int64_t threads, const void *of);

/* Work-items that the thread with most of them does. */
int64_t rnl_shares_rounds(const rnl_shares *shares, int64_t threads);
/*
 * Up to four work-items of a thread in each direction, more only where one takes `most_rows` and `most_blocks` at most
 * (0: any). The fewest whose cost (kept in out_cost, unless NULL) is within some percents of the least. All counts are
 * greater than 0.
 */
rnl_shares rnl_choose_shares(const rnl_device *device, int64_t rows, int64_t blocks, int64_t most_rows,
                             int64_t most_blocks, rnl_shares_cost cost, const void *of, double *out_cost);

/* What a dimension of a launch has to do, and how much of it a work-item takes; the last one has less, or the first. */
typedef struct rnl_extent {
    int64_t count, share;
    bool shorter_first;
} rnl_extent;

/* Of the product of both counts, what the thread of a team does that has most (kernel/team_cut.h). */
int64_t rnl_longest_part(uint32_t threads, const rnl_extent extents[2]);

/*
 * How many of `count` rows (or blocks) a work-item takes: as many as `wish` in even shares, or about so many that the
 * threads of a small team end together, since the last work-item may have fewer, and a team's threads each take a
 * stretch of them (kernel/team_cut.h). `others` are the work-items in the other dimension of the launch; is_first: the
 * rows are its first one.
 */
int64_t rnl_fair_share(const rnl_device *device, int64_t count, int64_t wish, int64_t others, bool is_first);

/*
 * How many of `count` rows a work-item takes for each thread to have a stretch of them, of equal length and in up to
 * `parts` work-items: what it reads and writes stays in one core's cache. Rows are the launch's second dimension. 0
 * where there are no such stretches.
 */
int64_t rnl_stretch_share(const rnl_device *device, int64_t count, int64_t parts);

/*
 * How many tiles of rows, one below the other, a work-item of a CPU computes, each of `terms` terms: what it finds out
 * at its start is worth that of a few, or of more short ones, as long as all threads have work-items enough to end
 * together. `others` are the work-items beside each other. On GPUs 1.
 */
int64_t rnl_tiles_of_item(const rnl_device *device, int64_t row_tiles, int64_t others, int64_t terms);

/*
 * Whether each thread has as many of `count` rows, of which a work-item takes `share`. Rows of results that are so are
 * the launch's second dimension: a team's threads each take a stretch of that (kernel/team_cut.h), while threads that
 * write side by side in the same rows fetch each other's lines ahead, and wait for them.
 */
bool rnl_shares_evenly(const rnl_device *device, int64_t count, int64_t share);

#endif
