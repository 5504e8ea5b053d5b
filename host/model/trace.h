/* SPDX-License-Identifier: Apache-2.0 */
/* Naming a traced session's steps: by node and kernel, with shapes and work. */
#ifndef RUNNEL_MODEL_TRACE_H
#define RUNNEL_MODEL_TRACE_H

#include "model/session.h"

/* A stream for the session, traced where it is to be. */
RNL_NODISCARD rnl_status rnl_session_make_stream(rnl_session *session, rnl_stream **out_stream);
/* Before the steps of the bound plan, and before each of them. Nothing where the session is not traced. */
void rnl_session_name_steps(rnl_session *session);
void rnl_session_name_step(rnl_session *session, size_t step);

#endif
