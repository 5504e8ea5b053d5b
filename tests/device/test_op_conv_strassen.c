/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of single pixels by Strassen's algorithm, against direct sums in float64. */
#include "device/device.h"
#include "ops/implementation.h"
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
    test.taps[0] = test.taps[1] = 1;
    test.strassen = true;
    test.implementation = "conv:strassen";
    if (is_cpu())
        conv_case_run(&test);
}

START_TEST(channel_counts)
{
    static const int64_t channels[] = {32, 96, 160}, filters[] = {1, 31, 16, 17, 32, 33, 100, 129, 193};
    for (size_t i = 0; i < (op_small() ? 1 : 3); ++i)
        for (size_t j = 0; j < (op_small() ? 2 : 9); ++j)
            run(1, channels[i], filters[j], 5, 6, (conv_case){.bias = (i + j) % 2});
}
END_TEST

/* Slabs that are whole, that are moved back, and those whose rest is multiplied plainly. */
START_TEST(pixel_counts)
{
    for (int64_t pixels = 28; pixels < (op_small() ? 29 : 66); ++pixels)
        run(1, 32, 64, 1, pixels, (conv_case){.bias = pixels % 2});
    for (int64_t pixels = 12; pixels < (op_small() ? 13 : 36); ++pixels)
        if (op_device()->vector_width < 16 || pixels >= 16)
            run(1, 32, 96, pixels, 1, (conv_case){.slices = pixels % 2});
}
END_TEST

/* With registers of 8 floats the last slabs of a work-item may be shorter than the others: 20 pixels are 12 and 8. */
START_TEST(short_slabs)
{
    const uint32_t width = op_device()->vector_width;
    const int64_t units = rnl_device_units(op_device());
    op_device()->vector_width = 8;
    for (int64_t less = 0; less < (op_small() ? 1 : 3); ++less)
        run(1, 32, 32, 20 * units - less, 1, (conv_case){.bias = less % 2, .chain = less == 2 ? CONV_CHAIN_ALL : 0});
    for (int64_t pixels = 18; pixels < (op_small() ? 18 : 70); ++pixels)
        run(1, 32, 70, pixels, 1, (conv_case){.bias = pixels % 2, .slices = pixels % 3 == 0});
    op_device()->vector_width = width;
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

START_TEST(strides)
{
    for (int64_t i = 1; i < (op_small() ? 2 : 4); ++i)
        run(2, 32, 48, 13, 11, (conv_case){.stride = {i, 1 + i % 2}, .slices = i % 2, .bias = true});
    run(1, 32, 48, 40, 1, (conv_case){.spatial = 1});
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

/* K x N and N x K, with factors, are the same weights. */
START_TEST(packing)
{
    enum { CHANNELS = 64, FILTERS = 45 };
    static float matrix[CHANNELS * FILTERS], turned[CHANNELS * FILTERS];
    double factors[FILTERS];
    const int64_t shape[] = {CHANNELS, FILTERS}, other[] = {FILTERS, CHANNELS};
    rnl_view view;
    int64_t elements = 0;
    for (size_t i = 0; i < CHANNELS * FILTERS; ++i) {
        matrix[i] = (float)i * 0.37F - (float)(i % 11);
        turned[i % FILTERS * CHANNELS + i / FILTERS] = matrix[i];
    }
    for (size_t i = 0; i < FILTERS; ++i)
        factors[i] = 1.0 + (double)i / 7;
    rnl_conv_strassen_layout(true, 3, 2, shape, &view, &elements);
    ck_assert_int_eq(elements, 2 * 7 * 32 * 16);
    ck_assert_int_eq(view.shape[1], FILTERS);
    op_tensor *first = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR),
              *second = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR);
    float *a = (float *)(void *)first->data + first->view.offset,
          *b = (float *)(void *)second->data + second->view.offset;
    rnl_conv_strassen_pack(true, shape, matrix, factors, a);
    rnl_conv_strassen_pack(false, other, turned, factors, b);
    ck_assert_int_eq(memcmp(a, b, (size_t)elements * sizeof *a), 0);
    ck_assert_float_eq(a[0], matrix[0]);
    op_reset();
}
END_TEST

/* ---- one call ---------------------------------------------------------------------------------------------------- */

static op_tensor *weights, *packed, *image, *result;
static rnl_view weight_view;
static rnl_conv_params params;

/* 1x32x1x64 to 1x32x1x64. */
static void make_valid(void)
{
    const int64_t shape[4] = {32, 32, 1, 1};
    int64_t elements = 0, floats = 0;
    params = (rnl_conv_params){.spatial = 2, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1, .strassen = true};
    weights = op_tensor_create(RNL_F32, 4, shape, OP_ROW_MAJOR);
    image = op_tensor_create(RNL_F32, 4, (const int64_t[]){1, 32, 1, 64}, OP_CHANNELS_LAST);
    result = op_tensor_create(RNL_F32, 4, (const int64_t[]){1, 32, 1, 64}, OP_CHANNELS_LAST);
    rnl_conv_strassen_layout(false, 0, 4, shape, &weight_view, &elements);
    packed = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR);
    weight_view.slot = packed->view.slot;
    weight_view.offset = packed->view.offset;
    op_expect(RNL_OK, rnl_conv_scratch(op_device(), &params, &image->view, &weight_view, NULL, &result->view, &floats));
    ck_assert_int_gt(floats, 0);
    params.scratch = &op_tensor_create(RNL_F32, 1, &floats, OP_ROW_MAJOR)->view;
}

static rnl_status convolve(void)
{
    return rnl_op_conv(op_list(), &params, &image->view, &weight_view, NULL, &result->view);
}

/* What is not finite reaches all results of its pixel, and of no other but the one that this is paired with. */
START_TEST(special_values)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; is_cpu() && i < 3; ++i) {
        size_t pixels[64] = {0}, touched = 0;
        make_valid();
        op_fill(weights, OP_RANDOM, 0.5, 1);
        rnl_conv_strassen_pack(false, weights->view.shape,
                               (const float *)(const void *)weights->data + weights->view.offset, NULL,
                               (float *)(void *)packed->data + packed->view.offset);
        op_fill(image, OP_RANDOM, -1, 1);
        op_put(image, (const int64_t[]){0, 5, 0, 21}, op_float(values[i]));
        op_expect(RNL_OK, convolve());
        op_run();
        for (int64_t k = 0; k < op_elements(result); ++k) {
            int64_t at[RNL_MAX_RANK];
            op_coordinates(result, k, at);
            pixels[at[3]] += !isfinite(op_get(result, at).f);
        }
        for (size_t k = 0; k < 64; ++k)
            touched += pixels[k] > 0;
        ck_assert_uint_eq(pixels[21], 32);
        ck_assert_uint_le(touched, 2);
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
    params.pad_begin[1] = 1;
    op_expect(RNL_UNIMPLEMENTED, convolve());
    params.pad_begin[1] = 0;
    params.scratch = NULL;
    op_expect(RNL_UNIMPLEMENTED, convolve());
    op_reset();
    make_valid();
    weight_view.shape[3] = 3;
    op_expect(RNL_INVALID_ARGUMENT, convolve());
    weight_view.shape[3] = 1;
    weight_view.shape[1] = 31;
    op_expect(RNL_INVALID_ARGUMENT, convolve());
    params.groups = 2;
    op_expect(RNL_INVALID_ARGUMENT, convolve());
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

static bool prefers(int64_t channels, int64_t filters, int64_t pixels, rnl_dtype dtype)
{
    const rnl_conv_params plain = {.spatial = 1, .stride = {1}, .dilation = {1}, .groups = 1};
    const int64_t shape[3] = {1, channels, pixels}, target[3] = {1, filters, pixels};
    const rnl_view from = rnl_view_channels_last(0, dtype, 3, shape), to = rnl_view_channels_last(1, dtype, 3, target);
    const rnl_view weight = {.slot = 2, .dtype = dtype, .rank = 3, .shape = {filters, channels, 1}};
    bool result_is = false;
    op_expect(RNL_OK, rnl_conv_prefers_strassen(op_device(), &plain, &from, &weight, &to, &result_is));
    return result_is;
}

START_TEST(preferences)
{
    ck_assert_int_eq(prefers(384, 1536, 12800, RNL_F32), is_cpu());
    ck_assert(!prefers(384, 1536, 12800, RNL_F16));
    ck_assert(!prefers(383, 1536, 12800, RNL_F32));
    ck_assert(!prefers(64, 64, 12800, RNL_F32));
    ck_assert(!prefers(384, 1536, 1, RNL_F32));
    setenv("RUNNEL_STRASSEN", "off", 1);
    ck_assert(!prefers(384, 1536, 12800, RNL_F32));
    setenv("RUNNEL_STRASSEN", "on", 1);
    ck_assert_int_eq(prefers(64, 64, 12800, RNL_F32), is_cpu());
    unsetenv("RUNNEL_STRASSEN");
    setenv("RUNNEL_CONV", "panel", 1);
    ck_assert(!prefers(384, 1536, 12800, RNL_F32));
    unsetenv("RUNNEL_CONV");
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    tcase_add_test(tests, channel_counts);
    tcase_add_test(tests, pixel_counts);
    tcase_add_test(tests, short_slabs);
    tcase_add_test(tests, many_slabs);
    tcase_add_test(tests, strides);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, register_widths);
    tcase_add_test(tests, packing);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, preferences);
}

int main(void)
{
    Suite *suite = suite_create("conv_strassen");
    add_tests(op_case(suite, "conv_strassen"));
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    return op_main(suite);
}
