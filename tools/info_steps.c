/* SPDX-License-Identifier: Apache-2.0 */
/* What runs each operator of a model on a device: the steps of one run, counted. */
#include "info.h"

#include <string.h>

static void add(rnl_operator_uses *uses, const char *implementation, bool within)
{
    for (size_t i = 0; i < uses->count; i++)
        if (uses->rows[i].within == within && strcmp(uses->rows[i].implementation, implementation) == 0) {
            uses->rows[i].steps++;
            return;
        }
    if (uses->count < RNL_MAX_USES)
        uses->rows[uses->count++] = (rnl_operator_use){implementation, within, 1};
}

/* How often the operator stands in " + Relu + Add". */
static size_t count_also(const char *also, const char *op_type)
{
    const size_t length = strlen(op_type);
    size_t count = 0;
    while (strncmp(also, " + ", 3) == 0) {
        also += 3;
        const size_t word = strcspn(also, " ");
        count += word == length && strncmp(also, op_type, length) == 0;
        also += word;
    }
    return count;
}

void rnl_info_find_uses(const rnl_step_profile *steps, size_t count, const char *op_type, rnl_operator_uses *out_uses)
{
    *out_uses = (rnl_operator_uses){0};
    for (size_t i = 0; i < count; i++)
        if (strcmp(steps[i].op_type, op_type) == 0)
            add(out_uses, steps[i].implementation, false);
    for (size_t i = 0; i < count; i++)
        for (size_t more = count_also(steps[i].also, op_type); more > 0; more--)
            add(out_uses, steps[i].implementation, true);
}

void rnl_info_print_uses(const rnl_operator_uses *uses)
{
    if (uses->count == 0)
        fputs("; no step: views, or computed while planning", stdout);
    for (size_t i = 0; i < uses->count; i++)
        printf("%s %s%s x%zu", i ? "," : ";", uses->rows[i].within ? "within " : "", uses->rows[i].implementation,
               uses->rows[i].steps);
}

json_t *rnl_info_uses_json(const rnl_operator_uses *uses)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < uses->count; i++)
        json_array_append_new(rows, json_pack("{ss sb sI}", "implementation", uses->rows[i].implementation, "within",
                                              uses->rows[i].within, "steps", (json_int_t)uses->rows[i].steps));
    return rows;
}
