/* SPDX-License-Identifier: Apache-2.0 */
/* runnel bench MODEL --streams N: sessions of one model side by side, each run following the one before. */
#include "bench.h"
#include "flow.h"
#include "subject.h"

#include <stdlib.h>

#define SAMPLE_NS 50e6

typedef struct member {
    rnl_job *job;
    rnl_session *session;
    rnl_tensor *outputs;
} member;

typedef struct crowd {
    rnl_job *job;
    member *members;
    rnl_flow flow;
} crowd;

static rnl_status submit(rnl_flow_run *run)
{
    member *it = run->subject;
    rnl_job *job = it->job;
    for (size_t i = 0; i < job->output_count; i++)
        it->outputs[i] = (rnl_tensor){.name = job->output_infos[i].name};
    return rnl_session_submit(it->session, job->inputs.tensors, job->inputs.count, it->outputs, job->output_count,
                              rnl_flow_complete, run);
}

static rnl_exit sample(crowd *all, double least_ns, double *out_ms)
{
    if (rnl_flow_sample(&all->flow, least_ns, out_ms))
        return RNL_EXIT_DONE;
    return rnl_cli_fail("%s\nrunning %zu sessions of %s", all->flow.failure.message, all->flow.count,
                        all->job->options.model);
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
        runs += all->flow.done;
    }
    if (code == RNL_EXIT_DONE) {
        rnl_bench_sort(samples, (size_t)options->repeat);
        bench->streams_ms = rnl_bench_median(samples, (size_t)options->repeat);
        printf("%zu session%s: %.2f runs/s, %.2f times one session's (%zu samples, %zu runs)\n", all->flow.count,
               all->flow.count == 1 ? "" : "s", 1e3 / bench->streams_ms, bench->median_ms / bench->streams_ms,
               (size_t)options->repeat, runs);
        fflush(stdout);
    }
    free(samples);
    return code;
}

static rnl_exit open_members(crowd *all, size_t count)
{
    all->members = calloc(count, sizeof *all->members);
    if (!rnl_flow_open(&all->flow, count, submit) || !all->members)
        return rnl_cli_fail("out of memory");
    for (size_t i = 0; i < count; i++) {
        member *it = all->flow.run[i].subject = &all->members[i];
        it->job = all->job;
        it->outputs = calloc(all->job->output_count + 1, sizeof *it->outputs);
        if (!it->outputs)
            return rnl_cli_fail("out of memory");
        if (rnl_session_create(all->job->model, &it->session) != RNL_OK)
            return rnl_cli_fail_library("session %zu of %zu", i + 1, count);
    }
    return RNL_EXIT_DONE;
}

rnl_exit rnl_bench_measure_streams(rnl_job *job, rnl_bench *bench)
{
    crowd all = {.job = job};
    rnl_exit code = open_members(&all, (size_t)job->options.streams);
    if (code == RNL_EXIT_DONE)
        code = measure(&all, bench);
    for (size_t i = 0; all.members && i < all.flow.count; i++) {
        rnl_session_release(all.members[i].session);
        free(all.members[i].outputs);
    }
    free(all.members);
    rnl_flow_close(&all.flow);
    return code;
}
