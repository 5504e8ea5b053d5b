/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that follow from a few numbers: HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* The one element of input `index`, which must be known, as a double. */
static rnl_status read_number(const rnl_op_context *context, size_t index, const char *what, double *out_value)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    if (rnl_desc_elements(input) != 1 || input->rank > 1)
        return FAIL(RNL_INVALID_ARGUMENT, "%s (input %zu) of %s must be a scalar", what, index, context->node->op_type);
    if (!input->host)
        return FAIL(RNL_FAILED_PRECONDITION, "the contents of %s (input %zu) are not known while planning", what,
                    index);
    *out_value = rnl_number_double(rnl_element_load(input->host, 0, input->dtype), input->dtype);
    return RNL_OK;
}

static rnl_status read_size(const rnl_op_context *context, size_t index, const char *what, double least,
                            int64_t *out_value)
{
    double value = 0;
    TRY(rnl_check_dtype(context, index, RNL_TYPE_BIT(RNL_I32) | RNL_TYPE_BIT(RNL_I64)));
    TRY(read_number(context, index, what, &value));
    if (value < least || value > INT32_MAX)
        return FAIL(RNL_INVALID_ARGUMENT, "%s (input %zu) of %s is %g", what, index, context->node->op_type, value);
    *out_value = (int64_t)value;
    return RNL_OK;
}

static rnl_status output_type(const rnl_op_context *context, rnl_dtype *out_dtype)
{
    int64_t code = rnl_node_int(context->node, "output_datatype", RNL_F32);
    bool known = code > 0 && code < 32 && (RNL_TYPES_NUMERIC >> code & 1);
    *out_dtype = known ? (rnl_dtype)code : RNL_F32;
    return known ? RNL_OK
                 : FAIL(RNL_INVALID_ARGUMENT, "attribute 'output_datatype' of %s is %" PRId64, context->node->op_type,
                        code);
}

static void store(void *data, int64_t index, rnl_dtype dtype, double value)
{
    rnl_element_store(data, index, dtype, rnl_number_convert((rnl_number){.f = value}, RNL_F64, dtype));
}

/* ---- windows -------------------------------------------------------------------------------------------------- */

/* Sums of cosines of the sample's turn: constant, first and second. */
static const double *coefficients(const char *op_type)
{
    static const double hann[] = {0.5, 0.5, 0}, hamming[] = {25. / 46, 21. / 46, 0}, blackman[] = {0.42, 0.5, 0.08};
    return strcmp(op_type, "HannWindow") == 0 ? hann : strcmp(op_type, "HammingWindow") == 0 ? hamming : blackman;
}

rnl_status rnl_infer_window(rnl_op_context *context)
{
    rnl_dtype dtype;
    int64_t size;
    TRY(rnl_infer_begin(context));
    TRY(output_type(context, &dtype));
    TRY(read_size(context, 0, "size", 0, &size));
    return rnl_output_set(context, 0, dtype, &size, 1);
}

static void fill_window(const rnl_op_context *context, void *data)
{
    const double *c = coefficients(context->node->op_type);
    const rnl_tensor_desc *output = &context->outputs[0];
    double turn = (double)(output->shape[0] - (rnl_node_int(context->node, "periodic", 1) != 0 ? 0 : 1));
    for (int64_t i = 0; i < output->shape[0]; i++) {
        double angle = 2 * PI * (double)i / turn;
        store(data, i, output->dtype, c[0] - c[1] * cos(angle) + c[2] * cos(2 * angle));
    }
}

/* ---- MelWeightMatrix ------------------------------------------------------------------------------------------ */

typedef struct mel {
    int64_t bins, length, rate, spectrum; /* spectrum: bins of the transform */
    double low, high;                     /* in mel */
} mel;

static double mel_of(double hertz)
{
    return 2595 * log1p(hertz / 700) / log(10);
}

static rnl_status resolve_mel(const rnl_op_context *context, mel *out)
{
    double low = 0, high = 0;
    TRY(read_size(context, 0, "num_mel_bins", 1, &out->bins));
    TRY(read_size(context, 1, "dft_length", 1, &out->length));
    TRY(read_size(context, 2, "sample_rate", 1, &out->rate));
    TRY(rnl_check_dtype(context, 3, RNL_TYPES_FLOAT_64));
    TRY(rnl_check_dtype(context, 4, RNL_TYPES_FLOAT_64));
    TRY(read_number(context, 3, "lower_edge_hertz", &low));
    TRY(read_number(context, 4, "upper_edge_hertz", &high));
    if (!(low >= 0 && high >= low && isfinite(high)))
        return FAIL(RNL_INVALID_ARGUMENT, "MelWeightMatrix from %g to %g hertz", low, high);
    out->spectrum = out->length / 2 + 1;
    out->low = mel_of(low);
    out->high = mel_of(high);
    return RNL_OK;
}

rnl_status rnl_infer_mel(rnl_op_context *context)
{
    rnl_dtype dtype;
    mel m;
    TRY(rnl_infer_begin(context));
    TRY(output_type(context, &dtype));
    TRY(resolve_mel(context, &m));
    return rnl_output_set(context, 0, dtype, (const int64_t[]){m.spectrum, m.bins}, 2);
}

/* The transform's bin in which edge `i` of the triangles lies; beyond the spectrum: the first one that is not there. */
static int64_t bin_of(const mel *m, int64_t i)
{
    double at = (double)i * (m->high - m->low) / (double)(m->bins + 2) + m->low;
    double hertz = 700 * expm1(at / 2595 * log(10)), bin = floor((double)(m->length + 1) * hertz / (double)m->rate);
    return bin < (double)m->spectrum ? (int64_t)bin : m->spectrum;
}

static rnl_status fill_mel(const rnl_op_context *context, void *data)
{
    const rnl_tensor_desc *output = &context->outputs[0];
    mel m;
    TRY(resolve_mel(context, &m));
    memset(data, 0, (size_t)rnl_desc_elements(output) * rnl_dtype_bytes(output->dtype));
    for (int64_t i = 0; i < m.bins; i++) {
        int64_t left = bin_of(&m, i), center = bin_of(&m, i + 1), right = bin_of(&m, i + 2);
        if (left == center && center < m.spectrum)
            store(data, center * m.bins + i, output->dtype, 1);
        for (int64_t j = left; j <= center && j < m.spectrum && left < center; j++)
            store(data, j * m.bins + i, output->dtype, (double)(j - left) / (double)(center - left));
        for (int64_t j = center; j < right; j++)
            store(data, j * m.bins + i, output->dtype, (double)(right - j) / (double)(right - center));
    }
    return RNL_OK;
}

rnl_status rnl_signal_table(const rnl_op_context *context, void *data)
{
    if (strcmp(context->node->op_type, "MelWeightMatrix") == 0)
        return fill_mel(context, data);
    fill_window(context, data);
    return RNL_OK;
}

rnl_status rnl_evaluate_signal_table(rnl_op_context *context)
{
    return rnl_signal_table(context, context->results[0]);
}
