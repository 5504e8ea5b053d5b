/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/step_build.h"
#include "base/memory.h"
#include "kernel/team.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LONG_ROW 32    /* columns from which on a work-group is of one row */
#define MAX_WIDTH 16   /* indices of an argument */
#define MAX_ROWS 32768 /* in the range's second dimension; NVIDIA's limit there is twice that */

const char *rnl_dtype_define(rnl_dtype dtype)
{
    switch (dtype) {
#define X(name, code, bytes, text)                                                                                     \
    case RNL_##name:                                                                                                   \
        return #name;
        RNL_DTYPE_LIST(X)
#undef X
    case RNL_DTYPE_NONE:
        break;
    }
    return "NONE";
}

bool rnl_dtype_is_float(rnl_dtype dtype)
{
    return dtype == RNL_F32 || dtype == RNL_F16 || dtype == RNL_BF16 || dtype == RNL_F64;
}

bool rnl_dtype_is_stored(rnl_dtype dtype)
{
    return dtype >= RNL_F8E4M3FN && rnl_dtype_bytes(dtype) != 0;
}

rnl_dtype rnl_dtype_bits(rnl_dtype dtype)
{
    switch (rnl_dtype_bytes(dtype)) {
    case 1:
        return RNL_U8;
    case 2:
        return RNL_U16;
    case 4:
        return RNL_U32;
    default:
        return RNL_U64;
    }
}

void rnl_step_begin(rnl_step_builder *builder, rnl_step_list *list, const char *implementation, bool index64)
{
    *builder = (rnl_step_builder){.list = list, .index64 = index64 || list->index64, .first_value = list->value_bytes};
    builder->step = (rnl_step){.kind = RNL_STEP_KERNEL,
                               .implementation = implementation,
                               .first_arg = (uint32_t)list->arg_count,
                               .write_slot = RNL_NO_SLOT,
                               .write_slot_2 = RNL_NO_SLOT,
                               .write_slot_3 = RNL_NO_SLOT};
    if (builder->index64)
        rnl_step_define(builder, "INDEX64");
}

void rnl_step_type(rnl_step_builder *builder, const char *define, rnl_dtype dtype)
{
    rnl_step_define(builder, "%s=%s", define, rnl_dtype_define(dtype));
    if (dtype != RNL_F64 || builder->status)
        return;
    const rnl_device_info *info = rnl_device_get_info(builder->list->device);
    if (!info->has_fp64)
        builder->status = FAIL(RNL_UNIMPLEMENTED, "%s (%s) has no float64 arithmetic", info->name, info->platform);
    if (!builder->needs_f64)
        rnl_step_define(builder, "USE_F64");
    builder->needs_f64 = true;
}

void rnl_step_define(rnl_step_builder *builder, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!builder->status && (length < 0 || (size_t)length >= sizeof text))
        builder->status = FAIL(RNL_INTERNAL, "a kernel's define is too long");
    rnl_text_add(&builder->options, "%s-D%s", builder->options.length ? " " : "", text);
}

static rnl_step_arg *add_arg(rnl_step_builder *builder)
{
    rnl_step_list *list = builder->list;
    if (!builder->status)
        builder->status = rnl_grow(&list->args, &list->arg_capacity, list->arg_count + 1, sizeof *list->args);
    if (builder->status)
        return NULL;
    rnl_step_arg *arg = &list->args[list->arg_count++];
    *arg = (rnl_step_arg){.slot = RNL_NO_SLOT};
    return arg;
}

void rnl_step_slot(rnl_step_builder *builder, uint32_t slot)
{
    rnl_step_arg *arg = add_arg(builder);
    if (arg) {
        arg->kind = RNL_STEP_SLOT;
        arg->slot = slot;
    }
}

void rnl_step_offsets(rnl_step_builder *builder, size_t width, const rnl_view *const *views, size_t view_count,
                      const int64_t *values, size_t count)
{
    int64_t all[MAX_WIDTH] = {0};
    for (size_t i = 0; i < view_count; ++i)
        all[i] = rnl_view_exists(views[i]) ? views[i]->offset : 0;
    for (size_t i = 0; i < count; ++i)
        all[view_count + i] = values[i];
    rnl_step_indices(builder, width, all, view_count + count, 0);
    if (builder->status)
        return;
    rnl_step_arg *arg = &builder->list->args[builder->list->arg_count - 1];
    arg->kind = RNL_STEP_OFFSET;
    arg->index_bytes = (uint32_t)(arg->size_bytes / width);
    arg->offset_count = (uint32_t)view_count;
    for (size_t i = 0; i < view_count; ++i) {
        const bool exists = rnl_view_exists(views[i]);
        arg->offset_slots[i] = exists ? views[i]->slot : RNL_NO_SLOT;
        arg->offset_element_bytes[i] = exists ? (uint32_t)rnl_dtype_bytes(views[i]->dtype) : 1;
    }
}

void rnl_step_view(rnl_step_builder *builder, const rnl_view *view)
{
    rnl_step_slot(builder, rnl_view_exists(view) ? view->slot : RNL_NO_SLOT);
    rnl_step_offsets(builder, 1, &view, 1, NULL, 0);
}

void rnl_step_value(rnl_step_builder *builder, const void *value, size_t size_bytes)
{
    rnl_step_list *list = builder->list;
    const size_t at = rnl_align_up(list->value_bytes, 8);
    if (!builder->status)
        builder->status = rnl_grow(&list->values, &list->value_capacity, at + size_bytes, 1);
    rnl_step_arg *arg = add_arg(builder);
    if (!arg)
        return;
    arg->kind = RNL_STEP_VALUE;
    arg->size_bytes = (uint32_t)size_bytes;
    arg->value_at = (uint32_t)at;
    memcpy(list->values + at, value, size_bytes);
    list->value_bytes = at + size_bytes;
}

void rnl_step_indices(rnl_step_builder *builder, size_t width, const int64_t *values, size_t count, int64_t fill)
{
    int64_t wide[MAX_WIDTH];
    int32_t narrow[MAX_WIDTH];
    for (size_t i = 0; i < width; ++i) {
        wide[i] = i < count ? values[i] : fill;
        narrow[i] = (int32_t)wide[i];
    }
    if (builder->index64)
        rnl_step_value(builder, wide, width * sizeof wide[0]);
    else
        rnl_step_value(builder, narrow, width * sizeof narrow[0]);
}

void rnl_step_dims(rnl_step_builder *builder, const int64_t *values, size_t rank, int64_t fill)
{
    int64_t all[RNL_MAX_RANK];
    for (size_t i = 0; i < RNL_MAX_RANK; ++i)
        all[i] = i + rank < RNL_MAX_RANK ? fill : values[i + rank - RNL_MAX_RANK];
    rnl_step_indices(builder, RNL_MAX_RANK, all, RNL_MAX_RANK, fill);
}

void rnl_step_index(rnl_step_builder *builder, int64_t value)
{
    rnl_step_indices(builder, 1, &value, 1, 0);
}

void rnl_step_int(rnl_step_builder *builder, int32_t value)
{
    rnl_step_value(builder, &value, sizeof value);
}

void rnl_step_float(rnl_step_builder *builder, float value)
{
    rnl_step_value(builder, &value, sizeof value);
}

void rnl_step_range(rnl_step_builder *builder, uint32_t dimensions, const size_t items[3], const size_t local[3])
{
    builder->step.range.dimensions = dimensions;
    for (uint32_t i = 0; i < 3; ++i) {
        builder->step.range.global[i] = i < dimensions ? items[i] : 1;
        builder->step.range.local[i] = i < dimensions ? local[i] : 1;
    }
}

void rnl_step_rows(rnl_step_builder *builder, const rnl_dims *dims)
{
    const size_t columns = dims->rank ? (size_t)dims->shape[dims->rank - 1] : 1;
    const size_t rows = (size_t)rnl_dims_elements(dims) / columns, row_range = rows < MAX_ROWS ? rows : MAX_ROWS;
    rnl_step_index(builder, (int64_t)rows);
    rnl_step_int(builder, dims->rank > 3);
    rnl_step_dims(builder, dims->shape, dims->rank, 1);
    for (size_t v = 0; v < dims->views; ++v)
        rnl_step_dims(builder, dims->stride[v], dims->rank, 0);
    rnl_step_range(builder, 3, (size_t[3]){columns, row_range, (rows + row_range - 1) / row_range},
                   columns >= LONG_ROW ? (size_t[3]){64, 1, 1} : (size_t[3]){4, 16, 1});
}

void rnl_step_writes(rnl_step_builder *builder, uint32_t slot)
{
    rnl_step *step = &builder->step;
    uint32_t *writes[] = {&step->write_slot, &step->write_slot_2, &step->write_slot_3};
    size_t next = 0;
    while (next < 2 && *writes[next] != RNL_NO_SLOT)
        next++;
    *writes[next] = slot;
}

static rnl_status find_program(rnl_step_builder *builder, const char *file)
{
    const char *team = builder->index64 ? NULL : rnl_team_define(builder->list->device, file);
    builder->step.waits = team != NULL;
    if (team)
        rnl_step_define(builder, "%s", team);
    TRY(builder->status);
    TRY(builder->options.status);
    const char *options = builder->options.data ? builder->options.data : "";
    return rnl_program_get(builder->list->device, file, options, &builder->step.program);
}

static rnl_status append(rnl_step_builder *builder, const char *kernel)
{
    rnl_step_list *list = builder->list;
    TRY(builder->status);
    TRY(rnl_grow(&list->steps, &list->step_capacity, list->step_count + 1, sizeof *list->steps));
    builder->step.kernel = kernel;
    builder->step.arg_count = (uint32_t)list->arg_count - builder->step.first_arg;
    list->steps[list->step_count++] = builder->step;
    return RNL_OK;
}

static rnl_status end(rnl_step_builder *builder, rnl_status status, const char *kernel)
{
    if (!status)
        status = append(builder, kernel);
    if (status) {
        builder->list->arg_count = builder->step.first_arg;
        builder->list->value_bytes = builder->first_value;
    }
    rnl_text_free(&builder->options);
    return status;
}

rnl_status rnl_step_end(rnl_step_builder *builder, const char *file, const char *kernel)
{
    builder->step.may_be_cut = !builder->index64;
    return end(builder, find_program(builder, file), kernel);
}

rnl_status rnl_step_end_program(rnl_step_builder *builder, rnl_program *program, const char *kernel)
{
    builder->step.program = program;
    return end(builder, builder->status, kernel);
}
