/* SPDX-License-Identifier: Apache-2.0 */
/* What values were seen, and the scale that follows. */
#include "quantize/edit.h"

#include "base/memory.h"
#include <float.h>
#include <math.h>
#include <string.h>

#define MSE_CANDIDATES 64 /* how far either end of a range is drawn in */

static float number(const rnl_tensor *tensor, size_t index)
{
    float x;
    memcpy(&x, (const char *)tensor->data + index * sizeof x, sizeof x);
    return x;
}

/* The value that a tensor is, when its range is wanted. */
static rnl_status match(rnl_quantizer *q, const rnl_tensor *tensor, rnl_edit_value **out_value, size_t *out_count)
{
    *out_value = NULL;
    if (!tensor->name)
        return FAIL(RNL_INVALID_ARGUMENT, "a tensor to be observed has no name");
    const uint32_t index = rnl_edit_find(q, tensor->name, strlen(tensor->name));
    if (index == RNL_NO_VALUE)
        return RNL_OK;
    q->values[index].rank = tensor->rank;
    if (!q->values[index].is_wanted)
        return RNL_OK;
    int64_t elements;
    if (tensor->dtype != RNL_F32 || !rnl_shape_elements(tensor->shape, tensor->rank, &elements) ||
        (elements > 0 && !tensor->data))
        return FAIL(RNL_INVALID_ARGUMENT, "value '%s' is to be observed as float32 in host memory", tensor->name);
    *out_value = &q->values[index];
    *out_count = (size_t)elements;
    return RNL_OK;
}

static rnl_status widen(rnl_edit_value *value, const rnl_tensor *tensor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double x = (double)number(tensor, i);
        if (!isfinite(x))
            return FAIL(RNL_INVALID_ARGUMENT, "value '%s' holds %s at element %zu", value->name,
                        isnan(x) ? "NaN" : "infinity", i);
        value->low = value->is_observed && value->low < x ? value->low : x;
        value->high = value->is_observed && value->high > x ? value->high : x;
        value->is_observed = true;
    }
    return RNL_OK;
}

rnl_status rnl_quantizer_observe(rnl_quantizer *q, const rnl_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rnl_edit_value *value;
        size_t elements;
        TRY(match(q, &tensors[i], &value, &elements));
        if (value)
            TRY(widen(value, &tensors[i], elements));
    }
    return RNL_OK;
}

/* ---- how often which value ------------------------------------------------------------------------------------- */

static void count_into(rnl_edit_value *value, const rnl_tensor *tensor, size_t count)
{
    const double width = (value->high - value->low) / RNL_HISTOGRAM_BINS;
    for (size_t i = 0; i < count; i++) {
        const double at = ((double)number(tensor, i) - value->low) / width;
        const size_t bin = !(at > 0) ? 0 : at < RNL_HISTOGRAM_BINS ? (size_t)at : RNL_HISTOGRAM_BINS - 1;
        value->histogram[bin]++;
    }
}

rnl_status rnl_quantizer_count(rnl_quantizer *q, const rnl_tensor *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rnl_edit_value *value;
        size_t elements;
        TRY(match(q, &tensors[i], &value, &elements));
        if (!value || !value->is_observed || !(value->high > value->low))
            continue;
        if (!value->histogram)
            TRY(rnl_zone_alloc(&q->zone, RNL_HISTOGRAM_BINS, sizeof *value->histogram, &value->histogram));
        count_into(value, &tensors[i], elements);
    }
    return RNL_OK;
}

/* The bounds outside of which an equal part lies on either side. */
static void cut_to_percentile(const rnl_edit_value *value, double percentile, double *low, double *high)
{
    const double width = (value->high - value->low) / RNL_HISTOGRAM_BINS;
    double total = 0, below = 0, above = 0;
    for (size_t i = 0; i < RNL_HISTOGRAM_BINS; i++)
        total += (double)value->histogram[i];
    const double outside = total * (100 - percentile) / 200;
    size_t first = 0, last = RNL_HISTOGRAM_BINS;
    while (first + 1 < last && below + (double)value->histogram[first] <= outside)
        below += (double)value->histogram[first++];
    while (last - 1 > first && above + (double)value->histogram[last - 1] <= outside)
        above += (double)value->histogram[--last];
    *low = first == 0 ? value->low : value->low + (double)first * width;
    *high = last == RNL_HISTOGRAM_BINS ? value->high : value->low + (double)last * width;
}

/* Of what was counted, as 255 steps over this range would have it: a twelfth of a step squared within. */
static double squared_error(const rnl_edit_value *value, double low, double high)
{
    const double width = (value->high - value->low) / RNL_HISTOGRAM_BINS, step = (high - low) / 255;
    double sum = 0;
    for (size_t i = 0; i < RNL_HISTOGRAM_BINS; i++) {
        if (!value->histogram[i])
            continue;
        const double x = value->low + ((double)i + 0.5) * width;
        const double beyond = x < low ? low - x : x > high ? x - high : 0;
        sum += (double)value->histogram[i] * (beyond > 0 ? beyond * beyond : step * step / 12);
    }
    return sum;
}

/* Draws in the upper end, then the lower one, as far as that pays. */
static void cut_to_least_error(const rnl_edit_value *value, double *low, double *high)
{
    const double from_low = *low, from_high = *high;
    double best = squared_error(value, *low, *high);
    for (int end = 0; end < 2; end++)
        for (int i = 1; i < MSE_CANDIDATES; i++) {
            const double part = 1 - (double)i / MSE_CANDIDATES;
            const double l = end ? from_low * part : *low, h = end ? *high : from_high * part;
            const double error = h > l ? squared_error(value, l, h) : INFINITY;
            if (error < best) {
                best = error;
                *(end ? low : high) = end ? l : h;
            }
        }
}

rnl_status rnl_edit_scale_of(const rnl_quantizer *q, uint32_t index, rnl_edit_scale *out_scale)
{
    while (q->values[index].same_as != RNL_NO_VALUE)
        index = q->values[index].same_as;
    const rnl_edit_value *value = &q->values[index];
    if (!value->is_observed)
        return FAIL(RNL_FAILED_PRECONDITION, "value '%s' was not observed, or always empty", value->name);
    double low = value->low, high = value->high;
    if (q->options.ranges != RNL_RANGES_MIN_MAX && high > low && !value->histogram)
        return FAIL(RNL_FAILED_PRECONDITION, "value '%s' was observed and not counted", value->name);
    if (q->options.ranges == RNL_RANGES_PERCENTILE && high > low)
        cut_to_percentile(value, q->options.percentile, &low, &high);
    low = low < 0 ? low : 0; /* 0 is a number that padding and Relu need exactly */
    high = high > 0 ? high : 0;
    if (q->options.ranges == RNL_RANGES_MSE && high > low && value->histogram)
        cut_to_least_error(value, &low, &high);
    const int32_t least = q->options.signed_activations ? -128 : 0;
    const float scale = (float)((high - low) / 255);
    *out_scale = (rnl_edit_scale){1, least};
    if (scale >= FLT_MIN) {
        const double zero = rint(least - low / (double)scale);
        out_scale->scale = scale;
        out_scale->zero = (int32_t)(zero < least ? least : zero > least + 255 ? least + 255 : zero);
    }
    return RNL_OK;
}
