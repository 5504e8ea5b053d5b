/* SPDX-License-Identifier: Apache-2.0 */
/* TreeEnsemble: the attributes' lists become the tables that the kernel reads, each place in them checked. */
#include "model/lower_list.h"

#include "base/memory.h"
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "model/compose.h"
#include "ops/trees.h"
#include <float.h>
#include <math.h>

#define MEMBER 6 /* the mode */

typedef struct forest {
    rnl_lowering *lowering;
    size_t nodes, leaves, roots;
    int64_t features, targets;
    const int64_t *feature_ids, *true_ids, *false_ids, *true_leafs, *false_leafs, *missing, *leaf_targets, *root_ids;
    const rnl_host_tensor *modes, *splits, *weights, *members;
    rnl_dtype dtype;
} forest;

static rnl_status read_ints(const forest *f, const char *name, size_t count, const int64_t **out_values)
{
    size_t found;
    *out_values = rnl_node_ints(f->lowering->context.node, name, &found);
    if (found == count)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "attribute '%s' of TreeEnsemble has %zu numbers where %zu are needed", name,
                found, count);
}

/* Of integers, or of floats. */
static rnl_status read_tensor(const forest *f, const char *name, bool integers, const rnl_host_tensor **out_tensor)
{
    const rnl_attribute *attribute = rnl_node_attribute(f->lowering->context.node, name);
    *out_tensor = NULL;
    if (!attribute)
        return RNL_OK;
    const uint32_t types = integers ? RNL_TYPES_SIGNED | RNL_TYPES_UNSIGNED : RNL_TYPES_FLOAT_64;
    if (attribute->type != RNL_ATTRIBUTE_TENSOR || !(types & RNL_TYPE_BIT(attribute->tensor->dtype)) ||
        attribute->tensor->rank > 1)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute '%s' of TreeEnsemble is not a list of %s", name,
                    integers ? "integers" : "floats");
    *out_tensor = attribute->tensor;
    return RNL_OK;
}

static size_t length_of(const rnl_host_tensor *tensor)
{
    return tensor ? tensor->size_bytes / rnl_dtype_bytes(tensor->dtype) : 0;
}

static double number_at(const rnl_host_tensor *tensor, size_t index)
{
    return rnl_element_load(tensor->data, (int64_t)index, tensor->dtype).f;
}

static rnl_status read_forest(forest *f)
{
    const rnl_node *node = f->lowering->context.node;
    TRY(read_tensor(f, "nodes_modes", true, &f->modes));
    TRY(read_tensor(f, "nodes_splits", false, &f->splits));
    TRY(read_tensor(f, "leaf_weights", false, &f->weights));
    TRY(read_tensor(f, "membership_values", false, &f->members));
    f->nodes = length_of(f->modes);
    f->leaves = length_of(f->weights);
    if (f->nodes > INT32_MAX / RNL_TREE_NODE || f->leaves >= INT32_MAX || length_of(f->members) > INT32_MAX ||
        length_of(f->splits) != f->nodes)
        return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsemble has %zu modes, %zu splits and %zu leaves", f->nodes,
                    length_of(f->splits), f->leaves);
    TRY(read_ints(f, "nodes_featureids", f->nodes, &f->feature_ids));
    TRY(read_ints(f, "nodes_truenodeids", f->nodes, &f->true_ids));
    TRY(read_ints(f, "nodes_falsenodeids", f->nodes, &f->false_ids));
    TRY(read_ints(f, "nodes_trueleafs", f->nodes, &f->true_leafs));
    TRY(read_ints(f, "nodes_falseleafs", f->nodes, &f->false_leafs));
    TRY(read_ints(f, "leaf_targetids", f->leaves, &f->leaf_targets));
    f->root_ids = rnl_node_ints(node, "tree_roots", &f->roots);
    f->missing = NULL;
    return rnl_node_attribute(node, "nodes_missing_value_tracks_true")
               ? read_ints(f, "nodes_missing_value_tracks_true", f->nodes, &f->missing)
               : RNL_OK;
}

/* ---- tables --------------------------------------------------------------------------------------------------- */

static rnl_status place_ints(forest *f, const int32_t *numbers, size_t count, rnl_view *out_view)
{
    const rnl_tensor_desc desc = {.dtype = RNL_I32, .rank = 1, .shape = {(int64_t)count}, .host = numbers};
    return rnl_lower_constant(f->lowering, &desc, out_view);
}

/* In the type that is computed with. */
static rnl_status place_numbers(forest *f, const rnl_host_tensor *tensor, rnl_view *out_view)
{
    const size_t count = length_of(tensor);
    void *numbers = NULL;
    TRY(rnl_zone_alloc(f->lowering->planner->zone, count + 1, rnl_dtype_bytes(f->dtype), &numbers));
    for (size_t i = 0; i < count; i++)
        rnl_element_store(numbers, (int64_t)i, f->dtype, (rnl_number){.f = number_at(tensor, i)});
    const rnl_tensor_desc desc = {.dtype = f->dtype, .rank = 1, .shape = {(int64_t)count}, .host = numbers};
    return rnl_lower_constant(f->lowering, &desc, out_view);
}

static rnl_status check_place(const char *what, int64_t place, int64_t count)
{
    if (place >= 0 && place < count)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsemble names %s %" PRId64 " of %" PRId64, what, place, count);
}

static rnl_status child_of(const forest *f, bool is_leaf, int64_t id, int32_t *out_child)
{
    TRY(check_place(is_leaf ? "leaf" : "node", id, (int64_t)(is_leaf ? f->leaves : f->nodes)));
    *out_child = (int32_t)(is_leaf ? -1 - id : id);
    return RNL_OK;
}

/* The members of the next set, which a NaN ends. */
static rnl_status next_set(const forest *f, size_t *member, int32_t *out_first, int32_t *out_count)
{
    const size_t first = *member, count = length_of(f->members);
    size_t end = first;
    while (end < count && !isnan(number_at(f->members, end)))
        end++;
    if (end == count)
        return FAIL(RNL_INVALID_ARGUMENT, "TreeEnsemble has fewer sets of members than nodes that ask for one");
    *out_first = (int32_t)first;
    *out_count = (int32_t)(end - first);
    *member = end + 1;
    return RNL_OK;
}

static rnl_status place_nodes(forest *f, rnl_trees *trees)
{
    int32_t *table = NULL;
    size_t member = 0;
    TRY(rnl_zone_alloc(f->lowering->planner->zone, f->nodes * RNL_TREE_NODE + 1, sizeof *table, &table));
    for (size_t i = 0; i < f->nodes; i++) {
        int32_t *node = &table[i * RNL_TREE_NODE];
        const int64_t mode = rnl_element_load(f->modes->data, (int64_t)i, f->modes->dtype).i;
        TRY(check_place("mode", mode, MEMBER + 1));
        TRY(check_place("feature", f->feature_ids[i], f->features));
        node[0] = (int32_t)mode | (f->missing && f->missing[i] ? RNL_TREE_MISSING : 0);
        node[1] = (int32_t)f->feature_ids[i];
        TRY(child_of(f, f->true_leafs[i] != 0, f->true_ids[i], &node[2]));
        TRY(child_of(f, f->false_leafs[i] != 0, f->false_ids[i], &node[3]));
        node[4] = node[5] = 0;
        if (mode == MEMBER)
            TRY(next_set(f, &member, &node[4], &node[5]));
    }
    return place_ints(f, table, f->nodes * RNL_TREE_NODE, &trees->nodes);
}

/* A leaf has one weight. */
static rnl_status place_leaves(forest *f, rnl_trees *trees)
{
    int32_t *begins = NULL, *targets = NULL;
    TRY(rnl_zone_alloc(f->lowering->planner->zone, f->leaves + 1, sizeof *begins, &begins));
    TRY(rnl_zone_alloc(f->lowering->planner->zone, f->leaves + 1, sizeof *targets, &targets));
    for (size_t i = 0; i < f->leaves; i++) {
        TRY(check_place("target", f->leaf_targets[i], f->targets));
        begins[i] = (int32_t)i;
        targets[i] = (int32_t)f->leaf_targets[i];
    }
    begins[f->leaves] = (int32_t)f->leaves;
    TRY(place_ints(f, begins, f->leaves + 1, &trees->begins));
    TRY(place_ints(f, targets, f->leaves, &trees->targets));
    return place_numbers(f, f->weights, &trees->weights);
}

static rnl_status place_roots(forest *f, rnl_trees *trees)
{
    int32_t *roots = NULL;
    TRY(rnl_zone_alloc(f->lowering->planner->zone, f->roots + 1, sizeof *roots, &roots));
    for (size_t i = 0; i < f->roots; i++) {
        TRY(check_place("node", f->root_ids[i], (int64_t)f->nodes));
        roots[i] = (int32_t)f->root_ids[i];
    }
    return place_ints(f, roots, f->roots, &trees->roots);
}

rnl_status rnl_lower_trees(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    forest f = {.lowering = lowering};
    rnl_trees trees = {.aggregate = (rnl_tree_aggregate)rnl_node_int(node, "aggregate_function", RNL_TREE_SUM)};
    rnl_view source, scores, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    f.dtype = source.dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    f.features = source.shape[1];
    f.targets = target.shape[1];
    TRY(read_forest(&f));
    TRY(rnl_compose_cast(lowering, &source, f.dtype, &source));
    TRY(place_nodes(&f, &trees));
    TRY(place_leaves(&f, &trees));
    TRY(place_roots(&f, &trees));
    TRY(place_numbers(&f, f.splits, &trees.splits));
    TRY(place_numbers(&f, f.members, &trees.members));
    TRY(rnl_lower_scratch(lowering, f.dtype, 2, target.shape, RNL_LAYOUT_ROW_MAJOR, &scores));
    TRY(rnl_op_trees(lowering->list, &trees, &source, &scores));
    const int transform = (int)rnl_node_int(node, "post_transform", 0);
    if (transform == 0 || target.dtype == f.dtype)
        return rnl_lower_post_transform(lowering, transform, &scores, &target);
    rnl_view result;
    TRY(rnl_lower_scratch(lowering, f.dtype, 2, target.shape, RNL_LAYOUT_ROW_MAJOR, &result));
    TRY(rnl_lower_post_transform(lowering, transform, &scores, &result));
    return rnl_lower_copy(lowering, &result, &target);
}
