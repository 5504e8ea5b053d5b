/* SPDX-License-Identifier: Apache-2.0 */
/* Resize against its definition, written with one list of weights an axis, and against onnx's reference. */
#include "ops/resize.h"
#include "support/op_test.h"
#include "support/op_values.h"
#include <math.h>

typedef struct resize_case {
    int mode, coordinates, nearest, exclude_outside, antialias;
    int64_t from[2], to[2];
    float scale[2];
    size_t first_result;
} resize_case;
#include "support/resize_table.h"

enum { MAX_TAPS = 64 };

typedef struct resize_job {
    rnl_resize_params params;
    op_tensor *src, *dst;
} resize_job;

/* ---- The definition ---- */

/* In float32, as onnxruntime has it: which sample is nearest hangs on the rounding. */
static float position_in_src(const resize_job *job, size_t axis, int64_t coordinate)
{
    const rnl_resize_params *params = &job->params;
    const float x = (float)coordinate, scale = params->scale[axis];
    const float from = (float)job->src->view.shape[axis], to = (float)job->dst->view.shape[axis];
    const float begin = params->roi_begin[axis], end = params->roi_end[axis];
    if (from == to && scale == 1 && params->coordinates != RNL_RESIZE_TF_CROP_AND_RESIZE)
        return x;
    switch (params->coordinates) {
    case RNL_RESIZE_HALF_PIXEL_SYMMETRIC: {
        const float adjustment = to / (scale * from);
        return from / 2 * (1 - adjustment) + (x + 0.5f) / scale - 0.5f;
    }
    case RNL_RESIZE_PYTORCH_HALF_PIXEL:
        return to > 1 ? (x + 0.5f) / scale - 0.5f : 0;
    case RNL_RESIZE_ALIGN_CORNERS:
        return to > 1 ? x * (from - 1) / (to - 1) : 0;
    case RNL_RESIZE_ASYMMETRIC:
        return x / scale;
    case RNL_RESIZE_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5f) / scale;
    case RNL_RESIZE_TF_CROP_AND_RESIZE:
        return to > 1 ? begin * (from - 1) + x * (end - begin) * (from - 1) / (to - 1)
                      : 0.5f * (begin + end) * (from - 1);
    default:
        return (x + 0.5f) / scale - 0.5f;
    }
}

static double nearest_to(rnl_resize_nearest mode, double x)
{
    const bool half = x - floor(x) == 0.5;
    switch (mode) {
    case RNL_RESIZE_ROUND_PREFER_FLOOR:
        return half ? floor(x) : round(x);
    case RNL_RESIZE_ROUND_PREFER_CEIL:
        return half ? ceil(x) : round(x);
    case RNL_RESIZE_FLOOR:
        return floor(x);
    default:
        return ceil(x);
    }
}

static double filter(const rnl_resize_params *params, double x)
{
    const double a = (double)params->cubic_a, d = fabs(x);
    if (params->mode == RNL_RESIZE_LINEAR)
        return d < 1 ? 1 - d : 0;
    if (d <= 1)
        return (a + 2) * pow(d, 3) - (a + 3) * pow(d, 2) + 1;
    return d < 2 ? a * pow(d, 3) - 5 * a * pow(d, 2) + 8 * a * d - 4 * a : 0;
}

typedef struct taps {
    size_t count;
    int64_t index[MAX_TAPS];
    double weight[MAX_TAPS];
} taps;

static taps taps_of(const resize_job *job, size_t axis, int64_t coordinate)
{
    const rnl_resize_params *params = &job->params;
    const int64_t last = job->src->view.shape[axis] - 1;
    const double x = (double)position_in_src(job, axis, coordinate);
    const double shrink = params->antialias ? fmin((double)params->scale[axis], 1) : 1;
    taps list = {0};
    double sum = 0;
    if (params->mode == RNL_RESIZE_NEAREST) {
        list.count = 1;
        list.index[0] = (int64_t)fmin(fmax(nearest_to(params->nearest, x), 0), (double)last);
        list.weight[0] = 1;
        return list;
    }
    for (int64_t i = (int64_t)floor(x - 2 / shrink) - 1; i <= (int64_t)ceil(x + 2 / shrink) + 1; ++i) {
        const bool outside = i < 0 || i > last;
        ck_assert_uint_lt(list.count, MAX_TAPS);
        list.index[list.count] = i < 0 ? 0 : i > last ? last : i;
        list.weight[list.count] = outside && params->exclude_outside ? 0 : filter(params, ((double)i - x) * shrink);
        sum += list.weight[list.count++];
    }
    for (size_t i = 0; i < list.count; ++i)
        list.weight[i] /= sum;
    return list;
}

static double interpolate(const resize_job *job, const int64_t *at, size_t axis, int64_t *from)
{
    if (axis == job->src->view.rank)
        return op_get(job->src, from).f;
    const taps list = taps_of(job, axis, at[axis]);
    double sum = 0;
    for (size_t i = 0; i < list.count; ++i) {
        from[axis] = list.index[i];
        if (list.weight[i] != 0)
            sum += list.weight[i] * interpolate(job, at, axis + 1, from);
    }
    return sum;
}

static op_value reference(void *user, const int64_t *at)
{
    const resize_job *job = user;
    int64_t from[RNL_MAX_RANK] = {0};
    for (size_t i = 0; i < job->src->view.rank; ++i) {
        const float x = position_in_src(job, i, at[i]);
        if (job->params.coordinates == RNL_RESIZE_TF_CROP_AND_RESIZE &&
            (x < 0 || x > (float)(job->src->view.shape[i] - 1)))
            return (op_value){.f = (double)job->params.extrapolation_value,
                              .i = (int64_t)job->params.extrapolation_value};
        from[i] = job->params.mode == RNL_RESIZE_NEAREST ? taps_of(job, i, at[i]).index[0] : 0;
    }
    return job->params.mode == RNL_RESIZE_NEAREST ? op_get(job->src, from) : op_float(interpolate(job, at, 0, from));
}

/* ---- The tests ---- */

static resize_job make_job(rnl_dtype dtype, size_t rank, const int64_t *from, const float *scale, op_layout src,
                           op_layout dst)
{
    resize_job job = {.params = {.cubic_a = -0.75f, .extrapolation_value = 7}};
    int64_t to[RNL_MAX_RANK];
    for (size_t i = 0; i < rank; ++i) {
        job.params.scale[i] = scale[i];
        job.params.roi_end[i] = 1;
        to[i] = (int64_t)((float)from[i] * scale[i]);
    }
    job.src = op_tensor_create(dtype, rank, from, src);
    job.dst = op_tensor_create(dtype, rank, to, dst);
    op_fill(job.src, OP_RANDOM, op_is_float(dtype) || op_int_limit(dtype, false) ? -5 : 0, 5);
    return job;
}

static void run_job(resize_job *job)
{
    const rnl_resize_params *params = &job->params;
    op_bound bound = op_tolerance(job->src->view.dtype);
    if (params->mode != RNL_RESIZE_NEAREST) /* positions are floats: their error times the slope */
        bound.absolute += 2e-5;
    op_note("mode %d, coordinates %d, nearest %d, exclude %d, antialias %d", (int)params->mode,
            (int)params->coordinates, (int)params->nearest, params->exclude_outside, params->antialias);
    op_expect(RNL_OK, rnl_op_resize(op_list(), params, &job->src->view, &job->dst->view));
    op_run();
    op_check(job->dst, reference, job, bound);
    op_reset();
}

START_TEST(nearest)
{
    static const float scales[][4] = {{1, 1, 2, 2}, {1, 1, 1.5f, 0.5f}, {1, 1, 0.3f, 3}, {1, 1, 4, 1.25f}};
    const int64_t shape[] = {2, 3, 5, 6};
    resize_job job = make_job(_i % 2 ? RNL_F32 : RNL_F16, 4, shape, scales[_i % 4],
                              _i / 4 % 2 ? OP_CHANNELS_LAST : OP_ROW_MAJOR, OP_CHANNELS_LAST);
    job.params.nearest = (rnl_resize_nearest)(_i / 4 % 4);
    job.params.coordinates = (rnl_resize_coordinates)(_i / 16);
    if (job.params.coordinates == RNL_RESIZE_TF_CROP_AND_RESIZE) {
        job.params.roi_begin[2] = -0.25f;
        job.params.roi_end[3] = 0.75f;
    }
    run_job(&job);
}
END_TEST

START_TEST(nearest_types)
{
    static const rnl_dtype types[] = {RNL_I8,  RNL_U8,  RNL_I16, RNL_U16,  RNL_I32,  RNL_U32,
                                      RNL_I64, RNL_U64, RNL_F64, RNL_BF16, RNL_BOOL, RNL_F32};
    const int64_t shape[] = {3, 5};
    const float scale[] = {2, 1.6f};
    const bool crop = _i >= 12;
    if (crop && types[_i % 12] == RNL_F64 && !op_info()->has_fp64)
        return;
    resize_job job = make_job(types[_i % 12], 2, shape, scale, OP_ROW_MAJOR, OP_GAPS);
    job.params.coordinates = crop ? RNL_RESIZE_TF_CROP_AND_RESIZE : RNL_RESIZE_ASYMMETRIC;
    job.params.roi_begin[1] = crop ? -0.3f : 0;
    run_job(&job);
}
END_TEST

START_TEST(interpolation)
{
    static const float scales[][4] = {{1, 1, 2, 2}, {1, 1, 1.5f, 0.6f}, {1, 1, 0.25f, 2.5f}, {1, 1, 1, 0.4f}};
    const int64_t shape[] = {2, 3, 5, 7};
    resize_job job =
        make_job(RNL_F32, 4, shape, scales[_i % 4], OP_CHANNELS_LAST, _i % 3 ? OP_CHANNELS_LAST : OP_ROW_MAJOR);
    job.params.mode = _i & 4 ? RNL_RESIZE_CUBIC : RNL_RESIZE_LINEAR;
    job.params.coordinates = (rnl_resize_coordinates)(_i / 8 % 7);
    job.params.antialias = _i / 56 & 1;
    job.params.exclude_outside = _i / 112 & 1;
    if (job.params.coordinates == RNL_RESIZE_TF_CROP_AND_RESIZE) {
        job.params.roi_begin[2] = 0.1f;
        job.params.roi_end[3] = 1.125f;
    }
    run_job(&job);
}
END_TEST

START_TEST(interpolation_types)
{
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16, RNL_F64};
    const int64_t shape[] = {5, 6};
    const float scale[] = {1.5f, 0.5f};
    if (types[_i / 2] == RNL_F64 && !op_info()->has_fp64)
        return;
    resize_job job = make_job(types[_i / 2], 2, shape, scale, OP_ROW_MAJOR, OP_ROW_MAJOR);
    job.params.mode = _i % 2 ? RNL_RESIZE_CUBIC : RNL_RESIZE_LINEAR;
    run_job(&job);
}
END_TEST

/* Samples without weight do not count, even where they are not finite. */
START_TEST(infinities)
{
    const int64_t shape[] = {1, 6, 5, 7};
    const float scale[] = {1, 1, _i % 2 ? 2 : 1, 3};
    resize_job job = make_job(RNL_F32, 4, shape, scale, _i / 2 ? OP_CHANNELS_LAST : OP_ROW_MAJOR, OP_CHANNELS_LAST);
    job.params.mode = RNL_RESIZE_LINEAR;
    job.params.coordinates = RNL_RESIZE_ASYMMETRIC;
    op_fill(job.src, OP_RANDOM, -9, 9);
    for (int64_t c = 0; c < 6; ++c)
        op_put(job.src, (int64_t[]){0, c, c % 5, c}, op_float(c % 2 ? INFINITY : NAN));
    run_job(&job);
}
END_TEST

/* Pixels of one and more vectors, whole and in part. */
START_TEST(many_channels)
{
    static const int64_t channels[] = {4, 5, 16, 19, 35, 70};
    const int64_t shape[] = {2, channels[_i % 6], 3, 4};
    const float scale[] = {1, 1, 2, 1.7f};
    resize_job job = make_job(_i % 4 == 3 ? RNL_F16 : RNL_F32, 4, shape, scale, OP_CHANNELS_LAST, OP_CHANNELS_LAST);
    job.params.mode = _i / 6 ? RNL_RESIZE_LINEAR : RNL_RESIZE_NEAREST;
    run_job(&job);
}
END_TEST

typedef struct resize_form {
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
    float scale[RNL_MAX_RANK];
} resize_form;

static const resize_form forms[] = {
    {1, {5}, {2.5f}},
    {1, {5}, {1}},
    {2, {1, 1}, {3, 4}},
    {2, {9, 4}, {0.2f, 0.25f}},
    {3, {3, 4, 5}, {2, 0.5f, 1.5f}},
    {5, {2, 3, 3, 2, 4}, {1, 1, 2, 1.5f, 0.5f}},
    {6, {2, 1, 3, 2, 3, 2}, {1, 1, 1.4f, 1, 2, 1}},
    {8, {2, 2, 1, 2, 3, 2, 3, 2}, {1, 1, 1, 1, 1.5f, 1, 2, 1}},
    {2, {40, 3}, {1, 1.4f}},
};
enum { FORMS = sizeof forms / sizeof *forms };

START_TEST(shapes_and_strides)
{
    const resize_form *f = &forms[_i / OP_LAYOUT_COUNT / 3];
    const int layout = _i / 3 % OP_LAYOUT_COUNT;
    resize_job job =
        make_job(RNL_F32, f->rank, f->shape, f->scale, (op_layout)layout, (op_layout)((layout + 2) % OP_LAYOUT_COUNT));
    job.params.mode = (rnl_resize_mode)(_i % 3);
    job.params.coordinates = _i % 2 ? RNL_RESIZE_HALF_PIXEL : RNL_RESIZE_ALIGN_CORNERS;
    run_job(&job);
}
END_TEST

START_TEST(long_indices)
{
    const int64_t shape[] = {1, 4, 5};
    const float scale[] = {1, 1.5f, 2};
    resize_job job = make_job(RNL_F32, 3, shape, scale, OP_REVERSED, OP_GAPS);
    job.params.mode = (rnl_resize_mode)_i;
    job.src->view.stride[0] = (int64_t)1 << 40;
    run_job(&job);
}
END_TEST

static op_value table_result(void *user, const int64_t *at)
{
    const resize_case *row = user;
    return op_float(resize_results[row->first_result + (size_t)(at[0] * row->to[1] + at[1])]);
}

START_TEST(onnx_reference)
{
    resize_case row = resize_cases[_i];
    resize_job job = make_job(RNL_F32, 2, row.from, row.scale, OP_ROW_MAJOR, OP_ROW_MAJOR);
    job.params = (rnl_resize_params){.mode = (rnl_resize_mode)row.mode,
                                     .coordinates = (rnl_resize_coordinates)row.coordinates,
                                     .nearest = (rnl_resize_nearest)row.nearest,
                                     .cubic_a = -0.6f,
                                     .exclude_outside = row.exclude_outside,
                                     .antialias = row.antialias,
                                     .extrapolation_value = 10,
                                     .scale = {row.scale[0], row.scale[1]},
                                     .roi_begin = {0.1f, -0.2f},
                                     .roi_end = {0.8f, 1.1f}};
    ck_assert(rnl_view_elements(&job.dst->view) == row.to[0] * row.to[1]);
    for (int64_t i = 0; i < row.from[0] * row.from[1]; ++i)
        op_put(job.src, (int64_t[]){i / row.from[1], i % row.from[1]}, op_float((double)(i * 37 % 101) / 8 - 5));
    op_note("onnx's case %d: mode %d, coordinates %d", _i, row.mode, row.coordinates);
    op_expect(RNL_OK, rnl_op_resize(op_list(), &job.params, &job.src->view, &job.dst->view));
    op_run();
    op_check(job.dst, table_result, &row, (op_bound){4e-6, 2e-5});
}
END_TEST

START_TEST(nothing_and_refusals)
{
    const int64_t shape[] = {2, 3, 2, 2}, empty[] = {2, 0, 2, 2}, larger[] = {4, 6, 4, 4};
    rnl_view src = rnl_view_row_major(0, RNL_F32, 4, shape), dst = rnl_view_row_major(1, RNL_F32, 4, larger);
    rnl_view none = rnl_view_row_major(0, RNL_F32, 4, empty), whole = rnl_view_row_major(0, RNL_I32, 4, shape);
    rnl_resize_params params = {.mode = RNL_RESIZE_NEAREST, .scale = {2, 2, 2, 1}};
    op_expect(RNL_OK, rnl_op_resize(op_list(), &params, &none, &none));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_resize(op_list(), &params, &src, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_resize(op_list(), &params, &none, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_resize(op_list(), &params, &whole, &dst));
    params.mode = RNL_RESIZE_LINEAR;
    op_expect(RNL_UNIMPLEMENTED, rnl_op_resize(op_list(), &params, &whole, &whole));
    params.scale[1] = NAN;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_resize(op_list(), &params, &src, &src));
    params.scale[1] = 0;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_resize(op_list(), &params, &src, &src));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    op_add_loop(tests, nearest, 0, 4 * 4 * 7);
    op_add_loop(tests, nearest_types, 0, 24);
    op_add_loop(tests, interpolation, 0, 4 * 2 * 7 * 4);
    op_add_loop(tests, interpolation_types, 0, 6);
    op_add_loop(tests, infinities, 0, 4);
    op_add_loop(tests, many_channels, 0, 12);
    op_add_loop(tests, shapes_and_strides, 0, FORMS * OP_LAYOUT_COUNT * 3);
    op_add_loop(tests, long_indices, 0, 3);
    op_add_loop(tests, onnx_reference, 0, (int)(sizeof resize_cases / sizeof *resize_cases));
}

/* Fewer: the simulators have all of the others to do too. */
static void add_tests_as_cpu(TCase *tests)
{
    if (!tests)
        return;
    op_add_loop(tests, nearest, 0, 4 * 4);
    op_add_loop(tests, nearest_types, 0, 12);
    op_add_loop(tests, interpolation, 0, 4 * 2 * 2);
    op_add_loop(tests, interpolation_types, 0, 2);
    op_add_loop(tests, infinities, 0, 4);
    op_add_loop(tests, many_channels, 0, 12);
    op_add_loop(tests, shapes_and_strides, 0, FORMS * OP_LAYOUT_COUNT);
    op_add_loop(tests, long_indices, 0, 2);
}

int main(void)
{
    Suite *suite = suite_create("resize");
    TCase *tests = op_case(suite, "resize");
    add_tests(tests);
    add_tests_as_cpu(op_case_as_cpu(suite, "as a CPU"));
    tcase_add_test(tests, nothing_and_refusals);
    return op_main(suite);
}
