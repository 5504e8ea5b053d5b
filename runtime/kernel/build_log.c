/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/build_log.h"

#include "base/memory.h"
#include "kernel/directive.h"
#include <ctype.h>
#include <string.h>

/* The part of a log that goes into a message: what stands around it fits too. */
#define ROOM_BYTES 2500

/* ---- Places ---- */

/* A place at the start of a line: "name:12:" and what follows. */
typedef struct place {
    const char *name, *rest; /* `rest` begins with the colon behind the line's number */
    size_t name_length;
    unsigned line;
} place;

static bool read_place(const char *text, size_t length, place *out)
{
    const char *end = text + length;
    for (const char *at = text; at < end; at++) {
        if (*at != ':' || at + 1 >= end || !isdigit((unsigned char)at[1]))
            continue;
        unsigned line = 0;
        const char *digit = at + 1;
        for (; digit < end && isdigit((unsigned char)*digit) && line < 100000000u; digit++)
            line = line * 10 + (unsigned)(*digit - '0');
        if (digit < end && *digit == ':') {
            *out = (place){text, digit, (size_t)(at - text), line};
            return true;
        }
    }
    return false;
}

static bool name_is(const char *name, size_t length, const char *expected)
{
    return length == strlen(expected) && memcmp(name, expected, length) == 0;
}

static bool is_number(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isdigit((unsigned char)name[i]))
            return false;
    return true;
}

/* What drivers call the text that they were given: Clang's and NVIDIA's names, pocl's file, Intel's number. */
static bool is_drivers_name(const char *name, size_t length)
{
    const char *slash = memrchr(name, '/', length);
    const char *base = slash ? slash + 1 : name;
    const size_t base_length = length - (size_t)(base - name);
    return name_is(base, base_length, "input.cl") || name_is(base, base_length, "<stdin>") ||
           name_is(base, base_length, "<kernel>") || name_is(base, base_length, "<source>") ||
           (base_length > 9 && memcmp(base, "tempfile_", 9) == 0) || is_number(base, base_length);
}

static bool is_marker(const char *text, size_t length, const char *marker, size_t *out_length)
{
    *out_length = strlen(marker);
    return length > *out_length && memcmp(text, marker, *out_length) == 0;
}

/* pocl puts the kind of a message before its place. */
static size_t marker_length(const char *text, size_t length)
{
    size_t marker;
    if (is_marker(text, length, "error: ", &marker) || is_marker(text, length, "warning: ", &marker) ||
        is_marker(text, length, "note: ", &marker))
        return marker;
    return 0;
}

static void translate_line(const char *text, size_t length, const char *source, rnl_text *out)
{
    const size_t marker = marker_length(text, length);
    const char *file;
    size_t file_length;
    unsigned line;
    place found;
    if (read_place(text + marker, length - marker, &found) && is_drivers_name(found.name, found.name_length) &&
        rnl_line_origin(source, found.line, &file, &file_length, &line)) {
        rnl_text_add(out, "%.*s%.*s:%u", (int)marker, text, (int)file_length, file, line);
        length -= (size_t)(found.rest - text);
        text = found.rest;
    }
    rnl_text_add_bytes(out, text, length);
}

rnl_status rnl_build_log_translate(const char *log, const char *source, rnl_text *out_log)
{
    size_t end = strlen(log);
    while (end > 0 && strchr(" \n\r", log[end - 1]))
        end--;
    rnl_text_add(out_log, "%s", "");
    for (size_t at = 0; at < end && out_log->status == RNL_OK;) {
        size_t length = strcspn(log + at, "\n");
        if (length > end - at)
            length = end - at;
        translate_line(log + at, length, source, out_log);
        at += length + 1;
        if (at < end)
            rnl_text_add(out_log, "\n");
    }
    return out_log->status;
}

rnl_status rnl_build_log_get(const rnl_device *device, cl_program program, const char *source, rnl_text *out_log)
{
    size_t bytes = 0;
    char *log;
    TRY(CL(clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes)));
    TRY(rnl_alloc(bytes + 1, 1, &log));
    rnl_status status = CL(clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL));
    if (status == RNL_OK)
        status = rnl_build_log_translate(log, source, out_log);
    rnl_free(log);
    return status;
}

/* ---- Messages ---- */

/* The first line that tells of an error; the first of all when none does. */
static const char *first_error(const char *log)
{
    const char *found = strcasestr(log, "error:");
    if (!found)
        found = strcasestr(log, "error");
    while (found && found > log && found[-1] != '\n')
        found--;
    return found ? found : log;
}

static unsigned count_lines(const char *from, const char *to)
{
    unsigned lines = 0;
    for (; from < to; from++)
        lines += *from == '\n';
    return lines;
}

/* The bytes of the whole lines of `text` that there is room for: at least a part of the first. */
static size_t fitting_bytes(const char *text)
{
    size_t length = strlen(text);
    if (length <= ROOM_BYTES)
        return length;
    const char *end = memrchr(text, '\n', ROOM_BYTES);
    return end ? (size_t)(end - text) : ROOM_BYTES;
}

rnl_status rnl_build_log_fail(const rnl_device *device, cl_int code, const char *options, const char *log)
{
    const char *device_name = device->info.name;
    if (code == CL_INVALID_BUILD_OPTIONS)
        return rnl_error_set(RNL_INVALID_ARGUMENT, code, "the OpenCL compiler of %s refuses the options \"%s\"%s%.*s",
                             device_name, options, log[0] ? ":\n" : "", ROOM_BYTES, log);
    if (!log[0])
        return rnl_error_set(RNL_INVALID_ARGUMENT, code,
                             "the OpenCL compiler of %s refuses the source:\n(it does not say why)", device_name);
    const char *start = strlen(log) > ROOM_BYTES ? first_error(log) : log;
    const size_t shown = fitting_bytes(start);
    const unsigned before = count_lines(log, start), behind = count_lines(start + shown, strchr(start, '\0'));
    rnl_status status = rnl_error_set(RNL_INVALID_ARGUMENT, code, "the OpenCL compiler of %s refuses the source:\n%.*s",
                                      device_name, (int)shown, start);
    if (before + behind > 0)
        rnl_error_add(status, "… %u lines before this and %u behind it: the log of rnl_kernel_options has all", before,
                      behind);
    return status;
}
