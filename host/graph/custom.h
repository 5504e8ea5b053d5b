/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the caller's: rows that a registry has, and calls of what is the caller's. */
#ifndef RUNNEL_GRAPH_CUSTOM_H
#define RUNNEL_GRAPH_CUSTOM_H

#include "graph/op.h"

#include <pthread.h>

typedef struct rnl_custom_entry {
    rnl_op_schema schema; /* names this entry as its `custom` */
    struct rnl_custom_entry *next;
    rnl_registry *registry; /* that it is in */
    rnl_custom_operator op; /* its texts are the entry's */
    char *domain, *op_type;
    char *name;           /* "com.example.Scale": what nodes are called, so that none is taken for another's operator */
    char *implementation; /* "custom:com.example.Scale" */
} rnl_custom_entry;

/* NULL where there is none; so for a registry that is NULL. */
const rnl_op_schema *rnl_registry_find(rnl_registry *registry, const char *domain, const char *op_type, int64_t opset);
/* The same text, as long as the registry lives. */
RNL_NODISCARD rnl_status rnl_registry_keep(rnl_registry *registry, const char *text, const char **out_text);

/* The schema's functions. */
RNL_NODISCARD rnl_status rnl_custom_infer(rnl_op_context *context);
RNL_NODISCARD rnl_status rnl_custom_compute(rnl_op_context *context);
/* Against what the file declares for outputs of the graph. */
RNL_NODISCARD rnl_status rnl_custom_check_declared(const rnl_graph *graph, const rnl_op_context *context);
rnl_custom_call rnl_custom_describe(const rnl_op_context *context);

/* ---- Around each call of a callback, by the thread that makes it ---- */

typedef struct rnl_custom_frame {
    struct rnl_custom_frame *outer;         /* a callback may run another model */
    struct rnl_custom_frame *newer, *older; /* of all threads */
    pthread_t thread;
    const rnl_custom_entry *entry;
    const char *callback;
    bool has_reason; /* the thread's error is the callback's */
    size_t length;
    char place[256]; /* what a signal's message says */
} rnl_custom_frame;

void rnl_custom_enter(rnl_custom_frame *frame, const rnl_op_context *context, const char *callback);
/* What the callback returned becomes a failure that names it. */
RNL_NODISCARD rnl_status rnl_custom_leave(rnl_custom_frame *frame, rnl_status status);
/* Marks the thread's error as the reason for which the callback fails. */
rnl_status rnl_custom_reason(rnl_status status);

/* Between them, signals that arise in the thread name the frame on the standard error: the innermost of several. */
void rnl_custom_watch_signals(rnl_custom_frame *frame);
void rnl_custom_unwatch_signals(rnl_custom_frame *frame);

#endif
