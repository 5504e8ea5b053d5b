/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "info.h"

#include <errno.h>
#include <string.h>

static json_t *describe_layer(const rnl_bench_layer *layer)
{
    const rnl_step_profile *step = &layer->step;
    return json_pack("{s:I, s:o, s:o, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:I, s:I, s:f, s:s, s:b}", "step",
                     (json_int_t)layer->index, "node", rnl_json_text(step->node), "operator",
                     rnl_json_text(step->op_type), "also", step->also, "implementation", step->implementation, "file",
                     step->file, "kernel", step->kernel, "ms", layer->ms, "min_ms", layer->min_ms, "share",
                     layer->share, "flops", (json_int_t)step->flops, "bytes", (json_int_t)step->bytes, "reached",
                     layer->reached, "bound", layer->compute_bound ? "flops" : "bytes", "device_clock",
                     (int)step->device_clock);
}

static json_t *describe_layers(const rnl_bench *bench)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < bench->layer_count; i++)
        json_array_append_new(rows, describe_layer(&bench->layers[i]));
    return rows;
}

static json_t *describe_totals(const rnl_bench *bench)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < bench->total_count; i++) {
        const rnl_bench_total *total = &bench->totals[i];
        json_array_append_new(rows,
                              json_pack("{s:s, s:o, s:I, s:f, s:f, s:f}", "implementation", total->implementation,
                                        "operator", rnl_json_text(total->op_type), "steps", (json_int_t)total->count,
                                        "ms", total->ms, "share", total->share, "reached", total->reached));
    }
    return rows;
}

static json_t *describe(const rnl_job *job, const rnl_bench *bench)
{
    const rnl_device_info *device = rnl_device_get_info(job->device);
    json_t *samples = json_array();
    for (size_t i = 0; i < bench->sample_count; i++)
        json_array_append_new(samples, json_real(bench->samples_ms[i]));
    json_t *root =
        json_pack("{s:o, s:o, s:I, s:f, s:f, s:f, s:f, s:I, s:o}", "model", rnl_json_text(job->options.model), "device",
                  rnl_json_text(device->name), "compute_units", (json_int_t)device->compute_units, "median_ms",
                  bench->median_ms, "min_ms", bench->min_ms, "p90_ms", bench->p90_ms, "runs_per_s",
                  1e3 / bench->median_ms, "runs", (json_int_t)bench->run_count, "samples_ms", samples);
    if (root && job->options.streams)
        json_object_set_new(root, "streams",
                            json_pack("{s:I, s:f, s:f}", "sessions", (json_int_t)job->options.streams, "run_ms",
                                      bench->streams_ms, "runs_per_s", 1e3 / bench->streams_ms));
    if (root && job->options.layers) {
        json_object_set_new(
            root, "peak",
            json_pack("{s:f, s:f}", "flops_per_s", bench->peak.flops_per_s, "bytes_per_s", bench->peak.bytes_per_s));
        json_object_set_new(root, "layers_ms", json_real(bench->layers_ms));
        json_object_set_new(root, "layers_min_ms", json_real(bench->layers_min_ms));
        json_object_set_new(root, "layers", describe_layers(bench));
        json_object_set_new(root, "totals", describe_totals(bench));
    }
    return root;
}

rnl_exit rnl_bench_write_json(const rnl_job *job, const rnl_bench *bench)
{
    return rnl_bench_write_root(job, describe(job, bench));
}

rnl_exit rnl_bench_write_root(const rnl_job *job, json_t *root)
{
    char clean[RNL_CLI_NAME_BYTES];
    if (!root)
        return rnl_cli_fail("out of memory");
    FILE *file = fopen(job->options.json, "w");
    bool written = file && json_dumpf(root, file, JSON_INDENT(1)) == 0 && fputc('\n', file) != EOF;
    int code = errno;
    if (file && fclose(file) != 0 && written) {
        code = errno;
        written = false;
    }
    json_decref(root);
    rnl_cli_clean(job->options.json, clean, sizeof clean);
    return written ? RNL_EXIT_DONE : rnl_cli_fail("%s: %s", clean, strerror(code));
}
