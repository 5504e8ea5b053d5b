/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qconv_winograd.h"
#include "base/memory.h"
#include "ops/fip.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/processor.h"
#include "ops/qconv_problem.h"
#include "ops/shares.h"
#include <stdlib.h>
#include <string.h>

#define MAX_CHANNELS 1024 /* as in qconv_winograd.cl */
#define LINE 64           /* bytes of a cache's, and of registers that should not lie across two */

/*
 * Ways to go, by the instruction that multiplies, as in qconv_winograd.cl. Costs are in cycles, or, of vpdpwssd, in
 * steps of one of these.
 */
typedef struct winograd_form {
    int64_t side, block, tiles; /* pixels of a tile in each direction, channels of a panel, tiles of a group */
    int64_t own_rows;           /* of pairs of channels before a matrix of weights */
    int64_t multiple, most_channels;
    const char *defines;
    int64_t together_bytes; /* of groups that pass by the weights together: with products half of a core's cache */
    rnl_instruction instruction;
    double turn, back; /* of 16 channels of a tile on their way in and back */
    double products;   /* in a cycle or step, and … */
    double direct;     /* … what qconv:panel does in one */
    double pass;       /* of 64 bytes of weights that come from a far cache */
    double gain;       /* to be worth weights of that many times the size */
} winograd_form;

/*
 * The first by counting instructions, with the products in a cycle of qconv:panel as measured; the others as measured
 * on a Zen 5, to whose layers of ResNet-50 they are true to some percents.
 */
static const winograd_form forms[] = {
    {2, 16, 6, 1, 16, MAX_CHANNELS, "", 224 << 10, RNL_INSTRUCTION_MADD8, 110, 160, 24, 22, 4, 1.1},
    {4, 64, 7, 0, 32, 224, " -DWIDE", 512 << 10, RNL_INSTRUCTION_VNNI, 130, 220, 32, 60, 2, 1.1},
    {2, 32, 7, 1, 32, MAX_CHANNELS, " -DWIDE -DFIP", 512 << 10, RNL_INSTRUCTION_VNNI, 60, 80, 42, 60, 2, 1.1},
    {4, 32, 7, 1, 32, 224, " -DWIDE -DFIP", 512 << 10, RNL_INSTRUCTION_VNNI, 130, 220, 42, 60, 2, 1.1},
};
#define FORMS (sizeof forms / sizeof *forms)
_Static_assert(FORMS == RNL_QCONV_WINOGRAD_FORMS, "callers number their packings by forms");

/* Numbered from 1 on. */
static const winograd_form *form_of(int64_t number)
{
    return number >= 1 && number <= (int64_t)FORMS ? &forms[number - 1] : NULL;
}

static int64_t transforms(const winograd_form *form)
{
    return (form->side + 2) * (form->side + 2);
}

typedef struct winograd_plan {
    const winograd_form *form;
    rnl_shares shares; /* of groups */
    int64_t tiles, together, item_bytes;
    double cost;
} winograd_plan;

static bool has_shape(const rnl_qconv_problem *problem, const winograd_form *form)
{
    const rnl_qconv_params *p = problem->params;
    const int64_t channels = problem->src->shape[1];
    for (size_t i = 0; i < 2; ++i)
        if (p->kernel[i] != 3 || p->stride[i] != 1 || p->dilation[i] != 1)
            return false;
    return p->spatial == 2 && channels % form->multiple == 0 && channels <= form->most_channels;
}

/* Bytes of a group in a work-item's memory: matrices, products, and rows' own products. */
static int64_t group_bytes(const rnl_qconv_problem *problem, const winograd_form *form)
{
    return transforms(form) * form->tiles * (rnl_divide_up(problem->src->shape[1], 32) * 64 + 4 * form->block + 4);
}

static int64_t together_of(const rnl_shares *shares, const rnl_qconv_problem *problem, const winograd_form *form)
{
    const int64_t most = form->together_bytes / group_bytes(problem, form);
    return rnl_even_share(shares->each_rows, most < 1 ? 1 : most);
}

typedef struct problem_in_form {
    const rnl_qconv_problem *problem;
    const winograd_form *form;
} problem_in_form;

static double shares_cost(const rnl_shares *shares, int64_t threads, const void *data)
{
    const problem_in_form *of = data;
    const winograd_form *form = of->form;
    const double channels = (double)of->problem->src->shape[1], blocks = (double)shares->each_blocks;
    const double passes = (double)rnl_divide_up(shares->each_rows, together_of(shares, of->problem, form));
    const double tiles = (double)form->tiles, pairs = (double)transforms(form) * channels / 2;
    const double turn = channels / 16 * tiles * form->turn, back = (double)form->block / 16 * tiles * form->back;
    const double multiply = pairs * tiles * (double)form->block * 2 / form->products;
    const double weights = pairs * (double)form->block / 16 * form->pass;
    const double item = (double)shares->each_rows * (turn + blocks * (multiply + back)) + passes * blocks * weights;
    return item * (double)rnl_shares_rounds(shares, threads);
}

static bool make_plan(const rnl_device *device, const rnl_qconv_problem *problem, const winograd_form *form,
                      winograd_plan *out_plan)
{
    const int64_t *size = problem->dst->shape;
    const problem_in_form in_form = {problem, form};
    winograd_plan plan = {.form = form, .tiles = size[0]};
    if (!form || !has_shape(problem, form) || rnl_view_elements(problem->dst) == 0 ||
        __builtin_mul_overflow(plan.tiles, rnl_divide_up(size[2], form->side), &plan.tiles) ||
        __builtin_mul_overflow(plan.tiles, rnl_divide_up(size[3], form->side), &plan.tiles) ||
        plan.tiles > INT32_MAX / 256)
        return false;
    plan.shares = rnl_choose_shares(device, rnl_divide_up(plan.tiles, form->tiles), rnl_divide_up(size[1], form->block),
                                    0, 0, shares_cost, &in_form, &plan.cost);
    plan.together = together_of(&plan.shares, problem, form);
    plan.item_bytes = MAX_CHANNELS + plan.together * group_bytes(problem, form);
    plan.item_bytes = rnl_divide_up(plan.item_bytes, LINE) * LINE;
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

/* What forms are looked at for; where none has the device's best one, wishes are fulfilled in plain C. */
static rnl_instruction choose_instruction(const rnl_device *device)
{
    const rnl_instruction best = rnl_device_multiplies_bytes(device);
    for (size_t i = 0; i < FORMS; ++i)
        if (forms[i].instruction == best)
            return best;
    return is_wished() ? forms[0].instruction : RNL_INSTRUCTION_COUNT;
}

/* Half of the products as additions is no gain where both are done by the same units. */
static bool may_pay(const rnl_device *device, const winograd_form *form)
{
    return is_wished() || form->instruction != RNL_INSTRUCTION_VNNI || form->own_rows == 0 ||
           rnl_processor_adds_beside(device);
}

static double gain(const winograd_plan *plan, const rnl_device *device, const rnl_qconv_problem *problem)
{
    const double products = (double)rnl_view_elements(problem->dst) * (double)problem->depth;
    return products / plan->form->direct / (double)rnl_device_units(device) / (plan->form->gain * plan->cost);
}

int64_t rnl_qconv_winograd_form(rnl_device *device, const rnl_qconv_params *params, const rnl_qconv_end *end,
                                const rnl_view *src, const rnl_view *weight, const rnl_view *dst)
{
    rnl_qconv_problem problem;
    winograd_plan plan;
    const rnl_instruction instruction = choose_instruction(device);
    int64_t best = 0;
    double most = is_wished() ? 0 : 1;
    if (!rnl_device_is_cpu(device) || !rnl_qconv_problem_of(params, end, src, weight, dst, &problem) ||
        (!is_wished() && rnl_qconv_amx_applies(device, &problem) && rnl_qconv_amx_pays(device, &problem)))
        return 0;
    for (int64_t i = 1; i <= (int64_t)FORMS; ++i) {
        if (forms[i - 1].instruction != instruction || !may_pay(device, form_of(i)) ||
            !make_plan(device, &problem, form_of(i), &plan))
            continue;
        const double gained = gain(&plan, device, &problem);
        best = gained > most ? i : best;
        most = gained > most ? gained : most;
    }
    return best;
}

int64_t rnl_qconv_winograd_scratch(const rnl_device *device, const rnl_qconv_problem *problem)
{
    winograd_plan plan;
    if (!make_plan(device, problem, form_of(problem->params->winograd), &plan))
        return 0;
    return plan.shares.row_items * plan.shares.block_items * plan.item_bytes;
}

/* Integers of a panel of this many channels in. */
static int64_t panel_ints(const winograd_form *form, int64_t channels)
{
    return form->block + transforms(form) * (form->own_rows + channels / 2) * form->block;
}

static void define(rnl_step_builder *step, const rnl_qconv_problem *problem, const winograd_plan *plan)
{
    rnl_device *device = step->list->device;
    const bool fip = plan->form->instruction == RNL_INSTRUCTION_MADD8 && problem->src->shape[1] % 32 == 0 &&
                     rnl_fip_pays(device, plan->tiles);
    rnl_step_define(step, "T_A=%s -DSIDE=%lld%s%s%s", rnl_dtype_define(problem->src->dtype),
                    (long long)plan->form->side, plan->form->defines,
                    rnl_device_runs(device, plan->form->instruction) ? "" : " -DMODEL", fip ? " -DFIP" : "");
}

rnl_status rnl_qconv_winograd_append(rnl_step_list *list, const rnl_qconv_problem *problem)
{
    const rnl_view *memory = problem->params->scratch;
    winograd_plan plan;
    rnl_step_builder step;
    if (!make_plan(list->device, problem, form_of(problem->params->winograd), &plan) || !rnl_view_exists(memory) ||
        memory->dtype != RNL_U8 || rnl_view_elements(memory) < rnl_qconv_winograd_scratch(list->device, problem) ||
        memory->offset > INT32_MAX / 2)
        return FAIL(RNL_INVALID_ARGUMENT, "Winograd's way does not apply to this integer convolution");
    int32_t flags[8] = {0, (int32_t)plan.tiles, (int32_t)plan.shares.each_rows, (int32_t)plan.shares.each_blocks};
    const int64_t own[3] = {plan.item_bytes, plan.together, panel_ints(plan.form, problem->src->shape[1])};
    rnl_step_begin(&step, list, "qconv:winograd", false);
    define(&step, problem, &plan);
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

int64_t rnl_qconv_winograd_bytes(int64_t number, const int64_t shape[4])
{
    const winograd_form *form = form_of(number);
    int64_t ints;
    if (!form || shape[1] > form->most_channels ||
        __builtin_mul_overflow(rnl_divide_up(shape[0], form->block),
                               panel_ints(form, shape[1]) * (int64_t)sizeof(int32_t), &ints))
        return INT64_MAX;
    return ints;
}

/* Three taps along one dimension, `step` apart, as twice the values of their polynomial at 0, 1, -1 and infinity, … */
static void turn_taps_2(const int32_t *taps, size_t step, int32_t *out, size_t out_step)
{
    out[0] = 2 * taps[0];
    out[out_step] = taps[0] + taps[step] + taps[2 * step];
    out[2 * out_step] = taps[0] - taps[step] + taps[2 * step];
    out[3 * out_step] = 2 * taps[2 * step];
}

/* … or as 24 times those at 0, 1, -1, 2, -2 and infinity, with what is left to the kernel: half of the last one. */
static void turn_taps_4(const int32_t *taps, size_t step, int32_t *out, size_t out_step)
{
    const int32_t even = taps[0] + taps[2 * step], far = taps[0] + 4 * taps[2 * step], odd = taps[step];
    out[0] = 6 * taps[0];
    out[out_step] = -4 * (even + odd);
    out[2 * out_step] = -4 * (even - odd);
    out[3 * out_step] = far + 2 * odd;
    out[4 * out_step] = far - 2 * odd;
    out[5 * out_step] = 12 * taps[2 * step];
}

#define MAX_POINTS 6

static void turn_nine(const winograd_form *form, const int8_t *source, int32_t *out, uint32_t *sum)
{
    void (*turn)(const int32_t *, size_t, int32_t *, size_t) = form->side == 2 ? turn_taps_2 : turn_taps_4;
    const size_t points = (size_t)form->side + 2;
    int32_t taps[9], columns[3 * MAX_POINTS];
    for (size_t i = 0; i < 9; ++i) {
        taps[i] = source[i];
        *sum += (uint32_t)taps[i];
    }
    for (size_t x = 0; x < 3; ++x)
        turn(taps + x, 3, columns + x, 3);
    for (size_t y = 0; y < points; ++y)
        turn(columns + 3 * y, 1, out + points * y, 1);
}

/* The weights of a channel. With a row for them, of each 32 channels in the first 16 are multiplied by the others
 * besides, for fip.clh. */
static void pack_lane(const winograd_form *form, const int8_t *source, int64_t channels, uint32_t *panel)
{
    const int64_t block = form->block, matrix = (form->own_rows + channels / 2) * block;
    int32_t turned[32][MAX_POINTS * MAX_POINTS];
    for (int64_t c = 0; c < channels; ++c) {
        int32_t *now = turned[c % 32];
        turn_nine(form, source + c * 9, now, panel);
        for (int64_t i = 0; i < transforms(form); ++i) {
            uint32_t *own = panel + block + i * matrix;
            own[(form->own_rows + c / 2) * block] |= (uint32_t)(uint16_t)now[i] << (c % 2 * 16);
            if (form->own_rows > 0 && c % 32 >= 16)
                *own += (uint32_t)(now[i] * turned[c % 32 - 16][i]);
        }
    }
}

void rnl_qconv_winograd_pack(int64_t number, const int64_t shape[4], const int8_t *source, void *target)
{
    const winograd_form *form = form_of(number);
    const int64_t channels = shape[1], ints = panel_ints(form, channels);
    uint32_t *panel = target;
    for (int64_t first = 0; first < shape[0]; first += form->block, panel += ints) {
        memset(panel, 0, (size_t)ints * sizeof *panel);
        for (int64_t lane = 0; lane < form->block && first + lane < shape[0]; ++lane)
            pack_lane(form, source + (first + lane) * channels * 9, channels, panel + lane);
    }
}
