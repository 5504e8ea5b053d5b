/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by Winograd's inner product, against direct sums in float64. */
#include "device/device.h"
#include "ops/implementation.h"
#include "ops/instruction_rate.h"
#include "support/conv_case.h"
#include "support/op_bench.h"
#include <math.h>
#include <stdlib.h>

/* The only ones that it is for. */
static bool is_cpu(void)
{
    return rnl_device_is_cpu(op_device());
}

static void run(int64_t batch, int64_t channels, int64_t filters, int64_t height, int64_t width, conv_case other)
{
    conv_case test = other;
    test.batch = batch;
    test.channels = channels;
    test.filters = filters;
    test.size[0] = height;
    test.size[1] = width;
    test.taps[0] = test.taps[0] ? test.taps[0] : 1;
    test.taps[1] = test.taps[1] ? test.taps[1] : 1;
    test.fip = true;
    test.implementation = "conv:fip";
    if (is_cpu())
        conv_case_run(&test);
}

START_TEST(channel_counts)
{
    static const int64_t channels[] = {16, 48, 160}, filters[] = {1, 31, 16, 17, 32, 33, 100, 129, 193};
    for (size_t i = 0; i < (op_small() ? 1 : 3); ++i)
        for (size_t j = 0; j < (op_small() ? 2 : 9); ++j)
            run(1, channels[i], filters[j], 5, 6, (conv_case){.bias = (i + j) % 2});
}
END_TEST

/* Slabs that are tall, short, and moved back. */
START_TEST(pixel_counts)
{
    for (int64_t pixels = 8; pixels < (op_small() ? 10 : 66); ++pixels)
        run(1, 32, 64, 1, pixels, (conv_case){.bias = pixels % 2, .slices = pixels % 3 == 0});
}
END_TEST

START_TEST(many_slabs)
{
    if (op_small())
        return;
    run(3, 64, 40, 9, 13, (conv_case){.slices = true});
    run(1, 64, 256, 20, 21, (conv_case){.bias = true});
    run(8, 96, 96, 7, 7, (conv_case){.slices = true, .chain = CONV_CHAIN_ALL});
    run(2, 1536, 96, 8, 8, (conv_case){.bias = true, .chain = CONV_CHAIN_RELU});
    run(1, 2048, 66, 7, 7, (conv_case){.bias = true});
}
END_TEST

/* Terms in chunks, of which the last is shorter, and whose borders cut a tap's channels. */
START_TEST(chunks)
{
    run(1, 784, 40, 3, 5, (conv_case){.bias = true, .chain = CONV_CHAIN_ALL});
    if (op_small())
        return;
    run(2, 96, 70, 5, 6, (conv_case){.taps = {3, 3}, .pad_begin = {1, 1}, .pad_end = {1, 1}, .bias = true});
    run(1, 2064, 33, 40, 5, (conv_case){.slices = true});
}
END_TEST

START_TEST(windows)
{
    for (int64_t i = 1; i < (op_small() ? 2 : 4); ++i) {
        run(2, 16, 48, 13, 11, (conv_case){.stride = {i, 1 + i % 2}, .slices = i % 2, .bias = true});
        run(1, 16, 40, 9, 7,
            (conv_case){.taps = {3, i}, .stride = {i, 1}, .pad_begin = {1, i / 2}, .pad_end = {1, 0}, .bias = i % 2});
    }
    if (op_small())
        return;
    run(2, 32, 33, 12, 10,
        (conv_case){
            .taps = {5, 3}, .dilation = {2, 1}, .pad_begin = {4, 1}, .pad_end = {4, 1}, .chain = CONV_CHAIN_ALL});
    run(1, 32, 48, 40, 1, (conv_case){.spatial = 1});
    run(1, 16, 20, 4, 5,
        (conv_case){.spatial = 3, .size = {0, 0, 6}, .taps = {3, 2, 3}, .pad_begin = {1, 0, 1}, .pad_end = {1, 0, 1}});
}
END_TEST

START_TEST(chains)
{
    static const unsigned parts[] = {CONV_CHAIN_RESIDUAL, CONV_CHAIN_PIXELS, CONV_CHAIN_ALL};
    for (size_t i = op_small() ? 2 : 0; i < sizeof parts / sizeof *parts; ++i)
        run(2, 32, 37, 4, 5, (conv_case){.chain = parts[i], .bias = true, .slices = i % 2});
    run(1, 32, 192, 4, 8, (conv_case){.chain = CONV_CHAIN_ALL});
}
END_TEST

START_TEST(wide_indices)
{
    run(1, 32, 50, 4, 9, (conv_case){.bias = true, .wide = true});
}
END_TEST

/* Registers of every width, whatever the device's are; oclgrind knows no prefetching, as the widest ask for. */
START_TEST(register_widths)
{
    const uint32_t width = op_device()->vector_width;
    for (uint32_t i = 4; i <= (op_small() ? 8 : 16); i *= 2) {
        op_device()->vector_width = i;
        run(op_small() ? 1 : 2, 32, 70, 7, 5, (conv_case){.bias = true});
        if (!op_small())
            run(1, 96, 96, 4, 9, (conv_case){.chain = CONV_CHAIN_ALL});
    }
    op_device()->vector_width = width;
}
END_TEST

/* K x N and N x K, with factors, are the same weights; numbers by hand. */
START_TEST(packing)
{
    enum { CHANNELS = 32, FILTERS = 45, LINE = 16 };
    static float matrix[CHANNELS * FILTERS], turned[CHANNELS * FILTERS];
    double factors[FILTERS];
    const int64_t shape[] = {CHANNELS, FILTERS}, other[] = {FILTERS, CHANNELS};
    rnl_view view;
    int64_t elements = 0;
    for (size_t i = 0; i < CHANNELS * FILTERS; ++i) {
        matrix[i] = (float)(i % 29) - 14.0F;
        turned[i % FILTERS * CHANNELS + i / FILTERS] = matrix[i];
    }
    for (size_t i = 0; i < FILTERS; ++i)
        factors[i] = i ? 1.0 + (double)i / 8 : 0x1p-30;
    rnl_conv_fip_layout(true, 3, 2, shape, &view, &elements);
    ck_assert_int_ge(elements, 3 * (CHANNELS + 2) * LINE);
    ck_assert_int_eq(view.shape[1], FILTERS);
    op_tensor *first = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR),
              *second = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR);
    float *a = (float *)(void *)first->data + first->view.offset,
          *b = (float *)(void *)second->data + second->view.offset;
    rnl_conv_fip_pack(true, 2, shape, matrix, factors, a);
    rnl_conv_fip_pack(false, 2, other, turned, factors, b);
    ck_assert_int_eq(memcmp(a, b, (size_t)elements * sizeof *a), 0);
    for (int64_t lane = 0; lane < 2; ++lane) {
        const float scale = a[(CHANNELS + 1) * LINE + lane];
        double own = 0, largest = 0;
        for (int64_t c = 0; c < CHANNELS; ++c) {
            const double x = matrix[c * FILTERS + lane] * factors[lane];
            ck_assert_double_eq((double)a[c * LINE + lane] * scale, (float)x);
            largest = fmax(largest, fabs((double)a[c * LINE + lane]));
            if (c % 2)
                own += (c % 4 == 1 ? 1 : -1) * (double)a[c * LINE + lane] * a[(c - 1) * LINE + lane];
        }
        ck_assert(largest >= 1 && largest < 2);
        ck_assert_double_eq_tol(a[CHANNELS * LINE + lane], -own, 1e-5);
    }
    op_reset();
}
END_TEST

/* ---- one call ---------------------------------------------------------------------------------------------------- */

enum { CHANNELS = 64, FILTERS = 48, PIXELS = 60 };

static op_tensor *weights, *packed, *image, *result;
static rnl_view weight_view;
static rnl_conv_params params;

static void make_valid(void)
{
    const int64_t shape[4] = {FILTERS, CHANNELS, 1, 1};
    int64_t elements = 0, floats = 0;
    params = (rnl_conv_params){.spatial = 2, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1, .fip = true};
    weights = op_tensor_create(RNL_F32, 4, shape, OP_ROW_MAJOR);
    image = op_tensor_create(RNL_F32, 4, (const int64_t[]){1, CHANNELS, 1, PIXELS}, OP_CHANNELS_LAST);
    result = op_tensor_create(RNL_F32, 4, (const int64_t[]){1, FILTERS, 1, PIXELS}, OP_CHANNELS_LAST);
    rnl_conv_fip_layout(false, 0, 4, shape, &weight_view, &elements);
    packed = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR);
    weight_view.slot = packed->view.slot;
    weight_view.offset = packed->view.offset;
    op_expect(RNL_OK, rnl_conv_scratch(op_device(), &params, &image->view, &weight_view, NULL, &result->view, &floats));
    ck_assert_int_gt(floats, 0);
    params.scratch = &op_tensor_create(RNL_F32, 1, &floats, OP_ROW_MAJOR)->view;
    op_fill(weights, OP_RANDOM, -1, 1);
    op_fill(image, OP_RANDOM, -1, 1);
}

static rnl_status convolve(void)
{
    rnl_conv_fip_pack(false, 4, weights->view.shape, (const float *)(const void *)weights->data + weights->view.offset,
                      NULL, (float *)(void *)packed->data + packed->view.offset);
    return rnl_op_conv(op_list(), &params, &image->view, &weight_view, NULL, &result->view);
}

static double weight_at(int64_t m, int64_t c)
{
    return op_get(weights, (const int64_t[]){m, c, 0, 0}).f;
}

static double pixel_at(int64_t pixel, int64_t c)
{
    return op_get(image, (const int64_t[]){0, c, 0, pixel}).f;
}

static double result_at(int64_t pixel, int64_t m)
{
    return op_get(result, (const int64_t[]){0, m, 0, pixel}).f;
}

/* Multiplies each element of the image and of the weights by a power of two of its pixel's, or filter's, own. */
static void scale_rows(int exponent_step)
{
    for (int64_t c = 0; c < CHANNELS; ++c) {
        for (int64_t p = 0; p < PIXELS; ++p)
            op_put(image, (const int64_t[]){0, c, 0, p},
                   op_float(ldexp(pixel_at(p, c), (int)(p % 7 - 3) * exponent_step)));
        for (int64_t m = 0; m < FILTERS; ++m)
            op_put(weights, (const int64_t[]){m, c, 0, 0},
                   op_float(ldexp(weight_at(m, c), (int)(m % 5 - 2) * exponent_step)));
    }
}

/* As scales see it, whose smallest are those of normal numbers. */
static double size_of(double largest)
{
    return largest > 0 ? fmax(largest, 0x1p-126) : 0;
}

/* What a result's error may be: of sums of as many terms that are as large as the largest, conv_case.c's growth. */
static void check_result(int64_t pixel, int64_t m)
{
    double sum = 0, largest_pixel = 0, largest_weight = 0;
    for (int64_t c = 0; c < CHANNELS; ++c) {
        sum += pixel_at(pixel, c) * weight_at(m, c);
        largest_pixel = fmax(largest_pixel, fabs(pixel_at(pixel, c)));
        largest_weight = fmax(largest_weight, fabs(weight_at(m, c)));
    }
    const double bound = 12.0 * CHANNELS * 0x1p-24 * size_of(largest_pixel) * size_of(largest_weight);
    if (bound == 0)
        ck_assert_double_eq(result_at(pixel, m), 0);
    else
        ck_assert_double_eq_tol(result_at(pixel, m), sum, fmax(bound, 0x1p-148));
}

/* Pixels and filters of all sizes get errors of their own size. */
START_TEST(sizes)
{
    for (int step = 0; is_cpu() && step <= 10; step += 5) {
        make_valid();
        scale_rows(step);
        op_expect(RNL_OK, convolve());
        op_run();
        for (int64_t p = 0; p < PIXELS; ++p)
            for (int64_t m = 0; m < FILTERS; ++m)
                check_result(p, m);
        op_reset();
    }
}
END_TEST

/* Numbers whose scales have no inverse, and a pixel and a filter of zeros. */
START_TEST(extremes)
{
    static const double factors[] = {0x1p-140, 0x1p-120, 0x1p120, 0.0};
    for (size_t i = 0; is_cpu() && i < 4; ++i) {
        make_valid();
        for (int64_t c = 0; c < CHANNELS; ++c)
            op_put(image, (const int64_t[]){0, c, 0, 7}, op_float(pixel_at(7, c) * factors[i]));
        for (int64_t c = 0; c < CHANNELS; ++c)
            op_put(weights, (const int64_t[]){5, c, 0, 0}, op_float(weight_at(5, c) * factors[3 - i]));
        op_expect(RNL_OK, convolve());
        op_run();
        for (int64_t p = 0; p < PIXELS; ++p)
            for (int64_t m = 0; m < FILTERS; ++m)
                if (p != 7 || m != 5) /* which may overflow */
                    check_result(p, m);
        op_reset();
    }
}
END_TEST

/* What is not finite reaches its own pixel's results, as it does in plain sums, and no others. */
START_TEST(special_values)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; is_cpu() && i < 3; ++i) {
        make_valid();
        op_put(image, (const int64_t[]){0, 5, 0, 21}, op_float(values[i]));
        op_expect(RNL_OK, convolve());
        op_run();
        for (int64_t m = 0; m < FILTERS; ++m) {
            if (i == 0)
                ck_assert(isnan(result_at(21, m)));
            else
                ck_assert_double_eq(result_at(21, m), values[i] * weight_at(m, 5));
            for (int64_t p = 0; p < PIXELS; ++p)
                if (p != 21)
                    check_result(p, m);
        }
        op_reset();
    }
}
END_TEST

START_TEST(wrong_arguments)
{
    if (!is_cpu())
        return;
    make_valid();
    op_expect(RNL_OK, convolve());
    params.scratch = NULL;
    op_expect(RNL_UNIMPLEMENTED, convolve());
    op_reset();
    make_valid();
    weight_view.shape[1] = CHANNELS - 1;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_conv(op_list(), &params, &image->view, &weight_view, NULL, &result->view));
    weight_view.shape[1] = CHANNELS;
    params.groups = 2;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_conv(op_list(), &params, &image->view, &weight_view, NULL, &result->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
    op_reset();
}
END_TEST

static bool prefers(int64_t channels, int64_t filters, int64_t pixels, rnl_dtype dtype)
{
    const rnl_conv_params plain = {.spatial = 1, .stride = {1}, .dilation = {1}, .groups = 1};
    const int64_t shape[3] = {1, channels, pixels}, target[3] = {1, filters, pixels};
    const rnl_view from = rnl_view_channels_last(0, dtype, 3, shape), to = rnl_view_channels_last(1, dtype, 3, target);
    const rnl_view weight = {.slot = 2, .dtype = dtype, .rank = 3, .shape = {filters, channels, 1}};
    bool result_is = false;
    op_expect(RNL_OK, rnl_conv_prefers_fip(op_device(), &plain, &from, &weight, &to, &result_is));
    return result_is;
}

START_TEST(preferences)
{
    ck_assert_int_eq(prefers(384, 1536, 1280, RNL_F32), rnl_device_gains_by_float_fip(op_device()));
    setenv("RUNNEL_FIP", "on", 1);
    ck_assert_int_eq(prefers(384, 1536, 1280, RNL_F32), is_cpu());
    ck_assert(!prefers(384, 1536, 1280, RNL_F16));
    ck_assert(!prefers(383, 1536, 1280, RNL_F32));
    ck_assert(!prefers(384, 1536, 1, RNL_F32));
    setenv("RUNNEL_CONV", "panel", 1);
    ck_assert(!prefers(384, 1536, 1280, RNL_F32));
    unsetenv("RUNNEL_CONV");
    setenv("RUNNEL_FIP", "off", 1);
    ck_assert(!prefers(384, 1536, 1280, RNL_F32));
    unsetenv("RUNNEL_FIP");
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    tcase_add_test(tests, channel_counts);
    tcase_add_test(tests, pixel_counts);
    tcase_add_test(tests, many_slabs);
    tcase_add_test(tests, chunks);
    tcase_add_test(tests, windows);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, register_widths);
    tcase_add_test(tests, packing);
    tcase_add_test(tests, sizes);
    tcase_add_test(tests, extremes);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, preferences);
}

int main(void)
{
    Suite *suite = suite_create("conv_fip");
    add_tests(op_case(suite, "conv_fip"));
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    return op_main(suite);
}
