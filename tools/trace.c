/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <runnel/trace.h>
#include <stdlib.h>

rnl_exit rnl_job_trace_begin(rnl_job *job)
{
    if (!job->options.trace)
        return RNL_EXIT_DONE;
    if (rnl_trace_create(NULL, &job->trace) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    return rnl_job_trace(job, true);
}

rnl_exit rnl_job_trace(rnl_job *job, bool on)
{
    if (!job->trace)
        return RNL_EXIT_DONE;
    rnl_trace_use(on ? job->trace : NULL);
    if (job->session && rnl_session_trace(job->session, on ? job->trace : NULL) != RNL_OK)
        return rnl_cli_fail_library("tracing %s", job->options.model);
    return RNL_EXIT_DONE;
}

void rnl_job_trace_span(const rnl_job *job, const char *name, uint64_t start_ns)
{
    rnl_trace_span(job->trace, name, start_ns);
}

rnl_exit rnl_job_trace_runs(rnl_job *job, rnl_bench *bench)
{
    const size_t count = job->options.repeat;
    double *times = job->trace ? calloc(count, sizeof *times) : NULL, first_ms = 0;
    if (!job->trace)
        return RNL_EXIT_DONE;
    rnl_exit code = times ? rnl_job_trace(job, true) : rnl_cli_fail("out of memory");
    if (code == RNL_EXIT_DONE)
        code = rnl_job_run(job, &first_ms); /* the new stream's first commands take longer */
    for (size_t i = 0; code == RNL_EXIT_DONE && i < count; i++)
        code = rnl_job_run(job, &times[i]);
    if (code == RNL_EXIT_DONE) {
        rnl_bench_sort(times, count);
        const double median = rnl_bench_median(times, count);
        printf("traced run ms: median %.3f, min %.3f; %.3f times the median without\n", median, times[0],
               median / bench->median_ms);
        code = rnl_job_trace(job, false);
    }
    free(times);
    return code;
}

rnl_exit rnl_job_trace_end(rnl_job *job)
{
    rnl_trace_stats stats;
    if (!job->trace)
        return RNL_EXIT_DONE;
    rnl_exit code = rnl_job_trace(job, false);
    if (code != RNL_EXIT_DONE)
        return code;
    if (rnl_trace_write(job->trace, job->options.trace) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    char clean[RNL_CLI_NAME_BYTES];
    rnl_trace_get_stats(job->trace, &stats);
    printf("trace: %llu commands and %llu spans in %s", (unsigned long long)stats.commands,
           (unsigned long long)stats.spans, rnl_cli_clean(job->options.trace, clean, sizeof clean));
    if (stats.dropped)
        printf("; %llu left out", (unsigned long long)stats.dropped);
    if (stats.clock_ns)
        printf("; the clocks agree within %.1f us", (double)stats.clock_ns * 1e-3);
    else
        printf("; the driver gives no times: each command was waited for");
    printf("\n");
    return RNL_EXIT_DONE;
}
