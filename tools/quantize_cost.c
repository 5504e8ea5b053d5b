/* SPDX-License-Identifier: Apache-2.0 */
/* What quantising costs: the quantised model beside the one in float32, and which layers to leave as they are. */
#include "progress.h"
#include "quantize.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COMPARED_SETS 32 /* for the report */
#define SAMPLED_SETS 4   /* for each layer by itself */

static float number(const rnl_tensor *tensor, size_t index)
{
    float x;
    memcpy(&x, (const char *)tensor->data + index * sizeof x, sizeof x);
    return x;
}

static size_t largest_of(const rnl_tensor *tensor, size_t from, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (number(tensor, from + i) > number(tensor, from + best))
            best = i;
    return best;
}

/* [samples, classes] or [samples, steps, classes]. */
static void compare_classes(const rnl_tensor *expected, const rnl_tensor *got, size_t count, rnl_cost *cost)
{
    if (expected->rank != 2 && expected->rank != 3)
        return;
    const size_t classes = (size_t)expected->shape[expected->rank - 1];
    for (size_t i = 0; classes > 1 && i + classes <= count; i += classes) {
        cost->rows++;
        cost->agreeing += largest_of(expected, i, classes) == largest_of(got, i, classes);
    }
}

static void compare(const rnl_tensor *expected, const rnl_tensor *got, rnl_cost *cost)
{
    size_t count, bytes;
    if (expected->dtype != RNL_F32 || got->dtype != RNL_F32 || expected->rank != got->rank ||
        memcmp(expected->shape, got->shape, expected->rank * sizeof *got->shape) != 0 ||
        !rnl_values_bytes(RNL_F32, expected->shape, expected->rank, &count, &bytes))
        return;
    cost->is_float = true;
    cost->count += count;
    for (size_t i = 0; i < count; i++) {
        const double x = (double)number(expected, i), difference = fabs((double)number(got, i) - x);
        cost->signal += x * x;
        cost->noise += difference * difference;
        cost->sum += difference;
        cost->largest = difference > cost->largest ? difference : cost->largest;
    }
    compare_classes(expected, got, count, cost);
}

static rnl_exit compare_sets(rnl_quantizing *job, rnl_built *built, bool alone, size_t sets, size_t wanted,
                             rnl_cost *costs)
{
    for (size_t i = 0; i < sets && i < job->calibration.set_count; i++) {
        if (!alone)
            rnl_console_step("comparing", i, sets < job->calibration.set_count ? sets : job->calibration.set_count);
        rnl_exit code = rnl_calibration_read(&job->calibration, i);
        if (code == RNL_EXIT_DONE)
            code = rnl_built_run(job, &job->plain, wanted);
        if (code == RNL_EXIT_DONE)
            code = rnl_built_run(job, built, wanted);
        if (code != RNL_EXIT_DONE)
            return code;
        for (size_t j = 0; j < wanted && j < built->output_count; j++)
            compare(&job->plain.outputs[j], &built->outputs[j], &costs[j]);
    }
    return RNL_EXIT_DONE;
}

rnl_exit rnl_cost_find(rnl_quantizing *job, size_t only, size_t sets, size_t wanted, rnl_cost *out_costs)
{
    rnl_built built;
    memset(out_costs, 0, (wanted < job->plain.output_count ? wanted : job->plain.output_count) * sizeof *out_costs);
    rnl_exit code = rnl_built_open(job, RNL_QUANTIZER_INTEGERS, only, &built);
    if (code == RNL_EXIT_DONE)
        code = compare_sets(job, &built, only != RNL_QUANTIZER_ALL, sets, wanted, out_costs);
    rnl_built_free(&built);
    return code;
}

static double relative(const rnl_cost *cost)
{
    if (cost->noise == 0)
        return 0;
    return cost->signal > 0 ? sqrt(cost->noise / cost->signal) : INFINITY;
}

double rnl_cost_worst(const rnl_quantizing *job, const rnl_cost *costs)
{
    double worst = 0;
    for (size_t i = 0; i < job->own_count; i++)
        if (costs[i].is_float && !(relative(&costs[i]) <= worst))
            worst = relative(&costs[i]);
    return worst;
}

/* ---- layers that cost too much --------------------------------------------------------------------------------- */

typedef struct alone {
    size_t layer;
    double error;
} alone;

static int by_error(const void *left, const void *right)
{
    const alone *a = left, *b = right;
    if (a->error != b->error)
        return a->error > b->error ? -1 : 1;
    return a->layer < b->layer ? -1 : a->layer > b->layer;
}

/* What each layer costs when it alone is quantised, the most costly first. */
static rnl_exit measure_each(rnl_quantizing *job, alone *rows, size_t *out_count)
{
    rnl_cost *costs = calloc(job->own_count + 1, sizeof *costs);
    rnl_exit code = costs ? RNL_EXIT_DONE : rnl_cli_fail("out of memory");
    *out_count = 0;
    for (size_t i = 0; code == RNL_EXIT_DONE && i < job->layer_count; i++) {
        rnl_console_step("measuring layers", i, job->layer_count);
        if (job->layers[i].is_kept)
            continue;
        code = rnl_cost_find(job, i, SAMPLED_SETS, job->own_count, costs);
        rows[(*out_count)++] = (alone){i, rnl_cost_worst(job, costs)};
    }
    free(costs);
    if (code == RNL_EXIT_DONE)
        qsort(rows, *out_count, sizeof *rows, by_error);
    return code;
}

/* Errors of layers add up as squares: how many of `rows` must go, for `total` to come down to `wanted`. */
static size_t guess(const alone *rows, size_t count, double total, double wanted)
{
    double sum = 0;
    size_t gone = 0;
    for (size_t i = 0; i < count; i++)
        sum += rows[i].error * rows[i].error;
    double left = sum;
    while (gone < count && (gone == 0 || left / sum > wanted * wanted / (total * total)))
        left -= rows[gone].error * rows[gone].error, gone++;
    return gone;
}

static rnl_exit keep_costly(rnl_quantizing *job, alone *rows)
{
    size_t count, first = 0;
    rnl_exit code = measure_each(job, rows, &count);
    while (code == RNL_EXIT_DONE && !(rnl_cost_worst(job, job->costs) <= job->options.max_error)) {
        size_t more = guess(rows + first, count - first, rnl_cost_worst(job, job->costs), job->options.max_error);
        if (first + more >= count)
            return rnl_cli_fail("--max-error %g: not reached with any layer quantised", job->options.max_error);
        for (; more; more--)
            rnl_quantizer_keep(job->quantizer, rows[first++].layer, true);
        code = rnl_cost_find(job, RNL_QUANTIZER_ALL, COMPARED_SETS, job->plain.output_count, job->costs);
    }
    return code;
}

rnl_exit rnl_cost_limit(rnl_quantizing *job)
{
    alone *rows = calloc(job->layer_count + 1, sizeof *rows);
    job->costs = calloc(job->plain.output_count + 1, sizeof *job->costs);
    rnl_exit code = rows && job->costs ? RNL_EXIT_DONE : rnl_cli_fail("out of memory");
    if (code == RNL_EXIT_DONE)
        code = rnl_cost_find(job, RNL_QUANTIZER_ALL, COMPARED_SETS, job->plain.output_count, job->costs);
    if (code == RNL_EXIT_DONE && job->options.max_error > 0 &&
        !(rnl_cost_worst(job, job->costs) <= job->options.max_error))
        code = keep_costly(job, rows);
    free(rows);
    return code;
}

/* ---- the report ------------------------------------------------------------------------------------------------ */

static void print_decibels(const rnl_cost *cost, FILE *out)
{
    if (!cost->is_float)
        fprintf(out, "%8s", "-");
    else if (cost->noise == 0)
        fprintf(out, "%8s", "exact");
    else
        fprintf(out, "%8.2f", -20 * log10(relative(cost)));
}

void rnl_cost_print(const rnl_quantizing *job, FILE *out)
{
    char name[RNL_CLI_NAME_BYTES];
    size_t outputs, kept = 0;
    const rnl_value_info *infos = rnl_graph_outputs(job->graph, &outputs);
    for (size_t i = 0; i < job->layer_count; i++)
        kept += job->layers[i].is_kept;
    fprintf(out, "calibrated with %zu sets of inputs; %zu of %zu layers quantised\n", job->calibration.set_count,
            job->layer_count - kept, job->layer_count);
    fputs("signal to noise at each layer's output, in dB:\n", out);
    for (size_t i = 0; i < job->layer_count; i++) {
        print_decibels(&job->costs[job->layers[i].output], out);
        fprintf(out, "  %-6s %s%s\n", job->layers[i].op_type, rnl_cli_clean(job->layers[i].name, name, sizeof name),
                job->layers[i].is_kept ? " (float32)" : "");
    }
    for (size_t i = 0; i < outputs; i++) {
        const rnl_cost *cost = &job->costs[i];
        if (!cost->is_float || !cost->count)
            continue;
        fprintf(out, "output %s:", rnl_cli_clean(infos[i].name, name, sizeof name));
        print_decibels(cost, out);
        fprintf(out, " dB, largest error %.4g, mean %.4g, relative %.4g", cost->largest,
                cost->sum / (double)cost->count, relative(cost));
        if (cost->rows)
            fprintf(out, "; the same largest of %zu in %.2f%% of %zu", cost->count / cost->rows,
                    100 * (double)cost->agreeing / (double)cost->rows, cost->rows);
        fputc('\n', out);
    }
}
