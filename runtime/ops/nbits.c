/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nbits.h"
#include "ops/deterministic.h"
#include "ops/step_build.h"

#define UNPACKED 128    /* elements that a work-item unpacks, as in nbits.cl */
#define MAX_ROWS 32768  /* in the range's second dimension */
#define ROWS_TOGETHER 4 /* of a, for which the weights are unpacked once */
#define MOST_ROWS 24

enum { ZEROS_NONE, ZEROS_PACKED, ZEROS_NUMBERS };

static bool is_float(rnl_dtype dtype)
{
    return dtype == RNL_F32 || dtype == RNL_F16 || dtype == RNL_BF16;
}

static int64_t blocks_of(const rnl_nbits *m)
{
    return m->k / m->block + (m->k % m->block != 0);
}

static int zeros_of(const rnl_nbits *m)
{
    if (!rnl_view_exists(m->zero_points))
        return ZEROS_NONE;
    return m->zero_points->dtype == RNL_U8 ? ZEROS_PACKED : ZEROS_NUMBERS;
}

static rnl_status check_view(const rnl_view *view, rnl_dtype dtype, int64_t elements, const char *name)
{
    if (view->dtype == dtype && rnl_view_is_row_major(view) && rnl_view_elements(view) == elements)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "%s of a matrix in blocks: %lld elements of %s; %lld of %s are needed, dense",
                name, (long long)rnl_view_elements(view), rnl_dtype_name(view->dtype), (long long)elements,
                rnl_dtype_name(dtype));
}

static rnl_status check_numbers(const rnl_nbits *m)
{
    int64_t elements;
    if (m->bits != 2 && m->bits != 4 && m->bits != 8)
        return FAIL(RNL_INVALID_ARGUMENT, "a matrix of %d bits; 2, 4 and 8 are supported", m->bits);
    if (m->n < 1 || m->k < 1 || m->block < 16 || m->block % 16 != 0 || m->block > INT32_MAX || m->k > INT64_MAX / 4 ||
        __builtin_mul_overflow(m->n, blocks_of(m), &elements) || __builtin_mul_overflow(elements, m->block, &elements))
        return FAIL(RNL_INVALID_ARGUMENT, "a matrix of %lldx%lld in blocks of %lld", (long long)m->n, (long long)m->k,
                    (long long)m->block);
    return RNL_OK;
}

static rnl_status check(const rnl_nbits *m, bool *out_index64)
{
    const rnl_view *views[] = {m->values, m->scales, m->zero_points, m->groups};
    TRY(check_numbers(m));
    TRY(rnl_views_check(views, sizeof views / sizeof *views, out_index64));
    const int64_t blocks = blocks_of(m), per_byte = 8 / m->bits;
    if (!is_float(m->scales->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "scales of a matrix in blocks are %s", rnl_dtype_name(m->scales->dtype));
    TRY(check_view(m->values, RNL_U8, m->n * blocks * (m->block / per_byte), "values"));
    TRY(check_view(m->scales, m->scales->dtype, m->n * blocks, "scales"));
    if (zeros_of(m) == ZEROS_PACKED)
        TRY(check_view(m->zero_points, RNL_U8, m->n * ((blocks + per_byte - 1) / per_byte), "zero points"));
    else if (zeros_of(m) == ZEROS_NUMBERS)
        TRY(check_view(m->zero_points, m->scales->dtype, m->n * blocks, "zero points"));
    if (rnl_view_exists(m->groups))
        TRY(check_view(m->groups, RNL_I32, m->k, "groups"));
    /* A value's number is an index, too. */
    *out_index64 |= m->n > INT32_MAX / 2 / (blocks * m->block);
    return RNL_OK;
}

/* NBITS_ARGUMENTS of clkernels/nbits.cl. */
static void add_matrix(rnl_step_builder *step, const rnl_nbits *m, bool has_bias)
{
    const int zeros = zeros_of(m);
    const int32_t flags[4] = {zeros, rnl_view_exists(m->groups), has_bias};
    rnl_step_type(step, "T", m->scales->dtype);
    rnl_step_define(step, "BITS=%d", m->bits);
    rnl_step_view(step, m->values);
    rnl_step_view(step, m->scales);
    rnl_step_view(step, zeros == ZEROS_PACKED ? m->zero_points : NULL);
    rnl_step_view(step, zeros == ZEROS_NUMBERS ? m->zero_points : NULL);
    rnl_step_indices(step, 4, (const int64_t[]){m->n, m->k, m->block, blocks_of(m)}, 4, 0);
    rnl_step_value(step, flags, sizeof flags);
    step->step.bytes = (uint64_t)rnl_view_elements(m->values);
}

rnl_status rnl_op_nbits_unpack(rnl_step_list *list, const rnl_nbits *m, const rnl_view *dst)
{
    bool index64, dst_index64;
    rnl_step_builder step;
    TRY(check(m, &index64));
    TRY(rnl_views_check(&dst, 1, &dst_index64));
    TRY(check_view(dst, m->scales->dtype, m->n * m->k, "result"));
    const size_t rows = (size_t)m->n, row_range = rows < MAX_ROWS ? rows : MAX_ROWS;
    rnl_step_begin(&step, list, "nbits:unpack", index64 || dst_index64);
    rnl_step_view(&step, dst);
    add_matrix(&step, m, false);
    rnl_step_view(&step, m->groups);
    rnl_step_range(&step, 3,
                   (size_t[3]){(size_t)(m->k + UNPACKED - 1) / UNPACKED, row_range, (rows + row_range - 1) / row_range},
                   (size_t[3]){4, 1, 1});
    step.step.bytes += (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "nbits.cl", "nbits_unpack");
}

int64_t rnl_nbits_rows_most(const rnl_device *device, const rnl_nbits *m)
{
    (void)device;
    return rnl_view_exists(m->groups) || rnl_is_deterministic() ? 0 : MOST_ROWS;
}

rnl_status rnl_op_nbits_rows(rnl_step_list *list, const rnl_nbits *m, const rnl_view *a, const rnl_view *bias,
                             const rnl_view *dst)
{
    bool index64, views_index64;
    rnl_step_builder step;
    const rnl_dtype dtype = m->scales->dtype;
    TRY(check(m, &index64));
    TRY(rnl_views_check((const rnl_view *[]){a, bias, dst}, 3, &views_index64));
    const int64_t rows = rnl_view_elements(a) / m->k;
    TRY(check_view(a, dtype, rows * m->k, "first factor"));
    TRY(check_view(dst, dtype, rows * m->n, "result"));
    if (rnl_view_exists(bias))
        TRY(check_view(bias, dtype, m->n, "bias"));
    if (rnl_view_exists(m->groups))
        return FAIL(RNL_UNIMPLEMENTED, "a product of rows with a matrix whose elements name their blocks");
    if (rows == 0)
        return RNL_OK;
    const int64_t together = rows == 1 ? 1 : ROWS_TOGETHER;
    rnl_step_begin(&step, list, "nbits:rows", index64 || views_index64);
    rnl_step_define(&step, "ROWS=%d", (int)together);
    rnl_step_view(&step, dst);
    add_matrix(&step, m, rnl_view_exists(bias));
    rnl_step_view(&step, a);
    rnl_step_view(&step, bias);
    rnl_step_index(&step, rows);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)m->n, (size_t)((rows + together - 1) / together)}, (size_t[3]){16, 1});
    step.step.flops = 2 * (uint64_t)rows * (uint64_t)m->n * (uint64_t)m->k;
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "nbits.cl", "nbits_rows");
}
