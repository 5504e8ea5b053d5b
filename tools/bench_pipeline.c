/* SPDX-License-Identifier: Apache-2.0 */
/* runnel bench MODEL --device A,B --pipeline: batches a second of a pipeline, and of its first device alone. */
#include "bench.h"
#include "info.h"
#include "progress.h"
#include "subject.h"
#include "trace.h"

#include <pthread.h>
#include <stdlib.h>

#define SAMPLE_NS 200e6

/* Batches in a row. A set of outputs is used again when the batch that had it has come through. */
typedef struct flood {
    rnl_job *job;
    rnl_tensor *outputs; /* sets of them */
    size_t set_count, next;
    pthread_mutex_t lock;
    rnl_error failure;                /* the first; status RNL_OK: none */
    uint64_t done, first_ns, last_ns; /* batches, and when the first and the last one came through */
} flood;

/* Of one set-up. */
typedef struct figures {
    double batches_per_s, latency_ms;
    uint64_t batches;
} figures;

static void complete(void *user, const rnl_error *error)
{
    flood *f = user;
    pthread_mutex_lock(&f->lock);
    f->last_ns = rnl_now_ns();
    f->first_ns = f->done == 0 ? f->last_ns : f->first_ns;
    f->done++;
    if (error && f->failure.status == RNL_OK)
        f->failure = *error;
    pthread_mutex_unlock(&f->lock);
}

static bool has_failed(flood *f)
{
    pthread_mutex_lock(&f->lock);
    const bool failed = f->failure.status != RNL_OK;
    pthread_mutex_unlock(&f->lock);
    return failed;
}

/* Memory that a batch got stays its set's. */
static rnl_status submit(flood *f)
{
    rnl_job *job = f->job;
    rnl_tensor *outputs = f->outputs + f->next * job->output_count;
    f->next = (f->next + 1) % f->set_count;
    for (size_t i = 0; i < job->output_count; i++)
        outputs[i].name = job->output_infos[i].name;
    return rnl_pipeline_submit(job->piped.pipeline, job->inputs.tensors, job->inputs.count, outputs, job->output_count,
                               complete, f);
}

/* As many as get through while it lasts, and no fewer than asked for; all of them are waited for. */
static rnl_exit run_for(flood *f, uint64_t least, double least_ns, double *out_ns, uint64_t *out_batches)
{
    const uint64_t start = rnl_now_ns();
    rnl_status status = RNL_OK;
    f->done = 0;
    for (uint64_t i = 0; status == RNL_OK && !has_failed(f); i++) {
        if (i >= least && (double)(rnl_now_ns() - start) >= least_ns)
            break;
        status = submit(f);
    }
    const rnl_error error = *rnl_last_error();
    rnl_pipeline_wait(f->job->piped.pipeline);
    *out_ns = (double)(rnl_now_ns() - start);
    *out_batches = f->done;
    if (has_failed(f))
        return rnl_cli_fail("%s\nrunning %s", f->failure.message, f->job->options.model);
    return status == RNL_OK ? RNL_EXIT_DONE : rnl_cli_fail("%s\nrunning %s", error.message, f->job->options.model);
}

/* Once the pipeline is full: from the first batch that came through to the last. */
static double rate_of(const flood *f, double all_ns)
{
    if (f->done < 2 || f->last_ns == f->first_ns)
        return (double)f->done / all_ns * 1e9;
    return (double)(f->done - 1) / (double)(f->last_ns - f->first_ns) * 1e9;
}

static rnl_exit sample(flood *f, figures *out)
{
    const rnl_run_options *options = &f->job->options;
    const size_t count = options->repeat < 7 ? (size_t)options->repeat : 7;
    const double share = options->seconds * 1e9 / (double)count, least = share > SAMPLE_NS ? share : SAMPLE_NS;
    double rates[7], ns = 0;
    uint64_t batches = 0;
    rnl_exit code = run_for(f, 1, options->warm_seconds * 1e9, &ns, &batches);
    for (size_t i = 0; code == RNL_EXIT_DONE && i < 3; i++) { /* alone, with nothing else under way */
        code = run_for(f, 1, 0, &ns, &batches);
        out->latency_ms = i == 0 || ns * 1e-6 < out->latency_ms ? ns * 1e-6 : out->latency_ms;
    }
    for (size_t i = 0; code == RNL_EXIT_DONE && i < count; i++) {
        code = run_for(f, 1, least, &ns, &batches);
        rates[i] = rate_of(f, ns);
        out->batches += batches;
    }
    if (code == RNL_EXIT_DONE) {
        rnl_bench_sort(rates, count);
        out->batches_per_s = rnl_bench_median(rates, count);
    }
    return code;
}

static void print_figures(const char *what, const figures *f)
{
    printf("%s: %.2f batches/s, one alone %.3f ms (%llu batches)\n", what, f->batches_per_s, f->latency_ms,
           (unsigned long long)f->batches);
    fflush(stdout);
}

/* Some more, recorded. */
static rnl_exit trace_batches(flood *f, const figures *measured)
{
    const uint64_t least = (uint64_t)f->job->options.repeat;
    double ns = 0;
    uint64_t batches = 0;
    rnl_job_trace(f->job, true);
    const rnl_exit code = run_for(f, least, 0, &ns, &batches);
    rnl_job_trace(f->job, false);
    if (code == RNL_EXIT_DONE)
        printf("traced: %.2f batches/s, %.3f of those without\n", rate_of(f, ns),
               rate_of(f, ns) / measured->batches_per_s);
    return code;
}

static rnl_exit measure(rnl_job *job, figures *out, bool is_whole)
{
    const size_t depth = job->options.depth ? (size_t)job->options.depth : 2;
    flood f = {.job = job, .set_count = depth * job->piped.device_count + 1};
    f.outputs = calloc(f.set_count * (job->output_count + 1), sizeof *f.outputs);
    if (!f.outputs)
        return rnl_cli_fail("out of memory");
    pthread_mutex_init(&f.lock, NULL);
    rnl_exit code = sample(&f, out);
    rnl_console_clear();
    if (code == RNL_EXIT_DONE)
        print_figures(is_whole ? "pipeline" : "one device", out);
    if (code == RNL_EXIT_DONE && is_whole && job->trace)
        code = trace_batches(&f, out);
    for (size_t i = 0; i < f.set_count * job->output_count; i++)
        rnl_output_release(f.outputs[i].data);
    pthread_mutex_destroy(&f.lock);
    free(f.outputs);
    return code;
}

static json_t *describe_stages(const rnl_job *job)
{
    rnl_pipeline_stage stages[RNL_PIPELINE_MOST_DEVICES];
    const size_t count = rnl_pipeline_get_stages(job->piped.pipeline, stages, RNL_PIPELINE_MOST_DEVICES);
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++) {
        const rnl_device_info *info = rnl_device_get_info(job->piped.devices[stages[i].device]);
        const double runs = (double)(stages[i].run_count ? stages[i].run_count : 1);
        json_array_append_new(
            rows,
            json_pack("{s:o, s:I, s:I, s:o, s:I, s:I, s:I, s:b, s:f, s:f}", "device", rnl_json_text(info->name),
                      "first_node", (json_int_t)stages[i].first_node, "nodes", (json_int_t)stages[i].node_count,
                      "first_name", rnl_json_text(stages[i].first_name), "weight_bytes",
                      (json_int_t)stages[i].weight_bytes, "arena_bytes", (json_int_t)stages[i].arena_bytes,
                      "crossing_bytes", (json_int_t)stages[i].crossing_bytes, "measured", (int)stages[i].is_measured,
                      "expected_ms", stages[i].expected_ns * 1e-6, "run_ms", (double)stages[i].busy_ns * 1e-6 / runs));
    }
    return rows;
}

static json_t *describe(const rnl_job *job, const figures *all, const figures *one)
{
    json_t *root = json_pack("{s:o, s:f, s:f, s:I, s:o}", "model", rnl_json_text(job->options.model), "batches_per_s",
                             all->batches_per_s, "latency_ms", all->latency_ms, "batches", (json_int_t)all->batches,
                             "stages", describe_stages(job));
    if (root && one->batches)
        json_object_set_new(
            root, "one_device",
            json_pack("{s:f, s:f}", "batches_per_s", one->batches_per_s, "latency_ms", one->latency_ms));
    return root;
}

/* The first device alone, by the same machinery; where the model does not fit there, that is said and no failure. */
static rnl_exit measure_one(rnl_job *job, figures *out)
{
    rnl_exit code = rnl_job_open_pipeline(job, 1);
    if (code != RNL_EXIT_DONE && rnl_last_error()->status == RNL_RESOURCE_EXHAUSTED) {
        rnl_cli_failure_clear();
        puts("one device: the model does not fit it");
        return RNL_EXIT_DONE;
    }
    if (code == RNL_EXIT_DONE)
        code = measure(job, out, false);
    rnl_pipeline_release(job->piped.pipeline);
    job->piped.pipeline = NULL;
    return code;
}

rnl_exit rnl_bench_pipeline(rnl_job *job)
{
    figures one = {0}, all = {0};
    rnl_exit code = rnl_job_open_devices(job, stdout);
    rnl_job_trace(job, false);
    if (code == RNL_EXIT_DONE)
        code = measure_one(job, &one);
    rnl_job_trace(job, true);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_open_pipeline(job, job->piped.device_count);
    rnl_job_trace(job, false);
    if (code != RNL_EXIT_DONE)
        return code;
    rnl_piped_print_stages(&job->piped, stdout);
    code = measure(job, &all, true);
    if (code != RNL_EXIT_DONE)
        return code;
    if (one.batches)
        printf("%.2f times one device\n", all.batches_per_s / one.batches_per_s);
    fflush(stdout);
    return job->options.json ? rnl_bench_write_root(job, describe(job, &all, &one)) : RNL_EXIT_DONE;
}
