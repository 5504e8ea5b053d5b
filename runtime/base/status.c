/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include "base/verbose.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Room kept for the line that counts what was left out, and for lines that frames add to a long root cause. */
#define TAIL_BYTES 40
#define ROOT_BYTES (RNL_ERROR_MESSAGE_BYTES * 3 / 4)

static _Thread_local rnl_error last_error;

const rnl_error *rnl_last_error(void)
{
    return &last_error;
}

const char *rnl_status_name(rnl_status status)
{
    static const char *const names[] = {
#define X(name, exit_code, http_code, sentence) #name,
        RNL_STATUS_LIST(X)
#undef X
    };
    return (unsigned)status < RNL_STATUS_COUNT ? names[status] : "UNKNOWN";
}

/* Does not leave half of a UTF-8 character at the end. */
static size_t whole_characters(const char *text, size_t length)
{
    size_t end = length;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    return end;
}

/* Formats into `text`; text that does not fit ends in "…". Returns its length. The arguments may point into the record:
 * that is why nothing is formatted in place. */
static size_t format_text(char *text, size_t capacity, const char *format, va_list args)
{
    int length = vsnprintf(text, capacity, format, args);
    if (length < 0)
        length = 0;
    if ((size_t)length < capacity)
        return (size_t)length;
    size_t end = whole_characters(text, capacity - sizeof "…");
    memcpy(text + end, "…", sizeof "…");
    return end + sizeof "…" - 1;
}

rnl_status rnl_error_set(rnl_status status, int32_t native_code, const char *format, ...)
{
    char text[ROOT_BYTES];
    va_list args;
    va_start(args, format);
    size_t length = format_text(text, sizeof text, format, args);
    va_end(args);
    last_error.status = status;
    last_error.native_code = native_code;
    last_error.length = (uint32_t)length;
    last_error.lines_left_out = 0;
    last_error.is_callers = false;
    memcpy(last_error.message, text, length + 1);
    if (rnl_verbose_is_on(RNL_VERBOSE_ERROR))
        rnl_verbose_write(&(rnl_verbose_event){RNL_VERBOSE_ERROR, NULL, rnl_status_name(status), NULL, text, -1});
    return status;
}

/* The record's length without the line that counts what was left out. */
static size_t length_without_tail(const rnl_error *error)
{
    if (error->lines_left_out == 0)
        return error->length;
    size_t length = error->length;
    while (length > 0 && error->message[length - 1] != '\n')
        length--;
    return length > 0 ? length - 1 : 0;
}

static void leave_out_line(rnl_error *error)
{
    size_t length = length_without_tail(error);
    error->lines_left_out++;
    int tail = snprintf(error->message + length, sizeof error->message - length, "\n… and %u more",
                        (unsigned)error->lines_left_out);
    error->length = (uint32_t)(length + (size_t)tail);
}

rnl_status rnl_error_add(rnl_status status, const char *format, ...)
{
    char text[RNL_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    size_t length = format_text(text, sizeof text, format, args);
    va_end(args);
    if (length == 0)
        return status;
    rnl_error *error = &last_error;
    if (error->lines_left_out > 0 || error->length + 1 + length > sizeof error->message - TAIL_BYTES) {
        leave_out_line(error);
        return status;
    }
    error->message[error->length++] = '\n';
    memcpy(error->message + error->length, text, length + 1);
    error->length += (uint32_t)length;
    return status;
}

rnl_status rnl_error_blame_caller(rnl_status status)
{
    last_error.is_callers = last_error.native_code == 0;
    return status;
}

rnl_status rnl_error_restore(const rnl_error *error)
{
    if (error != &last_error)
        last_error = *error;
    return error->status;
}
