/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_block.h"
#include "ops/conv_amx.h"
#include "ops/conv_block_plan.h"
#include "ops/conv_fip.h"
#include "ops/conv_pairs.h"
#include "ops/conv_step.h"
#include "ops/conv_weight.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include "ops/processor.h"
#include <stdlib.h>
#include <string.h>

#define MOST_STAGES 8
#define MOST_BETWEEN 250e3   /* floats that another step finds in a third cache */
#define FEWEST_APART 32      /* channels */
#define MANY_OWN (96 * 1024) /* floats, most of a second cache of 512 KiB */
#define MOST_WASTE 0.1       /* of the work: what convolutions one by one lose */

/* A cycle, as measured on a Xeon with matrix tiles. */
#define BLOCK_PRODUCTS 20.0 /* of a block's convolutions of single pixels */
#define BLOCK_DEPTHWISE 30.0
#define DEPTHWISE_PRODUCTS 7.2 /* of a convolution of its own */
#define LAUNCH_CYCLES 10000.0
#define FEW_PIXELS 256 /* fewer choose as so many do: few programs for all sizes of a model */
#define FIP_DEPTHWISE 11.0
#define FIP_BETWEEN 2.0 /* floats written and read again */
#define FIP_LAUNCH 5000.0
#define APART_GAIN 1.35 /* threads read what others wrote, and weights are larger */

bool rnl_conv_block_takes(const rnl_chain *chain)
{
    return !chain || (chain->operand_count == 0 && chain->stage_count <= MOST_STAGES);
}

int64_t rnl_conv_block_scratch(const rnl_device *device, const rnl_conv_block_shape *shape)
{
    rnl_conv_block_plan plan;
    return rnl_conv_block_make_plan(device, shape, &plan) ? plan.parts * plan.items * plan.own_floats : 0;
}

/* A block's products and sums of depthwise taps in a cycle: of a Zen 5, and of a Zen 4. */
typedef struct block_speed {
    double products, depthwise;
} block_speed;

static const block_speed swift_speed = {28, 14}, slow_speed = {15, 11};

/* The same where half of two thirds of the products are additions (conv:fip), which a block's are not. In cycles. */
static bool loses_to_fip(const rnl_device *device, const rnl_conv_block_shape *shape)
{
    const double images = (double)rnl_count_to_choose_by(shape->batch, 1), units = (double)rnl_device_units(device);
    const double before = images * (double)(shape->src_size[0] * shape->src_size[1]) * (double)shape->hidden,
                 behind = images * (double)(shape->dst_size[0] * shape->dst_size[1]) * (double)shape->hidden;
    const double sums = behind * (double)(shape->taps * shape->taps);
    const block_speed *speed = rnl_processor_is_swift() ? &swift_speed : &slow_speed;
    double products = 0, between = 0, cycles, apart = 0;
    if (shape->pairs)
        return false;
    if (shape->expands) {
        if (!rnl_conv_fip_estimate(device, (int64_t)images * shape->src_size[0] * shape->src_size[1], shape->channels,
                                   shape->hidden, &cycles))
            return false;
        apart += cycles;
        products += before * (double)shape->channels;
        between += before;
    }
    if (shape->projects) {
        if (!rnl_conv_fip_estimate(device, (int64_t)images * shape->dst_size[0] * shape->dst_size[1], shape->hidden,
                                   shape->filters, &cycles))
            return false;
        apart += cycles;
        products += behind * (double)shape->filters;
        between += behind;
    }
    apart += (sums / FIP_DEPTHWISE + between / FIP_BETWEEN) / units + FIP_LAUNCH;
    return apart < (products / speed->products + sums / speed->depthwise) / units;
}

bool rnl_conv_block_loses(const rnl_device *device, const rnl_conv_block_shape *shape)
{
    const int64_t batch = rnl_count_to_choose_by(shape->batch, 1);
    int64_t before = shape->src_size[0] * shape->src_size[1], behind = shape->dst_size[0] * shape->dst_size[1];
    if (behind < FEW_PIXELS)
        before = behind = FEW_PIXELS;
    const double units = (double)rnl_device_units(device), images = (double)batch;
    const double expanded = shape->expands ? images * (double)before : 0;
    const double projected = shape->projects ? images * (double)behind : 0;
    const double sums = images * (double)behind * (double)(shape->taps * shape->taps) * (double)shape->hidden;
    double apart = sums / DEPTHWISE_PRODUCTS;
    if (getenv("RUNNEL_CONV"))
        return false;
    if (!rnl_conv_amx_is_on(device))
        return loses_to_fip(device, shape);
    if (shape->pairs) /* they are so much slower */
        return true;
    if (shape->expands && shape->hidden > 2 * shape->channels) /* what lies between is much larger than all else */
        return false;
    apart = apart / units + LAUNCH_CYCLES * (shape->expands + shape->projects);
    if (shape->expands)
        apart += rnl_conv_amx_estimate(device, batch, before, shape->channels, shape->hidden);
    if (shape->projects)
        apart += rnl_conv_amx_estimate(device, batch, behind, shape->hidden, shape->filters);
    const double products =
        (double)shape->hidden * (expanded * (double)shape->channels + projected * (double)shape->filters);
    return APART_GAIN * apart < (products / BLOCK_PRODUCTS + sums / BLOCK_DEPTHWISE) / units;
}

/*
 * Where vectors are multiplied in halves (AMD before Zen 2) a product by itself is at the peak, too, if what lies
 * before it stays in a cache. A block loses its advantage to copying an image that it does not compute, or to rows for
 * 5x5 taps that fill a second cache of 512 KiB: apart 0.94 to 0.98 of its time with 64 to 480 channels; with 32, 1.03
 * on one thread and 0.75 on two.
 */
static bool is_faster_apart(const rnl_conv_block_shape *shape, const rnl_conv_block_plan *plan)
{
    const int64_t images = rnl_count_to_choose_by(shape->batch, 1);
    const double between = (double)(images * shape->dst_size[0] * shape->dst_size[1]) * (double)shape->hidden;
    return rnl_processor_multiplies_halves() && plan->vector == 8 && !shape->pairs && shape->hidden >= FEWEST_APART &&
           between <= MOST_BETWEEN &&
           (!shape->expands || (shape->taps == 5 && plan->parts == 1 && plan->own_floats > MANY_OWN));
}

bool rnl_conv_block_pays(const rnl_device *device, const rnl_conv_block_shape *shape)
{
    rnl_conv_block_plan plan;
    const char *forced = getenv("RUNNEL_CONV");
    if (!rnl_conv_block_make_plan(device, shape, &plan) || (forced && strcmp(forced, "block") != 0))
        return false;
    return forced || (rnl_conv_block_waste(shape, &plan) < MOST_WASTE && !is_faster_apart(shape, &plan));
}

static rnl_status check_image(const rnl_view *view, bool may_be_bf16, int64_t batch, int64_t channels,
                              const int64_t size[2])
{
    if ((view->dtype == RNL_F32 || (may_be_bf16 && view->dtype == RNL_BF16)) && view->rank == 4 &&
        view->shape[0] == batch && view->shape[1] == channels && view->shape[2] == size[0] &&
        view->shape[3] == size[1] && (channels == 1 || view->stride[1] == 1))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "an image of a block of convolutions is not as its shape says");
}

static bool is_pairs(const rnl_conv_block_shape *shape, size_t i)
{
    return shape->pairs && i != 1;
}

static rnl_conv_layout find_layout(const rnl_conv_block_shape *shape, size_t i, const rnl_view *weight)
{
    if (is_pairs(shape, i))
        return rnl_conv_find_pairs(1, 4, weight->shape);
    return rnl_conv_find_layout(false, i == 1 ? weight->shape[0] : 1, 4, weight->shape);
}

/* Weights of convolution i (0: expand, 1: depthwise, 2: project), and where they end. */
static rnl_status check_weights(const rnl_conv_block *block, size_t i, bool *out_index64)
{
    const rnl_conv_block_shape *shape = &block->shape;
    const rnl_view *weight = &block->weights[i], *bias = &block->biases[i];
    const int64_t out = i == 2 ? shape->filters : shape->hidden, taps = i == 1 ? shape->taps : 1;
    const int64_t in = i == 0 ? shape->channels : i == 1 ? 1 : shape->hidden;
    if (weight->dtype != (is_pairs(shape, i) ? RNL_U32 : RNL_F32) || weight->rank != 4 || weight->shape[0] != out ||
        weight->shape[1] != in || weight->shape[2] != taps || weight->shape[3] != taps ||
        (rnl_view_exists(bias) &&
         (bias->dtype != RNL_F32 || bias->rank != 1 || bias->shape[0] != out || (out > 1 && bias->stride[0] != 1))))
        return FAIL(RNL_INVALID_ARGUMENT, "weights of a block of convolutions are not as its shape says");
    const rnl_conv_layout layout = find_layout(shape, i, weight);
    if (i == 1 && !layout.depthwise)
        return FAIL(RNL_UNIMPLEMENTED, "a block of convolutions with %lld channels within", (long long)out);
    int64_t end;
    if (__builtin_add_overflow(layout.elements, weight->offset, &end))
        return FAIL(RNL_INVALID_ARGUMENT, "convolution's weights exceed the address space");
    *out_index64 = *out_index64 || end > INT32_MAX - 65536;
    return RNL_OK;
}

static rnl_status check(const rnl_conv_block *block, const rnl_view *src, const rnl_view *dst, bool *out_index64)
{
    const rnl_conv_block_shape *shape = &block->shape;
    TRY(rnl_views_check((const rnl_view *[]){src, dst, &block->scratch}, 3, out_index64));
    TRY(check_image(src, shape->pairs, shape->batch, shape->expands ? shape->channels : shape->hidden,
                    shape->src_size));
    if (shape->pairs && shape->expands && (src->dtype != RNL_BF16 || !rnl_conv_is_even(src)))
        return FAIL(RNL_INVALID_ARGUMENT, "a block of convolutions whose image is not pairs of bfloat16");
    TRY(check_image(dst, shape->pairs, shape->batch, shape->projects ? shape->filters : shape->hidden,
                    shape->dst_size));
    for (size_t i = 0; i < 3; ++i)
        if (i == 1 || (i == 0 ? shape->expands : shape->projects))
            TRY(check_weights(block, i, out_index64));
    for (size_t i = 0; i < (shape->projects ? 2 : 1); ++i)
        if (!rnl_conv_block_takes(block->chains[i]))
            return FAIL(RNL_INVALID_ARGUMENT, "a chain of %zu stages and %zu operands within a block of convolutions",
                        block->chains[i]->stage_count, block->chains[i]->operand_count);
    return RNL_OK;
}

/* ---- the step --------------------------------------------------------------------------------------------------- */

/* The last chain's operands as they lie beside the destination's pixels: n, d, h, w, and from channel to channel. */
typedef struct block_operands {
    int64_t stride[RNL_CHAIN_MAX_OPERANDS][RNL_MAX_RANK], step[RNL_CHAIN_MAX_OPERANDS];
} block_operands;

static rnl_status find_operands(const rnl_chain *chain, const rnl_view *dst, block_operands *out, bool *out_index64)
{
    memset(out, 0, sizeof *out);
    if (!chain)
        return RNL_OK;
    TRY(rnl_chain_check(chain, dst));
    for (size_t i = 0; i < chain->operand_count; ++i) {
        int64_t stride[RNL_MAX_RANK];
        bool index64 = false;
        TRY(rnl_views_check((const rnl_view *[]){&chain->operands[i]}, 1, &index64));
        TRY(rnl_chain_broadcast(chain, i, dst, stride));
        *out_index64 = *out_index64 || index64;
        out->step[i] = dst->shape[1] > 1 ? stride[1] : 0;
        if (out->step[i] != 0 && out->step[i] != 1)
            return FAIL(RNL_INVALID_ARGUMENT, "operand %zu behind a convolution has a channel stride of %lld", i,
                        (long long)stride[1]);
        out->stride[i][0] = stride[0];
        out->stride[i][2] = stride[2];
        out->stride[i][3] = stride[3];
    }
    return RNL_OK;
}

static void add_types(rnl_step_builder *step, const rnl_conv_block_shape *shape, const rnl_view *src,
                      const rnl_view *dst)
{
    rnl_step_type(step, "T_SRC", shape->pairs && shape->expands ? RNL_U32 : src->dtype);
    rnl_step_type(step, "T_BIAS", RNL_F32);
    rnl_step_type(step, "T_DST", dst->dtype);
    if (shape->pairs)
        rnl_step_define(step, "T_WEIGHT=U32 -DPAIRS -DHARDWARE_BF16");
}

static void add_defines(rnl_step_builder *step, const rnl_conv_block *block, const rnl_conv_block_plan *plan,
                        block_operands *operands)
{
    const rnl_conv_block_shape *shape = &block->shape;
    const rnl_chain *last = block->chains[shape->projects ? 2 : 1];
    rnl_step_define(step, "V=%lld -DP=%lld -DNB=%lld -DCOLUMNS=%lld", (long long)plan->vector, (long long)plan->pixels,
                    (long long)plan->vectors, (long long)plan->columns);
    rnl_step_define(step, "TAPS=%lld -DSTRIDE=%lld", (long long)shape->taps, (long long)shape->stride);
    if (shape->expands) {
        rnl_step_define(step, "EXPAND");
        rnl_chain_define_inner(step, "E_", block->chains[0]);
    }
    if (shape->projects) {
        rnl_step_define(step, "PROJECT -DQ=%lld -DNQ=%lld", (long long)plan->project_pixels,
                        (long long)plan->project_vectors);
        if (plan->weights_once)
            rnl_step_define(step, "WEIGHTS_ONCE");
        rnl_chain_define_inner(step, "D_", block->chains[1]);
    }
    if (last)
        rnl_chain_define(step, last, operands->step);
    else
        rnl_step_define(step, "STAGES=0");
}

static void add_sizes(rnl_step_builder *step, const rnl_conv_block *block, const rnl_conv_block_plan *plan)
{
    const rnl_conv_block_shape *shape = &block->shape;
    const int64_t channels = shape->pairs ? shape->channels / 2 : shape->channels;
    int64_t biases = 0;
    for (size_t i = 0; i < 3; ++i)
        biases |= rnl_view_exists(&block->biases[i]) ? (int64_t)1 << i : 0;
    const int64_t sizes[16] = {shape->src_size[0],
                               shape->src_size[1],
                               channels,
                               shape->hidden,
                               shape->dst_size[0],
                               shape->dst_size[1],
                               shape->filters,
                               shape->pad_begin[0],
                               shape->pad_begin[1],
                               plan->ring_rows,
                               plan->ring_width,
                               plan->rows,
                               plan->bands,
                               plan->bands * shape->batch,
                               plan->share,
                               biases};
    int32_t values[16];
    for (size_t i = 0; i < 16; ++i)
        values[i] = (int32_t)sizes[i];
    rnl_step_value(step, values, sizeof values);
}

static void add_places(rnl_step_builder *step, const rnl_conv_block *block, const rnl_conv_block_plan *plan,
                       const rnl_view *src, const rnl_view *dst)
{
    const rnl_view *weights = block->weights;
    int64_t panel[3] = {0};
    for (size_t i = 0; i < 3; ++i)
        if (rnl_view_exists(&weights[i])) {
            const rnl_conv_layout layout = find_layout(&block->shape, i, &weights[i]);
            panel[i] = i == 1 ? layout.tap_stride : layout.panel_stride;
        }
    const int64_t numbers[12] = {src->stride[0], src->stride[2],   src->stride[3], dst->stride[0],
                                 dst->stride[2], dst->stride[3],   panel[0],       panel[2],
                                 panel[1],       plan->own_floats, plan->slices,   plan->between};
    rnl_step_offsets(step, 16, (const rnl_view *[]){src, dst, &weights[0], &weights[2]}, 4, numbers, 12);
    rnl_step_offsets(step, 4,
                     (const rnl_view *[]){&weights[1], &block->biases[0], &block->biases[1], &block->biases[2]}, 4,
                     NULL, 0);
}

static void add_scalars(rnl_step_builder *step, const rnl_conv_block *block)
{
    float scalars[16] = {0};
    for (size_t i = 0; i < (block->shape.projects ? 2 : 1); ++i)
        if (block->chains[i])
            memcpy(scalars + 8 * i, block->chains[i]->scalars, sizeof block->chains[i]->scalars);
    rnl_step_value(step, scalars, sizeof scalars);
}

static void add_cost(rnl_step_builder *step, const rnl_conv_block *block, const rnl_view *src, const rnl_view *dst)
{
    const rnl_conv_block_shape *shape = &block->shape;
    const uint64_t from = (uint64_t)(shape->batch * shape->src_size[0] * shape->src_size[1]);
    const uint64_t to = (uint64_t)(shape->batch * shape->dst_size[0] * shape->dst_size[1]);
    const uint64_t hidden = (uint64_t)shape->hidden;
    step->step.flops = 2 * to * hidden * (uint64_t)(shape->taps * shape->taps);
    step->step.flops += shape->expands ? 2 * from * hidden * (uint64_t)shape->channels : 0;
    step->step.flops += shape->projects ? 2 * to * hidden * (uint64_t)shape->filters : 0;
    step->step.bytes = (uint64_t)rnl_view_elements(src) * rnl_dtype_bytes(src->dtype) +
                       (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype);
    for (size_t i = 0; i < 3; ++i)
        if (rnl_view_exists(&block->weights[i]))
            step->step.bytes +=
                (uint64_t)rnl_view_elements(&block->weights[i]) * (is_pairs(shape, i) ? 2 : sizeof(float));
    step->step.bytes += rnl_chain_bytes(block->chains[shape->projects ? 2 : 1]);
}

static void add_buffers(rnl_step_builder *step, const rnl_conv_block *block, const rnl_view *src, const rnl_view *dst)
{
    rnl_step_slot(step, block->scratch.slot);
    rnl_step_slot(step, src->slot);
    for (size_t i = 0; i < 3; ++i) {
        rnl_step_slot(step, block->weights[i].slot);
        rnl_step_slot(step, block->biases[i].slot);
    }
    rnl_step_slot(step, dst->slot);
    rnl_step_offsets(step, 1, (const rnl_view *[]){&block->scratch}, 1, NULL, 0);
}

rnl_status rnl_op_conv_block(rnl_step_list *list, const rnl_conv_block *block, const rnl_view *src, const rnl_view *dst)
{
    const rnl_chain *last = block->chains[block->shape.projects ? 2 : 1];
    rnl_conv_block_plan plan;
    block_operands operands;
    rnl_step_builder step;
    bool index64 = false;
    TRY(check(block, src, dst, &index64));
    const rnl_view image = block->shape.pairs && block->shape.expands ? rnl_conv_pairs_view(src) : *src;
    TRY(find_operands(last, dst, &operands, &index64));
    const int64_t floats = rnl_conv_block_scratch(list->device, &block->shape);
    if (floats == 0 || !rnl_conv_block_make_plan(list->device, &block->shape, &plan) ||
        !rnl_view_exists(&block->scratch) || rnl_view_elements(&block->scratch) < floats)
        return FAIL(RNL_UNIMPLEMENTED, "conv:block does not apply to these convolutions");
    rnl_step_begin(&step, list, block->shape.pairs ? "conv:block:bf16" : "conv:block", index64);
    add_types(&step, &block->shape, src, dst);
    add_defines(&step, block, &plan, &operands);
    add_buffers(&step, block, src, dst);
    add_sizes(&step, block, &plan);
    add_places(&step, block, &plan, &image, dst);
    add_scalars(&step, block);
    rnl_chain_arguments(&step, last, 4, (const int64_t(*)[RNL_MAX_RANK])operands.stride, 4);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)plan.parts, (size_t)plan.items, 1}, (size_t[3]){1, 1, 1});
    add_cost(&step, block, src, dst);
    step.step.flops += rnl_chain_flops(last, dst);
    rnl_step_writes(&step, dst->slot);
    rnl_step_writes(&step, block->scratch.slot);
    return rnl_step_end(&step, "conv_block.cl", "conv_block");
}
