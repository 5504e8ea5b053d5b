/* SPDX-License-Identifier: Apache-2.0 */
/* runnel bench: warm, sample, and say how long a run takes. */
#include "bench.h"
#include "precision.h"
#include "progress.h"
#include "subject.h"
#include "trace.h"
#include "tune_model.h"

#include <stdlib.h>

/* A sample is at least that long: shorter ones measure the clock and the scheduler. */
#define SAMPLE_MS 50.0

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

void rnl_bench_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
}

double rnl_bench_median(const double *sorted, size_t count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* Runs for at least that long, and at least once. */
static rnl_exit run_for(rnl_job *job, double least_ms, double *out_ms, size_t *out_runs)
{
    double ms = 0;
    *out_ms = 0;
    *out_runs = 0;
    do {
        rnl_exit code = rnl_job_run(job, &ms);
        if (code != RNL_EXIT_DONE)
            return code;
        *out_ms += ms;
        ++*out_runs;
    } while (*out_ms < least_ms);
    return RNL_EXIT_DONE;
}

static rnl_exit sample(rnl_job *job, rnl_bench *bench)
{
    const rnl_run_options *options = &job->options;
    double each = options->seconds * 1e3 / (double)options->repeat, ms = 0;
    size_t runs = 0, warm_runs = 0;
    rnl_exit code = rnl_job_run(job, &ms); /* plans and compiles */
    rnl_console_clear();
    rnl_job_trace(job, false);
    if (code == RNL_EXIT_DONE && options->warm_seconds > 0)
        code = run_for(job, options->warm_seconds * 1e3, &ms, &warm_runs);
    for (size_t i = 0; code == RNL_EXIT_DONE && i < options->repeat; i++) {
        code = run_for(job, each > SAMPLE_MS ? each : SAMPLE_MS, &ms, &runs);
        bench->samples_ms[i] = ms / (double)(runs ? runs : 1);
        bench->run_count += runs;
        if (code == RNL_EXIT_DONE)
            code = rnl_job_trace_run(job, bench, i);
    }
    return code;
}

static void summarise(rnl_bench *bench)
{
    size_t rank = (bench->sample_count * 90 + 99) / 100;
    rnl_bench_sort(bench->samples_ms, bench->sample_count);
    bench->median_ms = rnl_bench_median(bench->samples_ms, bench->sample_count);
    bench->min_ms = bench->samples_ms[0];
    bench->p90_ms = bench->samples_ms[rank - 1];
}

static rnl_exit measure(rnl_job *job, rnl_bench *bench)
{
    bench->sample_count = job->options.repeat;
    bench->samples_ms = calloc(bench->sample_count, sizeof *bench->samples_ms);
    if (!bench->samples_ms)
        return rnl_cli_fail("out of memory");
    rnl_exit code = sample(job, bench);
    if (code != RNL_EXIT_DONE)
        return code;
    summarise(bench);
    printf("run ms: median %.3f, min %.3f, p90 %.3f; %.2f runs/s (%zu samples, %zu runs)\n", bench->median_ms,
           bench->min_ms, bench->p90_ms, 1e3 / bench->median_ms, bench->sample_count, bench->run_count);
    rnl_job_trace_print(job, bench);
    fflush(stdout);
    return RNL_EXIT_DONE;
}

static rnl_exit measure_layers(rnl_job *job, rnl_bench *bench)
{
    rnl_exit code = rnl_bench_find_peak(job->device, &bench->peak);
    if (code == RNL_EXIT_DONE)
        code = rnl_bench_profile(job, bench);
    if (code == RNL_EXIT_DONE)
        rnl_bench_print_layers(job, bench, stdout);
    return code;
}

static rnl_exit run_bench(rnl_job *job, rnl_bench *bench)
{
    rnl_exit code = rnl_job_trace_begin(job, true);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_load(job, false);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_read_inputs(job);
    if (code == RNL_EXIT_DONE && job->options.pipeline)
        code = rnl_bench_pipeline(job);
    if (job->options.pipeline)
        return code == RNL_EXIT_DONE ? rnl_job_trace_end(job) : code;
    if (code == RNL_EXIT_DONE)
        code = rnl_job_open(job, stdout);
    if (code == RNL_EXIT_DONE && job->options.tune)
        code = rnl_tune_job(job);
    if (code == RNL_EXIT_DONE)
        code = measure(job, bench);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_trace_end(job);
    if (code == RNL_EXIT_DONE && job->options.report)
        code = rnl_precision_report(job, stdout);
    if (code == RNL_EXIT_DONE && job->options.streams)
        code = rnl_bench_measure_streams(job, bench);
    rnl_console_clear();
    if (code == RNL_EXIT_DONE && job->options.layers)
        code = measure_layers(job, bench);
    if (code == RNL_EXIT_DONE && job->options.json)
        code = rnl_bench_write_json(job, bench);
    return code;
}

rnl_exit rnl_cli_bench(int argc, char **argv)
{
    rnl_job job = {0};
    rnl_bench bench = {0};
    rnl_exit code = rnl_run_options_parse(argc, argv, &job.options);
    if (code == RNL_EXIT_DONE && job.options.help) {
        fputs(rnl_cli_help("bench"), stdout);
        rnl_subject_print_list("bench", stdout);
    } else if (code == RNL_EXIT_DONE) {
        rnl_console_open(job.options.verbose);
        const char *list = rnl_several_list(&job.options);
        code = list ? rnl_bench_several(&job, list) : run_bench(&job, &bench);
    }
    free(bench.samples_ms);
    free(bench.layers);
    free(bench.totals);
    rnl_job_free(&job);
    return code;
}
