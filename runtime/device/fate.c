/* SPDX-License-Identifier: Apache-2.0 */
#include "device/fate.h"

#include "base/memory.h"
#include "base/status.h"
#include <pthread.h>
#include <stdatomic.h>

struct rnl_fate {
    atomic_uint references;
    atomic_bool failed; /* `failure` is written, and stays */
    pthread_mutex_t lock;
    rnl_error failure;
};

rnl_status rnl_fate_create(rnl_fate **out_fate)
{
    rnl_fate *fate;
    *out_fate = NULL;
    TRY(rnl_alloc(1, sizeof *fate, &fate));
    atomic_init(&fate->references, 1);
    pthread_mutex_init(&fate->lock, NULL);
    *out_fate = fate;
    return RNL_OK;
}

rnl_fate *rnl_fate_retain(rnl_fate *fate)
{
    atomic_fetch_add_explicit(&fate->references, 1, memory_order_relaxed);
    return fate;
}

void rnl_fate_release(rnl_fate *fate)
{
    if (!fate || atomic_fetch_sub_explicit(&fate->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&fate->lock);
    rnl_free(fate);
}

rnl_status rnl_fate_fail(rnl_fate *fate, rnl_status status)
{
    if (status == RNL_OK)
        return status;
    pthread_mutex_lock(&fate->lock);
    if (!atomic_load_explicit(&fate->failed, memory_order_relaxed)) {
        fate->failure = *rnl_last_error();
        fate->failure.status = status;
        atomic_store_explicit(&fate->failed, true, memory_order_release);
    }
    pthread_mutex_unlock(&fate->lock);
    return status;
}

rnl_status rnl_fate_check(rnl_fate *fate)
{
    return atomic_load_explicit(&fate->failed, memory_order_acquire) ? rnl_error_restore(&fate->failure) : RNL_OK;
}

/* ---- Several ---- */

rnl_status rnl_fates_add(rnl_fates *fates, rnl_fate *fate)
{
    for (size_t i = 0; i < fates->count; i++)
        if (fates->items[i] == fate)
            return RNL_OK;
    TRY(rnl_grow(&fates->items, &fates->capacity, fates->count + 1, sizeof *fates->items));
    fates->items[fates->count++] = rnl_fate_retain(fate);
    return RNL_OK;
}

rnl_status rnl_fates_add_all(rnl_fates *fates, const rnl_fates *more)
{
    for (size_t i = 0; i < more->count; i++)
        TRY(rnl_fates_add(fates, more->items[i]));
    return RNL_OK;
}

rnl_status rnl_fates_check(const rnl_fates *fates)
{
    for (size_t i = 0; i < fates->count; i++)
        TRY(rnl_fate_check(fates->items[i]));
    return RNL_OK;
}

void rnl_fates_clear(rnl_fates *fates)
{
    for (size_t i = 0; i < fates->count; i++)
        rnl_fate_release(fates->items[i]);
    rnl_free(fates->items);
    *fates = (rnl_fates){0};
}
