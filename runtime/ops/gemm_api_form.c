/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a description of products. */
#include "base/status.h"
#include "ops/gemm_api.h"
#include <string.h>

static rnl_status too_large(const char *name)
{
    return FAIL(RNL_INVALID_ARGUMENT, "matrix product: %s has more elements than can be counted", name);
}

static bool is_byte(rnl_dtype dtype)
{
    return dtype == RNL_I8 || dtype == RNL_U8;
}

static bool is_storage(rnl_dtype dtype)
{
    return dtype == RNL_F32 || dtype == RNL_F16 || dtype == RNL_BF16;
}

static rnl_status check_sizes(const rnl_gemm_desc *d)
{
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {{"m", d->m},     {"n", d->n},     {"k", d->k},     {"batch", d->batch},
                 {"lda", d->lda}, {"ldb", d->ldb}, {"ldc", d->ldc}, {"ld_residual", d->ld_residual}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        if (sizes[i].value < 0)
            return FAIL(RNL_INVALID_ARGUMENT, "matrix product: %s is %lld, which is negative", sizes[i].name,
                        (long long)sizes[i].value);
    return RNL_OK;
}

static rnl_status check_choices(const rnl_gemm_desc *d)
{
    if (d->order != RNL_GEMM_ROW_MAJOR && d->order != RNL_GEMM_COLUMN_MAJOR)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: order is %d, which is no order", (int)d->order);
    if (d->bias != RNL_GEMM_BIAS_NONE && d->bias != RNL_GEMM_BIAS_COLUMNS && d->bias != RNL_GEMM_BIAS_ROWS)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: bias is %d, which is no kind of bias", (int)d->bias);
    if ((int)d->activation < RNL_GEMM_LINEAR || (int)d->activation > RNL_GEMM_SILU)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: activation is %d, which is no activation",
                    (int)d->activation);
    if (d->accuracy != RNL_GEMM_ELEMENTWISE && d->accuracy != RNL_GEMM_NORMWISE)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: accuracy is %d, which is no accuracy", (int)d->accuracy);
    return RNL_OK;
}

static rnl_status check_zero(const char *name, int32_t zero, rnl_dtype dtype)
{
    const int32_t low = dtype == RNL_I8 ? INT8_MIN : 0;
    const int32_t high = dtype == RNL_I8 ? INT8_MAX : dtype == RNL_U8 ? UINT8_MAX : 0;
    if (zero >= low && zero <= high)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "matrix product: %s is %d, and %s has zero points from %d to %d", name, (int)zero,
                rnl_dtype_name(dtype), (int)low, (int)high);
}

static rnl_status check_integers(const rnl_gemm_desc *d)
{
    if (d->alpha != 1 || d->beta != 0)
        return FAIL(RNL_UNIMPLEMENTED, "matrix product of integers with alpha %g and beta %g; there is 1 and 0",
                    (double)d->alpha, (double)d->beta);
    if (d->c_type != RNL_F32 && (d->residual || d->activation != RNL_GEMM_LINEAR))
        return FAIL(RNL_UNIMPLEMENTED, "matrix product of integers into %s with a residual or activation",
                    rnl_dtype_name(d->c_type));
    if (d->scale != d->scale || d->scale < 0)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: scale is %g, which is not positive", (double)d->scale);
    return RNL_OK;
}

static rnl_status check_types(const rnl_gemm_desc *d, bool *out_integers)
{
    *out_integers = is_byte(d->a_type) && is_byte(d->b_type);
    const bool right = *out_integers ? is_byte(d->c_type) || d->c_type == RNL_I32 || d->c_type == RNL_F32
                                     : is_storage(d->c_type) && d->a_type == d->c_type && d->b_type == d->c_type;
    if (!right)
        return FAIL(RNL_UNIMPLEMENTED, "matrix product of %s (a_type) and %s (b_type) into %s (c_type)",
                    rnl_dtype_name(d->a_type), rnl_dtype_name(d->b_type), rnl_dtype_name(d->c_type));
    TRY(check_zero("a_zero", d->a_zero, d->a_type));
    TRY(check_zero("b_zero", d->b_zero, d->b_type));
    TRY(check_zero("c_zero", d->c_zero, d->c_type));
    return *out_integers ? check_integers(d) : RNL_OK;
}

/* Lays a matrix of rows x columns, stored along its columns or along its rows, `ld` elements from line to line. */
static rnl_status lay(rnl_gemm_matrix *matrix, bool along_columns, int64_t ld, int64_t *out_dense)
{
    const int64_t lines = along_columns ? matrix->rows : matrix->columns;
    const int64_t line = along_columns ? matrix->columns : matrix->rows;
    int64_t behind_last_line;
    if (ld == 0)
        ld = line > 0 ? line : 1;
    if (ld < line)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: ld%s%s is %lld, less than the %lld elements of a line of %s",
                    matrix->name[1] ? "_" : "", matrix->name, (long long)ld, (long long)line, matrix->name);
    if (__builtin_mul_overflow(lines, ld, out_dense))
        return too_large(matrix->name);
    behind_last_line = *out_dense - (ld - line);
    matrix->row_stride = along_columns ? ld : 1;
    matrix->column_stride = along_columns ? 1 : ld;
    matrix->span = lines > 0 && line > 0 ? behind_last_line : 0;
    return RNL_OK;
}

static rnl_status lay_batch(rnl_gemm_matrix *matrix, int64_t batch, int64_t stride, int64_t dense)
{
    if (stride < RNL_GEMM_SHARED)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: stride_%s is %lld; it is positive, 0 or RNL_GEMM_SHARED",
                    matrix->name, (long long)stride);
    matrix->batch_stride = stride == RNL_GEMM_SHARED ? 0 : stride == 0 ? dense : stride;
    if (batch == 0 || matrix->span == 0) {
        matrix->whole = 0;
        return RNL_OK;
    }
    if (__builtin_mul_overflow(batch - 1, matrix->batch_stride, &matrix->whole) ||
        __builtin_add_overflow(matrix->whole, matrix->span, &matrix->whole) || matrix->whole > INT64_MAX / 16)
        return too_large(matrix->name);
    return RNL_OK;
}

/* `ld` and `stride` as described. */
static rnl_status describe(const rnl_gemm_desc *desc, rnl_gemm_matrix *matrix, bool transposed, int64_t ld,
                           int64_t stride)
{
    int64_t dense = 0;
    TRY(lay(matrix, (desc->order == RNL_GEMM_ROW_MAJOR) != transposed, ld, &dense));
    return lay_batch(matrix, desc->batch, stride, dense);
}

/* The matrices of a batch lie behind each other, or side by side in the lines of a larger one. */
static rnl_status check_apart(const rnl_gemm_form *form)
{
    const rnl_gemm_matrix *c = &form->c;
    const bool row_major = form->desc.order == RNL_GEMM_ROW_MAJOR;
    const int64_t line = row_major ? c->columns : c->rows, ld = row_major ? c->row_stride : c->column_stride;
    if (form->desc.batch < 2 || c->span == 0 || c->batch_stride >= c->span)
        return RNL_OK;
    if (c->batch_stride >= line && c->batch_stride <= (ld - line) / (form->desc.batch - 1))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "matrix product: stride_c of %lld makes the results of a batch overlap",
                (long long)c->batch_stride);
}

static rnl_status describe_all(rnl_gemm_form *form)
{
    const rnl_gemm_desc *d = &form->desc;
    form->a = (rnl_gemm_matrix){.name = "a", .dtype = d->a_type, .rows = d->m, .columns = d->k};
    form->b = (rnl_gemm_matrix){.name = "b", .dtype = d->b_type, .rows = d->k, .columns = d->n};
    form->c = (rnl_gemm_matrix){.name = "c", .dtype = d->c_type, .rows = d->m, .columns = d->n};
    form->residual = form->c;
    form->residual.name = "residual";
    TRY(describe(d, &form->a, d->transpose_a, d->lda, d->stride_a));
    TRY(describe(d, &form->b, d->transpose_b, d->ldb, d->stride_b));
    TRY(describe(d, &form->c, false, d->ldc, d->stride_c));
    if (d->residual)
        TRY(describe(d, &form->residual, false, d->ld_residual, d->stride_residual));
    return check_apart(form);
}

/* Products of integers take what differs between columns, not between rows. */
static rnl_status choose_sides(rnl_gemm_form *form)
{
    const rnl_gemm_desc *d = &form->desc;
    const bool column_bias = d->bias == RNL_GEMM_BIAS_COLUMNS, row_bias = d->bias == RNL_GEMM_BIAS_ROWS;
    const bool column_scales = d->c_type != RNL_I32 && d->scale == 0;
    form->swapped = d->order == RNL_GEMM_COLUMN_MAJOR;
    if (!form->integers || (!column_scales && (d->c_type == RNL_F32 || d->bias == RNL_GEMM_BIAS_NONE)))
        return RNL_OK;
    if (column_scales && row_bias && d->c_type != RNL_F32)
        return FAIL(RNL_UNIMPLEMENTED, "matrix product of integers with a bias for each row and a scale for each "
                                       "column");
    form->swapped = !column_scales && !column_bias;
    return RNL_OK;
}

rnl_status rnl_gemm_form_of(const rnl_gemm_desc *desc, rnl_gemm_form *out_form)
{
    rnl_gemm_form form = {.desc = RNL_GEMM_DESC_INIT};
    if (!desc)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: desc is NULL");
    if (desc->struct_size == 0 || desc->struct_size > sizeof form.desc)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: desc.struct_size is %zu; use RNL_GEMM_DESC_INIT",
                    desc->struct_size);
    memcpy(&form.desc, desc, desc->struct_size);
    form.desc.struct_size = sizeof form.desc;
    if (form.desc.batch == 0)
        form.desc.batch = 1;
    rnl_dtype *types[3] = {&form.desc.a_type, &form.desc.b_type, &form.desc.c_type};
    for (size_t i = 0; i < 3; ++i)
        if (*types[i] == RNL_DTYPE_NONE)
            *types[i] = RNL_F32;
    TRY(check_sizes(&form.desc));
    TRY(check_choices(&form.desc));
    TRY(check_types(&form.desc, &form.integers));
    TRY(describe_all(&form));
    TRY(choose_sides(&form));
    form.empty = form.desc.m == 0 || form.desc.n == 0;
    *out_form = form;
    return RNL_OK;
}
