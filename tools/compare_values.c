/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"
#include "values.h"

#include <math.h>
#include <string.h>

double rnl_difference_bound(rnl_dtype dtype, double expected)
{
    const double relative = dtype == RNL_BF16 ? 0x1p-6 : dtype == RNL_F16 ? 0x1p-9 : 1e-3;
    return 1e-4 + relative * fabs(expected);
}

/* Types that the reference's files cannot hold come as float32. */
static bool types_agree(rnl_dtype got, rnl_dtype expected)
{
    return got == expected || (expected == RNL_F32 && rnl_dtype_is_float(got));
}

static bool shapes_agree(const rnl_tensor *got, const rnl_tensor *expected)
{
    return got->rank == expected->rank && memcmp(got->shape, expected->shape, got->rank * sizeof *got->shape) == 0;
}

static bool is_equal(double got, double expected)
{
    return got == expected || (isnan(got) && isnan(expected));
}

typedef struct sums {
    double error, power;
} sums;

static void add_float(rnl_difference *found, rnl_dtype dtype, double got, double expected, sums *sum)
{
    if (is_equal(got, expected)) {
        sum->power += isfinite(expected) ? expected * expected : 0;
        return;
    }
    const double error = isfinite(got) && isfinite(expected) ? fabs(got - expected) : INFINITY;
    const double excess = error / rnl_difference_bound(dtype, isfinite(expected) ? expected : 0);
    found->wrong += excess > 1;
    found->excess = fmax(found->excess, excess);
    found->absolute = fmax(found->absolute, error);
    if (expected != 0)
        found->relative = fmax(found->relative, isfinite(error) ? error / fabs(expected) : INFINITY);
    sum->error += error * error;
    sum->power += isfinite(expected) ? expected * expected : 0;
}

static void add_whole(rnl_difference *found, long double got, long double expected)
{
    if (got == expected)
        return;
    found->wrong++;
    found->excess = INFINITY;
    found->absolute = fmax(found->absolute, (double)fabsl(got - expected));
    if (expected != 0)
        found->relative = fmax(found->relative, (double)fabsl((got - expected) / expected));
}

void rnl_difference_find(const rnl_tensor *got, const rnl_tensor *expected, rnl_difference *out_difference)
{
    sums sum = {0, 0};
    size_t bytes;
    *out_difference = (rnl_difference){.is_there = got->data && expected->data};
    if (!out_difference->is_there || !types_agree(got->dtype, expected->dtype) || !shapes_agree(got, expected) ||
        !rnl_values_bytes(got->dtype, got->shape, got->rank, &out_difference->count, &bytes)) {
        out_difference->excess = out_difference->is_there ? INFINITY : 0;
        return;
    }
    out_difference->same_shape = true;
    for (size_t i = 0; i < out_difference->count; i++) {
        const long double a = rnl_values_load(got->dtype, got->data, i);
        const long double b = rnl_values_load(expected->dtype, expected->data, i);
        if (rnl_dtype_is_float(got->dtype))
            add_float(out_difference, got->dtype, (double)a, (double)b, &sum);
        else
            add_whole(out_difference, a, b);
    }
    out_difference->nmse = sum.error == 0 ? 0 : sum.error / sum.power;
}
