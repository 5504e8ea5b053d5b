/* SPDX-License-Identifier: Apache-2.0 */
/* TreeEnsembleRegressor: nodes have names (tree, node) instead of places, and a leaf any number of weights. */
#include "model/lower_list.h"

#include "base/memory.h"
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "model/compose.h"
#include "ops/trees.h"
#include <stdlib.h>
#include <string.h>

#define LEAF 6 /* the mode, behind those of the kernel */

/* Numbers of an attribute that may be floats or a tensor. */
typedef struct numbers {
    const float *floats;
    const rnl_host_tensor *tensor;
    size_t count;
} numbers;

typedef struct node_name {
    int64_t tree, node;
    size_t index;
} node_name;

typedef struct forest {
    rnl_lowering *lowering;
    size_t nodes, weights;
    int64_t features, targets;
    const int64_t *tree_ids, *node_ids, *feature_ids, *true_ids, *false_ids, *missing;
    const int64_t *weight_trees, *weight_nodes, *weight_targets;
    const char *const *modes;
    numbers splits, weight_values;
    node_name *names; /* sorted */
    int32_t *table;   /* nodes */
    bool *is_child;
    rnl_dtype dtype;
} forest;

static rnl_status new_memory(const forest *f, size_t count, size_t size, void *out_memory)
{
    return rnl_zone_alloc(f->lowering->planner->zone, count + 1, size, out_memory);
}

/* ---- attributes ----------------------------------------------------------------------------------------------- */

static rnl_status read_ints(const forest *f, const char *name, size_t count, const int64_t **out_values)
{
    size_t found;
    *out_values = rnl_node_ints(f->lowering->context.node, name, &found);
    if (found == count)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "attribute '%s' of TreeEnsembleRegressor has %zu numbers where %zu are needed",
                name, found, count);
}

/* The attribute `name` of floats, or `tensor_name`. */
static rnl_status read_numbers(const forest *f, const char *name, const char *tensor_name, numbers *out_numbers)
{
    const rnl_node *node = f->lowering->context.node;
    const rnl_attribute *tensor = rnl_node_attribute(node, tensor_name);
    *out_numbers = (numbers){0};
    out_numbers->floats = rnl_node_floats(node, name, &out_numbers->count);
    if (!tensor || out_numbers->count > 0)
        return RNL_OK;
    if (tensor->type != RNL_ATTRIBUTE_TENSOR || !(RNL_TYPES_FLOAT_64 & RNL_TYPE_BIT(tensor->tensor->dtype)))
        return FAIL(RNL_INVALID_ARGUMENT, "attribute '%s' of TreeEnsembleRegressor is no tensor of floats",
                    tensor_name);
    out_numbers->tensor = tensor->tensor;
    out_numbers->count = tensor->tensor->size_bytes / rnl_dtype_bytes(tensor->tensor->dtype);
    return RNL_OK;
}

static double number_at(const numbers *list, size_t index)
{
    if (list->tensor)
        return rnl_element_load(list->tensor->data, (int64_t)index, list->tensor->dtype).f;
    return (double)list->floats[index];
}

static rnl_status read_forest(forest *f)
{
    const rnl_node *node = f->lowering->context.node;
    const rnl_attribute *modes = rnl_node_attribute(node, "nodes_modes");
    TRY(read_numbers(f, "nodes_values", "nodes_values_as_tensor", &f->splits));
    TRY(read_numbers(f, "target_weights", "target_weights_as_tensor", &f->weight_values));
    f->nodes = modes && modes->type == RNL_ATTRIBUTE_STRINGS ? modes->count : 0;
    f->modes = f->nodes ? modes->strings : NULL;
    f->weights = f->weight_values.count;
    if (f->nodes > INT32_MAX / RNL_TREE_NODE || f->weights >= INT32_MAX || f->splits.count != f->nodes)
        return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsembleRegressor has %zu modes, %zu values and %zu weights", f->nodes,
                    f->splits.count, f->weights);
    TRY(read_ints(f, "nodes_treeids", f->nodes, &f->tree_ids));
    TRY(read_ints(f, "nodes_nodeids", f->nodes, &f->node_ids));
    TRY(read_ints(f, "nodes_featureids", f->nodes, &f->feature_ids));
    TRY(read_ints(f, "nodes_truenodeids", f->nodes, &f->true_ids));
    TRY(read_ints(f, "nodes_falsenodeids", f->nodes, &f->false_ids));
    TRY(read_ints(f, "target_treeids", f->weights, &f->weight_trees));
    TRY(read_ints(f, "target_nodeids", f->weights, &f->weight_nodes));
    TRY(read_ints(f, "target_ids", f->weights, &f->weight_targets));
    size_t missing;
    f->missing = rnl_node_ints(node, "nodes_missing_value_tracks_true", &missing);
    f->missing = missing == f->nodes ? f->missing : NULL;
    return RNL_OK;
}

/* ---- names ---------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const node_name *x = a, *y = b;
    if (x->tree != y->tree)
        return x->tree < y->tree ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static rnl_status sort_names(forest *f)
{
    TRY(new_memory(f, f->nodes, sizeof *f->names, &f->names));
    for (size_t i = 0; i < f->nodes; i++)
        f->names[i] = (node_name){f->tree_ids[i], f->node_ids[i], i};
    if (f->nodes > 0)
        qsort(f->names, f->nodes, sizeof *f->names, compare);
    for (size_t i = 1; i < f->nodes; i++)
        if (compare(&f->names[i - 1], &f->names[i]) == 0)
            return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsembleRegressor has node %" PRId64 " of tree %" PRId64 " twice",
                        f->names[i].node, f->names[i].tree);
    return RNL_OK;
}

static rnl_status find_node(const forest *f, int64_t tree, int64_t node, size_t *out_index)
{
    const node_name name = {tree, node, 0};
    const node_name *found = f->nodes ? bsearch(&name, f->names, f->nodes, sizeof name, compare) : NULL;
    *out_index = found ? found->index : 0;
    if (found)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsembleRegressor has no node %" PRId64 " in tree %" PRId64, node, tree);
}

static rnl_status mode_of(const forest *f, size_t node, int *out_mode)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
    for (*out_mode = 0; *out_mode <= LEAF; ++*out_mode)
        if (strcmp(names[*out_mode], f->modes[node]) == 0)
            return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsembleRegressor has no mode '%.32s'", f->modes[node]);
}

/* ---- tables --------------------------------------------------------------------------------------------------- */

static rnl_status child_of(forest *f, size_t parent, int64_t id, int32_t *out_child)
{
    size_t index;
    int mode;
    TRY(find_node(f, f->tree_ids[parent], id, &index));
    TRY(mode_of(f, index, &mode));
    f->is_child[index] = true;
    *out_child = mode == LEAF ? -1 - (int32_t)index : (int32_t)index;
    return RNL_OK;
}

static rnl_status fill_node(forest *f, size_t index)
{
    int32_t *node = &f->table[index * RNL_TREE_NODE];
    int mode;
    memset(node, 0, RNL_TREE_NODE * sizeof *node);
    TRY(mode_of(f, index, &mode));
    if (mode == LEAF)
        return RNL_OK;
    if (f->feature_ids[index] < 0 || f->feature_ids[index] >= f->features)
        return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsembleRegressor names feature %" PRId64 " of %" PRId64,
                    f->feature_ids[index], f->features);
    node[0] = mode | (f->missing && f->missing[index] ? RNL_TREE_MISSING : 0);
    node[1] = (int32_t)f->feature_ids[index];
    TRY(child_of(f, index, f->true_ids[index], &node[2]));
    return child_of(f, index, f->false_ids[index], &node[3]);
}

static rnl_status place_ints(forest *f, const int32_t *values, size_t count, rnl_view *out_view)
{
    const rnl_tensor_desc desc = {.dtype = RNL_I32, .rank = 1, .shape = {(int64_t)count}, .host = values};
    return rnl_lower_constant(f->lowering, &desc, out_view);
}

/* In this order (NULL: as they are) and in the type that is computed with. */
static rnl_status place_numbers(forest *f, const numbers *list, const int32_t *order, rnl_view *out_view)
{
    void *values = NULL;
    TRY(new_memory(f, list->count, rnl_dtype_bytes(f->dtype), &values));
    for (size_t i = 0; i < list->count; i++)
        rnl_element_store(values, (int64_t)i, f->dtype,
                          (rnl_number){.f = number_at(list, order ? (size_t)order[i] : i)});
    const rnl_tensor_desc desc = {.dtype = f->dtype, .rank = 1, .shape = {(int64_t)list->count}, .host = values};
    return rnl_lower_constant(f->lowering, &desc, out_view);
}

/* Roots are the nodes that are nobody's child. */
static rnl_status place_nodes(forest *f, rnl_trees *trees)
{
    int32_t *roots = NULL;
    size_t count = 0;
    int mode;
    TRY(new_memory(f, f->nodes * RNL_TREE_NODE, sizeof *f->table, &f->table));
    TRY(new_memory(f, f->nodes, sizeof *f->is_child, &f->is_child));
    TRY(new_memory(f, f->nodes, sizeof *roots, &roots));
    memset(f->is_child, 0, f->nodes * sizeof *f->is_child);
    for (size_t i = 0; i < f->nodes; i++)
        TRY(fill_node(f, i));
    for (size_t i = 0; i < f->nodes; i++) {
        TRY(mode_of(f, i, &mode));
        if (!f->is_child[i])
            roots[count++] = mode == LEAF ? -1 - (int32_t)i : (int32_t)i;
    }
    TRY(place_ints(f, roots, count, &trees->roots));
    TRY(place_numbers(f, &f->splits, NULL, &trees->splits));
    return place_ints(f, f->table, f->nodes * RNL_TREE_NODE, &trees->nodes);
}

/* The weights by leaf, in their order within one; a leaf's number is its node's. */
static rnl_status place_weights(forest *f, rnl_trees *trees)
{
    int32_t *begins = NULL, *targets = NULL, *order = NULL;
    size_t node;
    TRY(new_memory(f, f->nodes + 1, sizeof *begins, &begins));
    TRY(new_memory(f, f->weights, sizeof *targets, &targets));
    TRY(new_memory(f, f->weights, sizeof *order, &order));
    memset(begins, 0, (f->nodes + 2) * sizeof *begins);
    for (size_t i = 0; i < f->weights; i++) {
        TRY(find_node(f, f->weight_trees[i], f->weight_nodes[i], &node));
        begins[node + 2]++;
    }
    for (size_t i = 2; i < f->nodes + 2; i++)
        begins[i] += begins[i - 1];
    for (size_t i = 0; i < f->weights; i++) {
        TRY(find_node(f, f->weight_trees[i], f->weight_nodes[i], &node));
        if (f->weight_targets[i] < 0 || f->weight_targets[i] >= f->targets)
            return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsembleRegressor names target %" PRId64 " of %" PRId64,
                        f->weight_targets[i], f->targets);
        const int32_t at = begins[node + 1]++;
        order[at] = (int32_t)i;
        targets[at] = (int32_t)f->weight_targets[i];
    }
    TRY(place_ints(f, begins, f->nodes + 1, &trees->begins));
    TRY(place_ints(f, targets, f->weights, &trees->targets));
    return place_numbers(f, &f->weight_values, order, &trees->weights);
}

static rnl_tree_aggregate aggregate_of(const rnl_node *node)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    const char *name = rnl_node_string(node, "aggregate_function", "SUM");
    for (size_t i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0)
            return (rnl_tree_aggregate)i;
    return RNL_TREE_SUM;
}

static rnl_status add_base(forest *f, const rnl_view *scores, const rnl_view *target)
{
    const numbers none = {0};
    numbers base = none;
    rnl_view values, sum;
    TRY(read_numbers(f, "base_values", "base_values_as_tensor", &base));
    if (base.count == 0)
        return rnl_lower_copy(f->lowering, scores, target);
    if ((int64_t)base.count != f->targets)
        return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsembleRegressor has %zu base values for %" PRId64 " targets",
                    base.count, f->targets);
    TRY(place_numbers(f, &base, NULL, &values));
    TRY(rnl_compose_binary(f->lowering, RNL_MAP_ADD, scores, &values, &sum));
    return rnl_lower_copy(f->lowering, &sum, target);
}

rnl_status rnl_lower_tree_regressor(rnl_lowering *lowering)
{
    forest f = {.lowering = lowering};
    rnl_trees trees = {.aggregate = aggregate_of(lowering->context.node)};
    rnl_view source, scores, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    f.dtype = source.dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    f.features = source.shape[1];
    f.targets = target.shape[1];
    TRY(read_forest(&f));
    TRY(sort_names(&f));
    TRY(rnl_compose_cast(lowering, &source, f.dtype, &source));
    TRY(place_nodes(&f, &trees));
    TRY(place_weights(&f, &trees));
    TRY(place_numbers(&f, &(numbers){0}, NULL, &trees.members));
    TRY(rnl_lower_scratch(lowering, f.dtype, 2, target.shape, RNL_LAYOUT_ROW_MAJOR, &scores));
    TRY(rnl_op_trees(lowering->list, &trees, &source, &scores));
    if (rnl_view_elements(&target) == 0)
        return RNL_OK;
    return add_base(&f, &scores, &target);
}
