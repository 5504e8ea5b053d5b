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
        last_use;         /* step indices; RNL_BEFORE_STEPS for what is uploaded; step_count: read at the end */
    uint32_t block;       /* of the arena */
    size_t offset_bytes;  /* in the arena's block, or in the weight's buffer */
    rnl_buffer *weight;   /* borrowed from the model */
    const void *constant; /* in the plan's zone */
} rnl_slot;

/* A value that is there before the steps, or that they make for whoever comes after. */
typedef struct rnl_plan_io {
    uint32_t value;       /* of the graph */
    rnl_tensor_desc desc; /* desc.host: an output known while planning (in the plan's zone) */
    uint32_t slot;        /* RNL_NO_SLOT: an input that no step reads, or an output known on the host */
    size_t offset_bytes;
    bool may_be_in_place; /* nothing else is to be in the slot, so that it may be the caller's memory instead */
} rnl_plan_io;

/* What a step does, for messages. */
typedef struct rnl_step_label {
    uint32_t node;    /* of the graph; RNL_NO_NODE at the edges */
    const char *also; /* " + Relu + Add": other nodes that it does as well, or "" */
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
    size_t program_count;
    size_t size_bytes; /* of host memory, for the cache's limit */
    size_t arena_bytes;
} rnl_plan;

/* What is to be planned: the graph from a node on, as far as shapes are known while planning. */
typedef struct rnl_plan_request {
    uint32_t first_node;
    const uint32_t *values;        /* that are there: for the first node 0, the graph's inputs */
    const rnl_tensor_desc *inputs; /* their descriptions; host is set where contents are part of the key */
    size_t input_count;
} rnl_plan_request;

RNL_NODISCARD rnl_status rnl_plan_create(struct rnl_model *model, const rnl_plan_request *request, rnl_plan **out_plan);
rnl_plan *rnl_plan_retain(rnl_plan *plan);
void rnl_plan_release(rnl_plan *plan);

/* Finds the inputs and outputs that may be in place. */
void rnl_plan_find_in_place(rnl_plan *plan);

/* Gives every arena and constant slot a block and an offset. */
RNL_NODISCARD rnl_status rnl_arena_assign(rnl_plan *plan, const rnl_device_info *device);

/* RUNNEL_ARENA=off: each value has a buffer of its own, so that checkers see writes past its end. */
bool rnl_arena_is_off(void);
/* Bytes behind each value that must keep their pattern then; 0 under oclgrind, which sees such writes itself. */
size_t rnl_arena_guard_bytes(const rnl_device_info *device);

#endif
