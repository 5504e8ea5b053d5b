/* SPDX-License-Identifier: Apache-2.0 */
#include "outputs.h"
#include "small.h"
#include "values.h"

#include <math.h>

typedef struct summary {
    size_t count, nan_count;
    long double min, max, sum;
} summary;

static summary summarise(const rnl_tensor *output, size_t count)
{
    summary s = {count, 0, INFINITY, -INFINITY, 0};
    for (size_t i = 0; i < count; i++) {
        long double value = rnl_values_load(output->dtype, output->data, i);
        if (isnan(value)) {
            s.nan_count++;
            continue;
        }
        s.min = value < s.min ? value : s.min;
        s.max = value > s.max ? value : s.max;
        s.sum += value;
    }
    return s;
}

/* Integers in full. */
static void print_value(long double value, rnl_dtype dtype, FILE *out)
{
    if (isnan(value))
        fputs("nan", out);
    else if (rnl_dtype_is_float(dtype) || rnl_small_is_float(dtype))
        fprintf(out, "%.*Lg", dtype == RNL_F64 ? 15 : dtype == RNL_F32 ? 7 : 5, value);
    else
        fprintf(out, "%.0Lf", value);
}

void rnl_outputs_print(const rnl_tensor *output, FILE *out)
{
    char name[RNL_CLI_NAME_BYTES], shape[RNL_SHAPE_TEXT_BYTES];
    size_t count, bytes;
    if (!rnl_values_bytes(output->dtype, output->shape, output->rank, &count, &bytes))
        count = 0;
    summary s = summarise(output, count);
    size_t numbers = s.count - s.nan_count;
    fprintf(out, "%s: %s %s", rnl_cli_clean(output->name, name, sizeof name), rnl_dtype_name(output->dtype),
            rnl_shape_text(output->shape, NULL, output->rank, shape));
    if (numbers) {
        fputs(" min ", out);
        print_value(s.min, output->dtype, out);
        fputs(" max ", out);
        print_value(s.max, output->dtype, out);
        fputs(" mean ", out);
        print_value(s.sum / (long double)numbers, output->dtype == RNL_F32 ? RNL_F32 : RNL_F64, out);
    }
    if (s.nan_count)
        fprintf(out, " nan %zu", s.nan_count);
    fputs(s.count ? "\n" : " empty\n", out);
}
