/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"
#include "ops/implementation.h"
#include "support/conv_case.h"
#include "support/op_bench.h"
#include <math.h>

START_TEST(channel_counts)
{
    static const int64_t counts[] = {1, 3, 4, 7, 15, 16, 17, 33, 70};
    const size_t n = op_small() ? 5 : 9;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            conv_case_run(&(conv_case){.batch = 1,
                                       .channels = counts[i],
                                       .filters = counts[j],
                                       .size = {4, 9},
                                       .taps = {3, 3},
                                       .pad_begin = {1, 1},
                                       .pad_end = {1, 1},
                                       .bias = (i + j) % 2});
}
END_TEST

START_TEST(row_widths)
{
    for (int64_t width = 1; width < (op_small() ? 9 : 24); ++width)
        conv_case_run(&(conv_case){.batch = 2,
                                   .channels = 5,
                                   .filters = 18,
                                   .size = {2, width},
                                   .taps = {1, 3},
                                   .stride = {1, 1 + width % 2},
                                   .pad_begin = {0, 1},
                                   .pad_end = {0, 2}});
}
END_TEST

START_TEST(strides_and_dilations)
{
    for (int64_t stride = 1; stride <= 3; ++stride)
        for (int64_t dilation = 1; dilation <= 3; ++dilation)
            conv_case_run(&(conv_case){.batch = 1,
                                       .channels = 3,
                                       .filters = 7,
                                       .size = {11, 17},
                                       .taps = {3, 4},
                                       .stride = {stride, 4 - stride},
                                       .dilation = {dilation, 4 - dilation},
                                       .pad_begin = {0, 4},
                                       .pad_end = {3, 1},
                                       .bias = true});
}
END_TEST

START_TEST(first_layers)
{
    static const conv_case tests[] = {
        {.batch = 2,
         .channels = 3,
         .filters = 40,
         .size = {9, 41},
         .taps = {3, 3},
         .stride = {2, 2},
         .pad_begin = {1, 1}},
        {.batch = 1,
         .channels = 3,
         .filters = 64,
         .size = {20, 47},
         .taps = {7, 7},
         .stride = {2, 2},
         .pad_end = {3, 3}},
        {.batch = 1, .channels = 1, .filters = 16, .size = {12, 30}, .taps = {5, 5}, .dilation = {2, 1}, .bias = true},
        {.batch = 3, .channels = 4, .filters = 24, .size = {5, 13}, .taps = {2, 1}, .dilation = {1, 3}},
        {.batch = 1, .channels = 3, .filters = 64, .size = {7, 39}, .taps = {3, 3}, .stride = {2, 2}, .dtype = RNL_F16},
        {.batch = 1, .channels = 2, .filters = 33, .size = {4, 29}, .taps = {3, 4}, .stride = {1, 3}, .slices = true},
    };
    CONV_RUN_ALL(tests);
}
END_TEST

START_TEST(single_taps)
{
    static const conv_case tests[] = {
        {.batch = 1, .channels = 33, .filters = 20, .size = {5, 7}, .taps = {1, 1}, .bias = true},
        {.batch = 3, .channels = 8, .filters = 35, .size = {3, 3}, .taps = {1, 1}, .slices = true},
        {.batch = 2, .channels = 6, .filters = 5, .size = {5, 7}, .taps = {1, 1}, .stride = {2, 3}},
        {.batch = 2, .channels = 6, .filters = 5, .size = {5, 7}, .taps = {1, 1}, .pad_begin = {1, 2}, .bias = true},
        {.batch = 2, .channels = 6, .filters = 40, .size = {1, 1}, .taps = {1, 1}},
        {.batch = 17, .channels = 300, .filters = 10, .size = {1, 1}, .taps = {1, 1}, .bias = true},
    };
    CONV_RUN_ALL(tests);
}
END_TEST

/* Weights that a cache does not hold: a few blocks of channels at a time, with a rest, also across groups. */
START_TEST(many_weights)
{
    static const conv_case tests[] = {
        {.batch = 1, .channels = 230, .filters = 470, .size = {3, 7}, .taps = {1, 1}, .bias = true},
        {.batch = 1, .channels = 530, .filters = 500, .size = {5, 4}, .taps = {1, 1}, .bias = true},
        {.batch = 2, .channels = 300, .filters = 1071, .groups = 3, .size = {2, 5}, .taps = {1, 1}, .slices = true},
        {.batch = 1,
         .channels = 70,
         .filters = 177,
         .size = {5, 4},
         .taps = {3, 3},
         .stride = {2, 1},
         .pad_begin = {1, 1}},
    };
    const uint32_t width = op_device()->vector_width;
    if (op_small())
        return;
    CONV_RUN_ALL(tests);
    if (width == 16)
        return;
    op_device()->vector_width = 16; /* a tile of its own, whatever the device's registers are */
    CONV_RUN_ALL(tests);
    op_device()->vector_width = width;
}
END_TEST

START_TEST(groups)
{
    static const conv_case tests[] = {
        {.batch = 1, .channels = 4, .filters = 6, .groups = 2, .size = {5, 5}, .taps = {3, 3}, .bias = true},
        {.batch = 1, .channels = 9, .filters = 51, .groups = 3, .size = {6, 5}, .taps = {2, 3}, .pad_end = {1, 1}},
        {.batch = 2, .channels = 10, .filters = 5, .groups = 5, .size = {4, 9}, .taps = {3, 1}, .stride = {2, 1}},
        {.batch = 1, .channels = 66, .filters = 66, .groups = 2, .size = {3, 8}, .taps = {1, 1}, .bias = true},
    };
    CONV_RUN_ALL(tests);
}
END_TEST

START_TEST(dimensions)
{
    static const conv_case tests[] = {
        {.spatial = 1, .batch = 2, .channels = 3, .filters = 4, .size = {20}, .taps = {5}, .stride = {3}},
        {.spatial = 1,
         .batch = 2,
         .channels = 19,
         .filters = 65,
         .size = {9},
         .taps = {3},
         .pad_begin = {2},
         .dilation = {2},
         .bias = true},
        {.spatial = 3,
         .batch = 2,
         .channels = 3,
         .filters = 4,
         .size = {4, 5, 6},
         .taps = {2, 3, 3},
         .stride = {2, 1, 3},
         .pad_begin = {1, 0, 2},
         .pad_end = {0, 1, 1},
         .bias = true},
        {.spatial = 3,
         .batch = 1,
         .channels = 4,
         .filters = 34,
         .groups = 2,
         .size = {5, 5, 5},
         .taps = {3, 3, 3},
         .dilation = {2, 1, 2},
         .slices = true},
        {.spatial = 3, .batch = 2, .channels = 5, .filters = 9, .size = {3, 4, 5}, .taps = {1, 1, 1}},
    };
    CONV_RUN_ALL(tests);
}
END_TEST

START_TEST(wide_indices)
{
    for (int count = 1; count <= 18; count += 17)
        conv_case_run(&(conv_case){.batch = 1,
                                   .channels = 18,
                                   .filters = 18,
                                   .groups = count,
                                   .size = {6, 9},
                                   .taps = {3, 3},
                                   .pad_begin = {1, 1},
                                   .bias = true,
                                   .wide = true});
}
END_TEST

START_TEST(half_types)
{
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16};
    for (size_t i = 0; i < 2; ++i)
        for (int slices = 0; slices < 2; ++slices)
            conv_case_run(&(conv_case){.batch = 1,
                                       .channels = 7,
                                       .filters = 37,
                                       .size = {6, 9},
                                       .taps = {3, 3},
                                       .stride = {1, 2},
                                       .pad_begin = {1, 1},
                                       .pad_end = {1, 0},
                                       .bias = slices,
                                       .slices = slices,
                                       .dtype = types[i]});
}
END_TEST

/* Each part of a chain, all of them, and every kernel, its channels a multiple of a vector's or not. */
START_TEST(chains)
{
    static const unsigned parts[] = {CONV_CHAIN_SCALE,  CONV_CHAIN_RESIDUAL, CONV_CHAIN_SCALAR,
                                     CONV_CHAIN_PIXELS, CONV_CHAIN_RELU,     CONV_CHAIN_ALL};
    static const conv_case tests[] = {
        {.batch = 2, .channels = 5, .filters = 37, .size = {6, 9}, .taps = {3, 3}, .pad_end = {1, 1}, .bias = true},
        {.batch = 2, .channels = 5, .filters = 32, .size = {6, 9}, .taps = {1, 1}},
        {.batch = 3, .channels = 24, .filters = 24, .groups = 24, .size = {5, 7}, .taps = {3, 3}, .slices = true},
        {.batch = 1, .channels = 6, .filters = 44, .groups = 2, .size = {4, 5}, .taps = {1, 1}, .slices = true},
        {.spatial = 3, .batch = 2, .channels = 3, .filters = 9, .size = {3, 4, 5}, .taps = {2, 1, 2}},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i)
        for (size_t j = op_small() ? 5 : 0; j < sizeof parts / sizeof *parts; ++j) {
            conv_case test = tests[i];
            test.chain = parts[j];
            conv_case_run(&test);
        }
    conv_case_run(&(conv_case){.batch = 1,
                               .channels = 19,
                               .filters = 19,
                               .groups = 19,
                               .size = {5, 7},
                               .taps = {3, 3},
                               .dtype = RNL_F16,
                               .chain = CONV_CHAIN_ALL,
                               .wide = true});
}
END_TEST

/* The tiles of every width of registers, whatever the device's are: runs over rows and images, and channels left over.
 */
START_TEST(register_widths)
{
    static const conv_case tests[] = {
        {.batch = 3, .channels = 20, .filters = 70, .size = {3, 5}, .taps = {3, 3}, .pad_begin = {1, 1}},
        {.batch = 2, .channels = 6, .filters = 48, .groups = 2, .size = {5, 3}, .taps = {2, 2}, .pad_end = {1, 1}},
        {.batch = 1, .channels = 40, .filters = 70, .size = {1, 1}, .taps = {1, 1}, .bias = true, .slices = true},
        {.batch = 1, .channels = 3, .filters = 16, .size = {9, 13}, .taps = {3, 3}, .stride = {2, 2}, .bias = true},
        {.batch = 1, .channels = 17, .filters = 5, .size = {4, 7}, .taps = {1, 1}, .chain = CONV_CHAIN_ALL},
        {.batch = 1, .channels = 25, .filters = 25, .groups = 25, .size = {4, 11}, .taps = {3, 3}, .pad_end = {2, 2}},
    };
    const uint32_t width = op_device()->vector_width;
    for (uint32_t i = 4; i <= 16; i *= 2) {
        op_device()->vector_width = i;
        CONV_RUN_ALL(tests);
    }
    op_device()->vector_width = width;
}
END_TEST

START_TEST(random_shapes)
{
    for (int i = 0; i < (op_small() ? 12 : 200); ++i) {
        op_seed(1000 + (uint64_t)i);
        const conv_case test = conv_case_random(false);
        conv_case_run(&test);
    }
}
END_TEST

static op_tensor *packed, *image, *result;
static rnl_view weights;
static rnl_conv_params params;

/* 2x3x5x5 to 2x4x5x5 with 3x3 taps. */
static void make_valid(void)
{
    const int64_t shape[4] = {4, 3, 3, 3};
    int64_t elements = 0;
    params = (rnl_conv_params){.spatial = 2, .stride = {1, 1}, .dilation = {1, 1}, .pad_begin = {1, 1}, .groups = 1};
    rnl_conv_weight_layout(false, 1, 0, RNL_F32, 4, shape, &weights, &elements);
    image = op_tensor_create(RNL_F32, 4, (const int64_t[]){2, 3, 5, 5}, OP_CHANNELS_LAST);
    result = op_tensor_create(RNL_F32, 4, (const int64_t[]){2, 4, 5, 5}, OP_CHANNELS_LAST);
    packed = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR);
    weights.slot = packed->view.slot;
    weights.offset = packed->view.offset;
}

static void expect(rnl_status expected)
{
    op_expect(expected, rnl_op_conv(op_list(), &params, &image->view, &weights, NULL, &result->view));
    ck_assert_uint_eq(op_list()->step_count, expected == RNL_OK);
    op_reset();
    make_valid();
}

START_TEST(wrong_arguments)
{
    make_valid();
    expect(RNL_OK);
    params.spatial = 0;
    expect(RNL_UNIMPLEMENTED);
    params.spatial = 3;
    expect(RNL_INVALID_ARGUMENT);
    params.groups = 0;
    expect(RNL_INVALID_ARGUMENT);
    params.groups = 2;
    expect(RNL_INVALID_ARGUMENT);
    params.stride[1] = 0;
    expect(RNL_INVALID_ARGUMENT);
    params.dilation[0] = -1;
    expect(RNL_INVALID_ARGUMENT);
    params.dilation[0] = INT64_MAX / 2;
    expect(RNL_UNIMPLEMENTED);
    params.pad_begin[0] = INT64_MIN;
    expect(RNL_UNIMPLEMENTED);
    image->view.shape[1] = 2;
    expect(RNL_INVALID_ARGUMENT);
    image->view.shape[0] = 1;
    expect(RNL_INVALID_ARGUMENT);
    image->view.stride[1] = 2;
    expect(RNL_INVALID_ARGUMENT);
    result->view.dtype = RNL_I32;
    expect(RNL_UNIMPLEMENTED);
    weights.dtype = RNL_F16;
    expect(RNL_INVALID_ARGUMENT);
    weights.stride[2] = 1;
    expect(RNL_INVALID_ARGUMENT);
    rnl_chain chain = {.operand_count = 1, .stage_count = 1, .operands = {result->view}};
    chain.stages[0] = (rnl_chain_stage){RNL_MAP_RELU, {{RNL_CHAIN_OPERAND, 0}}};
    params.chain = &chain;
    expect(RNL_OK);
    chain.operands[0] = rnl_view_row_major(result->view.slot, RNL_F32, 4, result->view.shape);
    params.chain = &chain;
    expect(RNL_INVALID_ARGUMENT);
    chain.operands[0] = image->view;
    params.chain = &chain;
    expect(RNL_INVALID_ARGUMENT);
}
END_TEST

START_TEST(empty_batch)
{
    make_valid();
    image->view.shape[0] = result->view.shape[0] = 0;
    op_expect(RNL_OK, rnl_op_conv(op_list(), &params, &image->view, &weights, NULL, &result->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

/* NaN and infinity stay with the pixels whose windows hold them; padding adds none. */
START_TEST(special_values)
{
    make_valid();
    op_fill(packed, OP_RANDOM, 0, 0);
    for (int64_t i = 0; i < 9 * 3 * 16; i += 16)
        for (int64_t m = 0; m < 4; ++m)
            op_put(packed, (const int64_t[]){i + m}, op_float(1));
    op_fill(image, OP_RANDOM, 1, 1);
    op_put(image, (const int64_t[]){0, 0, 0, 0}, op_float(NAN));
    op_put(image, (const int64_t[]){1, 2, 4, 4}, op_float(INFINITY));
    op_expect(RNL_OK, rnl_op_conv(op_list(), &params, &image->view, &weights, NULL, &result->view));
    op_run();
    for (int64_t i = 0; i < op_elements(result); ++i) {
        int64_t at[RNL_MAX_RANK];
        op_coordinates(result, i, at);
        const double got = op_get(result, at).f;
        if (at[0] == 0 && at[2] < 2 && at[3] < 2)
            ck_assert(isnan(got));
        else if (at[0] == 1 && at[2] > 2 && at[3] > 2)
            ck_assert(isinf(got));
        else
            ck_assert(isfinite(got));
    }
}
END_TEST

START_TEST(costs_and_names)
{
    make_valid();
    op_expect(RNL_OK, rnl_op_conv(op_list(), &params, &image->view, &weights, NULL, &result->view));
    ck_assert_str_eq(op_list()->steps[0].implementation,
                     rnl_device_is_cpu(op_device()) ? "conv:panel" : "conv:portable");
    ck_assert_uint_eq(op_list()->steps[0].flops, 2u * 2 * 4 * 25 * 27);
    ck_assert_uint_eq(op_list()->steps[0].bytes, 4u * (150 + 200 + 108));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv");
    TCase *tests = op_case(suite, "conv");
    tcase_add_test(tests, channel_counts);
    tcase_add_test(tests, row_widths);
    tcase_add_test(tests, strides_and_dilations);
    tcase_add_test(tests, first_layers);
    tcase_add_test(tests, single_taps);
    tcase_add_test(tests, many_weights);
    tcase_add_test(tests, groups);
    tcase_add_test(tests, dimensions);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, half_types);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, register_widths);
    tcase_add_test(tests, random_shapes);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, empty_batch);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, costs_and_names);
    return op_main(suite);
}
