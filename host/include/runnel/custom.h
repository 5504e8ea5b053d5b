/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators of your own: of a domain of yours, with a kernel in OpenCL C or a function of the host.
 *
 *     rnl_registry_create(&registry);
 *     rnl_custom_operator op = RNL_CUSTOM_OPERATOR_INIT;
 *     op.domain = "com.example", op.op_type = "Scale", op.infer = infer_scale, op.plan = plan_scale;
 *     rnl_registry_add(registry, &op);
 *     rnl_graph_load_with("model.onnx", registry, &graph);     from here on as with any graph
 *
 * `infer` says what the outputs are, `plan` which kernels make them; or `compute` makes them on the host.
 * docs/custom-operators.md has the rest. The conventions of rt.h hold.
 *
 * Callbacks are called by whatever thread opens, plans or runs a model, several at once, also for one operator: what
 * they share, `user` included, is theirs to lock. They get nothing to keep: all that they are given is borrowed until
 * they return. What they answer must follow from what they are given alone, since answers are kept. They must not use
 * the model or the session that they are called for, nor leave by longjmp or by an exception.
 */
#ifndef RUNNEL_CUSTOM_H
#define RUNNEL_CUSTOM_H

#include <runnel/kernel.h>
#include <runnel/runnel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor as planning knows it. */
typedef struct rnl_tensor_desc {
    rnl_dtype dtype; /* RNL_DTYPE_NONE: an optional input that is not there */
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
    const void *host; /* contents, dense row-major, where they are known; may be unaligned: read them with memcpy */
} rnl_tensor_desc;

/* One node at known shapes. */
typedef struct rnl_custom_call {
    const struct rnl_node *node; /* for its attributes, below */
    const char *domain, *op_type, *name;
    int64_t version; /* of the domain, as the model imports it */
    const rnl_tensor_desc *inputs;
    size_t input_count, output_count; /* as the node has them */
    void *user;
} rnl_custom_call;

/* Attributes of the node. What is borrowed lives as long as the graph. */
typedef enum rnl_custom_attribute {
    RNL_CUSTOM_ABSENT,
    RNL_CUSTOM_FLOAT,
    RNL_CUSTOM_INT,
    RNL_CUSTOM_STRING,
    RNL_CUSTOM_TENSOR,
    RNL_CUSTOM_FLOATS,
    RNL_CUSTOM_INTS,
    RNL_CUSTOM_STRINGS
} rnl_custom_attribute;
RNL_API rnl_custom_attribute rnl_custom_attribute_type(const rnl_custom_call *call, const char *name);
/* The names of all that the node has, by 0, 1, …; NULL behind the last. */
RNL_API const char *rnl_custom_attribute_name(const rnl_custom_call *call, size_t index);
/* `absent` where the node has no such attribute of this type. */
RNL_API int64_t rnl_custom_int(const rnl_custom_call *call, const char *name, int64_t absent);
RNL_API float rnl_custom_float(const rnl_custom_call *call, const char *name, float absent);
RNL_API const char *rnl_custom_string(const rnl_custom_call *call, const char *name, const char *absent);
/* NULL and 0 where it has none. */
RNL_API const int64_t *rnl_custom_ints(const rnl_custom_call *call, const char *name, size_t *out_count);
RNL_API const float *rnl_custom_floats(const rnl_custom_call *call, const char *name, size_t *out_count);
RNL_API const char *const *rnl_custom_strings(const rnl_custom_call *call, const char *name, size_t *out_count);
/* False where it has none. */
RNL_API bool rnl_custom_tensor(const rnl_custom_call *call, const char *name, rnl_tensor_desc *out_tensor);

/* What a callback returns when it fails: `return rnl_custom_fail(RNL_INVALID_ARGUMENT, "axis %d is …", axis);` The
 * message gets lines that name the operator and the node. */
RNL_API rnl_status rnl_custom_fail(rnl_status status, const char *format, ...) RNL_PRINTF(2, 3);

/*
 * Writes type, rank and shape of each output, all of which are zeroed before; those that nobody reads too. Refused:
 * what runnel has no type for, more than RNL_MAX_RANK dimensions, negative or overflowing sizes, and sizes other than
 * those that the file declares for an output of the graph.
 */
typedef rnl_status (*rnl_custom_infer_fn)(const rnl_custom_call *call, rnl_tensor_desc *outputs);

/*
 * The kernel way: called once a plan (shapes and types) with the outputs that infer gave; adds one or more launches,
 * which run in this order. Not called where all outputs are empty.
 */
typedef struct rnl_custom_plan rnl_custom_plan;
typedef rnl_status (*rnl_custom_plan_fn)(const rnl_custom_call *call, const rnl_tensor_desc *outputs,
                                         rnl_custom_plan *plan);

/* A kernel's arguments, in its order. */
typedef enum rnl_custom_arg_kind {
    /* Two arguments of the kernel: a global pointer, and a `long`, the element of that buffer at which the tensor
     * begins; from there on it is dense and row-major. A NULL pointer for an optional input that is not there, also
     * for one behind the last that the node has, where `max_inputs` allows it. */
    RNL_CUSTOM_ARG_INPUT,
    RNL_CUSTOM_ARG_OUTPUT,
    RNL_CUSTOM_ARG_SCRATCH, /* likewise, of bytes: `long` counts bytes */
    RNL_CUSTOM_ARG_VALUE    /* one argument: a scalar or a vector of at most 128 bytes, copied */
} rnl_custom_arg_kind;
typedef struct rnl_custom_arg {
    rnl_custom_arg_kind kind;
    size_t index;      /* of the node's inputs or outputs, or rnl_custom_scratch's answer */
    const void *value; /* RNL_CUSTOM_ARG_VALUE */
    size_t size_bytes; /* likewise */
} rnl_custom_arg;

typedef struct rnl_custom_launch {
    size_t struct_size;
    const char *source;                /* OpenCL C; or … */
    const char *path;                  /* … a file of it */
    const char *kernel;                /* the entry point */
    const rnl_kernel_options *options; /* as rnl_kernel_create_with takes them; may be NULL */
    const rnl_custom_arg *args;
    size_t arg_count;
    /* `global` is rounded up to whole groups, so the kernel guards; 0 anywhere: no launch. `local` 0 in all dimensions:
     * a size that the kernel allows. */
    rnl_range range;
    uint64_t flops, bytes; /* for profiles; bytes 0: each tensor once */
} rnl_custom_launch;
#define RNL_CUSTOM_LAUNCH_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(rnl_custom_launch), NULL, NULL, NULL, NULL, NULL, 0, {1, {1, 1, 1}, {1, 1, 1}}, 0, 0                    \
    }
/*
 * For `plan` callbacks: builds the kernel, or takes it from the caches, checks the arguments against it where the
 * driver tells what it takes, and adds the launch. What it is given is copied. A failure ends the planning, whatever
 * the callback returns; a source that does not compile fails with the compiler's log.
 */
RNL_API RNL_NODISCARD rnl_status rnl_custom_add_launch(rnl_custom_plan *plan, const rnl_custom_launch *launch);
/* Device memory for this node alone, between its launches; undefined before. */
RNL_API RNL_NODISCARD rnl_status rnl_custom_scratch(rnl_custom_plan *plan, size_t size_bytes, size_t *out_index);
/* The device that is planned for. */
RNL_API const rnl_device_info *rnl_custom_device(const rnl_custom_plan *plan);

/*
 * The host's way: reads call->inputs[i].host, dense row-major, all of which are there, and writes results[i], memory
 * for outputs[i], likewise. The run waits for the device before it and goes on behind it. Called while planning
 * already where all inputs are small and known.
 */
typedef rnl_status (*rnl_custom_compute_fn)(const rnl_custom_call *call, const rnl_tensor_desc *outputs,
                                            void *const *results);

typedef struct rnl_custom_operator {
    size_t struct_size;
    const char *domain, *op_type; /* copied. Not "" or "ai.onnx", nor an operator that runnel has itself */
    int64_t since_version;        /* of the domain: each model gets the newest that is not newer than its import */
    uint32_t min_inputs, max_inputs, min_outputs, max_outputs; /* UINT32_MAX: any number */
    /* Bit i: infer, plan or compute need the contents of input i while planning. `host` is set for those then; where
     * only the device can compute them, the rest of the graph is planned once it has. */
    uint32_t contents;
    rnl_custom_infer_fn infer;
    rnl_custom_plan_fn plan;       /* this … */
    rnl_custom_compute_fn compute; /* … or this */
    void *user;                    /* given to the callbacks */
    void (*release)(void *user); /* called when the registry goes, by the thread that lets go of it last; may be NULL */
} rnl_custom_operator;
#define RNL_CUSTOM_OPERATOR_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(rnl_custom_operator), NULL, NULL, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, NULL, NULL                        \
    }

/* What graphs are loaded with: any number of them, on any devices. Each holds it. Any thread. */
typedef struct rnl_registry rnl_registry;
RNL_API RNL_NODISCARD rnl_status rnl_registry_create(rnl_registry **out_registry);
RNL_API rnl_registry *rnl_registry_retain(rnl_registry *registry);
/* NULL is legal. */
RNL_API void rnl_registry_release(rnl_registry *registry);
/*
 * Adds an operator, for graphs that are loaded afterwards. RNL_INVALID_ARGUMENT for one that cannot be or is there
 * already; `release` is not called then. Where a model defines the same operator as a function, that is what it gets.
 */
RNL_API RNL_NODISCARD rnl_status rnl_registry_add(rnl_registry *registry, const rnl_custom_operator *op);

/* As rnl_graph_load and rnl_graph_load_memory; `registry` may be NULL. */
RNL_API RNL_NODISCARD rnl_status rnl_graph_load_with(const char *path, rnl_registry *registry, rnl_graph **out_graph);
RNL_API RNL_NODISCARD rnl_status rnl_graph_load_memory_with(const void *data, size_t size_bytes, rnl_registry *registry,
                                                            rnl_graph **out_graph);

#ifdef __cplusplus
}
#endif
#endif
