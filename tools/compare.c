/* SPDX-License-Identifier: Apache-2.0 */
/* runnel compare: the values of a run beside those of another device, or of a reference in Python. */
#include "compare.h"
#include "progress.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORST_ROWS 10

typedef struct compared {
    const rnl_tensor *got, *expected;
    rnl_producer producer;
    bool is_computed, is_output;
    rnl_difference difference;
} compared;

/* ---- both runs ------------------------------------------------------------------------------------------------- */

/* On the same graph, inputs and options; `other` borrows them. */
static rnl_exit run_other(const rnl_job *job, rnl_job *other)
{
    double ms;
    other->options = job->options;
    other->options.device = job->options.against;
    other->graph = rnl_graph_retain(job->graph);
    other->output_infos = job->output_infos;
    other->output_count = job->output_count;
    other->outputs = calloc(job->output_count + 1, sizeof *other->outputs);
    if (!other->outputs)
        return rnl_cli_fail("out of memory");
    fputs("against ", stdout);
    rnl_exit code = rnl_job_open(other, stdout);
    other->inputs = job->inputs;
    return code == RNL_EXIT_DONE ? rnl_job_run(other, &ms) : code;
}

static void free_other(rnl_job *other)
{
    other->inputs = (rnl_input_set){0};
    other->options = (rnl_run_options){0};
    rnl_job_free(other);
}

static rnl_exit run_here(rnl_job *job)
{
    double ms;
    rnl_exit code = rnl_job_load(job, true);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_read_inputs(job);
    if (code == RNL_EXIT_DONE)
        code = rnl_job_open(job, stdout);
    return code == RNL_EXIT_DONE ? rnl_job_run(job, &ms) : code;
}

/* ---- what differs ---------------------------------------------------------------------------------------------- */

static int by_node(const void *left, const void *right)
{
    const compared *a = left, *b = right;
    return a->producer.node < b->producer.node ? -1 : a->producer.node > b->producer.node;
}

static int by_excess(const void *left, const void *right)
{
    const compared *a = left, *b = right;
    if (a->difference.excess != b->difference.excess)
        return a->difference.excess > b->difference.excess ? -1 : 1;
    return by_node(left, right);
}

static void print_row(const compared *row)
{
    char name[RNL_CLI_NAME_BYTES], node[RNL_CLI_NAME_BYTES];
    const rnl_difference *found = &row->difference;
    if (row->is_computed)
        printf("  node %zu (%s '%s') ", row->producer.node, row->producer.op_type,
               rnl_cli_clean(row->producer.name, node, sizeof node));
    else
        fputs("  ", stdout);
    printf("%s: ", rnl_cli_clean(row->got->name, name, sizeof name));
    if (!found->is_there)
        puts("not computed there");
    else if (!found->same_shape)
        puts("another type or shape");
    else if (found->excess == 0)
        printf("equal, %s\n", rnl_dtype_name(row->got->dtype));
    else
        printf("max abs %.3g, max rel %.3g, NMSE %.3g; %zu of %zu beyond\n", found->absolute, found->relative,
               found->nmse, found->wrong, found->count);
}

static void print_first_and_worst(compared *rows, size_t count)
{
    size_t beyond = 0, first = count;
    for (size_t i = 0; i < count; i++) {
        beyond += rows[i].difference.excess > 1;
        if (rows[i].difference.excess > 1 && first == count)
            first = i;
    }
    printf("values: %zu, beyond the bound: %zu\n", count, beyond);
    if (beyond) {
        puts("first:");
        print_row(&rows[first]);
    }
    qsort(rows, count, sizeof *rows, by_excess);
    if (count && rows[0].difference.excess > 0)
        puts("worst:");
    for (size_t i = 0; i < count && i < WORST_ROWS && rows[i].difference.excess > 0; i++)
        print_row(&rows[i]);
    qsort(rows, count, sizeof *rows, by_node);
}

static rnl_exit report(const rnl_job *job, const rnl_tensor *expected)
{
    size_t own = job->own_count, wrong = 0;
    compared *rows = calloc(job->output_count + 1, sizeof *rows);
    if (!rows)
        return rnl_cli_fail("out of memory");
    for (size_t i = 0; i < job->output_count; i++) {
        compared *row = &rows[i];
        row->got = &job->outputs[i];
        row->expected = &expected[i];
        row->is_output = i < own;
        row->is_computed = rnl_graph_output_producer(job->graph, i, &row->producer);
        rnl_difference_find(row->got, row->expected, &row->difference);
        wrong += row->is_output && row->difference.excess > 1;
    }
    qsort(rows, job->output_count, sizeof *rows, by_node);
    for (size_t i = 0; job->options.all && i < job->output_count; i++)
        print_row(&rows[i]);
    print_first_and_worst(rows, job->output_count);
    puts("outputs:");
    for (size_t i = 0; i < job->output_count; i++)
        if (rows[i].is_output)
            print_row(&rows[i]);
    free(rows);
    return wrong ? rnl_cli_fail("%zu of %zu outputs differ beyond the bound", wrong, own) : RNL_EXIT_DONE;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static rnl_exit against_reference(rnl_job *job)
{
    rnl_tensor *values = calloc(job->output_count + 1, sizeof *values);
    if (!values)
        return rnl_cli_fail("out of memory");
    fflush(stdout); /* the other process says there what it is */
    rnl_exit code = rnl_compare_reference(job, values);
    if (code == RNL_EXIT_DONE)
        code = report(job, values);
    for (size_t i = 0; i < job->output_count; i++)
        free(values[i].data);
    free(values);
    return code;
}

static rnl_exit against_device(rnl_job *job)
{
    rnl_job other = {0};
    rnl_exit code = run_other(job, &other);
    rnl_console_clear();
    if (code == RNL_EXIT_DONE)
        code = report(job, other.outputs);
    free_other(&other);
    return code;
}

rnl_exit rnl_cli_compare(int argc, char **argv)
{
    rnl_job job = {0};
    rnl_exit code = rnl_run_options_parse(argc, argv, &job.options);
    if (code == RNL_EXIT_DONE && job.options.help) {
        fputs(rnl_cli_help("compare"), stdout);
    } else if (code == RNL_EXIT_DONE) {
        rnl_console_open(job.options.verbose);
        setenv("RUNNEL_FUSE", "off", 1);
        code = run_here(&job);
        rnl_console_clear();
        if (code == RNL_EXIT_DONE)
            code = strcmp(job.options.against, "reference") == 0 ? against_reference(&job) : against_device(&job);
    }
    rnl_job_free(&job);
    return code;
}
