/* SPDX-License-Identifier: Apache-2.0 */
/* The node cases of onnx, and of older opsets: shapes, types and values. See make_op_cases.py. */
#include "support/op_cases.h"
#include "unit/op_node.h"
#include <math.h>
#include <stdio.h>

static rnl_zone zone;
static op_case *cases;
static size_t case_count;

static void set_attribute(op_node *n, const op_case_attribute *from)
{
    rnl_attribute *to = op_node_attribute(n, from->name, (rnl_attribute_type)from->type);
    rnl_host_tensor *tensor = &n->tensors[n->node.attribute_count - 1];
    to->count = from->count;
    switch (to->type) {
    case RNL_ATTRIBUTE_FLOAT:
        to->f = from->f;
        break;
    case RNL_ATTRIBUTE_INT:
        to->i = from->i;
        break;
    case RNL_ATTRIBUTE_STRING:
        to->s = from->s;
        break;
    case RNL_ATTRIBUTE_TENSOR:
        *tensor = (rnl_host_tensor){.dtype = from->tensor.dtype,
                                    .rank = from->tensor.rank,
                                    .data = from->tensor.data,
                                    .size_bytes = from->tensor.size_bytes};
        to->tensor = tensor;
        break;
    case RNL_ATTRIBUTE_FLOATS:
        to->floats = from->floats;
        break;
    default:
        to->ints = from->ints;
    }
}

static void set_up(op_node *n, const op_case *c)
{
    op_node_init(n, c->op_type, c->opset, c->output_count);
    for (size_t i = 0; i < c->attribute_count; i++)
        set_attribute(n, &c->attributes[i]);
    for (size_t i = 0; i < c->input_count; i++)
        op_node_input(n, c->inputs[i].dtype, c->inputs[i].rank, c->inputs[i].shape, c->inputs[i].data);
    for (size_t i = 0; i < c->output_count; i++)
        n->values[i] = c->outputs[i].dtype == RNL_DTYPE_NONE ? RNL_NO_VALUE : 0;
}

/* Prints rather than fails, so that one run names every wrong case. */
static bool same_outputs(const op_node *n, const op_case *c)
{
    bool same = true;
    for (size_t i = 0; i < c->output_count; i++) {
        const op_case_tensor *want = &c->outputs[i];
        const rnl_tensor_desc *got = &n->outputs[i];
        if (want->dtype == RNL_DTYPE_NONE)
            continue;
        bool equal = got->dtype == want->dtype && got->rank == want->rank;
        for (size_t k = 0; equal && k < want->rank; k++)
            equal = got->shape[k] == want->shape[k];
        if (!equal)
            fprintf(stderr, "%s: output %zu is %s %s, not %s %s\n", c->name, i, rnl_dtype_name(got->dtype),
                    rnl_shape_format(got->shape, got->rank).text, rnl_dtype_name(want->dtype),
                    rnl_shape_format(want->shape, want->rank).text);
        same = same && equal;
    }
    return same;
}

static bool infer_right(op_node *n, const op_case *c)
{
    rnl_status status = op_node_infer(n);
    if (status != RNL_OK)
        fprintf(stderr, "%s: %s\n", c->name, rnl_last_error()->message);
    return status == RNL_OK && same_outputs(n, c);
}

START_TEST(shapes_and_types)
{
    size_t wrong = 0;
    for (size_t i = 0; i < case_count; i++) {
        op_node n;
        set_up(&n, &cases[i]);
        wrong += !infer_right(&n, &cases[i]);
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_gt(case_count, 1000);
}
END_TEST

/* Only the inputs that the row names may be needed to find the shape, and without one of those it says so. */
START_TEST(shapes_with_unknown_contents)
{
    size_t wrong = 0;
    for (size_t i = 0; i < case_count; i++) {
        op_node n;
        set_up(&n, &cases[i]);
        for (size_t k = 0; k < n.context.input_count; k++)
            if (k >= 32 || !(n.node.schema->shape_inputs & (1u << k)))
                n.inputs[k].host = NULL;
        wrong += !infer_right(&n, &cases[i]);
        for (size_t k = 0; k < n.context.input_count; k++) {
            bool needed = n.inputs[k].host && rnl_desc_elements(&n.inputs[k]) > 0;
            n.inputs[k].host = NULL;
            if (!needed || strcmp(cases[i].op_type, "Resize") == 0)
                continue;
            rnl_status status = op_node_infer(&n);
            if (status != RNL_FAILED_PRECONDITION)
                fprintf(stderr, "%s without input %zu: %s\n", cases[i].name, k, rnl_status_name(status));
            wrong += status != RNL_FAILED_PRECONDITION;
            break;
        }
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

static bool near(rnl_dtype dtype, rnl_number got, rnl_number want)
{
    if (rnl_dtype_kind(dtype) != RNL_NUMBER_FLOAT)
        return got.u == want.u;
    double bound = dtype == RNL_BF16 ? 8e-3 : dtype == RNL_F16 ? 1e-3 : 2e-6; /* about one unit in the last place */
    if (isnan(want.f) || isinf(want.f))
        return isnan(want.f) ? isnan(got.f) : got.f == want.f;
    return fabs(got.f - want.f) <= bound * fabs(want.f) + 1e-7;
}

static bool same_values(const op_node *n, const op_case *c)
{
    for (size_t i = 0; i < c->output_count; i++) {
        const op_case_tensor *want = &c->outputs[i];
        if (want->dtype == RNL_DTYPE_NONE)
            continue;
        for (int64_t k = 0; k < rnl_desc_elements(&n->outputs[i]); k++) {
            rnl_number a = rnl_element_load(n->results[i], k, want->dtype);
            rnl_number b = rnl_element_load(want->data, k, want->dtype);
            if (near(want->dtype, a, b))
                continue;
            fprintf(stderr, "%s: element %d of output %zu is %.9g, not %.9g\n", c->name, (int)k, i,
                    rnl_number_double(a, want->dtype), rnl_number_double(b, want->dtype));
            return false;
        }
    }
    return true;
}

static bool has_values(const op_case *c)
{
    bool all = true;
    for (size_t i = 0; i < c->input_count; i++)
        all = all && (c->inputs[i].dtype == RNL_DTYPE_NONE || c->inputs[i].data);
    for (size_t i = 0; i < c->output_count; i++)
        all = all && (c->outputs[i].dtype == RNL_DTYPE_NONE || c->outputs[i].data);
    return all;
}

START_TEST(values)
{
    size_t wrong = 0, evaluated = 0;
    for (size_t i = 0; i < case_count; i++) {
        op_node n;
        set_up(&n, &cases[i]);
        if (!n.node.schema->evaluate || !has_values(&cases[i]) || op_node_infer(&n) != RNL_OK)
            continue;
        rnl_status status = op_node_evaluate(&n);
        if (status != RNL_OK)
            fprintf(stderr, "%s: %s\n", cases[i].name, rnl_last_error()->message);
        wrong += status != RNL_OK || !same_values(&n, &cases[i]);
        evaluated++;
        op_node_free(&n);
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_gt(evaluated, 600);
}
END_TEST

/* What Split allocates is released, whichever allocation fails. */
START_TEST(allocation_failures)
{
    for (size_t i = 0; i < case_count; i++) {
        op_node n;
        set_up(&n, &cases[i]);
        rnl_alloc_fail_at(1);
        rnl_status status = op_node_infer(&n);
        rnl_alloc_fail_at(0);
        ck_assert(status == RNL_OK || status == RNL_RESOURCE_EXHAUSTED);
        if (strcmp(cases[i].op_type, "Split") != 0 || op_node_infer(&n) != RNL_OK || !has_values(&cases[i]))
            continue;
        rnl_alloc_fail_at(1);
        ck_assert_int_eq(op_node_evaluate(&n), RNL_RESOURCE_EXHAUSTED);
        rnl_alloc_fail_at(0);
        op_node_free(&n);
    }
}
END_TEST

static uint64_t random_state;

static uint64_t random_bits(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

static int64_t hostile_number(int64_t value)
{
    static const int64_t numbers[] = {0,         1,         -1,        2,         3,           7,
                                      INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, 1LL << 31,   1LL << 32,
                                      1LL << 40, 1LL << 62, -5,        4096,      4294967297LL};
    size_t count = sizeof numbers / sizeof *numbers, pick = (size_t)random_bits() % (count + 3);
    return pick < count ? numbers[pick] : (int64_t)((uint64_t)value + pick - count - 1);
}

/* One thing in the node becomes something else; data behind `host` is `scratch`, of `size` bytes. */
static void mutate(op_node *n, int64_t *ints, unsigned char *scratch, size_t size)
{
    size_t which = (size_t)random_bits() % 4;
    size_t inputs = n->context.input_count, attributes = n->node.attribute_count;
    if (which == 0 && inputs > 0) {
        rnl_tensor_desc *input = &n->inputs[random_bits() % inputs];
        size_t axis = (size_t)random_bits() % RNL_MAX_RANK;
        input->shape[axis] = hostile_number(input->shape[axis]);
        input->host = NULL;
    } else if (which == 1 && inputs > 0) {
        rnl_tensor_desc *input = &n->inputs[random_bits() % inputs];
        input->rank = (size_t)random_bits() % (RNL_MAX_RANK + 3);
        input->host = NULL;
    } else if (which == 2 && attributes > 0) {
        rnl_attribute *attribute = &n->attributes[random_bits() % attributes];
        if (attribute->type == RNL_ATTRIBUTE_INT)
            attribute->i = hostile_number(attribute->i);
        if (attribute->type == RNL_ATTRIBUTE_INTS && attribute->count > 0 && attribute->count < 16) {
            memcpy(ints, attribute->ints, attribute->count * sizeof *ints);
            ints[random_bits() % attribute->count] = hostile_number(1);
            attribute->ints = ints;
            attribute->count -= random_bits() % 4 == 0;
        }
    } else if (which == 3 && size > 0) {
        int64_t value = hostile_number(1);
        size_t at = (size_t)random_bits() % size, bytes = size - at < 8 ? size - at : 8;
        memcpy(scratch + at / 8 * 8, &value, at / 8 * 8 + 8 <= size ? 8 : bytes);
    }
}

static void survive(op_node *n)
{
    bool known = n->node.schema->evaluate != NULL;
    rnl_status status = op_node_infer(n);
    if (status != RNL_OK) {
        ck_assert(status == RNL_INVALID_ARGUMENT || status == RNL_FAILED_PRECONDITION || status == RNL_UNIMPLEMENTED);
        ck_assert_uint_gt(rnl_last_error()->length, 10);
        return;
    }
    for (size_t i = 0; i < n->context.output_count; i++) {
        int64_t count;
        ck_assert_uint_le(n->outputs[i].rank, RNL_MAX_RANK);
        ck_assert(n->outputs[i].dtype == RNL_DTYPE_NONE ||
                  rnl_shape_elements(n->outputs[i].shape, n->outputs[i].rank, &count));
        known = known && rnl_desc_elements(&n->outputs[i]) <= RNL_HOST_MAX_ELEMENTS;
    }
    if (!known)
        return;
    status = op_node_evaluate(n);
    ck_assert(status == RNL_OK || status == RNL_FAILED_PRECONDITION || status == RNL_INVALID_ARGUMENT);
    op_node_free(n);
}

/* Whatever a file says, the rows answer without overflow, division by zero or a step outside memory. */
START_TEST(hostile_mutations)
{
    for (size_t round = 0; round < 60; round++) {
        for (size_t i = 0; i < case_count; i++) {
            op_node n;
            int64_t ints[16];
            random_state = round * 1000003 + i;
            set_up(&n, &cases[i]);
            size_t which = (size_t)random_bits() % (n.context.input_count + 1);
            size_t size = which < n.context.input_count && n.inputs[which].host ? cases[i].inputs[which].size_bytes : 0;
            unsigned char *scratch = malloc(size + 1);
            if (size > 0) {
                memcpy(scratch, n.inputs[which].host, size);
                n.inputs[which].host = scratch;
            }
            for (size_t k = 0; k <= round % 3; k++)
                mutate(&n, ints, scratch, size);
            survive(&n);
            free(scratch);
        }
    }
}
END_TEST

static void load(void)
{
    cases = op_cases_load(&zone, &case_count);
}

static void unload(void)
{
    rnl_zone_free(&zone);
}

int main(void)
{
    Suite *suite = suite_create("op_cases");
    TCase *tests = tcase_create("cases");
    tcase_add_unchecked_fixture(tests, load, unload);
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, shapes_and_types);
    tcase_add_test(tests, shapes_with_unknown_contents);
    tcase_add_test(tests, values);
    tcase_add_test(tests, allocation_failures);
    tcase_add_test(tests, hostile_mutations);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
