/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by Winograd's way, against direct sums in float64. */
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

static void run_side(int64_t side, int64_t batch, int64_t channels, int64_t filters, int64_t height, int64_t width,
                     conv_case other)
{
    conv_case test = other;
    test.batch = batch;
    test.channels = channels;
    test.filters = filters;
    test.size[0] = height;
    test.size[1] = width;
    test.taps[0] = test.taps[1] = 3;
    test.winograd = side;
    test.implementation = "conv:winograd";
    if (is_cpu())
        conv_case_run(&test);
}

/* In tiles of both sizes. */
static void run(int64_t batch, int64_t channels, int64_t filters, int64_t height, int64_t width, conv_case other)
{
    run_side(4, batch, channels, filters, height, width, other);
    run_side(2, batch, channels, filters, height, width, other);
}

/* One of many: of the one or the other in turns where cases are to be few. */
static void run_many(size_t number, int64_t batch, int64_t channels, int64_t filters, int64_t height, int64_t width,
                     conv_case other)
{
    if (op_small())
        run_side(number % 2 ? 2 : 4, batch, channels, filters, height, width, other);
    else
        run(batch, channels, filters, height, width, other);
}
#define PADS .pad_begin = {1, 1}, .pad_end = {1, 1}

START_TEST(channel_counts)
{
    static const int64_t counts[] = {1, 3, 17, 64, 16, 129};
    const size_t n = op_small() ? 2 : 6;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            run_side((i + j) % 2 ? 2 : 4, 1, counts[i], counts[j], 5, 9, (conv_case){PADS, .bias = j % 2});
}
END_TEST

START_TEST(image_sizes)
{
    for (int64_t height = 1; height < (op_small() ? 3 : 10); ++height)
        for (int64_t width = height; width < (op_small() ? 3 : 15); ++width)
            run_many((size_t)(height + width), 1 + width % 2, 4, 18, height, width, (conv_case){PADS});
}
END_TEST

START_TEST(pads)
{
    for (int64_t i = 0; i < (op_small() ? 2 : 9); ++i)
        run_many(
            (size_t)i, 2, 5, 20, 6, 7,
            (conv_case){.pad_begin = {i % 3, i / 2}, .pad_end = {i / 3, 2 - i % 3}, .bias = true, .slices = i % 2});
}
END_TEST

/* More tiles than one slab and one work-item have, over rows and images. Few on llvmpipe, which leaves a work-item's
 * loops once they have gone round 65,535 times. */
START_TEST(many_tiles)
{
    run(3, 20, 16, 9, 13, (conv_case){PADS, .slices = true});
    if (op_small())
        return;
    run(3, 20, 40, 9, 22, (conv_case){PADS, .slices = true});
    run(1, 33, 100, 56, 57, (conv_case){PADS, .bias = true});
    run(9, 64, 256, 7, 7, (conv_case){PADS});
    run(2, 256, 48, 14, 14, (conv_case){PADS, .chain = CONV_CHAIN_RELU});
}
END_TEST

START_TEST(chains)
{
    static const unsigned parts[] = {CONV_CHAIN_SCALE,  CONV_CHAIN_RESIDUAL, CONV_CHAIN_SCALAR,
                                     CONV_CHAIN_PIXELS, CONV_CHAIN_RELU,     CONV_CHAIN_ALL};
    for (size_t i = op_small() ? 5 : 0; i < sizeof parts / sizeof *parts; ++i)
        run(2, 6, 37, 6, 9, (conv_case){PADS, .chain = parts[i], .bias = true, .slices = i % 2});
    run(1, 6, 64, 6, 9, (conv_case){PADS, .chain = CONV_CHAIN_ALL});
}
END_TEST

START_TEST(wide_indices)
{
    run(1, 18, 18, 6, 9, (conv_case){PADS, .bias = true, .wide = true});
}
END_TEST

/* Images of bfloat16, in and out; the weights stay float32. */
START_TEST(narrow_images)
{
    run(1, 20, 18, 6, 9, (conv_case){PADS, .bias = true, .mixed = true});
    if (!op_small())
        run(2, 33, 70, 9, 13, (conv_case){PADS, .mixed = true, .slices = true, .chain = CONV_CHAIN_RESIDUAL});
}
END_TEST

/* Registers of every width, whatever the device's are. */
START_TEST(register_widths)
{
    const uint32_t width = op_device()->vector_width;
    for (uint32_t i = 4; i <= 16; i *= 2) {
        op_device()->vector_width = i;
        run_many(i == 8, op_small() ? 1 : 2, 20, 70, 7, 9, (conv_case){PADS, .bias = true});
        if (!op_small())
            run(1, 13, 5, 4, 5, (conv_case){PADS, .chain = CONV_CHAIN_ALL});
    }
    op_device()->vector_width = width;
}
END_TEST

/* ---- one call ---------------------------------------------------------------------------------------------------- */

static op_tensor *weights, *packed, *image, *result;
static rnl_view weight_view;
static rnl_conv_params params;

/* 1x2x12x12 to 1x3x12x12. */
static void make_valid(int64_t side)
{
    const int64_t shape[4] = {3, 2, 3, 3};
    int64_t elements = 0, floats = 0;
    params = (rnl_conv_params){
        .spatial = 2, .stride = {1, 1}, .dilation = {1, 1}, .pad_begin = {1, 1}, .groups = 1, .winograd = side};
    weights = op_tensor_create(RNL_F32, 4, shape, OP_ROW_MAJOR);
    image = op_tensor_create(RNL_F32, 4, (const int64_t[]){1, 2, 12, 12}, OP_CHANNELS_LAST);
    result = op_tensor_create(RNL_F32, 4, (const int64_t[]){1, 3, 12, 12}, OP_CHANNELS_LAST);
    rnl_conv_winograd_layout(side, 0, shape, &weight_view, &elements);
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

/* Whether a tile that begins at `first` reads this pixel. */
static bool reads(int64_t first, int64_t side, int64_t pixel)
{
    return pixel >= first - 1 && pixel <= first + side;
}

/* What is not finite reaches the pixels whose windows hold it, and no tile that does not read it. */
START_TEST(special_values)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; is_cpu() && i < 6; ++i) {
        const int64_t side = i < 3 ? 4 : 2;
        make_valid(side);
        op_fill(weights, OP_RANDOM, 0.5, 1);
        rnl_conv_winograd_pack(side, weights->view.shape,
                               (const float *)(const void *)weights->data + weights->view.offset, NULL,
                               (float *)(void *)packed->data + packed->view.offset);
        op_fill(image, OP_RANDOM, -1, 1);
        op_put(image, (const int64_t[]){0, 1, 5, 6}, op_float(values[i]));
        op_expect(RNL_OK, convolve());
        op_run();
        for (int64_t k = 0; k < op_elements(result); ++k) {
            int64_t at[RNL_MAX_RANK];
            op_coordinates(result, k, at);
            const bool window = at[2] >= 4 && at[2] <= 6 && at[3] >= 5 && at[3] <= 7;
            const bool tile = reads(at[2] / side * side, side, 5) && reads(at[3] / side * side, side, 6);
            if (window || !tile)
                ck_assert_msg(isfinite(op_get(result, at).f) == !window, "pixel %d, %d", (int)at[2], (int)at[3]);
        }
        op_reset();
    }
}
END_TEST

START_TEST(wrong_arguments)
{
    if (!is_cpu())
        return;
    make_valid(4);
    op_expect(RNL_OK, convolve());
    params.winograd = 3;
    op_expect(RNL_INVALID_ARGUMENT, convolve());
    params.winograd = 4;
    params.stride[1] = 2;
    op_expect(RNL_INVALID_ARGUMENT, convolve());
    params.stride[1] = 1;
    params.dilation[0] = 2;
    op_expect(RNL_INVALID_ARGUMENT, convolve());
    params.dilation[0] = 1;
    params.scratch = NULL;
    op_expect(RNL_UNIMPLEMENTED, convolve());
    op_reset();
    make_valid(2);
    weight_view.shape[2] = 1;
    op_expect(RNL_INVALID_ARGUMENT, convolve());
    params.groups = 2;
    op_expect(RNL_INVALID_ARGUMENT, convolve());
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

static int64_t prefers(int64_t channels, int64_t filters, int64_t size, rnl_dtype dtype)
{
    const rnl_conv_params plain = {
        .spatial = 2, .stride = {1, 1}, .dilation = {1, 1}, .pad_begin = {1, 1}, .groups = 1};
    const int64_t shape[4] = {1, channels, size, size}, target[4] = {1, filters, size, size};
    const rnl_view from = rnl_view_channels_last(0, dtype, 4, shape), to = rnl_view_channels_last(1, dtype, 4, target);
    const rnl_view weight = {.slot = 2, .dtype = dtype, .rank = 4, .shape = {filters, channels, 3, 3}};
    int64_t side = 0;
    op_expect(RNL_OK, rnl_conv_prefers_winograd(op_device(), &plain, &from, &weight, &to, &side));
    return side;
}

START_TEST(preferences)
{
    ck_assert_int_eq(prefers(64, 64, 56, RNL_F32) != 0, is_cpu());
    ck_assert(!prefers(64, 64, 56, RNL_F16));
    ck_assert(!prefers(3, 64, 56, RNL_F32));
    ck_assert(!prefers(64, 1, 56, RNL_F32));
    ck_assert(!prefers(64, 64, 1, RNL_F32));
    setenv("RUNNEL_CONV", "panel", 1);
    ck_assert(!prefers(64, 64, 56, RNL_F32));
    setenv("RUNNEL_CONV", "winograd", 1);
    ck_assert_int_eq(prefers(3, 64, 56, RNL_F32) != 0, is_cpu());
    /* Four tiles of 4x4 pixels are soon done by registers of 8 floats or more, but not their weights' way from memory;
     * with many pixels it is the other way round. */
    if (is_cpu() && op_device()->vector_width >= 8)
        ck_assert_int_eq(prefers(512, 512, 7, RNL_F32), 2);
    ck_assert_int_eq(prefers(64, 64, 224, RNL_F32), is_cpu() ? 4 : 0);
    unsetenv("RUNNEL_CONV");
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    tcase_add_test(tests, channel_counts);
    tcase_add_test(tests, image_sizes);
    tcase_add_test(tests, pads);
    tcase_add_test(tests, many_tiles);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, register_widths);
    tcase_add_test(tests, narrow_images);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, preferences);
}

int main(void)
{
    Suite *suite = suite_create("conv_winograd");
    add_tests(op_case(suite, "conv_winograd"));
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    return op_main(suite);
}
