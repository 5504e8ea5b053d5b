/* SPDX-License-Identifier: Apache-2.0 */
/* runnel bench MODEL --streams N: sessions of one model side by side, each run following the one before. */
#include "bench.h"
#include "subject.h"

#include <pthread.h>
#include <stdlib.h>

#define SAMPLE_NS 50e6

typedef struct crowd crowd;

typedef struct member {
    crowd *of;
    rnl_session *session;
    rnl_tensor *outputs;
} member;

struct crowd {
    rnl_job *job;
    member *members;
    size_t count;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t running, runs;
    uint64_t until_ns;
    rnl_error failure; /* the first; status RNL_OK: none */
};

static void complete(void *user, const rnl_error *error);

static rnl_status submit(member *it)
{
    rnl_job *job = it->of->job;
    for (size_t i = 0; i < job->output_count; i++)
        it->outputs[i] = (rnl_tensor){.name = job->output_infos[i].name};
    return rnl_session_submit(it->session, job->inputs.tensors, job->inputs.count, it->outputs, job->output_count,
                              complete, it);
}

/* On the session's thread: goes on, or ends the session's part in the sample. */
static void complete(void *user, const rnl_error *error)
{
    member *it = user;
    crowd *all = it->of;
    pthread_mutex_lock(&all->lock);
    all->runs++;
    if (error && all->failure.status == RNL_OK)
        all->failure = *error;
    const bool more = all->failure.status == RNL_OK && rnl_now_ns() < all->until_ns;
    pthread_mutex_unlock(&all->lock);
    const rnl_status status = more ? submit(it) : RNL_OK;
    if (more && status == RNL_OK)
        return;
    pthread_mutex_lock(&all->lock);
    if (status != RNL_OK && all->failure.status == RNL_OK)
        all->failure = *rnl_last_error();
    all->running--;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

/* All sessions run for that long, and each at least once. */
static rnl_exit sample(crowd *all, double least_ns, double *out_ms)
{
    const uint64_t start = rnl_now_ns();
    rnl_status status = RNL_OK;
    all->runs = 0;
    all->until_ns = start + (uint64_t)least_ns;
    all->running = all->count;
    size_t started = 0;
    while (status == RNL_OK && started < all->count) {
        status = submit(&all->members[started]);
        started += status == RNL_OK;
    }
    const rnl_error error = *rnl_last_error();
    pthread_mutex_lock(&all->lock);
    all->running -= all->count - started;
    if (status != RNL_OK && all->failure.status == RNL_OK)
        all->failure = error;
    while (all->running > 0)
        pthread_cond_wait(&all->changed, &all->lock);
    pthread_mutex_unlock(&all->lock);
    *out_ms = (double)(rnl_now_ns() - start) * 1e-6 / (double)(all->runs ? all->runs : 1);
    if (all->failure.status != RNL_OK)
        return rnl_cli_fail("%s\nrunning %zu sessions of %s", all->failure.message, all->count,
                            all->job->options.model);
    return RNL_EXIT_DONE;
}

static rnl_exit measure(crowd *all, rnl_bench *bench)
{
    const rnl_run_options *options = &all->job->options;
    const double share = options->seconds * 1e9 / (double)options->repeat;
    double *samples = calloc((size_t)options->repeat, sizeof *samples), ms = 0;
    size_t runs = 0;
    if (!samples)
        return rnl_cli_fail("out of memory");
    rnl_exit code = sample(all, 0, &ms);
    if (code == RNL_EXIT_DONE && options->warm_seconds > 0)
        code = sample(all, options->warm_seconds * 1e9, &ms);
    for (size_t i = 0; code == RNL_EXIT_DONE && i < options->repeat; i++) {
        code = sample(all, share > SAMPLE_NS ? share : SAMPLE_NS, &samples[i]);
        runs += all->runs;
    }
    if (code == RNL_EXIT_DONE) {
        rnl_bench_sort(samples, (size_t)options->repeat);
        bench->streams_ms = rnl_bench_median(samples, (size_t)options->repeat);
        printf("%zu session%s: %.2f runs/s, %.2f times one session's (%zu samples, %zu runs)\n", all->count,
               all->count == 1 ? "" : "s", 1e3 / bench->streams_ms, bench->median_ms / bench->streams_ms,
               (size_t)options->repeat, runs);
        fflush(stdout);
    }
    free(samples);
    return code;
}

static rnl_exit open_members(crowd *all)
{
    all->members = calloc(all->count, sizeof *all->members);
    if (!all->members)
        return rnl_cli_fail("out of memory");
    for (size_t i = 0; i < all->count; i++) {
        member *it = &all->members[i];
        it->of = all;
        it->outputs = calloc(all->job->output_count + 1, sizeof *it->outputs);
        if (!it->outputs)
            return rnl_cli_fail("out of memory");
        if (rnl_session_create(all->job->model, &it->session) != RNL_OK)
            return rnl_cli_fail_library("session %zu of %zu", i + 1, all->count);
    }
    return RNL_EXIT_DONE;
}

rnl_exit rnl_bench_measure_streams(rnl_job *job, rnl_bench *bench)
{
    crowd all = {.job = job, .count = (size_t)job->options.streams};
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.changed, NULL);
    rnl_exit code = open_members(&all);
    if (code == RNL_EXIT_DONE)
        code = measure(&all, bench);
    for (size_t i = 0; all.members && i < all.count; i++) {
        rnl_session_release(all.members[i].session);
        free(all.members[i].outputs);
    }
    free(all.members);
    pthread_cond_destroy(&all.changed);
    pthread_mutex_destroy(&all.lock);
    return code;
}
