/* SPDX-License-Identifier: Apache-2.0 */
/* A model file taken apart, so that it can be put together otherwise. Internal to quantize/. */
#ifndef RUNNEL_QUANTIZE_EDIT_H
#define RUNNEL_QUANTIZE_EDIT_H

#include "graph/graph.h"
#include "graph/names.h"
#include "quantize/wire.h"
#include <runnel/quantize.h>

#define RNL_NO_LAYER UINT32_MAX
#define RNL_HISTOGRAM_BINS 2048

typedef struct rnl_edit_value {
    const char *name;  /* first, for rnl_names */
    uint32_t producer; /* node, or RNL_NO_NODE */
    uint32_t reader;   /* the last node that reads it */
    uint32_t readers;  /* nodes of the graph itself; an output, and a graph within a node, count as two more */
    bool is_input, is_output, is_captured;
    bool was_read;                   /* in the file */
    const rnl_host_tensor *constant; /* or NULL */
    bool is_known;                   /* to the graph that was loaded, under this name */
    /* What the runs show. */
    bool is_wanted, is_observed;
    double low, high;
    uint64_t *histogram; /* of RNL_HISTOGRAM_BINS between low and high */
    size_t rank;         /* SIZE_MAX: not seen */
    /* The plan: how it is quantised. */
    bool is_quantised, is_integer; /* is_integer: what makes it computes on integers */
    uint32_t same_as;              /* a value that it only moves, and has its scale; or RNL_NO_VALUE */
} rnl_edit_value;

typedef struct rnl_edit_node {
    const char *name, *op_type, *domain;
    rnl_bytes bytes;       /* the message */
    const rnl_node *typed; /* the same in the loaded graph; NULL: it is not there, as a call of a function is not */
    uint32_t *inputs, *outputs;
    uint32_t input_count, output_count;
    uint32_t layer;   /* or RNL_NO_LAYER */
    bool is_gone;     /* folded into another */
    bool is_follower; /* the plan: computes on integers because what it reads is there as such */
} rnl_edit_node;

/* A layer's weights, with what stood behind it folded in. */
typedef struct rnl_edit_layer {
    uint32_t node;
    uint32_t end;              /* what it computes, behind a Relu or Clip */
    int64_t axis;              /* of the weights: their output channels */
    rnl_host_tensor weight;    /* float32 */
    const float *bias;         /* one a channel, or NULL */
    int64_t channels;          /* sizes of the weights around `axis` */
    int64_t inner;             /* elements from one channel to the next */
    bool is_active, is_folded; /* the plan: quantised; other numbers than in the file */
} rnl_edit_layer;

struct rnl_quantizer {
    rnl_quantizer_options options;
    rnl_graph *graph;
    const char *path;
    rnl_zone zone;
    rnl_bytes model, body; /* the file, and the graph within */
    int64_t opset;
    rnl_names names;
    rnl_edit_value *values;
    size_t value_count, value_capacity;
    rnl_edit_node *nodes;
    size_t node_count;
    rnl_edit_layer *layers;
    rnl_quantizer_layer *infos; /* one each */
    size_t layer_count;
    uint32_t *shown; /* the values that a built model has as outputs behind its own */
    size_t shown_count, own_count;
    uint8_t *marks;   /* room for the plan: three a value */
    const char *mark; /* is nowhere in the file, so that names with it are new */
};

/* ---- edit.c: reading ---- */
RNL_NODISCARD rnl_status rnl_edit_read(rnl_quantizer *q);
/* The value of this name, or RNL_NO_VALUE. */
uint32_t rnl_edit_find(const rnl_quantizer *q, const char *name, size_t length);
bool rnl_edit_is(const rnl_edit_node *node, const char *op_type);
/* A constant of float32. */
const rnl_host_tensor *rnl_edit_floats(const rnl_quantizer *q, const rnl_edit_node *node, uint32_t input);
float rnl_edit_float(const rnl_host_tensor *tensor, int64_t index);
int64_t rnl_edit_elements(const rnl_host_tensor *tensor);
/* The only node that reads a value, which nothing outside of it sees; NULL when there are others. */
rnl_edit_node *rnl_edit_only_reader(const rnl_quantizer *q, uint32_t value);

/* ---- layers.c, fold.c ---- */
RNL_NODISCARD rnl_status rnl_edit_find_layers(rnl_quantizer *q);
/* Takes in what follows a convolution and is affine for each channel. */
RNL_NODISCARD rnl_status rnl_edit_fold(rnl_quantizer *q, rnl_edit_layer *layer);
/* The value behind the Relu or Clip that alone reads this one, or itself. */
uint32_t rnl_edit_end(const rnl_quantizer *q, uint32_t value);

/* ---- plan.c ---- */
/* Which values are quantised when layer `only` is, or all that are not kept. */
void rnl_edit_plan(rnl_quantizer *q, size_t only);
/* Whether node `reader` takes the quantised form of its input, rather than the float32 beside it. */
bool rnl_edit_reads_quantised(const rnl_quantizer *q, const rnl_edit_node *reader, uint32_t input);

/* ---- ranges.c ---- */
typedef struct rnl_edit_scale {
    float scale;
    int32_t zero;
} rnl_edit_scale;
/* FAILED_PRECONDITION when the value was not observed. */
RNL_NODISCARD rnl_status rnl_edit_scale_of(const rnl_quantizer *q, uint32_t value, rnl_edit_scale *out_scale);

/* ---- upgrade.c ---- */
#define RNL_QUANTIZE_OPSET 13 /* the first with a scale for each channel */
/* Why this node means something else from opset 13 on, or NULL. */
const char *rnl_edit_obstacle(const rnl_quantizer *q, const rnl_edit_node *node);
/* Whether the softmax family's nodes need the rank of what they read. */
bool rnl_edit_needs_rank(const rnl_quantizer *q, const rnl_edit_node *node);
/* Is this attribute left out from opset 13 on, since it is an input or the default? */
bool rnl_edit_drops(const rnl_quantizer *q, const rnl_edit_node *node, const char *attribute);
/* Inputs in place of such attributes: the names of tensors that are added to `tensors`, as fields of the graph. */
void rnl_edit_add_inputs(const rnl_quantizer *q, const rnl_edit_node *node, rnl_text *inputs, rnl_text *tensors);

/* ---- emit.c, emit_layer.c ---- */
RNL_NODISCARD rnl_status rnl_edit_emit(rnl_quantizer *q, rnl_quantizer_form form, rnl_text *out);
/* A name of a new value: `base`, the mark and `kind`. */
void rnl_edit_name(const rnl_quantizer *q, uint32_t base, const char *kind, rnl_text *out);
/* An initialiser as a field of the graph; one number is a scalar where rank is 0. */
void rnl_edit_tensor(rnl_text *out, const char *name, rnl_dtype dtype, const int64_t *shape, size_t rank,
                     const void *data, size_t size_bytes);
/* The weights (and bias) of a layer as tensors, and the nodes that turn them to float32. `inputs` gets their names. */
RNL_NODISCARD rnl_status rnl_edit_layer_weights(const rnl_quantizer *q, const rnl_edit_layer *layer, rnl_text *nodes,
                                                rnl_text *tensors, rnl_text *inputs);
/* DequantizeLinear of 0 < axis < rank, or without one (axis -1). */
void rnl_edit_linear(rnl_text *nodes, const char *op_type, const char *x, const char *scale, const char *zero,
                     const char *y, int64_t axis);

#endif
