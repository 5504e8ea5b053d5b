/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/check.h"

#include "base/memory.h"
#include "graph/custom.h"
#include "graph/names.h"
#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 4096
#define MAX_KEY_BYTES 2048

typedef struct check_row {
    const char *key; /* operator and domain, separated by a NUL's stand-in; first, for rnl_names */
    const rnl_op_schema *schema;
    rnl_type_rule type_rule;
    rnl_operator_info info;
} check_row;

/* One graph of the model, and where it stands. */
typedef struct check_scope {
    const struct check_scope *outer; /* NULL: the model's own graph */
    const rnl_node *node;            /* that has the graph, and as which attribute */
    const char *attribute;
    rnl_graph *graph;
    uint8_t *types;
} check_scope;

typedef struct check_table {
    rnl_graph *graph; /* the model's own */
    rnl_names names;
    check_row *rows;
    size_t count, capacity;
} check_table;

static rnl_status add_row(check_table *table, const rnl_node *node, const char *key, size_t length)
{
    if (table->count == MAX_ROWS)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "more than %d different operators", MAX_ROWS);
    TRY(rnl_grow(&table->rows, &table->capacity, table->count + 1, sizeof *table->rows));
    check_row *row = &table->rows[table->count];
    TRY(rnl_zone_text(&table->graph->zone, key, length, &row->key));
    row->info = (rnl_operator_info){.domain = node->domain, .op_type = node->op_type, .reason = ""};
    row->type_rule = rnl_check_type_rule(node->domain, node->op_type);
    row->schema = rnl_registry_find(table->graph->registry, node->domain, node->op_type, node->opset);
    if (!row->schema)
        row->schema = rnl_op_find(node->domain, node->op_type, node->opset);
    else
        row->type_rule = RNL_TYPE_UNKNOWN;
    TRY(rnl_names_add(&table->names, key, length, (uint32_t)table->count));
    table->count++;
    return RNL_OK;
}

static rnl_status find_row(check_table *table, const rnl_node *node, check_row **out_row)
{
    char key[MAX_KEY_BYTES];
    size_t op = strlen(node->op_type), domain = strlen(node->domain);
    if (op + 1 + domain > sizeof key)
        return FAIL(RNL_INVALID_ARGUMENT, "an operator's name of %zu bytes is too long", op + domain);
    memcpy(key, node->op_type, op);
    key[op] = '\n'; /* in no name: readers escape it */
    memcpy(key + op + 1, node->domain, domain);
    size_t length = op + 1 + domain;
    uint32_t index = rnl_names_find(&table->names, table->rows, sizeof *table->rows, key, length);
    if (index == RNL_NAME_UNKNOWN) {
        TRY(add_row(table, node, key, length));
        index = (uint32_t)(table->count - 1);
    }
    *out_row = &table->rows[index];
    return RNL_OK;
}

static void add_place(rnl_text *text, const check_scope *scope)
{
    if (!scope->outer)
        return;
    add_place(text, scope->outer);
    rnl_text_add(text, "node %zu (%s '%s'), %s: ", (size_t)(scope->node - scope->outer->graph->nodes),
                 scope->node->op_type, scope->node->name, scope->attribute);
}

static rnl_status give_reason(check_table *table, const check_scope *scope, const rnl_node *node,
                              const char **out_reason)
{
    rnl_text reason = {0};
    add_place(&reason, scope);
    rnl_text_add(&reason, "node %zu (%s '%s'): ", (size_t)(node - scope->graph->nodes), node->op_type, node->name);
    (void)rnl_check_node(scope->graph, node, scope->types, &reason);
    rnl_status status = reason.status;
    if (status == RNL_OK)
        status = rnl_zone_text(&table->graph->zone, reason.data, reason.length, out_reason);
    rnl_text_free(&reason);
    return status;
}

static rnl_status check_graph(check_table *table, const check_scope *scope);

static rnl_status check_inner(check_table *table, const check_scope *outer, const rnl_node *node,
                              const rnl_attribute *attribute)
{
    check_scope scope = {outer, node, attribute->name, attribute->graph, NULL};
    rnl_graph *graph = attribute->graph;
    TRY(rnl_alloc(graph->value_count, 1, &scope.types));
    rnl_check_inner_types(node, graph, outer->types, scope.types);
    rnl_status status = check_graph(table, &scope);
    rnl_check_control_outputs(node, graph, scope.types, outer->types);
    for (size_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i].dtype == RNL_DTYPE_NONE)
            graph->outputs[i].dtype = (rnl_dtype)scope.types[graph->output_values[i]];
    rnl_free(scope.types);
    return status;
}

static rnl_status check_node(check_table *table, const check_scope *scope, rnl_node *node)
{
    check_row *row;
    TRY(find_row(table, node, &row));
    const size_t index = (size_t)(row - table->rows);
    node->schema = row->schema;
    if (node->schema && node->schema->custom)
        node->op_type = node->schema->custom->name;
    row->info.node_count++;
    table->graph->checked_count++;
    rnl_check_output_types(node, row->type_rule, scope->types);
    for (size_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].type == RNL_ATTRIBUTE_GRAPH)
            TRY(check_inner(table, scope, node, &node->attributes[i]));
    if (!rnl_check_node(scope->graph, node, scope->types, NULL))
        return RNL_OK;
    row = &table->rows[index]; /* the table may have grown */
    table->graph->unsupported_count++;
    if (row->info.unsupported_count++ == 0)
        return give_reason(table, scope, node, &row->info.reason);
    return RNL_OK;
}

/* A value that goes from the file straight to an output has no node that could be refused. */
static rnl_status check_outputs(const check_scope *scope)
{
    rnl_graph *graph = scope->graph;
    for (size_t i = 0; i < graph->output_count; i++) {
        const rnl_value *value = &graph->values[graph->output_values[i]];
        unsigned type = scope->types[graph->output_values[i]];
        if (value->producer != RNL_NO_NODE || !rnl_check_type_foreign(type))
            continue;
        rnl_text text = {0};
        rnl_text_add(&text, "output '%s' is %s, which is not supported", value->name, rnl_check_type_name(type));
        rnl_status status = text.status;
        if (status == RNL_OK)
            status = rnl_zone_text(&graph->zone, text.data, text.length, &graph->refusal);
        rnl_text_free(&text);
        return status;
    }
    return RNL_OK;
}

static rnl_status check_graph(check_table *table, const check_scope *scope)
{
    for (size_t i = 0; i < scope->graph->node_count; i++)
        TRY(check_node(table, scope, &scope->graph->nodes[i]));
    return scope->outer ? RNL_OK : check_outputs(scope);
}

static int compare_rows(const void *left, const void *right)
{
    const check_row *a = left, *b = right;
    int order = strcmp(a->info.op_type, b->info.op_type);
    return order ? order : strcmp(a->info.domain, b->info.domain);
}

static rnl_status publish(check_table *table)
{
    rnl_graph *graph = table->graph;
    if (table->count)
        qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
    TRY(rnl_zone_alloc(&graph->zone, table->count, sizeof *graph->operators, &graph->operators));
    for (size_t i = 0; i < table->count; i++)
        graph->operators[i] = table->rows[i].info;
    graph->operator_count = table->count;
    return RNL_OK;
}

rnl_status rnl_graph_make_checks(rnl_graph *graph)
{
    rnl_status status = RNL_OK;
    check_table table = {.graph = graph};
    check_scope scope = {.graph = graph};
    GOTO(rnl_alloc(graph->value_count, 1, &scope.types));
    rnl_check_declared_types(graph, scope.types);
    graph->checked_count = graph->unsupported_count = 0;
    GOTO(check_graph(&table, &scope));
    GOTO(publish(&table));
done:
    rnl_names_free(&table.names);
    rnl_free(table.rows);
    rnl_free(scope.types);
    return status;
}

rnl_status rnl_graph_check(const rnl_graph *graph, const rnl_operator_info **out_rows, size_t *out_count)
{
    *out_rows = graph->operators;
    *out_count = graph->operator_count;
    if (graph->unsupported_count == 0 && !graph->refusal)
        return RNL_OK;
    rnl_status status;
    if (graph->unsupported_count)
        status = FAIL(RNL_UNIMPLEMENTED, "%zu of %zu nodes cannot run", graph->unsupported_count, graph->checked_count);
    else
        status = FAIL(RNL_UNIMPLEMENTED, "%s", graph->refusal);
    for (size_t i = 0; i < graph->operator_count; i++)
        status = rnl_error_add(status, "%s", graph->operators[i].reason);
    return status;
}
