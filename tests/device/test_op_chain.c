/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of elementwise stages: every operator, shapes and broadcasts, random chains, refusals. */
#include "device/device.h"
#include "support/chain_case.h"

static const rnl_dtype types[] = {RNL_F32, RNL_F16, RNL_BF16};
static const uint32_t widths[] = {4, 8, 16};

static uint32_t device_width;

static void remember_width(void)
{
    device_width = op_device()->vector_width;
}

/* One of several; an emulated device takes minutes to compile what is wider than its own. */
static void choose_width(int which)
{
    if (!op_info()->emulated)
        op_device()->vector_width = widths[which % 3];
}

static void restore_width(void)
{
    op_device()->vector_width = device_width;
}

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tests = op_case(suite, name);
    tcase_add_checked_fixture(tests, remember_width, restore_width);
    return tests;
}

static int64_t random_up_to(int64_t limit)
{
    return (int64_t)(op_random() % (uint64_t)limit);
}

/* Whose result does not jump, so that an error before them stays small; of one float or two. */
static const rnl_map_op smooth[] = {
    RNL_MAP_RELU, RNL_MAP_SIGMOID, RNL_MAP_TANH,     RNL_MAP_HARD_SIGMOID, RNL_MAP_HARD_SWISH, RNL_MAP_LEAKY_RELU,
    RNL_MAP_ELU,  RNL_MAP_SELU,    RNL_MAP_SOFTPLUS, RNL_MAP_SOFTSIGN,     RNL_MAP_ERF,        RNL_MAP_GELU,
    RNL_MAP_NEG,  RNL_MAP_ABS,     RNL_MAP_COPY,     RNL_MAP_GELU_TANH,    RNL_MAP_ADD,        RNL_MAP_SUB,
    RNL_MAP_MUL,  RNL_MAP_MAX,     RNL_MAP_MIN,      RNL_MAP_PRELU,        RNL_MAP_CLIP,
};

/* Each with an operand of each type and the rest scalars, between two other stages' worth of registers. */
START_TEST(operators)
{
    const rnl_map_op op = (rnl_map_op)_i;
    const int64_t n = 83;
    chain_case test = {0};
    rnl_chain_source sources[RNL_MAP_MAX_SOURCES];
    if (!rnl_chain_takes(op) || (op_small() && _i % 4 != 1))
        return;
    choose_width(_i);
    for (size_t i = 0; i < rnl_map_sources(op); i++)
        sources[i] =
            i < 2
                ? chain_case_operand(&test, op_tensor_create(types[(i + (size_t)_i) % 3], 1, &n, OP_ROW_MAJOR), 0.5, 3)
                : chain_case_scalar(&test, 0.75 * (double)i);
    sources[0] = chain_case_stage(&test, op, sources, 0.3, 1.7);
    chain_case_stage(&test, RNL_MAP_NEG, sources, 0, 0);
    test.dst = op_tensor_create(types[_i / 3 % 3], 1, &n, OP_ROW_MAJOR);
    chain_case_run(&test);
}
END_TEST

typedef struct form {
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
    uint32_t ones[3]; /* of three operands: dimensions that are 1, bits from the left */
} form;

static const form forms[] = {
    {0, {0}, {0, 0, 0}},
    {1, {1}, {0, 0, 0}},
    {1, {67}, {0, 0, 1}},
    {2, {7, 3}, {0, 1, 0}},
    {2, {7, 24}, {0, 1, 2}},
    {2, {13, 37}, {0, 1, 3}},
    {2, {19, 20}, {1, 1, 2}},
    {3, {4, 5, 130}, {0, 3, 4}},
    {4, {2, 3, 5, 40}, {0, 7, 6}},
    {4, {2, 3, 5, 17}, {5, 10, 8}},
    {5, {2, 3, 2, 3, 5}, {21, 10, 0}},
    {7, {2, 3, 1, 2, 2, 3, 9}, {21, 42, 0}},
    {8, {2, 2, 3, 2, 1, 2, 3, 6}, {85, 42, 0}},
};
enum { FORMS = sizeof forms / sizeof *forms };

static op_tensor *operand_of(const form *f, size_t index, rnl_dtype dtype, op_layout layout)
{
    int64_t shape[RNL_MAX_RANK];
    for (size_t d = 0; d < f->rank; d++)
        shape[d] = f->ones[index] >> d & 1 ? 1 : f->shape[d];
    return op_tensor_create(dtype, f->rank, shape, layout);
}

/* (y0 + y1) * y2 into dst. */
static void run_form(const form *f, op_tensor *dst, op_layout layout, rnl_dtype first)
{
    chain_case test = {.dst = dst};
    rnl_chain_source sources[2];
    sources[0] = chain_case_operand(&test, operand_of(f, 0, first, layout), -3, 3);
    sources[1] = chain_case_operand(&test, operand_of(f, 1, RNL_F32, layout), -3, 3);
    sources[0] = chain_case_stage(&test, RNL_MAP_ADD, sources, 0, 0);
    sources[1] = chain_case_operand(&test, operand_of(f, 2, RNL_F32, OP_ROW_MAJOR), -3, 3);
    chain_case_stage(&test, RNL_MAP_MUL, sources, 0, 0);
    chain_case_run(&test);
}

START_TEST(broadcasting)
{
    const form *f = &forms[_i % FORMS];
    choose_width(_i / FORMS);
    if (op_small() && _i / FORMS != 0)
        return;
    run_form(f, op_tensor_create(RNL_F32, f->rank, f->shape, OP_ROW_MAJOR), OP_ROW_MAJOR, RNL_F32);
}
END_TEST

START_TEST(layouts)
{
    const form *f = &forms[_i / OP_LAYOUT_COUNT];
    const op_layout layout = (op_layout)(_i % OP_LAYOUT_COUNT);
    run_form(f, op_tensor_create(RNL_F32, f->rank, f->shape, layout), layout, RNL_F32);
}
END_TEST

/* dst is some channels of a wider image; rows end in parts of vectors, and what lies behind them stays. */
START_TEST(slices)
{
    const int64_t channels = _i + 1;
    const form f = {3, {3, 4, channels}, {0, 3, 4}};
    const int64_t shape[] = {3, 4, channels + 5};
    op_tensor *dst = op_tensor_create(RNL_F16, 3, shape, OP_ROW_MAJOR);
    if (op_small() && _i % 5 != 2)
        return;
    dst->view.shape[2] = channels;
    dst->view.offset += 2;
    run_form(&f, dst, OP_ROW_MAJOR, RNL_BF16);
}
END_TEST

/* A stride that int does not hold, of a dimension that it does not matter for. */
START_TEST(long_indices)
{
    const form *f = &forms[_i + 1];
    op_tensor *dst = op_tensor_create(RNL_F32, f->rank, f->shape, OP_ROW_MAJOR);
    chain_case test = {.dst = dst};
    op_tensor *far = operand_of(f, 1, RNL_F32, OP_ROW_MAJOR);
    rnl_chain_source sources[2];
    for (size_t d = 0; d < f->rank; d++)
        if (far->view.shape[d] == 1)
            far->view.stride[d] = (int64_t)1 << 40;
    sources[0] = chain_case_operand(&test, operand_of(f, 0, RNL_F32, OP_ROW_MAJOR), -3, 3);
    sources[1] = chain_case_operand(&test, far, -3, 3);
    chain_case_stage(&test, RNL_MAP_SUB, sources, 0, 0);
    chain_case_run(&test);
}
END_TEST

/* Many pieces, in each of the ways that work is cut. */
START_TEST(large)
{
    static const form large_forms[] = {
        {1, {100003}, {0, 0, 1}},         {2, {3, 40001}, {0, 1, 2}},      {2, {5003, 33}, {0, 1, 2}},
        {3, {9001, 3, 5}, {2, 5, 4}},     {4, {70, 3, 5, 67}, {5, 10, 8}}, {2, {40000, 3}, {0, 1, 2}},
        {4, {11, 12, 13, 40}, {0, 6, 9}},
    };
    if (op_small())
        return;
    const form *f = &large_forms[_i];
    run_form(f, op_tensor_create(RNL_F32, f->rank, f->shape, OP_ROW_MAJOR), OP_ROW_MAJOR, RNL_F32);
}
END_TEST

static rnl_chain_source random_source(const chain_case *test)
{
    const size_t stages = test->chain.stage_count, operands = test->chain.operand_count,
                 scalars = test->chain.scalar_count;
    const int64_t choice = random_up_to(4);
    if (stages > 0 && choice < 2)
        return (rnl_chain_source){RNL_CHAIN_STAGE, choice ? stages - 1 : (size_t)random_up_to((int64_t)stages)};
    if (operands > 0 && (choice < 3 || scalars == 0))
        return (rnl_chain_source){RNL_CHAIN_OPERAND, (size_t)random_up_to((int64_t)operands)};
    return (rnl_chain_source){RNL_CHAIN_SCALAR, (size_t)random_up_to((int64_t)scalars)};
}

static void add_random_stage(chain_case *test)
{
    const rnl_map_op op = smooth[op_random() % (sizeof smooth / sizeof *smooth)];
    rnl_chain_source sources[RNL_MAP_MAX_SOURCES], result;
    for (size_t i = 0; i < rnl_map_sources(op); i++)
        sources[i] = random_source(test);
    if (op == RNL_MAP_MUL || op == RNL_MAP_PRELU) /* grows no faster than its factor */
        sources[1] = (rnl_chain_source){RNL_CHAIN_SCALAR, 0};
    if (!rnl_chain_add_stage(&test->chain, op, sources, 0.3f, 0.6f, &result)) /* no scalar is left */
        chain_case_stage(test, RNL_MAP_NEG, sources, 0, 0);
}

static void add_random_operand(chain_case *test, const form *f)
{
    int64_t shape[RNL_MAX_RANK];
    const int64_t kind = random_up_to(5); /* full, by channel, by row, one element, any */
    const size_t left_out = kind == 1 ? f->rank - 1 : 0;
    for (size_t d = 0; d < f->rank; d++) {
        const bool one = kind == 3 || (kind == 2 && d + 1 == f->rank) || (kind == 4 && random_up_to(2));
        shape[d] = one ? 1 : f->shape[d];
    }
    chain_case_operand(
        test, op_tensor_create(types[random_up_to(3)], f->rank - left_out, shape + left_out, OP_ROW_MAJOR), -1.5, 1.5);
}

START_TEST(random_chains)
{
    static const form random_forms[] = {{2, {9, 50}, {0}}, {3, {3, 5, 36}, {0}}, {4, {2, 2, 3, 23}, {0}}};
    const form *f = &random_forms[_i % 3];
    chain_case test = {0};
    if (op_small() && _i % 6 != 5)
        return;
    for (int i = 0; i < 17 * _i; i++)
        (void)op_random();
    choose_width(_i / 3);
    test.dst = op_tensor_create(types[random_up_to(3)], f->rank, f->shape, _i % 4 == 3 ? OP_GAPS : OP_ROW_MAJOR);
    chain_case_scalar(&test, -0.8);
    chain_case_scalar(&test, 0.4);
    for (int i = 0; i < _i % 5; i++)
        add_random_operand(&test, f);
    const int stages = 1 + _i % RNL_CHAIN_MAX_STAGES, most = op_info()->emulated ? 3 : stages; /* compiles slowly */
    for (int i = 0; i < stages && i < most; i++)
        add_random_stage(&test);
    chain_case_run(&test);
}
END_TEST

static void expect_refused(const rnl_chain *chain, const rnl_view *dst)
{
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_chain(op_list(), chain, dst));
    ck_assert_uint_eq(op_list()->step_count, 0);
    ck_assert_uint_eq(op_list()->arg_count, 0);
}

START_TEST(refusals)
{
    const int64_t shape[] = {2, 3};
    op_tensor *x = op_tensor_create(RNL_F32, 2, shape, OP_ROW_MAJOR);
    op_tensor *y = op_tensor_create(RNL_F32, 2, shape, OP_ROW_MAJOR);
    chain_case test = {0};
    const rnl_chain_source source = chain_case_operand(&test, x, 0, 1);
    chain_case_stage(&test, RNL_MAP_EXP, &source, 0, 0);
    const rnl_chain sound = test.chain;
    rnl_chain wrong[10];
    for (size_t i = 0; i < 10; i++)
        wrong[i] = sound;
    wrong[0].stage_count = 0;
    wrong[1].stage_count = RNL_CHAIN_MAX_STAGES + 1;
    wrong[2].operand_count = RNL_CHAIN_MAX_OPERANDS + 1;
    wrong[3].scalar_count = RNL_CHAIN_MAX_SCALARS + 1;
    wrong[4].stages[0].sources[0] = (rnl_chain_source){RNL_CHAIN_STAGE, 0};
    wrong[5].stages[0].sources[0] = (rnl_chain_source){RNL_CHAIN_OPERAND, 1};
    wrong[6].stages[0].sources[0] = (rnl_chain_source){RNL_CHAIN_INPUT, 0};
    wrong[7].stages[0].op = RNL_MAP_EQUAL;
    wrong[8].operands[0].dtype = RNL_I32;
    wrong[9].operands[0].shape[1] = 2;
    for (size_t i = 0; i < 10; i++)
        expect_refused(&wrong[i], &y->view);
    rnl_view of_integers = y->view;
    of_integers.dtype = RNL_I32;
    expect_refused(&sound, &of_integers);
    op_expect(RNL_OK, rnl_op_chain(op_list(), &sound, &y->view));
}
END_TEST

START_TEST(full_chains)
{
    rnl_chain chain = {0};
    rnl_chain_source source = {RNL_CHAIN_SCALAR, 0}, result;
    const rnl_view view = rnl_view_row_major(0, RNL_F32, 0, NULL);
    for (size_t i = 0; i < RNL_CHAIN_MAX_SCALARS; i++)
        ck_assert(rnl_chain_add_scalar(&chain, 1, &result));
    ck_assert(!rnl_chain_add_scalar(&chain, 1, &result));
    ck_assert(!rnl_chain_add_stage(&chain, RNL_MAP_LEAKY_RELU, &source, 1, 0, &result));
    for (size_t i = 0; i < RNL_CHAIN_MAX_OPERANDS; i++)
        ck_assert(rnl_chain_add_operand(&chain, &view, &result));
    ck_assert(!rnl_chain_add_operand(&chain, &view, &result));
    for (size_t i = 0; i < RNL_CHAIN_MAX_STAGES; i++)
        ck_assert(rnl_chain_add_stage(&chain, RNL_MAP_NEG, &source, 0, 0, &result));
    ck_assert(!rnl_chain_add_stage(&chain, RNL_MAP_NEG, &source, 0, 0, &result));
    ck_assert(!rnl_chain_takes(RNL_MAP_SELECT) && !rnl_chain_takes(RNL_MAP_AND) && !rnl_chain_takes(RNL_MAP_ISNAN));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("chain");
    TCase *stages = add_case(suite, "stages");
    op_add_loop(stages, operators, 0, RNL_MAP_COUNT);
    op_add_loop(stages, random_chains, 0, 24);
    TCase *shapes = add_case(suite, "shapes");
    op_add_loop(shapes, broadcasting, 0, 3 * FORMS);
    op_add_loop(shapes, layouts, 0, FORMS * OP_LAYOUT_COUNT);
    op_add_loop(shapes, slices, 0, 35);
    op_add_loop(shapes, long_indices, 0, 6);
    op_add_loop(shapes, large, 0, 7);
    TCase *errors = add_case(suite, "errors");
    tcase_add_test(errors, refusals);
    tcase_add_test(errors, full_chains);
    return op_main(suite);
}
