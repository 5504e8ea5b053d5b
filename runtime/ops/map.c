/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/map.h"
#include "base/memory.h"
#include "ops/chain.h"
#include "ops/convert.h"
#include "ops/copy.h"
#include "ops/map_step.h"
#include "ops/map_table.h"
#include "ops/step_build.h"
#include "ops/transpose.h"

#define FLAT_ITEMS 4 /* elements of a work-item, as in map.cl */

static unsigned type_class(rnl_dtype dtype)
{
    if (rnl_dtype_is_stored(dtype))
        return RNL_MAP_STORED;
    return rnl_dtype_is_float(dtype) ? RNL_MAP_FLOATS : dtype == RNL_BOOL ? RNL_MAP_BOOLS : RNL_MAP_INTEGERS;
}

static rnl_dtype expected_source(rnl_map_op op, const rnl_view *srcs, size_t index)
{
    if (op == RNL_MAP_SELECT)
        return index == 0 ? RNL_BOOL : srcs[1].dtype;
    return op == RNL_MAP_POW ? srcs[index].dtype : srcs[0].dtype;
}

static rnl_status check_types(rnl_map_op op, const rnl_map_row *row, const rnl_view *srcs, const rnl_view *dst)
{
    const rnl_dtype type = srcs[op == RNL_MAP_SELECT].dtype;
    for (size_t i = 0; i < row->sources; ++i) {
        if (!(type_class(srcs[i].dtype) & row->types))
            return FAIL(RNL_UNIMPLEMENTED, "%s of %s", row->name, rnl_dtype_name(srcs[i].dtype));
        if (srcs[i].dtype != expected_source(op, srcs, i))
            return FAIL(RNL_INVALID_ARGUMENT, "operand %zu of %s is %s, not %s", i, row->name,
                        rnl_dtype_name(srcs[i].dtype), rnl_dtype_name(expected_source(op, srcs, i)));
    }
    const rnl_dtype result = row->makes_bool ? RNL_BOOL : op == RNL_MAP_COPY ? dst->dtype : type;
    if (dst->dtype != result)
        return FAIL(RNL_INVALID_ARGUMENT, "%s of %s gives %s, not %s", row->name, rnl_dtype_name(type),
                    rnl_dtype_name(result), rnl_dtype_name(dst->dtype));
    return RNL_OK;
}

static rnl_status check(rnl_map_op op, const rnl_view *srcs, size_t src_count, const rnl_view *dst, bool *out_index64)
{
    const rnl_map_row *row = rnl_map_row_of(op);
    const rnl_view *views[1 + RNL_MAP_MAX_SOURCES] = {dst};
    if (!row || src_count != row->sources)
        return FAIL(RNL_INVALID_ARGUMENT, "%s takes %zu operands, not %zu", rnl_map_name(op), rnl_map_sources(op),
                    src_count);
    for (size_t i = 0; i < src_count; ++i)
        views[i + 1] = &srcs[i];
    TRY(rnl_views_check(views, src_count + 1, out_index64), "operands of %s", row->name);
    return check_types(op, row, srcs, dst);
}

rnl_status rnl_map_dims(const rnl_view *srcs, size_t src_count, const rnl_view *dst, rnl_dims *out_dims)
{
    *out_dims = (rnl_dims){.rank = dst->rank, .views = src_count + 1};
    for (size_t i = 0; i < dst->rank; ++i) {
        out_dims->shape[i] = dst->shape[i];
        out_dims->stride[0][i] = dst->stride[i];
    }
    for (size_t i = 0; i < src_count; ++i)
        TRY(rnl_view_broadcast(&srcs[i], dst->rank, dst->shape, out_dims->stride[i + 1]));
    return RNL_OK;
}

static bool only_moves(rnl_map_op op, const rnl_view *srcs, const rnl_view *dst)
{
    return op == RNL_MAP_SELECT || (op == RNL_MAP_COPY && srcs[0].dtype == dst->dtype);
}

static void add_types(rnl_step_builder *step, rnl_map_op op, const rnl_view *srcs, size_t src_count,
                      const rnl_view *dst)
{
    static const char *const names[RNL_MAP_MAX_SOURCES] = {"T0", "T1", "T2", "T3", "T4"};
    const bool moves = only_moves(op, srcs, dst);
    rnl_step_type(step, "T_DST", moves ? rnl_dtype_bits(dst->dtype) : dst->dtype);
    for (size_t i = 0; i < src_count; ++i)
        rnl_step_type(step, names[i],
                      moves && srcs[i].dtype == dst->dtype ? rnl_dtype_bits(dst->dtype) : srcs[i].dtype);
    const bool mixed_power =
        op == RNL_MAP_POW && !rnl_dtype_is_float(srcs[0].dtype) && rnl_dtype_is_float(srcs[1].dtype);
    if (mixed_power && !step->needs_f64 && rnl_device_get_info(step->list->device)->has_fp64)
        rnl_step_define(step, "USE_F64");
}

static bool is_flat(const rnl_dims *dims)
{
    if (dims->rank == 0)
        return true;
    if (dims->rank > 1 || dims->stride[0][0] != 1)
        return false;
    for (size_t v = 1; v < dims->views; ++v)
        if (dims->stride[v][0] != 0 && dims->stride[v][0] != 1)
            return false;
    return true;
}

static void add_flat(rnl_step_builder *step, const rnl_dims *dims)
{
    const int64_t count = rnl_dims_elements(dims);
    rnl_step_index(step, count);
    for (size_t v = 1; v < dims->views; ++v)
        rnl_step_index(step, dims->rank ? dims->stride[v][0] : 0);
    rnl_step_range(step, 1, (size_t[3]){(size_t)(count + FLAT_ITEMS - 1) / FLAT_ITEMS}, (size_t[3]){128});
}

static uint64_t traffic(const rnl_view *srcs, size_t src_count, const rnl_view *dst)
{
    uint64_t bytes = (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype);
    for (size_t i = 0; i < src_count; ++i)
        bytes += (uint64_t)rnl_view_elements(&srcs[i]) * rnl_dtype_bytes(srcs[i].dtype);
    return bytes;
}

static bool is_chain(rnl_map_op op, const rnl_view *srcs, size_t src_count, const rnl_view *dst)
{
    for (size_t i = 0; i < src_count; ++i)
        if (!rnl_chain_takes_type(srcs[i].dtype))
            return false;
    return rnl_chain_takes(op) && rnl_chain_takes_type(dst->dtype) && src_count <= RNL_CHAIN_MAX_OPERANDS &&
           !only_moves(op, srcs, dst);
}

static rnl_status append_chain(rnl_step_list *list, rnl_map_op op, float p0, float p1, const rnl_view *srcs,
                               size_t src_count, const rnl_view *dst)
{
    rnl_chain chain = {0};
    rnl_chain_source sources[RNL_MAP_MAX_SOURCES], result;
    bool added = true;
    for (size_t i = 0; i < src_count; ++i)
        added = added && rnl_chain_add_operand(&chain, &srcs[i], &sources[i]);
    if (!added || !rnl_chain_add_stage(&chain, op, sources, p0, p1, &result))
        return FAIL(RNL_INTERNAL, "%s does not fit in a chain", rnl_map_name(op));
    return rnl_op_chain(list, &chain, dst);
}

static rnl_status append_copy(rnl_step_list *list, const rnl_dims *dims, const rnl_view *src, const rnl_view *dst,
                              bool index64)
{
    bool done = false;
    TRY(rnl_op_transpose(list, dims, src, dst, index64, &done));
    return done ? RNL_OK : rnl_op_copy(list, dims, src, dst, index64);
}

rnl_status rnl_map_end(rnl_step_builder *step, const rnl_dims *dims, float p0, float p1, const rnl_view *srcs,
                       size_t src_count, const rnl_view *dst)
{
    rnl_step_define(step, "ARITY=%zu", src_count);
    rnl_step_view(step, dst);
    for (size_t i = 0; i < src_count; ++i)
        rnl_step_view(step, &srcs[i]);
    rnl_step_float(step, p0);
    rnl_step_float(step, p1);
    const bool flat = is_flat(dims);
    if (flat) {
        add_flat(step, dims);
    } else {
        rnl_step_define(step, "ROWS");
        rnl_step_rows(step, dims);
    }
    step->step.bytes = traffic(srcs, src_count, dst);
    step->step.flops = (uint64_t)rnl_view_elements(dst);
    rnl_step_writes(step, dst->slot);
    return rnl_step_end(step, "map.cl", flat ? "map_flat" : "map_rows");
}

rnl_status rnl_op_map(rnl_step_list *list, rnl_map_op op, float p0, float p1, const rnl_view *srcs, size_t src_count,
                      const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(check(op, srcs, src_count, dst, &index64));
    if (is_chain(op, srcs, src_count, dst))
        return append_chain(list, op, p0, p1, srcs, src_count, dst);
    if (op == RNL_MAP_COPY && srcs[0].dtype != dst->dtype &&
        (rnl_dtype_is_stored(srcs[0].dtype) || rnl_dtype_is_stored(dst->dtype)))
        return rnl_op_cast(list, true, 0, srcs, dst);
    TRY(rnl_map_dims(srcs, src_count, dst, &dims), "operands of %s", rnl_map_name(op));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    rnl_dims_coalesce(&dims);
    if (op == RNL_MAP_COPY && srcs[0].dtype == dst->dtype)
        return append_copy(list, &dims, srcs, dst, index64);

    rnl_step_begin(&step, list, "map:portable", index64);
    rnl_step_define(&step, "%s", rnl_map_row_of(op)->option);
    if (rnl_map_parameters(op))
        rnl_step_define(&step, "PARAMETERS=%zu", rnl_map_parameters(op));
    add_types(&step, op, srcs, src_count, dst);
    return rnl_map_end(&step, &dims, p0, p1, srcs, src_count, dst);
}
