/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback that crashes is named before the process goes the way that it would have gone. The handler puts back what
 * was there before and returns: the instruction faults again, so an embedding program's own handler is called with the
 * signal's true origin, or there is a core of the fault's place. It does not jump out of the callback: what that holds,
 * locks and half-made objects, would stay as they are, and its memory may be broken.
 */
#include "graph/custom.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const struct watched {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}};
#define SIGNAL_COUNT (sizeof signals / sizeof *signals)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous[SIGNAL_COUNT];

/* Those of all threads, the newest first. No thread-local variable: a handler must not allocate, and what makes one
   safe there, the initial-exec model, keeps a library from being loaded at run time once the C library's spare room is
   gone. */
static rnl_custom_frame *frames;
static atomic_flag frames_held = ATOMIC_FLAG_INIT;

static bool hold_frames(unsigned long tries)
{
    while (atomic_flag_test_and_set_explicit(&frames_held, memory_order_acquire))
        if (--tries == 0)
            return false;
    return true;
}

static void let_frames_go(void)
{
    atomic_flag_clear_explicit(&frames_held, memory_order_release);
}

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

/* A signal that was sent may interrupt the thread that holds the list: then nothing is said. */
static void tell_frame(const char *name)
{
    if (!hold_frames(1ul << 20))
        return;
    const rnl_custom_frame *frame = frames;
    while (frame && !pthread_equal(frame->thread, pthread_self()))
        frame = frame->older;
    if (frame)
        tell(name, frame);
    let_frames_go();
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const int error = errno;
    (void)context;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (signals[i].number != number)
            continue;
        tell_frame(signals[i].name);
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

void rnl_custom_watch_signals(rnl_custom_frame *frame)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < SIGNAL_COUNT && !frames; i++)
        install(i);
    frame->thread = pthread_self();
    frame->older = frames;
    frame->newer = NULL;
    hold_frames(ULONG_MAX);
    if (frames)
        frames->newer = frame;
    frames = frame;
    let_frames_go();
    pthread_mutex_unlock(&lock);
}

void rnl_custom_unwatch_signals(rnl_custom_frame *frame)
{
    pthread_mutex_lock(&lock);
    hold_frames(ULONG_MAX);
    if (frame->older)
        frame->older->newer = frame->newer;
    if (frame->newer)
        frame->newer->older = frame->older;
    else
        frames = frame->older;
    let_frames_go();
    for (size_t i = 0; i < SIGNAL_COUNT && !frames; i++)
        uninstall(i);
    pthread_mutex_unlock(&lock);
}
