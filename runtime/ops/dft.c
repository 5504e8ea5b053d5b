/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/dft.h"
#include "ops/implementation.h"
#include "ops/step_build.h"

#define SHORT_POINTS 32   /* that one pass takes: another launch would cost more */
#define GREATEST_RADIX 16 /* but for primes */

static int64_t next_radix(int64_t left)
{
    for (int64_t radix = GREATEST_RADIX; radix > 1; --radix)
        if (left % radix == 0)
            return radix;
    int64_t prime = GREATEST_RADIX + 1;
    while (prime * prime <= left && left % prime != 0)
        prime += 2;
    return prime * prime <= left ? prime : left;
}

size_t rnl_dft_radices(int64_t points, int64_t out_radices[RNL_DFT_MAX_PASSES])
{
    size_t count = 0;
    if (points <= SHORT_POINTS) {
        out_radices[0] = points;
        return 1;
    }
    for (int64_t left = points; left > 1; left /= out_radices[count++])
        out_radices[count] = next_radix(left);
    return count;
}

static rnl_status check(const rnl_dft *dft, const rnl_view *src, const rnl_view *table, const rnl_view *dst)
{
    const bool wide = src->dtype == RNL_F64 || dst->dtype == RNL_F64;
    bool fits = src->rank >= 2 && src->rank == dst->rank && table->rank == 2 && table->shape[0] == dft->points &&
                table->shape[1] == 4 && rnl_view_is_row_major(table);
    for (size_t i = 0; i + 2 < src->rank && fits; ++i)
        fits = src->shape[i] == dst->shape[i];
    const size_t last = src->rank - 1;
    if (!fits || src->shape[last] < 1 || src->shape[last] > 2 || dst->shape[last] < 1 || dst->shape[last] > 2)
        return FAIL(RNL_INVALID_ARGUMENT, "a Fourier transform's operands do not belong together");
    if (!rnl_dtype_is_float(src->dtype) || !rnl_dtype_is_float(dst->dtype) ||
        table->dtype != (wide ? RNL_F64 : RNL_F32))
        return FAIL(RNL_INVALID_ARGUMENT, "Fourier transform of %s into %s", rnl_dtype_name(src->dtype),
                    rnl_dtype_name(dst->dtype));
    if (dft->points < 1 || dft->points > RNL_DFT_MAX_POINTS || dst->shape[last - 1] > dft->points)
        return FAIL(RNL_UNIMPLEMENTED, "Fourier transform of %lld points; at most %lld are supported",
                    (long long)dft->points, (long long)RNL_DFT_MAX_POINTS);
    return RNL_OK;
}

static void add_int4(rnl_step_builder *step, int64_t x, int64_t y, int64_t z, int64_t w)
{
    const int32_t values[4] = {(int32_t)x, (int32_t)y, (int32_t)z, (int32_t)w};
    rnl_step_value(step, values, sizeof values);
}

/* What follows from the pass's number. */
static void add_pass(rnl_step_builder *step, const rnl_dft *dft, size_t pass, const rnl_view *src, const rnl_view *dst)
{
    int64_t radices[RNL_DFT_MAX_PASSES], done = 1;
    const size_t count = rnl_dft_radices(dft->points, radices), last = src->rank - 1;
    const bool is_first = pass == 0, is_last = pass + 1 == count;
    for (size_t i = 0; i < pass; ++i)
        done *= radices[i];
    const int64_t samples = src->shape[last - 1] < dft->points ? src->shape[last - 1] : dft->points;
    add_int4(step, done, radices[pass], dft->points / done / radices[pass], dst->shape[last - 1]);
    add_int4(step, samples, is_first && dft->mirrored, src->shape[last] == 2, 0);
    add_int4(step, dft->inverse, is_last && dft->inverse, dst->shape[last] == 2, 0);
    rnl_step_indices(
        step, 4, (const int64_t[]){src->stride[last - 1], src->stride[last], dst->stride[last - 1], dst->stride[last]},
        4, 0);
    step->step.flops = (uint64_t)rnl_view_elements(dst) * (uint64_t)radices[pass] * 4;
}

rnl_status rnl_op_dft_pass(rnl_step_list *list, const rnl_dft *dft, size_t pass, const rnl_view *src,
                           const rnl_view *table, const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){src, table, dst}, 3, &index64), "operands of a Fourier transform");
    TRY(check(dft, src, table, dst));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    rnl_dims_select(&dims, (const rnl_view *[]){dst, src}, 2, (1u << (src->rank - 2)) - 1);
    const size_t rows = (size_t)rnl_dims_elements(&dims), outputs = (size_t)dst->shape[dst->rank - 2];
    rnl_step_begin(&step, list, "dft:portable", index64);
    rnl_step_type(&step, "T_SRC", src->dtype);
    rnl_step_type(&step, "T_DST", dst->dtype);
    rnl_step_type(&step, "T_TABLE", table->dtype);
    int64_t radices[RNL_DFT_MAX_PASSES];
    if (table->dtype == RNL_F32 && rnl_dft_radices(dft->points, radices) == 1)
        rnl_step_define(&step, "EXACT");
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, table);
    add_pass(&step, dft, pass, src, dst);
    rnl_step_index(&step, (int64_t)rows);
    rnl_step_int(&step, dims.rank > 3);
    rnl_step_dims(&step, dims.shape, dims.rank, 1);
    rnl_step_dims(&step, dims.stride[0], dims.rank, 0);
    rnl_step_dims(&step, dims.stride[1], dims.rank, 0);
    const size_t high = rows > 65535 ? (rows + 65534) / 65535 : 1;
    rnl_step_range(&step, 3, (size_t[3]){outputs, (rows + high - 1) / high, high}, (size_t[3]){64, 1, 1});
    step.step.bytes = (uint64_t)rnl_view_elements(src) * rnl_dtype_bytes(src->dtype) +
                      (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "dft.cl", "dft_pass");
}
