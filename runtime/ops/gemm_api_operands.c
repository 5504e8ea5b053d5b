/* SPDX-License-Identifier: Apache-2.0 */
/* Checking what a product is given. */
#include "base/status.h"
#include "ops/gemm_api.h"
#include <string.h>

rnl_status rnl_gemm_check_range(const rnl_device *device, const char *name, const rnl_buffer *buffer, rnl_dtype dtype,
                                int64_t offset, int64_t elements, bool *wide)
{
    if (!buffer)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: %s is NULL", name);
    if (buffer->device != device)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: %s is a buffer of %s, which is another device", name,
                    buffer->device->info.name);
    const int64_t room = (int64_t)(buffer->size_bytes / rnl_dtype_bytes(dtype));
    if (offset < 0 || offset > room || elements > room - offset)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "matrix product: %s takes %lld elements of %s from %lld on, and its buffer has %lld", name,
                    (long long)elements, rnl_dtype_name(dtype), (long long)offset, (long long)room);
    *wide |= offset + elements > INT32_MAX;
    return RNL_OK;
}

rnl_status rnl_gemm_operands_of(const rnl_stream *stream, const rnl_gemm *gemm, const rnl_gemm_operands *given,
                                rnl_gemm_operands *out_operands)
{
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    if (!stream || !gemm || !given)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: %s is NULL",
                    !stream ? "the stream"
                    : !gemm ? "the prepared product"
                            : "operands");
    if (stream->device != gemm->device)
        return FAIL(RNL_INVALID_ARGUMENT, "a matrix product of %s was given to a stream of %s, which is another device",
                    gemm->device->info.name, stream->device->info.name);
    if (given->struct_size == 0 || given->struct_size > sizeof operands)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: operands.struct_size is %zu; use RNL_GEMM_OPERANDS_INIT",
                    given->struct_size);
    memcpy(&operands, given, given->struct_size);
    *out_operands = operands;
    return RNL_OK;
}

/* One matrix of each product, or all of them by their stride. */
static rnl_status check_matrix(const rnl_gemm *gemm, const rnl_gemm_matrix *matrix, const rnl_buffer *buffer,
                               int64_t offset, const int64_t *offsets, bool *wide)
{
    const int64_t batch = gemm->form.desc.batch;
    TRY(rnl_gemm_check_range(gemm->device, matrix->name, buffer, matrix->dtype, offset, offsets ? 0 : matrix->whole,
                             wide));
    for (int64_t i = 0; offsets && i < batch; ++i) {
        int64_t at;
        if (__builtin_add_overflow(offset, offsets[i], &at))
            return FAIL(RNL_INVALID_ARGUMENT, "matrix product: %s_offsets[%lld] is %lld, too much to add to %s_offset",
                        matrix->name, (long long)i, (long long)offsets[i], matrix->name);
        TRY(rnl_gemm_check_range(gemm->device, matrix->name, buffer, matrix->dtype, at, matrix->span, wide),
            "product %lld of the batch", (long long)i);
    }
    return RNL_OK;
}

static rnl_status check_packed(const rnl_gemm *gemm, const rnl_gemm_matrix *matrix, rnl_gemm_side side,
                               const rnl_packed *packed, const int64_t *offsets, bool single)
{
    const rnl_gemm_form *form = &gemm->form;
    const int64_t rows = form->swapped ? matrix->columns : matrix->rows;
    const int64_t columns = form->swapped ? matrix->rows : matrix->columns;
    const int64_t matrices = matrix->batch_stride ? form->desc.batch : 1;
    if (packed->buffer->device != gemm->device)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: packed_%s is of %s, which is another device", matrix->name,
                    packed->buffer->device->info.name);
    if (offsets || (single && matrices > 1))
        return FAIL(RNL_INVALID_ARGUMENT,
                    "matrix product: packed_%s is one matrix for all products of a batch that "
                    "lies anywhere: no %s_offsets, and a stride of RNL_GEMM_SHARED",
                    matrix->name, matrix->name);
    if (packed->rows != rows || packed->columns != columns || packed->matrices != matrices ||
        packed->dtype != matrix->dtype || packed->integers != form->integers ||
        packed->side != rnl_gemm_side_of(form, side))
        return FAIL(RNL_INVALID_ARGUMENT,
                    "matrix product: packed_%s was packed for other products: it has %lld matrices of %s, %lld x %lld",
                    matrix->name, (long long)packed->matrices, rnl_dtype_name(packed->dtype), (long long)packed->rows,
                    (long long)packed->columns);
    return RNL_OK;
}

/* What is read: nothing where alpha is 0. */
static rnl_status check_factors(const rnl_gemm *gemm, const rnl_gemm_operands *o, rnl_gemm_mode *mode)
{
    const rnl_gemm_form *form = &gemm->form;
    if (mode->alpha == 0 || form->desc.k == 0)
        return RNL_OK;
    mode->a = o->packed_a ? o->packed_a->store : RNL_GEMM_PLAIN;
    mode->b = o->packed_b ? o->packed_b->store : RNL_GEMM_PLAIN;
    if (o->packed_a)
        TRY(check_packed(gemm, &form->a, RNL_GEMM_SIDE_A, o->packed_a, o->a_offsets, mode->single));
    else
        TRY(check_matrix(gemm, &form->a, o->a, o->a_offset, o->a_offsets, &mode->wide));
    if (o->packed_b)
        TRY(check_packed(gemm, &form->b, RNL_GEMM_SIDE_B, o->packed_b, o->b_offsets, mode->single));
    else
        TRY(check_matrix(gemm, &form->b, o->b, o->b_offset, o->b_offsets, &mode->wide));
    return RNL_OK;
}

static rnl_status check_vectors(const rnl_gemm *gemm, const rnl_gemm_operands *o, bool *wide)
{
    const rnl_gemm_form *form = &gemm->form;
    const rnl_gemm_desc *d = &form->desc;
    if (d->bias != RNL_GEMM_BIAS_NONE)
        TRY(rnl_gemm_check_range(gemm->device, "bias", o->bias,
                                 form->integers && d->c_type != RNL_F32 ? RNL_I32 : d->c_type, o->bias_offset,
                                 d->bias == RNL_GEMM_BIAS_COLUMNS ? d->n : d->m, wide));
    if (form->integers && d->c_type != RNL_I32 && d->scale == 0)
        TRY(rnl_gemm_check_range(gemm->device, "scales", o->scales, RNL_F32, o->scales_offset, d->n, wide));
    return RNL_OK;
}

rnl_status rnl_gemm_mode_of(const rnl_gemm *gemm, const rnl_gemm_operands *o, rnl_gemm_mode *out_mode)
{
    const rnl_gemm_form *form = &gemm->form;
    rnl_gemm_mode mode = {.alpha = o->alpha ? *o->alpha : form->desc.alpha,
                          .beta = o->beta ? *o->beta : form->desc.beta};
    if (form->integers && (mode.alpha != 1 || mode.beta != 0))
        return FAIL(RNL_UNIMPLEMENTED, "matrix product of integers with alpha %g and beta %g; there is 1 and 0",
                    (double)mode.alpha, (double)mode.beta);
    mode.single = form->desc.batch > 1 && (o->a_offsets || o->b_offsets || o->c_offsets || o->residual_offsets);
    TRY(check_factors(gemm, o, &mode));
    TRY(check_matrix(gemm, &form->c, o->c, o->c_offset, o->c_offsets, &mode.wide));
    if (form->desc.residual)
        TRY(check_matrix(gemm, &form->residual, o->residual, o->residual_offset, o->residual_offsets, &mode.wide));
    TRY(check_vectors(gemm, o, &mode.wide));
    *out_mode = mode;
    return RNL_OK;
}
