/* SPDX-License-Identifier: Apache-2.0 */
/* The four error macros and the thread's error record. No OpenCL here. */
#ifndef RUNNEL_BASE_STATUS_H
#define RUNNEL_BASE_STATUS_H

#include <runnel/rt.h>

/* Starts a new record with this root cause; returns `status`. */
RNL_API rnl_status rnl_error_set(rnl_status status, int32_t native_code, const char *format, ...) RNL_PRINTF(3, 4);
/* Adds a line to the current record; returns `status` unchanged. An empty format adds nothing. */
RNL_API rnl_status rnl_error_add(rnl_status status, const char *format, ...) RNL_PRINTF(2, 3);
/* The failure was a function's of the caller's, unless the record has a code of the driver's; returns `status`. */
RNL_API rnl_status rnl_error_blame_caller(rnl_status status);
/* Makes a copied record this thread's; returns its status. For failures that cross threads. */
RNL_API rnl_status rnl_error_restore(const rnl_error *error);

/* FAIL makes a failure: return FAIL(RNL_NOT_FOUND, "no input '%s'", name); */
#define FAIL(status, ...) rnl_error_set((status), 0, __VA_ARGS__)

/* TRY returns early; only where nothing is owned yet. Further arguments add a line: TRY(f(x), "loading %s", path); */
#define TRY(...)                                                                                                       \
    RNL_TRY_PICK(__VA_ARGS__, RNL_TRY_N, RNL_TRY_N, RNL_TRY_N, RNL_TRY_N, RNL_TRY_N, RNL_TRY_N, RNL_TRY_N, RNL_TRY_1,  \
                 0)                                                                                                    \
    (__VA_ARGS__)
#define RNL_TRY_PICK(a, b, c, d, e, f, g, h, name, ...) name
#define RNL_TRY_1(expression)                                                                                          \
    do {                                                                                                               \
        rnl_status try_status_ = (expression);                                                                         \
        if (try_status_ != RNL_OK)                                                                                     \
            return try_status_;                                                                                        \
    } while (0)
#define RNL_TRY_N(expression, ...)                                                                                     \
    do {                                                                                                               \
        rnl_status try_status_ = (expression);                                                                         \
        if (try_status_ != RNL_OK)                                                                                     \
            return rnl_error_add(try_status_, __VA_ARGS__);                                                            \
    } while (0)

/*
 * GOTO sets the local variable `status` and jumps to the single label `done` of a function whose resources start as
 * NULL: rnl_status status = RNL_OK; … GOTO(f(x)); … done: release(…); return status;
 */
#define GOTO(...)                                                                                                      \
    RNL_TRY_PICK(__VA_ARGS__, RNL_GOTO_N, RNL_GOTO_N, RNL_GOTO_N, RNL_GOTO_N, RNL_GOTO_N, RNL_GOTO_N, RNL_GOTO_N,      \
                 RNL_GOTO_1, 0)                                                                                        \
    (__VA_ARGS__)
#define RNL_GOTO_1(expression)                                                                                         \
    do {                                                                                                               \
        status = (expression);                                                                                         \
        if (status != RNL_OK)                                                                                          \
            goto done;                                                                                                 \
    } while (0)
#define RNL_GOTO_N(expression, ...)                                                                                    \
    do {                                                                                                               \
        status = (expression);                                                                                         \
        if (status != RNL_OK) {                                                                                        \
            status = rnl_error_add(status, __VA_ARGS__);                                                               \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

/* The fourth macro, CL, which turns a cl_int into a status, is in device/cl_status.h. */

#endif
