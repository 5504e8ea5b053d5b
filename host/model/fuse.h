/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fusion: nodes that become one step. A group is an optional anchor (an operator that can end with a chain) and the
 * elementwise nodes behind it; only its last node's output is stored. What is constant and affine right behind an
 * anchor with constant weights goes into those weights instead (fold.h).
 *
 * A group's inner values have no reader outside the group, so nothing is computed twice, and all that it reads is made
 * before its last node, which is where it is lowered.
 */
#ifndef RUNNEL_MODEL_FUSE_H
#define RUNNEL_MODEL_FUSE_H

#include "model/fold.h"
#include "ops/chain.h"

#define RNL_GROUP_MAX_NODES 24

/* What an operand of a group's chain is. */
typedef struct rnl_group_operand {
    uint32_t value; /* RNL_NO_VALUE: a vector over the channels, worked out from `fold` */
    rnl_fold fold;
    bool is_shift; /* … what is added; else what multiplies */
} rnl_group_operand;

typedef enum rnl_group_kind {
    RNL_GROUP_CHAIN,  /* elementwise nodes alone */
    RNL_GROUP_ANCHOR, /* … behind an anchor */
    RNL_GROUP_NORM,   /* a normalisation that is written out */
    RNL_GROUP_ATTENTION
} rnl_group_kind;

/* (source - mean) / sqrt(variance + epsilon) * scale + bias; RNL_NO_VALUE: 1, and 0. */
typedef struct rnl_norm {
    uint32_t source, scale, bias;
    uint32_t axes;
    float epsilon;
} rnl_norm;

/* softmax(scale * query * keys + bias) * value; keys are turned: elements, then rows. RNL_NO_VALUE: no bias. */
typedef struct rnl_attention_nodes {
    uint32_t query, keys, value, bias;
    double scale;
} rnl_attention_nodes;

typedef struct rnl_group {
    rnl_group_kind kind;
    uint32_t nodes[RNL_GROUP_MAX_NODES]; /* the anchor first, the last one last */
    size_t node_count;
    rnl_fold fold;   /* fold.first is the anchor; RNL_NO_NODE: nothing goes into its weights */
    rnl_chain chain; /* its operands' views are filled in when the group is lowered */
    rnl_group_operand operands[RNL_CHAIN_MAX_OPERANDS];
    rnl_norm norm;
    rnl_attention_nodes attention;
} rnl_group;

/* RUNNEL_FUSE=off: every node has steps of its own. */
bool rnl_fuse_is_off(void);
/* Sets the planner's groups and pads; after rnl_plan_mark_needed. */
RNL_NODISCARD rnl_status rnl_fuse(rnl_planner *planner);
/*
 * What a window reads in place of `value`: the source of a Pad that all of its readers do themselves, and the amounts;
 * else the value itself, and NULL.
 */
const rnl_pad *rnl_fuse_pad_of(const rnl_planner *planner, uint32_t value, uint32_t *out_source);
/* Makes one stage of each GELU that a chain writes out. */
void rnl_fuse_gelu(rnl_chain *chain);
/* The node whose output the group stores. */
uint32_t rnl_group_last(const rnl_group *group);

#endif
