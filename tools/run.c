/* SPDX-License-Identifier: Apache-2.0 */
/* runnel run: load, check what can be checked without a device, open, run, report, write. */
#include "job.h"
#include "outputs.h"
#include "precision.h"
#include "progress.h"
#include "trace.h"

#include <stdlib.h>

static rnl_exit prepare(rnl_job *j, rnl_labels *labels)
{
    rnl_run_options *options = &j->options;
    rnl_exit code = rnl_job_trace_begin(j, false);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_load(j, false);
    if (code == RNL_EXIT_DONE && options->output_folder)
        code = rnl_outputs_check_folder(options->output_folder, j->output_infos, j->output_count);
    if (code == RNL_EXIT_DONE && options->labels)
        code = rnl_labels_read(options->labels, labels);
    return code == RNL_EXIT_DONE ? rnl_job_read_inputs(j) : code;
}

static int compare_times(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Median: the middle one, or the mean of the middle two. p95: the smallest that at least 95% do not exceed. */
static void print_latency(double *times, size_t count)
{
    qsort(times, count, sizeof *times, compare_times);
    double median = (times[(count - 1) / 2] + times[count / 2]) / 2;
    size_t rank = (count * 95 + 99) / 100;
    printf("latency ms: min %.3f, median %.3f, p95 %.3f\n", times[0], median, times[rank - 1]);
}

/* The first run plans, and its outputs are the same as the others': what is reported is the last one's. */
static rnl_exit run_all(rnl_job *j, double *times)
{
    double first_ms;
    rnl_exit code = rnl_job_run(j, &first_ms);
    rnl_console_clear();
    for (size_t i = 0; code == RNL_EXIT_DONE && i < j->options.repeat; i++)
        code = rnl_job_run(j, &times[i]);
    return code;
}

static rnl_exit report(rnl_job *j, const rnl_labels *labels, double *times)
{
    rnl_exit code = RNL_EXIT_DONE;
    for (size_t i = 0; i < j->output_count; i++)
        rnl_outputs_print(&j->outputs[i], stdout);
    if (j->options.top && j->output_count)
        code = rnl_outputs_print_top(&j->outputs[0], j->options.top, labels, stdout);
    if (j->options.repeat)
        print_latency(times, j->options.repeat);
    if (j->several.multi)
        rnl_several_print(&j->several, stdout);
    fflush(stdout);
    if (code == RNL_EXIT_DONE && j->options.report)
        code = rnl_precision_report(j, stdout);
    if (code == RNL_EXIT_DONE && j->options.output_folder)
        code = rnl_outputs_save(j->options.output_folder, j->outputs, j->output_count);
    return code;
}

static void print_statistics(const rnl_job *j)
{
    if (j->several.multi)
        return; /* what each device has done stands among the results */
    rnl_model_stats model;
    rnl_session_stats session;
    rnl_device_stats device;
    rnl_model_get_stats(j->model, &model);
    rnl_session_get_stats(j->session, &session);
    rnl_device_get_stats(j->device, &device);
    fprintf(stderr,
            "runnel: model: weights %zu bytes, %zu plans of %zu bytes (%llu built, last in %.3f ms), %zu programs\n",
            model.weight_bytes, model.plan_count, model.plan_bytes, (unsigned long long)model.plans_built,
            (double)model.last_plan_ns * 1e-6, model.program_count);
    fprintf(stderr, "runnel: session: arena %zu bytes, %zu used by the largest plan, %zu steps\n", session.arena_bytes,
            session.arena_peak_bytes, session.step_count);
    if (session.weight_ring_bytes > 0)
        fprintf(stderr, "runnel: session: weights pass through %zu bytes of device memory\n",
                session.weight_ring_bytes);
    fprintf(stderr,
            "runnel: device: %llu programs compiled, %llu from the cache, %llu kernels launched, "
            "memory in use %zu, peak %zu, reserved %zu of at most %zu bytes\n",
            (unsigned long long)device.programs_compiled, (unsigned long long)device.programs_loaded,
            (unsigned long long)device.kernels_launched, device.pool_in_use_bytes, device.pool_peak_bytes,
            device.pool_reserved_bytes, device.pool_budget_bytes);
}

static rnl_exit run_job(rnl_job *j)
{
    rnl_labels labels = {0};
    const char *list = rnl_several_list(&j->options);
    double *times = calloc(j->options.repeat + 1, sizeof *times);
    rnl_exit code = list ? rnl_several_check(&j->options) : RNL_EXIT_DONE;
    if (code == RNL_EXIT_DONE)
        code = times ? prepare(j, &labels) : rnl_cli_fail("out of memory");
    if (code == RNL_EXIT_DONE && j->options.pipeline)
        code = rnl_job_open_piped(j, stdout);
    else if (code == RNL_EXIT_DONE)
        code = list ? rnl_job_open_several(j, list, stdout) : rnl_job_open(j, stdout);
    if (code == RNL_EXIT_DONE)
        code = run_all(j, times);
    rnl_console_clear();
    if (code == RNL_EXIT_DONE)
        code = rnl_job_trace_end(j);
    if (code == RNL_EXIT_DONE)
        code = report(j, &labels, times);
    if (code == RNL_EXIT_DONE && j->options.verbose && !j->options.pipeline)
        print_statistics(j);
    rnl_labels_free(&labels);
    free(times);
    return code;
}

rnl_exit rnl_cli_run(int argc, char **argv)
{
    rnl_job j = {0};
    rnl_exit code = rnl_run_options_parse(argc, argv, &j.options);
    if (code == RNL_EXIT_DONE && j.options.help) {
        fputs(rnl_cli_help("run"), stdout);
    } else if (code == RNL_EXIT_DONE) {
        rnl_console_open(j.options.verbose);
        code = run_job(&j);
    }
    rnl_job_free(&j);
    return code;
}
