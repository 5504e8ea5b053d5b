/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_BASE_STACK_H
#define RUNNEL_BASE_STACK_H

#include <stdbool.h>
#include <stddef.h>

/* So much is left of the calling thread's stack. False where that is not known, as on a stack of the program's own. */
bool rnl_stack_has(size_t bytes);

#endif
