/* SPDX-License-Identifier: Apache-2.0 */
/* A compiler that goes as far as the preprocessor, the system's, and then looks for the heads of kernels. */
#include "fake/fake.h"
#include <ctype.h>
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_OPTIONS 512

extern char **environ;

static fake_unit *units;

/* ---- Options ---- */

/* For the preprocessor; the flags for the compiler proper are known and dropped. False for what OpenCL has not. */
static bool take_option(const char *option, const char **arguments, size_t *count)
{
    static const char *const known[] = {"-cl-std=CL1.",
                                        "-cl-fp32-correctly-rounded-divide-sqrt",
                                        "-cl-single-precision-constant",
                                        "-cl-denorms-are-zero",
                                        "-cl-opt-disable",
                                        "-cl-mad-enable",
                                        "-cl-no-signed-zeros",
                                        "-cl-kernel-arg-info",
                                        "-w",
                                        "-Werror",
                                        "-cl-unsafe-math-optimizations",
                                        "-cl-finite-math-only",
                                        "-cl-fast-relaxed-math",
                                        "-cl-nv-",
                                        "-cl-intel-",
                                        "-fbin-",
                                        "-g"};
    if (option[0] != '-')
        return false;
    if (option[1] == 'D' || option[1] == 'I' || option[1] == 'U') {
        arguments[(*count)++] = option;
        return true;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i]);
        bool opens = strchr(".-", known[i][length - 1]) != NULL; /* more may follow */
        if (strncmp(option, known[i], length) == 0 && (opens || !option[length]))
            return true;
    }
    return false;
}

/* Splits `text` in place; options may stand in quotes. False when one is not known. */
static bool take_options(char *text, const char **arguments, size_t *count)
{
    char *at = text;
    while (*count < MOST_OPTIONS - 2) {
        while (*at == ' ')
            at++;
        if (!*at)
            return true;
        char *option = at, *to = at;
        bool quoted = false;
        for (; *at && (quoted || *at != ' '); at++)
            if (*at == '"')
                quoted = !quoted;
            else
                *to++ = *at;
        bool more = *at != '\0', alone = to - option == 2 && (option[1] == 'D' || option[1] == 'I');
        if (alone && more) { /* "-D NAME" */
            while (*at == ' ')
                at++;
            memmove(to, at, strlen(at) + 1);
            at = option;
            continue;
        }
        *to = '\0';
        at += more;
        if (!take_option(option, arguments, count))
            return false;
    }
    return false;
}

/* ---- Running it ---- */

static char *read_file(int file)
{
    off_t end = lseek(file, 0, SEEK_END);
    char *text = end < 0 ? NULL : calloc(1, (size_t)end + 1);
    if (text && pread(file, text, (size_t)end, 0) != end) {
        free(text);
        text = NULL;
    }
    return text;
}

/* files: what it reads, what it writes, what it says. */
static int run_preprocessor(const char *const *arguments, const int *files)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int state = -1;
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, files[i], i);
    if (posix_spawnp(&child, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments, environ) == 0)
        while (waitpid(child, &state, 0) < 0 && errno == EINTR)
            continue;
    posix_spawn_file_actions_destroy(&actions);
    return state;
}

/* The preprocessed text, or NULL and what the preprocessor says. */
static char *preprocess(const char *source, const char *const *arguments, char **out_log)
{
    int files[3];
    char *text = NULL;
    *out_log = NULL;
    for (int i = 0; i < 3; i++)
        files[i] = memfd_create("fake", MFD_CLOEXEC);
    if (files[2] >= 0 && write(files[0], source, strlen(source)) == (ssize_t)strlen(source)) {
        lseek(files[0], 0, SEEK_SET);
        if (run_preprocessor(arguments, files) == 0)
            text = read_file(files[1]);
        else
            *out_log = read_file(files[2]);
    }
    for (int i = 0; i < 3; i++)
        close(files[i]);
    return text;
}

/* ---- Units ---- */

/* Tells the program that is compiled, for whoever wants to know them all: DIR/HASH.cl. */
static void dump(const fake_unit *unit)
{
    const char *folder = getenv("FAKE_OPENCL_DUMP");
    char path[4096];
    cl_ulong hash = 14695981039346656037u;
    if (!folder || !*folder)
        return;
    for (const char *at = unit->source; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    for (const char *at = unit->options; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    snprintf(path, sizeof path, "%s/%016llx.cl", folder, (unsigned long long)hash);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return;
    }
    fprintf(file, "// options: %s\n%s", unit->options, unit->source);
    fclose(file);
}

static void compile(fake_unit *unit)
{
    const char *arguments[MOST_OPTIONS] = {"cpp",
                                           "-x",
                                           "c",
                                           "-P",
                                           "-w",
                                           "-undef",
                                           "-nostdinc",
                                           "-D__OPENCL_VERSION__=120",
                                           "-D__OPENCL_C_VERSION__=120",
                                           "-D__ENDIAN_LITTLE__=1"};
    size_t count = 10;
    char *options = strdup(unit->options), *log = NULL;
    if (!options || !take_options(options, arguments, &count)) {
        unit->code = CL_INVALID_BUILD_OPTIONS;
        free(options);
        return;
    }
    arguments[count++] = "-";
    char *text = preprocess(unit->source, arguments, &log);
    unit->code = text ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
    if (text)
        unit->functions = fake_find_functions(text);
    else
        unit->log = log ? log : strdup("the program cpp did not run");
    free(text);
    free(options);
}

const fake_unit *fake_compile(const char *source, const char *options)
{
    for (const fake_unit *unit = units; unit; unit = unit->next)
        if (strcmp(unit->options, options) == 0 && strcmp(unit->source, source) == 0)
            return unit;
    fake_unit *unit = calloc(1, sizeof *unit);
    if (!unit || !(unit->source = strdup(source)) || !(unit->options = strdup(options)))
        abort();
    dump(unit);
    compile(unit);
    unit->next = units;
    units = unit;
    return unit;
}
