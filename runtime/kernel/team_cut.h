/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting a launch's range into parts, one for each thread of a team. What may be cut: clkernels/team.clh. */
#ifndef RUNNEL_KERNEL_TEAM_CUT_H
#define RUNNEL_KERNEL_TEAM_CUT_H

#include <runnel/rt.h>

/*
 * Groups of a range in the order of two of its dimensions, those of `outer` one after the other; the third is not cut.
 * Each thread has a stretch of them.
 */
typedef struct rnl_team_cut {
    uint32_t outer, inner; /* dimensions */
    size_t rows, columns;  /* groups of each; columns is 1 where rows are not cut */
} rnl_team_cut;

/* The longest part that still counts as equal, of an equal one. */
#define RNL_TEAM_FAIR 1.03

/* A part of a thread's stretch that is a range: groups. */
typedef struct rnl_team_piece {
    size_t row, rows, column, columns;
} rnl_team_piece;
#define RNL_TEAM_MOST_PIECES 3

/* In one dimension, and in all. */
RNL_API size_t rnl_team_groups_along(const rnl_range *range, uint32_t dimension);
RNL_API size_t rnl_team_groups(const rnl_range *range);
RNL_API size_t rnl_team_groups_in(const rnl_range *range, const rnl_team_cut *cut, const rnl_team_piece *piece);

/* Sizes of groups are powers of two, in dimension 2 one, and numbers of work-items fit into 31 bits. */
RNL_API bool rnl_team_can_cut(const rnl_range *range);
/* With `one_piece` each thread's part is one. */
RNL_API rnl_team_cut rnl_team_choose_cut(const rnl_range *range, uint32_t threads, bool one_piece);
/* Of the thread's part, in order; how many. Parts that are larger by one come first. */
RNL_API uint32_t rnl_team_find_pieces(const rnl_team_cut *cut, uint32_t threads, uint32_t thread,
                                      rnl_team_piece out_pieces[RNL_TEAM_MOST_PIECES]);

#endif
