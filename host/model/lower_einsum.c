/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Einsum: one operand after the other joins what came of the earlier ones. A label is summed over as soon as neither
 * the output nor a later operand has it: by a reduction when one operand alone has it, else by a matrix product, whose
 * batches are the labels that both factors have and that stay. Diagonals and permutations are views.
 */
#include "model/lower_list.h"

#include "model/compose.h"
#include <string.h>

#define GEMM_BATCHES (RNL_MAX_RANK - 2)

/* A view whose dimensions are labelled, each label once. What has size 1 is left out. */
typedef struct factor {
    rnl_view view;
    uint8_t labels[RNL_MAX_RANK];
} factor;

/* A set of labels, as bits. */
static uint64_t set_of(const factor *f)
{
    uint64_t set = 0;
    for (size_t i = 0; i < f->view.rank; i++)
        set |= UINT64_C(1) << f->labels[i];
    return set;
}

static bool contains(uint64_t set, uint8_t label)
{
    return set >> label & 1;
}

/* The labels of the output and of the operands from `first` on. */
static uint64_t needed_from(const rnl_einsum *einsum, size_t first)
{
    uint64_t set = 0;
    for (size_t i = 0; i < einsum->output_rank; i++)
        set |= UINT64_C(1) << einsum->output[i];
    for (size_t i = first; i < einsum->operands; i++)
        for (size_t j = 0; j < einsum->rank[i]; j++)
            set |= UINT64_C(1) << einsum->labels[i][j];
    return set;
}

/* A label that stands twice is a diagonal: one dimension that steps along both. */
static void label_view(const rnl_view *view, const uint8_t *labels, factor *out)
{
    out->view = *view;
    out->view.rank = 0;
    for (size_t i = 0; i < view->rank; i++) {
        if (view->shape[i] == 1)
            continue;
        size_t at = 0;
        while (at < out->view.rank && out->labels[at] != labels[i])
            at++;
        if (at == out->view.rank) {
            out->labels[at] = labels[i];
            out->view.shape[at] = view->shape[i];
            out->view.stride[at] = 0;
            out->view.rank++;
        }
        out->view.stride[at] += view->stride[i];
    }
}

/* Sums over the labels that are not in `kept`. */
static rnl_status sum_out(rnl_lowering *lowering, uint64_t kept, factor *f)
{
    uint32_t axes = 0;
    rnl_view sums;
    size_t rank = 0;
    for (size_t i = 0; i < f->view.rank; i++)
        axes |= (uint32_t)!contains(kept, f->labels[i]) << i;
    if (!axes)
        return RNL_OK;
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_SUM, axes, &f->view, &sums));
    for (size_t i = 0; i < f->view.rank; i++) {
        if (axes >> i & 1)
            continue;
        sums.shape[rank] = sums.shape[i];
        sums.stride[rank] = sums.stride[i];
        f->labels[rank++] = f->labels[i];
    }
    sums.rank = rank;
    f->view = sums;
    return RNL_OK;
}

/* The labels of `f` that are in `set`, behind those that are there. */
static void collect(const factor *f, uint64_t set, uint8_t *labels, size_t *count)
{
    for (size_t i = 0; i < f->view.rank; i++)
        if (contains(set, f->labels[i]))
            labels[(*count)++] = f->labels[i];
}

/* The view with these labels as dimensions, in this order; one that it lacks has the size of the other factor. */
static rnl_view arrange(const rnl_einsum *einsum, const factor *f, const uint8_t *labels, size_t count)
{
    rnl_view result = f->view;
    result.rank = count;
    for (size_t i = 0; i < count; i++) {
        result.shape[i] = einsum->size[labels[i]];
        result.stride[i] = 0;
        for (size_t j = 0; j < f->view.rank; j++)
            if (f->labels[j] == labels[i])
                result.stride[i] = f->view.stride[j];
    }
    return result;
}

/* The labels of a product: of batches, of the first factor alone, of the second alone, and those summed over. */
typedef struct product {
    uint8_t labels[4][RNL_MAX_RANK];
    size_t count[4];
    int64_t size[4]; /* elements */
} product;
enum { BATCH, ROWS, COLUMNS, SUMMED };

static void classify(const rnl_einsum *einsum, const factor *a, const factor *b, uint64_t kept, product *out)
{
    uint64_t both = set_of(a) & set_of(b);
    *out = (product){.size = {1, 1, 1, 1}};
    collect(a, both & kept, out->labels[BATCH], &out->count[BATCH]);
    collect(a, both & ~kept, out->labels[SUMMED], &out->count[SUMMED]);
    collect(a, ~both, out->labels[ROWS], &out->count[ROWS]);
    collect(b, ~both, out->labels[COLUMNS], &out->count[COLUMNS]);
    for (size_t part = 0; part < 4; part++)
        for (size_t i = 0; i < out->count[part]; i++)
            out->size[part] *= einsum->size[out->labels[part][i]];
}

/* A factor or the result as matrices: batches, then the labels of two parts, each as one dimension. */
static rnl_status as_matrices(rnl_lowering *lowering, const rnl_einsum *einsum, const factor *f, const product *p,
                              int first, int second, rnl_view *out)
{
    uint8_t labels[2 * RNL_MAX_RANK];
    int64_t shape[RNL_MAX_RANK];
    size_t count = 0, rank = 0;
    const int parts[] = {BATCH, first, second};
    for (size_t i = 0; i < 3; i++) {
        memcpy(labels + count, p->labels[parts[i]], p->count[parts[i]]);
        count += p->count[parts[i]];
    }
    rnl_view view = arrange(einsum, f, labels, count);
    if (p->count[BATCH] <= GEMM_BATCHES)
        for (; rank < p->count[BATCH]; rank++)
            shape[rank] = view.shape[rank];
    else
        shape[rank++] = p->size[BATCH];
    shape[rank++] = p->size[first];
    shape[rank++] = p->size[second];
    return rnl_compose_reshape(lowering, &view, rank, shape, out);
}

/* Memory for the result of two factors: the node's own where it is the last step and has the type. */
static rnl_status make_result(rnl_lowering *lowering, const rnl_einsum *einsum, const product *p, bool last,
                              rnl_dtype dtype, factor *out)
{
    static const int parts[] = {BATCH, ROWS, COLUMNS};
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    int64_t shape[RNL_MAX_RANK];
    size_t rank = 0;
    if (last && output->dtype == dtype) {
        rnl_view target;
        TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
        label_view(&target, einsum->output, out);
        return RNL_OK;
    }
    if (p->count[BATCH] + p->count[ROWS] + p->count[COLUMNS] > RNL_MAX_RANK)
        return FAIL(RNL_UNIMPLEMENTED, "Einsum's operands have more than %d dimensions together", RNL_MAX_RANK);
    for (size_t part = 0; part < 3; part++)
        for (size_t i = 0; i < p->count[parts[part]]; i++) {
            out->labels[rank] = p->labels[parts[part]][i];
            shape[rank] = einsum->size[out->labels[rank]];
            rank++;
        }
    return rnl_lower_scratch(lowering, dtype, rank, shape, RNL_LAYOUT_ROW_MAJOR, &out->view);
}

/* Nothing is summed over: each element of the result is one product. */
static rnl_status multiply(rnl_lowering *lowering, const rnl_einsum *einsum, const factor *a, const factor *b,
                           const factor *result)
{
    rnl_view sources[2] = {arrange(einsum, a, result->labels, result->view.rank),
                           arrange(einsum, b, result->labels, result->view.rank)};
    return rnl_op_map(lowering->list, RNL_MAP_MUL, 0, 0, sources, 2, &result->view);
}

static rnl_status contract(rnl_lowering *lowering, const rnl_einsum *einsum, const factor *a, const factor *b,
                           const product *p, const factor *result)
{
    rnl_gemm_params params = {.alpha = 1};
    rnl_view left, right, dense, target, ordered;
    uint8_t labels[3 * RNL_MAX_RANK];
    size_t count = 0;
    TRY(as_matrices(lowering, einsum, a, p, ROWS, SUMMED, &left));
    TRY(as_matrices(lowering, einsum, b, p, SUMMED, COLUMNS, &right));
    int64_t shape[RNL_MAX_RANK];
    memcpy(shape, left.shape, sizeof shape);
    shape[left.rank - 1] = p->size[COLUMNS];
    for (int part = BATCH; part <= COLUMNS; part++) {
        memcpy(labels + count, p->labels[part], p->count[part]);
        count += p->count[part];
    }
    ordered = arrange(einsum, result, labels, count);
    if (rnl_view_reshape(&ordered, left.rank, shape, &target))
        return rnl_compose_product(lowering, &params, &left, &right, NULL, &target);
    TRY(rnl_lower_scratch(lowering, ordered.dtype, ordered.rank, ordered.shape, RNL_LAYOUT_ROW_MAJOR, &dense));
    if (!rnl_view_reshape(&dense, left.rank, shape, &target))
        return FAIL(RNL_INTERNAL, "a row-major tensor cannot be reshaped");
    TRY(rnl_compose_product(lowering, &params, &left, &right, NULL, &target));
    return rnl_lower_copy(lowering, &dense, &ordered);
}

/* Operand `index` joins what the earlier ones came to. */
static rnl_status join(rnl_lowering *lowering, const rnl_einsum *einsum, size_t index, factor *next, factor *all)
{
    product p;
    factor result;
    bool last = index + 1 == einsum->operands;
    uint64_t kept = needed_from(einsum, index + 1);
    TRY(sum_out(lowering, kept | set_of(next), all));
    TRY(sum_out(lowering, kept | set_of(all), next));
    classify(einsum, all, next, kept, &p);
    TRY(make_result(lowering, einsum, &p, last, all->view.dtype, &result));
    if (p.count[SUMMED] == 0)
        TRY(multiply(lowering, einsum, all, next, &result));
    else
        TRY(contract(lowering, einsum, all, next, &p, &result));
    *all = result;
    return RNL_OK;
}

/* A sum over a label that one operand alone has comes before the product. */
static bool sums_first(const rnl_op_context *context, const rnl_einsum *einsum)
{
    uint64_t sets[2] = {0};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < einsum->rank[i]; j++)
            if (context->inputs[i].shape[j] != 1)
                sets[i] |= UINT64_C(1) << einsum->labels[i][j];
    return ((sets[0] ^ sets[1]) & ~needed_from(einsum, einsum->operands)) != 0;
}

/* What intermediate results are kept in: 16 bits would round again and again; products of small integers have none. */
static rnl_dtype work_type(const rnl_op_context *context, const rnl_einsum *einsum)
{
    rnl_dtype dtype = context->inputs[0].dtype;
    if (einsum->operands == 1)
        return dtype;
    switch (dtype) {
    case RNL_F16:
    case RNL_BF16:
        return einsum->operands > 2 || sums_first(context, einsum) ? RNL_F32 : dtype;
    case RNL_I8:
    case RNL_I16:
        return RNL_I32;
    case RNL_U8:
    case RNL_U16:
        return RNL_U32;
    default:
        return dtype;
    }
}

static rnl_status load(rnl_lowering *lowering, const rnl_einsum *einsum, size_t index, factor *out)
{
    rnl_view view;
    rnl_dtype dtype = work_type(&lowering->context, einsum);
    TRY(rnl_lower_input(lowering, index, RNL_LAYOUT_ANY, &view));
    label_view(&view, einsum->labels[index], out);
    view = out->view;
    return rnl_compose_cast(lowering, &view, dtype, &out->view);
}

rnl_status rnl_lower_einsum(rnl_lowering *lowering)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    rnl_einsum einsum;
    factor all, next;
    rnl_view target;
    TRY(rnl_einsum_resolve(&lowering->context, &einsum));
    TRY(load(lowering, &einsum, 0, &all));
    for (size_t i = 1; i < einsum.operands; i++) {
        TRY(load(lowering, &einsum, i, &next));
        TRY(join(lowering, &einsum, i, &next, &all));
    }
    if (einsum.operands > 1 && all.view.dtype == output->dtype)
        return RNL_OK;
    TRY(sum_out(lowering, needed_from(&einsum, einsum.operands), &all));
    all.view = arrange(&einsum, &all, einsum.output, einsum.output_rank);
    if (all.view.dtype == output->dtype) {
        rnl_lower_alias(lowering, 0, &all.view);
        return RNL_OK;
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_lower_copy(lowering, &all.view, &target);
}
