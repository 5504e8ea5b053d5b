/* SPDX-License-Identifier: Apache-2.0 */
/* Ensembles of decision trees. */
#ifndef RUNNEL_OPS_TREES_H
#define RUNNEL_OPS_TREES_H

#include "ops/op.h"

typedef enum rnl_tree_aggregate {
    RNL_TREE_AVERAGE, /* the sum divided by the number of trees */
    RNL_TREE_SUM,
    RNL_TREE_MIN,
    RNL_TREE_MAX
} rnl_tree_aggregate;

#define RNL_TREE_NODE 6
#define RNL_TREE_MISSING 256

/*
 * Dense vectors, of I32 or of dst's type, f32 or f64; the caller has checked what they say.
 * nodes: of each RNL_TREE_NODE numbers: what is compared how (0 x <= split, <, >=, >, ==, !=, 6 x is a member; with
 * RNL_TREE_MISSING a NaN counts as true), the feature x, where to go when that is true and when not, the first member
 * and their count. Roots and places to go are nodes, or, below 0, -1 - a leaf. A leaf's weights are those from
 * begins[leaf] to begins[leaf + 1], and each has a target.
 */
typedef struct rnl_trees {
    rnl_view nodes, splits, members, roots, begins, targets, weights;
    rnl_tree_aggregate aggregate;
    float nothing; /* the result of a target that no leaf had a weight for */
} rnl_trees;

/* dst [rows, targets] from the features src [rows, features], of one type. */
RNL_API RNL_NODISCARD rnl_status rnl_op_trees(rnl_step_list *list, const rnl_trees *trees, const rnl_view *src,
                                              const rnl_view *dst);

#endif
