/* SPDX-License-Identifier: Apache-2.0 */
/* The harness's tensors: views of every kind, their filling and checking. */
#include "support/op_bench.h"
#include "support/op_values.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_ELEMENTS 67

static int64_t set_gapped(rnl_view *view)
{
    int64_t stride = 3;
    for (size_t i = view->rank; i-- > 0;) {
        view->stride[i] = stride;
        stride = stride * view->shape[i] + 2;
    }
    view->offset = 5;
    return stride;
}

static void set_shuffled(rnl_view *view)
{
    size_t order[RNL_MAX_RANK];
    int64_t stride = 1;
    for (size_t i = 0; i < view->rank; ++i)
        order[i] = i;
    for (size_t i = view->rank; i-- > 0;) {
        const size_t pick = op_random() % (i + 1), dimension = order[pick];
        order[pick] = order[i];
        view->stride[dimension] = stride;
        stride *= view->shape[dimension];
    }
}

static void set_reversed(rnl_view *view)
{
    for (size_t i = view->rank; i-- > 0;) {
        if ((view->rank - i) % 2 == 0 || view->shape[i] == 0)
            continue;
        view->offset += (view->shape[i] - 1) * view->stride[i];
        view->stride[i] = -view->stride[i];
    }
}

/* Sets strides and offset; returns the slot's elements. */
static int64_t lay_out(rnl_view *view, op_layout layout)
{
    int64_t elements = 1;
    for (size_t i = 0; i < view->rank; ++i)
        elements *= view->shape[i];
    *view = layout == OP_CHANNELS_LAST ? rnl_view_channels_last(0, view->dtype, view->rank, view->shape)
                                       : rnl_view_row_major(0, view->dtype, view->rank, view->shape);
    if (layout == OP_GAPS && elements)
        elements = set_gapped(view) + view->offset;
    if (layout == OP_SHUFFLED)
        set_shuffled(view);
    if (layout == OP_REVERSED)
        set_reversed(view);
    return elements ? elements : 1;
}

op_tensor *op_tensor_create_repeated(rnl_dtype dtype, size_t rank, const int64_t *shape, op_layout layout,
                                     uint32_t repeated)
{
    op_tensor *tensor = calloc(1, sizeof *tensor);
    ck_assert_ptr_nonnull(tensor);
    tensor->view = (rnl_view){.dtype = dtype, .rank = rank};
    for (size_t i = 0; i < rank; ++i)
        tensor->view.shape[i] = repeated >> i & 1 ? 1 : shape[i];
    const int64_t elements = lay_out(&tensor->view, layout);
    for (size_t i = 0; i < rank; ++i) {
        tensor->view.shape[i] = shape[i];
        tensor->view.stride[i] = repeated >> i & 1 ? 0 : tensor->view.stride[i];
    }
    const size_t guard = op_exact_slots() ? 0 : GUARD_ELEMENTS;
    tensor->view.offset += (int64_t)guard;
    tensor->slot_elements = (size_t)elements + 2 * guard;
    tensor->data = malloc(tensor->slot_elements * rnl_dtype_bytes(dtype));
    tensor->sent = malloc(tensor->slot_elements * rnl_dtype_bytes(dtype));
    ck_assert(tensor->data && tensor->sent);
    memset(tensor->data, 0xa5, tensor->slot_elements * rnl_dtype_bytes(dtype));
    tensor->view.slot = op_add_tensor(tensor);
    return tensor;
}

op_tensor *op_tensor_create(rnl_dtype dtype, size_t rank, const int64_t *shape, op_layout layout)
{
    return op_tensor_create_repeated(dtype, rank, shape, layout, 0);
}

int64_t op_elements(const op_tensor *tensor)
{
    return rnl_view_elements(&tensor->view);
}

void op_coordinates(const op_tensor *tensor, int64_t flat, int64_t coordinates[RNL_MAX_RANK])
{
    for (size_t i = tensor->view.rank; i-- > 0;) {
        coordinates[i] = flat % tensor->view.shape[i];
        flat /= tensor->view.shape[i];
    }
}

static int64_t index_of(const op_tensor *tensor, const int64_t *coordinates)
{
    int64_t index = tensor->view.offset;
    for (size_t i = 0; i < tensor->view.rank; ++i)
        index += coordinates[i] * tensor->view.stride[i];
    if (index < 0 || (size_t)index >= tensor->slot_elements) /* Check logs each assertion to a file: slow here */
        ck_abort_msg("the harness made a wrong view");
    return index;
}

op_value op_get(const op_tensor *tensor, const int64_t *coordinates)
{
    const size_t at = (size_t)index_of(tensor, coordinates) * rnl_dtype_bytes(tensor->view.dtype);
    return op_decode(tensor->view.dtype, tensor->data + at);
}

op_value op_get_broadcast(const op_tensor *tensor, size_t rank, const int64_t *coordinates)
{
    int64_t own[RNL_MAX_RANK] = {0};
    for (size_t i = 0; i < tensor->view.rank; ++i)
        own[i] = tensor->view.shape[i] == 1 ? 0 : coordinates[rank - tensor->view.rank + i];
    return op_get(tensor, own);
}

void op_put(op_tensor *tensor, const int64_t *coordinates, op_value value)
{
    const size_t at = (size_t)index_of(tensor, coordinates) * rnl_dtype_bytes(tensor->view.dtype);
    op_encode(tensor->view.dtype, value, tensor->data + at);
}

static double special_float(rnl_dtype dtype)
{
    const double smallest = op_smallest_normal(dtype);
    const double choices[] = {0, NAN, INFINITY, smallest / 4, op_largest(dtype), smallest, 1};
    const double value = choices[op_random() % 7];
    return op_random() & 1 ? -value : value;
}

static int64_t special_int(rnl_dtype dtype)
{
    const int64_t choices[] = {0, 1, op_int_limit(dtype, false), op_int_limit(dtype, true), -1};
    return choices[op_random() % (op_int_limit(dtype, false) < 0 ? 5 : 4)];
}

static op_value make_value(rnl_dtype dtype, op_fill_kind kind, double low, double high, int64_t position)
{
    const bool special = kind == OP_SPECIAL && op_random() % 3 == 0;
    if (op_is_float(dtype) && special)
        return op_float(special_float(dtype));
    if (op_is_float(dtype) && kind != OP_COUNTING)
        return op_float(op_random_between(low, high));
    if (special)
        return op_int(special_int(dtype));
    const uint64_t range = (uint64_t)(int64_t)(high - low) + 1;
    const uint64_t step = kind == OP_COUNTING ? (uint64_t)position % range : op_random() % range;
    const int64_t value = (int64_t)low + (int64_t)step;
    return op_is_float(dtype) ? op_float((double)value) : op_int(value);
}

void op_fill(op_tensor *tensor, op_fill_kind kind, double low, double high)
{
    int64_t at[RNL_MAX_RANK];
    /* Around the elements: NaN, or -1, or true. */
    memset(tensor->data, 0xff, tensor->slot_elements * rnl_dtype_bytes(tensor->view.dtype));
    for (int64_t i = 0, count = op_elements(tensor); i < count; ++i) {
        op_coordinates(tensor, i, at);
        op_put(tensor, at, make_value(tensor->view.dtype, kind, low, high, i));
    }
}
