/* SPDX-License-Identifier: Apache-2.0 */
/* runnel run: load, check what can be checked without a device, open, run, report, write. */
#include "inputs.h"
#include "outputs.h"
#include "progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct job {
    rnl_run_options options;
    rnl_labels labels;
    rnl_graph *graph;
    const rnl_value_info *output_infos;
    rnl_tensor *outputs;
    size_t output_count;
    rnl_input_set inputs;
    rnl_device *device;
    rnl_model *model;
    rnl_session *session;
} job;

static rnl_exit prepare(job *j)
{
    rnl_run_options *options = &j->options;
    if (rnl_graph_load(options->model, &j->graph) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    j->output_infos = rnl_graph_outputs(j->graph, &j->output_count);
    j->outputs = calloc(j->output_count + 1, sizeof *j->outputs);
    if (!j->outputs)
        return rnl_cli_fail("out of memory");
    rnl_exit code = rnl_inputs_bind(j->graph, options, &j->inputs);
    if (code == RNL_EXIT_DONE && options->output_folder)
        code = rnl_outputs_check_folder(options->output_folder, j->output_infos, j->output_count);
    if (code == RNL_EXIT_DONE && options->labels)
        code = rnl_labels_read(options->labels, &j->labels);
    return code == RNL_EXIT_DONE ? rnl_inputs_load(&j->inputs, options) : code;
}

static rnl_exit open_model(job *j)
{
    rnl_device_options device_options = RNL_DEVICE_OPTIONS_INIT;
    rnl_model_options model_options = RNL_MODEL_OPTIONS_INIT;
    device_options.compute_units = (uint32_t)j->options.threads;
    model_options.progress = rnl_console_progress;
    if (rnl_device_open(j->options.device, &device_options, &j->device) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    const rnl_device_info *info = rnl_device_get_info(j->device);
    printf("device: %s (%u:%u)\n", info->name, info->platform_index, info->device_index);
    rnl_inputs_print(&j->inputs, stdout);
    fflush(stdout);
    if (rnl_model_open(j->graph, j->device, &model_options, &j->model) != RNL_OK ||
        rnl_session_create(j->model, &j->session) != RNL_OK)
        return rnl_cli_fail_library("opening %s", j->options.model);
    return RNL_EXIT_DONE;
}

static rnl_exit run_once(job *j, double *out_ms)
{
    struct timespec start, end;
    for (size_t i = 0; i < j->output_count; i++)
        j->outputs[i] = (rnl_tensor){.name = j->output_infos[i].name};
    clock_gettime(CLOCK_MONOTONIC, &start);
    rnl_status status = rnl_session_run(j->session, j->inputs.tensors, j->inputs.count, j->outputs, j->output_count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *out_ms = (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) * 1e-6;
    return status == RNL_OK ? RNL_EXIT_DONE : rnl_cli_fail_library("running %s", j->options.model);
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
static rnl_exit run_all(job *j, double *times)
{
    double first_ms;
    rnl_exit code = run_once(j, &first_ms);
    rnl_console_clear();
    for (size_t i = 0; code == RNL_EXIT_DONE && i < j->options.repeat; i++)
        code = run_once(j, &times[i]);
    return code;
}

static rnl_exit report(job *j, double *times)
{
    rnl_exit code = RNL_EXIT_DONE;
    for (size_t i = 0; i < j->output_count; i++)
        rnl_outputs_print(&j->outputs[i], stdout);
    if (j->options.top && j->output_count)
        code = rnl_outputs_print_top(&j->outputs[0], j->options.top, &j->labels, stdout);
    if (j->options.repeat)
        print_latency(times, j->options.repeat);
    fflush(stdout);
    if (code == RNL_EXIT_DONE && j->options.output_folder)
        code = rnl_outputs_save(j->options.output_folder, j->outputs, j->output_count);
    return code;
}

static void print_statistics(const job *j)
{
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
    fprintf(stderr,
            "runnel: device: %llu programs compiled, %llu from the cache, %llu kernels launched, "
            "memory in use %zu, peak %zu, reserved %zu of at most %zu bytes\n",
            (unsigned long long)device.programs_compiled, (unsigned long long)device.programs_loaded,
            (unsigned long long)device.kernels_launched, device.pool_in_use_bytes, device.pool_peak_bytes,
            device.pool_reserved_bytes, device.pool_budget_bytes);
}

static rnl_exit run_job(job *j)
{
    double *times = calloc(j->options.repeat + 1, sizeof *times);
    rnl_exit code = times ? prepare(j) : rnl_cli_fail("out of memory");
    if (code == RNL_EXIT_DONE)
        code = open_model(j);
    if (code == RNL_EXIT_DONE)
        code = run_all(j, times);
    rnl_console_clear();
    if (code == RNL_EXIT_DONE)
        code = report(j, times);
    if (code == RNL_EXIT_DONE && j->options.verbose)
        print_statistics(j);
    free(times);
    return code;
}

static void free_job(job *j)
{
    rnl_session_release(j->session);
    rnl_model_release(j->model);
    rnl_device_release(j->device);
    rnl_inputs_free(&j->inputs);
    rnl_graph_release(j->graph);
    rnl_labels_free(&j->labels);
    free(j->outputs);
    rnl_run_options_free(&j->options);
}

rnl_exit rnl_cli_run(int argc, char **argv)
{
    job j = {0};
    rnl_exit code = rnl_run_options_parse(argc, argv, &j.options);
    if (code == RNL_EXIT_DONE && j.options.help) {
        fputs(rnl_cli_help("run"), stdout);
    } else if (code == RNL_EXIT_DONE) {
        rnl_console_open(j.options.verbose);
        code = run_job(&j);
    }
    free_job(&j);
    return code;
}
