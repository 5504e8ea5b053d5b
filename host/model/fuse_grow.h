/* SPDX-License-Identifier: Apache-2.0 */
/* A group while it grows. Internal to fusion. */
#ifndef RUNNEL_MODEL_FUSE_GROW_H
#define RUNNEL_MODEL_FUSE_GROW_H

#include "model/fuse.h"

/* Who reads each value on the device, in the nodes' order; one more reader is counted for each of the graph's outputs.
 */
typedef struct rnl_readers {
    uint32_t *counts; /* one a value */
    uint32_t *starts; /* one a value and one more: where its nodes begin */
    uint32_t *nodes;  /* a node stands as often as it reads the value */
} rnl_readers;

typedef struct rnl_grower {
    rnl_planner *planner;
    const rnl_readers *readers;
    rnl_group *group;
    rnl_tensor_desc shape;                         /* of all outputs */
    size_t axis;                                   /* of the anchor's channels */
    bool takes_fold;                               /* the anchor's weights are constants */
    bool keeps_type;                               /* the anchor's result has the type of what it reads */
    bool closed;                                   /* nothing may follow the last node */
    rnl_chain_source results[RNL_GROUP_MAX_NODES]; /* what stands for each node's output */
    uint32_t left[RNL_GROUP_MAX_NODES];            /* readers of each node's output that are not in the group */
} rnl_grower;

/* The node has steps: it is needed, and not evaluated while planning. */
bool rnl_fuse_runs(const rnl_planner *planner, uint32_t index);
#define RNL_NOT_INSIDE SIZE_MAX
/* The place of the value's producer in the group, or RNL_NOT_INSIDE. */
size_t rnl_grower_find(const rnl_grower *grower, uint32_t value);

/* ---- fuse_node.c ---- */

/* The node could be part of a group of its output's shape: elementwise, on floats. */
bool rnl_fuse_takes(const rnl_planner *planner, const rnl_node *node);
/*
 * Appends the node's stages and puts it behind the group's nodes. False when there is no room or it cannot be; the
 * group is then to be taken back to what it was.
 */
bool rnl_grower_append(rnl_grower *grower, uint32_t index);
/* A value that is added to what the anchor computes, before anything else. */
bool rnl_grower_add_bias(rnl_grower *grower, uint32_t value);

/* Looks for patterns. */
typedef struct rnl_finder {
    rnl_planner *planner;
    const rnl_readers *readers;
} rnl_finder;

/* ---- fuse_norm.c ---- */

/* The free node of this type that makes a value with `count` readers; NULL when another one makes it. */
const rnl_node *rnl_finder_maker(const rnl_finder *finder, uint32_t value, const char *op_type, uint32_t count);
/* The one number that a value is known to be. */
bool rnl_finder_number(const rnl_finder *finder, uint32_t value, double *out_number);
uint32_t rnl_finder_index(const rnl_finder *finder, const rnl_node *node);

/* The normalisation that this node divides for; *group has no nodes when there is none. */
RNL_NODISCARD rnl_status rnl_fuse_norm(rnl_planner *planner, const rnl_readers *readers, uint32_t index,
                                       rnl_group *group);

/* ---- fuse_attention.c ---- */

/* The attention that this Softmax is part of, where it can be one step; else *group has no nodes. */
RNL_NODISCARD rnl_status rnl_fuse_attention(rnl_planner *planner, const rnl_readers *readers, uint32_t index,
                                            rnl_group *group);

/* ---- fuse_sum.c ---- */

/* This QLinearAdd and a quantised convolution that only it reads; else *group has no nodes. */
void rnl_fuse_sum(rnl_planner *planner, const rnl_readers *readers, uint32_t index, rnl_group *group);

/* ---- fuse_pad.c ---- */

/* Sets the planner's pads. */
RNL_NODISCARD rnl_status rnl_fuse_pads(rnl_planner *planner, const rnl_readers *readers);

#endif
