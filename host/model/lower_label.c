/* SPDX-License-Identifier: Apache-2.0 */
/* LabelEncoder: the attributes' keys are sorted, and the values follow them. */
#include "model/lower_list.h"

#include "base/memory.h"
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "model/compose.h"
#include "ops/lookup.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    rnl_number key;
    size_t index;
    bool is_float;
} entry;

/* NaN comes last; of equal keys, the first in the list. */
static int compare(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    const bool before =
        x->is_float ? x->key.f < y->key.f || (isnan(y->key.f) && !isnan(x->key.f)) : x->key.i < y->key.i;
    const bool after = x->is_float ? x->key.f > y->key.f || (isnan(x->key.f) && !isnan(y->key.f)) : x->key.i > y->key.i;
    if (before || after)
        return before ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static rnl_status sort_keys(rnl_zone *zone, const rnl_label_list *keys, entry **out_entries)
{
    TRY(rnl_zone_alloc(zone, keys->count + 1, sizeof **out_entries, out_entries));
    for (size_t i = 0; i < keys->count; i++)
        (*out_entries)[i] = (entry){rnl_element_load(keys->data, (int64_t)i, keys->dtype), i,
                                    (RNL_TYPES_FLOAT_64 & RNL_TYPE_BIT(keys->dtype)) != 0};
    if (keys->count > 0)
        qsort(*out_entries, keys->count, sizeof **out_entries, compare);
    return RNL_OK;
}

static rnl_status place(rnl_lowering *lowering, rnl_dtype dtype, const void *data, size_t count, rnl_view *out_view)
{
    const rnl_tensor_desc desc = {.dtype = dtype, .rank = 1, .shape = {(int64_t)count}, .host = data};
    return rnl_lower_constant(lowering, &desc, out_view);
}

/* The keys in the type that is compared in. */
static rnl_status place_keys(rnl_lowering *lowering, const entry *entries, size_t count, rnl_dtype dtype,
                             rnl_view *out_view)
{
    void *data = NULL;
    TRY(rnl_zone_alloc(lowering->planner->zone, count + 1, rnl_dtype_bytes(dtype), &data));
    for (size_t i = 0; i < count; i++)
        rnl_element_store(data, (int64_t)i, dtype, entries[i].key);
    return place(lowering, dtype, data, count, out_view);
}

static rnl_status place_values(rnl_lowering *lowering, const entry *entries, const rnl_labels *labels,
                               rnl_view *out_view)
{
    const size_t count = labels->keys.count, size = rnl_dtype_bytes(labels->values.dtype);
    unsigned char *data = NULL;
    TRY(rnl_zone_alloc(lowering->planner->zone, count + 1, size, &data));
    for (size_t i = 0; i < count; i++)
        memcpy(data + i * size, (const unsigned char *)labels->values.data + entries[i].index * size, size);
    rnl_element_store(data, (int64_t)count, labels->values.dtype, labels->absent);
    return place(lowering, labels->values.dtype, data, count + 1, out_view);
}

rnl_status rnl_lower_label_encoder(rnl_lowering *lowering)
{
    rnl_labels labels;
    entry *entries = NULL;
    rnl_view source, target, keys, values;
    TRY(rnl_labels_resolve(lowering->context.node, &labels));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    const bool is_float = (RNL_TYPES_FLOAT_64 & RNL_TYPE_BIT(source.dtype)) != 0;
    TRY(rnl_compose_cast(lowering, &source, is_float ? source.dtype : RNL_I64, &source));
    TRY(sort_keys(lowering->planner->zone, &labels.keys, &entries));
    TRY(place_keys(lowering, entries, labels.keys.count, source.dtype, &keys));
    TRY(place_values(lowering, entries, &labels, &values));
    return rnl_op_lookup(lowering->list, &source, &keys, &values, &target);
}
