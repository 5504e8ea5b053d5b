/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lowering: one node at known shapes becomes steps. One row an operator in lower_list.c; the functions stand in the
 * lower_<family>.c files and use the calls below, which hide where values live and insert copies where a layout is
 * needed.
 */
#ifndef RUNNEL_MODEL_LOWER_H
#define RUNNEL_MODEL_LOWER_H

#include "graph/op_params.h"
#include "model/model.h"
#include "ops/conv.h"

/* What an operator needs of an image or matrix in memory. */
typedef enum rnl_layout {
    RNL_LAYOUT_ANY, /* as it is; an output: as the first input of its rank */
    RNL_LAYOUT_ROW_MAJOR,
    RNL_LAYOUT_CHANNELS_LAST /* an input: a pixel's channels are neighbours, pixels may lie anywhere */
} rnl_layout;

/* A value while planning. */
typedef struct rnl_plan_value {
    rnl_tensor_desc desc;
    rnl_view view;   /* where it is on the device */
    bool described;  /* desc is known */
    bool placed;     /* view is set */
    bool has_copy;   /* `copy` is set: the same elements in copy_layout, for steps that need that */
    int copy_layout; /* … and of copy's type */
    rnl_view copy;
    bool needed;        /* some step reads it on the device, or it is an output */
    bool is_fixed;      /* desc.host follows from constants alone, whatever the inputs' shapes */
    rnl_plan_io *input; /* the plan's input that it is, or NULL */
} rnl_plan_value;

typedef struct rnl_home rnl_home;   /* place.h */
typedef struct rnl_group rnl_group; /* fuse.h */
typedef struct rnl_block rnl_block; /* block.h */

typedef struct rnl_planner {
    rnl_model *model;
    const rnl_graph *graph;
    rnl_plan *plan;
    rnl_plan_value *values; /* one a value of the graph */
    rnl_home *homes;        /* likewise */
    bool *on_host;          /* one a node: evaluated while planning */
    rnl_group **groups;     /* one a node: what it is lowered with; NULL: it is lowered by itself */
    bool *narrow;           /* one a value: stored as bfloat16 though it is described as float32; NULL: none is */
    rnl_block **blocks;     /* one a node: the block whose convolution it is; NULL: none */
    rnl_pad **pads;         /* one a node: a Pad that its readers do; NULL: none */
    rnl_zone *zone;         /* for what planning alone needs */
    rnl_tensor_desc *descs; /* scratch for one node's inputs and outputs */
    size_t desc_capacity;
    size_t covered_steps; /* steps whose node is noted */
} rnl_planner;

typedef struct rnl_lowering {
    rnl_planner *planner;
    rnl_step_list *list;
    rnl_op_context context; /* the node and the descriptions of its inputs and outputs */
    rnl_group *group;       /* that the node is the anchor of, or NULL */
} rnl_lowering;

typedef rnl_status (*rnl_lower_fn)(rnl_lowering *lowering);
/* NULL when there is no row. */
rnl_lower_fn rnl_lower_find(const rnl_node *node);

/* Lowers every node that is needed, in order. */
RNL_NODISCARD rnl_status rnl_lower_nodes(rnl_planner *planner);
/* Notes that the steps added since the last call belong to `node`; the last one does `also`, or NULL. */
RNL_NODISCARD rnl_status rnl_plan_cover_steps(rnl_planner *planner, uint32_t node, const char *also);

/* A value of the graph on the device in this layout; a copy step is added when it is in another. */
RNL_NODISCARD rnl_status rnl_lower_value(rnl_lowering *lowering, uint32_t value, rnl_layout layout, rnl_view *out_view);

/* The same in a type of float, or as it is stored (narrow.h), which rnl_lower_value is not: that gives what is
 * described. */
RNL_NODISCARD rnl_status rnl_lower_value_as(rnl_lowering *lowering, uint32_t value, rnl_layout layout, rnl_dtype dtype,
                                            rnl_view *out_view);
RNL_NODISCARD rnl_status rnl_lower_stored(rnl_lowering *lowering, uint32_t value, rnl_layout layout,
                                          rnl_view *out_view);

/* True when the node has an input or output `index`. */
bool rnl_lower_has_input(const rnl_lowering *lowering, size_t index);
bool rnl_lower_has_output(const rnl_lowering *lowering, size_t index);
/* Input `index` on the device in this layout; a copy step is added when it is in another. Not there: RNL_NO_SLOT. */
RNL_NODISCARD rnl_status rnl_lower_input(rnl_lowering *lowering, size_t index, rnl_layout layout, rnl_view *out_view);
/* Sets params->amx where that is faster for constant float32 weights, of as many parts as the model multiplies. */
RNL_NODISCARD rnl_status rnl_lower_prefers_amx(const rnl_lowering *lowering, rnl_conv_params *params,
                                               const rnl_view *source, const rnl_view *weight, const rnl_view *target);
/* Memory of a convolution's own, where that makes it faster. */
RNL_NODISCARD rnl_status rnl_lower_conv_memory(rnl_lowering *lowering, rnl_conv_params *params, const rnl_view *source,
                                               const rnl_view *weight, const rnl_view *bias, const rnl_view *target,
                                               rnl_view *out_scratch);
/* A convolution's weight; packed once for the model when it is constant, else by a copy step. */
RNL_NODISCARD rnl_status rnl_lower_conv_weight(rnl_lowering *lowering, size_t index, rnl_packing packing,
                                               int64_t groups, rnl_view *out_view);
/* New memory for output `index`, or its part of a larger value's: `layout` may be widened there (place.h). */
RNL_NODISCARD rnl_status rnl_lower_output(rnl_lowering *lowering, size_t index, rnl_layout layout, rnl_view *out_view);
/* The same for any value: with `any`, in whatever layout its part of a larger value has, `layout` if it is new. */
RNL_NODISCARD rnl_status rnl_lower_memory(rnl_lowering *lowering, uint32_t value, rnl_layout layout, bool any,
                                          rnl_view *out_view);
/* A computed value of this rank whose channels are neighbours in memory, and whose columns are not. */
bool rnl_lower_is_channels_last(const rnl_planner *planner, uint32_t value, size_t rank);
/* Output `index` is this view of memory that is there already. */
void rnl_lower_alias(rnl_lowering *lowering, size_t index, const rnl_view *view);
/* A constant of the model under a key of its weights; see rnl_weights_get. */
RNL_NODISCARD rnl_status rnl_lower_weight(rnl_lowering *lowering, const rnl_weight_key *key, const double *numbers,
                                          size_t number_count, rnl_view *out_view);
/*
 * Input `index` where it lies in the model's file, if it is a constant that may stay there (rnl_weights_can_map);
 * false: it has no such place. The view's elements need not be aligned.
 */
RNL_NODISCARD rnl_status rnl_lower_mapped(rnl_lowering *lowering, size_t index, bool *out_found, rnl_view *out_view);
/* Memory for this node's own use. */
RNL_NODISCARD rnl_status rnl_lower_scratch(rnl_lowering *lowering, rnl_dtype dtype, size_t rank, const int64_t *shape,
                                           rnl_layout layout, rnl_view *out_view);
/* A one-element tensor of the given type and value. */
RNL_NODISCARD rnl_status rnl_lower_scalar(rnl_lowering *lowering, rnl_dtype dtype, double value, rnl_view *out_view);
/* A dense tensor of the host's bytes, kept in the plan. */
RNL_NODISCARD rnl_status rnl_lower_constant(rnl_lowering *lowering, const rnl_tensor_desc *desc, rnl_view *out_view);
/* What random numbers are made of, and which of the plan's draws this one is. */
RNL_NODISCARD rnl_status rnl_lower_draw(rnl_lowering *lowering, rnl_view *out_state, uint32_t *out_ordinal);
/* dst = src, element by element; src broadcasts and is cast. */
RNL_NODISCARD rnl_status rnl_lower_copy(rnl_lowering *lowering, const rnl_view *src, const rnl_view *dst);

/* ---- groups, in lower_group.c ---- */

/* Lowers a group's nodes as one, where its last node stands. */
RNL_NODISCARD rnl_status rnl_lower_group(rnl_lowering *lowering, rnl_group *group);
/*
 * New memory for what an anchor computes, as rnl_lower_output makes it for output 0: what its group stores, when it has
 * one, and the chain that comes before storing; NULL: none.
 */
RNL_NODISCARD rnl_status rnl_lower_result(rnl_lowering *lowering, rnl_layout layout, rnl_view *out_view,
                                          rnl_chain **out_chain);
/* An anchor's weights (input 1) and bias (input 2; RNL_NO_SLOT: none), with the constants of its group. */
RNL_NODISCARD rnl_status rnl_lower_anchor_weights(rnl_lowering *lowering, rnl_packing packing, int64_t groups,
                                                  rnl_view *out_weight, rnl_view *out_bias);

/* ---- views, in view.c ---- */

/* The same elements in another shape of as many; false when no strides can say that. */
bool rnl_view_reshape(const rnl_view *view, size_t rank, const int64_t *shape, rnl_view *out_view);
/* The fewest dimensions that split both the view's and a shape of as many elements; false when there are none. */
bool rnl_view_pieces(const rnl_view *view, size_t rank, const int64_t *shape, size_t *out_count, int64_t *out_sizes);
rnl_view rnl_view_permute(const rnl_view *view, const size_t *permutation);
/* `count` elements of `axis` from `start`, every `step`. */
void rnl_view_slice(rnl_view *view, size_t axis, int64_t start, int64_t count, int64_t step);
/* Broadcast to a shape (of at least its rank) by strides of 0. */
rnl_view rnl_view_expand(const rnl_view *view, size_t rank, const int64_t *shape);
/* Element by element the same memory. */
bool rnl_view_is_same(const rnl_view *a, const rnl_view *b);

#endif
