/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"
#include "progress.h"

#include <stdlib.h>
#include <time.h>

rnl_exit rnl_job_load(rnl_job *job, bool exposed)
{
    rnl_status status = exposed ? rnl_graph_load_exposed(job->options.model, &job->graph, &job->own_count)
                                : rnl_graph_load(job->options.model, &job->graph);
    if (status != RNL_OK)
        return rnl_cli_fail_library("%s", "");
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
    rnl_device_options device_options = RNL_DEVICE_OPTIONS_INIT;
    rnl_model_options model_options = RNL_MODEL_OPTIONS_INIT;
    device_options.compute_units = (uint32_t)job->options.threads;
    model_options.progress = rnl_console_progress;
    if (rnl_device_open(job->options.device, &device_options, &job->device) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    const rnl_device_info *info = rnl_device_get_info(job->device);
    fprintf(out, "device: %s (%u:%u)\n", info->name, info->platform_index, info->device_index);
    rnl_inputs_print(&job->inputs, out);
    fflush(out);
    if (rnl_model_open(job->graph, job->device, &model_options, &job->model) != RNL_OK ||
        rnl_session_create(job->model, &job->session) != RNL_OK)
        return rnl_cli_fail_library("opening %s", job->options.model);
    return RNL_EXIT_DONE;
}

rnl_exit rnl_job_run(rnl_job *job, double *out_ms)
{
    struct timespec start, end;
    for (size_t i = 0; i < job->output_count; i++)
        job->outputs[i] = (rnl_tensor){.name = job->output_infos[i].name};
    clock_gettime(CLOCK_MONOTONIC, &start);
    rnl_status status =
        rnl_session_run(job->session, job->inputs.tensors, job->inputs.count, job->outputs, job->output_count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *out_ms = (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) * 1e-6;
    return status == RNL_OK ? RNL_EXIT_DONE : rnl_cli_fail_library("running %s", job->options.model);
}

void rnl_job_free(rnl_job *job)
{
    rnl_session_release(job->session);
    rnl_model_release(job->model);
    rnl_device_release(job->device);
    rnl_inputs_free(&job->inputs);
    rnl_graph_release(job->graph);
    free(job->outputs);
    rnl_run_options_free(&job->options);
}
