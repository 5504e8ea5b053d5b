/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the operator families: checking views, simplifying their dimensions, and appending one kernel step.
 *
 *     rnl_step_builder step;
 *     rnl_step_begin(&step, list, "map:portable", index64);
 *     rnl_step_type(&step, "T_SRC", src->dtype);
 *     rnl_step_view(&step, dst); …the kernel's arguments in order…
 *     rnl_step_range(&step, 1, (size_t[3]){items}, (size_t[3]){64});
 *     rnl_step_writes(&step, dst->slot);
 *     return rnl_step_end(&step, "map.cl", "map_flat");
 *
 * The functions in between keep the first failure; rnl_step_end returns it and leaves the list as it was.
 */
#ifndef RUNNEL_OPS_STEP_BUILD_H
#define RUNNEL_OPS_STEP_BUILD_H

#include "base/text.h"
#include "ops/op.h"

/* "F32": the name that kernels know the type by. */
RNL_API const char *rnl_dtype_define(rnl_dtype dtype);
RNL_API bool rnl_dtype_is_float(rnl_dtype dtype);
/* The types that kernels only move, cast and quantise: all from F8E4M3FN on. */
RNL_API bool rnl_dtype_is_stored(rnl_dtype dtype);
/* The unsigned integer of the size, for kernels that only move elements: exact, and one program for several types. */
RNL_API rnl_dtype rnl_dtype_bits(rnl_dtype dtype);

/*
 * Each existing view: known type, rank, no negative dimension, every reachable index from 0 on and within int64.
 * *out_index64: an element count or a reachable index does not fit in the kernels' int.
 */
RNL_API RNL_NODISCARD rnl_status rnl_views_check(const rnl_view *const *views, size_t count, bool *out_index64);
/* The strides with which `view` broadcasts, from the right, to a shape; 0 where it repeats. */
RNL_API RNL_NODISCARD rnl_status rnl_view_broadcast(const rnl_view *view, size_t rank, const int64_t *shape,
                                                    int64_t out_stride[RNL_MAX_RANK]);
RNL_API bool rnl_shapes_equal(const rnl_view *a, const rnl_view *b);

/* Dimensions that several views are walked over together. */
#define RNL_DIMS_MAX_VIEWS 9
typedef struct rnl_dims {
    size_t rank, views;
    int64_t shape[RNL_MAX_RANK];
    int64_t stride[RNL_DIMS_MAX_VIEWS][RNL_MAX_RANK];
} rnl_dims;

/*
 * Fewest dimensions that visit the same elements: sizes of 1 go, the rest is ordered by view 0's stride, largest
 * first, and neighbours that are one run in every view are merged. The order of visiting changes, so only for work
 * that does not depend on it.
 */
RNL_API void rnl_dims_coalesce(rnl_dims *dims);
RNL_API int64_t rnl_dims_elements(const rnl_dims *dims);
/* The axes whose bit is set, of views of one rank, coalesced; sizes are the last view's. */
RNL_API void rnl_dims_select(rnl_dims *dims, const rnl_view *const *views, size_t count, uint32_t axes);

typedef struct rnl_step_builder {
    rnl_step_list *list;
    rnl_step step; /* flops and bytes may be set directly */
    rnl_text options;
    bool index64, needs_f64;
    size_t first_value;
    rnl_status status;
} rnl_step_builder;

RNL_API void rnl_step_begin(rnl_step_builder *builder, rnl_step_list *list, const char *implementation, bool index64);
/* -D<define>=<type>; F64 fails where the device lacks it. */
RNL_API void rnl_step_type(rnl_step_builder *builder, const char *define, rnl_dtype dtype);
/* " -D" and the text. */
RNL_API void rnl_step_define(rnl_step_builder *builder, const char *format, ...) RNL_PRINTF(2, 3);

/* Arguments, in the kernel's order. */
RNL_API void rnl_step_view(rnl_step_builder *builder, const rnl_view *view); /* buffer, idx_t offset */
RNL_API void rnl_step_slot(rnl_step_builder *builder, uint32_t slot);        /* buffer; NULL for RNL_NO_SLOT */
RNL_API void rnl_step_index(rnl_step_builder *builder, int64_t value);       /* idx_t */
/*
 * Indices of which the first are the offsets of views, whose buffers are arguments of their own: idx_t, idx2_t …
 * idx16_t by `width`. Few large arguments: some drivers allocate memory for each at every launch.
 */
RNL_API void rnl_step_offsets(rnl_step_builder *builder, size_t width, const rnl_view *const *views, size_t view_count,
                              const int64_t *values, size_t count);
/* idx2_t, idx4_t, idx8_t or idx16_t by `width`; values beyond `count` are `fill`. */
RNL_API void rnl_step_indices(rnl_step_builder *builder, size_t width, const int64_t *values, size_t count,
                              int64_t fill);
/* idx8_t as walk.clh wants it: the innermost dimension last, `fill` before the first. */
RNL_API void rnl_step_dims(rnl_step_builder *builder, const int64_t *values, size_t rank, int64_t fill);
RNL_API void rnl_step_int(rnl_step_builder *builder, int32_t value);
RNL_API void rnl_step_float(rnl_step_builder *builder, float value);
RNL_API void rnl_step_value(rnl_step_builder *builder, const void *value, size_t size_bytes);

/* Work-items needed, not rounded: executing rounds them up to the local size, so kernels guard. */
RNL_API void rnl_step_range(rnl_step_builder *builder, uint32_t dimensions, const size_t items[3],
                            const size_t local[3]);
/*
 * Arguments and range of a kernel that walks all dimensions with a work-item an element: idx_t rows, int deep,
 * idx8_t shape, and idx8_t strides for each view. Columns, of the innermost dimension, are the range's first
 * dimension; rows are counted over the other two. At least one element.
 */
RNL_API void rnl_step_rows(rnl_step_builder *builder, const rnl_dims *dims);
RNL_API void rnl_step_writes(rnl_step_builder *builder, uint32_t slot);
RNL_API RNL_NODISCARD rnl_status rnl_step_end(rnl_step_builder *builder, const char *file, const char *kernel);
/* The same with a program that is there already; what was defined is left out. */
RNL_API RNL_NODISCARD rnl_status rnl_step_end_program(rnl_step_builder *builder, rnl_program *program,
                                                      const char *kernel);

#endif
