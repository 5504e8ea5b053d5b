/* SPDX-License-Identifier: Apache-2.0 */
/* runnel quantize: check what can be checked, run the model for its ranges, quantise, measure what that costs, write.
 */
#include "quantize.h"
#include "device.h"
#include "progress.h"

#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- models ---------------------------------------------------------------------------------------------------- */

rnl_exit rnl_built_open(rnl_quantizing *job, rnl_quantizer_form form, size_t only, rnl_built *out)
{
    rnl_model_options options = RNL_MODEL_OPTIONS_INIT;
    size_t bytes;
    options.progress = rnl_console_progress;
    *out = (rnl_built){0};
    if (rnl_quantizer_build(job->quantizer, form, only, &out->data, &bytes) != RNL_OK ||
        rnl_graph_load_memory(out->data, bytes, &out->graph) != RNL_OK ||
        rnl_model_open(out->graph, job->device, &options, &out->model) != RNL_OK ||
        rnl_session_create(out->model, &out->session) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    rnl_graph_outputs(out->graph, &out->output_count);
    out->outputs = calloc(out->output_count + 1, sizeof *out->outputs);
    return out->outputs ? RNL_EXIT_DONE : rnl_cli_fail("out of memory");
}

rnl_exit rnl_built_run(rnl_quantizing *job, rnl_built *built, size_t wanted)
{
    const rnl_value_info *infos = rnl_graph_outputs(built->graph, &built->output_count);
    const size_t count = wanted < built->output_count ? wanted : built->output_count;
    const rnl_input_set *set = &job->calibration.set;
    for (size_t i = 0; i < count; i++)
        built->outputs[i] = (rnl_tensor){.name = infos[i].name};
    if (rnl_session_run(built->session, set->tensors, set->count, built->outputs, count) != RNL_OK)
        return rnl_cli_fail_library("running %s", job->options.model);
    return RNL_EXIT_DONE;
}

void rnl_built_free(rnl_built *built)
{
    rnl_session_release(built->session);
    rnl_model_release(built->model);
    rnl_graph_release(built->graph);
    rnl_quantizer_free(built->data);
    free(built->outputs);
    *built = (rnl_built){0};
}

/* ---- ranges ---------------------------------------------------------------------------------------------------- */

typedef rnl_status (*look_fn)(rnl_quantizer *quantizer, const rnl_tensor *tensors, size_t count);

static rnl_exit look_at_all(rnl_quantizing *job, look_fn look, const char *what)
{
    rnl_calibration *calibration = &job->calibration;
    for (size_t i = 0; i < calibration->set_count; i++) {
        rnl_console_step(what, i, calibration->set_count);
        rnl_exit code = rnl_calibration_read(calibration, i);
        if (code == RNL_EXIT_DONE)
            code = rnl_built_run(job, &job->plain, SIZE_MAX);
        if (code != RNL_EXIT_DONE)
            return code;
        if (look(job->quantizer, calibration->set.tensors, calibration->set.count) != RNL_OK ||
            look(job->quantizer, job->plain.outputs, job->plain.output_count) != RNL_OK)
            return rnl_cli_fail_library("running on %s", rnl_calibration_name(calibration, i));
    }
    return RNL_EXIT_DONE;
}

static rnl_exit find_ranges(rnl_quantizing *job)
{
    rnl_exit code = rnl_built_open(job, RNL_QUANTIZER_FLOAT, RNL_QUANTIZER_ALL, &job->plain);
    if (code == RNL_EXIT_DONE)
        code = look_at_all(job, rnl_quantizer_observe, "calibrating");
    if (code == RNL_EXIT_DONE && job->options.ranges != RNL_RANGES_MIN_MAX)
        code = look_at_all(job, rnl_quantizer_count, "counting");
    return code;
}

/* ---- before ---------------------------------------------------------------------------------------------------- */

/* "model.onnx" becomes "model-int8.onnx". */
static rnl_exit settle_output(rnl_quantizing *job, char **out_path)
{
    const char *model = job->options.model, *given = job->options.output_folder;
    const size_t length = strlen(model);
    const bool plain = length > 5 && strcmp(model + length - 5, ".onnx") == 0;
    char *path = malloc((given ? strlen(given) : length) + 16);
    *out_path = path;
    if (!path)
        return rnl_cli_fail("out of memory");
    if (given)
        strcpy(path, given);
    else
        sprintf(path, "%.*s-int8.onnx", (int)(plain ? length - 5 : length), model);
    return RNL_EXIT_DONE;
}

static rnl_exit check_output(const rnl_quantizing *job, const char *path)
{
    struct stat model, output;
    char *copy = strdup(path);
    const char *folder = copy ? dirname(copy) : ".";
    rnl_exit code = RNL_EXIT_DONE;
    if (stat(path, &output) == 0 && S_ISDIR(output.st_mode))
        code = rnl_cli_fail("output %s: is a folder", path);
    else if (stat(path, &output) == 0 && stat(job->options.model, &model) == 0 && output.st_dev == model.st_dev &&
             output.st_ino == model.st_ino)
        code = rnl_cli_fail("output %s is the model itself", path);
    else if (access(folder, W_OK | X_OK) != 0)
        code = rnl_cli_fail("output %s: %s: %s", path, folder, strerror(errno));
    free(copy);
    return code;
}

static rnl_exit keep_named(rnl_quantizing *job)
{
    char clean[RNL_CLI_NAME_BYTES];
    for (size_t i = 0; i < job->options.keep_count; i++) {
        bool found = false;
        for (size_t j = 0; j < job->layer_count; j++)
            if (strcmp(job->layers[j].name, job->options.keep[i]) == 0) {
                rnl_quantizer_keep(job->quantizer, j, true);
                found = true;
            }
        if (!found)
            return rnl_cli_fail("--keep %s: no layer that can be quantised has this name",
                                rnl_cli_clean(job->options.keep[i], clean, sizeof clean));
    }
    return RNL_EXIT_DONE;
}

static rnl_exit prepare(rnl_quantizing *job)
{
    rnl_quantizer_options options = RNL_QUANTIZER_OPTIONS_INIT;
    options.ranges = (rnl_quantizer_ranges)job->options.ranges;
    options.percentile = job->options.percentile;
    options.signed_activations = job->options.signed_activations;
    if (rnl_graph_load(job->options.model, &job->graph) != RNL_OK ||
        rnl_quantizer_open(job->options.model, &options, &job->quantizer) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    rnl_graph_outputs(job->graph, &job->own_count);
    job->layers = rnl_quantizer_layers(job->quantizer, &job->layer_count);
    const rnl_device_wish wish = {job->options.device, job->options.threads, job->options.memory, false};
    rnl_exit code = keep_named(job);
    if (code == RNL_EXIT_DONE)
        code = rnl_calibration_find(job->graph, &job->options, &job->calibration);
    if (code == RNL_EXIT_DONE && rnl_cli_device_open(&wish, &job->device) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    return code;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static rnl_exit write_model(rnl_quantizing *job, const char *path)
{
    struct stat before = {0}, after = {0};
    if (rnl_quantizer_write(job->quantizer, path) != RNL_OK)
        return rnl_cli_fail_library("%s", "");
    const bool known = stat(job->options.model, &before) == 0 && stat(path, &after) == 0;
    if (known)
        printf("written: %s, %.2f MiB; the model has %.2f MiB\n", path, (double)after.st_size / 1048576,
               (double)before.st_size / 1048576);
    return RNL_EXIT_DONE;
}

static rnl_exit quantise(rnl_quantizing *job)
{
    char *path = NULL;
    rnl_exit code = settle_output(job, &path);
    if (code == RNL_EXIT_DONE)
        code = prepare(job);
    if (code == RNL_EXIT_DONE)
        code = check_output(job, path);
    if (code == RNL_EXIT_DONE) {
        const rnl_device_info *info = rnl_device_get_info(job->device);
        printf("device: %s (%u:%u)\n", info->name, info->platform_index, info->device_index);
        code = find_ranges(job);
    }
    if (code == RNL_EXIT_DONE)
        code = rnl_cost_limit(job);
    rnl_console_clear();
    if (code == RNL_EXIT_DONE) {
        rnl_cost_print(job, stdout);
        code = write_model(job, path);
    }
    free(path);
    return code;
}

rnl_exit rnl_cli_quantize(int argc, char **argv)
{
    rnl_quantizing job = {0};
    rnl_exit code = rnl_run_options_parse(argc, argv, &job.options);
    if (code == RNL_EXIT_DONE && job.options.help) {
        fputs(rnl_cli_help("quantize"), stdout);
    } else if (code == RNL_EXIT_DONE) {
        signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is a failure to write like another */
        rnl_console_open(job.options.verbose);
        code = quantise(&job);
        rnl_console_clear();
    }
    rnl_built_free(&job.plain);
    rnl_device_release(job.device);
    rnl_calibration_free(&job.calibration);
    rnl_quantizer_release(job.quantizer);
    rnl_graph_release(job.graph);
    free(job.costs);
    rnl_run_options_free(&job.options);
    return code;
}
