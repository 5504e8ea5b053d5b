/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runnel bench MODEL --device gpu,cpu: each device alone and all together, with many requests under way, and with one
 * batch that is split.
 */
#include "bench.h"
#include "flow.h"
#include "info.h"
#include "progress.h"
#include "subject.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLE_NS 50e6
#define REQUESTS_A_DEVICE 4

typedef struct load load;

typedef struct request {
    load *of;
    rnl_tensor *outputs;
} request;

struct load {
    rnl_job *job;
    rnl_multi *multi;
    request *requests;
    rnl_flow flow;
};

static rnl_status submit(rnl_flow_run *run)
{
    request *it = run->subject;
    rnl_job *job = it->of->job;
    return rnl_multi_submit(it->of->multi, job->inputs.tensors, job->inputs.count, it->outputs, job->output_count,
                            rnl_flow_complete, run, NULL);
}

static rnl_exit sample_requests(load *all, double least_ns, double *out_ms)
{
    if (rnl_flow_sample(&all->flow, least_ns, out_ms))
        return RNL_EXIT_DONE;
    return rnl_cli_fail("%s\nrunning %zu requests of %s at a time", all->flow.failure.message, all->flow.count,
                        all->job->options.model);
}

/* One batch after the other. */
static rnl_exit sample_batches(load *all, double least_ns, double *out_ms)
{
    rnl_job *job = all->job;
    const uint64_t start = rnl_now_ns();
    size_t runs = 0;
    do {
        if (rnl_multi_run_split(all->multi, job->inputs.tensors, job->inputs.count, all->requests[0].outputs,
                                job->output_count) != RNL_OK)
            return rnl_cli_fail_library("running %s", job->options.model);
        runs++;
    } while ((double)(rnl_now_ns() - start) < least_ns);
    *out_ms = (double)(rnl_now_ns() - start) * 1e-6 / (double)runs;
    return RNL_EXIT_DONE;
}

typedef rnl_exit (*sample_fn)(load *all, double least_ns, double *out_ms);

static rnl_exit measure(load *all, sample_fn sample, double *out_ms)
{
    const rnl_run_options *options = &all->job->options;
    const double share = options->seconds * 1e9 / (double)options->repeat;
    double *samples = calloc((size_t)options->repeat, sizeof *samples), ms = 0;
    if (!samples)
        return rnl_cli_fail("out of memory");
    rnl_exit code = sample(all, 0, &ms); /* plans, and measures the devices */
    rnl_console_clear();
    if (code == RNL_EXIT_DONE && options->warm_seconds > 0)
        code = sample(all, options->warm_seconds * 1e9, &ms);
    for (size_t i = 0; code == RNL_EXIT_DONE && i < options->repeat; i++)
        code = sample(all, share > SAMPLE_NS ? share : SAMPLE_NS, &samples[i]);
    rnl_bench_sort(samples, (size_t)options->repeat);
    *out_ms = rnl_bench_median(samples, (size_t)options->repeat);
    free(samples);
    return code;
}

/* ---- Some of the devices -------------------------------------------------------------------------------------- */

typedef struct result {
    double request_ms, batch_ms; /* batch_ms 0: batches are not split */
    double traced_ms;            /* of a request, recorded; 0: none was */
    rnl_multi_device state[RNL_MULTI_MAX_DEVICES];
} result;

static rnl_exit open_load(load *all, rnl_device *const *devices, size_t count, size_t requests, rnl_trace *trace)
{
    rnl_job *job = all->job;
    rnl_model_options model_options = RNL_MODEL_OPTIONS_INIT;
    rnl_multi_options options = RNL_MULTI_OPTIONS_INIT;
    model_options.progress = rnl_console_progress;
    model_options.precision = job->options.precision;
    model_options.deterministic = job->options.deterministic;
    options.model = &model_options;
    options.trace = trace;
    all->requests = calloc(requests, sizeof *all->requests);
    if (!rnl_flow_open(&all->flow, requests, submit) || !all->requests)
        return rnl_cli_fail("out of memory");
    for (size_t i = 0; i < requests; i++) {
        request *it = all->flow.run[i].subject = &all->requests[i];
        *it = (request){all, calloc(job->output_count + 1, sizeof(rnl_tensor))};
        if (!it->outputs)
            return rnl_cli_fail("out of memory");
        for (size_t j = 0; j < job->output_count; j++)
            it->outputs[j].name = job->output_infos[j].name;
    }
    if (rnl_multi_open(job->graph, devices, count, &options, &all->multi) != RNL_OK)
        return rnl_cli_fail_library("opening %s", job->options.model);
    return RNL_EXIT_DONE;
}

static void close_load(load *all)
{
    rnl_multi_release(all->multi);
    for (size_t i = 0; all->requests && i < all->flow.count; i++) {
        for (size_t j = 0; all->requests[i].outputs && j < all->job->output_count; j++)
            rnl_output_release(all->requests[i].outputs[j].data);
        free(all->requests[i].outputs);
    }
    free(all->requests);
    rnl_flow_close(&all->flow);
}

/* Some more requests, as many at a time, and some more batches, recorded. */
static rnl_exit trace_on(load *all, result *measured)
{
    const double most = (double)all->job->options.repeat * 1e6;
    double batch_ms = 0;
    rnl_job_trace(all->job, true);
    rnl_exit code = sample_requests(all, 0, &measured->traced_ms); /* makes the tracks */
    if (code == RNL_EXIT_DONE)
        code = sample_requests(all, most * measured->request_ms, &measured->traced_ms);
    if (code == RNL_EXIT_DONE && measured->batch_ms > 0)
        code = sample_batches(all, most * measured->batch_ms, &batch_ms);
    rnl_job_trace(all->job, false);
    return code;
}

static rnl_exit measure_on(rnl_job *job, rnl_device *const *devices, size_t count, result *out_result)
{
    rnl_trace *trace = count == job->several.count ? job->trace : NULL; /* of all together */
    const uint64_t streams = job->options.streams ? job->options.streams : REQUESTS_A_DEVICE * count;
    load all = {.job = job};
    rnl_job_trace(job, trace);
    rnl_exit code = open_load(&all, devices, count, (size_t)streams, trace);
    rnl_job_trace(job, false);
    if (code == RNL_EXIT_DONE)
        code = measure(&all, sample_requests, &out_result->request_ms);
    if (code == RNL_EXIT_DONE && job->several.is_split)
        code = measure(&all, sample_batches, &out_result->batch_ms);
    if (code == RNL_EXIT_DONE && trace)
        code = trace_on(&all, out_result);
    if (code == RNL_EXIT_DONE)
        rnl_multi_get_devices(all.multi, out_result->state, RNL_MULTI_MAX_DEVICES);
    close_load(&all);
    return code;
}

/* ---- Saying it ------------------------------------------------------------------------------------------------ */

static void print_result(const rnl_job *job, const result *of, const char *who)
{
    const double rows = job->several.is_split ? (double)job->inputs.tensors[0].shape[0] : 0;
    printf("%s: %.2f requests/s", who, 1e3 / of->request_ms);
    if (of->batch_ms > 0)
        printf("; a batch of %.0f rows in %.3f ms, %.2f rows/s", rows, of->batch_ms, rows * 1e3 / of->batch_ms);
    printf("\n");
    fflush(stdout);
}

static void print_together(const rnl_job *job, const result *alone, const result *together)
{
    const rnl_several *several = &job->several;
    double request_ms = alone[0].request_ms, batch_ms = alone[0].batch_ms;
    char name[RNL_CLI_NAME_BYTES + 96];
    for (size_t i = 1; i < several->count; i++) {
        request_ms = alone[i].request_ms < request_ms ? alone[i].request_ms : request_ms;
        batch_ms = alone[i].batch_ms < batch_ms ? alone[i].batch_ms : batch_ms;
    }
    print_result(job, together, "together");
    printf("that is %.2f times the fastest one's requests", request_ms / together->request_ms);
    if (several->is_split)
        printf(", and %.2f times its batches", batch_ms / together->batch_ms);
    printf("\n");
    if (together->traced_ms > 0)
        printf("traced: %.2f requests/s, %.3f of those without\n", 1e3 / together->traced_ms,
               together->request_ms / together->traced_ms);
    for (size_t i = 0; i < several->count; i++) {
        rnl_several_name(several->devices[i], name, sizeof name);
        printf("  %s: %llu runs", name, (unsigned long long)together->state[i].requests);
        if (several->is_split)
            printf(", %zu rows of the batch", together->state[i].share);
        printf("%s\n", together->state[i].is_lost ? ", lost" : "");
    }
    fflush(stdout);
}

static json_t *describe(const rnl_job *job, const result *of)
{
    json_t *row = json_pack("{s:f}", "requests_per_s", 1e3 / of->request_ms);
    if (row && job->several.is_split) {
        const double rows = (double)job->inputs.tensors[0].shape[0];
        json_object_set_new(row, "batch_ms", json_real(of->batch_ms));
        json_object_set_new(row, "rows_per_s", json_real(rows * 1e3 / of->batch_ms));
    }
    return row;
}

static rnl_exit write_json(const rnl_job *job, const result *alone, const result *together)
{
    char clean[RNL_CLI_NAME_BYTES], name[RNL_CLI_NAME_BYTES + 96];
    json_t *root = describe(job, together), *rows = json_array();
    for (size_t i = 0; i < job->several.count; i++) {
        json_t *row = describe(job, &alone[i]);
        rnl_several_name(job->several.devices[i], name, sizeof name);
        json_object_set_new(row, "device", rnl_json_text(name));
        json_object_set_new(row, "share", json_integer((json_int_t)together->state[i].share));
        json_object_set_new(row, "runs_together", json_integer((json_int_t)together->state[i].requests));
        json_array_append_new(rows, row);
    }
    json_object_set_new(root, "model", rnl_json_text(job->options.model));
    json_object_set_new(root, "devices", rows);
    const bool written = root && json_dump_file(root, job->options.json, JSON_INDENT(1)) == 0;
    json_decref(root);
    return written ? RNL_EXIT_DONE
                   : rnl_cli_fail("%s: cannot be written", rnl_cli_clean(job->options.json, clean, sizeof clean));
}

static rnl_exit measure_all(rnl_job *job, result *results)
{
    rnl_several *several = &job->several;
    result *together = &results[several->count];
    char name[RNL_CLI_NAME_BYTES + 96];
    rnl_exit code = RNL_EXIT_DONE;
    for (size_t i = 0; i < several->count && code == RNL_EXIT_DONE; i++) {
        code = measure_on(job, &several->devices[i], 1, &results[i]);
        rnl_several_name(several->devices[i], name, sizeof name);
        if (code == RNL_EXIT_DONE)
            print_result(job, &results[i], name);
    }
    if (code == RNL_EXIT_DONE)
        code = measure_on(job, several->devices, several->count, together);
    if (code == RNL_EXIT_DONE)
        print_together(job, results, together);
    if (code == RNL_EXIT_DONE && job->options.json)
        code = write_json(job, results, together);
    return code;
}

rnl_exit rnl_bench_several(rnl_job *job, const char *list)
{
    rnl_exit code = rnl_several_check(&job->options);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_trace_begin(job, true);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_load(job, false);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_read_inputs(job);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_open_several(job, list, stdout);
    if (code != RNL_EXIT_DONE)
        return code;
    rnl_multi_release(job->several.multi); /* it has said whether batches are split */
    job->several.multi = NULL;
    result *results = calloc(job->several.count + 1, sizeof *results);
    code = results ? measure_all(job, results) : rnl_cli_fail("out of memory");
    free(results);
    return code == RNL_EXIT_DONE ? rnl_job_trace_end(job) : code;
}
