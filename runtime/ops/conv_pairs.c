/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_pairs.h"
#include "ops/conv_panel.h"
#include "ops/instruction.h"
#include <string.h>

#define LANES RNL_CONV_PANEL

rnl_conv_layout rnl_conv_find_pairs(int64_t groups, size_t rank, const int64_t *shape)
{
    int64_t halved[RNL_MAX_RANK] = {0};
    memcpy(halved, shape, rank * sizeof *halved);
    halved[1] /= 2;
    return rnl_conv_find_layout(false, groups, rank, halved);
}

void rnl_conv_pairs_layout(int64_t groups, uint32_t slot, size_t rank, const int64_t *shape, rnl_view *out_view,
                           int64_t *out_elements)
{
    rnl_view view = {.slot = slot, .dtype = RNL_U32, .rank = rank};
    memcpy(view.shape, shape, rank * sizeof *view.shape);
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

/* How a source lies: filter f, channel c and tap t are at f * filter + c * channel + t. */
typedef struct pair_source {
    const void *data;
    int64_t filter, channel;
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
                to[lane] = weight_bits(source->data, at, factor) |
                           weight_bits(source->data, at + source->channel, factor) << 16;
            }
            memset(to + lanes, 0, (size_t)(LANES - lanes) * sizeof *to);
        }
}

void rnl_conv_pairs_pack(bool turned, int64_t groups, size_t rank, const int64_t *shape, const void *source,
                         const double *factors, uint32_t *target)
{
    const rnl_conv_layout l = rnl_conv_find_pairs(groups, rank, shape);
    const pair_source from = {source, turned ? l.taps : 2 * l.channels * l.taps, turned ? l.filters * l.taps : l.taps};
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
