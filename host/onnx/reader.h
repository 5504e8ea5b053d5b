/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's parts, in the order in which a file passes through them: load.c opens it, model.c reads the outermost
 * message, survey.c walks all nested messages once (depth, counts), values.c makes the values that the file gives,
 * node.c, attribute.c and subgraph.c the nodes; functions.c looks at the model's functions before, inline.c puts their
 * nodes where they are called. tensor.c, sparse.c and tensor_data.c read tensors, external.c their data in other files.
 */
#ifndef RUNNEL_ONNX_READER_H
#define RUNNEL_ONNX_READER_H

#include "graph/graph_build.h"
#include "graph/names.h"
#include <onnx_fields.pb.h>
#include <pb_decode.h>

#define RNL_ONNX_MAX_DEPTH 64 /* nested messages */
#define RNL_ONNX_MAX_NODES 1000000
#define RNL_ONNX_MAX_INITIALIZERS 1000000
#define RNL_ONNX_MAX_VALUES 2000000
#define RNL_ONNX_MAX_ENDS 65536    /* inputs; outputs */
#define RNL_ONNX_MAX_ATTRIBUTES 64 /* of one node */
#define RNL_ONNX_MAX_LIST 4000000  /* elements of one attribute */
#define RNL_ONNX_MAX_METADATA 65536
#define RNL_ONNX_MAX_IMPORTS 64
#define RNL_ONNX_MAX_FUNCTIONS 4096
#define RNL_ONNX_MAX_CALLED_BYTES (1 << 30) /* of functions, once for each call */
#define RNL_ONNX_MAX_EXTERNAL 4096
#define RNL_ONNX_MAX_KEYWORD_BYTES 200
#define RNL_ONNX_MAX_TYPE 28 /* TensorProto.DataType */

/* Bytes of the model; `data` is NULL when a field is not there. */
typedef struct rnl_view {
    const uint8_t *data;
    size_t size;
} rnl_view;

/* What the file holds, counted before memory is taken for it. */
typedef struct rnl_survey {
    size_t all_nodes; /* subgraphs' too */
    size_t nodes, node_outputs, initializers, sparse_initializers, inputs, outputs;
} rnl_survey;

typedef struct rnl_opset {
    const char *domain;
    int64_t version;
} rnl_opset;

typedef enum rnl_function_state { RNL_FUNCTION_NEW, RNL_FUNCTION_COUNTING, RNL_FUNCTION_COUNTED } rnl_function_state;

/* A function of the model. All but the first three are known once it is counted. */
typedef struct rnl_function {
    const char *key; /* as rnl_onnx_function_key makes it; first, for rnl_names */
    const char *name;
    rnl_view bytes;
    rnl_names parameters; /* of parameter_names: inputs, then outputs */
    const char **parameter_names;
    size_t parameter_capacity, input_count, output_count;
    const rnl_attribute *defaults;                 /* attributes that a call may leave out, with their values */
    const char *declared[RNL_ONNX_MAX_ATTRIBUTES]; /* attributes without a default value */
    size_t default_count, declared_count;
    const rnl_opset *opsets;
    size_t opset_count;
    rnl_function_state state;
    size_t nodes, node_outputs; /* of one call, with the calls in it */
    unsigned depth;             /* 1: it calls no other */
} rnl_function;

/* A call whose nodes are being read. */
typedef struct rnl_scope {
    const struct rnl_scope *outer; /* the call that this one is in; NULL: none */
    const rnl_function *function;
    const char *prefix;        /* of names that are no parameters */
    rnl_view *actual;          /* the parameters' names in the graph; empty: left out */
    rnl_attribute *attributes; /* that the call gives */
    size_t attribute_count;
} rnl_scope;

/* A node's input whose producer the file had not named yet. */
typedef struct rnl_pending_input {
    uint32_t node;
    uint32_t input : 31, is_in_file : 1; /* the name's bytes: a file may have millions of these */
    rnl_view name;
} rnl_pending_input;

typedef struct rnl_reader {
    struct rnl_reader *parent; /* of the graph that has this one in a node; NULL: the model's own */
    rnl_graph *graph;
    size_t value_capacity; /* of graph->values */
    size_t sparse_bytes;   /* that sparse tensors have taken; of the model's own reader */
    const char *label;     /* names the model in messages */
    rnl_view file;
    rnl_status status; /* the first failure inside a callback */
    rnl_survey survey;

    rnl_names values;   /* of graph->values */
    rnl_names keywords; /* of keyword_texts: names of operators, domains and attributes, each stored once */
    const char **keyword_texts;
    size_t keyword_count, keyword_capacity;
    rnl_opset opsets[RNL_ONNX_MAX_IMPORTS];
    size_t opset_count;
    rnl_names functions; /* of function_list */
    rnl_function *function_list;
    size_t function_count, function_capacity, call_count, called_bytes;
    unsigned counting_depth;
    const rnl_scope *scope;  /* whose names are read; NULL: the graph's own */
    const rnl_scope *within; /* the call that a subgraph is in: what it captures has names of the call's */
    char *scope_text;        /* the last name that was made for a scope */
    size_t scope_text_capacity;
    rnl_metadata *metadata;
    size_t metadata_count, metadata_capacity;

    struct rnl_value_info_fields *inputs, *outputs;
    size_t input_count, output_count;

    char *text_room; /* what is left of the current block of short texts */
    size_t text_left;
    uint32_t *index_room;
    size_t index_left;

    const uint8_t *nodes_kept; /* nodes before this one are not needed in memory any more */
    rnl_pending_input *pending;
    size_t pending_count, pending_capacity;
    uint32_t node_inputs[RNL_MAX_NODE_INPUTS], node_outputs[RNL_MAX_NODE_INPUTS]; /* of the node being read */
    uint32_t node_input_count, node_output_count;
    rnl_attribute attributes[RNL_ONNX_MAX_ATTRIBUTES];
    size_t attribute_count;
    size_t node_subgraphs; /* of graph->subgraphs, before those of the node being read */
    float *floats;         /* of the attribute being read */
    int64_t *ints;
    const char **strings;
    size_t float_count, float_capacity, int_count, int_capacity, string_count, string_capacity;

    int folder;              /* the model's own, -1 while it was not needed */
    const char *folder_path; /* NULL when the model is in memory */
    const char **external_names;
    size_t external_capacity;
} rnl_reader;

/* ---- load.c ---- */

RNL_NODISCARD rnl_status rnl_onnx_reader_create(rnl_graph *graph, const char *label, rnl_view file,
                                                rnl_reader **out_reader);
void rnl_onnx_reader_free(rnl_reader *reader);

/* ---- fields.c: views and messages ---- */

/* For callbacks: true when `status` is RNL_OK, else it is kept as the reader's and decoding stops. */
bool rnl_onnx_ok(rnl_reader *reader, rnl_status status);
/* Takes a field's bytes off the stream; false when the field has no length of its own (a wrong wire type). */
bool rnl_onnx_take(rnl_reader *reader, pb_istream_t *stream, rnl_view *out_view);
/* The callback of a field of which only the last occurrence counts. */
typedef struct rnl_view_field {
    rnl_reader *reader;
    rnl_view view;
} rnl_view_field;
bool rnl_onnx_on_view(pb_istream_t *stream, const pb_field_t *field, void **arg);
#define RNL_ONNX_VIEW(field)                                                                                           \
    (pb_callback_t)                                                                                                    \
    {                                                                                                                  \
        {rnl_onnx_on_view}, (field)                                                                                    \
    }
/* Fills `message`, which holds zeros and callbacks. `what` is named when the bytes are no such message. */
RNL_NODISCARD rnl_status rnl_onnx_decode(rnl_reader *reader, rnl_view bytes, const pb_msgdesc_t *fields, void *message,
                                         const char *what);

/* ---- texts.c ---- */

/*
 * The text itself when it is printable UTF-8, else one with "\x1b" in place of what is not, so that messages can name
 * it. NUL bytes are refused.
 */
RNL_NODISCARD rnl_status rnl_onnx_printable(rnl_reader *reader, rnl_view view, rnl_view *out_view);
/* A printable copy in the graph's zone; "" when absent. */
RNL_NODISCARD rnl_status rnl_onnx_text(rnl_reader *reader, rnl_view view, const char **out_text);
RNL_NODISCARD rnl_status rnl_onnx_copy_text(rnl_reader *reader, rnl_view printable, const char **out_text);
/* A copy as it is, though without NUL: for contents, not names. */
RNL_NODISCARD rnl_status rnl_onnx_raw_text(rnl_reader *reader, rnl_view view, const char **out_text);
/* A printable copy, each text stored once. At most RNL_ONNX_MAX_KEYWORD_BYTES. */
RNL_NODISCARD rnl_status rnl_onnx_keyword(rnl_reader *reader, rnl_view view, const char **out_text);
RNL_NODISCARD rnl_status rnl_onnx_indices(rnl_reader *reader, const uint32_t *indices, size_t count,
                                          const uint32_t **out_copy);

/* ---- survey.c ---- */

RNL_NODISCARD rnl_status rnl_onnx_survey(rnl_reader *reader, rnl_view graph);
/* The same of what a function's nodes nest. */
RNL_NODISCARD rnl_status rnl_onnx_survey_function(rnl_reader *reader, rnl_view function);

/* ---- model.c ---- */

/* "" for "ai.onnx", which is another way to write the default domain. */
rnl_view rnl_onnx_plain_domain(rnl_view domain);

/* The whole of a graph, once the reader knows the operator sets. */
RNL_NODISCARD rnl_status rnl_onnx_read_graph(rnl_reader *reader, rnl_view bytes);
/* Reads the whole model into the reader's graph, unfinished. */
RNL_NODISCARD rnl_status rnl_onnx_read_model(rnl_reader *reader);

/* Adds one import to a list of at most RNL_ONNX_MAX_IMPORTS. */
RNL_NODISCARD rnl_status rnl_onnx_read_opset(rnl_reader *reader, rnl_view bytes, rnl_opset *opsets, size_t *count);

/* ---- functions.c ---- */

#define RNL_ONNX_KEY_BYTES (12 * RNL_ONNX_MAX_KEYWORD_BYTES + 3) /* escaped, a byte may take four */
/* One text for a function's name, domain and overload; returns its length. */
size_t rnl_onnx_function_key(const char *name, const char *domain, const char *overload, char key[RNL_ONNX_KEY_BYTES]);
/* Keeps a function for rnl_onnx_find_function. */
RNL_NODISCARD rnl_status rnl_onnx_read_function(rnl_reader *reader, rnl_view bytes);
void rnl_onnx_free_functions(rnl_reader *reader);
/* Looks at all functions of the model, and how much a call of each adds. */
RNL_NODISCARD rnl_status rnl_onnx_count_functions(rnl_reader *reader);
/* Adds what the functions that a graph calls will put into it to the survey's counts. */
RNL_NODISCARD rnl_status rnl_onnx_count_calls(rnl_reader *reader, rnl_view graph);
/* The function that a node calls; NULL: an operator. */
RNL_NODISCARD rnl_status rnl_onnx_find_function(rnl_reader *reader, rnl_view node, rnl_function **out_function);

/* ---- inline.c ---- */

/* The call around what is being read, whose attributes and imports count; NULL: none. */
const rnl_scope *rnl_onnx_call(const rnl_reader *reader);
/* The reader of the model's own graph, which has read the functions. */
rnl_reader *rnl_onnx_root(rnl_reader *reader);

/* Reads the function's nodes in the place of the node that calls it. */
RNL_NODISCARD rnl_status rnl_onnx_inline(rnl_reader *reader, const rnl_function *function, rnl_view node);
/* A value's name as the graph has it. It may lie in a buffer that the next call reuses. */
RNL_NODISCARD rnl_status rnl_onnx_scoped(rnl_reader *reader, rnl_view name, rnl_view *out_view);
/* A name of rnl_onnx_scoped, to be kept. */
RNL_NODISCARD rnl_status rnl_onnx_keep_name(rnl_reader *reader, rnl_view *name);
/* The function's attribute that the attribute `name` refers to; NULL: the call gives none, and there is no default. */
RNL_NODISCARD rnl_status rnl_onnx_refer(rnl_reader *reader, const char *name, rnl_view reference,
                                        const rnl_attribute **out_attribute);

/* ---- values.c ---- */

RNL_NODISCARD rnl_status rnl_onnx_read_values(rnl_reader *reader, rnl_view graph);
/* After the nodes. */
RNL_NODISCARD rnl_status rnl_onnx_read_outputs(rnl_reader *reader);
/* The value of this name; in a subgraph, a captured one when there is none. Else RNL_NO_VALUE. */
RNL_NODISCARD rnl_status rnl_onnx_reach_value(rnl_reader *reader, rnl_view name, uint32_t *out_value);
/* The value of this name, or RNL_NO_VALUE. */
RNL_NODISCARD rnl_status rnl_onnx_find_value(rnl_reader *reader, rnl_view name, uint32_t *out_value);
/* A new value; refused when something already produces this name. `what` says what it is to be. */
RNL_NODISCARD rnl_status rnl_onnx_define_value(rnl_reader *reader, rnl_view name, const char *what,
                                               uint32_t *out_value);

/* ---- value_info.c ---- */

typedef struct rnl_value_info_fields {
    rnl_view name;
    bool is_no_tensor;   /* a sequence, an optional or a map; without any type it may be one */
    rnl_value_info info; /* all but the name */
} rnl_value_info_fields;
RNL_NODISCARD rnl_status rnl_onnx_read_value_info(rnl_reader *reader, rnl_view bytes, const char *what,
                                                  rnl_value_info_fields *out_fields);

/* ---- node.c, attribute.c ---- */

RNL_NODISCARD rnl_status rnl_onnx_read_nodes(rnl_reader *reader, rnl_view graph);
/* Appends a node to the graph, or those of the function that it calls. */
RNL_NODISCARD rnl_status rnl_onnx_read_node(rnl_reader *reader, rnl_view bytes);
/* Appends to the reader's attributes. */
RNL_NODISCARD rnl_status rnl_onnx_read_attribute(rnl_reader *reader, rnl_view bytes);

/* ---- subgraph.c ---- */

/* Reads a graph that a node has as an attribute of this name into one of its own. */
RNL_NODISCARD rnl_status rnl_onnx_read_subgraph(rnl_reader *reader, rnl_view bytes, const char *attribute,
                                                rnl_graph **out_graph);

/* ---- tensor.c, tensor_data.c, external.c ---- */

/* `what` names the tensor when it has no name of its own. */
RNL_NODISCARD rnl_status rnl_onnx_read_tensor(rnl_reader *reader, rnl_view bytes, const char *what, rnl_view *out_name,
                                              rnl_host_tensor *out_tensor);
/* The same of a sparse tensor, as a dense one; the name is that of its values. */
RNL_NODISCARD rnl_status rnl_onnx_read_sparse(rnl_reader *reader, rnl_view bytes, const char *what, rnl_view *out_name,
                                              rnl_host_tensor *out_tensor);
/* The elements of a tensor that is not given as raw bytes. `tensor` has type and shape. */
RNL_NODISCARD rnl_status rnl_onnx_read_elements(rnl_reader *reader, rnl_view bytes, rnl_host_tensor *tensor);
typedef struct rnl_external {
    rnl_view location, offset, length;
} rnl_external;
/* Maps the file, once, and points `tensor`, which has type, shape and size, into it. */
RNL_NODISCARD rnl_status rnl_onnx_read_external(rnl_reader *reader, const rnl_external *external,
                                                rnl_host_tensor *tensor);

#endif
