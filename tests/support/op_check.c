/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing results with references. */
#include "support/op_bench.h"
#include "support/op_values.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

op_bound op_tolerance(rnl_dtype dtype)
{
    /* Half a unit in the last place of the type, and 32 of f32's for functions that OpenCL lets be off by 16. */
    const double computed = 32 * 0x1p-24;
    switch (dtype) {
    case RNL_F16:
        return (op_bound){0x1p-11 + computed, 1e-7};
    case RNL_BF16:
        return (op_bound){0x1p-8 + computed, 1e-7};
    case RNL_F64:
        return (op_bound){32 * 0x1p-53, 1e-15};
    default:
        return (op_bound){computed, 1e-7};
    }
}

static bool float_agrees(rnl_dtype dtype, double expected, double got, op_bound bound)
{
    const double rounded = op_round(dtype, op_float(expected)).f;
    if (isnan(expected) || isnan(got))
        return isnan(expected) && isnan(got);
    if (got == rounded)
        return true;
    if (isinf(got) != isinf(rounded)) /* both are right next to the largest number */
        return !isinf(expected) && fabs(fabs(expected) / op_largest(dtype) - 1) <= 2 * bound.relative &&
               signbit(expected) == signbit(got);
    return fabs(got - expected) <= bound.absolute + bound.relative * fabs(expected);
}

static void describe(const op_tensor *tensor, const int64_t *at, char *text, size_t capacity)
{
    size_t used = (size_t)snprintf(text, capacity, "%s at", rnl_dtype_name(tensor->view.dtype));
    for (size_t i = 0; i < tensor->view.rank && used < capacity; ++i)
        used += (size_t)snprintf(text + used, capacity - used, " %" PRId64 "/%" PRId64, at[i], tensor->view.shape[i]);
}

static void check_element(const op_tensor *tensor, const int64_t *at, op_value expected, op_bound bound)
{
    char where[256];
    const op_value got = op_get(tensor, at);
    if (op_is_float(tensor->view.dtype)) {
        if (float_agrees(tensor->view.dtype, expected.f, got.f, bound))
            return;
        describe(tensor, at, where, sizeof where);
        ck_abort_msg("%s: got %.17g, expected %.17g [%s]", where, got.f, expected.f, op_noted());
    }
    expected = op_round(tensor->view.dtype, expected);
    if (got.i == expected.i)
        return;
    describe(tensor, at, where, sizeof where);
    ck_abort_msg("%s: got %" PRId64 ", expected %" PRId64 " [%s]", where, got.i, expected.i, op_noted());
}

static void check_surroundings(const op_tensor *tensor, bool elements_too)
{
    const size_t bytes = rnl_dtype_bytes(tensor->view.dtype);
    unsigned char *inside = calloc(tensor->slot_elements, 1);
    int64_t at[RNL_MAX_RANK];
    ck_assert_ptr_nonnull(inside);
    for (int64_t i = 0, count = elements_too ? 0 : op_elements(tensor); i < count; ++i) {
        int64_t index = tensor->view.offset;
        op_coordinates(tensor, i, at);
        for (size_t d = 0; d < tensor->view.rank; ++d)
            index += at[d] * tensor->view.stride[d];
        inside[index] = 1;
    }
    size_t wrong = tensor->slot_elements;
    for (size_t i = 0; i < tensor->slot_elements && wrong == tensor->slot_elements; ++i)
        if (!inside[i] && memcmp(tensor->data + i * bytes, tensor->sent + i * bytes, bytes))
            wrong = i;
    free(inside);
    ck_assert_msg(wrong == tensor->slot_elements, "element %zu of slot %u, outside the tensor, was written [%s]", wrong,
                  tensor->view.slot, op_noted());
}

void op_check(const op_tensor *tensor, op_reference reference, void *user, op_bound bound)
{
    int64_t at[RNL_MAX_RANK] = {0};
    for (int64_t i = 0, count = op_elements(tensor); i < count; ++i) {
        op_coordinates(tensor, i, at);
        check_element(tensor, at, reference(user, at), bound);
    }
    check_surroundings(tensor, false);
}

void op_check_untouched(const op_tensor *tensor)
{
    check_surroundings(tensor, true);
}
