/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: what one model does for one set of input shapes. Steps name memory by slot; slots are arena offsets, weights
 * or constants. A plan has no memory on the device and no kernel objects, so any number of sessions run it at once.
 */
#ifndef RUNNEL_MODEL_PLAN_H
#define RUNNEL_MODEL_PLAN_H

#include "graph/op.h"
#include "ops/op.h"

struct rnl_model;

typedef enum rnl_slot_kind {
    RNL_SLOT_ARENA,    /* scratch of the session, shared over time */
    RNL_SLOT_WEIGHT,   /* the model's */
    RNL_SLOT_CONSTANT, /* arena memory that keeps the plan's bytes for the whole run */
    RNL_SLOT_RANDOM    /* the same, of what the run's random numbers start from: an rnl_random_state */
} rnl_slot_kind;

#define RNL_BEFORE_STEPS (-1)

typedef struct rnl_slot {
    rnl_slot_kind kind;
    size_t size_bytes;
    int64_t first_write,
        last_use;        /* step indices; RNL_BEFORE_STEPS for what is uploaded; step_count: read at the end */
    uint32_t block;      /* of the arena */
    size_t offset_bytes; /* in the arena's block, or in the weight's buffer */
    rnl_buffer *weight;  /* borrowed from the model; NULL: it is in host memory, and reaches the session's ring */
    const void *host;    /* there; else NULL */
    uint32_t item, element_bytes; /* of such a weight: which one of the model's, and its type's size */
    const void *constant;         /* in the plan's zone */
} rnl_slot;

/* A value that is there before the steps, or that they make for whoever comes after. */
typedef struct rnl_plan_io {
    uint32_t value;       /* of the graph */
    rnl_tensor_desc desc; /* desc.host: an output known while planning (in the plan's zone) */
    uint32_t slot;        /* RNL_NO_SLOT: an input that no step reads, or an output known on the host */
    size_t offset_bytes;
    bool may_be_in_place; /* nothing else is to be in the slot, so that it may be the caller's memory instead */
} rnl_plan_io;

/* RUNNEL_CHECK_NAN: see nan.h. */
typedef enum rnl_nan_mode { RNL_NAN_OFF, RNL_NAN_ONLY, RNL_NAN_AND_INF } rnl_nan_mode;
struct rnl_nan_check;

/* What a step does, for messages. */
typedef struct rnl_step_label {
    uint32_t node;      /* of the graph; RNL_NO_NODE at the edges */
    const char *also;   /* " + Relu + Add": other nodes that it does as well, or "" */
    const char *shapes; /* "1x3x224x224, 32x3x3x3 -> 1x32x112x112", or "" */
} rnl_step_label;

typedef struct rnl_plan {
    atomic_uint references;
    rnl_zone zone;
    rnl_step_list steps;
    rnl_step_label *step_labels;
    size_t step_label_capacity;
    rnl_slot *slots;
    size_t slot_count, slot_capacity;
    size_t *block_bytes;
    size_t block_count;
    rnl_plan_io *inputs, *outputs;
    size_t input_count, output_count;
    const struct rnl_model *model;    /* borrowed: whoever has the plan has the model */
    uint32_t random_slot, draw_count; /* RNL_NO_SLOT; steps that draw random numbers */
    uint32_t first_node, end_node;    /* of the graph, the end not included */
    bool is_whole;                    /* its outputs are the graph's, in their order */
    rnl_program **programs;           /* distinct */
    struct rnl_ring_plan *ring;       /* ring.h; NULL: weights stay on the device */
    size_t program_count;
    size_t size_bytes; /* of host memory, for the cache's limit */
    size_t arena_bytes;
    struct rnl_nan_check *nan_checks; /* in the order of the steps; none unless they are wanted */
    size_t nan_check_count, nan_check_capacity;
    uint32_t *nan_sources;
    size_t nan_source_count, nan_source_capacity;
} rnl_plan;

/* What is to be planned: the graph from a node on, as far as shapes are known while planning. */
typedef struct rnl_plan_request {
    uint32_t first_node;
    const uint32_t *values;        /* that are there: for the first node 0, the graph's inputs */
    const rnl_tensor_desc *inputs; /* their descriptions; host is set where contents are part of the key */
    size_t input_count;
} rnl_plan_request;

RNL_NODISCARD rnl_status rnl_plan_create(struct rnl_model *model, const rnl_plan_request *request, rnl_plan **out_plan);
/* … and has somebody look at what only planning knows, while it is there. */
struct rnl_planner;
typedef rnl_status (*rnl_plan_note_fn)(void *user, const struct rnl_planner *planner);
RNL_NODISCARD rnl_status rnl_plan_create_noted(struct rnl_model *model, const rnl_plan_request *request,
                                               rnl_plan_note_fn note, void *user, rnl_plan **out_plan);
rnl_plan *rnl_plan_retain(rnl_plan *plan);
void rnl_plan_release(rnl_plan *plan);

/* Finds the inputs and outputs that may be in place. */
void rnl_plan_find_in_place(rnl_plan *plan);

/* Gives every arena and constant slot a block and an offset. */
RNL_NODISCARD rnl_status rnl_arena_assign(rnl_plan *plan, const rnl_device_info *device);

/* RUNNEL_ARENA=off or RUNNEL_GUARD=1: each value has a buffer of its own, so that checkers see writes past its end. */
bool rnl_arena_is_off(void);
/* Bytes behind each value that must keep their pattern then; 0 under oclgrind, which sees such writes itself, and where
 * every buffer has a guard. */
size_t rnl_arena_guard_bytes(const rnl_device_info *device);

#endif
