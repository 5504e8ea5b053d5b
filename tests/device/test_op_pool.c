/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool.h"
#include "support/op_bench.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct pool_case {
    rnl_pool_op op;
    rnl_dtype dtype;                                                                               /* 0: F32 */
    size_t spatial;                                                                                /* 0: 2 */
    int64_t batch, channels, size[3], window[3], stride[3], dilation[3], pad_begin[3], pad_end[3]; /* 0 steps: 1 */
    bool ceil, count_include_pad, column_major, indices, slices;
    bool wide; /* kernels index in 64 bits, for a stride that nothing uses; batch is 1 */
    op_layout src_layout, dst_layout;
} pool_case;

typedef struct pool_run {
    pool_case test;
    op_tensor *src, *dst, *indices;
} pool_run;

/* What one window holds. */
typedef struct window_sum {
    double sum, best;
    int64_t position, inside, counted;
    bool any_nan;
} window_sum;

static bool in_reach(int64_t at, int64_t size, int64_t before, int64_t after)
{
    return at >= -before && at < size + after;
}

static int64_t flat_position(const pool_case *test, const int64_t *src_at)
{
    int64_t flat = 0, plane = 1;
    for (size_t i = 0; i < test->spatial; ++i) {
        const size_t axis = test->column_major ? test->spatial - 1 - i : i;
        flat = flat * test->size[axis] + src_at[axis + 2];
        plane *= test->size[i];
    }
    return (src_at[0] * test->channels + src_at[1]) * plane + flat;
}

static void add_tap(const pool_run *run, const int64_t *at, int64_t tap, window_sum *window)
{
    const pool_case *test = &run->test;
    int64_t src_at[RNL_MAX_RANK] = {at[0], at[1]};
    bool inside = true, counted = true;
    for (size_t i = test->spatial; i-- > 0;) {
        const int64_t k = tap % test->window[i];
        tap /= test->window[i];
        src_at[i + 2] = at[i + 2] * test->stride[i] + k * test->dilation[i] - test->pad_begin[i];
        inside = inside && in_reach(src_at[i + 2], test->size[i], 0, 0);
        counted = counted && in_reach(src_at[i + 2], test->size[i], test->pad_begin[i], test->pad_end[i]);
    }
    window->counted += counted;
    if (!inside)
        return;
    const double x = op_get(run->src, src_at).f;
    if (!window->inside || (isnan(x) && !window->any_nan) || (x > window->best && !window->any_nan)) {
        window->best = x;
        window->position = flat_position(test, src_at);
    }
    window->any_nan = window->any_nan || isnan(x);
    window->inside++;
    window->sum += x;
}

static window_sum gather(const pool_run *run, const int64_t *at)
{
    window_sum window = {0};
    int64_t taps = 1;
    for (size_t i = 0; i < run->test.spatial; ++i)
        taps *= run->test.window[i];
    for (int64_t tap = 0; tap < taps; ++tap)
        add_tap(run, at, tap, &window);
    return window;
}

static op_value reference(void *user, const int64_t *at)
{
    const pool_run *run = user;
    const window_sum window = gather(run, at);
    if (run->test.op == RNL_POOL_AVERAGE)
        return op_float(window.sum / (double)(run->test.count_include_pad ? window.counted : window.inside));
    const double best = window.inside ? window.best : -INFINITY;
    return (op_value){best, isfinite(best) ? (int64_t)best : 0};
}

static op_value reference_index(void *user, const int64_t *at)
{
    return op_int(gather(user, at).position);
}

static int64_t out_size(const pool_case *test, size_t i)
{
    const int64_t reach =
        test->size[i] + test->pad_begin[i] + test->pad_end[i] - (test->window[i] - 1) * test->dilation[i] - 1;
    int64_t size = (reach + (test->ceil ? test->stride[i] - 1 : 0)) / test->stride[i] + 1;
    /* No window starts in the padding behind. */
    if (test->ceil && (size - 1) * test->stride[i] >= test->size[i] + test->pad_begin[i])
        --size;
    return size;
}

static op_tensor *create_image(const pool_case *test, rnl_dtype dtype, const int64_t *size, op_layout layout)
{
    const int64_t shape[5] = {test->batch, test->channels + (test->slices ? 5 : 0), size[0], size[1], size[2]};
    op_tensor *image = op_tensor_create(dtype, test->spatial + 2, shape, layout);
    if (test->slices) {
        image->view.shape[1] = test->channels;
        image->view.offset += 2 * image->view.stride[1];
    }
    return image;
}

static void set_defaults(pool_case *test)
{
    test->spatial = test->spatial ? test->spatial : 2;
    test->dtype = test->dtype ? test->dtype : RNL_F32;
    for (size_t i = 0; i < 3; ++i) {
        test->stride[i] = test->stride[i] ? test->stride[i] : 1;
        test->dilation[i] = test->dilation[i] ? test->dilation[i] : 1;
    }
}

static rnl_pool_params params_of(const pool_case *test)
{
    rnl_pool_params params = {.spatial = test->spatial,
                              .count_include_pad = test->count_include_pad,
                              .column_major_indices = test->column_major};
    memcpy(params.kernel, test->window, sizeof params.kernel);
    memcpy(params.stride, test->stride, sizeof params.stride);
    memcpy(params.dilation, test->dilation, sizeof params.dilation);
    memcpy(params.pad_begin, test->pad_begin, sizeof params.pad_begin);
    memcpy(params.pad_end, test->pad_end, sizeof params.pad_end);
    return params;
}

static void note(const pool_case *t)
{
    op_note("op %d %s %zuD n%" PRId64 " c%" PRId64 " size %" PRId64 ",%" PRId64 " window %" PRId64 ",%" PRId64
            " stride %" PRId64 ",%" PRId64 " dilation %" PRId64 ",%" PRId64 " pads %" PRId64 ",%" PRId64 ";%" PRId64
            ",%" PRId64 " ceil %d count %d layouts %d %d",
            t->op, rnl_dtype_name(t->dtype), t->spatial, t->batch, t->channels, t->size[0], t->size[1], t->window[0],
            t->window[1], t->stride[0], t->stride[1], t->dilation[0], t->dilation[1], t->pad_begin[0], t->pad_begin[1],
            t->pad_end[0], t->pad_end[1], t->ceil, t->count_include_pad, t->src_layout, t->dst_layout);
}

static void run_filled(const pool_case *given, op_fill_kind fill)
{
    pool_run run = {.test = *given};
    int64_t out[3] = {0, 0, 0};
    set_defaults(&run.test);
    const rnl_pool_params params = params_of(&run.test);
    for (size_t i = 0; i < run.test.spatial; ++i)
        out[i] = out_size(&run.test, i);
    note(&run.test);
    run.src = create_image(&run.test, run.test.dtype, run.test.size, run.test.src_layout);
    run.dst = create_image(&run.test, run.test.dtype, out, run.test.dst_layout);
    if (run.test.indices)
        run.indices = create_image(&run.test, RNL_I64, out, run.test.dst_layout);
    if (run.test.wide)
        run.src->view.stride[0] = INT64_C(1) << 40;
    op_fill(run.src, fill, run.test.dtype == RNL_U8 ? 0 : -90, 90);
    op_expect(RNL_OK, rnl_op_pool(op_list(), run.test.op, &params, &run.src->view, &run.dst->view,
                                  run.indices ? &run.indices->view : NULL));
    op_run();
    op_bound bound = op_tolerance(run.test.dtype);
    bound.absolute += 90 * 32 * 0x1p-24; /* of up to 27 elements */
    op_check(run.dst, reference, &run, run.test.op == RNL_POOL_MAX ? (op_bound){0, 0} : bound);
    if (run.indices)
        op_check(run.indices, reference_index, &run, bound);
    op_reset();
}

static void run_case(const pool_case *test)
{
    run_filled(test, OP_RANDOM);
}

START_TEST(memory_layouts)
{
    static const op_layout layouts[] = {OP_ROW_MAJOR, OP_CHANNELS_LAST, OP_GAPS, OP_REVERSED};
    static const int64_t channels[] = {1, 3, 7, 16, 33};
    const size_t step = op_small() ? 4 : 1; /* then each pair of layouts with some number of channels */
    for (size_t c = 0; c < 5; ++c)
        for (size_t form = (5 - c) % step; form < 16; form += step)
            run_case(&(pool_case){.op = form % 3 ? RNL_POOL_MAX : RNL_POOL_AVERAGE,
                                  .batch = 2,
                                  .channels = channels[c],
                                  .size = {5, 9},
                                  .window = {3, 2},
                                  .stride = {2, 1},
                                  .pad_begin = {1, 0},
                                  .pad_end = {0, 1},
                                  .src_layout = layouts[form % 4],
                                  .dst_layout = form / 4 == 2 ? OP_SHUFFLED : layouts[form / 4]});
}
END_TEST

START_TEST(windows)
{
    for (int op = 0; op < 2; ++op)
        for (unsigned form = 0; form < 48; ++form)
            run_case(&(pool_case){.op = (rnl_pool_op)op,
                                  .batch = 1,
                                  .channels = form & 1 ? 5 : 3,
                                  .size = {7 + form % 3, 10},
                                  .window = {3, 2},
                                  .stride = {1 + form % 3, 2},
                                  .dilation = {1 + (form >> 2 & 1), 3},
                                  .pad_begin = {form >> 3 & 1, 1},
                                  .pad_end = {1, 0},
                                  .ceil = form >> 4 & 1,
                                  .count_include_pad = form >> 1 & 1,
                                  .src_layout = OP_CHANNELS_LAST,
                                  .dst_layout = OP_CHANNELS_LAST});
}
END_TEST

START_TEST(dimensions)
{
    for (int op = 0; op < 2; ++op)
        for (unsigned form = 0; form < 8; ++form) {
            run_case(&(pool_case){.op = (rnl_pool_op)op,
                                  .spatial = 1,
                                  .batch = 2,
                                  .channels = 17,
                                  .size = {12},
                                  .window = {4},
                                  .stride = {3},
                                  .pad_begin = {2},
                                  .ceil = form & 1,
                                  .count_include_pad = form & 2,
                                  .indices = op == RNL_POOL_MAX && form & 4,
                                  .src_layout = OP_CHANNELS_LAST,
                                  .dst_layout = OP_CHANNELS_LAST});
            run_case(&(pool_case){.op = (rnl_pool_op)op,
                                  .spatial = 3,
                                  .batch = 2,
                                  .channels = 4,
                                  .size = {4, 5, 6},
                                  .window = {2, 3, 3},
                                  .stride = {2, 1, 2},
                                  .dilation = {1, 2, 1},
                                  .pad_begin = {0, 1, 1},
                                  .pad_end = {1, 1, 0},
                                  .ceil = form & 1,
                                  .count_include_pad = form & 2,
                                  .column_major = form & 2,
                                  .indices = op == RNL_POOL_MAX && form & 4,
                                  .slices = true,
                                  .src_layout = form & 4 ? OP_ROW_MAJOR : OP_CHANNELS_LAST,
                                  .dst_layout = OP_CHANNELS_LAST});
        }
}
END_TEST

START_TEST(indices)
{
    static const op_layout layouts[] = {OP_ROW_MAJOR, OP_CHANNELS_LAST, OP_GAPS};
    for (unsigned form = 0; form < 6; ++form)
        run_case(&(pool_case){.batch = 2,
                              .channels = 6,
                              .size = {5, 8},
                              .window = {3, 3},
                              .stride = {2, 2},
                              .pad_begin = {1, 1},
                              .pad_end = {1, 1},
                              .indices = true,
                              .column_major = form & 1,
                              .src_layout = layouts[form / 2],
                              .dst_layout = layouts[2 - form / 2]});
}
END_TEST

START_TEST(wide_indices)
{
    for (unsigned form = 0; form < 3; ++form)
        run_case(&(pool_case){.op = form == 1 ? RNL_POOL_AVERAGE : RNL_POOL_MAX,
                              .batch = 1,
                              .channels = 19,
                              .size = {6, 7},
                              .window = {3, 3},
                              .stride = {2, 1},
                              .pad_begin = {1, 1},
                              .indices = form == 2,
                              .wide = true,
                              .src_layout = form ? OP_CHANNELS_LAST : OP_ROW_MAJOR,
                              .dst_layout = OP_CHANNELS_LAST});
}
END_TEST

START_TEST(element_types)
{
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16, RNL_I8, RNL_U8, RNL_F64};
    for (size_t t = 0; t < (op_info()->has_fp64 ? 5 : 4); ++t)
        for (unsigned form = 0; form < 4; ++form) {
            const bool integer = types[t] == RNL_I8 || types[t] == RNL_U8;
            run_case(&(pool_case){.op = form & 1 && !integer ? RNL_POOL_AVERAGE : RNL_POOL_MAX,
                                  .dtype = types[t],
                                  .batch = 1,
                                  .channels = 19,
                                  .size = {6, 7},
                                  .window = {3, 3},
                                  .stride = {2, 1},
                                  .pad_begin = {1, 1},
                                  .indices = form == 2,
                                  .src_layout = form & 2 ? OP_ROW_MAJOR : OP_CHANNELS_LAST,
                                  .dst_layout = OP_CHANNELS_LAST});
        }
}
END_TEST

/* As numpy.maximum: NaN wins; infinities are values. */
START_TEST(special_values)
{
    for (unsigned form = 0; form < 4; ++form)
        run_filled(&(pool_case){.batch = 2,
                                .channels = 9,
                                .size = {9, 9},
                                .window = {2, 2},
                                .pad_begin = {1, 1},
                                .indices = form & 1,
                                .src_layout = form & 2 ? OP_CHANNELS_LAST : OP_ROW_MAJOR,
                                .dst_layout = form & 2 ? OP_CHANNELS_LAST : OP_ROW_MAJOR},
                   OP_SPECIAL);
}
END_TEST

static void expect(rnl_status expected, rnl_pool_op op, const rnl_pool_params *params, op_tensor *const tensors[3])
{
    op_expect(expected, rnl_op_pool(op_list(), op, params, &tensors[0]->view, &tensors[1]->view,
                                    tensors[2] ? &tensors[2]->view : NULL));
    ck_assert_uint_eq(op_list()->step_count, 0);
}

START_TEST(wrong_arguments)
{
    const int64_t shape[4] = {1, 2, 4, 4}, other[4] = {1, 3, 4, 4}, none[4] = {0, 2, 4, 4};
    op_tensor *src = op_tensor_create(RNL_F32, 4, shape, OP_ROW_MAJOR);
    op_tensor *dst = op_tensor_create(RNL_F32, 4, shape, OP_ROW_MAJOR);
    op_tensor *wider = op_tensor_create(RNL_F32, 4, other, OP_ROW_MAJOR);
    op_tensor *integers = op_tensor_create(RNL_I32, 4, shape, OP_ROW_MAJOR);
    op_tensor *empty = op_tensor_create(RNL_F32, 4, none, OP_ROW_MAJOR);
    const rnl_pool_params right = {.spatial = 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    expect(RNL_INVALID_ARGUMENT, RNL_POOL_MAX, &right, (op_tensor *[]){src, wider, NULL});
    expect(RNL_INVALID_ARGUMENT, RNL_POOL_MAX, &right, (op_tensor *[]){src, dst, integers});
    expect(RNL_INVALID_ARGUMENT, RNL_POOL_MAX, &right, (op_tensor *[]){src, integers, NULL});
    expect(RNL_UNIMPLEMENTED, RNL_POOL_AVERAGE, &right, (op_tensor *[]){integers, integers, NULL});
    expect(RNL_OK, RNL_POOL_MAX, &right, (op_tensor *[]){empty, empty, NULL});
    rnl_pool_params wrong = right;
    wrong.spatial = 4;
    expect(RNL_UNIMPLEMENTED, RNL_POOL_MAX, &wrong, (op_tensor *[]){src, dst, NULL});
    wrong.spatial = 1;
    expect(RNL_INVALID_ARGUMENT, RNL_POOL_MAX, &wrong, (op_tensor *[]){src, dst, NULL});
    wrong = right;
    wrong.stride[0] = 0;
    expect(RNL_INVALID_ARGUMENT, RNL_POOL_MAX, &wrong, (op_tensor *[]){src, dst, NULL});
    wrong = right;
    wrong.pad_end[1] = -1;
    expect(RNL_INVALID_ARGUMENT, RNL_POOL_MAX, &wrong, (op_tensor *[]){src, dst, NULL});
    wrong = right;
    wrong.kernel[1] = wrong.dilation[1] = INT64_MAX / 2;
    expect(RNL_UNIMPLEMENTED, RNL_POOL_MAX, &wrong, (op_tensor *[]){src, dst, NULL});
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    tcase_add_test(tests, memory_layouts);
    tcase_add_test(tests, windows);
    tcase_add_test(tests, dimensions);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, element_types);
    tcase_add_test(tests, special_values);
}

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tests = op_case(suite, "pool");
    add_tests(tests);
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    tcase_add_test(tests, indices);
    tcase_add_test(tests, wrong_arguments);
    return op_main(suite);
}
