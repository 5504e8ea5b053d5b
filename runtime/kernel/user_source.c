/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/user_source.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernel/directive.h"
#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEPTH 32
#define MAX_FILE_BYTES ((size_t)4 << 20)
#define MAX_TOTAL_BYTES ((size_t)16 << 20)

/* ---- Defines ---- */

static bool is_identifier(const char *text, size_t length)
{
    if (length == 0 || isdigit((unsigned char)text[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    return true;
}

static rnl_status add_define(rnl_user_source *source, const char *define)
{
    if (!define)
        return FAIL(RNL_INVALID_ARGUMENT, "a define is NULL");
    size_t name_length = strcspn(define, "=");
    const char *value = define[name_length] ? define + name_length + 1 : "1";
    if (!is_identifier(define, name_length))
        return FAIL(RNL_INVALID_ARGUMENT, "the define '%s' does not start with a name", define);
    size_t length = strlen(value);
    if (strpbrk(value, "\n\r") || (length > 0 && value[length - 1] == '\\'))
        return FAIL(RNL_INVALID_ARGUMENT, "the value of the define '%.*s' has more than one line", (int)name_length,
                    define);
    rnl_text_add(&source->text, "#define %.*s %s\n", (int)name_length, define, value);
    rnl_text_add(&source->title, " -D%s", define);
    return source->text.status;
}

/* ---- Files ---- */

typedef struct splice {
    rnl_user_source *source;
    const rnl_kernel_options *options;
    const char *open[MAX_DEPTH]; /* the paths of the files that are being read; NULL for text */
    size_t depth;
} splice;

/* What would end the string is left out: it is for messages. */
static void add_line_directive(rnl_text *out, unsigned line, const char *file)
{
    rnl_text_add(out, "#line %u \"", line);
    for (; *file; file++)
        if ((unsigned char)*file >= ' ' && !strchr("\"\\\x7f", *file))
            rnl_text_add_bytes(out, file, 1);
        else
            rnl_text_add_bytes(out, "?", 1);
    rnl_text_add(out, "\"\n");
}

static bool join(const char *folder, size_t folder_length, const char *name, rnl_text *out_path)
{
    rnl_text_add(out_path, "%.*s%s%s", (int)folder_length, folder,
                 folder_length > 0 && folder[folder_length - 1] != '/' ? "/" : "", name);
    if (out_path->status == RNL_OK && access(out_path->data, F_OK) == 0)
        return true;
    out_path->length = 0;
    return false;
}

/* Where an included file is; false when it is nowhere. */
static bool find_file(const splice *job, const rnl_directive *include, rnl_text *out_path)
{
    const char *from = job->open[job->depth - 1];
    if (include->name[0] == '/')
        return join("", 0, include->name, out_path);
    if (from && include->quoted) {
        const char *slash = strrchr(from, '/');
        if (join(from, slash ? (size_t)(slash - from) + 1 : 0, include->name, out_path))
            return true;
    }
    for (size_t i = 0; i < job->options->include_folder_count && out_path->status == RNL_OK; i++) {
        const char *folder = job->options->include_folders[i];
        if (folder && join(folder, strlen(folder), include->name, out_path))
            return true;
    }
    return false;
}

static bool is_open(const splice *job, const char *path)
{
    for (size_t i = 0; i < job->depth; i++)
        if (job->open[i] && strcmp(job->open[i], path) == 0)
            return true;
    return false;
}

static rnl_status splice_file(splice *job, const char *path);

/* A file that includes itself, if only round a corner, has a guard against it, which leaves nothing of it there. */
static rnl_status splice_include(splice *job, const rnl_directive *include, bool *out_done)
{
    rnl_text path = {0};
    rnl_status status = RNL_OK;
    *out_done = find_file(job, include, &path);
    GOTO(path.status);
    if (*out_done && !is_open(job, path.data))
        GOTO(splice_file(job, path.data));
    if (!*out_done)
        job->source->untracked = true; /* it stays as it is: the compiler knows it, or says where it is missing */
done:
    rnl_text_free(&path);
    return status;
}

/* Since the file is not the compiler's main file any more, `#pragma once` becomes a guard, which ends with the file. */
static void add_guard(rnl_text *out, const char *path)
{
    rnl_hash hash = rnl_hash_bytes(path, strlen(path));
    rnl_text_add(out, "#ifndef RNL_ONCE_%016" PRIx64 "\n#define RNL_ONCE_%016" PRIx64 "\n", hash.low, hash.low);
}

static rnl_status splice_lines(splice *job, const char *name, const char *text)
{
    rnl_text *out = &job->source->text;
    const char *path = job->open[job->depth - 1];
    rnl_directive_reader reader = {0};
    bool guarded = false;
    add_line_directive(out, 1, name);
    for (unsigned line = 1; *text; line++) {
        const size_t length = strcspn(text, "\n");
        rnl_directive found;
        bool done = false;
        rnl_directive_read(&reader, text, length, &found);
        if (found.kind == RNL_DIRECTIVE_INCLUDE)
            TRY(splice_include(job, &found, &done), "included by %s, line %u", name, line);
        if (found.kind == RNL_DIRECTIVE_ONCE) {
            done = true;
            if (path && !guarded && job->depth > 1) {
                guarded = true;
                add_guard(out, path);
            }
        }
        if (done) {
            add_line_directive(out, line + 1, name);
        } else {
            rnl_text_add_bytes(out, text, length);
            rnl_text_add_bytes(out, "\n", 1);
        }
        text += length;
        text += *text == '\n';
        TRY(out->status);
        if (out->length > MAX_TOTAL_BYTES)
            return FAIL(RNL_INVALID_ARGUMENT, "%s and the files that it includes have more than %zu MiB", name,
                        MAX_TOTAL_BYTES >> 20);
    }
    if (guarded)
        rnl_text_add(out, "#endif\n");
    return out->status;
}

static rnl_status splice_file(splice *job, const char *path)
{
    char *data;
    size_t size;
    if (job->depth == MAX_DEPTH)
        return FAIL(RNL_INVALID_ARGUMENT, "%s is included by a file that is included, and so on, %d times", path,
                    MAX_DEPTH);
    TRY(rnl_file_read(path, MAX_FILE_BYTES, (void **)&data, &size));
    rnl_status status = RNL_OK;
    if (memchr(data, '\0', size))
        GOTO(FAIL(RNL_INVALID_ARGUMENT, "%s is no text: it has a byte of 0", path));
    job->open[job->depth++] = path;
    const bool marked = strncmp(data, "\xef\xbb\xbf", 3) == 0; /* compilers take that mark at the start alone */
    GOTO(splice_lines(job, path, data + (marked ? 3 : 0)));
    job->depth--;
done:
    rnl_free(data);
    return status;
}

static rnl_status splice_text(splice *job, const char *source, const char *name)
{
    job->open[job->depth++] = NULL;
    return splice_lines(job, name, source);
}

rnl_status rnl_user_source_make(const char *source, const char *path, const rnl_kernel_options *options,
                                rnl_user_source *out_source)
{
    const char *name = path ? path : options->source_name ? options->source_name : "(source)";
    splice job = {.source = out_source, .options = options};
    rnl_status status = RNL_OK;
    *out_source = (rnl_user_source){0};
    rnl_text_add(&out_source->title, "%s", name);
    if (options->define_count > 0)
        add_line_directive(&out_source->text, 1, "(defines)");
    for (size_t i = 0; i < options->define_count; i++)
        GOTO(add_define(out_source, options->defines[i]));
    GOTO(path ? splice_file(&job, path) : splice_text(&job, source, name));
    if (options->build_options && options->build_options[0])
        rnl_text_add(&out_source->title, " %s", options->build_options);
    GOTO(out_source->title.status);
done:
    if (status != RNL_OK)
        rnl_user_source_free(out_source);
    return status;
}

void rnl_user_source_free(rnl_user_source *source)
{
    rnl_text_free(&source->text);
    rnl_text_free(&source->title);
}
