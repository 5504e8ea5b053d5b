/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stack.h"
#include <pthread.h>
#include <stdint.h>

/* Asked for once: of a process's first thread the C library reads a file. */
static _Thread_local struct {
    bool is_known;
    uintptr_t lowest, highest;
} own;

static void ask(void)
{
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t bytes = 0;
    own.is_known = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0) {
        own.lowest = (uintptr_t)lowest;
        own.highest = own.lowest + bytes;
    }
    (void)pthread_attr_destroy(&attributes);
}

bool rnl_stack_has(size_t bytes)
{
    const uintptr_t at = (uintptr_t)__builtin_frame_address(0); /* checkers may have variables elsewhere */
    if (!own.is_known)
        ask();
    return at >= own.lowest && at < own.highest && at - own.lowest >= bytes;
}
