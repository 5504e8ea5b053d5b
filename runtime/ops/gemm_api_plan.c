/* SPDX-License-Identifier: Apache-2.0 */
/* From a description to an operator's views. */
#include "base/memory.h"
#include "base/status.h"
#include "ops/gemm_api.h"
#include "ops/gemm_pack.h"
#include "ops/gemm_strassen.h"
#include <string.h>

static void swap(int64_t *left, int64_t *right)
{
    const int64_t kept = *left;
    *left = *right;
    *right = kept;
}

/* Of all products, or a single one; as it is computed. */
static rnl_view view_of(const rnl_gemm_form *form, const rnl_gemm_matrix *matrix, uint32_t slot, bool single)
{
    rnl_view view = {.slot = slot, .dtype = matrix->dtype};
    if (!single && form->desc.batch > 1) {
        view.shape[view.rank] = form->desc.batch;
        view.stride[view.rank++] = matrix->batch_stride;
    }
    view.shape[view.rank] = matrix->rows;
    view.stride[view.rank++] = matrix->row_stride;
    view.shape[view.rank] = matrix->columns;
    view.stride[view.rank++] = matrix->column_stride;
    if (form->swapped) {
        swap(&view.shape[view.rank - 2], &view.shape[view.rank - 1]);
        swap(&view.stride[view.rank - 2], &view.stride[view.rank - 1]);
    }
    return view;
}

/* As a dense copy lies: row-major as computed. */
static rnl_gemm_matrix dense_matrix(const rnl_gemm_form *form, const rnl_gemm_matrix *matrix)
{
    rnl_gemm_matrix dense = *matrix;
    dense.row_stride = form->swapped ? 1 : matrix->columns;
    dense.column_stride = form->swapped ? matrix->rows : 1;
    dense.batch_stride = matrix->batch_stride == 0 ? 0 : matrix->rows * matrix->columns;
    return dense;
}

static rnl_view operand_view(const rnl_gemm_form *form, const rnl_gemm_matrix *matrix, uint32_t slot,
                             rnl_gemm_store store, bool single)
{
    const rnl_gemm_matrix dense = dense_matrix(form, matrix);
    return view_of(form, store == RNL_GEMM_PLAIN ? matrix : &dense, slot, single);
}

/* A vector along the columns or the rows of c, as computed. */
static rnl_view vector_view(const rnl_gemm_form *form, uint32_t slot, rnl_dtype dtype, bool of_columns)
{
    const int64_t count = of_columns ? form->desc.n : form->desc.m;
    if (of_columns != form->swapped)
        return (rnl_view){.slot = slot, .dtype = dtype, .rank = 1, .shape = {count}, .stride = {1}};
    return (rnl_view){.slot = slot, .dtype = dtype, .rank = 2, .shape = {count, 1}, .stride = {1, 0}};
}

static bool add(rnl_chain *chain, rnl_map_op op, rnl_chain_source left, rnl_chain_source right,
                rnl_chain_source *out_source)
{
    const rnl_chain_source sources[2] = {left, right};
    return rnl_chain_add_stage(chain, op, sources, 0, 0, out_source);
}

static bool add_activation(rnl_chain *chain, rnl_gemm_activation activation, rnl_chain_source source)
{
    rnl_chain_source result;
    switch (activation) {
    case RNL_GEMM_LINEAR:
        return true;
    case RNL_GEMM_RELU:
        return rnl_chain_add_stage(chain, RNL_MAP_RELU, &source, 0, 0, &result);
    case RNL_GEMM_GELU:
        return rnl_chain_add_stage(chain, RNL_MAP_GELU, &source, 0, 0, &result);
    case RNL_GEMM_GELU_TANH:
        return rnl_chain_add_stage(chain, RNL_MAP_GELU_TANH, &source, 0, 0, &result);
    case RNL_GEMM_SILU:
        return rnl_chain_add_stage(chain, RNL_MAP_SIGMOID, &source, 0, 0, &result) &&
               add(chain, RNL_MAP_MUL, source, result, &result);
    }
    return false;
}

/* False when a chain has no room: never, for so few stages. */
static bool make_chain(const rnl_gemm_form *form, const rnl_gemm_mode *mode, rnl_chain *chain)
{
    const rnl_gemm_desc *d = &form->desc;
    rnl_chain_source source = {RNL_CHAIN_INPUT, 0}, operand;
    if (d->bias != RNL_GEMM_BIAS_NONE) {
        const rnl_view bias = vector_view(form, RNL_GEMM_SLOT_BIAS, d->c_type, d->bias == RNL_GEMM_BIAS_COLUMNS);
        if (!rnl_chain_add_operand(chain, &bias, &operand) || !add(chain, RNL_MAP_ADD, source, operand, &source))
            return false;
    }
    if (d->residual) {
        const rnl_view residual = view_of(form, &form->residual, RNL_GEMM_SLOT_RESIDUAL, mode->single);
        if (!rnl_chain_add_operand(chain, &residual, &operand) || !add(chain, RNL_MAP_ADD, source, operand, &source))
            return false;
    }
    return add_activation(chain, d->activation, source);
}

static rnl_status make_product(const rnl_gemm_form *form, const rnl_gemm_mode *mode, rnl_gemm_product *out_product)
{
    const bool absent = mode->alpha == 0;
    rnl_gemm_matrix a = form->a, b = form->b;
    *out_product = (rnl_gemm_product){.a = {.slot = RNL_NO_SLOT}};
    if (absent)
        a.columns = b.rows = 0;
    rnl_view a_view = operand_view(form, &a, RNL_GEMM_SLOT_A, mode->a, mode->single);
    rnl_view b_view = operand_view(form, &b, RNL_GEMM_SLOT_B, mode->b, mode->single);
    out_product->a = form->swapped ? b_view : a_view;
    out_product->b = form->swapped ? a_view : b_view;
    const rnl_gemm_store store = form->swapped ? mode->a : mode->b;
    out_product->packed_b = (store == RNL_GEMM_FORMED || store == RNL_GEMM_SUMMED) && !absent;
    out_product->packed_sums = store == RNL_GEMM_SUMMED && !absent;
    out_product->c = view_of(form, &form->c, RNL_GEMM_SLOT_C, mode->single);
    if (form->integers && form->desc.c_type != RNL_F32)
        return RNL_OK;
    if (!make_chain(form, mode, &out_product->chain))
        return FAIL(RNL_INTERNAL, "the end of a matrix product has too many stages");
    return RNL_OK;
}

rnl_view rnl_gemm_line(uint32_t slot, rnl_dtype dtype, int64_t count)
{
    return (rnl_view){.slot = slot, .dtype = dtype, .rank = 1, .shape = {count}, .stride = {1}};
}

rnl_status rnl_gemm_scratch_bytes(int64_t elements, size_t *out_bytes)
{
    if (elements < 0 || !rnl_size_mul((size_t)elements, 4, out_bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "matrix product that wants %lld elements of scratch memory",
                    (long long)elements);
    return RNL_OK;
}

/* ---- floats --------------------------------------------------------------------------------------------------- */

#define LINE_FLOATS 32 /* sums begin where any vector is aligned */

static int64_t sums_offset(int64_t panel_floats)
{
    return rnl_divide_up(panel_floats, LINE_FLOATS) * LINE_FLOATS;
}

static void add_sums(const rnl_device *device, rnl_gemm_product *p, int64_t panel_floats, rnl_gemm_params *params)
{
    rnl_strassen_form form;
    if (!p->packed_sums || !rnl_strassen_form_of(device, &p->b, &form))
        return;
    p->sums = rnl_gemm_line(p->b.slot, RNL_F32, form.floats);
    p->sums.offset = sums_offset(panel_floats);
    params->packed_sums = &p->sums;
}

/* All but scratch memory. `p` holds what the result points to. */
static rnl_gemm_params make_params(const rnl_gemm_form *form, const rnl_gemm_mode *mode, const rnl_device *device,
                                   rnl_gemm_product *p)
{
    rnl_gemm_params params = {.alpha = mode->alpha,
                              .beta = mode->beta,
                              .chain = p->chain.stage_count ? &p->chain : NULL,
                              .implementation = form->desc.implementation,
                              .normwise = form->desc.accuracy == RNL_GEMM_NORMWISE,
                              .variant = form->variant};
    rnl_gemm_panels panels;
    if (p->packed_b && rnl_gemm_panels_of(device, &p->b, &panels)) {
        p->packed = rnl_gemm_line(p->b.slot, RNL_F32, panels.floats);
        params.packed_b = &p->packed;
        add_sums(device, p, panels.floats, &params);
    }
    return params;
}

static rnl_status append_floats(const rnl_gemm_form *form, const rnl_gemm_mode *mode, rnl_step_list *list,
                                rnl_gemm_product *p, size_t *out_scratch_bytes)
{
    rnl_gemm_params params = make_params(form, mode, list->device, p);
    const rnl_view *c = mode->beta == 0 ? NULL : &p->c;
    int64_t floats = 0;
    TRY(rnl_gemm_scratch(list->device, &params, &p->a, &p->b, c, &p->c, &floats));
    TRY(rnl_gemm_scratch_bytes(floats, out_scratch_bytes));
    p->scratch = rnl_gemm_line(RNL_GEMM_SLOT_SCRATCH, RNL_F32, floats);
    if (floats > 0)
        params.scratch = &p->scratch;
    return rnl_op_gemm(list, &params, &p->a, &p->b, c, &p->c);
}

rnl_status rnl_gemm_form_place(const rnl_gemm_form *form, const rnl_gemm_mode *mode, rnl_device *device,
                               rnl_hash *out_place)
{
    rnl_gemm_product p;
    *out_place = (rnl_hash){0, 0};
    TRY(make_product(form, mode, &p));
    const rnl_gemm_params params = make_params(form, mode, device, &p);
    return rnl_gemm_place(device, &params, &p.a, &p.b, mode->beta == 0 ? NULL : &p.c, &p.c, out_place);
}

/* ---- both ----------------------------------------------------------------------------------------------------- */

rnl_status rnl_gemm_form_append(const rnl_gemm_form *form, const rnl_gemm_mode *mode, rnl_step_list *list,
                                size_t *out_scratch_bytes)
{
    rnl_gemm_product p;
    const char *forced = form->desc.implementation;
    *out_scratch_bytes = 0;
    TRY(make_product(form, mode, &p));
    list->index64 = mode->wide;
    if (form->integers)
        TRY(rnl_gemm_append_integers(form, list, &p, out_scratch_bytes));
    else
        TRY(append_floats(form, mode, list, &p, out_scratch_bytes));
    if (!forced || list->step_count == 0 || mode->alpha == 0 || form->desc.k == 0)
        return RNL_OK;
    const char *taken = strchr(list->steps[list->step_count - 1].implementation, ':');
    if (taken && strcmp(taken + 1, forced) == 0)
        return RNL_OK;
    return FAIL(RNL_UNIMPLEMENTED, "implementation '%s' does not take this matrix product on %s", forced,
                list->device->info.name);
}

static rnl_status append_copy(rnl_step_list *list, const rnl_view *from, const rnl_view *to)
{
    return list ? rnl_op_map(list, RNL_MAP_COPY, 0, 0, from, 1, to) : RNL_OK;
}

static rnl_status append_form(const rnl_gemm_form *form, rnl_step_list *list, const rnl_view *from, size_t bytes)
{
    const rnl_view to = rnl_gemm_line(RNL_GEMM_SLOT_SCRATCH, form->integers ? RNL_I32 : RNL_F32, (int64_t)(bytes / 4));
    if (!list)
        return RNL_OK;
    return form->integers ? rnl_gemm_pack_integers(list, from, &to) : rnl_op_gemm_pack(list, from, &to);
}

/* 0: this operand is read as it is. */
static rnl_status formed_bytes(const rnl_gemm_form *form, rnl_gemm_side side, rnl_device *device, const rnl_view *view,
                               size_t *out_bytes)
{
    int64_t floats = 0;
    *out_bytes = 0;
    if (rnl_gemm_side_of(form, side) == RNL_GEMM_SIDE_A)
        return RNL_OK;
    if (form->integers)
        return rnl_gemm_packed_integers(device, view, out_bytes);
    TRY(rnl_gemm_packed(device, view, &floats));
    return rnl_gemm_scratch_bytes(floats, out_bytes);
}

static bool wants_sums(const rnl_gemm_form *form)
{
    const char *name = form->desc.implementation;
    return form->desc.accuracy == RNL_GEMM_NORMWISE || (name && strcmp(name, "strassen") == 0);
}

/* Behind the panels, which products of few rows take. Without them where the device has no room. */
static rnl_status append_sums(rnl_step_list *list, rnl_device *device, const rnl_view *from, rnl_gemm_store *out_store,
                              size_t *out_bytes)
{
    const int64_t offset = sums_offset((int64_t)(*out_bytes / sizeof(float)));
    int64_t floats = 0;
    TRY(rnl_gemm_packed_sums(device, from, &floats));
    if (floats == 0 || (uint64_t)(offset + floats) > device->info.max_allocation_bytes / sizeof(float))
        return RNL_OK;
    TRY(rnl_gemm_scratch_bytes(offset + floats, out_bytes));
    *out_store = RNL_GEMM_SUMMED;
    rnl_view to = rnl_gemm_line(RNL_GEMM_SLOT_SCRATCH, RNL_F32, floats);
    to.offset = offset;
    return list ? rnl_op_gemm_pack_sums(list, from, &to) : RNL_OK;
}

rnl_status rnl_gemm_form_pack(const rnl_gemm_form *form, rnl_gemm_side side, bool wide, rnl_device *device,
                              rnl_step_list *list, rnl_gemm_store *out_store, size_t *out_bytes)
{
    const bool is_a = side == RNL_GEMM_SIDE_A;
    const rnl_gemm_matrix *matrix = is_a ? &form->a : &form->b, dense = dense_matrix(form, matrix);
    const bool single = matrix->batch_stride == 0;
    const rnl_view from = view_of(form, matrix, is_a ? RNL_GEMM_SLOT_A : RNL_GEMM_SLOT_B, single);
    const rnl_view to = view_of(form, &dense, RNL_GEMM_SLOT_SCRATCH, single);
    if (list)
        list->index64 = wide;
    TRY(formed_bytes(form, side, device, &from, out_bytes));
    *out_store = *out_bytes ? RNL_GEMM_FORMED : RNL_GEMM_DENSE;
    if (*out_store == RNL_GEMM_FORMED) {
        TRY(append_form(form, list, &from, *out_bytes));
        return wants_sums(form) ? append_sums(list, device, &from, out_store, out_bytes) : RNL_OK;
    }
    if (!rnl_size_mul((size_t)rnl_view_elements(&from), rnl_dtype_bytes(matrix->dtype), out_bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%s has too many elements to be packed", matrix->name);
    return append_copy(list, &from, &to);
}
