/* SPDX-License-Identifier: Apache-2.0 */
/* The table against what onnx says of every version of every operator (see make_op_cases.py). */
#include "graph/op.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct schema_line {
    char op_type[64], attributes[256]; /* the names with commas between, or "-" */
    int since, until, min_inputs, max_inputs, min_outputs, max_outputs;
    unsigned types;
} schema_line;

static bool has_word(const char *words, char separator, const char *word, size_t length)
{
    for (const char *at = words; (at = strstr(at, word)) != NULL; at++)
        if ((at == words || at[-1] == separator) && (at[length] == separator || at[length] == '\0'))
            return true;
    return false;
}

/* Every word of `words` is one of `others`. */
static bool all_words(const char *words, char separator, const char *others, char others_separator)
{
    char word[64];
    while (*words) {
        size_t length = strcspn(words, (char[]){separator, '\0'});
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (length > 0 && !has_word(others, others_separator, word, length))
            return false;
        words += length + (words[length] != '\0');
    }
    return true;
}

/* Float types of all widths are welcome everywhere, and those that are only stored, of which the file knows nothing,
 * wherever all types are; apart from that the types are onnx's. */
static bool same_types(const schema_line *line, const rnl_op_schema *row)
{
    if (strcmp(line->op_type, "Erf") == 0) /* of integers until opset 12: nobody runs that */
        return row->types == RNL_TYPES_FLOAT_64;
    unsigned stored = row->types & RNL_TYPES_SMALL, types = row->types & ~RNL_TYPES_SMALL;
    return (stored == 0 || row->types == RNL_TYPES_EVERY) && (line->types & ~types) == 0 &&
           (types & ~(line->types | RNL_TYPES_FLOAT_64)) == 0;
}

static void check_line(const schema_line *line, const rnl_op_schema *row)
{
    const char *attributes = strcmp(line->attributes, "-") == 0 ? "" : line->attributes;
    /* Of Resize-11's three inputs exporters leave out two. */
    int min_inputs = strcmp(line->op_type, "Resize") == 0 && line->since == 11 ? 1 : line->min_inputs;
    ck_assert_int_eq((int)row->min_inputs, min_inputs);
    ck_assert_int_eq((int)row->max_inputs, line->max_inputs);
    ck_assert_int_eq((int)row->min_outputs, line->min_outputs);
    ck_assert_int_eq((int)row->max_outputs, line->max_outputs);
    ck_assert_msg(all_words(attributes, ',', row->attributes, ' '), "%s lacks one of %s", line->op_type, attributes);
    ck_assert_msg(all_words(row->attributes, ' ', attributes, ','), "%s has more than %s", line->op_type, attributes);
    ck_assert_msg(same_types(line, row), "%s of opset %d: types %#x, not %#x", line->op_type, line->since, row->types,
                  line->types);
}

START_TEST(rows_follow_onnx)
{
    char path[4096];
    const char *here = __FILE__, *slash = strrchr(here, '/');
    schema_line line;
    size_t count = 0;
    snprintf(path, sizeof path, "%.*s/../fixtures/op_schemas.txt", (int)(slash ? slash - here : 0), here);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    while (fscanf(file, "%63s %d %d %d %d %d %d %u %255s", line.op_type, &line.since, &line.until, &line.min_inputs,
                  &line.max_inputs, &line.min_outputs, &line.max_outputs, &line.types, line.attributes) == 9) {
        for (int opset = line.since; opset <= line.until; opset++) {
            const rnl_op_schema *row = rnl_op_find("", line.op_type, opset);
            ck_assert_msg(row != NULL, "no row for %s of opset %d", line.op_type, opset);
            check_line(&line, row);
        }
        count++;
    }
    fclose(file);
    ck_assert_uint_gt(count, 300);
}
END_TEST

/* Sorted and without overlap, or the search would miss rows. */
static void check_order(const char *domain, int min_opset)
{
    size_t count;
    const rnl_op_schema *const *rows = rnl_op_list(domain, &count);
    ck_assert_uint_gt(count, 0);
    for (size_t i = 0; i < count; i++) {
        const rnl_op_schema *row = rows[i];
        int order = i ? strcmp(rows[i - 1]->op_type, row->op_type) : -1;
        ck_assert(order < 0 || (order == 0 && rows[i - 1]->until + 1 == row->since));
        ck_assert(row->since >= min_opset && row->since <= row->until && row->until <= RNL_OPSET_MAX);
        ck_assert(row->infer != NULL && (row->types != 0) == (row->max_inputs > 0));
        for (int64_t opset = row->since; opset <= row->until; opset++)
            ck_assert_ptr_eq(rnl_op_find(domain, row->op_type, opset), row);
    }
}

START_TEST(table_order)
{
    check_order("", RNL_OPSET_MIN);
    check_order("com.microsoft", 1);
    check_order("ai.onnx.ml", 1);
}
END_TEST

START_TEST(unknown_operators)
{
    ck_assert_ptr_null(rnl_op_find("", "Add", 6));
    ck_assert_ptr_null(rnl_op_find("", "Add", 29));
    ck_assert_ptr_null(rnl_op_find("", "Add", INT64_MIN));
    ck_assert_ptr_null(rnl_op_find("", "Upsample", 10));
    ck_assert_ptr_null(rnl_op_find("", "Resize", 9));
    ck_assert_ptr_null(rnl_op_find("", "", 13));
    ck_assert_ptr_null(rnl_op_find("", "Addd", 13));
    ck_assert_ptr_null(rnl_op_find("com.microsoft", "Add", 1));
    ck_assert_ptr_null(rnl_op_find("com.microsoft", "Gelu", 2));
    ck_assert_ptr_null(rnl_op_find("com.example", "Add", 13));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op_schemas");
    TCase *tests = tcase_create("schemas");
    tcase_add_test(tests, rows_follow_onnx);
    tcase_add_test(tests, table_order);
    tcase_add_test(tests, unknown_operators);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
