/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_params.h"
#include "graph/host_element.h"
#include "graph/op_common.h"

rnl_status rnl_axis_resolve(int64_t axis, size_t rank, const char *what, size_t *out_axis)
{
    *out_axis = 0;
    int64_t limit = (int64_t)rank;
    if (axis < -limit || axis >= limit)
        return FAIL(RNL_INVALID_ARGUMENT, "'%s' names axis %" PRId64 " of a tensor of rank %zu", what, axis, rank);
    *out_axis = (size_t)(axis < 0 ? axis + limit : axis);
    return RNL_OK;
}

rnl_status rnl_broadcast_shapes(const int64_t *a, size_t a_rank, const int64_t *b, size_t b_rank, int64_t *out_shape,
                                size_t *out_rank)
{
    size_t rank = a_rank > b_rank ? a_rank : b_rank;
    int64_t shape[RNL_MAX_RANK] = {0};
    *out_rank = 0;
    if (rank > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "rank %zu is more than %d", rank, RNL_MAX_RANK);
    for (size_t i = 0; i < rank; i++) {
        int64_t x = i + a_rank >= rank ? a[i + a_rank - rank] : 1;
        int64_t y = i + b_rank >= rank ? b[i + b_rank - rank] : 1;
        if (x != y && x != 1 && y != 1)
            return FAIL(RNL_INVALID_ARGUMENT, "shapes %s and %s do not broadcast", rnl_shape_format(a, a_rank).text,
                        rnl_shape_format(b, b_rank).text);
        shape[i] = x == 1 ? y : x;
    }
    for (size_t i = 0; i < rank; i++) /* out_shape may be one of the inputs */
        out_shape[i] = shape[i];
    *out_rank = rank;
    return RNL_OK;
}

rnl_status rnl_desc_ints(const rnl_tensor_desc *desc, const char *what, int64_t *out_values, size_t capacity,
                         size_t *out_count)
{
    *out_count = 0;
    int64_t count = rnl_desc_elements(desc);
    if ((desc->dtype != RNL_I64 && desc->dtype != RNL_I32) || desc->rank > 1)
        return FAIL(RNL_INVALID_ARGUMENT, "%s must be integers in one dimension, not %s of shape %s", what,
                    rnl_dtype_name(desc->dtype), rnl_shape_format(desc->shape, desc->rank).text);
    if (count > (int64_t)capacity)
        return FAIL(RNL_INVALID_ARGUMENT, "%s has %" PRId64 " elements; %zu at most make sense", what, count, capacity);
    if (!rnl_desc_known(desc))
        return FAIL(RNL_FAILED_PRECONDITION, "the contents of %s are not known while planning", what);
    for (int64_t i = 0; i < count; i++)
        out_values[i] = rnl_element_load(desc->host, i, desc->dtype).i;
    *out_count = (size_t)count;
    return RNL_OK;
}
