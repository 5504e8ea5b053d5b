/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/check.h"

#include "graph/custom.h"
#include <inttypes.h>
#include <string.h>

#define MAX_INPUTS_SHOWN 6

bool rnl_check_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    if (length == 0)
        return false;
    for (const char *at = words; (at = strstr(at, word)) != NULL; at++)
        if (at > words && at[-1] == ' ' && at[length] == ' ')
            return true;
    return false;
}

static void add_shape(rnl_text *text, const rnl_graph *graph, const rnl_value *value)
{
    if (value->constant) {
        rnl_text_add(text, " ");
        rnl_text_add_shape(text, value->constant->shape, value->constant->rank);
    } else if (value->input_index >= 0 && graph->inputs[value->input_index].rank != SIZE_MAX) {
        const rnl_value_info *info = &graph->inputs[value->input_index];
        rnl_text_add(text, " ");
        rnl_text_add_shape(text, info->shape, info->rank);
    }
}

/* " (inputs: float32 1x3x224x224, ?)" */
static void add_inputs(rnl_text *text, const rnl_graph *graph, const rnl_node *node, const uint8_t *types)
{
    if (node->input_count == 0)
        return;
    rnl_text_add(text, " (inputs: ");
    for (uint32_t i = 0; i < node->input_count && i < MAX_INPUTS_SHOWN; i++) {
        if (i > 0)
            rnl_text_add(text, ", ");
        uint32_t value = node->inputs[i];
        if (value == RNL_NO_VALUE) {
            rnl_text_add(text, "none");
            continue;
        }
        rnl_text_add(text, "%s", types[value] ? rnl_check_type_name(types[value]) : "?");
        add_shape(text, graph, &graph->values[value]);
    }
    rnl_text_add(text, node->input_count > MAX_INPUTS_SHOWN ? ", …)" : ")");
}

/* "opset 9 of Resize is not supported; opsets 10 to 28 are" */
static void add_unknown_operator(rnl_text *text, const rnl_graph *graph, const rnl_node *node)
{
    size_t count;
    const rnl_op_schema *newer = rnl_registry_find(graph->registry, node->domain, node->op_type, INT64_MAX);
    if (newer) {
        rnl_text_add(text, "%s is registered from version %d of its domain on, and the model imports %" PRId64,
                     newer->custom->name, newer->since, node->opset);
        return;
    }
    const rnl_op_schema *const *schemas = rnl_op_list(node->domain, &count);
    if (!schemas) {
        rnl_text_add(text, "operators of the domain '%s' (opset %" PRId64 ") are not supported", node->domain,
                     node->opset);
        return;
    }
    const char *separator = "; supported: opsets ";
    rnl_text_add(text, "%s of %s%sopset %" PRId64 " is not supported", node->op_type, node->domain,
                 node->domain[0] ? " " : "", node->opset);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(schemas[i]->op_type, node->op_type) != 0)
            continue;
        rnl_text_add(text, "%s%d to %d", separator, schemas[i]->since, schemas[i]->until);
        separator = ", ";
    }
}

static void add_count(rnl_text *text, const char *what, uint32_t min, uint32_t max, uint32_t has)
{
    if (max == UINT32_MAX)
        rnl_text_add(text, "it has %u %s and needs at least %u", has, what, min);
    else if (min == max)
        rnl_text_add(text, "it has %u %s and needs %u", has, what, min);
    else
        rnl_text_add(text, "it has %u %s and needs %u to %u", has, what, min, max);
}

static bool check_counts(const rnl_node *node, rnl_text *reason)
{
    const rnl_op_schema *schema = node->schema;
    uint32_t input_count = rnl_node_own_inputs(node);
    if (input_count < schema->min_inputs || input_count > schema->max_inputs) {
        if (reason)
            add_count(reason, "inputs", schema->min_inputs, schema->max_inputs, input_count);
        return true;
    }
    if (node->output_count < schema->min_outputs || node->output_count > schema->max_outputs) {
        if (reason)
            add_count(reason, "outputs", schema->min_outputs, schema->max_outputs, node->output_count);
        return true;
    }
    for (uint32_t i = 0; i < schema->min_inputs; i++)
        if (node->inputs[i] == RNL_NO_VALUE) {
            if (reason)
                rnl_text_add(reason, "its input %u is missing", i);
            return true;
        }
    return false;
}

static void add_types(rnl_text *text, uint32_t types)
{
    const char *separator = "; supported: ";
#define X(name, code, bytes, type_text)                                                                                \
    if (types & RNL_TYPE_BIT(RNL_##name)) {                                                                            \
        rnl_text_add(text, "%s%s", separator, type_text);                                                              \
        separator = ", ";                                                                                              \
    }
    RNL_DTYPE_LIST(X)
#undef X
}

static bool check_foreign_types(const rnl_graph *graph, const rnl_node *node, const uint8_t *types, rnl_text *reason)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t value = node->inputs[i];
        if (value == RNL_NO_VALUE || !rnl_check_type_foreign(types[value]))
            continue;
        if (reason)
            rnl_text_add(reason, "its input '%s' is %s, which is not supported", graph->values[value].name,
                         rnl_check_type_name(types[value]));
        return true;
    }
    return false;
}

/* Cast can make a type that runnel does not have. */
static bool check_output_type(const rnl_node *node, const uint8_t *types, rnl_text *reason)
{
    if (node->output_count == 0 || node->outputs[0] == RNL_NO_VALUE || !rnl_check_type_foreign(types[node->outputs[0]]))
        return false;
    if (reason)
        rnl_text_add(reason, "its output is %s, which is not supported", rnl_check_type_name(types[node->outputs[0]]));
    return true;
}

static bool check_first_type(const rnl_node *node, const uint8_t *types, rnl_text *reason)
{
    uint32_t wanted = node->schema->types;
    if (wanted == 0 || rnl_node_own_inputs(node) == 0 || node->inputs[0] == RNL_NO_VALUE)
        return false;
    unsigned type = types[node->inputs[0]];
    if (type == 0 || (wanted & RNL_TYPE_BIT(type)))
        return false;
    if (reason) {
        rnl_text_add(reason, "its first input is %s", rnl_check_type_name(type));
        add_types(reason, wanted);
    }
    return true;
}

bool rnl_check_node(const rnl_graph *graph, const rnl_node *node, const uint8_t *types, rnl_text *reason)
{
    if (node->refusal) {
        if (reason)
            rnl_text_add(reason, "%s", node->refusal);
        return true;
    }
    if (!node->schema) {
        if (reason) {
            add_unknown_operator(reason, graph, node);
            add_inputs(reason, graph, node, types);
        }
        return true;
    }
    return check_foreign_types(graph, node, types, reason) || check_counts(node, reason) ||
           rnl_check_attributes(node, reason) || check_first_type(node, types, reason) ||
           check_output_type(node, types, reason) || rnl_check_control(node, reason);
}
