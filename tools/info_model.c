/* SPDX-License-Identifier: Apache-2.0 */
#include "info.h"
#include "progress.h"
#include "values.h"

#include <string.h>

typedef struct model_facts {
    rnl_graph_info info;
    const rnl_value_info *inputs, *outputs;
    const rnl_metadata *metadata;
    const rnl_operator_info *operators;
    size_t input_count, output_count, metadata_count, operator_count;
    const rnl_step_profile *steps; /* of one run; NULL: no device was asked */
    size_t step_count;
} model_facts;

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

/* A free dimension is its name, or null. */
static json_t *shape_json(const rnl_value_info *value)
{
    if (value->rank == SIZE_MAX)
        return json_null();
    json_t *shape = json_array();
    for (size_t i = 0; i < value->rank; i++) {
        json_t *size = json_null();
        if (value->shape[i] >= 0)
            size = json_integer(value->shape[i]);
        else if (value->dim_names[i])
            size = rnl_json_text(value->dim_names[i]);
        json_array_append_new(shape, size);
    }
    return shape;
}

static json_t *values_json(const rnl_value_info *values, size_t count)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(rows, json_pack("{so ss so}", "name", rnl_json_text(values[i].name), "type",
                                              rnl_dtype_name(values[i].dtype), "shape", shape_json(&values[i])));
    return rows;
}

static json_t *operators_json(const model_facts *m)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < m->operator_count; i++) {
        const rnl_operator_info *row = &m->operators[i];
        rnl_operator_uses uses;
        rnl_info_find_uses(m->steps, m->step_count, row->op_type, &uses);
        json_array_append_new(rows,
                              json_pack("{so so sI sI sb so so}", "operator", rnl_json_text(row->op_type), "domain",
                                        rnl_json_text(row->domain), "count", (json_int_t)row->node_count, "unsupported",
                                        (json_int_t)row->unsupported_count, "supported", row->unsupported_count == 0,
                                        "reason", row->unsupported_count ? rnl_json_text(row->reason) : json_null(),
                                        "runs_as", m->steps ? rnl_info_uses_json(&uses) : json_null()));
    }
    return rows;
}

/* Keys may come twice in a file: a list, not an object. Values in full. */
static json_t *metadata_json(const model_facts *m)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < m->metadata_count; i++)
        json_array_append_new(rows, json_pack("{so so}", "key", rnl_json_text(m->metadata[i].key), "value",
                                              rnl_json_text(m->metadata[i].value)));
    return rows;
}

static rnl_exit print_json(const model_facts *m)
{
    return rnl_json_print(json_pack(
        "{so so so sI sI sI sI sI so so so so}", "graph", rnl_json_text(m->info.graph_name), "producer",
        rnl_json_text(m->info.producer_name), "producer_version", rnl_json_text(m->info.producer_version), "ir_version",
        (json_int_t)m->info.ir_version, "opset", (json_int_t)m->info.opset, "nodes", (json_int_t)m->info.node_count,
        "initializers", (json_int_t)m->info.initializer_count, "parameters", (json_int_t)m->info.parameter_count,
        "inputs", values_json(m->inputs, m->input_count), "outputs", values_json(m->outputs, m->output_count),
        "metadata", metadata_json(m), "operators", operators_json(m)));
}

/* ---- text ----------------------------------------------------------------------------------------------------- */

static void print_values(const char *kind, const rnl_value_info *values, size_t count)
{
    char name[RNL_CLI_NAME_BYTES], shape[RNL_SHAPE_TEXT_BYTES];
    for (size_t i = 0; i < count; i++)
        printf(
            "%s %s: %s %s\n", kind, rnl_cli_clean(values[i].name, name, sizeof name), rnl_dtype_name(values[i].dtype),
            values[i].rank == SIZE_MAX ? "of any shape"
                                       : rnl_shape_text(values[i].shape, values[i].dim_names, values[i].rank, shape));
}

static void print_metadata(const model_facts *m)
{
    char key[RNL_CLI_NAME_BYTES], value[100];
    for (size_t i = 0; i < m->metadata_count; i++) {
        size_t length = strlen(m->metadata[i].value);
        printf("metadata %s: %s", rnl_cli_clean(m->metadata[i].key, key, sizeof key),
               rnl_cli_clean(m->metadata[i].value, value, sizeof value));
        if (length >= sizeof value)
            printf(" (%zu bytes)", length);
        putchar('\n');
    }
}

static void print_supported(const model_facts *m, const rnl_operator_info *row)
{
    rnl_operator_uses uses;
    fputs("supported", stdout);
    if (m->steps) {
        rnl_info_find_uses(m->steps, m->step_count, row->op_type, &uses);
        rnl_info_print_uses(&uses);
    }
    putchar('\n');
}

static void print_operators(const model_facts *m)
{
    char domain[64], op_type[64], reason[512];
    for (size_t i = 0; i < m->operator_count; i++) {
        const rnl_operator_info *row = &m->operators[i];
        rnl_cli_clean(row->domain, domain, sizeof domain);
        printf("operator %s%s%s: %zu, ", domain, domain[0] ? "." : "",
               rnl_cli_clean(row->op_type, op_type, sizeof op_type), row->node_count);
        if (row->unsupported_count == 0)
            print_supported(m, row);
        else
            printf("%zu NOT supported: %s\n", row->unsupported_count,
                   rnl_cli_clean(row->reason, reason, sizeof reason));
    }
}

static void print_text(const model_facts *m)
{
    char name[RNL_CLI_NAME_BYTES];
    printf("graph: %s\n", rnl_cli_clean(m->info.graph_name, name, sizeof name));
    printf("producer: %s", rnl_cli_clean(m->info.producer_name, name, sizeof name));
    printf(" %s\n", rnl_cli_clean(m->info.producer_version, name, sizeof name));
    printf("opset %lld, IR version %lld, %zu nodes, %zu initializers, %llu parameters\n", (long long)m->info.opset,
           (long long)m->info.ir_version, m->info.node_count, m->info.initializer_count,
           (unsigned long long)m->info.parameter_count);
    print_values("input", m->inputs, m->input_count);
    print_values("output", m->outputs, m->output_count);
    print_metadata(m);
    print_operators(m);
}

static void gather(const rnl_graph *graph, model_facts *m)
{
    rnl_graph_get_info(graph, &m->info);
    m->inputs = rnl_graph_inputs(graph, &m->input_count);
    m->outputs = rnl_graph_outputs(graph, &m->output_count);
    m->metadata = rnl_graph_metadata(graph, &m->metadata_count);
}

/* Plans and runs once with inputs that are made up. */
static rnl_exit try_device(rnl_job *job, bool json, model_facts *m)
{
    rnl_exit code = rnl_job_read_inputs(job);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_open(job, json ? stderr : stdout);
    if (code == RNL_EXIT_DONE &&
        rnl_session_profile(job->session, job->inputs.tensors, job->inputs.count, &m->steps, &m->step_count) != RNL_OK)
        code = rnl_cli_fail_library("running %s", job->options.model);
    rnl_console_clear();
    return code;
}

rnl_exit rnl_info_model(rnl_job *job, bool on_device, bool json)
{
    model_facts m = {0};
    rnl_exit code = rnl_job_load(job, false);
    if (code != RNL_EXIT_DONE)
        return code;
    gather(job->graph, &m);
    rnl_status status = rnl_graph_check(job->graph, &m.operators, &m.operator_count);
    if (status != RNL_OK)
        code = rnl_cli_fail_library("checking %s", job->options.model);
    if (status != RNL_OK && status != RNL_UNIMPLEMENTED)
        return code;
    if (on_device && status == RNL_OK)
        code = try_device(job, json, &m);
    if (!json)
        print_text(&m);
    else if (print_json(&m) != RNL_EXIT_DONE)
        code = RNL_EXIT_FAILED;
    return code;
}
