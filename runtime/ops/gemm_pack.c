/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm_pack.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/implementation.h"

#define PACKED_ROWS 128 /* of a work-item, as in gemm_pack.cl */

static bool is_repeated(const rnl_view *b, size_t dim)
{
    return b->shape[dim] == 1 || b->stride[dim] == 0;
}

bool rnl_gemm_panels_of(const rnl_device *device, const rnl_view *b, rnl_gemm_panels *out_panels)
{
    rnl_gemm_panels panels = {.width = device->vector_width, .matrices = 1};
    if (b->rank < 2 || !rnl_dtype_is_float(b->dtype) || b->dtype == RNL_F64 || rnl_view_elements(b) <= 0)
        return false;
    const int64_t k = b->shape[b->rank - 2], n = b->shape[b->rank - 1];
    while (panels.width > 4 && panels.width / 2 >= n)
        panels.width /= 2;
    panels.panels = n / panels.width + (n % panels.width != 0);
    for (size_t i = 0; i + 2 < b->rank; ++i)
        if (!is_repeated(b, i) && __builtin_mul_overflow(panels.matrices, b->shape[i], &panels.matrices))
            return false;
    if (__builtin_mul_overflow(panels.panels * panels.width, k, &panels.floats) ||
        __builtin_mul_overflow(panels.floats, panels.matrices, &panels.floats) || panels.floats > INT64_MAX / 16)
        return false;
    *out_panels = panels;
    return true;
}

rnl_view rnl_gemm_packed_view(const rnl_gemm_panels *panels, const rnl_view *b, const rnl_view *packed)
{
    rnl_view view = *b;
    int64_t step = panels->floats / panels->matrices;
    view.slot = packed->slot;
    view.offset = packed->offset;
    for (size_t i = b->rank - 2; i-- > 0;) {
        view.stride[i] = is_repeated(b, i) ? 0 : step;
        step *= is_repeated(b, i) ? 1 : b->shape[i];
    }
    view.stride[b->rank - 2] = b->shape[b->rank - 1];
    view.stride[b->rank - 1] = 1;
    return view;
}

/* The dimensions along which the matrices differ, the last one first. */
static size_t find_matrices(const rnl_view *b, int64_t sizes[RNL_MAX_RANK], int64_t strides[RNL_MAX_RANK])
{
    size_t count = 0;
    for (size_t i = b->rank - 2; i-- > 0;) {
        if (is_repeated(b, i))
            continue;
        sizes[count] = b->shape[i];
        strides[count++] = b->stride[i];
    }
    return count;
}

/* A panel of 8 columns takes half of each line of a cache that it reads, and each is in another page. */
static int64_t panels_side_by_side(const rnl_device *device, int64_t b_n)
{
    return rnl_device_is_cpu(device) && device->vector_width == 8 && b_n == 1 ? 4 : 1;
}

rnl_status rnl_gemm_append_pack(rnl_step_list *list, const rnl_gemm_panels *panels, const rnl_view *b,
                                const rnl_view *packed)
{
    const int64_t k = b->shape[b->rank - 2], n = b->shape[b->rank - 1];
    const int64_t b_k = b->stride[b->rank - 2], b_n = b->stride[b->rank - 1];
    const int64_t side_by_side = panels_side_by_side(list->device, b_n);
    const size_t items[3] = {(size_t)rnl_divide_up(k, PACKED_ROWS), (size_t)rnl_divide_up(panels->panels, side_by_side),
                             (size_t)panels->matrices};
    int64_t sizes[RNL_MAX_RANK], strides[RNL_MAX_RANK];
    size_t local[3];
    bool index64;
    const size_t count = find_matrices(b, sizes, strides);
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *const[]){b, packed}, 2, &index64));
    rnl_step_begin(&step, list, "gemm:panel", index64 || panels->floats + packed->offset > INT32_MAX);
    rnl_step_type(&step, "T", b->dtype);
    rnl_step_define(&step, "FORM=%s", b_n == 1 ? "N" : b_k == 1 ? "K" : "ANY");
    rnl_step_define(&step, "W=%lld -DPANELS=%lld", (long long)panels->width, (long long)side_by_side);
    rnl_step_view(&step, b);
    rnl_step_view(&step, packed);
    rnl_step_indices(&step, 4, (const int64_t[]){k, n, panels->panels, panels->matrices}, 4, 0);
    rnl_step_indices(&step, 4, (const int64_t[]){b_k, b_n}, 2, 0);
    rnl_step_indices(&step, 8, sizes, count, 1);
    rnl_step_indices(&step, 8, strides, count, 0);
    rnl_tile_group(list->device, items, local);
    rnl_step_range(&step, 3, items, local);
    step.step.bytes = (uint64_t)panels->floats * (sizeof(float) + rnl_dtype_bytes(b->dtype));
    rnl_step_writes(&step, packed->slot);
    return rnl_step_end(&step, "gemm_pack.cl", "gemm_pack");
}
