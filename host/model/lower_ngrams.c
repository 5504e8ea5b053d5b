/* SPDX-License-Identifier: Apache-2.0 */
/* TfIdfVectorizer: the pool's n-grams become the lists that the kernel reads, sorted by column. */
#include "model/lower_list.h"

#include "base/memory.h"
#include "model/compose.h"
#include "ops/ngrams.h"
#include <stdlib.h>

typedef struct ngram {
    int32_t column, start, length;
} ngram;

static int compare(const void *a, const void *b)
{
    const ngram *x = a, *y = b;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

/* Those whose length is asked for. */
static size_t list_ngrams(const rnl_ngram_params *params, ngram *ngrams)
{
    size_t id = 0, count = 0;
    for (size_t i = 0; i < params->count_count; i++) {
        const int64_t end = i + 1 < params->count_count ? params->counts[i + 1] : (int64_t)params->pool_count;
        const int64_t length = (int64_t)i + 1;
        for (int64_t start = params->counts[i]; start < end; start += length, id++)
            if (length >= params->least && length <= params->most)
                ngrams[count++] = (ngram){(int32_t)params->indexes[id], (int32_t)start, (int32_t)length};
    }
    if (count > 0)
        qsort(ngrams, count, sizeof *ngrams, compare);
    return count;
}

static rnl_status place(rnl_lowering *lowering, rnl_dtype dtype, const void *numbers, size_t count, rnl_view *out_view)
{
    const rnl_tensor_desc desc = {.dtype = dtype, .rank = 1, .shape = {(int64_t)count}, .host = numbers};
    return rnl_lower_constant(lowering, &desc, out_view);
}

static float weight_of(const rnl_ngram_params *params, int32_t column)
{
    return params->mode != 0 && params->weight_count > 0 ? params->weights[column] : 1;
}

static rnl_status place_lists(rnl_lowering *lowering, const rnl_ngram_params *params, const ngram *ngrams, size_t count,
                              rnl_ngrams *lists)
{
    rnl_zone *zone = lowering->planner->zone;
    int32_t *starts = NULL, *lengths = NULL, *begins = NULL, *columns = NULL;
    float *weights = NULL;
    size_t used = 0;
    TRY(rnl_zone_alloc(zone, count + 1, sizeof *starts, &starts));
    TRY(rnl_zone_alloc(zone, count + 1, sizeof *lengths, &lengths));
    TRY(rnl_zone_alloc(zone, count + 1, sizeof *begins, &begins));
    TRY(rnl_zone_alloc(zone, count + 1, sizeof *columns, &columns));
    TRY(rnl_zone_alloc(zone, count + 1, sizeof *weights, &weights));
    for (size_t i = 0; i < count; i++) {
        starts[i] = ngrams[i].start;
        lengths[i] = ngrams[i].length;
        if (i > 0 && ngrams[i].column == ngrams[i - 1].column)
            continue;
        begins[used] = (int32_t)i;
        columns[used] = ngrams[i].column;
        weights[used++] = weight_of(params, ngrams[i].column);
    }
    begins[used] = (int32_t)count;
    TRY(place(lowering, RNL_I32, starts, count, &lists->starts));
    TRY(place(lowering, RNL_I32, lengths, count, &lists->lengths));
    TRY(place(lowering, RNL_I32, begins, used + 1, &lists->begins));
    TRY(place(lowering, RNL_I32, columns, used, &lists->columns));
    return place(lowering, RNL_F32, weights, used, &lists->weights);
}

/* As rows: a vector is one. */
static rnl_view rows_of(const rnl_view *view)
{
    rnl_view rows = *view;
    for (; rows.rank < 2; rows.rank++) {
        rows.shape[1] = rows.rank ? rows.shape[0] : 1;
        rows.stride[1] = rows.rank ? rows.stride[0] : 0;
        rows.shape[0] = 1;
        rows.stride[0] = 0;
    }
    return rows;
}

rnl_status rnl_lower_ngrams(rnl_lowering *lowering)
{
    rnl_ngram_params params;
    rnl_view source, target, zero;
    ngram *ngrams = NULL;
    TRY(rnl_ngram_resolve(lowering->context.node, &params));
    rnl_ngrams lists = {.distance = params.skips < INT32_MAX ? params.skips + 1 : INT32_MAX, .once = params.mode == 1};
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_compose_cast(lowering, &source, RNL_I64, &source));
    TRY(rnl_lower_scalar(lowering, RNL_F32, 0, &zero));
    TRY(rnl_lower_copy(lowering, &zero, &target));
    TRY(rnl_zone_alloc(lowering->planner->zone, params.index_count, sizeof *ngrams, &ngrams));
    const size_t count = list_ngrams(&params, ngrams);
    TRY(place_lists(lowering, &params, ngrams, count, &lists));
    TRY(place(lowering, RNL_I64, params.pool, params.pool_count, &lists.pool));
    source = rows_of(&source);
    target = rows_of(&target);
    return rnl_op_ngrams(lowering->list, &lists, &source, &target);
}
