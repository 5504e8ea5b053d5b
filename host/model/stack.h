/* SPDX-License-Identifier: Apache-2.0 */
/* What the iterations of a Loop or Scan give, one behind the other along a new first axis. */
#ifndef RUNNEL_MODEL_STACK_H
#define RUNNEL_MODEL_STACK_H

#include "model/cell.h"

typedef struct rnl_stack {
    rnl_buffer *buffer; /* NULL while there is nothing in it */
    size_t room;        /* in parts */
    size_t count;       /* parts that are there */
    rnl_tensor_desc part;
} rnl_stack;

/* Adds a part of the same type and shape as those before; room for `expected` parts is made first (0: not known). */
RNL_NODISCARD rnl_status rnl_stack_add(rnl_stack *stack, rnl_session *session, rnl_cell *part, size_t expected);
/* All parts as one value; with `backwards`, the last one first. The stack is empty then. */
RNL_NODISCARD rnl_status rnl_stack_take(rnl_stack *stack, rnl_session *session, bool backwards, rnl_cell **out_cell);
void rnl_stack_free(rnl_stack *stack);

#endif
