/* SPDX-License-Identifier: Apache-2.0 */
#include "outputs.h"
#include "small.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>

typedef struct entry {
    long double value;
    size_t index;
} entry;

/* Larger first; of equals, the lower index. */
static int compare_entries(const void *left, const void *right)
{
    const entry *a = left;
    const entry *b = right;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void print_entry(const entry *e, size_t place, rnl_dtype dtype, const rnl_labels *labels, FILE *out)
{
    char label[RNL_CLI_NAME_BYTES];
    fprintf(out, "  %zu. ", place);
    if (e->index < labels->count)
        fprintf(out, "%s", rnl_cli_clean(labels->names[e->index], label, sizeof label));
    else
        fprintf(out, "%zu", e->index);
    fprintf(out, rnl_dtype_is_float(dtype) || rnl_small_is_float(dtype) ? ": %.7Lg\n" : ": %.0Lf\n", e->value);
}

/* The entries of one sample that are numbers, sorted. */
static size_t sort_sample(const rnl_tensor *output, size_t first, size_t count, entry *out_entries)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        long double value = rnl_values_load(output->dtype, output->data, first + i);
        if (!isnan(value))
            out_entries[used++] = (entry){value, i};
    }
    qsort(out_entries, used, sizeof *out_entries, compare_entries);
    return used;
}

rnl_exit rnl_outputs_print_top(const rnl_tensor *output, uint64_t k, const rnl_labels *labels, FILE *out)
{
    char name[RNL_CLI_NAME_BYTES];
    size_t count, bytes;
    rnl_cli_clean(output->name, name, sizeof name);
    if (!rnl_values_bytes(output->dtype, output->shape, output->rank, &count, &bytes) || count == 0)
        return RNL_EXIT_DONE;
    size_t samples = output->rank >= 2 ? (size_t)output->shape[0] : 1;
    size_t width = count / samples;
    entry *entries = calloc(width, sizeof *entries);
    if (!entries)
        return rnl_cli_fail("--top: out of memory");
    for (size_t s = 0; s < samples; s++) {
        size_t found = sort_sample(output, s * width, width, entries);
        if (samples > 1)
            fprintf(out, "top of %s, sample %zu:\n", name, s);
        else
            fprintf(out, "top of %s:\n", name);
        for (size_t i = 0; i < found && i < k; i++)
            print_entry(&entries[i], i + 1, output->dtype, labels, out);
    }
    free(entries);
    return RNL_EXIT_DONE;
}
