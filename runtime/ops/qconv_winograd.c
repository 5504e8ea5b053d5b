/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qconv_winograd.h"
#include "base/memory.h"
#include "ops/fip.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/qconv_problem.h"
#include "ops/shares.h"
#include <stdlib.h>
#include <string.h>

#define BLOCK 16 /* channels of a panel, as in qconv_winograd.cl */
#define TILES 6  /* of a group, likewise */
#define TRANSFORMS 16
#define MAX_CHANNELS 1024 /* likewise */
#define TOGETHER_BYTES                                                                                                 \
    (224 << 10) /* of groups that pass by the weights together: with products half of a core's cache */

/* Cycles, by counting instructions: of 16 channels of a tile on their way in and back, of a pair of channels of a group
 * times a block, … */
#define TURN_CYCLES 110
#define BACK_CYCLES 160
#define PAIR_CYCLES 8
#define PASS_CYCLES 4        /* … of 64 bytes of weights that come from a far cache, … */
#define DIRECT_PRODUCTS 22.0 /* and products in a cycle of qconv:panel, as measured */
#define GAIN 1.1             /* to be worth weights of almost four times the size */

typedef struct winograd_plan {
    rnl_shares shares; /* of groups */
    int64_t tiles, together, item_bytes;
    double cost;
} winograd_plan;

static bool has_shape(const rnl_qconv_problem *problem)
{
    const rnl_qconv_params *p = problem->params;
    for (size_t i = 0; i < 2; ++i)
        if (p->kernel[i] != 3 || p->stride[i] != 1 || p->dilation[i] != 1)
            return false;
    return p->spatial == 2 && problem->src->shape[1] % 16 == 0 && problem->src->shape[1] <= MAX_CHANNELS;
}

/* Bytes of a group in a work-item's memory. */
static int64_t group_bytes(const rnl_qconv_problem *problem)
{
    return TRANSFORMS * TILES * (rnl_divide_up(problem->src->shape[1], 32) * 64 + 4 * BLOCK + 4);
}

static int64_t together_of(const rnl_shares *shares, const rnl_qconv_problem *problem)
{
    const int64_t most = TOGETHER_BYTES / group_bytes(problem);
    return rnl_even_share(shares->each_rows, most < 1 ? 1 : most);
}

static double shares_cost(const rnl_shares *shares, int64_t threads, const void *data)
{
    const rnl_qconv_problem *problem = data;
    const double channels = (double)problem->src->shape[1], blocks = (double)shares->each_blocks;
    const double passes = (double)rnl_divide_up(shares->each_rows, together_of(shares, problem));
    const double turn = channels / 16 * TILES * TURN_CYCLES, multiply = TRANSFORMS * channels / 2 * PAIR_CYCLES;
    const double weights = TRANSFORMS * channels / 2 * PASS_CYCLES;
    const double item =
        (double)shares->each_rows * (turn + blocks * (multiply + TILES * BACK_CYCLES)) + passes * blocks * weights;
    return item * (double)rnl_shares_rounds(shares, threads);
}

static bool make_plan(const rnl_device *device, const rnl_qconv_problem *problem, winograd_plan *out_plan)
{
    const int64_t *size = problem->dst->shape;
    winograd_plan plan = {.tiles = size[0]};
    if (!has_shape(problem) || rnl_view_elements(problem->dst) == 0 ||
        __builtin_mul_overflow(plan.tiles, rnl_divide_up(size[2], 2), &plan.tiles) ||
        __builtin_mul_overflow(plan.tiles, rnl_divide_up(size[3], 2), &plan.tiles) || plan.tiles > INT32_MAX / 256)
        return false;
    plan.shares = rnl_choose_shares(device, rnl_divide_up(plan.tiles, TILES), rnl_divide_up(size[1], BLOCK), 0, 0,
                                    shares_cost, problem, &plan.cost);
    plan.together = together_of(&plan.shares, problem);
    plan.item_bytes = MAX_CHANNELS + plan.together * group_bytes(problem);
    *out_plan = plan;
    int64_t bytes;
    return !__builtin_mul_overflow(plan.shares.row_items * plan.shares.block_items, plan.item_bytes, &bytes) &&
           bytes < INT32_MAX / 2;
}

static bool is_wished(void)
{
    const char *mode = getenv("RUNNEL_QCONV");
    return mode && strcmp(mode, "winograd") == 0;
}

bool rnl_qconv_winograd_pays(rnl_device *device, const rnl_qconv_params *params, const rnl_qconv_end *end,
                             const rnl_view *src, const rnl_view *weight, const rnl_view *dst)
{
    rnl_qconv_problem problem;
    winograd_plan plan;
    if (!rnl_device_is_cpu(device) || !rnl_qconv_problem_of(params, end, src, weight, dst, &problem) ||
        !make_plan(device, &problem, &plan))
        return false;
    const double products = (double)rnl_view_elements(dst) * (double)problem.depth;
    return is_wished() || (rnl_device_multiplies_bytes(device) == RNL_INSTRUCTION_MADD8 &&
                           GAIN * plan.cost < products / DIRECT_PRODUCTS / (double)rnl_device_units(device));
}

int64_t rnl_qconv_winograd_scratch(const rnl_device *device, const rnl_qconv_problem *problem)
{
    winograd_plan plan;
    return make_plan(device, problem, &plan) ? plan.shares.row_items * plan.shares.block_items * plan.item_bytes : 0;
}

/* Integers of a panel of this many channels in. */
static int64_t panel_ints(int64_t channels)
{
    return BLOCK + TRANSFORMS * (1 + channels / 2) * BLOCK;
}

rnl_status rnl_qconv_winograd_append(rnl_step_list *list, const rnl_qconv_problem *problem)
{
    const rnl_view *memory = problem->params->scratch;
    winograd_plan plan;
    rnl_step_builder step;
    if (!make_plan(list->device, problem, &plan) || !rnl_view_exists(memory) || memory->dtype != RNL_U8 ||
        rnl_view_elements(memory) < rnl_qconv_winograd_scratch(list->device, problem) || memory->offset > INT32_MAX / 2)
        return FAIL(RNL_INVALID_ARGUMENT, "Winograd's way does not apply to this integer convolution");
    int32_t flags[8] = {0, (int32_t)plan.tiles, (int32_t)plan.shares.each_rows, (int32_t)plan.shares.each_blocks};
    const int64_t own[3] = {plan.item_bytes, plan.together, panel_ints(problem->src->shape[1])};
    rnl_step_begin(&step, list, "qconv:winograd", false);
    rnl_step_define(&step, "T_A=%s%s%s", rnl_dtype_define(problem->src->dtype),
                    rnl_device_runs(list->device, RNL_INSTRUCTION_MADD8) ? "" : " -DMODEL",
                    problem->src->shape[1] % 32 == 0 && rnl_fip_pays(list->device, plan.tiles) ? " -DFIP" : "");
    rnl_step_slot(&step, memory->slot);
    rnl_step_offsets(&step, 4, &memory, 1, own, 3);
    rnl_qconv_add_arguments(&step, problem, flags);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)plan.shares.block_items, (size_t)plan.shares.row_items, 1},
                   (size_t[3]){1, 1, 1});
    rnl_qconv_add_cost(&step, problem);
    rnl_step_writes(&step, memory->slot);
    return rnl_step_end(&step, "qconv_winograd.cl", "qconv_winograd");
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

int64_t rnl_qconv_winograd_bytes(const int64_t shape[4])
{
    const int64_t panels = rnl_divide_up(shape[0], BLOCK);
    int64_t ints;
    if (shape[1] > MAX_CHANNELS ||
        __builtin_mul_overflow(panels, panel_ints(shape[1]) * (int64_t)sizeof(int32_t), &ints))
        return INT64_MAX;
    return ints;
}

/* Three taps along one dimension, `step` apart, as twice the values of their polynomial at 0, 1, -1 and infinity. */
static void turn_taps(const int32_t *taps, size_t step, int32_t *out, size_t out_step)
{
    out[0] = 2 * taps[0];
    out[out_step] = taps[0] + taps[step] + taps[2 * step];
    out[2 * out_step] = taps[0] - taps[step] + taps[2 * step];
    out[3 * out_step] = 2 * taps[2 * step];
}

static void turn_nine(const int8_t *source, int32_t out[TRANSFORMS], uint32_t *sum)
{
    int32_t taps[9], columns[12];
    for (size_t i = 0; i < 9; ++i) {
        taps[i] = source[i];
        *sum += (uint32_t)taps[i];
    }
    for (size_t x = 0; x < 3; ++x)
        turn_taps(taps + x, 3, columns + x, 3);
    for (size_t y = 0; y < 4; ++y)
        turn_taps(columns + 3 * y, 1, out + 4 * y, 1);
}

/* The weights of a channel; of each 32 channels in the first 16 are multiplied by the others besides, for fip.clh. */
static void pack_lane(const int8_t *source, int64_t channels, uint32_t *panel)
{
    const int64_t matrix = (1 + channels / 2) * BLOCK;
    int32_t turned[32][TRANSFORMS];
    for (int64_t c = 0; c < channels; ++c) {
        int32_t *now = turned[c % 32];
        turn_nine(source + c * 9, now, panel);
        for (int64_t i = 0; i < TRANSFORMS; ++i) {
            uint32_t *own = panel + BLOCK + i * matrix;
            own[(1 + c / 2) * BLOCK] |= (uint32_t)(uint16_t)now[i] << (c % 2 * 16);
            if (c % 32 >= 16)
                *own += (uint32_t)(now[i] * turned[c % 32 - 16][i]);
        }
    }
}

void rnl_qconv_winograd_pack(const int64_t shape[4], const int8_t *source, void *target)
{
    const int64_t channels = shape[1], ints = panel_ints(channels);
    uint32_t *panel = target;
    for (int64_t first = 0; first < shape[0]; first += BLOCK, panel += ints) {
        memset(panel, 0, (size_t)ints * sizeof *panel);
        for (int64_t lane = 0; lane < BLOCK && first + lane < shape[0]; ++lane)
            pack_lane(source + (first + lane) * channels * 9, channels, panel + lane);
    }
}
