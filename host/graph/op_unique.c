/* SPDX-License-Identifier: Apache-2.0 */
/* Unique: of elements, or of slices along an axis. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct unique {
    const rnl_tensor_desc *input;
    bool has_axis;
    size_t axis;
    int64_t outer, length, inner;            /* `length` items are compared, each of outer x inner elements */
    int64_t *order;                          /* the items, equal ones together, the first one first */
    int64_t *first, *group_at, *group_count; /* of each group: its first item, its place in `order`, its items */
    int64_t *rank;                           /* groups in the order of the output */
    int64_t count;                           /* groups */
} unique;

static rnl_status resolve(const rnl_op_context *context, unique *out)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    *out = (unique){.input = input,
                    .has_axis = rnl_node_attribute(context->node, "axis") != NULL,
                    .outer = 1,
                    .length = rnl_desc_elements(input),
                    .inner = 1};
    if (!out->has_axis)
        return RNL_OK;
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", 0), input->rank, "axis", &out->axis));
    out->length = input->shape[out->axis];
    (void)rnl_shape_elements(input->shape, out->axis, &out->outer);
    (void)rnl_shape_elements(input->shape + out->axis + 1, input->rank - out->axis - 1, &out->inner);
    return RNL_OK;
}

/* NaN is the largest number, and one number. */
static int compare_floats(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static int compare_elements(const unique *u, int64_t a, int64_t b)
{
    rnl_number x = rnl_element_load(u->input->host, a, u->input->dtype);
    rnl_number y = rnl_element_load(u->input->host, b, u->input->dtype);
    switch (rnl_dtype_kind(u->input->dtype)) {
    case RNL_NUMBER_FLOAT:
        return compare_floats(x.f, y.f);
    case RNL_NUMBER_SIGNED:
        return (x.i > y.i) - (x.i < y.i);
    default:
        return (x.u > y.u) - (x.u < y.u);
    }
}

static int compare_items(const unique *u, int64_t a, int64_t b)
{
    int order = 0;
    for (int64_t i = 0; i < u->outer && order == 0; i++)
        for (int64_t k = 0; k < u->inner && order == 0; k++)
            order = compare_elements(u, (i * u->length + a) * u->inner + k, (i * u->length + b) * u->inner + k);
    return order;
}

static int compare_places(const void *left, const void *right, void *user)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    int order = compare_items(user, a, b);
    return order ? order : (a > b) - (a < b);
}

static int compare_firsts(const void *left, const void *right, void *user)
{
    const unique *u = user;
    int64_t a = u->first[*(const int64_t *)left], b = u->first[*(const int64_t *)right];
    return (a > b) - (a < b);
}

static rnl_status find_groups(rnl_zone *zone, unique *u, bool is_sorted)
{
    const size_t length = (size_t)u->length + 1;
    TRY(rnl_zone_alloc(zone, length, sizeof *u->order, &u->order));
    TRY(rnl_zone_alloc(zone, length, sizeof *u->first, &u->first));
    TRY(rnl_zone_alloc(zone, length, sizeof *u->group_at, &u->group_at));
    TRY(rnl_zone_alloc(zone, length, sizeof *u->group_count, &u->group_count));
    TRY(rnl_zone_alloc(zone, length, sizeof *u->rank, &u->rank));
    for (int64_t i = 0; i < u->length; i++)
        u->order[i] = i;
    qsort_r(u->order, (size_t)u->length, sizeof *u->order, compare_places, u);
    for (int64_t i = 0; i < u->length; i++) {
        if (i == 0 || compare_items(u, u->order[i - 1], u->order[i]) != 0) {
            u->first[u->count] = u->order[i];
            u->group_at[u->count] = i;
            u->rank[u->count] = u->count;
            u->count++;
        }
        u->group_count[u->count - 1]++;
    }
    if (!is_sorted)
        qsort_r(u->rank, (size_t)u->count, sizeof *u->rank, compare_firsts, u);
    return RNL_OK;
}

static rnl_status begin(const rnl_op_context *context, rnl_zone *zone, unique *out)
{
    TRY(rnl_evaluate_begin(context));
    TRY(resolve(context, out));
    return find_groups(zone, out, rnl_node_int(context->node, "sorted", 1) != 0);
}

static rnl_status set_outputs(rnl_op_context *context, const unique *u)
{
    const rnl_tensor_desc *input = u->input;
    int64_t shape[RNL_MAX_RANK] = {0};
    memcpy(shape, input->shape, sizeof shape);
    shape[u->has_axis ? u->axis : 0] = u->count;
    TRY(rnl_output_set(context, 0, input->dtype, shape, u->has_axis ? input->rank : 1));
    TRY(rnl_output_set(context, 1, RNL_I64, &u->count, 1));
    TRY(rnl_output_set(context, 2, RNL_I64, &u->length, 1));
    return rnl_output_set(context, 3, RNL_I64, &u->count, 1);
}

rnl_status rnl_infer_unique(rnl_op_context *context)
{
    rnl_zone zone = {0};
    unique u;
    rnl_status status = RNL_OK;
    TRY(rnl_infer_begin(context));
    GOTO(begin(context, &zone, &u));
    GOTO(set_outputs(context, &u));
done:
    rnl_zone_free(&zone);
    return status;
}

static void store(const rnl_op_context *context, size_t output, int64_t index, int64_t value)
{
    if (output < context->output_count && context->results[output])
        rnl_element_store(context->results[output], index, RNL_I64, (rnl_number){.i = value});
}

/* The group's first item becomes item `place` of the output. */
static void copy_item(const rnl_op_context *context, const unique *u, int64_t item, int64_t place)
{
    const size_t bytes = (size_t)u->inner * rnl_dtype_bytes(u->input->dtype);
    for (int64_t i = 0; i < u->outer && bytes > 0 && context->results[0]; i++)
        memcpy((unsigned char *)context->results[0] + (size_t)(i * u->count + place) * bytes,
               (const unsigned char *)u->input->host + (size_t)(i * u->length + item) * bytes, bytes);
}

rnl_status rnl_evaluate_unique(rnl_op_context *context)
{
    rnl_zone zone = {0};
    unique u;
    rnl_status status = RNL_OK;
    GOTO(begin(context, &zone, &u));
    for (int64_t i = 0; i < u.count; i++) {
        const int64_t group = u.rank[i];
        copy_item(context, &u, u.first[group], i);
        store(context, 1, i, u.first[group]);
        store(context, 3, i, u.group_count[group]);
        for (int64_t k = 0; k < u.group_count[group]; k++)
            store(context, 2, u.order[u.group_at[group] + k], i);
    }
done:
    rnl_zone_free(&zone);
    return status;
}
