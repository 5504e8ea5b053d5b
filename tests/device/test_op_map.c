/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise operators: each on each type, then shapes, strides and broadcasting. */
#include "support/map_reference.h"
#include "support/op_bench.h"
#include "support/op_values.h"

static const rnl_dtype floats[] = {RNL_F32, RNL_F16, RNL_BF16, RNL_F64};
static const rnl_dtype integers[] = {RNL_I32, RNL_U8, RNL_I64, RNL_I8, RNL_U64, RNL_U16, RNL_I16, RNL_U32};

static bool has_type(rnl_dtype dtype)
{
    return dtype != RNL_F64 || op_info()->has_fp64;
}

static void launch(map_launch *job, op_bound bound)
{
    rnl_view views[RNL_MAP_MAX_SOURCES];
    for (size_t i = 0; i < job->count; ++i)
        views[i] = job->src[i]->view;
    op_note("%s of %s", rnl_map_name(job->op), rnl_dtype_name(job->src[0]->view.dtype));
    op_expect(RNL_OK, rnl_op_map(op_list(), job->op, job->p0, job->p1, views, job->count, &job->dst->view));
    op_run();
    op_check(job->dst, map_reference, job, bound);
    op_reset();
}

static bool makes_bool(rnl_map_op op)
{
    return op == RNL_MAP_ISNAN || op == RNL_MAP_ISINF || (op >= RNL_MAP_EQUAL && op <= RNL_MAP_XOR) ||
           op == RNL_MAP_NOT;
}

/* One dimension, contiguous, all sources alike but for SELECT's condition. */
static map_launch flat_job(rnl_map_op op, rnl_dtype dtype, int64_t n)
{
    map_launch job = {.op = op, .p0 = 0.3f, .p1 = 1.7f, .count = rnl_map_sources(op)};
    for (size_t i = 0; i < job.count; ++i)
        job.src[i] = op_tensor_create(op == RNL_MAP_SELECT && i == 0 ? RNL_BOOL : dtype, 1, &n, OP_ROW_MAJOR);
    job.dst = op_tensor_create(makes_bool(op) ? RNL_BOOL : dtype, 1, &n, OP_ROW_MAJOR);
    return job;
}

static void fill_sources(map_launch *job, op_fill_kind kind, double low, double high)
{
    for (size_t i = 0; i < job->count; ++i)
        op_fill(job->src[i], kind, low, high);
}

static bool is_float_op(rnl_map_op op)
{
    static const rnl_map_op others[] = {
        RNL_MAP_COPY,    RNL_MAP_NOT,    RNL_MAP_AND,     RNL_MAP_OR,         RNL_MAP_XOR,         RNL_MAP_BIT_NOT,
        RNL_MAP_BIT_AND, RNL_MAP_BIT_OR, RNL_MAP_BIT_XOR, RNL_MAP_SHIFT_LEFT, RNL_MAP_SHIFT_RIGHT,
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        if (others[i] == op)
            return false;
    return true;
}

static void run_float_op(rnl_map_op op, rnl_dtype dtype)
{
    op_bound bound = op_tolerance(dtype);
    if (op == RNL_MAP_NORMALIZE) /* cancels: relative to the operands, of size 10 at most */
        bound.absolute += 10 * (dtype == RNL_F64 ? 0x1p-50 : 0x1p-21);
    if (op == RNL_MAP_GELU_SUM) /* the same: that of 1 + erf */
        bound.absolute += 2e-7;
    map_launch job = flat_job(op, dtype, 261);
    fill_sources(&job, OP_RANDOM, -3, 3);
    if (op == RNL_MAP_NORMALIZE)
        op_fill(job.src[4], OP_RANDOM, 0.5, 2);
    launch(&job, bound);

    job = flat_job(op, dtype, 389);
    fill_sources(&job, OP_SPECIAL, -30, 30);
    if (op != RNL_MAP_NORMALIZE) /* whose order of operations shows where numbers overflow */
        launch(&job, bound);
    op_reset();
}

START_TEST(float_operators)
{
    const rnl_dtype dtype = floats[_i / RNL_MAP_COUNT];
    const rnl_map_op op = (rnl_map_op)(_i % RNL_MAP_COUNT);
    const bool stored = dtype == RNL_F16 || dtype == RNL_BF16; /* computed as f32 is */
    if (!has_type(dtype) || !is_float_op(op) || (stored && op % 6 != 3))
        return;
    run_float_op(op, dtype);
}
END_TEST

static bool is_int_op(rnl_map_op op)
{
    static const rnl_map_op ops[] = {RNL_MAP_NEG,    RNL_MAP_ABS,        RNL_MAP_SIGN,       RNL_MAP_RELU,
                                     RNL_MAP_ADD,    RNL_MAP_SUB,        RNL_MAP_MUL,        RNL_MAP_DIV,
                                     RNL_MAP_POW,    RNL_MAP_MOD,        RNL_MAP_FMOD,       RNL_MAP_MAX,
                                     RNL_MAP_MIN,    RNL_MAP_PRELU,      RNL_MAP_LESS,       RNL_MAP_CLIP,
                                     RNL_MAP_EQUAL,  RNL_MAP_LESS_EQUAL, RNL_MAP_GREATER,    RNL_MAP_GREATER_EQUAL,
                                     RNL_MAP_SELECT, RNL_MAP_SHRINK,     RNL_MAP_BIT_NOT,    RNL_MAP_BIT_AND,
                                     RNL_MAP_BIT_OR, RNL_MAP_BIT_XOR,    RNL_MAP_SHIFT_LEFT, RNL_MAP_SHIFT_RIGHT};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i)
        if (ops[i] == op)
            return true;
    return false;
}

START_TEST(integer_operators)
{
    const rnl_dtype dtype = integers[_i / RNL_MAP_COUNT];
    const rnl_map_op op = (rnl_map_op)(_i % RNL_MAP_COUNT);
    const double low = op_int_limit(dtype, false) ? -9 : 0;
    const int type = _i / RNL_MAP_COUNT; /* all operators on the first, some on each of the others */
    if (!is_int_op(op) || (type && (int)op % 7 != type % 7))
        return;
    map_launch job = flat_job(op, dtype, 517);
    fill_sources(&job, OP_SPECIAL, low, 9);
    if (op == RNL_MAP_POW)
        op_fill(job.src[1], OP_RANDOM, low / 3, 20);
    if (op == RNL_MAP_SHIFT_LEFT || op == RNL_MAP_SHIFT_RIGHT)
        op_fill(job.src[1], OP_RANDOM, low / 3, (double)rnl_dtype_bytes(dtype) * 8 + 2);
    launch(&job, op_tolerance(dtype));
}
END_TEST

START_TEST(boolean_operators)
{
    static const rnl_map_op ops[] = {RNL_MAP_NOT, RNL_MAP_AND, RNL_MAP_OR, RNL_MAP_XOR, RNL_MAP_EQUAL, RNL_MAP_SELECT};
    map_launch job = flat_job(ops[_i], RNL_BOOL, 77);
    fill_sources(&job, OP_RANDOM, 0, 1);
    launch(&job, op_tolerance(RNL_BOOL));
}
END_TEST

/* Whole numbers to whole and other powers, and other numbers to whole ones. */
START_TEST(mixed_powers)
{
    static const rnl_dtype pairs[][2] = {{RNL_F32, RNL_I64}, {RNL_F32, RNL_I32}, {RNL_I32, RNL_F32}, {RNL_I64, RNL_F32},
                                         {RNL_I32, RNL_I64}, {RNL_F16, RNL_I32}, {RNL_I64, RNL_I32}, {RNL_F32, RNL_U8}};
    const int64_t n = 203;
    map_launch job = {.op = RNL_MAP_POW, .count = 2};
    job.src[0] = op_tensor_create(pairs[_i][0], 1, &n, OP_ROW_MAJOR);
    job.src[1] = op_tensor_create(pairs[_i][1], 1, &n, OP_ROW_MAJOR);
    job.dst = op_tensor_create(pairs[_i][0], 1, &n, OP_ROW_MAJOR);
    op_fill(job.src[0], OP_RANDOM, op_is_float(pairs[_i][0]) ? -3 : 0, 9);
    op_fill(job.src[1], OP_RANDOM, 0, 5);
    if (op_is_float(pairs[_i][1])) /* roots of squares come out whole */
        for (int64_t i = 0; i < n; ++i) {
            op_put(job.src[0], &i, op_int((i % 40) * (i % 40)));
            op_put(job.src[1], &i, op_float(i % 3 ? 0.5 : (double)(i % 2 + 1)));
        }
    launch(&job, op_tolerance(pairs[_i][0]));
}
END_TEST

typedef struct form {
    size_t rank[3];
    int64_t shape[3][RNL_MAX_RANK]; /* of destination and two sources */
} form;

static const form forms[] = {
    {{0, 0, 0}, {{0}}},
    {{1, 0, 1}, {{7}, {0}, {7}}},
    {{1, 1, 0}, {{133}, {133}, {0}}},
    {{1, 1, 1}, {{9}, {1}, {9}}},
    {{2, 2, 1}, {{5, 67}, {5, 67}, {67}}},
    {{2, 2, 2}, {{5, 67}, {5, 1}, {1, 67}}},
    {{2, 2, 2}, {{41, 3}, {41, 1}, {1, 3}}},
    {{3, 3, 1}, {{3, 4, 5}, {3, 4, 5}, {1}}},
    {{3, 2, 3}, {{3, 5, 37}, {5, 37}, {3, 1, 37}}},
    {{4, 4, 4}, {{2, 5, 3, 7}, {2, 5, 3, 7}, {1, 5, 1, 1}}},
    {{4, 4, 4}, {{2, 3, 5, 40}, {2, 1, 5, 1}, {1, 3, 1, 40}}},
    {{5, 3, 5}, {{2, 3, 2, 3, 5}, {2, 1, 5}, {2, 1, 1, 3, 1}}},
    {{6, 6, 2}, {{2, 1, 3, 2, 2, 33}, {2, 1, 3, 2, 2, 33}, {2, 1}}},
    {{7, 7, 7}, {{2, 3, 1, 2, 2, 3, 2}, {1, 3, 1, 2, 1, 3, 1}, {2, 1, 1, 1, 2, 3, 2}}},
    {{8, 8, 8}, {{2, 2, 3, 2, 1, 2, 3, 2}, {2, 1, 3, 1, 1, 2, 1, 2}, {1, 2, 1, 2, 1, 1, 3, 2}}},
    {{8, 8, 8}, {{2, 2, 2, 2, 2, 2, 2, 34}, {2, 1, 2, 1, 2, 1, 2, 34}, {1, 2, 1, 2, 1, 2, 1, 34}}},
};
enum { FORMS = sizeof forms / sizeof *forms };

START_TEST(broadcasting)
{
    const form *f = &forms[_i / OP_LAYOUT_COUNT];
    const int layout = _i % OP_LAYOUT_COUNT;
    map_launch job = {.op = RNL_MAP_SUB, .count = 2};
    job.dst = op_tensor_create(RNL_F32, f->rank[0], f->shape[0], (op_layout)layout);
    for (size_t s = 0; s < 2; ++s) {
        job.src[s] = op_tensor_create(RNL_F32, f->rank[s + 1], f->shape[s + 1],
                                      (op_layout)((layout + _i + (int)s) % OP_LAYOUT_COUNT));
        op_fill(job.src[s], OP_RANDOM, -9, 9);
    }
    launch(&job, op_tolerance(RNL_F32));
}
END_TEST

/* The same through strides of 0, and in one layout for all operands. */
START_TEST(repeated_sources)
{
    const int64_t shape[] = {3, 5, 2, 35};
    map_launch job = {.op = RNL_MAP_CLIP, .count = 3};
    job.dst = op_tensor_create(RNL_I32, 4, shape, (op_layout)(_i % OP_LAYOUT_COUNT));
    for (uint32_t s = 0; s < 3; ++s) {
        job.src[s] = op_tensor_create_repeated(RNL_I32, 4, shape, (op_layout)(_i % OP_LAYOUT_COUNT), (uint32_t)_i * s);
        op_fill(job.src[s], OP_RANDOM, -9, 9);
    }
    launch(&job, op_tolerance(RNL_I32));
}
END_TEST

START_TEST(normalize_by_channel)
{
    const int64_t shape[] = {2, 37, 5, 3}, channel[] = {37, 1, 1};
    map_launch job = {.op = RNL_MAP_NORMALIZE, .p0 = 1e-5f, .count = 5};
    job.dst = op_tensor_create(RNL_F32, 4, shape, (op_layout)_i);
    job.src[0] = op_tensor_create(RNL_F32, 4, shape, (op_layout)_i);
    for (size_t s = 1; s < 5; ++s)
        job.src[s] = op_tensor_create(RNL_F32, 3, channel, OP_ROW_MAJOR);
    fill_sources(&job, OP_RANDOM, -1, 1);
    op_fill(job.src[4], OP_RANDOM, 0.5, 2);
    launch(&job, (op_bound){1e-6, 4e-6});
}
END_TEST

/* A stride that int does not hold, of a dimension that it does not matter for, selects the long indices. */
START_TEST(long_indices)
{
    const form *f = &forms[_i];
    map_launch job = {.op = RNL_MAP_ADD, .count = 2};
    job.dst = op_tensor_create(RNL_F32, f->rank[0], f->shape[0], OP_GAPS);
    for (size_t s = 0; s < 2; ++s) {
        job.src[s] = op_tensor_create(RNL_F32, f->rank[s + 1], f->shape[s + 1], OP_REVERSED);
        op_fill(job.src[s], OP_RANDOM, -9, 9);
    }
    for (size_t d = 0; d < f->rank[2]; ++d)
        if (f->shape[2][d] == 1)
            job.src[1]->view.stride[d] = (int64_t)1 << 40;
    launch(&job, op_tolerance(RNL_F32));
}
END_TEST

START_TEST(large)
{
    static const int64_t shapes[][2] = {{1, 300007}, {40001, 33}, {33, 9001}, {70001, 3}};
    if (op_small())
        return;
    map_launch job = {.op = RNL_MAP_MUL, .count = 2};
    job.dst = op_tensor_create(RNL_F32, 2, shapes[_i], OP_ROW_MAJOR);
    job.src[0] = op_tensor_create(RNL_F32, 2, shapes[_i], OP_ROW_MAJOR);
    job.src[1] = op_tensor_create(RNL_F32, 1, &shapes[_i][1], OP_ROW_MAJOR);
    fill_sources(&job, OP_RANDOM, -2, 2);
    launch(&job, op_tolerance(RNL_F32));
}
END_TEST

/* By size of elements: whole vectors and rests, rows of one element, elements apart. */
START_TEST(copies)
{
    static const struct {
        rnl_dtype from, to;
        op_layout layout;
        uint32_t repeated; /* dimensions in which the source repeats */
        int64_t shape[2];
    } cases[] = {
        {RNL_BOOL, RNL_BOOL, OP_ROW_MAJOR, 0, {1, 77}},  {RNL_F16, RNL_F16, OP_ROW_MAJOR, 0, {1, 45}},
        {RNL_F32, RNL_F32, OP_ROW_MAJOR, 0, {1, 133}},   {RNL_I64, RNL_I64, OP_ROW_MAJOR, 0, {1, 38}},
        {RNL_F32, RNL_F32, OP_ROW_MAJOR, 2, {5, 40}},    {RNL_F32, RNL_F32, OP_ROW_MAJOR, 3, {3, 21}},
        {RNL_F32, RNL_F32, OP_ROW_MAJOR, 1, {70, 19}},   {RNL_F32, RNL_F32, OP_GAPS, 0, {6, 35}},
        {RNL_F32, RNL_F32, OP_REVERSED, 2, {6, 35}},     {RNL_F32, RNL_F16, OP_ROW_MAJOR, 0, {3, 45}},
        {RNL_BF16, RNL_F32, OP_ROW_MAJOR, 2, {3, 45}},   {RNL_F32, RNL_U8, OP_ROW_MAJOR, 0, {3, 45}},
        {RNL_U8, RNL_F32, OP_GAPS, 0, {3, 45}},          {RNL_F32, RNL_I64, OP_ROW_MAJOR, 0, {3, 45}},
        {RNL_I64, RNL_F16, OP_ROW_MAJOR, 0, {3, 45}},    {RNL_F32, RNL_BOOL, OP_REVERSED, 0, {3, 45}},
        {RNL_F32, RNL_F32, OP_ROW_MAJOR, 0, {1, 40003}}, {RNL_U8, RNL_U8, OP_ROW_MAJOR, 2, {3001, 9}},
    };
    map_launch job = {.op = RNL_MAP_COPY, .count = 1};
    job.dst = op_tensor_create(cases[_i].to, 2, cases[_i].shape, OP_ROW_MAJOR);
    job.src[0] = op_tensor_create_repeated(cases[_i].from, 2, cases[_i].shape, cases[_i].layout, cases[_i].repeated);
    op_fill(job.src[0], OP_SPECIAL, 0, 99);
    launch(&job, op_tolerance(cases[_i].to));
}
END_TEST

START_TEST(nothing_to_do)
{
    const int64_t shape[] = {3, 0, 2};
    op_tensor *x = op_tensor_create(RNL_F32, 3, shape, OP_ROW_MAJOR);
    op_tensor *y = op_tensor_create(RNL_F32, 3, shape, OP_ROW_MAJOR);
    op_expect(RNL_OK, rnl_op_map(op_list(), RNL_MAP_EXP, 0, 0, &x->view, 1, &y->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
    op_run();
    op_check_untouched(y);
}
END_TEST

START_TEST(refusals)
{
    const int64_t n = 6, other = 4, negative = -1;
    rnl_view a = rnl_view_row_major(0, RNL_F32, 1, &n), b = rnl_view_row_major(1, RNL_I32, 1, &n);
    rnl_view short_one = rnl_view_row_major(1, RNL_F32, 1, &other), bad = rnl_view_row_major(1, RNL_F32, 1, &negative);
    rnl_view mixed[2] = {a, b}, uneven[2] = {a, short_one}, same[2] = {a, a}, d = a;
    rnl_step_list *list = op_list();
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_map(list, RNL_MAP_ADD, 0, 0, mixed, 2, &d));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_map(list, RNL_MAP_ADD, 0, 0, uneven, 2, &d));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_map(list, RNL_MAP_ADD, 0, 0, same, 2, &b));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_map(list, RNL_MAP_ADD, 0, 0, same, 1, &d));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_map(list, RNL_MAP_LESS, 0, 0, same, 2, &d));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_map(list, RNL_MAP_COUNT, 0, 0, same, 2, &d));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_map(list, RNL_MAP_EXP, 0, 0, &bad, 1, &bad));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_map(list, RNL_MAP_EXP, 0, 0, &b, 1, &b));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_map(list, RNL_MAP_NOT, 0, 0, &a, 1, &a));
    d.stride[0] = INT64_MAX;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_map(list, RNL_MAP_EXP, 0, 0, &a, 1, &d));
    d.stride[0] = -1;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_map(list, RNL_MAP_EXP, 0, 0, &a, 1, &d));
    rnl_view wide = rnl_view_row_major(0, RNL_F64, 1, &n);
    op_expect(op_info()->has_fp64 ? RNL_OK : RNL_UNIMPLEMENTED, rnl_op_map(list, RNL_MAP_EXP, 0, 0, &wide, 1, &wide));
    op_expect(RNL_OK, rnl_op_map(list, RNL_MAP_COPY, 0, 0, &wide, 1, &wide)); /* bits need no arithmetic */
    ck_assert_uint_eq(list->step_count, op_info()->has_fp64 ? 2 : 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("map");
    TCase *types = op_case(suite, "types"), *shapes = op_case(suite, "shapes");
    /* All of float32, which comes first; llvmpipe takes seconds for each. */
    const int always = op_exact_slots() ? 0 : RNL_MAP_COUNT;
    tcase_add_loop_test(types, float_operators, 0, always);
    op_add_loop(types, float_operators, always, RNL_MAP_COUNT * (int)(sizeof floats / sizeof *floats));
    op_add_loop(types, integer_operators, 0, RNL_MAP_COUNT * (int)(sizeof integers / sizeof *integers));
    op_add_loop(types, boolean_operators, 0, 6);
    op_add_loop(types, mixed_powers, 0, 8);
    op_add_loop(shapes, broadcasting, 0, FORMS * OP_LAYOUT_COUNT);
    op_add_loop(shapes, repeated_sources, 0, 16);
    op_add_loop(shapes, normalize_by_channel, 0, OP_LAYOUT_COUNT);
    op_add_loop(shapes, long_indices, 0, FORMS);
    op_add_loop(shapes, large, 0, 4);
    op_add_loop(shapes, copies, 0, 18);
    tcase_add_test(shapes, nothing_to_do);
    tcase_add_test(shapes, refusals);
    return op_main(suite);
}
