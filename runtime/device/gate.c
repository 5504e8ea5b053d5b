/* SPDX-License-Identifier: Apache-2.0 */
#include "device/gate.h"

#include "base/memory.h"
#include "base/status.h"
#include <pthread.h>

struct rnl_gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    size_t inside; /* streams */
    bool closed;
};

rnl_status rnl_gate_create(rnl_gate **out_gate)
{
    rnl_gate *gate;
    *out_gate = NULL;
    TRY(rnl_alloc(1, sizeof *gate, &gate));
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->opened, NULL);
    *out_gate = gate;
    return RNL_OK;
}

void rnl_gate_destroy(rnl_gate *gate)
{
    if (!gate)
        return;
    pthread_cond_destroy(&gate->opened);
    pthread_mutex_destroy(&gate->lock);
    rnl_free(gate);
}

void rnl_gate_enter(rnl_gate *gate)
{
    if (!gate)
        return;
    pthread_mutex_lock(&gate->lock);
    while (gate->closed)
        pthread_cond_wait(&gate->opened, &gate->lock);
    gate->inside++;
    pthread_mutex_unlock(&gate->lock);
}

void rnl_gate_leave(rnl_gate *gate)
{
    if (!gate)
        return;
    pthread_mutex_lock(&gate->lock);
    gate->inside--;
    pthread_mutex_unlock(&gate->lock);
}

bool rnl_gate_try_close(rnl_gate *gate)
{
    if (!gate)
        return true;
    pthread_mutex_lock(&gate->lock);
    bool closed = gate->inside == 0 && !gate->closed;
    gate->closed = gate->closed || closed;
    pthread_mutex_unlock(&gate->lock);
    return closed;
}

void rnl_gate_open(rnl_gate *gate)
{
    if (!gate)
        return;
    pthread_mutex_lock(&gate->lock);
    gate->closed = false;
    pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->lock);
}
