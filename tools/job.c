/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "device.h"
#include "progress.h"
#include "trace.h"

#include <runnel/trace.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

rnl_exit rnl_job_load(rnl_job *job, bool exposed)
{
    const uint64_t start = rnl_trace_now();
    rnl_status status = exposed ? rnl_graph_load_exposed(job->options.model, &job->graph, &job->own_count)
                                : rnl_graph_load(job->options.model, &job->graph);
    if (status != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    rnl_job_trace_span(job, "load graph", start);
    job->output_infos = rnl_graph_outputs(job->graph, &job->output_count);
    job->outputs = calloc(job->output_count + 1, sizeof *job->outputs);
    if (!job->outputs)
        return rnl_cli_fail("out of memory");
    return rnl_inputs_bind(job->graph, &job->options, &job->inputs);
}

rnl_exit rnl_job_read_inputs(rnl_job *job)
{
    return rnl_inputs_load(&job->inputs, &job->options);
}

rnl_exit rnl_job_open(rnl_job *job, FILE *out)
{
    rnl_model_options model_options = RNL_MODEL_OPTIONS_INIT;
    model_options.progress = rnl_console_progress;
    model_options.precision = job->options.precision;
    model_options.deterministic = job->options.deterministic;
    model_options.weight_budget_bytes = job->options.weights_budget;
    const char *against = job->options.against;
    const rnl_device_wish wish = {job->options.device, job->options.threads, job->options.memory,
                                  against && strcmp(against, "reference") != 0};
    char name[RNL_CLI_NAME_BYTES];
    if (rnl_cli_device_open(&wish, &job->device) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    const rnl_device_info *info = rnl_device_get_info(job->device);
    fprintf(out, "device: %s (%s)\n", info->name, rnl_cli_device_name(info, name, sizeof name));
    rnl_inputs_print(&job->inputs, out);
    fflush(out);
    const uint64_t start = rnl_trace_now();
    if (rnl_model_open(job->graph, job->device, &model_options, &job->model) != RNL_OK ||
        rnl_session_create(job->model, &job->session) != RNL_OK)
        return rnl_cli_fail_library("opening %s", job->options.model);
    rnl_job_trace_span(job, "open model", start);
    return rnl_job_trace_session(job);
}

rnl_exit rnl_job_open_several(rnl_job *job, const char *list, FILE *out)
{
    rnl_model_options model_options = RNL_MODEL_OPTIONS_INIT;
    rnl_multi_options options = RNL_MULTI_OPTIONS_INIT;
    rnl_exit code = rnl_several_open_devices(list, &job->options, &job->several, out);
    if (code != RNL_EXIT_DONE)
        return code;
    rnl_inputs_print(&job->inputs, out);
    fflush(out);
    model_options.progress = rnl_console_progress;
    model_options.precision = job->options.precision;
    model_options.deterministic = job->options.deterministic;
    options.model = &model_options;
    options.trace = job->trace;
    if (rnl_multi_open(job->graph, job->several.devices, job->several.count, &options, &job->several.multi) != RNL_OK)
        return rnl_cli_fail_library("opening %s", job->options.model);
    job->several.is_split = rnl_multi_check_split(job->several.multi) == RNL_OK && job->inputs.tensors[0].shape[0] > 1;
    return RNL_EXIT_DONE;
}

/* What a pipeline or several devices gave for outputs before is the caller's. */
static void release_outputs(rnl_job *job)
{
    for (size_t i = 0; (job->piped.pipeline || job->several.multi) && i < job->output_count; i++)
        rnl_output_release(job->outputs[i].data);
}

static rnl_status run_once(rnl_job *job)
{
    const rnl_tensor *inputs = job->inputs.tensors;
    const size_t count = job->inputs.count;
    if (job->piped.pipeline)
        return rnl_pipeline_run(job->piped.pipeline, inputs, count, job->outputs, job->output_count);
    if (job->several.is_split)
        return rnl_multi_run_split(job->several.multi, inputs, count, job->outputs, job->output_count);
    if (job->several.multi)
        return rnl_multi_run(job->several.multi, inputs, count, job->outputs, job->output_count);
    return rnl_session_run(job->session, inputs, count, job->outputs, job->output_count);
}

rnl_exit rnl_job_run(rnl_job *job, double *out_ms)
{
    struct timespec start, end;
    release_outputs(job);
    for (size_t i = 0; i < job->output_count; i++)
        job->outputs[i] = (rnl_tensor){.name = job->output_infos[i].name};
    clock_gettime(CLOCK_MONOTONIC, &start);
    rnl_status status = run_once(job);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *out_ms = (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) * 1e-6;
    return status == RNL_OK ? RNL_EXIT_DONE : rnl_cli_fail_library("running %s", job->options.model);
}

void rnl_job_free(rnl_job *job)
{
    rnl_trace_use(NULL);
    release_outputs(job);
    rnl_piped_free(&job->piped);
    rnl_several_free(&job->several);
    rnl_session_release(job->session);
    rnl_model_release(job->model);
    rnl_device_release(job->device);
    rnl_trace_release(job->trace);
    rnl_inputs_free(&job->inputs);
    rnl_graph_release(job->graph);
    free(job->outputs);
    rnl_run_options_free(&job->options);
}
