/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback that crashes is named before the process goes the way that it would have gone. The handler puts back what
 * was there before and returns: the instruction faults again, so an embedding program's own handler is called with the
 * signal's true origin, or there is a core of the fault's place. It does not jump out of the callback: what that holds,
 * locks and half-made objects, would stay as they are, and its memory may be broken.
 */
#include "graph/custom.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct watched {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}};
#define SIGNAL_COUNT (sizeof signals / sizeof *signals)

/* Reading it in a handler must not allocate. */
#ifdef __GLIBC__
#define IN_PLACE __attribute__((tls_model("initial-exec")))
#else
#define IN_PLACE
#endif
static _Thread_local const rnl_custom_frame *volatile current IN_PLACE;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users; /* callbacks under way, of all threads */
static struct sigaction previous[SIGNAL_COUNT];

static void tell(const char *name, const rnl_custom_frame *frame)
{
    static const char head[] = "runnel: ";
    char line[sizeof head + 16 + sizeof frame->place];
    size_t length = sizeof head - 1, name_length = strlen(name);
    memcpy(line, head, length);
    memcpy(line + length, name, name_length);
    length += name_length;
    memcpy(line + length, frame->place, frame->length);
    (void)!write(STDERR_FILENO, line, length + frame->length);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    (void)context;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (signals[i].number != number)
            continue;
        if (current)
            tell(signals[i].name, current);
        sigaction(number, &previous[i], NULL);
    }
    if (info->si_code <= 0) /* sent, so it does not come again by itself */
        raise(number);
    errno = error;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
}

static void install(size_t index)
{
    struct sigaction now, ours;
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    if (sigaction(signals[index].number, NULL, &now) != 0)
        return;
    if (!is_ours(&now)) /* else somebody put back what he found while we were there */
        previous[index] = now;
    sigaction(signals[index].number, &ours, NULL);
}

/* A handler that was set meanwhile stays. */
static void uninstall(size_t index)
{
    struct sigaction now;
    if (sigaction(signals[index].number, NULL, &now) == 0 && is_ours(&now))
        sigaction(signals[index].number, &previous[index], NULL);
}

void rnl_custom_watch_signals(const rnl_custom_frame *frame)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < SIGNAL_COUNT && users == 0; i++)
        install(i);
    users++;
    pthread_mutex_unlock(&lock);
    current = frame;
}

void rnl_custom_unwatch_signals(const rnl_custom_frame *outer)
{
    current = outer;
    pthread_mutex_lock(&lock);
    users--;
    for (size_t i = 0; i < SIGNAL_COUNT && users == 0; i++)
        uninstall(i);
    pthread_mutex_unlock(&lock);
}
