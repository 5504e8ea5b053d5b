/* SPDX-License-Identifier: Apache-2.0 */
/* Naming a traced session's steps: by node and kernel, with shapes and work. */
#ifndef RUNNEL_MODEL_TRACE_H
#define RUNNEL_MODEL_TRACE_H

#include "model/session.h"

/* A stream for the session, of the kind that it has. */
RNL_NODISCARD rnl_status rnl_session_make_stream(rnl_session *session, rnl_stream **out_stream);
/* What its track is called, instead of "session 1". Before it is traced. */
void rnl_session_name_track(rnl_session *session, const char *format, ...) RNL_PRINTF(2, 3);
/*
 * For who has sessions run by turns: the next run is recorded there; NULL: it is not. The session asks no trace whose
 * turn it is from now on. Where the track cannot be made, the run is not recorded.
 */
void rnl_session_record(rnl_session *session, rnl_trace *trace);
/* Between runs: takes the stream that the next one is to have. */
void rnl_session_choose_stream(rnl_session *session);
/* After a run of a session with a trace. One that planned says nothing of what recording costs. */
void rnl_session_note_run(rnl_session *session, rnl_status status, uint64_t start_ns, bool has_planned);
/* Before the steps of the bound plan, and before each of them. Nothing where the session is not traced. */
void rnl_session_name_steps(rnl_session *session);
void rnl_session_name_step(rnl_session *session, size_t step);

#endif
