/* SPDX-License-Identifier: Apache-2.0 */
#include "support/conv_case.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What the absolute values that Winograd's way adds up for one pixel and channel can come to, for pixels and weights of
 * at most 1, where direct sums come to 9: |A|(|G|1 . |B|1) with the transforms' matrices A, G and B, largest element
 * squared for two dimensions: 27.42^2.
 */
#define WINOGRAD_GROWTH 752.0
/* Of tiles of 2x2 pixels: 8^2. */
#define WINOGRAD_2_GROWTH 64.0
/* The same for Strassen's algorithm: each result is made of blocks' products that come to 18 for two channels. */
#define STRASSEN_GROWTH 9.0
/* And for Winograd's inner product, of factors scaled to below 2: (2 + 2)^2 for two terms, and 4 + 4 that are
 * subtracted. */
#define FIP_GROWTH 12.0

/* The tensors of a running case, and its result in float64. */
typedef struct conv_run {
    conv_case test;
    int64_t out[3];
    op_tensor *src, *weight, *bias, *dst;
    op_tensor *scale, *residual, *pixels; /* the chain's operands */
    rnl_chain chain;
    double *expected; /* [n][m][d][h][w] */
} conv_run;

static void set_defaults(conv_case *test)
{
    test->spatial = test->spatial ? test->spatial : 2;
    test->groups = test->groups ? test->groups : 1;
    test->dtype = test->dtype ? test->dtype : RNL_F32;
    for (size_t i = 0; i < 3; ++i) {
        test->stride[i] = test->stride[i] ? test->stride[i] : 1;
        test->dilation[i] = test->dilation[i] ? test->dilation[i] : 1;
    }
}

static int64_t out_size(const conv_case *test, size_t i)
{
    const int64_t window = (test->taps[i] - 1) * test->dilation[i] + 1, pads = test->pad_begin[i] + test->pad_end[i];
    if (test->transposed)
        return (test->size[i] - 1) * test->stride[i] + window - pads;
    return (test->size[i] + pads - window) / test->stride[i] + 1;
}

static void image_shape(const conv_case *test, int64_t channels, const int64_t *size, int64_t shape[5])
{
    shape[0] = test->batch;
    shape[1] = channels;
    for (size_t i = 0; i < test->spatial; ++i)
        shape[i + 2] = size[i];
}

static op_tensor *create_image(const conv_case *test, rnl_dtype dtype, int64_t channels, const int64_t *size)
{
    int64_t shape[5];
    image_shape(test, test->slices ? channels + (test->pairs ? 6 : 7) : channels, size, shape);
    op_tensor *image = op_tensor_create(dtype, test->spatial + 2, shape, OP_CHANNELS_LAST);
    if (test->slices) {
        image->view.shape[1] = channels;
        image->view.offset += test->pairs ? 2 : 3;
    }
    return image;
}

/* Pairs begin at an even element: there is room behind the last image to move to one. */
static op_tensor *create_source(const conv_case *test)
{
    conv_case roomy = *test;
    roomy.batch += test->pairs;
    op_tensor *image =
        create_image(&roomy, test->pairs || test->mixed ? RNL_BF16 : test->dtype, test->channels, test->size);
    image->view.shape[0] = test->batch;
    image->view.offset += test->pairs && image->view.offset % 2;
    return image;
}

static void weight_shape(const conv_case *test, int64_t shape[5])
{
    shape[0] = test->transposed ? test->channels : test->filters;
    shape[1] = (test->transposed ? test->filters : test->channels) / test->groups;
    for (size_t i = 0; i < test->spatial; ++i)
        shape[i + 2] = test->taps[i];
}

static rnl_view pack_winograd(int64_t side, const op_tensor *weight)
{
    rnl_view view;
    int64_t elements = 0;
    rnl_conv_winograd_layout(side, 0, weight->view.shape, &view, &elements);
    op_tensor *packed = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR);
    rnl_conv_winograd_pack(side, weight->view.shape, (const float *)(const void *)weight->data + weight->view.offset,
                           NULL, (float *)(void *)packed->data + packed->view.offset);
    view.slot = packed->view.slot;
    view.offset = packed->view.offset;
    return view;
}

static rnl_view pack_pairs(const conv_run *run)
{
    const rnl_view *weight = &run->weight->view;
    rnl_view view;
    int64_t elements = 0;
    rnl_conv_pairs_layout(run->test.groups, 0, weight->rank, weight->shape, &view, &elements);
    op_tensor *packed = op_tensor_create(RNL_U32, 1, &elements, OP_ROW_MAJOR);
    rnl_conv_pairs_pack(false, run->test.groups, weight->rank, weight->shape,
                        run->weight->data + (size_t)weight->offset * sizeof(float), NULL,
                        (uint32_t *)(void *)packed->data + packed->view.offset);
    view.slot = packed->view.slot;
    view.offset = packed->view.offset;
    return view;
}

static rnl_view pack_fip(const op_tensor *weight)
{
    rnl_view view;
    int64_t elements = 0;
    rnl_conv_fip_layout(false, 0, weight->view.rank, weight->view.shape, &view, &elements);
    op_tensor *packed = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR);
    rnl_conv_fip_pack(false, weight->view.rank, weight->view.shape,
                      (const float *)(const void *)weight->data + weight->view.offset, NULL,
                      (float *)(void *)packed->data + packed->view.offset);
    view.slot = packed->view.slot;
    view.offset = packed->view.offset;
    return view;
}

static rnl_view pack_strassen(const op_tensor *weight)
{
    rnl_view view;
    int64_t elements = 0;
    rnl_conv_strassen_layout(false, 0, weight->view.rank, weight->view.shape, &view, &elements);
    op_tensor *packed = op_tensor_create(RNL_F32, 1, &elements, OP_ROW_MAJOR);
    rnl_conv_strassen_pack(false, weight->view.shape, (const float *)(const void *)weight->data + weight->view.offset,
                           NULL, (float *)(void *)packed->data + packed->view.offset);
    view.slot = packed->view.slot;
    view.offset = packed->view.offset;
    return view;
}

static rnl_view pack_amx(const conv_run *run)
{
    const rnl_view *weight = &run->weight->view;
    rnl_view view;
    int64_t elements = 0;
    rnl_conv_amx_layout(run->test.amx, false, 0, weight->rank, weight->shape, &view, &elements);
    op_tensor *packed = op_tensor_create(RNL_U32, 1, &elements, OP_ROW_MAJOR);
    rnl_conv_amx_pack(run->test.amx, false, weight->rank, weight->shape,
                      run->weight->data + (size_t)weight->offset * sizeof(float), NULL,
                      (uint32_t *)(void *)packed->data + packed->view.offset);
    view.slot = packed->view.slot;
    view.offset = packed->view.offset;
    return view;
}

/* The weights as the model has them; only their packed copy is used by the device, which makes it itself or not. */
static rnl_view pack_weights(const conv_run *run)
{
    const conv_case *test = &run->test;
    rnl_view view;
    int64_t elements = 0;
    const op_tensor *weight = run->weight;
    rnl_conv_weight_layout(test->transposed, test->groups, 0, test->dtype, weight->view.rank, weight->view.shape, &view,
                           &elements);
    op_tensor *packed = op_tensor_create(test->dtype, 1, &elements, OP_ROW_MAJOR);
    if (test->pack_on_device)
        op_expect(RNL_OK, rnl_op_conv_pack(op_list(), test->transposed, test->groups, &weight->view, &packed->view));
    else
        rnl_conv_pack(test->transposed, test->groups, test->dtype, weight->view.rank, weight->view.shape,
                      weight->data + (size_t)weight->view.offset * rnl_dtype_bytes(test->dtype), NULL,
                      packed->data + (size_t)packed->view.offset * rnl_dtype_bytes(test->dtype));
    view.slot = packed->view.slot;
    view.offset = packed->view.offset;
    return view;
}

static int64_t pixel_count(const conv_case *test, const int64_t *size)
{
    int64_t count = 1;
    for (size_t i = 0; i < test->spatial; ++i)
        count *= size[i];
    return count;
}

static void split(const conv_case *test, int64_t flat, const int64_t *size, int64_t *at)
{
    for (size_t i = test->spatial; i-- > 0;) {
        at[i] = flat % size[i];
        flat /= size[i];
    }
}

/* The output pixel that an input pixel reaches through a tap; -1 where there is none. */
static int64_t reached(const conv_run *run, const int64_t *from, const int64_t *tap)
{
    const conv_case *test = &run->test;
    int64_t flat = 0;
    for (size_t i = 0; i < test->spatial; ++i) {
        int64_t at = 0;
        if (test->transposed) {
            at = from[i] * test->stride[i] + tap[i] * test->dilation[i] - test->pad_begin[i];
        } else {
            const int64_t scaled = from[i] + test->pad_begin[i] - tap[i] * test->dilation[i];
            if (scaled < 0 || scaled % test->stride[i])
                return -1;
            at = scaled / test->stride[i];
        }
        if (at < 0 || at >= run->out[i])
            return -1;
        flat = flat * run->out[i] + at;
    }
    return flat;
}

/* To the nearest, ties to even: 8 bits of mantissa. */
static double to_bf16(double value)
{
    int exponent = 0;
    const double fraction = frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(fraction, 8)), exponent - 8);
}

static void scatter_channels(conv_run *run, const int64_t *src_at, const int64_t *tap, int64_t to)
{
    const conv_case *test = &run->test;
    const int64_t group_filters = test->filters / test->groups, group_channels = test->channels / test->groups;
    const int64_t pixels = pixel_count(test, run->out);
    int64_t x_at[RNL_MAX_RANK] = {src_at[0]}, w_at[RNL_MAX_RANK] = {0};
    memcpy(x_at + 2, src_at + 2, 3 * sizeof *x_at);
    memcpy(w_at + 2, tap, 3 * sizeof *w_at);
    for (int64_t c = 0; c < test->channels; ++c) {
        x_at[1] = c;
        const double x = op_get(run->src, x_at).f;
        for (int64_t j = 0; j < group_filters; ++j) {
            const int64_t m = c / group_channels * group_filters + j;
            w_at[0] = test->transposed ? c : m;
            w_at[1] = test->transposed ? j : c % group_channels;
            const double w = op_get(run->weight, w_at).f;
            run->expected[(src_at[0] * test->filters + m) * pixels + to] +=
                x * (test->pairs || test->amx == 1 ? to_bf16(w) : w);
        }
    }
}

/* Scatters each input pixel, where the kernels gather. */
static void compute_expected(conv_run *run)
{
    const conv_case *test = &run->test;
    const int64_t pixels = pixel_count(test, run->out), inputs = pixel_count(test, test->size);
    const int64_t taps = pixel_count(test, test->taps);
    int64_t src_at[5] = {0}, tap[3] = {0};
    run->expected = calloc((size_t)(test->batch * test->filters * pixels) + 1, sizeof *run->expected);
    ck_assert_ptr_nonnull(run->expected);
    for (int64_t i = 0; run->bias && i < test->batch * test->filters * pixels; ++i)
        run->expected[i] = op_get(run->bias, (const int64_t[]){i / pixels % test->filters}).f;
    for (int64_t i = 0; i < test->batch * inputs * taps; ++i) {
        src_at[0] = i / taps / inputs;
        split(test, i / taps % inputs, test->size, src_at + 2);
        split(test, i % taps, test->taps, tap);
        const int64_t to = reached(run, src_at + 2, tap);
        if (to >= 0)
            scatter_channels(run, src_at, tap, to);
    }
}

static double chain_at(const conv_run *run, const int64_t *at, double value)
{
    const unsigned chain = run->test.chain;
    const size_t rank = run->test.spatial + 2;
    if (chain & CONV_CHAIN_SCALE)
        value *= op_get_broadcast(run->scale, rank, at).f;
    if (chain & CONV_CHAIN_RESIDUAL)
        value += op_get_broadcast(run->residual, rank, at).f;
    if (chain & CONV_CHAIN_PIXELS)
        value += op_get_broadcast(run->pixels, rank, at).f;
    if (chain & CONV_CHAIN_SCALAR)
        value *= -0.75;
    return chain & CONV_CHAIN_RELU && value < 0 ? 0 : value;
}

static op_value expected_at(void *user, const int64_t *at)
{
    const conv_run *run = user;
    int64_t flat = at[0] * run->test.filters + at[1];
    for (size_t i = 0; i < run->test.spatial; ++i)
        flat = flat * run->out[i] + at[i + 2];
    return op_float(chain_at(run, at, run->expected[flat]));
}

static void note(const conv_case *t)
{
    op_note("%s %zuD n%" PRId64 " c%" PRId64 " m%" PRId64 " g%" PRId64 " size %" PRId64 ",%" PRId64 ",%" PRId64
            " taps %" PRId64 ",%" PRId64 ",%" PRId64 " stride %" PRId64 ",%" PRId64 ",%" PRId64 " dilation %" PRId64
            ",%" PRId64 ",%" PRId64 " pads %" PRId64 ",%" PRId64 ",%" PRId64 ";%" PRId64 ",%" PRId64 ",%" PRId64
            " bias %d slices %d chain %u packed %d %s",
            t->transposed ? "transposed" : "conv", t->spatial, t->batch, t->channels, t->filters, t->groups, t->size[0],
            t->size[1], t->size[2], t->taps[0], t->taps[1], t->taps[2], t->stride[0], t->stride[1], t->stride[2],
            t->dilation[0], t->dilation[1], t->dilation[2], t->pad_begin[0], t->pad_begin[1], t->pad_begin[2],
            t->pad_end[0], t->pad_end[1], t->pad_end[2], t->bias, t->slices, t->chain, t->pack_on_device,
            rnl_dtype_name(t->dtype));
}

static void create_tensors(conv_run *run)
{
    const conv_case *test = &run->test;
    int64_t shape[5];
    weight_shape(test, shape);
    run->src = create_source(test);
    run->weight =
        op_tensor_create(test->pairs || test->amx ? RNL_F32 : test->dtype, test->spatial + 2, shape, OP_ROW_MAJOR);
    run->dst = create_image(test, test->dtype, test->filters, run->out);
    if (test->wide)
        run->src->view.stride[0] = INT64_C(1) << 40;
    op_fill(run->src, OP_RANDOM, -1, 1);
    op_fill(run->weight, OP_RANDOM, -1, 1);
    if (!test->bias)
        return;
    run->bias = op_tensor_create(test->dtype, 1, &test->filters, OP_ROW_MAJOR);
    op_fill(run->bias, OP_RANDOM, -1, 1);
}

static rnl_chain_source stage(rnl_chain *chain, rnl_map_op op, rnl_chain_source a, rnl_chain_source b)
{
    rnl_chain_source result = a;
    ck_assert(rnl_chain_add_stage(chain, op, (const rnl_chain_source[]){a, b}, 0, 0, &result));
    return result;
}

static rnl_chain_source operand(rnl_chain *chain, op_tensor *tensor)
{
    rnl_chain_source source = {RNL_CHAIN_INPUT, 0};
    op_fill(tensor, OP_RANDOM, -1, 1);
    ck_assert(rnl_chain_add_operand(chain, &tensor->view, &source));
    return source;
}

/* One value a pixel: an image of one channel. The scale is M x 1 x …, and so broadcast from the right. */
static void create_operands(conv_run *run)
{
    const conv_case *test = &run->test;
    int64_t shape[5], scale[4] = {test->filters, 1, 1, 1};
    image_shape(test, 1, run->out, shape);
    if (test->chain & CONV_CHAIN_SCALE)
        run->scale = op_tensor_create(RNL_F32, test->spatial + 1, scale, OP_ROW_MAJOR);
    if (test->chain & CONV_CHAIN_RESIDUAL)
        run->residual = create_image(test, test->dtype, test->filters, run->out);
    if (test->chain & CONV_CHAIN_PIXELS)
        run->pixels = op_tensor_create(RNL_F32, test->spatial + 2, shape, OP_CHANNELS_LAST);
}

static const rnl_chain *make_chain(conv_run *run)
{
    const unsigned parts = run->test.chain;
    rnl_chain *chain = &run->chain;
    rnl_chain_source value = {RNL_CHAIN_INPUT, 0}, scalar;
    create_operands(run);
    if (parts & CONV_CHAIN_SCALE)
        value = stage(chain, RNL_MAP_MUL, value, operand(chain, run->scale));
    if (parts & CONV_CHAIN_RESIDUAL)
        value = stage(chain, RNL_MAP_ADD, operand(chain, run->residual), value);
    if (parts & CONV_CHAIN_PIXELS)
        value = stage(chain, RNL_MAP_ADD, value, operand(chain, run->pixels));
    if (parts & CONV_CHAIN_SCALAR) {
        ck_assert(rnl_chain_add_scalar(chain, -0.75f, &scalar));
        value = stage(chain, RNL_MAP_MUL, value, scalar);
    }
    if (parts & CONV_CHAIN_RELU)
        stage(chain, RNL_MAP_RELU, value, value);
    return parts ? chain : NULL;
}

/* Memory of its own, when it wants some. */
static void give_scratch(const conv_run *run, const rnl_view *weight, const rnl_view *bias, rnl_conv_params *params)
{
    int64_t floats = 0;
    op_expect(RNL_OK, rnl_conv_scratch(op_device(), params, &run->src->view, weight, bias, &run->dst->view, &floats));
    if (floats > 0)
        params->scratch = &op_tensor_create(RNL_F32, 1, &floats, OP_ROW_MAJOR)->view;
}

static void check_implementation(const conv_case *test)
{
    if (test->implementation && !op_info()->emulated)
        ck_assert_str_eq(op_list()->steps[op_list()->step_count - 1].implementation, test->implementation);
}

void conv_case_run(const conv_case *given)
{
    if (!op_chosen())
        return;
    conv_run run = {.test = *given};
    conv_case *test = &run.test;
    set_defaults(test);
    for (size_t i = 0; i < test->spatial; ++i)
        run.out[i] = out_size(test, i);
    note(test);
    create_tensors(&run);
    rnl_conv_params params = {.spatial = test->spatial, .groups = test->groups};
    memcpy(params.stride, test->stride, sizeof params.stride);
    memcpy(params.dilation, test->dilation, sizeof params.dilation);
    memcpy(params.pad_begin, test->pad_begin, sizeof params.pad_begin);
    params.chain = make_chain(&run);
    params.winograd = test->winograd;
    params.pairs = test->pairs;
    params.fip = test->fip;
    params.strassen = test->strassen;
    params.amx = test->amx;
    const rnl_view weight = test->winograd   ? pack_winograd(test->winograd, run.weight)
                            : test->pairs    ? pack_pairs(&run)
                            : test->fip      ? pack_fip(run.weight)
                            : test->strassen ? pack_strassen(run.weight)
                            : test->amx      ? pack_amx(&run)
                                             : pack_weights(&run);
    const rnl_view *bias = run.bias ? &run.bias->view : NULL;
    if (!test->transposed)
        give_scratch(&run, &weight, bias, &params);
    op_expect(RNL_OK, (test->transposed ? rnl_op_conv_transpose : rnl_op_conv)(op_list(), &params, &run.src->view,
                                                                               &weight, bias, &run.dst->view));
    check_implementation(test);
    op_run();
    compute_expected(&run);
    /* Each f32 addition of products of at most 1 may round by half a unit of a sum of at most that many. */
    const double products = test->winograd == 4 ? WINOGRAD_GROWTH
                            : test->winograd    ? WINOGRAD_2_GROWTH
                            : test->fip         ? FIP_GROWTH * (double)pixel_count(test, test->taps)
                            : test->strassen    ? STRASSEN_GROWTH
                                                : (double)pixel_count(test, test->taps);
    const double terms = products * (double)(test->channels / test->groups) + 1;
    op_bound bound = op_tolerance(test->dtype);
    bound.absolute += terms * 0x1p-23;
    op_check(run.dst, expected_at, &run, bound);
    free(run.expected);
    op_reset();
}

void conv_cases_run(const conv_case *tests, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        conv_case_run(&tests[i]);
}

static int64_t pick(int64_t low, int64_t high)
{
    return low + (int64_t)(op_random() % (uint64_t)(high - low + 1));
}

conv_case conv_case_random(bool transposed)
{
    static const int64_t counts[] = {1, 2, 3, 5, 7, 16, 17, 33};
    static const rnl_dtype types[] = {RNL_F32, RNL_F32, RNL_F16, RNL_BF16};
    conv_case test = {.transposed = transposed, .spatial = (size_t)pick(1, 3), .batch = pick(1, 2)};
    const bool depthwise = pick(0, 3) == 0;
    test.groups = depthwise ? counts[pick(2, 7)] : pick(0, 2) ? 1 : pick(2, 3);
    test.channels = test.groups * (depthwise ? 1 : counts[pick(0, 7)]);
    test.filters = test.groups * (depthwise ? pick(1, 2) : counts[pick(0, 7)]);
    for (size_t i = 0; i < test.spatial; ++i) {
        test.taps[i] = pick(1, 3);
        test.stride[i] = pick(1, 3);
        test.dilation[i] = pick(1, 2);
        const int64_t window = (test.taps[i] - 1) * test.dilation[i] + 1;
        test.pad_begin[i] = pick(0, window - 1);
        test.pad_end[i] = pick(0, window - 1);
        test.size[i] = pick(1, test.spatial == 1 ? 40 : test.spatial == 2 ? 14 : 6);
        const int64_t short_by = transposed ? 1 - out_size(&test, i) : window - test.size[i];
        if (short_by > 0)
            test.size[i] += short_by;
    }
    test.bias = pick(0, 1);
    test.pack_on_device = pick(0, 2) == 0;
    test.slices = pick(0, 2) == 0;
    test.dtype = types[pick(0, 3)];
    test.chain = pick(0, 3) ? 0 : CONV_CHAIN_RESIDUAL | CONV_CHAIN_RELU;
    return test;
}
