/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of work that is enqueued back to back. */
#include "bench.h"
#include "subject.h"

#include <stdlib.h>
#include <time.h>

#define SAMPLE_NS 20e6 /* shorter samples measure the clock and the scheduler */

uint64_t rnl_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static rnl_status run(const rnl_measured *work, uint64_t count, double *out_ns)
{
    rnl_status status = RNL_OK;
    const uint64_t start = rnl_now_ns();
    for (uint64_t i = 0; status == RNL_OK && i < count; i++)
        status = work->enqueue(work->user);
    if (status == RNL_OK)
        status = work->finish(work->user);
    *out_ns = (double)(rnl_now_ns() - start);
    return status;
}

rnl_status rnl_measure(const rnl_measured *work, const rnl_subject_options *options, double *out_ns, double *out_min_ns)
{
    double samples[65536 / 64], ns = 0; /* more samples than that change no median */
    const size_t most = sizeof samples / sizeof *samples;
    const size_t wanted = options->repeat < most ? (size_t)options->repeat : most;
    const double share = options->seconds * 1e9 / (double)wanted, least = share > SAMPLE_NS ? share : SAMPLE_NS;
    uint64_t count = 1;
    *out_ns = 0;
    rnl_status status = run(work, 1, &ns);
    if (status == RNL_OK)
        status = run(work, 1, &ns);
    while (status == RNL_OK && ns < least && count < UINT64_C(1) << 24) {
        count = ns * 2 < least ? count * 2 : (uint64_t)((double)count * least * 1.2 / ns) + 1;
        status = run(work, count, &ns);
    }
    for (size_t i = 0; status == RNL_OK && i < wanted; i++) {
        status = run(work, count, &ns);
        samples[i] = ns / (double)count;
    }
    if (status != RNL_OK)
        return status;
    rnl_bench_sort(samples, wanted);
    *out_ns = rnl_bench_median(samples, wanted);
    if (out_min_ns)
        *out_min_ns = samples[0];
    return RNL_OK;
}
