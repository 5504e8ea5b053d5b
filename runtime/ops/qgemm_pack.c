/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qgemm_pack.h"
#include "base/status.h"
#include "ops/implementation.h"

#define PACKED_COLUMNS 16 /* of a work-item, as in qgemm_pack.cl */

static bool is_repeated(const rnl_view *b, size_t dim)
{
    return b->shape[dim] == 1 || b->stride[dim] == 0;
}

bool rnl_qgemm_panels_of(const rnl_view *b, rnl_qgemm_panels *out_panels)
{
    rnl_qgemm_panels panels = {.matrices = 1};
    if (b->rank < 2 || (b->dtype != RNL_U8 && b->dtype != RNL_I8) || rnl_view_elements(b) <= 0)
        return false;
    const int64_t k = b->shape[b->rank - 2], n = b->shape[b->rank - 1];
    panels.panels = n / RNL_QGEMM_PANEL + (n % RNL_QGEMM_PANEL != 0);
    for (size_t i = 0; i + 2 < b->rank; ++i)
        if (!is_repeated(b, i) && __builtin_mul_overflow(panels.matrices, b->shape[i], &panels.matrices))
            return false;
    const int64_t rows = 1 + k / 4 + (k % 4 != 0);
    if (__builtin_mul_overflow(rows, RNL_QGEMM_PANEL, &panels.panel_ints) ||
        __builtin_mul_overflow(panels.panel_ints, panels.panels, &panels.ints) ||
        __builtin_mul_overflow(panels.ints, panels.matrices, &panels.ints) || panels.ints > INT64_MAX / 16)
        return false;
    *out_panels = panels;
    return true;
}

rnl_view rnl_qgemm_packed_view(const rnl_qgemm_panels *panels, const rnl_view *b, const rnl_view *packed)
{
    rnl_view view = *b;
    int64_t step = panels->panel_ints * panels->panels;
    view.slot = packed->slot;
    view.offset = packed->offset;
    view.dtype = RNL_I32;
    for (size_t i = b->rank - 2; i-- > 0;) {
        view.stride[i] = is_repeated(b, i) ? 0 : step;
        step *= is_repeated(b, i) ? 1 : b->shape[i];
    }
    view.stride[b->rank - 2] = 0;
    view.stride[b->rank - 1] = 1;
    return view;
}

rnl_status rnl_qgemm_packed_bytes(rnl_device *device, const rnl_view *b, size_t *out_bytes)
{
    rnl_qgemm_panels panels;
    bool index64;
    (void)device;
    *out_bytes = 0;
    TRY(rnl_views_check((const rnl_view *const[]){b}, 1, &index64));
    if (rnl_qgemm_panels_of(b, &panels) && (uint64_t)panels.ints <= SIZE_MAX / sizeof(int32_t))
        *out_bytes = (size_t)panels.ints * sizeof(int32_t);
    return RNL_OK;
}

/* The dimensions along which the matrices differ, the last one first. */
static rnl_status find_matrices(const rnl_view *b, rnl_dims *out_matrices)
{
    rnl_dims matrices = {.views = 1};
    for (size_t i = b->rank - 2; i-- > 0;) {
        if (is_repeated(b, i))
            continue;
        matrices.shape[matrices.rank] = b->shape[i];
        matrices.stride[0][matrices.rank++] = b->stride[i];
    }
    if (matrices.rank > RNL_QGEMM_MAX_BATCH_DIMS)
        return FAIL(RNL_UNIMPLEMENTED, "packing a factor with %zu batch dimensions; at most %d are supported",
                    matrices.rank, RNL_QGEMM_MAX_BATCH_DIMS);
    *out_matrices = matrices;
    return RNL_OK;
}

rnl_status rnl_op_qgemm_pack(rnl_step_list *list, const rnl_view *b, const rnl_view *packed)
{
    rnl_qgemm_panels panels;
    rnl_dims matrices;
    rnl_step_builder step;
    bool index64;
    size_t local[3];
    TRY(rnl_views_check((const rnl_view *const[]){b, packed}, 2, &index64));
    if (!rnl_qgemm_panels_of(b, &panels))
        return FAIL(RNL_INVALID_ARGUMENT, "a factor of type %s and rank %zu with %lld elements cannot be packed",
                    rnl_dtype_name(b->dtype), b->rank, (long long)rnl_view_elements(b));
    if (packed->dtype != RNL_I32 || rnl_view_elements(packed) < panels.ints)
        return FAIL(RNL_INVALID_ARGUMENT, "packing a factor into %lld elements of %s; it takes %lld of int32",
                    (long long)rnl_view_elements(packed), rnl_dtype_name(packed->dtype), (long long)panels.ints);
    TRY(find_matrices(b, &matrices));
    const int64_t k = b->shape[b->rank - 2], n = b->shape[b->rank - 1];
    const int64_t b_k = b->stride[b->rank - 2], b_n = b->stride[b->rank - 1];
    const size_t items[3] = {(size_t)panels.panels * (RNL_QGEMM_PANEL / PACKED_COLUMNS), (size_t)panels.matrices, 1};
    rnl_step_begin(&step, list, "qgemm:pack", index64 || panels.ints > INT32_MAX);
    rnl_step_define(&step, "FORM=%s", b_n == 1 ? "N" : "ANY");
    rnl_step_view(&step, b);
    rnl_step_view(&step, packed);
    rnl_step_indices(&step, 4, (const int64_t[]){k, n, panels.panels, panels.matrices}, 4, 0);
    rnl_step_indices(&step, 4, (const int64_t[]){b_k, b_n}, 2, 0);
    rnl_step_indices(&step, 8, matrices.shape, matrices.rank, 1);
    rnl_step_indices(&step, 8, matrices.stride[0], matrices.rank, 0);
    rnl_step_int(&step, rnl_qgemm_flip(b->dtype, true));
    rnl_tile_group(list->device, items, local);
    rnl_step_range(&step, 2, items, local);
    step.step.bytes = (uint64_t)rnl_view_elements(b) + (uint64_t)panels.ints * sizeof(int32_t);
    rnl_step_writes(&step, packed->slot);
    return rnl_step_end(&step, "qgemm_pack.cl", "qgemm_pack");
}
