/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_list.h"

#include <stdlib.h>
#include <string.h>

static const rnl_op_domain *const domains[] = {&rnl_op_domain_onnx, &rnl_op_domain_microsoft, &rnl_op_domain_ml,
                                               &rnl_op_domain_preview};

static const rnl_op_domain *find_domain(const char *name)
{
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (strcmp(domains[i]->name, name) == 0)
            return domains[i];
    return NULL;
}

typedef struct row_key {
    const char *op_type;
    int64_t opset;
} row_key;

static int compare_row(const void *key, const void *element)
{
    const row_key *wanted = key;
    const rnl_op_schema *row = *(const rnl_op_schema *const *)element;
    int order = strcmp(wanted->op_type, row->op_type);
    if (order != 0)
        return order;
    return wanted->opset < row->since ? -1 : wanted->opset > row->until;
}

const rnl_op_schema *rnl_op_find(const char *domain, const char *op_type, int64_t opset)
{
    row_key key = {op_type, opset};
    const rnl_op_domain *found = find_domain(domain);
    if (!found)
        return NULL;
    const rnl_op_schema *const *row = bsearch(&key, found->rows, found->count, sizeof *found->rows, compare_row);
    return row ? *row : NULL;
}

const rnl_op_schema *const *rnl_op_list(const char *domain, size_t *out_count)
{
    const rnl_op_domain *found = find_domain(domain);
    *out_count = found ? found->count : 0;
    return found ? found->rows : NULL;
}

size_t rnl_operator_list(rnl_operator_support *out_rows, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        for (size_t j = 0; j < domains[i]->count; j++, count++) {
            const rnl_op_schema *row = domains[i]->rows[j];
            if (count < capacity)
                out_rows[count] = (rnl_operator_support){.domain = domains[i]->name,
                                                         .op_type = row->op_type,
                                                         .since = row->since,
                                                         .until = row->until,
                                                         .types = row->types};
        }
    return count;
}
