/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <runnel/trace.h>

rnl_exit rnl_job_trace_begin(rnl_job *job, bool is_bench)
{
    if (!job->options.trace)
        return RNL_EXIT_DONE;
    if (rnl_trace_create(NULL, &job->trace) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    rnl_job_trace(job, true);
    if (!is_bench)
        rnl_trace_set_interval(job->trace,
                               job->options.trace_every ? (uint32_t)job->options.trace_every : RNL_TRACE_AUTOMATIC);
    return RNL_EXIT_DONE;
}

rnl_exit rnl_job_trace_session(rnl_job *job)
{
    if (job->trace && rnl_session_trace(job->session, job->trace) != RNL_OK)
        return rnl_cli_fail_library("tracing %s", job->options.model);
    return RNL_EXIT_DONE;
}

void rnl_job_trace(rnl_job *job, bool on)
{
    if (!job->trace)
        return;
    rnl_trace_use(on ? job->trace : NULL);
    rnl_trace_set_interval(job->trace, on ? 1 : 0);
}

void rnl_job_trace_span(const rnl_job *job, const char *name, uint64_t start_ns)
{
    rnl_trace_span(job->trace, name, start_ns);
}

rnl_exit rnl_job_trace_run(rnl_job *job, rnl_bench *bench, size_t sample)
{
    const size_t apart = (bench->sample_count + RNL_TRACED_RUNS - 1) / RNL_TRACED_RUNS;
    if (!job->trace || sample % apart != 0)
        return RNL_EXIT_DONE;
    rnl_exit code = rnl_job_run(job, &bench->beside_ms[bench->traced_count]);
    rnl_job_trace(job, true);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_run(job, &bench->traced_ms[bench->traced_count++]);
    rnl_job_trace(job, false);
    return code;
}

void rnl_job_trace_print(const rnl_job *job, rnl_bench *bench)
{
    if (!job->trace)
        return;
    rnl_bench_sort(bench->traced_ms, bench->traced_count);
    rnl_bench_sort(bench->beside_ms, bench->traced_count);
    const double median = rnl_bench_median(bench->traced_ms, bench->traced_count);
    const double times = median / rnl_bench_median(bench->beside_ms, bench->traced_count);
    const uint32_t apart = rnl_trace_choose_interval(times);
    printf("traced run ms: median %.3f, min %.3f; %.3f times the runs right before (%zu of each)\n", median,
           bench->traced_ms[0], times, bench->traced_count);
    printf("traced automatically: one run in %u is, and all take %.3f times as long on average\n", (unsigned)apart,
           1 + (times - 1) / apart);
}

rnl_exit rnl_job_trace_end(rnl_job *job)
{
    rnl_trace_stats stats;
    if (!job->trace)
        return RNL_EXIT_DONE;
    rnl_job_trace(job, false);
    if (job->session && rnl_session_trace(job->session, NULL) != RNL_OK)
        return rnl_cli_fail_library("tracing %s", job->options.model);
    if (rnl_trace_write(job->trace, job->options.trace) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    char clean[RNL_CLI_NAME_BYTES];
    uint64_t recorded = 0;
    const uint64_t runs = rnl_trace_get_runs(job->trace, &recorded);
    rnl_trace_get_stats(job->trace, &stats);
    printf("trace: %llu commands and %llu spans in %s", (unsigned long long)stats.commands,
           (unsigned long long)stats.spans, rnl_cli_clean(job->options.trace, clean, sizeof clean));
    if (stats.dropped)
        printf("; %llu left out", (unsigned long long)stats.dropped);
    printf("; %llu of %llu runs", (unsigned long long)recorded, (unsigned long long)runs);
    if (stats.clock_ns)
        printf("; the clocks agree within %.1f us", (double)stats.clock_ns * 1e-3);
    else
        printf("; the driver gives no times: each command was waited for");
    printf("\n");
    return RNL_EXIT_DONE;
}
