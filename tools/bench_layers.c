/* SPDX-License-Identifier: Apache-2.0 */
/* Each step's time beside its roofline. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

/* ---- measuring ------------------------------------------------------------------------------------------------- */

/* The least time that the peaks allow. */
static double bound_ms(const rnl_step_profile *step, const rnl_bench_peak *peak, bool *out_compute_bound)
{
    double compute = (double)step->flops / peak->flops_per_s, memory = (double)step->bytes / peak->bytes_per_s;
    *out_compute_bound = compute > memory;
    return (*out_compute_bound ? compute : memory) * 1e3;
}

/* times: one row a step, one column a run. */
static void fill_layers(rnl_bench *bench, double *times, size_t runs)
{
    bench->layers_ms = bench->layers_min_ms = 0;
    bench->device_clock = true;
    for (size_t i = 0; i < bench->layer_count; i++) {
        rnl_bench_layer *layer = &bench->layers[i];
        rnl_bench_sort(times + i * runs, runs);
        layer->index = i;
        layer->ms = rnl_bench_median(times + i * runs, runs);
        layer->min_ms = times[i * runs];
        layer->reached = bound_ms(&layer->step, &bench->peak, &layer->compute_bound) / layer->ms;
        bench->layers_ms += layer->ms;
        bench->layers_min_ms += layer->min_ms;
        bench->device_clock = bench->device_clock && layer->step.device_clock;
    }
    for (size_t i = 0; i < bench->layer_count; i++)
        bench->layers[i].share = bench->layers[i].ms / bench->layers_ms;
}

static rnl_bench_total *find_total(rnl_bench *bench, const rnl_step_profile *step)
{
    for (size_t i = 0; i < bench->total_count; i++) {
        rnl_bench_total *total = &bench->totals[i];
        if (!strcmp(total->implementation, step->implementation) && !strcmp(total->op_type, step->op_type))
            return total;
    }
    rnl_bench_total *total = &bench->totals[bench->total_count++];
    *total = (rnl_bench_total){.implementation = step->implementation, .op_type = step->op_type};
    return total;
}

static int longer_total(const void *left, const void *right)
{
    const rnl_bench_total *a = left, *b = right;
    return a->ms > b->ms ? -1 : a->ms < b->ms;
}

static void fill_totals(rnl_bench *bench)
{
    for (size_t i = 0; i < bench->layer_count; i++) {
        const rnl_bench_layer *layer = &bench->layers[i];
        rnl_bench_total *total = find_total(bench, &layer->step);
        total->count++;
        total->ms += layer->ms;
        total->share += layer->share;
        total->reached += layer->reached * layer->ms; /* the bound in ms, for now */
    }
    for (size_t i = 0; i < bench->total_count; i++)
        bench->totals[i].reached /= bench->totals[i].ms;
    qsort(bench->totals, bench->total_count, sizeof *bench->totals, longer_total);
}

static int longer_layer(const void *left, const void *right)
{
    const rnl_bench_layer *a = left, *b = right;
    if (a->ms != b->ms)
        return a->ms > b->ms ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static rnl_exit make_room(rnl_bench *bench, size_t count, size_t runs, double **out_times)
{
    bench->layer_count = count;
    bench->layers = calloc(count + 1, sizeof *bench->layers);
    bench->totals = calloc(count + 1, sizeof *bench->totals);
    *out_times = count < SIZE_MAX / sizeof **out_times / runs ? calloc(count * runs + 1, sizeof **out_times) : NULL;
    return bench->layers && bench->totals && *out_times ? RNL_EXIT_DONE : rnl_cli_fail("out of memory");
}

static rnl_exit profile_runs(rnl_job *job, rnl_bench *bench, size_t runs, double **times)
{
    const rnl_step_profile *steps = NULL;
    size_t count = 0;
    for (size_t run = 0; run < runs; run++) {
        if (rnl_session_profile(job->session, job->inputs.tensors, job->inputs.count, &steps, &count) != RNL_OK)
            return rnl_cli_fail_library("measuring the steps of %s", job->options.model);
        if (run == 0 && make_room(bench, count, runs, times) != RNL_EXIT_DONE)
            return RNL_EXIT_FAILED;
        if (count != bench->layer_count)
            return rnl_cli_fail("%s was planned again with other steps", job->options.model);
        for (size_t i = 0; i < count; i++) {
            bench->layers[i].step = steps[i];
            (*times)[i * runs + run] = (double)steps[i].time_ns * 1e-6;
        }
    }
    return RNL_EXIT_DONE;
}

rnl_exit rnl_bench_profile(rnl_job *job, rnl_bench *bench)
{
    double *times = NULL;
    size_t runs = job->options.repeat;
    rnl_exit code = profile_runs(job, bench, runs, &times);
    if (code == RNL_EXIT_DONE) {
        fill_layers(bench, times, runs);
        fill_totals(bench);
        if (job->options.sort_by_time)
            qsort(bench->layers, bench->layer_count, sizeof *bench->layers, longer_layer);
    }
    free(times);
    return code;
}

/* ---- printing -------------------------------------------------------------------------------------------------- */

static void print_layer(const rnl_bench_layer *layer, FILE *out)
{
    char node[48], op_type[32];
    const rnl_step_profile *step = &layer->step;
    double seconds = layer->ms * 1e-3;
    fprintf(out, "%5zu %9.4f %6.2f%% %9.2f %8.2f %5.0f%% %-5s  %-24s %-18s %s%s\n", layer->index, layer->ms,
            layer->share * 100, (double)step->flops / seconds * 1e-9, (double)step->bytes / seconds * 1e-9,
            layer->reached * 100, layer->compute_bound ? "flops" : "bytes", step->implementation,
            *step->op_type ? rnl_cli_clean(step->op_type, op_type, sizeof op_type) : "(edge)",
            rnl_cli_clean(step->node, node, sizeof node), step->also);
}

static void print_totals(const rnl_bench *bench, FILE *out)
{
    char op_type[32];
    fprintf(out, "\nsteps        ms   share  bound  implementation           operator\n");
    for (size_t i = 0; i < bench->total_count; i++) {
        const rnl_bench_total *total = &bench->totals[i];
        fprintf(out, "%5zu %9.4f %6.2f%% %5.0f%%  %-24s %s\n", total->count, total->ms, total->share * 100,
                total->reached * 100, total->implementation,
                *total->op_type ? rnl_cli_clean(total->op_type, op_type, sizeof op_type) : "(edge)");
    }
}

void rnl_bench_print_layers(const rnl_job *job, const rnl_bench *bench, FILE *out)
{
    (void)job;
    fprintf(out, "peak: %.1f GFLOP/s, %.1f GB/s (float32 multiply-adds; a[i] = b[i] + s * c[i] in memory)\n",
            bench->peak.flops_per_s * 1e-9, bench->peak.bytes_per_s * 1e-9);
    fprintf(out, "steps: %.3f ms of %.3f ms a run, %.3f ms at their shortest%s\n\n", bench->layers_ms, bench->median_ms,
            bench->layers_min_ms,
            bench->device_clock ? "" : "; measured with a wait after each step, by the host's clock");
    fprintf(
        out,
        " step        ms   share   GFLOP/s     GB/s  bound        implementation           operator           node\n");
    for (size_t i = 0; i < bench->layer_count; i++)
        print_layer(&bench->layers[i], out);
    print_totals(bench, out);
}
