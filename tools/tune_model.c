/* SPDX-License-Identifier: Apache-2.0 */
/* `runnel tune MODEL`: measures each layer's kernels in their variants and keeps the fastest. Also `bench --tune`. */
#include "tune_model.h"
#include "progress.h"
#include "subject.h"

#include <stdlib.h>

#define RUNS 9

static bool show(void *user, size_t done, size_t total)
{
    (void)user;
    rnl_console_step("tuning run", done, total);
    return true;
}

rnl_exit rnl_tune_job(rnl_job *job)
{
    rnl_tune_options options = RNL_TUNE_OPTIONS_INIT;
    size_t changed = 0;
    options.progress = show;
    rnl_status status = rnl_model_tune(job->model, job->inputs.tensors, job->inputs.count, &options, &changed);
    rnl_console_clear();
    if (status != RNL_OK)
        return rnl_cli_fail_library("tuning for %s", job->options.model);
    printf("tuned: %zu other kernel%s chosen\n", changed, changed == 1 ? "" : "s");
    return RNL_EXIT_DONE;
}

static int compare_times(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* The median; the first run plans and compiles. */
static rnl_exit time_runs(rnl_job *job, double *out_ms)
{
    double times[RUNS];
    rnl_exit code = rnl_job_run(job, &times[0]);
    for (size_t i = 0; code == RNL_EXIT_DONE && i < RUNS; i++)
        code = rnl_job_run(job, &times[i]);
    rnl_console_clear();
    if (code == RNL_EXIT_DONE) {
        qsort(times, RUNS, sizeof *times, compare_times);
        *out_ms = times[RUNS / 2];
    }
    return code;
}

static rnl_exit run_tune(rnl_job *job)
{
    double before = 0, after = 0;
    rnl_exit code = rnl_job_load(job, false);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_read_inputs(job);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_open(job, stdout);
    if (code == RNL_EXIT_DONE)
        code = time_runs(job, &before);
    if (code == RNL_EXIT_DONE)
        code = rnl_tune_job(job);
    if (code == RNL_EXIT_DONE)
        code = time_runs(job, &after);
    if (code == RNL_EXIT_DONE)
        printf("run ms: %.3f before, %.3f after (medians of %d)\n", before, after, RUNS);
    return code;
}

rnl_exit rnl_cli_tune_model(int argc, char **argv)
{
    rnl_job job = {0};
    rnl_exit code = rnl_run_options_parse(argc, argv, &job.options);
    if (code == RNL_EXIT_DONE && job.options.help) {
        fputs(rnl_cli_help("tune"), stdout);
        rnl_subject_print_list("tune", stdout);
    } else if (code == RNL_EXIT_DONE) {
        rnl_console_open(job.options.verbose);
        code = run_tune(&job);
    }
    rnl_job_free(&job);
    return code;
}
