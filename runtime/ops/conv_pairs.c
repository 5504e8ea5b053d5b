/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_pairs.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/conv_panel.h"
#include "ops/instruction.h"
#include <string.h>

#define LANES RNL_CONV_PANEL

rnl_conv_layout rnl_conv_find_pairs(int64_t groups, size_t rank, const int64_t *shape)
{
    int64_t halved[RNL_MAX_RANK] = {0};
    memcpy(halved, shape, rank * sizeof *halved);
    halved[1] = rnl_divide_up(shape[1], 2);
    return rnl_conv_find_layout(false, groups, rank, halved);
}

void rnl_conv_pairs_layout(int64_t groups, uint32_t slot, size_t rank, const int64_t *shape, rnl_view *out_view,
                           int64_t *out_elements)
{
    rnl_view view = {.slot = slot, .dtype = RNL_U32, .rank = rank};
    memcpy(view.shape, shape, rank * sizeof *view.shape);
    view.shape[1] += shape[1] % 2;
    *out_view = view;
    *out_elements = rnl_conv_find_pairs(groups, rank, shape).elements;
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

/* To the nearest even; NaN stays NaN. */
static uint32_t round_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return bits >> 16 | 0x40;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* Files give no alignment. */
static uint32_t weight_bits(const void *source, int64_t at, double factor)
{
    float value;
    memcpy(&value, (const char *)source + at * (int64_t)sizeof value, sizeof value);
    return round_to_bf16((float)(value * factor));
}

/* How a source lies: filter f, channel c of so many and tap t are at f * filter + c * channel + t. */
typedef struct pair_source {
    const void *data;
    int64_t filter, channel, channels;
} pair_source;

/* A panel of one group, whose first filter is `first`. */
static void pack_panel(const rnl_conv_layout *l, const pair_source *source, int64_t first, const double *factors,
                       uint32_t *target)
{
    const int64_t left = l->filters - first % l->filters, lanes = left < LANES ? left : LANES;
    for (int64_t pair = 0; pair < l->channels; ++pair)
        for (int64_t tap = 0; tap < l->taps; ++tap) {
            uint32_t *to = target + tap * l->tap_stride + pair * LANES;
            for (int64_t lane = 0; lane < lanes; ++lane) {
                const int64_t at = (first + lane) * source->filter + 2 * pair * source->channel + tap;
                const double factor = factors ? factors[first + lane] : 1;
                to[lane] = weight_bits(source->data, at, factor);
                if (2 * pair + 1 < source->channels)
                    to[lane] |= weight_bits(source->data, at + source->channel, factor) << 16;
            }
            memset(to + lanes, 0, (size_t)(LANES - lanes) * sizeof *to);
        }
}

void rnl_conv_pairs_pack(bool turned, int64_t groups, size_t rank, const int64_t *shape, const void *source,
                         const double *factors, uint32_t *target)
{
    const rnl_conv_layout l = rnl_conv_find_pairs(groups, rank, shape);
    const pair_source from = {source, turned ? l.taps : shape[1] * l.taps, turned ? l.filters * l.taps : l.taps,
                              shape[1]};
    for (int64_t group = 0; group < l.groups; ++group)
        for (int64_t panel = 0; panel < l.panels; ++panel)
            pack_panel(&l, &from, group * l.filters + panel * LANES, factors,
                       target + group * l.group_stride + panel * l.panel_stride);
    memset(target + l.zeros_at, 0, (size_t)(l.elements - l.zeros_at) * sizeof *target);
}

/* ---- a step ----------------------------------------------------------------------------------------------------- */

bool rnl_conv_is_even(const rnl_view *view)
{
    bool even = view->offset % 2 == 0;
    for (size_t i = 0; i < view->rank; ++i)
        even = even && (i == 1 || view->shape[i] == 1 || view->stride[i] % 2 == 0);
    return even;
}

bool rnl_conv_prefers_pairs(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                            const rnl_view *weight)
{
    return params->groups >= 1 && weight->shape[1] >= 4 && weight->shape[1] % 2 == 0 &&
           weight->shape[0] % params->groups == 0 && rnl_device_runs(device, RNL_INSTRUCTION_BF16) &&
           (src->dtype != RNL_BF16 || rnl_conv_is_even(src));
}

#define COLOURS 3

/* Planes whose pixels follow each other. */
static bool is_picture(const rnl_view *view)
{
    return view->dtype == RNL_F32 && view->rank == 4 && view->shape[1] == COLOURS && view->stride[3] == 1 &&
           view->stride[2] == view->shape[3];
}

bool rnl_conv_prefers_colours(const rnl_device *device, const rnl_conv_params *params, const rnl_view *src,
                              const rnl_view *weight)
{
    return params->spatial == 2 && params->groups == 1 && weight->shape[1] == COLOURS && weight->shape[3] > 1 &&
           is_picture(src) && rnl_view_elements(src) > 0 && rnl_device_runs(device, RNL_INSTRUCTION_BF16);
}

rnl_status rnl_op_conv_colours(rnl_step_list *list, const rnl_view *src, const rnl_view *dst)
{
    rnl_step_builder step;
    bool index64 = false;
    TRY(rnl_views_check((const rnl_view *[]){src, dst}, 2, &index64));
    if (rnl_view_elements(src) == 0)
        return RNL_OK;
    const rnl_view dense = rnl_view_channels_last(
        dst->slot, RNL_BF16, 4, (const int64_t[]){src->shape[0], COLOURS + 1, src->shape[2], src->shape[3]});
    if (!is_picture(src) || dst->dtype != RNL_BF16 || dst->rank != 4 || dst->offset % 2 ||
        memcmp(dst->shape, dense.shape, 4 * sizeof(int64_t)) || memcmp(dst->stride, dense.stride, 4 * sizeof(int64_t)))
        return FAIL(RNL_INVALID_ARGUMENT, "a picture of three colours and its pairs are not as they should be");
    const rnl_view pairs = rnl_conv_pairs_view(dst);
    const int64_t pixels = src->shape[2] * src->shape[3], units = 4 * (int64_t)list->device->info.compute_units;
    const int64_t each = rnl_divide_up(rnl_divide_up(pixels, units), 64) * 64;
    rnl_step_begin(&step, list, "conv:colours", index64);
    rnl_step_view(&step, &pairs);
    rnl_step_view(&step, src);
    rnl_step_index(&step, pixels);
    rnl_step_index(&step, src->stride[1]);
    rnl_step_index(&step, src->stride[0]);
    rnl_step_index(&step, each);
    step.step.bytes = (uint64_t)(src->shape[0] * pixels) * (COLOURS * sizeof(float) + 4 * sizeof(uint16_t));
    rnl_step_range(&step, 3, (size_t[3]){(size_t)rnl_divide_up(pixels, each), 1, (size_t)src->shape[0]},
                   (size_t[3]){1, 1, 1});
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "conv_colours.cl", "conv_colours");
}

bool rnl_conv_pairs_applies(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    return problem->pairs && rnl_conv_is_even(problem->src) && rnl_device_runs(device, RNL_INSTRUCTION_BF16) &&
           rnl_conv_panel_applies(device, problem);
}

rnl_view rnl_conv_pairs_view(const rnl_view *src)
{
    rnl_view view = *src;
    view.dtype = RNL_U32;
    view.offset /= 2;
    for (size_t i = 0; i < view.rank; ++i)
        view.stride[i] /= i == 1 ? 1 : 2;
    return view;
}

/* To the kernel a pair is a channel. */
rnl_status rnl_conv_pairs_append(rnl_step_list *list, const char *name, const void *data)
{
    rnl_conv_problem problem = *(const rnl_conv_problem *)data;
    const rnl_view src = rnl_conv_pairs_view(problem.src);
    problem.src = &src;
    problem.channels /= 2;
    for (size_t i = 0; i < 4; ++i)
        problem.src_stride[i] /= 2;
    return rnl_conv_panel_append(list, name, &problem);
}
