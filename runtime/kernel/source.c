/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/source.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INCLUDES 32
#define MAX_FILE_BYTES ((size_t)4 << 20)

/* The files that a text consists of so far. */
typedef struct splice {
    rnl_text *out;
    char *names[MAX_INCLUDES];
    size_t count;
} splice;

static rnl_status check_name(const char *name)
{
    if (!*name || *name == '.' || strchr(name, '/'))
        return FAIL(RNL_INVALID_ARGUMENT, "'%s' is not the name of a kernel file", name);
    return RNL_OK;
}

#define DECLARATIONS "builtins.clh" /* the one that this library was made with, wherever the others are */

/* The text of one file: *out_data borrowed, or owned by *out_owned. */
static rnl_status load_file(const char *name, const char **out_data, void **out_owned)
{
    const char *folder = getenv("RUNNEL_KERNEL_DIR");
    *out_owned = NULL;
    TRY(check_name(name));
    if (folder && *folder && strcmp(name, DECLARATIONS) != 0) {
        char path[4096];
        size_t size;
        int length = snprintf(path, sizeof path, "%s/%s", folder, name);
        if (length < 0 || (size_t)length >= sizeof path)
            return FAIL(RNL_INVALID_ARGUMENT, "RUNNEL_KERNEL_DIR is too long");
        TRY(rnl_file_read(path, MAX_FILE_BYTES, out_owned, &size));
        *out_data = *out_owned;
        return RNL_OK;
    }
    for (const rnl_embedded_file *file = rnl_embedded_files; file->name; file++)
        if (strcmp(file->name, name) == 0) {
            *out_data = file->data;
            return RNL_OK;
        }
    return FAIL(RNL_NOT_FOUND, "there is no kernel file '%s'", name);
}

/* True for `#include "name"`; the name goes to `out`. */
static bool is_include(const char *line, size_t length, char *out, size_t capacity)
{
    const char *end = line + length, *at = line;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    if (end - at < 8 || memcmp(at, "#include", 8) != 0)
        return false;
    at += 8;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    const char *close = at < end && *at == '"' ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
    if (!close || (size_t)(close - at) > capacity)
        return false;
    memcpy(out, at + 1, (size_t)(close - at - 1));
    out[close - at - 1] = '\0';
    return true;
}

static rnl_status splice_file(splice *job, const char *name);

/* Files that are there already are left out, and so is a file that includes itself. */
static rnl_status splice_include(splice *job, const char *name, const char *from, unsigned next_line)
{
    for (size_t i = 0; i < job->count; i++)
        if (strcmp(job->names[i], name) == 0) {
            rnl_text_add(job->out, "\n");
            return RNL_OK;
        }
    TRY(splice_file(job, name), "included by %s", from);
    rnl_text_add(job->out, "#line %u \"%s\"\n", next_line, from);
    return RNL_OK;
}

static rnl_status splice_lines(splice *job, const char *name, const char *text)
{
    char include[256];
    rnl_text_add(job->out, "#line 1 \"%s\"\n", name);
    for (unsigned line = 1; *text; line++) {
        size_t length = strcspn(text, "\n");
        if (is_include(text, length, include, sizeof include)) {
            TRY(splice_include(job, include, name, line + 1));
        } else {
            rnl_text_add_bytes(job->out, text, length);
            rnl_text_add_bytes(job->out, "\n", 1);
        }
        text += length;
        text += *text == '\n';
    }
    return job->out->status;
}

static rnl_status splice_file(splice *job, const char *name)
{
    const char *data;
    void *owned;
    if (job->count == MAX_INCLUDES)
        return FAIL(RNL_INVALID_ARGUMENT, "more than %d kernel files include one another", MAX_INCLUDES);
    TRY(load_file(name, &data, &owned));
    char *copy = NULL;
    rnl_status status = rnl_strdup(name, &copy);
    if (status == RNL_OK) {
        job->names[job->count++] = copy;
        status = splice_lines(job, name, data);
    }
    rnl_free(owned);
    return status;
}

static rnl_status get(const char *file, bool declared, rnl_text *out_text)
{
    splice job = {.out = out_text};
    *out_text = (rnl_text){0};
    rnl_status status = declared ? splice_file(&job, DECLARATIONS) : RNL_OK;
    if (status == RNL_OK)
        status = splice_file(&job, file);
    for (size_t i = 0; i < job.count; i++)
        rnl_free(job.names[i]);
    if (status != RNL_OK)
        rnl_text_free(out_text);
    return status;
}

rnl_status rnl_source_get(const char *file, rnl_text *out_text)
{
    return get(file, false, out_text);
}

rnl_status rnl_source_get_declared(const char *file, rnl_text *out_text)
{
    return get(file, true, out_text);
}
