/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/implementation.h"
#include "ops/indexing.h"
#include "ops/resize.h"
#include "ops/step_build.h"

#define SHORTEST_ROW 4     /* elements from which on rows are copied whole */
#define ITEM_ELEMENTS 8192 /* that a work-item copies of short rows */

static rnl_status check(size_t axis, const rnl_view *data, const rnl_view *indices, const rnl_view *dst)
{
    if (indices->dtype != RNL_I32 && indices->dtype != RNL_I64)
        return FAIL(RNL_INVALID_ARGUMENT, "Gather's indices are %s", rnl_dtype_name(indices->dtype));
    if (dst->dtype != data->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "Gather of %s gives the same, not %s", rnl_dtype_name(data->dtype),
                    rnl_dtype_name(dst->dtype));
    if (axis >= data->rank || dst->rank != data->rank - 1 + indices->rank)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "Gather along axis %zu of rank %zu with indices of rank %zu gives not rank %zu", axis, data->rank,
                    indices->rank, dst->rank);
    for (size_t i = 0; i < dst->rank; ++i) {
        const bool inside = i >= axis && i < axis + indices->rank;
        const int64_t size = inside     ? indices->shape[i - axis]
                             : i < axis ? data->shape[i]
                                        : data->shape[i - indices->rank + 1];
        if (dst->shape[i] != size)
            return FAIL(RNL_INVALID_ARGUMENT, "axis %zu of Gather's result has size %lld, not %lld", i,
                        (long long)dst->shape[i], (long long)size);
    }
    return RNL_OK;
}

/* Views: dst, data, indices; sizes are dst's. */
static void collect_dims(size_t axis, const rnl_view *data, const rnl_view *indices, const rnl_view *dst,
                         rnl_dims *out_dims)
{
    *out_dims = (rnl_dims){.rank = dst->rank, .views = 3};
    for (size_t i = 0; i < dst->rank; ++i) {
        out_dims->shape[i] = dst->shape[i];
        out_dims->stride[0][i] = dst->stride[i];
        if (i >= axis && i < axis + indices->rank)
            out_dims->stride[2][i] = indices->stride[i - axis];
        else
            out_dims->stride[1][i] = data->stride[i < axis ? i : i - indices->rank + 1];
    }
    rnl_dims_coalesce(out_dims);
}

/* On CPUs: one index for each row of neighbours. */
static bool has_rows(const rnl_device *device, const rnl_dims *dims)
{
    const size_t inner = dims->rank - 1;
    return rnl_device_is_cpu(device) && dims->rank > 0 && dims->stride[0][inner] == 1 && dims->stride[1][inner] == 1 &&
           dims->stride[2][inner] == 0 && dims->shape[inner] >= SHORTEST_ROW;
}

/* Of a range in which a work-item copies rows. */
static void add_rows(rnl_step_builder *step, const rnl_dims *dims)
{
    const int64_t columns = dims->shape[dims->rank - 1], rows = rnl_dims_elements(dims) / columns;
    const int64_t fair = rows / ((int64_t)step->list->device->info.compute_units * 4) + 1;
    const int64_t wanted = ITEM_ELEMENTS / columns + 1, each = wanted < fair ? wanted : fair;
    rnl_step_index(step, each);
    rnl_step_range(step, 1, (size_t[3]){(size_t)((rows + each - 1) / each)}, (size_t[3]){1});
}

typedef enum gather_way { PORTABLE, ROWS, LOOSE } gather_way;

static rnl_status append(rnl_step_list *list, gather_way way, const rnl_dims *dims, size_t axis, const rnl_view *data,
                         const rnl_view *indices, const rnl_view *dst, bool index64)
{
    static const char *const names[] = {"gather:portable", "gather:rows", "gather:loose"};
    static const char *const kernels[] = {"gather", "gather_rows", "gather_loose"};
    rnl_step_builder step;
    rnl_view source = *data;
    if (way == LOOSE) {
        source.dtype = RNL_U8;
        source.offset *= (int64_t)rnl_dtype_bytes(data->dtype);
    }
    rnl_step_begin(&step, list, names[way], index64 || source.offset > INT32_MAX);
    rnl_step_type(&step, "T", rnl_dtype_bits(dst->dtype));
    rnl_step_type(&step, "T_INDEX", indices->dtype);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, &source);
    rnl_step_view(&step, indices);
    rnl_step_index(&step, data->shape[axis]);
    rnl_step_index(&step, data->stride[axis]);
    rnl_step_rows(&step, dims);
    if (way != PORTABLE)
        add_rows(&step, dims);
    step.step.bytes = 2 * (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype) +
                      (uint64_t)rnl_view_elements(indices) * rnl_dtype_bytes(indices->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "gather.cl", kernels[way]);
}

static rnl_status gather(rnl_step_list *list, bool loose, size_t axis, const rnl_view *data, const rnl_view *indices,
                         const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    TRY(rnl_views_check((const rnl_view *[]){data, indices, dst}, 3, &index64), "operands of Gather");
    TRY(check(axis, data, indices, dst));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    if (data->shape[axis] == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "Gather from axis %zu, which has size 0", axis);
    collect_dims(axis, data, indices, dst, &dims);
    const bool rows = has_rows(list->device, &dims);
    if (loose && !rows)
        return FAIL(RNL_UNIMPLEMENTED, "what lies anywhere is gathered by rows, on CPUs");
    return append(list, loose ? LOOSE : rows ? ROWS : PORTABLE, &dims, axis, data, indices, dst, index64);
}

rnl_status rnl_op_gather(rnl_step_list *list, size_t axis, const rnl_view *data, const rnl_view *indices,
                         const rnl_view *dst)
{
    return gather(list, false, axis, data, indices, dst);
}

rnl_status rnl_op_gather_loose(rnl_step_list *list, size_t axis, const rnl_view *data, const rnl_view *indices,
                               const rnl_view *dst)
{
    return gather(list, true, axis, data, indices, dst);
}

static rnl_status check_elements(size_t axis, const rnl_view *data, const rnl_view *indices, const rnl_view *dst)
{
    if (indices->dtype != RNL_I32 && indices->dtype != RNL_I64)
        return FAIL(RNL_INVALID_ARGUMENT, "GatherElements' indices are %s", rnl_dtype_name(indices->dtype));
    if (dst->dtype != data->dtype || !rnl_shapes_equal(indices, dst))
        return FAIL(RNL_INVALID_ARGUMENT, "GatherElements' result has the indices' shape and the data's type");
    if (axis >= data->rank || data->rank != indices->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "GatherElements along axis %zu of rank %zu with indices of rank %zu", axis,
                    data->rank, indices->rank);
    for (size_t i = 0; i < data->rank; ++i)
        if (data->shape[i] < (i == axis ? 1 : indices->shape[i]))
            return FAIL(RNL_INVALID_ARGUMENT, "axis %zu of GatherElements' data has only %lld elements", i,
                        (long long)data->shape[i]);
    return RNL_OK;
}

rnl_status rnl_op_gather_elements(rnl_step_list *list, size_t axis, const rnl_view *data, const rnl_view *indices,
                                  const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims = {.rank = dst->rank, .views = 3};
    TRY(rnl_views_check((const rnl_view *[]){data, indices, dst}, 3, &index64), "operands of GatherElements");
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    TRY(check_elements(axis, data, indices, dst));
    for (size_t i = 0; i < dst->rank; ++i) {
        dims.shape[i] = dst->shape[i];
        dims.stride[0][i] = dst->stride[i];
        dims.stride[1][i] = i == axis ? 0 : data->stride[i];
        dims.stride[2][i] = indices->stride[i];
    }
    rnl_dims_coalesce(&dims);
    const gather_way way = has_rows(list->device, &dims) ? ROWS : PORTABLE;
    return append(list, way, &dims, axis, data, indices, dst, index64);
}
