/* SPDX-License-Identifier: Apache-2.0 */
/* x86's matrix tiles (AMX), which a process asks the system for before it uses them. Internal to the families. */
#ifndef RUNNEL_OPS_AMX_H
#define RUNNEL_OPS_AMX_H

#include <stdbool.h>

/* The processor has them, for bytes or for bfloat16, and Linux lets all threads of this process use them. Any thread.
 */
bool rnl_amx_request(bool bytes);
/* Of RUNNEL_AMX, read anew each time: "off"; "on", wherever they apply; "model", in plain C. */
bool rnl_amx_wish_is(const char *what);

#endif
