/* SPDX-License-Identifier: Apache-2.0 */
/* TfIdfVectorizer: its attributes' lists, each place in them checked. */
#include "graph/op_common.h"
#include "graph/op_rows.h"

static rnl_status read_lists(const rnl_node *node, rnl_ngram_params *params)
{
    static const char *const modes[] = {"TF", "IDF", "TFIDF"};
    params->pool = rnl_node_ints(node, "pool_int64s", &params->pool_count);
    params->indexes = rnl_node_ints(node, "ngram_indexes", &params->index_count);
    params->counts = rnl_node_ints(node, "ngram_counts", &params->count_count);
    params->weights = rnl_node_floats(node, "weights", &params->weight_count);
    params->least = rnl_node_int(node, "min_gram_length", 0);
    params->most = rnl_node_int(node, "max_gram_length", 0);
    params->skips = rnl_node_int(node, "max_skip_count", -1);
    if (rnl_node_attribute(node, "pool_strings"))
        return FAIL(RNL_UNIMPLEMENTED, "TfIdfVectorizer of strings is not supported; pool_int64s is");
    TRY(rnl_choose(node, "mode", modes, 3, &params->mode));
    if (params->index_count > 0 && params->least >= 1 && params->most >= params->least && params->skips >= 0)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT,
                "TfIdfVectorizer has %zu indexes, lengths %" PRId64 " to %" PRId64 ", and %" PRId64 " skips",
                params->index_count, params->least, params->most, params->skips);
}

static rnl_status find_columns(rnl_ngram_params *params)
{
    params->columns = 0;
    for (size_t i = 0; i < params->index_count; i++) {
        if (params->indexes[i] < 0 || params->indexes[i] >= INT32_MAX)
            return FAIL(RNL_INVALID_ARGUMENT, "TfIdfVectorizer has an n-gram for column %" PRId64, params->indexes[i]);
        if (params->indexes[i] >= params->columns)
            params->columns = params->indexes[i] + 1;
    }
    if (params->mode == 0 || params->weight_count == 0 || (int64_t)params->weight_count >= params->columns)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "TfIdfVectorizer has %zu weights for %" PRId64 " columns", params->weight_count,
                params->columns);
}

/* Each length's part of the pool, up to the next one's. */
static rnl_status check_counts(const rnl_ngram_params *params)
{
    size_t total = 0;
    if (params->pool_count > INT32_MAX)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "TfIdfVectorizer has a pool of %zu items", params->pool_count);
    for (size_t i = 0; i < params->count_count; i++) {
        const int64_t first = params->counts[i], pool = (int64_t)params->pool_count;
        const int64_t end = i + 1 < params->count_count ? params->counts[i + 1] : pool;
        if (first < 0 || end < first || end > pool || (size_t)(end - first) % (i + 1) != 0)
            return FAIL(RNL_INVALID_ARGUMENT,
                        "TfIdfVectorizer has n-grams of %zu items from %" PRId64 " to %" PRId64 " of %zu items", i + 1,
                        first, end, params->pool_count);
        total += (size_t)(end - first) / (i + 1);
    }
    if (total <= params->index_count)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "TfIdfVectorizer has %zu n-grams and %zu indexes", total, params->index_count);
}

rnl_status rnl_ngram_resolve(const rnl_node *node, rnl_ngram_params *out_params)
{
    TRY(read_lists(node, out_params));
    TRY(find_columns(out_params));
    return check_counts(out_params);
}

rnl_status rnl_infer_ngrams(rnl_op_context *context)
{
    rnl_ngram_params params;
    TRY(rnl_infer_begin(context));
    TRY(rnl_ngram_resolve(context->node, &params));
    const rnl_tensor_desc *input = &context->inputs[0];
    if (input->rank > 2)
        return FAIL(RNL_INVALID_ARGUMENT, "TfIdfVectorizer of shape %s; it takes rows",
                    rnl_shape_format(input->shape, input->rank).text);
    if (input->rank == 2)
        return rnl_output_set(context, 0, RNL_F32, (const int64_t[]){input->shape[0], params.columns}, 2);
    return rnl_output_set(context, 0, RNL_F32, &params.columns, 1);
}
