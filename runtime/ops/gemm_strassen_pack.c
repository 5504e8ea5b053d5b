/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "base/status.h"
#include "ops/gemm_strassen.h"
#include "ops/implementation.h"

#define PRODUCTS 7      /* of a level */
#define PACKED_TERMS 32 /* of a work-item, as in gemm_strassen_pack.cl */
#define MOST_TERMS 256  /* of a part: tiles' columns stay in a first cache */
#define TWO_LEVELS 768  /* terms and columns */

/* Tiles that fit in registers; each is a program. */
static const struct {
    int64_t vector, rows, count;
} tiles[] = {{16, 8, 3}, {8, 6, 2}, {4, 6, 2}};

static bool is_one_matrix(const rnl_view *b)
{
    for (size_t i = 0; i + 2 < b->rank; ++i)
        if (b->shape[i] != 1 && b->stride[i] != 0)
            return false;
    return b->rank >= 2;
}

bool rnl_strassen_form_of(const rnl_device *device, const rnl_view *b, rnl_strassen_form *out_form)
{
    rnl_strassen_form form = {.vector = 0};
    if (b->dtype != RNL_F32 || !is_one_matrix(b))
        return false;
    const int64_t k = b->shape[b->rank - 2], n = b->shape[b->rank - 1];
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; ++i)
        if (tiles[i].vector == device->vector_width)
            form = (rnl_strassen_form){.vector = tiles[i].vector, .rows = tiles[i].rows, .count = tiles[i].count};
    if (form.vector == 0 || k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX)
        return false;
    form.levels = k >= TWO_LEVELS && n >= TWO_LEVELS ? 2 : 1;
    form.parts = form.levels == 2 ? 4 : 2;
    form.products = form.levels == 2 ? PRODUCTS * PRODUCTS : PRODUCTS;
    form.chunks = rnl_divide_up(k, form.parts * MOST_TERMS);
    form.part_terms = rnl_divide_up(rnl_divide_up(k, form.parts * form.chunks), form.vector) * form.vector;
    form.blocks = rnl_divide_up(n, form.parts * form.count * form.vector);
    form.floats = rnl_saturating_mul(form.blocks * form.chunks * form.products,
                                     rnl_strassen_block(form.part_terms * form.count * form.vector));
    if (form.floats > INT64_MAX / 16)
        return false;
    *out_form = form;
    return true;
}

rnl_status rnl_strassen_append_pack(rnl_step_list *list, const rnl_strassen_form *form, const rnl_view *b,
                                    const rnl_view *packed)
{
    const int64_t k = b->shape[b->rank - 2], n = b->shape[b->rank - 1];
    const size_t items[3] = {(size_t)rnl_divide_up(form->part_terms, PACKED_TERMS), (size_t)form->blocks,
                             (size_t)form->chunks};
    bool index64;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *const[]){b, packed}, 2, &index64));
    rnl_step_begin(&step, list, "gemm:strassen", index64 || form->floats + packed->offset > INT32_MAX);
    rnl_step_type(&step, "T", RNL_F32);
    rnl_step_define(&step, "W=%lld -DNB=%lld -DLEVELS=%lld", (long long)form->vector, (long long)form->count,
                    (long long)form->levels);
    rnl_step_view(&step, b);
    rnl_step_view(&step, packed);
    rnl_step_indices(&step, 4, (const int64_t[]){k, n, form->part_terms, form->chunks}, 4, 0);
    rnl_step_indices(&step, 2, (const int64_t[]){b->stride[b->rank - 2], b->stride[b->rank - 1]}, 2, 0);
    rnl_step_range(&step, 3, items, (size_t[3]){1, 1, 1});
    step.step.bytes = ((uint64_t)form->floats + (uint64_t)k * (uint64_t)n) * sizeof(float);
    rnl_step_writes(&step, packed->slot);
    return rnl_step_end(&step, "gemm_strassen_pack.cl", "gemm_strassen_pack");
}
