/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runnel: runs ONNX models on any OpenCL device.
 *
 *     rnl_graph_load("model.onnx", &graph);           what the file says; no device in sight
 *     rnl_model_open(graph, device, NULL, &model);    weights on one device, and the plans for the shapes seen so far
 *     rnl_session_create(model, &session);            one caller at a time: streams, memory, kernels
 *     rnl_session_run(session, inputs, 1, outputs, 1);
 *
 * The conventions of runnel/rt.h hold here too.
 */
#ifndef RUNNEL_H
#define RUNNEL_H

#include <runnel/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_graph rnl_graph;
typedef struct rnl_model rnl_model;
typedef struct rnl_session rnl_session;

/* ---- Graph: immutable after loading; any thread ----------------------------------------------------------------- */

/*
 * Reads an ONNX file (opset 1 to 28) or its bytes. External data is read only from regular files inside the model's own
 * folder; rnl_graph_load_memory refuses it. Memory passed in must stay valid and unchanged until the graph is released,
 * and the files must not be written to (they may be deleted, or replaced by new ones).
 * A file that is not a sound model is RNL_INVALID_ARGUMENT or RNL_DATA_LOSS; one that cannot be opened RNL_NOT_FOUND.
 */
RNL_API RNL_NODISCARD rnl_status rnl_graph_load(const char *path, rnl_graph **out_graph);
RNL_API RNL_NODISCARD rnl_status rnl_graph_load_memory(const void *data, size_t size_bytes, rnl_graph **out_graph);
RNL_API rnl_graph *rnl_graph_retain(rnl_graph *graph);
RNL_API void rnl_graph_release(rnl_graph *graph);

typedef struct rnl_value_info {
    const char *name;
    rnl_dtype dtype;
    size_t rank;                         /* SIZE_MAX when the file gives no shape */
    int64_t shape[RNL_MAX_RANK];         /* -1: free */
    const char *dim_names[RNL_MAX_RANK]; /* a free dimension's name, or NULL */
} rnl_value_info;

/* The graph's inputs (initialisers left out) and outputs, in the file's order. Borrowed, valid as long as the graph. */
RNL_API const rnl_value_info *rnl_graph_inputs(const rnl_graph *graph, size_t *out_count);
RNL_API const rnl_value_info *rnl_graph_outputs(const rnl_graph *graph, size_t *out_count);

typedef struct rnl_metadata {
    const char *key, *value;
} rnl_metadata;
/* The file's own properties (metadata_props), in the file's order. Borrowed. */
RNL_API const rnl_metadata *rnl_graph_metadata(const rnl_graph *graph, size_t *out_count);

typedef struct rnl_graph_info {
    int64_t ir_version, opset;                                 /* opset of the default domain */
    const char *producer_name, *producer_version, *graph_name; /* "" when absent */
    size_t node_count, initializer_count;                      /* Constant nodes count as initialisers */
    uint64_t parameter_count;                                  /* elements of all initialisers */
} rnl_graph_info;
RNL_API void rnl_graph_get_info(const rnl_graph *graph, rnl_graph_info *out_info);

/* One row for each (domain, operator) of the graph, and what stands against running it. */
typedef struct rnl_operator_info {
    const char *domain, *op_type;
    size_t node_count;
    size_t unsupported_count; /* of node_count */
    const char *reason;       /* the first node that cannot run and why; "" when all can */
} rnl_operator_info;
/*
 * Checks every node against what runnel implements. *out_rows is borrowed, valid as long as the graph, sorted by
 * operator. Returns RNL_UNIMPLEMENTED, with the first reasons in the error, when any node cannot run.
 */
RNL_API RNL_NODISCARD rnl_status rnl_graph_check(const rnl_graph *graph, const rnl_operator_info **out_rows,
                                                 size_t *out_count);

/*
 * As rnl_graph_load, and whatever a node computes for another is an output too: behind the graph's own, in the order of
 * the nodes; what is inside If, Loop and Scan is left out. For looking into a model: nodes are not fused then.
 * *out_own_count: how many outputs are the graph's own.
 */
RNL_API RNL_NODISCARD rnl_status rnl_graph_load_exposed(const char *path, rnl_graph **out_graph, size_t *out_own_count);
/* The node that computes an output. */
typedef struct rnl_producer {
    size_t node; /* its place in the order of the run */
    const char *name, *op_type, *domain;
} rnl_producer;
/* False where no node computes it: an input or a constant goes straight to that output. Names are borrowed. */
RNL_API bool rnl_graph_output_producer(const rnl_graph *graph, size_t output, rnl_producer *out_producer);

/* An operator that runnel has, at some versions of its domain ("": ai.onnx). */
typedef struct rnl_operator_support {
    const char *domain, *op_type;
    int32_t since, until; /* versions of the domain, both ends in */
    uint32_t types;       /* bit 1 << rnl_dtype: what the first input may be; 0 when there is none */
} rnl_operator_support;
/*
 * Lists what runnel has, sorted by domain, operator and version. Writes at most `capacity` rows and returns how many
 * there are. What control flow and functions of a model bring is not in it. Any thread.
 */
RNL_API size_t rnl_operator_list(rnl_operator_support *out_rows, size_t capacity);

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

/*
 * A dense row-major tensor in host memory (`data`) or device memory (`buffer` + `offset_bytes`, of the model's device).
 * As an output: leave both NULL and the session provides host memory, valid until its next run or release (the same
 * tensor may be passed again); or give memory and its `size_bytes`, and it is filled in. Shape and dtype of outputs are
 * written by the session. Where a shape depends on the data (NonZero, Loop), it is known only then: the session's
 * memory always suffices, the caller's must be large enough for what comes.
 */
typedef struct rnl_tensor {
    const char *name; /* the input's or output's name; NULL is allowed where the model has just one */
    rnl_dtype dtype;
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
    void *data;
    rnl_buffer *buffer;
    size_t offset_bytes;
    size_t size_bytes; /* of `data`, or of the buffer from offset_bytes on; checked against the shape */
} rnl_tensor;

/* ---- Model: any thread ------------------------------------------------------------------------------------------ */

/* What is being prepared: `done` of `total` programs. Called from the thread that opens, plans or first runs. */
typedef struct rnl_progress {
    const char *name; /* "conv.cl", … */
    size_t done, total;
    bool from_cache;
} rnl_progress;
typedef void (*rnl_progress_fn)(void *user, const rnl_progress *progress);

/*
 * How a float32 model is computed. With bfloat16, convolutions and products with constant weights multiply bfloat16 and
 * add up in float32, and some values between nodes are stored as bfloat16; inputs and outputs stay as they are. It
 * takes a CPU that multiplies pairs of bfloat16 (AVX512_BF16) and a driver that lets kernels do so: elsewhere there is
 * one warning in the log, and float32. Results differ from float32's in the third digit.
 */
typedef enum rnl_precision { RNL_PRECISION_DEFAULT, RNL_PRECISION_F32, RNL_PRECISION_BF16 } rnl_precision;

typedef struct rnl_model_options {
    size_t struct_size;
    size_t plan_cache_bytes;  /* plans kept, least recently used first out; 0 = 64 MiB */
    rnl_progress_fn progress; /* may be NULL */
    void *progress_user;
    rnl_precision precision; /* default: as the model says */
    /*
     * An item's result has the same bits in each run, alone and in any batch; some products and convolutions take
     * longer. So has every model where RUNNEL_DETERMINISTIC is set in the environment. See docs/debugging.md for what
     * it cannot give: results that are defined by the whole batch, and other devices' or drivers' bits.
     */
    bool deterministic;
    /*
     * 0: weights lie on the device. Else they stay in host memory, and each session copies them ahead of the steps that
     * read them into a ring of its own, of at most so many bytes of device memory; results are the same to the bit.
     * Fails with RNL_RESOURCE_EXHAUSTED, when planning, where one step reads more than that.
     */
    size_t weight_budget_bytes;
} rnl_model_options;
#define RNL_MODEL_OPTIONS_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(rnl_model_options), 0, NULL, NULL, RNL_PRECISION_DEFAULT, false, 0                                      \
    }

/*
 * Opens a graph on a device. Fails with RNL_UNIMPLEMENTED when a node cannot run (see rnl_graph_check). Where all input
 * shapes are fixed, plans at once, compiling what is not cached. On pocl whoever plans starts processes that compile
 * beside this one, and waits for their end (RUNNEL_COMPILERS=off: none): of a process that waits for any child of its
 * own, they may be that child.
 */
RNL_API RNL_NODISCARD rnl_status rnl_model_open(rnl_graph *graph, rnl_device *device, const rnl_model_options *options,
                                                rnl_model **out_model);
RNL_API rnl_model *rnl_model_retain(rnl_model *model);
RNL_API void rnl_model_release(rnl_model *model);
/* Plans ahead for these inputs (names, types and shapes; data only where shape arithmetic reads it). */
RNL_API RNL_NODISCARD rnl_status rnl_model_prepare(rnl_model *model, const rnl_tensor *inputs, size_t input_count);
typedef struct rnl_tune_options {
    size_t struct_size;
    /* Called after each run, `done` of `total`; false ends the tuning with RNL_CANCELLED. May be NULL. */
    bool (*progress)(void *user, size_t done, size_t total);
    void *user;
} rnl_tune_options;
#define RNL_TUNE_OPTIONS_INIT                                                                                          \
    {                                                                                                                  \
        sizeof(rnl_tune_options), NULL, NULL                                                                           \
    }

/*
 * Measures the kernels that runs with these inputs can use, in each of their variants, and notes the fastest in the
 * device's tuning table, which is kept beside the compiled programs: plans made later, in this process and in others,
 * go by it. Takes a run of the model and compiling for each variant; the device should have nothing else to do, and
 * what else is planned on it meanwhile gets the variant being measured. *out_changed (may be NULL): how many choices
 * are other than before. Needs the memory of a second model. options may be NULL. Where it is cancelled or fails
 * nothing is noted.
 */
RNL_API RNL_NODISCARD rnl_status rnl_model_tune(rnl_model *model, const rnl_tensor *inputs, size_t input_count,
                                                const rnl_tune_options *options, size_t *out_changed);

typedef struct rnl_model_stats {
    size_t weight_bytes; /* on the device; with a budget for weights, in host memory */
    size_t plan_count, plan_bytes;
    uint64_t plans_built, plans_evicted;
    uint64_t last_plan_ns; /* time of the last planning, compiling left out */
    size_t program_count;  /* distinct programs of this model's plans */
} rnl_model_stats;
RNL_API void rnl_model_get_stats(rnl_model *model, rnl_model_stats *out_stats);

/* ---- Session: one caller at a time ------------------------------------------------------------------------------ */

RNL_API RNL_NODISCARD rnl_status rnl_session_create(rnl_model *model, rnl_session **out_session);
/* Cancels and waits for what was submitted. */
RNL_API void rnl_session_release(rnl_session *session);

/*
 * Runs the model and blocks until the outputs are there. Inputs may come in any order and any shape that the model
 * allows; any subset of the outputs may be asked for. On failure no output is valid and the next call works.
 */
RNL_API RNL_NODISCARD rnl_status rnl_session_run(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                                                 rnl_tensor *outputs, size_t output_count);

/* `error` is NULL on success. Called once, from a thread of the session; it must not release the session. */
typedef void (*rnl_complete_fn)(void *user, const rnl_error *error);

/*
 * Starts a run and returns. The tensors and their memory must stay valid until `complete` has been called.
 * RNL_UNAVAILABLE while an earlier submission is still running.
 */
RNL_API RNL_NODISCARD rnl_status rnl_session_submit(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                                                    rnl_tensor *outputs, size_t output_count, rnl_complete_fn complete,
                                                    void *user);
/* Stops the run in progress between two steps; it ends with RNL_CANCELLED. Any thread. No effect when nothing runs. */
RNL_API void rnl_session_cancel(rnl_session *session);

/* One step of a run: a kernel, or one call of a library that has its own. */
typedef struct rnl_step_profile {
    const char *node;           /* its name, else its first output's; "" for a step at the graph's edge */
    const char *op_type;        /* "Conv"; "" at the edge */
    const char *also;           /* " + Relu + Add": other operators that the step does as well, or "" */
    const char *implementation; /* "conv:portable" */
    const char *file, *kernel;  /* "conv.cl" and the entry point; "" for a library's */
    uint64_t time_ns;
    uint64_t flops, bytes; /* arithmetic and memory traffic that the operation needs at least */
    bool device_clock; /* false: measured from outside, with waits around the step: launching it is part of the time */
} rnl_step_profile;
/*
 * Runs once without giving outputs and measures each step. The times of a plan that runs again, as a Loop's body does,
 * are added up. The steps, in the order of the run, are valid until the
 * session's next profile or release, other names as long as the model. Costs other runs nothing.
 */
RNL_API RNL_NODISCARD rnl_status rnl_session_profile(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                                                     const rnl_step_profile **out_steps, size_t *out_count);

/*
 * From the next run on, what the session does is recorded in the trace (runnel/trace.h): its commands, named by node
 * and kernel, on a track of their own ("session 1", as the trace counts them), its planning and its runs among what its
 * threads do. NULL: no longer. The session holds the trace.
 */
RNL_API RNL_NODISCARD rnl_status rnl_session_trace(rnl_session *session, rnl_trace *trace);

typedef struct rnl_session_stats {
    size_t arena_bytes, arena_peak_bytes; /* reserved; used by the largest plan */
    size_t step_count;                    /* of the last run, over all its plans */
    size_t weight_ring_bytes;             /* device memory that weights pass through */
} rnl_session_stats;
RNL_API void rnl_session_get_stats(const rnl_session *session, rnl_session_stats *out_stats);

/*
 * Gives the caller the host memory that the session lent for an output of its last run: the session lends other memory
 * the next time, and never touches this again. Returns output->data, or NULL where that is not lent by this session.
 * Give it back with rnl_output_release, at any time and from any thread, also after the session's release.
 */
RNL_API RNL_NODISCARD void *rnl_session_take_output(rnl_session *session, const rnl_tensor *output);
/* NULL is legal. */
RNL_API void rnl_output_release(void *memory);

#ifdef __cplusplus
}
#endif
#endif
