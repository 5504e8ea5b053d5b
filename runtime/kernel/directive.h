/* SPDX-License-Identifier: Apache-2.0 */
/* The directives of a C source that name other files, and those that say where a line comes from. */
#ifndef RUNNEL_KERNEL_DIRECTIVE_H
#define RUNNEL_KERNEL_DIRECTIVE_H

#include <runnel/rt.h>

typedef enum rnl_directive_kind {
    RNL_DIRECTIVE_NONE, /* any other line */
    RNL_DIRECTIVE_INCLUDE,
    RNL_DIRECTIVE_ONCE /* #pragma once */
} rnl_directive_kind;

typedef struct rnl_directive {
    rnl_directive_kind kind;
    bool quoted;    /* "name", not <name> */
    char name[512]; /* of an include; longer ones are no includes */
} rnl_directive;

/* What lines before a line mean for it. */
typedef struct rnl_directive_reader {
    bool in_comment;      /* a block comment is open */
    bool continues;       /* the last line ended in a backslash */
    bool in_line_comment; /* and began a comment */
} rnl_directive_reader;

/* Reads the next line of a text, without its line break. */
void rnl_directive_read(rnl_directive_reader *reader, const char *line, size_t length, rnl_directive *out_directive);

/* What stands in line `number` (from 1) of `text`, by its #line directives: a file, borrowed from `text` and not
 * terminated, and a line of it. False before the first of them. */
bool rnl_line_origin(const char *text, unsigned number, const char **out_file, size_t *out_file_length,
                     unsigned *out_line);

#endif
