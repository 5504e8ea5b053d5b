/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_S 2.0 /* between two lines where there is no terminal */
#define BAR_WIDTH 30

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* log lines come from any thread */
static bool on_terminal;
static bool line_stands;
static double last_line_at;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void wipe(void)
{
    if (line_stands)
        fputs("\r\033[K", stderr);
    line_stands = false;
}

static void print_log(void *user, rnl_log_level level, const char *line)
{
    static const char *const prefixes[] = {"error: ", "warning: ", "", ""};
    (void)user;
    pthread_mutex_lock(&lock);
    wipe();
    fprintf(stderr, "runnel: %s%s\n", prefixes[level <= RNL_LOG_DEBUG ? level : RNL_LOG_DEBUG], line);
    pthread_mutex_unlock(&lock);
}

void rnl_console_open(bool verbose)
{
    on_terminal = isatty(STDERR_FILENO) == 1;
    last_line_at = -1e9;
    rnl_log_set(print_log, NULL, verbose ? RNL_LOG_INFO : RNL_LOG_WARNING);
}

void rnl_console_progress(void *user, const rnl_progress *progress)
{
    (void)user;
    if (progress->from_cache)
        return;
    pthread_mutex_lock(&lock);
    double now = seconds();
    if (on_terminal || now - last_line_at >= PAUSE_S) {
        last_line_at = now;
        wipe();
        fprintf(stderr, "compiling %zu of %zu: %s%s", progress->done, progress->total, progress->name,
                on_terminal ? "" : "\n");
        fflush(stderr);
        line_stands = on_terminal;
    }
    pthread_mutex_unlock(&lock);
}

static void draw_bar(const char *what, size_t done, size_t total)
{
    char bar[BAR_WIDTH + 1];
    const size_t full = total ? BAR_WIDTH * done / total : 0;
    memset(bar, ' ', BAR_WIDTH);
    memset(bar, '#', full);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "[%s] %s %zu of %zu", bar, what, done, total);
}

void rnl_console_step(const char *what, size_t done, size_t total)
{
    static double silent_until;
    pthread_mutex_lock(&lock);
    const double now = seconds();
    if (silent_until == 0) /* what is done at once says nothing */
        silent_until = now + PAUSE_S;
    if (on_terminal) {
        wipe();
        draw_bar(what, done, total);
        line_stands = true;
    } else if (now >= silent_until && now - last_line_at >= PAUSE_S) {
        last_line_at = now;
        fprintf(stderr, "%s %zu of %zu\n", what, done, total);
    }
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}

void rnl_console_clear(void)
{
    pthread_mutex_lock(&lock);
    wipe();
    pthread_mutex_unlock(&lock);
}
