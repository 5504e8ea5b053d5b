/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t log_lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards the callback, and makes its calls one at a time */
static rnl_log_fn log_callback;
static void *log_user;
static atomic_int log_level = -1; /* -1: silent */

void rnl_log_set(rnl_log_fn log, void *user, rnl_log_level level)
{
    pthread_mutex_lock(&log_lock);
    log_callback = log;
    log_user = user;
    atomic_store(&log_level, log ? (int)level : -1);
    pthread_mutex_unlock(&log_lock);
}

bool rnl_log_enabled(rnl_log_level level)
{
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static void send_lines(rnl_log_level level, char *text)
{
    pthread_mutex_lock(&log_lock);
    char *rest = text;
    while (log_callback && rest && *rest) {
        char *line = strsep(&rest, "\n");
        if (*line)
            log_callback(log_user, level, line);
    }
    pthread_mutex_unlock(&log_lock);
}

void rnl_log(rnl_log_level level, const char *format, ...)
{
    if (!rnl_log_enabled(level))
        return;
    char text[RNL_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length > 0)
        send_lines(level, text);
}
