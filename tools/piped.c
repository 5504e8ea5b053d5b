/* SPDX-License-Identifier: Apache-2.0 */
#include "piped.h"
#include "device.h"
#include "job.h"
#include "progress.h"

#include <runnel/multi.h>

rnl_exit rnl_job_open_devices(struct rnl_job *job, FILE *out)
{
    rnl_piped *piped = &job->piped;
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    char name[RNL_CLI_NAME_BYTES];
    options.compute_units = (uint32_t)job->options.threads;
    options.memory_fraction = job->options.memory;
    if (rnl_multi_open_devices(job->options.device ? job->options.device : "all", &options, piped->devices,
                               RNL_PIPELINE_MOST_DEVICES, &piped->device_count) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    for (size_t i = 0; i < piped->device_count; i++) {
        const rnl_device_info *info = rnl_device_get_info(piped->devices[i]);
        fprintf(out, "device: %s (%s)\n", info->name, rnl_cli_device_name(info, name, sizeof name));
    }
    rnl_inputs_print(&job->inputs, out);
    fflush(out);
    return RNL_EXIT_DONE;
}

rnl_exit rnl_job_open_pipeline(struct rnl_job *job, size_t count)
{
    rnl_model_options model_options = RNL_MODEL_OPTIONS_INIT;
    rnl_pipeline_options options = RNL_PIPELINE_OPTIONS_INIT;
    model_options.progress = rnl_console_progress;
    model_options.precision = job->options.precision;
    model_options.deterministic = job->options.deterministic;
    options.model = &model_options;
    options.trace = job->trace;
    options.depth = (uint32_t)job->options.depth;
    options.inputs = job->inputs.tensors;
    options.input_count = job->inputs.count;
    if (rnl_pipeline_create(job->graph, job->piped.devices, count, &options, &job->piped.pipeline) != RNL_OK)
        return rnl_cli_fail_library("opening %s", job->options.model);
    rnl_console_clear();
    return RNL_EXIT_DONE;
}

void rnl_piped_print_stages(const rnl_piped *piped, FILE *out)
{
    rnl_pipeline_stage stages[RNL_PIPELINE_MOST_DEVICES];
    char name[RNL_CLI_NAME_BYTES], spec[RNL_DEVICE_SPEC_BYTES];
    const size_t count = rnl_pipeline_get_stages(piped->pipeline, stages, RNL_PIPELINE_MOST_DEVICES);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "stage %zu on %s: %zu nodes from '%s' on, %.1f MiB of weights, %.3f MiB come in, %.3f ms %s\n", i,
                rnl_device_spec(piped->devices[stages[i].device], spec), stages[i].node_count,
                rnl_cli_clean(stages[i].first_name, name, sizeof name), (double)stages[i].weight_bytes / 0x1p20,
                (double)stages[i].crossing_bytes / 0x1p20, stages[i].expected_ns * 1e-6,
                stages[i].is_measured ? "measured" : "estimated");
    }
    fflush(out);
}

rnl_exit rnl_job_open_piped(struct rnl_job *job, FILE *out)
{
    rnl_exit code = rnl_job_open_devices(job, out);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_open_pipeline(job, job->piped.device_count);
    if (code == RNL_EXIT_DONE)
        rnl_piped_print_stages(&job->piped, out);
    return code;
}

void rnl_piped_free(rnl_piped *piped)
{
    rnl_pipeline_release(piped->pipeline);
    for (size_t i = 0; i < piped->device_count; i++)
        rnl_device_release(piped->devices[i]);
    *piped = (rnl_piped){0};
}
