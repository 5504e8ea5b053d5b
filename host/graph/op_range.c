/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <math.h>

/* max(ceil((limit - start) / delta), 0), without overflow; false when it does not fit or delta is 0. */
static bool count_integers(int64_t start, int64_t limit, int64_t delta, int64_t *out_count)
{
    *out_count = 0;
    if (delta == 0)
        return false;
    if (delta > 0 ? limit <= start : limit >= start)
        return true;
    uint64_t distance = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    uint64_t count = (distance - 1) / step + 1;
    *out_count = (int64_t)count;
    return count <= INT64_MAX;
}

static bool count_floats(double start, double limit, double delta, rnl_dtype dtype, int64_t *out_count)
{
    double distance = dtype == RNL_F64 ? limit - start : (double)((float)limit - (float)start);
    double count = ceil(distance / delta);
    *out_count = 0;
    if (delta == 0 || isnan(count) || count >= 0x1p62)
        return false;
    *out_count = count > 0 ? (int64_t)count : 0;
    return true;
}

rnl_status rnl_infer_range(rnl_op_context *context)
{
    static const char *const names[] = {"start", "limit", "delta"};
    rnl_number numbers[3];
    int64_t count;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 2));
    rnl_dtype dtype = context->inputs[0].dtype;
    for (size_t i = 0; i < 3; i++) {
        const rnl_tensor_desc *input = &context->inputs[i];
        if (rnl_desc_elements(input) != 1)
            return FAIL(RNL_INVALID_ARGUMENT, "%s (input %zu) of Range has shape %s; it must be a scalar", names[i], i,
                        rnl_shape_format(input->shape, input->rank).text);
        if (!input->host)
            return FAIL(RNL_FAILED_PRECONDITION, "the contents of %s (input %zu) are not known while planning",
                        names[i], i);
        numbers[i] = rnl_element_load(input->host, 0, dtype);
    }
    if (rnl_dtype_kind(dtype) == RNL_NUMBER_FLOAT
            ? count_floats(numbers[0].f, numbers[1].f, numbers[2].f, dtype, &count)
            : count_integers(numbers[0].i, numbers[1].i, numbers[2].i, &count))
        return rnl_output_set(context, 0, dtype, &count, 1);
    return FAIL(RNL_INVALID_ARGUMENT, "Range from %g to %g in steps of %g has no end",
                rnl_number_double(numbers[0], dtype), rnl_number_double(numbers[1], dtype),
                rnl_number_double(numbers[2], dtype));
}

rnl_status rnl_evaluate_range(rnl_op_context *context)
{
    TRY(rnl_evaluate_begin(context));
    rnl_dtype dtype = context->inputs[0].dtype;
    rnl_number start = rnl_element_load(context->inputs[0].host, 0, dtype);
    rnl_number delta = rnl_element_load(context->inputs[2].host, 0, dtype);
    for (int64_t i = 0; i < context->outputs[0].shape[0]; i++) {
        rnl_number number;
        if (rnl_dtype_kind(dtype) == RNL_NUMBER_FLOAT)
            number.f = start.f + (double)i * delta.f;
        else
            number.u = start.u + (uint64_t)i * delta.u;
        rnl_element_store(context->results[0], i, dtype, number);
    }
    return RNL_OK;
}
