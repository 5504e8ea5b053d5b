/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/directive.h"

#include <string.h>

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

/* The end of `word` and of the blanks behind it; NULL when something else stands there. */
static const char *skip_word(const char *at, const char *end, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(end - at) < length || memcmp(at, word, length) != 0)
        return NULL;
    return skip_blanks(at + length, end);
}

/* Behind the `#` of a directive; NULL when the line is none. */
static const char *find_directive(const char *line, const char *end)
{
    const char *at = skip_blanks(line, end);
    return at < end && *at == '#' ? skip_blanks(at + 1, end) : NULL;
}

static void read_include(const char *at, const char *end, rnl_directive *out)
{
    const char *close =
        at < end && (*at == '"' || *at == '<') ? memchr(at + 1, *at == '"' ? '"' : '>', (size_t)(end - at - 1)) : NULL;
    if (!close || close == at + 1 || (size_t)(close - at) > sizeof out->name)
        return;
    out->kind = RNL_DIRECTIVE_INCLUDE;
    out->quoted = *at == '"';
    memcpy(out->name, at + 1, (size_t)(close - at - 1));
    out->name[close - at - 1] = '\0';
}

static void read_directive(const char *line, const char *end, rnl_directive *out)
{
    const char *at = find_directive(line, end), *rest = at ? skip_word(at, end, "include") : NULL;
    if (rest) {
        read_include(rest, end, out);
        return;
    }
    rest = at ? skip_word(at, end, "pragma") : NULL;
    rest = rest ? skip_word(rest, end, "once") : NULL;
    if (rest && (rest == end || *rest == '\r' || *rest == '/'))
        out->kind = RNL_DIRECTIVE_ONCE;
}

/* The end of a string or character that opens at `at`; the line's end when it does not close. */
static const char *skip_string(const char *at, const char *end)
{
    const char quote = *at++;
    while (at < end && *at != quote)
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at + 1 : end;
}

/* Follows comments through a line. */
static void follow_comments(rnl_directive_reader *reader, const char *at, const char *end)
{
    while (at < end) {
        if (reader->in_comment) {
            const char *close = memmem(at, (size_t)(end - at), "*/", 2);
            reader->in_comment = !close;
            at = close ? close + 2 : end;
        } else if (*at == '"' || *at == '\'') {
            at = skip_string(at, end);
        } else if (*at == '/' && at + 1 < end && at[1] == '/') {
            reader->in_line_comment = true;
            return;
        } else if (*at == '/' && at + 1 < end && at[1] == '*') {
            reader->in_comment = true;
            at += 2;
        } else {
            at++;
        }
    }
}

void rnl_directive_read(rnl_directive_reader *reader, const char *line, size_t length, rnl_directive *out_directive)
{
    const char *end = line + length;
    out_directive->kind = RNL_DIRECTIVE_NONE;
    if (!reader->in_comment && !reader->continues)
        read_directive(line, end, out_directive);
    if (!reader->continues)
        reader->in_line_comment = false;
    if (!reader->in_line_comment)
        follow_comments(reader, line, end);
    if (end > line && end[-1] == '\r')
        end--;
    reader->continues = end > line && end[-1] == '\\';
}

/* ---- Where lines come from ---- */

static bool read_line_directive(const char *line, const char *end, const char **file, size_t *file_length,
                                unsigned *next_line)
{
    const char *at = find_directive(line, end), *rest = at ? skip_word(at, end, "line") : NULL;
    unsigned number = 0;
    if (!rest)
        return false;
    for (; rest < end && *rest >= '0' && *rest <= '9'; rest++)
        number = number * 10 + (unsigned)(*rest - '0');
    rest = skip_blanks(rest, end);
    const char *close = rest < end && *rest == '"' ? memchr(rest + 1, '"', (size_t)(end - rest - 1)) : NULL;
    if (close) { /* without a file it stays the same */
        *file = rest + 1;
        *file_length = (size_t)(close - rest - 1);
    }
    *next_line = number;
    return *file != NULL;
}

bool rnl_line_origin(const char *text, unsigned number, const char **out_file, size_t *out_file_length,
                     unsigned *out_line)
{
    bool known = false;
    unsigned at = 0;
    *out_file = NULL;
    *out_file_length = 0;
    *out_line = 0;
    for (unsigned line = 1; line < number && *text; line++) {
        const size_t length = strcspn(text, "\n");
        if (read_line_directive(text, text + length, out_file, out_file_length, &at))
            known = true;
        else
            at++;
        text += length;
        text += *text == '\n';
    }
    *out_line = at;
    return known;
}
