/* SPDX-License-Identifier: Apache-2.0 */
#include "flow.h"
#include "subject.h"

#include <stdlib.h>

bool rnl_flow_open(rnl_flow *flow, size_t count, rnl_flow_submit_fn submit)
{
    *flow = (rnl_flow){.submit = submit, .count = count, .run = calloc(count, sizeof *flow->run)};
    pthread_mutex_init(&flow->lock, NULL);
    pthread_cond_init(&flow->changed, NULL);
    for (size_t i = 0; flow->run && i < count; i++)
        flow->run[i].flow = flow;
    return flow->run != NULL;
}

void rnl_flow_complete(void *user, const rnl_error *error)
{
    rnl_flow_run *it = user;
    rnl_flow *flow = it->flow;
    pthread_mutex_lock(&flow->lock);
    flow->done++;
    if (error && flow->failure.status == RNL_OK)
        flow->failure = *error;
    const bool more = flow->failure.status == RNL_OK && rnl_now_ns() < flow->until_ns;
    pthread_mutex_unlock(&flow->lock);
    const rnl_status status = more ? flow->submit(it) : RNL_OK;
    if (more && status == RNL_OK)
        return;
    pthread_mutex_lock(&flow->lock);
    if (status != RNL_OK && flow->failure.status == RNL_OK)
        flow->failure = *rnl_last_error();
    flow->running--;
    pthread_cond_broadcast(&flow->changed);
    pthread_mutex_unlock(&flow->lock);
}

bool rnl_flow_sample(rnl_flow *flow, double least_ns, double *out_ms)
{
    const uint64_t start = rnl_now_ns();
    rnl_status status = RNL_OK;
    flow->done = 0;
    flow->until_ns = start + (uint64_t)least_ns;
    flow->running = flow->count;
    size_t started = 0;
    while (status == RNL_OK && started < flow->count) {
        status = flow->submit(&flow->run[started]);
        started += status == RNL_OK;
    }
    const rnl_error error = *rnl_last_error();
    pthread_mutex_lock(&flow->lock);
    flow->running -= flow->count - started;
    if (status != RNL_OK && flow->failure.status == RNL_OK)
        flow->failure = error;
    while (flow->running > 0)
        pthread_cond_wait(&flow->changed, &flow->lock);
    pthread_mutex_unlock(&flow->lock);
    *out_ms = (double)(rnl_now_ns() - start) * 1e-6 / (double)(flow->done ? flow->done : 1);
    return flow->failure.status == RNL_OK;
}

void rnl_flow_close(rnl_flow *flow)
{
    free(flow->run);
    pthread_cond_destroy(&flow->changed);
    pthread_mutex_destroy(&flow->lock);
}
