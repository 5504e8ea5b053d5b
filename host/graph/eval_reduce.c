/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <math.h>
#include <string.h>

typedef enum reduce_op { SUM, MEAN, MAX, MIN, PROD, L1, L2, SUM_SQUARE, LOG_SUM, LOG_SUM_EXP } reduce_op;

static reduce_op op_of(const char *op_type)
{
    static const char *const names[] = {"ReduceSum",    "ReduceMean",     "ReduceMax", "ReduceMin",
                                        "ReduceProd",   "ReduceL1",       "ReduceL2",  "ReduceSumSquare",
                                        "ReduceLogSum", "ReduceLogSumExp"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names - 1 && strcmp(names[i], op_type) != 0)
        i++;
    return (reduce_op)i;
}

static double step_float(reduce_op op, double sum, double x, double shift)
{
    switch (op) {
    case MAX:
        return rnl_float_max(sum, x);
    case MIN:
        return rnl_float_min(sum, x);
    case PROD:
        return sum * x;
    case L1:
        return sum + fabs(x);
    case L2:
    case SUM_SQUARE:
        return sum + x * x;
    case LOG_SUM_EXP:
        return sum + exp(x - shift);
    case SUM:
    case MEAN:
    case LOG_SUM:
        break;
    }
    return sum + x;
}

/* One output element: `group` walks the elements that it comes from. */
static double reduce_float(reduce_op op, rnl_walk group, const rnl_tensor_desc *input)
{
    static const double starts[] = {[MAX] = -INFINITY, [MIN] = INFINITY, [PROD] = 1, [LOG_SUM_EXP] = 0};
    int64_t count = group.left;
    double sum = starts[op], shift = 0;
    if (op == LOG_SUM_EXP) { /* keeps exp in range */
        shift = reduce_float(MAX, group, input);
        shift = isfinite(shift) ? shift : 0;
    }
    for (; group.left > 0; rnl_walk_next(&group)) {
        rnl_number x = rnl_element_load(input->host, group.at[0], input->dtype);
        sum = step_float(op, sum, rnl_number_double(x, input->dtype), shift);
    }
    switch (op) {
    case MEAN:
        return sum / (double)count;
    case L2:
        return sqrt(sum);
    case LOG_SUM:
        return log(sum);
    case LOG_SUM_EXP:
        return shift + log(sum);
    default:
        return sum;
    }
}

static bool integer_wins(reduce_op op, rnl_number x, rnl_number best, rnl_dtype dtype)
{
    if (rnl_dtype_kind(dtype) == RNL_NUMBER_SIGNED)
        return op == MAX ? x.i > best.i : x.i < best.i;
    return op == MAX ? x.u > best.u : x.u < best.u;
}

static rnl_number step_integer(reduce_op op, rnl_number sum, rnl_number x, rnl_dtype dtype)
{
    bool negative = rnl_dtype_kind(dtype) == RNL_NUMBER_SIGNED && x.i < 0;
    if (op == MAX || op == MIN)
        return integer_wins(op, x, sum, dtype) ? x : sum;
    if (op == PROD)
        sum.u *= x.u;
    else if (op == L1)
        sum.u += negative ? 0 - x.u : x.u;
    else if (op == SUM_SQUARE)
        sum.u += x.u * x.u;
    else
        sum.u += x.u;
    return sum;
}

/* Wraps as numpy does; a mean is cut off towards zero. */
static rnl_number reduce_integer(reduce_op op, rnl_walk group, const rnl_tensor_desc *input)
{
    rnl_dtype dtype = input->dtype;
    int64_t count = group.left;
    rnl_number sum = {.u = op == PROD};
    if (op == MAX)
        sum = rnl_number_lowest(dtype);
    if (op == MIN)
        sum = rnl_number_highest(dtype);
    for (; group.left > 0; rnl_walk_next(&group))
        sum = step_integer(op, sum, rnl_element_load(input->host, group.at[0], dtype), dtype);
    if (op == MEAN && count > 0 && rnl_dtype_kind(dtype) == RNL_NUMBER_SIGNED)
        sum.i /= count;
    else if (op == MEAN && count > 0)
        sum.u /= (uint64_t)count;
    return sum;
}

/* Walks over the outputs and, inside, over the elements of each: two shapes with the input's strides. */
static void split_walks(const rnl_tensor_desc *input, uint32_t axes, rnl_walk *outer, rnl_walk *group)
{
    int64_t kept[RNL_MAX_RANK], reduced[RNL_MAX_RANK], stride[RNL_MAX_RANK];
    for (size_t i = 0; i < input->rank; i++) {
        bool reduce = axes & (1u << i);
        kept[i] = reduce ? 1 : input->shape[i];
        reduced[i] = reduce ? input->shape[i] : 1;
    }
    rnl_dense_strides(input->shape, input->rank, stride);
    rnl_walk_init(outer, kept, input->rank);
    rnl_walk_init(group, reduced, input->rank);
    outer->operands = group->operands = 1;
    memcpy(outer->stride[0], stride, input->rank * sizeof *stride);
    memcpy(group->stride[0], stride, input->rank * sizeof *stride);
}

rnl_status rnl_evaluate_reduce(rnl_op_context *context)
{
    rnl_walk outer, group;
    uint32_t axes;
    bool noop;
    TRY(rnl_evaluate_begin(context));
    TRY(rnl_reduce_axes(context, &axes, &noop));
    if (noop)
        return rnl_evaluate_copy(context);
    const rnl_tensor_desc *input = &context->inputs[0];
    reduce_op op = op_of(context->node->op_type);
    bool exact = rnl_dtype_kind(input->dtype) != RNL_NUMBER_FLOAT && op != L2 && op != LOG_SUM && op != LOG_SUM_EXP;
    split_walks(input, axes, &outer, &group);
    for (int64_t i = 0; outer.left > 0; i++, rnl_walk_next(&outer)) {
        rnl_number result;
        group.at[0] = outer.at[0];
        if (exact) {
            result = reduce_integer(op, group, input);
        } else {
            result.f = reduce_float(op, group, input);
            result = rnl_number_convert(result, RNL_F64, input->dtype);
        }
        rnl_element_store(context->results[0], i, input->dtype, result);
    }
    return RNL_OK;
}
