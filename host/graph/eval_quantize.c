/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear. */
#include "graph/host_element.h"
#include "graph/op_cast.h"
#include "graph/op_common.h"
#include "graph/op_quantize.h"
#include "graph/op_rows.h"
#include <math.h>

/* Which scale and zero point element `index` has. */
static int64_t scale_of(const rnl_quantize *q, int64_t index)
{
    int64_t along = index / q->inner % q->size;
    switch (q->by) {
    case RNL_QUANTIZE_AXIS:
        return along;
    case RNL_QUANTIZE_BLOCKS:
        return (index / q->inner / q->size * q->blocks + along / q->block) * q->inner + index % q->inner;
    case RNL_QUANTIZE_TENSOR:
        break;
    }
    return 0;
}

static double number(const rnl_tensor_desc *desc, int64_t index)
{
    return rnl_number_double(rnl_element_load(desc->host, index, desc->dtype), desc->dtype);
}

static double zero_point(const rnl_op_context *context, int64_t index)
{
    return rnl_input_exists(context, 2) ? number(&context->inputs[2], index) : 0;
}

/* Rounded to a type, as a number. */
static double rounded(double value, rnl_dtype dtype)
{
    uint64_t room;
    rnl_element_store(&room, 0, dtype, (rnl_number){.f = value});
    return rnl_element_load(&room, 0, dtype).f;
}

/* NaN becomes the least there is. */
static rnl_number saturated(double value, rnl_dtype dtype)
{
    rnl_number low = rnl_number_lowest(dtype), high = rnl_number_highest(dtype);
    if (!(value > rnl_number_double(low, dtype)))
        return low;
    return value >= rnl_number_double(high, dtype) ? high : (rnl_number){.i = (int64_t)value};
}

static void quantize(rnl_dtype output, rnl_narrowing narrowing, double quotient, double zero, void *result, int64_t i)
{
    if (rnl_dtype_is_small_float(output))
        ((uint8_t *)result)[i] = rnl_small_float_encode(output, rounded(quotient + zero, RNL_F32), narrowing);
    else
        rnl_element_store(result, i, output, saturated(rint(quotient) + zero, output));
}

rnl_status rnl_evaluate_quantize(rnl_op_context *context)
{
    rnl_quantize q;
    rnl_narrowing narrowing;
    TRY(rnl_evaluate_begin(context));
    TRY(rnl_quantize_resolve(context, &q));
    TRY(rnl_cast_narrowing(context->node, &narrowing));
    for (int64_t i = 0, count = rnl_desc_elements(&context->inputs[0]); i < count; i++) {
        int64_t at = scale_of(&q, i);
        double x = rounded(number(&context->inputs[0], i), q.precision);
        double scale = rounded(number(&context->inputs[1], at), q.precision);
        quantize(q.output, narrowing, rounded(x / scale, q.precision), zero_point(context, at), context->results[0], i);
    }
    return RNL_OK;
}

rnl_status rnl_evaluate_dequantize(rnl_op_context *context)
{
    rnl_quantize q;
    TRY(rnl_evaluate_begin(context));
    TRY(rnl_dequantize_resolve(context, &q));
    for (int64_t i = 0, count = rnl_desc_elements(&context->inputs[0]); i < count; i++) {
        int64_t at = scale_of(&q, i);
        double difference = rounded(number(&context->inputs[0], i) - zero_point(context, at), RNL_F32);
        double product = rounded(difference * number(&context->inputs[1], at), RNL_F32);
        rnl_element_store(context->results[0], i, q.output, (rnl_number){.f = product});
    }
    return RNL_OK;
}
