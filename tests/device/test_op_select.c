/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, TopK and sums so far, by work-items and by work-groups, and scattering, in all layouts. */
#include "ops/indexing.h"
#include "ops/select.h"
#include "support/op_test.h"
#include "support/op_values.h"
#include <math.h>

typedef struct select_job {
    size_t axis;
    bool largest, last;
    rnl_scan_params scan;
    op_tensor *src, *dst, *places;
} select_job;

enum { MOST_ALONG_AXIS = 512 };

static double at_axis(const select_job *job, const int64_t *at, int64_t place)
{
    int64_t from[RNL_MAX_RANK];
    for (size_t i = 0; i < job->src->view.rank; ++i)
        from[i] = i == job->axis ? place : at[i];
    const op_value value = op_get(job->src, from);
    return op_is_float(job->src->view.dtype) ? value.f : (double)value.i;
}

static bool is_ahead(const select_job *job, double a, double b)
{
    return (job->largest ? a > b : a < b) || (isnan(a) && !isnan(b));
}

static op_value arg_reference(void *user, const int64_t *at)
{
    const select_job *job = user;
    int64_t best = 0;
    for (int64_t i = 1; i < job->src->view.shape[job->axis]; ++i) {
        const double x = at_axis(job, at, i), y = at_axis(job, at, best);
        if (is_ahead(job, x, y) || (job->last && !is_ahead(job, y, x)))
            best = i;
    }
    return op_int(best);
}

/* NaN is above all numbers, so the last of the smallest. */
static bool comes_before(const select_job *job, const double *line, int64_t a, int64_t b)
{
    const double x = line[a], y = line[b];
    if (isnan(x) || isnan(y))
        return isnan(x) == isnan(y) ? a < b : isnan(x) == job->largest;
    return x == y ? a < b : (x > y) == job->largest;
}

/* The element that so many come before. */
static op_value place_reference(void *user, const int64_t *at)
{
    const select_job *job = user;
    const int64_t size = job->src->view.shape[job->axis];
    double line[MOST_ALONG_AXIS];
    if (size > MOST_ALONG_AXIS) /* Check logs each assertion to a file: slow here */
        ck_abort_msg("a line is too long");
    for (int64_t i = 0; i < size; ++i)
        line[i] = at_axis(job, at, i);
    for (int64_t i = 0; i < size; ++i) {
        int64_t before = 0;
        for (int64_t j = 0; j < size; ++j)
            before += j != i && comes_before(job, line, j, i);
        if (before == at[job->axis])
            return op_int(i);
    }
    return op_int(-1);
}

static op_value value_reference(void *user, const int64_t *at)
{
    const select_job *job = user;
    int64_t from[RNL_MAX_RANK];
    for (size_t i = 0; i < job->src->view.rank; ++i)
        from[i] = at[i];
    from[job->axis] = place_reference(user, at).i;
    return op_get(job->src, from);
}

static op_value scan_reference(void *user, const int64_t *at)
{
    const select_job *job = user;
    const rnl_scan_params *scan = &job->scan;
    const int64_t size = job->src->view.shape[job->axis], here = at[job->axis];
    double total = scan->product;
    int64_t whole = scan->product;
    for (int64_t i = 0; i < size; ++i) {
        if (scan->reverse ? i < here + scan->exclusive : i > here - scan->exclusive)
            continue;
        const double x = at_axis(job, at, i);
        total = scan->product ? total * x : total + x;
        whole =
            (int64_t)(scan->product ? (uint64_t)whole * (uint64_t)(int64_t)x : (uint64_t)whole + (uint64_t)(int64_t)x);
    }
    return (op_value){.f = total, .i = whole};
}

static const rnl_dtype types[] = {RNL_F32, RNL_I64, RNL_F16, RNL_BF16, RNL_U8, RNL_I32, RNL_F64};
enum { TYPES = sizeof types / sizeof *types };

static const struct {
    size_t axis, rank;
    int64_t shape[5];
} forms[] = {{0, 1, {301}},     {1, 2, {3, 259}},          {0, 2, {257, 5}},
             {1, 3, {2, 1, 3}}, {2, 5, {2, 3, 267, 2, 2}}, {1, 4, {2, 7, 3, 5}}};
enum { FORMS = sizeof forms / sizeof *forms };

/* A tensor of the form's shape with `size` along its axis. */
static op_tensor *tensor(rnl_dtype dtype, int form, int64_t size, int layout)
{
    int64_t shape[RNL_MAX_RANK];
    for (size_t i = 0; i < forms[form].rank; ++i)
        shape[i] = i == forms[form].axis ? size : forms[form].shape[i];
    return op_tensor_create(dtype, forms[form].rank, shape, (op_layout)(layout % OP_LAYOUT_COUNT));
}

static bool has_type(rnl_dtype dtype)
{
    return dtype != RNL_F64 || op_info()->has_fp64;
}

static void run_arg(int form, rnl_dtype dtype, int layout, bool largest, bool last)
{
    select_job job = {.axis = forms[form].axis, .largest = largest, .last = last};
    job.src = tensor(dtype, form, forms[form].shape[job.axis], layout);
    job.dst = tensor(RNL_I64, form, 1, layout + 2);
    op_fill(job.src, layout % 2 ? OP_SPECIAL : OP_RANDOM, op_int_limit(dtype, false) ? -4 : 0, 4); /* with ties */
    op_note("arg of %s, form %d", rnl_dtype_name(dtype), form);
    op_expect(RNL_OK, rnl_op_arg(op_list(), largest, last, job.axis, &job.src->view, &job.dst->view));
    op_run();
    op_check(job.dst, arg_reference, &job, (op_bound){0, 0});
    op_reset();
}

static void run_topk(int form, rnl_dtype dtype, int layout, bool largest, int64_t count)
{
    select_job job = {.axis = forms[form].axis, .largest = largest};
    const int64_t size = forms[form].shape[job.axis];
    count = count < size ? count : size;
    job.src = tensor(dtype, form, size, layout);
    job.dst = tensor(dtype, form, count, layout + 1);
    job.places = tensor(RNL_I64, form, count, layout + 3);
    op_fill(job.src, layout % 2 ? OP_SPECIAL : OP_RANDOM, op_int_limit(dtype, false) ? -40 : 0, 40);
    op_note("top %d of %s, form %d", (int)count, rnl_dtype_name(dtype), form);
    op_expect(RNL_OK, rnl_op_topk(op_list(), largest, job.axis, &job.src->view, &job.dst->view, &job.places->view));
    op_run();
    op_check(job.places, place_reference, &job, (op_bound){0, 0});
    op_check(job.dst, value_reference, &job, (op_bound){0, 0});
    op_reset();
}

static void run_scan(int form, rnl_dtype dtype, int layout, rnl_scan_params params)
{
    select_job job = {.axis = forms[form].axis, .scan = params};
    job.scan.axis = job.axis;
    job.src = tensor(dtype, form, forms[form].shape[job.axis], layout);
    job.dst = tensor(dtype, form, forms[form].shape[job.axis], layout + 1);
    const bool is_float = op_is_float(dtype);
    op_fill(job.src, OP_RANDOM, is_float ? params.product ? 0.99 : -1 : 0, is_float && params.product ? 1.01 : 3);
    op_note("scan of %s, form %d", rnl_dtype_name(dtype), form);
    op_expect(RNL_OK, rnl_op_scan(op_list(), &job.scan, &job.src->view, &job.dst->view));
    op_run();
    op_bound bound = op_tolerance(dtype);
    if (is_float && params.product) /* a rounding for each factor */
        bound.relative += 300 * (dtype == RNL_F64 ? 0x1p-53 : 0x1p-24);
    op_check(job.dst, scan_reference, &job, bound);
    op_reset();
}

START_TEST(args)
{
    const int form = _i / TYPES;
    const rnl_dtype dtype = types[_i % TYPES];
    if (has_type(dtype))
        run_arg(form, dtype, _i, _i % 3 != 0, _i % 4 < 2);
}
END_TEST

START_TEST(tops)
{
    static const int64_t counts[] = {1, 3, 70, 1000};
    const int form = _i / TYPES;
    const rnl_dtype dtype = types[_i % TYPES];
    if (has_type(dtype) && !(op_small() && form != 1 && form != 5))
        run_topk(form, dtype, _i, _i % 2 == 0, counts[_i % (op_small() ? 2 : 4)]);
}
END_TEST

START_TEST(scans)
{
    const int form = _i / TYPES;
    const rnl_dtype dtype = types[_i % TYPES];
    if (has_type(dtype))
        run_scan(form, dtype, _i,
                 (rnl_scan_params){.product = _i % 5 == 0, .exclusive = _i % 2 != 0, .reverse = _i % 4 > 1});
}
END_TEST

typedef struct scatter_job {
    rnl_scatter_op op;
    size_t axis, tuple; /* tuple: of ScatterND; 0: ScatterElements */
    op_tensor *data, *indices, *updates;
} scatter_job;

static double reduced(rnl_scatter_op op, double a, double b)
{
    switch (op) {
    case RNL_SCATTER_ADD:
        return a + b;
    case RNL_SCATTER_MUL:
        return a * b;
    case RNL_SCATTER_MAX:
        return fmax(a, b);
    case RNL_SCATTER_MIN:
        return fmin(a, b);
    default:
        return b;
    }
}

/* Whether update `from` goes to element `at`. */
static bool goes_to(const scatter_job *job, const int64_t *from, const int64_t *at)
{
    const rnl_view *data = &job->data->view, *indices = &job->indices->view;
    int64_t which[RNL_MAX_RANK];
    const size_t outer = job->tuple ? indices->rank - 1 : 0;
    for (size_t i = 0; i < data->rank; ++i) {
        const bool chosen = job->tuple ? i < job->tuple : i == job->axis;
        int64_t place = chosen ? 0 : from[job->tuple ? i - job->tuple + outer : i];
        if (chosen) {
            for (size_t d = 0; d < indices->rank; ++d)
                which[d] = job->tuple && d == outer ? (int64_t)i : from[d];
            place = op_get(job->indices, which).i;
            place += place < 0 ? data->shape[i] : 0;
        }
        if (place != at[i])
            return false;
    }
    return true;
}

static op_value scatter_reference(void *user, const int64_t *at)
{
    const scatter_job *job = user;
    int64_t from[RNL_MAX_RANK];
    int64_t index = job->data->view.offset;
    for (size_t i = 0; i < job->data->view.rank; ++i)
        index += at[i] * job->data->view.stride[i];
    /* What was there before: the tensor itself holds what came out. */
    double value =
        op_decode(job->data->view.dtype, job->data->sent + index * (int64_t)rnl_dtype_bytes(job->data->view.dtype)).f;
    for (int64_t i = 0; i < op_elements(job->updates); ++i) {
        op_coordinates(job->updates, i, from);
        if (goes_to(job, from, at))
            value = reduced(job->op, value, op_get(job->updates, from).f);
    }
    return op_float(value);
}

START_TEST(scatters)
{
    static const struct {
        size_t axis, tuple, rank, index_rank, update_rank;
        int64_t data[4], indices[4], updates[4];
    } cases[] = {
        {1, 0, 3, 3, 3, {4, 6, 5}, {3, 9, 5}, {3, 9, 5}},          {0, 0, 1, 1, 1, {7}, {40}, {40}},
        {2, 0, 4, 4, 4, {2, 3, 4, 5}, {2, 2, 7, 4}, {2, 2, 7, 4}}, {0, 1, 3, 2, 3, {5, 3, 4}, {9, 1}, {9, 3, 4}},
        {0, 2, 3, 3, 3, {5, 3, 4}, {2, 6, 2}, {2, 6, 4}},          {0, 3, 3, 2, 1, {2, 3, 4}, {31, 3}, {31}},
    };
    const size_t which = (size_t)_i % 6;
    scatter_job job = {.op = (rnl_scatter_op)(_i / 6), .axis = cases[which].axis, .tuple = cases[which].tuple};
    job.data = op_tensor_create(RNL_F32, cases[which].rank, cases[which].data, (op_layout)(_i % OP_LAYOUT_COUNT));
    job.indices = op_tensor_create(_i % 2 ? RNL_I32 : RNL_I64, cases[which].index_rank, cases[which].indices,
                                   (op_layout)((_i + 1) % OP_LAYOUT_COUNT));
    job.updates = op_tensor_create(RNL_F32, cases[which].update_rank, cases[which].updates,
                                   (op_layout)((_i + 2) % OP_LAYOUT_COUNT));
    op_fill(job.data, OP_RANDOM, -2, 2);
    op_fill(job.updates, OP_RANDOM, -2, 2);
    op_fill(job.indices, OP_RANDOM, -9, 9); /* some out of range */
    const rnl_view *indices = &job.indices->view, *updates = &job.updates->view, *data = &job.data->view;
    op_note("scatter %d in case %zu", (int)job.op, which);
    op_expect(RNL_OK, job.tuple ? rnl_op_scatter_nd(op_list(), job.op, indices, updates, data)
                                : rnl_op_scatter_elements(op_list(), job.op, job.axis, indices, updates, data));
    op_run();
    op_check(job.data, scatter_reference, &job, (op_bound){1e-5, 1e-5});
    op_reset();
}
END_TEST

START_TEST(refusals)
{
    const int64_t shape[] = {3, 4}, one[] = {1, 4}, five[] = {5, 4}, none[] = {0, 4};
    rnl_view x = rnl_view_row_major(0, RNL_F32, 2, shape), places = rnl_view_row_major(1, RNL_I64, 2, one);
    rnl_view floats = rnl_view_row_major(1, RNL_F32, 2, one), many = rnl_view_row_major(1, RNL_F32, 2, five);
    rnl_view many_places = rnl_view_row_major(2, RNL_I64, 2, five), empty = rnl_view_row_major(0, RNL_F32, 2, none);
    const rnl_scan_params beyond = {.axis = 2};
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_arg(op_list(), true, false, 0, &x, &floats));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_arg(op_list(), true, false, 1, &x, &places));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_arg(op_list(), true, false, 0, &empty, &places));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_topk(op_list(), true, 0, &x, &many, &many_places));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_scan(op_list(), &beyond, &x, &x));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_scatter_nd(op_list(), RNL_SCATTER_NONE, &many_places, &x, &x));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_scatter_elements(op_list(), RNL_SCATTER_NONE, 0, &floats, &floats, &x));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gather_nd(op_list(), 2, &x, &places, &x));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gather_elements(op_list(), 0, &x, &places, &x));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

static void as_gpu(void)
{
    op_pretend(&(op_limits){.gpu = true,
                            .vector_width = 4,
                            .work_items = op_info()->max_work_group_size,
                            .local_bytes = op_info()->local_memory_bytes});
}

static void as_it_is(void)
{
    op_pretend(NULL);
}

int main(void)
{
    Suite *suite = suite_create("select");
    TCase *items = op_case(suite, "work-items"), *groups = op_case(suite, "work-groups");
    tcase_add_checked_fixture(groups, as_gpu, as_it_is);
    for (int i = 0; i < 2; ++i) {
        TCase *tests = i ? groups : items;
        op_add_loop(tests, args, 0, FORMS * TYPES);
        op_add_loop(tests, tops, 0, FORMS * TYPES);
        op_add_loop(tests, scans, 0, FORMS * TYPES);
    }
    op_add_loop(items, scatters, 0, 30);
    tcase_add_test(items, refusals);
    return op_main(suite);
}
