/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a depthwise convolution and its neighbours, against direct sums in float64. */
#include "device/device.h"
#include "ops/conv_block.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "support/op_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INNER_CHAINS 1 /* max(x, -0.5), times 0.75 where both are there */
#define LAST_CHAIN 2   /* plus an operand like the result, times 0.5 */

typedef struct block_case {
    rnl_conv_block_shape shape;
    int64_t pad_end[2];
    bool bias, slices, wide; /* slices: images are some channels of wider ones */
    bool narrow_ends;        /* with pairs: what need not be bfloat16 is */
    unsigned chains;
} block_case;

typedef struct block_run {
    block_case test;
    rnl_conv_block block;
    op_tensor *src, *dst, *weights[3], *biases[3], *residual;
    rnl_chain chains[3];
    double *expanded, *convolved;
} block_run;

/* With pairs quarters: sums are exact then, and what lies between is rounded to the same bfloat16 as the reference's.
 */
static void fill(const block_case *test, op_tensor *tensor)
{
    int64_t at[RNL_MAX_RANK];
    op_fill(tensor, OP_RANDOM, -1, 1);
    for (int64_t i = 0; test->shape.pairs && i < op_elements(tensor); ++i) {
        op_coordinates(tensor, i, at);
        op_put(tensor, at, op_float(round(4 * op_get(tensor, at).f) / 4));
    }
}

static op_tensor *make_image(const block_case *test, bool narrow, int64_t channels, const int64_t size[2])
{
    const int64_t shape[4] = {test->shape.batch, channels + (test->slices ? 4 : 0), size[0], size[1]};
    op_tensor *image = op_tensor_create(narrow ? RNL_BF16 : RNL_F32, 4, shape, OP_CHANNELS_LAST);
    fill(test, image);
    image->view.shape[1] = channels;
    image->view.offset += test->slices ? 2 : 0;
    return image;
}

static rnl_view pack(const block_run *run, size_t i, const int64_t shape[4])
{
    const float *source = (const float *)(const void *)run->weights[i]->data + run->weights[i]->view.offset;
    const bool pairs = run->test.shape.pairs && i != 1;
    const int64_t groups = i == 1 ? shape[0] : 1;
    int64_t elements;
    rnl_view view;
    if (pairs)
        rnl_conv_pairs_layout(groups, 0, 4, shape, &view, &elements);
    else
        rnl_conv_weight_layout(false, groups, 0, RNL_F32, 4, shape, &view, &elements);
    op_tensor *packed = op_tensor_create(view.dtype, 1, &elements, OP_ROW_MAJOR);
    if (pairs)
        rnl_conv_pairs_pack(false, groups, 4, shape, source, NULL,
                            (uint32_t *)(void *)packed->data + packed->view.offset);
    else
        rnl_conv_pack(false, groups, RNL_F32, 4, shape, source, NULL,
                      (float *)(void *)packed->data + packed->view.offset);
    view.slot = packed->view.slot;
    view.offset = packed->view.offset;
    return view;
}

static void make_weights(block_run *run, size_t i, int64_t out, int64_t in, int64_t taps)
{
    const int64_t shape[4] = {out, in, taps, taps};
    run->weights[i] = op_tensor_create(RNL_F32, 4, shape, OP_ROW_MAJOR);
    fill(&run->test, run->weights[i]);
    run->block.weights[i] = pack(run, i, shape);
    if (run->test.bias) {
        run->biases[i] = op_tensor_create(RNL_F32, 1, &out, OP_ROW_MAJOR);
        fill(&run->test, run->biases[i]);
        run->block.biases[i] = run->biases[i]->view;
    }
}

static void make_chains(block_run *run)
{
    const rnl_conv_block_shape *shape = &run->test.shape;
    const size_t last = shape->projects ? 2 : 1;
    rnl_chain_source source = {RNL_CHAIN_INPUT, 0}, number, operand;
    for (size_t i = 0; run->test.chains & INNER_CHAINS && i < last; ++i) {
        if (i == 0 && !shape->expands)
            continue;
        rnl_chain *chain = &run->chains[i];
        ck_assert(rnl_chain_add_scalar(chain, -0.5F, &number));
        ck_assert(
            rnl_chain_add_stage(chain, RNL_MAP_MAX, (rnl_chain_source[]){{RNL_CHAIN_INPUT, 0}, number}, 0, 0, &source));
        ck_assert(rnl_chain_add_scalar(chain, 0.75F, &number));
        ck_assert(rnl_chain_add_stage(chain, RNL_MAP_MUL, (rnl_chain_source[]){source, number}, 0, 0, &source));
        run->block.chains[i] = chain;
    }
    if (run->test.chains & LAST_CHAIN) {
        rnl_chain *chain = &run->chains[last];
        run->residual = make_image(&run->test, run->test.narrow_ends, run->dst->view.shape[1], shape->dst_size);
        ck_assert(rnl_chain_add_operand(chain, &run->residual->view, &operand));
        ck_assert(rnl_chain_add_stage(chain, RNL_MAP_ADD, (rnl_chain_source[]){{RNL_CHAIN_INPUT, 0}, operand}, 0, 0,
                                      &source));
        ck_assert(rnl_chain_add_scalar(chain, 0.5F, &number));
        ck_assert(rnl_chain_add_stage(chain, RNL_MAP_MUL, (rnl_chain_source[]){source, number}, 0, 0, &source));
        run->block.chains[last] = chain;
    }
}

static void make(block_run *run, const block_case *test)
{
    rnl_conv_block_shape *shape = &run->block.shape;
    *run = (block_run){.test = *test};
    for (size_t i = 0; i < 2; ++i)
        run->test.shape.dst_size[i] =
            (test->shape.src_size[i] + test->shape.pad_begin[i] + test->pad_end[i] - test->shape.taps) /
                test->shape.stride +
            1;
    *shape = run->test.shape;
    for (size_t i = 0; i < 3; ++i)
        run->block.weights[i].slot = run->block.biases[i].slot = RNL_NO_SLOT;
    const bool narrow_src = shape->pairs && (shape->expands || test->narrow_ends);
    block_case roomy = run->test; /* pairs begin at an even element: there is room behind the last image */
    roomy.shape.batch += shape->pairs;
    run->src = make_image(&roomy, narrow_src, shape->expands ? shape->channels : shape->hidden, shape->src_size);
    run->src->view.shape[0] = shape->batch;
    run->src->view.offset += shape->pairs && run->src->view.offset % 2;
    run->dst =
        make_image(&run->test, test->narrow_ends, shape->projects ? shape->filters : shape->hidden, shape->dst_size);
    if (test->wide) /* of one image: nothing uses it */
        run->src->view.stride[0] = (int64_t)INT32_MAX + 1;
    if (shape->expands)
        make_weights(run, 0, shape->hidden, shape->channels, 1);
    make_weights(run, 1, shape->hidden, 1, shape->taps);
    if (shape->projects)
        make_weights(run, 2, shape->filters, shape->hidden, 1);
    make_chains(run);
    const int64_t floats = rnl_conv_block_scratch(op_device(), shape);
    ck_assert_int_gt(floats, 0);
    run->block.scratch = op_tensor_create(RNL_F32, 1, &floats, OP_ROW_MAJOR)->view;
}

/* ---- the reference ---------------------------------------------------------------------------------------------- */

static double inner(const block_run *run, double x)
{
    return run->test.chains & INNER_CHAINS ? (x < -0.5 ? -0.5 : x) * 0.75 : x;
}

static double weight(const block_run *run, size_t i, int64_t out, int64_t in, int64_t y, int64_t x)
{
    return op_get(run->weights[i], (int64_t[]){out, in, y, x}).f;
}

static double bias(const block_run *run, size_t i, int64_t channel)
{
    return run->biases[i] ? op_get(run->biases[i], &channel).f : 0;
}

static double expanded_at(const block_run *run, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const rnl_conv_block_shape *shape = &run->test.shape;
    if (!shape->expands)
        return op_get(run->src, (int64_t[]){n, c, h, w}).f;
    double sum = bias(run, 0, c);
    for (int64_t k = 0; k < shape->channels; ++k)
        sum += op_get(run->src, (int64_t[]){n, k, h, w}).f * weight(run, 0, c, k, 0, 0);
    return inner(run, sum);
}

static size_t at_of(const int64_t size[2], int64_t channels, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return (size_t)(((n * channels + c) * size[0] + h) * size[1] + w);
}

static double convolved_at(const block_run *run, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const rnl_conv_block_shape *shape = &run->test.shape;
    double sum = bias(run, 1, c);
    for (int64_t y = 0; y < shape->taps; ++y)
        for (int64_t x = 0; x < shape->taps; ++x) {
            const int64_t row = h * shape->stride - shape->pad_begin[0] + y;
            const int64_t column = w * shape->stride - shape->pad_begin[1] + x;
            if (row >= 0 && row < shape->src_size[0] && column >= 0 && column < shape->src_size[1])
                sum += run->expanded[at_of(shape->src_size, shape->hidden, n, c, row, column)] *
                       weight(run, 1, c, 0, y, x);
        }
    if (!shape->projects)
        return sum;
    return shape->pairs ? op_round(RNL_BF16, op_float(inner(run, sum))).f : inner(run, sum);
}

typedef double (*value_of)(const block_run *run, int64_t n, int64_t c, int64_t h, int64_t w);

static double *compute(const block_run *run, const int64_t size[2], value_of value)
{
    const rnl_conv_block_shape *shape = &run->test.shape;
    double *all = calloc((size_t)(shape->batch * shape->hidden * size[0] * size[1]), sizeof *all), *to = all;
    ck_assert_ptr_nonnull(all);
    for (int64_t n = 0; n < shape->batch; ++n)
        for (int64_t c = 0; c < shape->hidden; ++c)
            for (int64_t h = 0; h < size[0]; ++h)
                for (int64_t w = 0; w < size[1]; ++w)
                    *to++ = value(run, n, c, h, w);
    return all;
}

static op_value reference(void *user, const int64_t *at)
{
    const block_run *run = user;
    const rnl_conv_block_shape *shape = &run->test.shape;
    double sum = shape->projects ? bias(run, 2, at[1]) : 0;
    for (int64_t k = 0; k < shape->hidden; ++k)
        if (shape->projects || k == at[1])
            sum += run->convolved[at_of(shape->dst_size, shape->hidden, at[0], k, at[2], at[3])] *
                   (shape->projects ? weight(run, 2, at[1], k, 0, 0) : 1);
    if (run->residual)
        sum = (sum + op_get(run->residual, at).f) * 0.5;
    return op_float(sum);
}

static bool is_cpu(void)
{
    return rnl_device_is_cpu(op_device());
}

static void check(const block_case *test)
{
    block_run run;
    if (!is_cpu() || !op_chosen())
        return;
    make(&run, test);
    run.expanded = compute(&run, run.test.shape.src_size, expanded_at);
    run.convolved = compute(&run, run.test.shape.dst_size, convolved_at);
    op_note("%d -> %d -> %d channels, %d x %d", (int)test->shape.channels, (int)test->shape.hidden,
            (int)test->shape.filters, (int)test->shape.src_size[0], (int)test->shape.src_size[1]);
    op_expect(RNL_OK, rnl_op_conv_block(op_list(), &run.block, &run.src->view, &run.dst->view));
    op_run();
    const double relative = run.test.narrow_ends ? op_tolerance(RNL_BF16).relative : 1e-5;
    op_check(run.dst, reference, &run,
             (op_bound){relative, 2e-7 * (double)(test->shape.hidden + test->shape.channels)});
    free(run.expanded);
    free(run.convolved);
    op_reset();
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

#define PADS(n) .pad_begin = {n, n}
#define WHOLE .expands = true, .projects = true, .batch = 1, .taps = 3, .stride = 1, PADS(1)

START_TEST(channel_counts)
{
    static const int64_t counts[][3] = {{3, 7, 5}, {16, 96, 24}, {17, 49, 33}, {5, 130, 70}, {4, 24, 9}};
    for (size_t i = 0; i < (op_small() ? 1 : sizeof counts / sizeof *counts); ++i)
        check(&(block_case){.shape = {WHOLE, .channels = counts[i][0], .hidden = counts[i][1], .filters = counts[i][2],
                                      .src_size = {5, 9}},
                            .pad_end = {1, 1},
                            .bias = i % 3 != 1,
                            .slices = i % 3 == 2,
                            .chains = i % 2 ? 0 : INNER_CHAINS | LAST_CHAIN});
}
END_TEST

START_TEST(image_sizes)
{
    for (int64_t height = 1; height < (op_small() ? 3 : 12); height += 4)
        for (int64_t width = 1; width < (op_small() ? 3 : 17); width += 6)
            for (int64_t stride = 1; stride < 3; ++stride)
                check(&(block_case){.shape = {.expands = true,
                                              .projects = true,
                                              .batch = 1 + width % 3,
                                              .taps = 3,
                                              .stride = stride,
                                              PADS(1),
                                              .channels = 4,
                                              .hidden = 20,
                                              .filters = 18,
                                              .src_size = {height, width}},
                                    .pad_end = {1, 1},
                                    .bias = true,
                                    .chains = INNER_CHAINS | LAST_CHAIN});
}
END_TEST

/* What stands before and behind, windows, steps and padding that is not even. */
START_TEST(parts)
{
    for (int kind = 0; kind < (op_small() ? 3 : 6); ++kind)
        check(&(block_case){.shape = {.expands = kind % 3 != 1,
                                      .projects = kind % 3 != 0,
                                      .batch = 2,
                                      .taps = kind % 2 ? 5 : 3,
                                      .stride = 1 + kind / 3 % 2,
                                      .pad_begin = {kind % 3, (kind + 1) % 2 + kind % 2 * 2},
                                      .channels = 6,
                                      .hidden = 52,
                                      .filters = 21,
                                      .src_size = {9, 12}},
                            .pad_end = {2 - kind % 3, kind / 4 % 2},
                            .bias = kind % 4 > 0,
                            .slices = kind % 5 > 2,
                            .chains = (unsigned)kind % 4});
}
END_TEST

/* Pairs of bfloat16: where either end is, and where none of its channels' vectors is full. */
START_TEST(pairs)
{
    for (int kind = 0; kind < 4 && rnl_device_runs(op_device(), RNL_INSTRUCTION_BF16); ++kind)
        check(&(block_case){.shape = {.expands = kind != 1,
                                      .projects = kind != 2,
                                      .pairs = true,
                                      .batch = 1 + kind % 2,
                                      .taps = kind == 2 ? 5 : 3,
                                      .stride = 1 + kind / 2 % 2,
                                      PADS(1),
                                      .channels = kind % 2 ? 16 : 6,
                                      .hidden = kind == 3 ? 150 : 52,
                                      .filters = kind == 3 ? 32 : 21,
                                      .src_size = {9, 12 + 6 * (kind / 2)}},
                            .pad_end = {1, 1},
                            .bias = kind > 0,
                            .slices = kind % 2,
                            .chains = kind % 2 ? INNER_CHAINS | LAST_CHAIN : 0,
                            .narrow_ends = kind > 1});
}
END_TEST

/* Several steps down a band, and more images than threads. */
START_TEST(many_rows)
{
    if (op_small())
        return;
    check(&(block_case){.shape = {WHOLE, .channels = 24, .hidden = 100, .filters = 24, .src_size = {40, 37}},
                        .pad_end = {1, 1},
                        .bias = true,
                        .chains = INNER_CHAINS | LAST_CHAIN});
    check(&(block_case){.shape = {.expands = true,
                                  .projects = true,
                                  .batch = 9,
                                  .taps = 3,
                                  .stride = 2,
                                  PADS(1),
                                  .channels = 8,
                                  .hidden = 48,
                                  .filters = 64,
                                  .src_size = {23, 23}},
                        .pad_end = {1, 1},
                        .bias = true});
    check(&(block_case){.shape = {.expands = true,
                                  .batch = 1,
                                  .taps = 3,
                                  .stride = 1,
                                  PADS(1),
                                  .channels = 40,
                                  .hidden = 400,
                                  .filters = 400,
                                  .src_size = {7, 7}},
                        .pad_end = {1, 1},
                        .bias = true,
                        .chains = INNER_CHAINS | LAST_CHAIN});
}
END_TEST

/* Registers and numbers of threads of every kind, whatever the device's are; 64-bit indices. */
START_TEST(devices)
{
    rnl_device *device = op_device();
    const uint32_t width = device->vector_width, units = device->info.compute_units;
    for (uint32_t i = 4; i <= 16; i *= 2) {
        device->vector_width = i;
        device->info.compute_units = i == 4 ? 7 : i / 4;
        check(&(block_case){.shape = {WHOLE, .channels = 5, .hidden = 30, .filters = 18, .src_size = {9, 10}},
                            .pad_end = {1, 1},
                            .bias = true,
                            .chains = INNER_CHAINS | LAST_CHAIN,
                            .wide = i == 8});
        if (!op_small())
            check(&(block_case){.shape = {.expands = true,
                                          .batch = 1,
                                          .taps = 3,
                                          .stride = 1,
                                          PADS(1),
                                          .channels = 5,
                                          .hidden = 230,
                                          .filters = 230,
                                          .src_size = {3, 10}},
                                .pad_end = {1, 1}});
        /* Weights of a projection that pass once for some rows, of two steps down a band; not for 16 floats. */
        if (!op_small())
            check(&(block_case){.shape = {WHOLE, .channels = 3, .hidden = 331, .filters = 202, .src_size = {17, 13}},
                                .pad_end = {1, 1},
                                .bias = i < 8,
                                .chains = i == 8 ? INNER_CHAINS | LAST_CHAIN : 0,
                                .wide = i == 4});
    }
    device->vector_width = width;
    device->info.compute_units = units;
}
END_TEST

/* What is not finite reaches the pixels whose windows hold it, and no others. */
START_TEST(special_values)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; is_cpu() && i < 3; ++i) {
        block_run run;
        make(&run, &(block_case){.shape = {WHOLE, .channels = 2, .hidden = 5, .filters = 3, .src_size = {7, 8}},
                                 .pad_end = {1, 1}});
        op_put(run.src, (const int64_t[]){0, 1, 3, 6}, op_float(values[i]));
        op_expect(RNL_OK, rnl_op_conv_block(op_list(), &run.block, &run.src->view, &run.dst->view));
        op_run();
        for (int64_t k = 0; k < op_elements(run.dst); ++k) {
            int64_t at[RNL_MAX_RANK];
            op_coordinates(run.dst, k, at);
            const bool window = at[2] >= 2 && at[2] <= 4 && at[3] >= 5 && at[3] <= 7;
            ck_assert_msg(isfinite(op_get(run.dst, at).f) == !window, "pixel %d, %d", (int)at[2], (int)at[3]);
        }
        op_reset();
    }
}
END_TEST

static void refuse(rnl_status expected, const block_run *run)
{
    op_expect(expected, rnl_op_conv_block(op_list(), &run->block, &run->src->view, &run->dst->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
}

START_TEST(wrong_arguments)
{
    block_run good, bad;
    if (!is_cpu())
        return;
    make(&good, &(block_case){.shape = {WHOLE, .channels = 2, .hidden = 5, .filters = 3, .src_size = {7, 8}},
                              .pad_end = {1, 1},
                              .bias = true,
                              .chains = LAST_CHAIN});
    bad = good;
    bad.block.scratch.shape[0] -= 1;
    refuse(RNL_UNIMPLEMENTED, &bad);
    bad = good;
    bad.block.shape.hidden = 6;
    refuse(RNL_INVALID_ARGUMENT, &bad);
    bad = good;
    bad.block.shape.dst_size[0] = 8;
    refuse(RNL_INVALID_ARGUMENT, &bad);
    bad = good;
    bad.block.weights[2].shape[1] = 4;
    refuse(RNL_INVALID_ARGUMENT, &bad);
    bad = good;
    bad.block.biases[0].dtype = RNL_F16;
    refuse(RNL_INVALID_ARGUMENT, &bad);
    bad = good;
    bad.block.chains[0] = &good.chains[2];
    refuse(RNL_INVALID_ARGUMENT, &bad);
    bad = good;
    bad.block.shape.pairs = true;
    refuse(RNL_INVALID_ARGUMENT, &bad);
    bad = good;
    bad.dst->view.dtype = RNL_BF16;
    refuse(RNL_INVALID_ARGUMENT, &bad);
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    tcase_add_test(tests, channel_counts);
    tcase_add_test(tests, image_sizes);
    tcase_add_test(tests, parts);
    tcase_add_test(tests, pairs);
    tcase_add_test(tests, many_rows);
    tcase_add_test(tests, devices);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, wrong_arguments);
}

int main(void)
{
    Suite *suite = suite_create("conv_block");
    add_tests(op_case(suite, "conv_block"));
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    return op_main(suite);
}
