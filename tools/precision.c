/* SPDX-License-Identifier: Apache-2.0 */
#include "precision.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>

typedef struct errors {
    size_t count, not_finite; /* compared; where one side alone is finite */
    double largest, sum, largest_value;
} errors;

static errors find_errors(const rnl_tensor *got, const rnl_tensor *expected)
{
    errors found = {0};
    size_t bytes;
    if (!rnl_values_bytes(expected->dtype, expected->shape, expected->rank, &found.count, &bytes))
        return found;
    for (size_t i = 0; i < found.count; i++) {
        const double a = (double)rnl_values_load(got->dtype, got->data, i);
        const double b = (double)rnl_values_load(expected->dtype, expected->data, i);
        if (!isfinite(a) || !isfinite(b)) {
            found.not_finite += isnan(a) != isnan(b) || (!isnan(a) && a != b);
            continue;
        }
        found.largest = fmax(found.largest, fabs(a - b));
        found.largest_value = fmax(found.largest_value, fabs(b));
        found.sum += fabs(a - b);
    }
    return found;
}

static bool same_shape(const rnl_tensor *a, const rnl_tensor *b)
{
    bool same = a->rank == b->rank && a->dtype == b->dtype;
    for (size_t i = 0; same && i < a->rank; i++)
        same = a->shape[i] == b->shape[i];
    return same;
}

static void print_errors(const rnl_tensor *got, const rnl_tensor *expected, FILE *out)
{
    char name[RNL_CLI_NAME_BYTES];
    rnl_cli_clean(got->name, name, sizeof name);
    if (!same_shape(got, expected)) {
        fprintf(out, "%s: against float32 its shape is another\n", name);
        return;
    }
    const errors found = find_errors(got, expected);
    fprintf(out, "%s: against float32 largest difference %.4g, mean %.4g; largest value %.4g", name, found.largest,
            found.count ? found.sum / (double)found.count : 0, found.largest_value);
    if (found.not_finite)
        fprintf(out, "; %zu finite on one side alone", found.not_finite);
    fputc('\n', out);
}

static rnl_exit run_float32(const rnl_job *job, rnl_session *session, FILE *out)
{
    rnl_tensor *outputs = calloc(job->output_count + 1, sizeof *outputs);
    if (!outputs)
        return rnl_cli_fail("out of memory");
    for (size_t i = 0; i < job->output_count; i++)
        outputs[i] = (rnl_tensor){.name = job->output_infos[i].name};
    rnl_status status = rnl_session_run(session, job->inputs.tensors, job->inputs.count, outputs, job->output_count);
    for (size_t i = 0; status == RNL_OK && i < job->output_count; i++)
        print_errors(&job->outputs[i], &outputs[i], out);
    free(outputs);
    return status == RNL_OK ? RNL_EXIT_DONE : rnl_cli_fail_library("running %s in float32", job->options.model);
}

rnl_exit rnl_precision_report(const rnl_job *job, FILE *out)
{
    rnl_model_options options = RNL_MODEL_OPTIONS_INIT;
    rnl_model *model = NULL;
    rnl_session *session = NULL;
    rnl_exit code;
    options.precision = RNL_PRECISION_F32;
    if (rnl_model_open(job->graph, job->device, &options, &model) != RNL_OK ||
        rnl_session_create(model, &session) != RNL_OK)
        code = rnl_cli_fail_library("opening %s in float32", job->options.model);
    else
        code = run_float32(job, session, out);
    rnl_session_release(session);
    rnl_model_release(model);
    return code;
}
