/* SPDX-License-Identifier: Apache-2.0 */
#include "base/verbose.h"

#include "base/clock.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARKER "runnel_verbose"
#define LINE_BYTES 4096 /* written in one piece: what a pipe takes whole */
#define ALL (RNL_VERBOSE_ERROR | RNL_VERBOSE_DISPATCH | RNL_VERBOSE_BUILD | RNL_VERBOSE_RUN)

static atomic_int mask = -1; /* of rnl_verbose_kind; -1: not read yet */
static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static uint64_t start_ns;

typedef struct word {
    const char *text;
    int kinds;
} word;

/* 0 and 1 are older: 1 is the command's --verbose, which the library has no part in. */
static const word words[] = {
    {"error", RNL_VERBOSE_ERROR},
    {"dispatch", RNL_VERBOSE_DISPATCH},
    {"build", RNL_VERBOSE_BUILD},
    {"run", RNL_VERBOSE_RUN},
    {"all", ALL},
    {"0", 0},
    {"1", 0},
    {"", 0},
};

/* ---- Lines ---- */

typedef struct line {
    char text[LINE_BYTES];
    size_t length;
} line;

static void put(line *to, char c)
{
    if (to->length + 2 < sizeof to->text) /* a closing quote and the line's end always fit */
        to->text[to->length++] = c;
}

static void put_text(line *to, const char *text)
{
    while (*text)
        put(to, *text++);
}

/* Lines and tabs become spaces: an event is one line. */
static void put_field(line *to, const char *text)
{
    put(to, ',');
    if (!text || !*text)
        return;
    const bool quoted = strpbrk(text, ",\"\n\r\t") != NULL;
    if (quoted)
        put(to, '"');
    for (; *text; text++) {
        if (*text == '"')
            put(to, '"');
        put(to, (unsigned char)*text < ' ' ? ' ' : *text);
    }
    if (quoted)
        to->text[to->length++] = '"';
}

static void write_line(line *of)
{
    of->text[of->length++] = '\n';
    ssize_t written = write(STDERR_FILENO, of->text, of->length);
    (void)written; /* there is nowhere to say that it cannot be said */
}

static void write_text(const char *text)
{
    line of = {.length = 0};
    put_text(&of, text);
    write_line(&of);
}

/* ---- The variable ---- */

static int kinds_of(const char *text, size_t length, bool *unknown)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].text) == length && strncmp(words[i].text, text, length) == 0)
            return words[i].kinds;
    *unknown = true;
    return 0;
}

static void read_variable(void)
{
    const char *value = getenv("RUNNEL_VERBOSE");
    bool unknown = false;
    int kinds = 0;
    start_ns = rnl_clock_ns();
    while (value && *value) {
        const size_t length = strcspn(value, ",");
        kinds |= kinds_of(value, length, &unknown);
        value += length + (value[length] == ',');
    }
    if (unknown)
        write_text("runnel: RUNNEL_VERBOSE takes error, dispatch, build, run or all, several by comma, or 1 for what "
                   "--verbose says; other words in it are ignored");
    if (kinds)
        write_text(MARKER ",time_ms,kind,device,subject,program,detail,ms");
    atomic_store_explicit(&mask, kinds, memory_order_release);
}

bool rnl_verbose_is_on(rnl_verbose_kind kind)
{
    int kinds = atomic_load_explicit(&mask, memory_order_acquire);
    if (kinds == 0)
        return false;
    if (kinds < 0) {
        pthread_once(&read_once, read_variable);
        kinds = atomic_load_explicit(&mask, memory_order_acquire);
    }
    return (kinds & (int)kind) != 0;
}

static const char *name_of(rnl_verbose_kind kind)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].kinds == (int)kind)
            return words[i].text;
    return "";
}

void rnl_verbose_write(const rnl_verbose_event *event)
{
    char number[32];
    line of = {.length = 0};
    if (!rnl_verbose_is_on(event->kind))
        return;
    put_text(&of, MARKER);
    snprintf(number, sizeof number, "%.3f", (double)(rnl_clock_ns() - start_ns) / 1e6);
    put_field(&of, number);
    put_field(&of, name_of(event->kind));
    put_field(&of, event->device);
    put_field(&of, event->subject);
    put_field(&of, event->program);
    put_field(&of, event->detail);
    snprintf(number, sizeof number, "%.3f", event->ms);
    put_field(&of, event->ms < 0 ? "" : number);
    write_line(&of);
}
