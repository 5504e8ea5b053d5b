/* SPDX-License-Identifier: Apache-2.0 */
#include "support/product_case.h"
#include "support/op_values.h"
#include "support/test_device.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 7 /* elements before and behind */

typedef struct operand {
    rnl_dtype dtype;
    int64_t rows, columns, row_step, column_step, span, batch_step, elements;
    int64_t *offsets; /* of each product's matrix, from GUARD on */
    unsigned char *data;
    rnl_buffer *buffer;
} operand;

struct product_data {
    product_case test;
    rnl_gemm_desc desc;
    rnl_device *device;
    rnl_stream *stream;
    operand a, b, c, residual, bias, scales;
    rnl_gemm_operands operands;
    rnl_packed *packed_a, *packed_b;
    bool integers;
};

static double read_value(const operand *it, int64_t at)
{
    const op_value value = op_decode(it->dtype, it->data + (size_t)at * rnl_dtype_bytes(it->dtype));
    return op_is_float(it->dtype) ? value.f : (double)value.i;
}

static void write_value(operand *it, int64_t at, double value)
{
    op_encode(it->dtype, op_is_float(it->dtype) ? op_float(value) : op_int((int64_t)value),
              it->data + (size_t)at * rnl_dtype_bytes(it->dtype));
}

static int64_t place(const operand *it, int64_t product, int64_t row, int64_t column)
{
    return GUARD + it->offsets[product] + row * it->row_step + column * it->column_step;
}

/* Steps of eighths, which every type holds; integers use their range. */
static double random_value(rnl_dtype dtype)
{
    if (dtype == RNL_U8)
        return (double)(op_random() % 256);
    if (dtype == RNL_I8)
        return (double)(op_random() % 256) - 128;
    return ((double)(op_random() % 33) - 16) / (op_is_float(dtype) ? 8 : 1);
}

/* How matrices lie, from the meaning of BLAS's arguments alone. */
static void lay(operand *it, const rnl_gemm_desc *desc, bool transposed, int64_t ld, int64_t stride, bool scattered)
{
    const bool row_lines = (desc->order == RNL_GEMM_ROW_MAJOR) == !transposed;
    const int64_t line = row_lines ? it->columns : it->rows, lines = row_lines ? it->rows : it->columns;
    ld = ld ? ld : line;
    it->row_step = row_lines ? ld : 1;
    it->column_step = row_lines ? 1 : ld;
    it->span = lines && line ? (lines - 1) * ld + line : 0;
    it->batch_step = stride == RNL_GEMM_SHARED ? 0 : stride ? stride : lines * ld;
    const int64_t batch = desc->batch ? desc->batch : 1;
    it->offsets = calloc((size_t)batch, sizeof *it->offsets);
    for (int64_t i = 0; i < batch; i++)
        it->offsets[i] = scattered && it->batch_step ? (batch - 1 - i) * (it->span + 3) : i * it->batch_step;
    it->elements = it->span + 2 * GUARD;
    for (int64_t i = 0; i < batch; i++)
        it->elements =
            it->offsets[i] + it->span + 2 * GUARD > it->elements ? it->offsets[i] + it->span + 2 * GUARD : it->elements;
}

static void fill(product_data *data, operand *it, double constant, bool is_constant)
{
    const size_t bytes = rnl_dtype_bytes(it->dtype);
    it->data = malloc((size_t)it->elements * bytes);
    for (int64_t i = 0; i < it->elements; i++)
        write_value(it, i, is_constant ? constant : random_value(it->dtype));
    test_ok(rnl_buffer_create(data->device, data->test.memory, (size_t)it->elements * bytes, &it->buffer));
    if (rnl_buffer_host(it->buffer))
        memcpy(rnl_buffer_host(it->buffer), it->data, (size_t)it->elements * bytes);
    else
        test_ok(rnl_stream_write(data->stream, it->buffer, 0, it->data, (size_t)it->elements * bytes));
    test_ok(rnl_stream_synchronize(data->stream));
}

static void make_vector(product_data *data, operand *it, rnl_dtype dtype, int64_t elements)
{
    *it = (operand){.dtype = dtype, .rows = 1, .columns = elements, .column_step = 1};
    it->elements = elements + 2 * GUARD;
    it->offsets = calloc(1, sizeof *it->offsets);
    fill(data, it, 0, false);
}

static void make_scales(product_data *data)
{
    make_vector(data, &data->scales, RNL_F32, data->desc.n);
    for (int64_t i = 0; i < data->desc.n; i++)
        write_value(&data->scales, GUARD + i, ldexp(1, -3 - (int)(i % 5)));
    test_ok(rnl_stream_write(data->stream, data->scales.buffer, 0, data->scales.data,
                             (size_t)data->scales.elements * sizeof(float)));
    test_ok(rnl_stream_synchronize(data->stream));
}

static void set_operands(product_data *data)
{
    rnl_gemm_operands *o = &data->operands;
    *o = (rnl_gemm_operands)RNL_GEMM_OPERANDS_INIT;
    o->a = data->a.buffer, o->b = data->b.buffer, o->c = data->c.buffer;
    o->bias = data->bias.buffer, o->residual = data->residual.buffer, o->scales = data->scales.buffer;
    o->a_offset = o->b_offset = o->c_offset = o->bias_offset = o->residual_offset = o->scales_offset = GUARD;
    o->alpha = data->test.alpha, o->beta = data->test.beta;
    if (!data->test.scattered)
        return;
    o->a_offsets = data->test.packed_a ? NULL : data->a.offsets;
    o->b_offsets = data->test.packed_b ? NULL : data->b.offsets;
    o->c_offsets = data->c.offsets;
    o->residual_offsets = data->residual.offsets;
}

static rnl_dtype or_float(rnl_dtype dtype)
{
    return dtype ? dtype : RNL_F32;
}

product_data *product_data_create(rnl_device *device, rnl_stream *stream, const product_case *test)
{
    product_data *data = calloc(1, sizeof *data);
    const rnl_gemm_desc *d = &test->desc;
    data->device = device;
    data->test = *test;
    data->desc = *d;
    data->stream = rnl_stream_retain(stream);
    data->a = (operand){.dtype = or_float(d->a_type), .rows = d->m, .columns = d->k};
    data->b = (operand){.dtype = or_float(d->b_type), .rows = d->k, .columns = d->n};
    data->c = (operand){.dtype = or_float(d->c_type), .rows = d->m, .columns = d->n};
    data->residual = data->c;
    data->integers = !op_is_float(data->a.dtype);
    lay(&data->a, d, d->transpose_a, d->lda, d->stride_a, test->scattered);
    lay(&data->b, d, d->transpose_b, d->ldb, d->stride_b, test->scattered);
    lay(&data->c, d, false, d->ldc, d->stride_c, test->scattered);
    lay(&data->residual, d, false, d->ld_residual, d->stride_residual, test->scattered);
    fill(data, &data->a, 0, false);
    fill(data, &data->b, 0, false);
    fill(data, &data->c, NAN, test->nan_c);
    if (d->residual)
        fill(data, &data->residual, 0, false);
    if (d->bias)
        make_vector(data, &data->bias, data->integers && data->c.dtype != RNL_F32 ? RNL_I32 : data->c.dtype,
                    d->bias == RNL_GEMM_BIAS_COLUMNS ? d->n : d->m);
    if (data->integers && data->c.dtype != RNL_I32 && d->scale == 0)
        make_scales(data);
    set_operands(data);
    return data;
}

const rnl_gemm_operands *product_data_operands(const product_data *data)
{
    return &data->operands;
}

rnl_status product_data_pack(product_data *data, rnl_gemm *gemm)
{
    rnl_status status = RNL_OK;
    if (data->test.packed_a)
        status = rnl_stream_gemm_pack(data->stream, gemm, RNL_GEMM_SIDE_A, &data->operands, &data->packed_a);
    if (data->test.packed_b && status == RNL_OK)
        status = rnl_stream_gemm_pack(data->stream, gemm, RNL_GEMM_SIDE_B, &data->operands, &data->packed_b);
    if (status != RNL_OK)
        return status;
    data->operands.packed_a = data->packed_a;
    data->operands.packed_b = data->packed_b;
    /* Nothing of the originals is read any more. */
    data->operands.a = data->packed_a ? NULL : data->operands.a;
    data->operands.b = data->packed_b ? NULL : data->operands.b;
    return RNL_OK;
}

/* ---- the reference -------------------------------------------------------------------------------------------- */

static double activate(rnl_gemm_activation activation, double x)
{
    switch (activation) {
    case RNL_GEMM_RELU:
        return x > 0 ? x : 0;
    case RNL_GEMM_GELU:
        return x / 2 * (1 + erf(x / sqrt(2)));
    case RNL_GEMM_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case RNL_GEMM_SILU:
        return x / (1 + exp(-x));
    case RNL_GEMM_LINEAR:
        break;
    }
    return x;
}

static double sum_terms(const product_data *data, int64_t product, int64_t row, int64_t column, double *sizes)
{
    const rnl_gemm_desc *d = &data->desc;
    double sum = 0;
    *sizes = 0;
    for (int64_t k = 0; k < d->k; k++) {
        const double term = (read_value(&data->a, place(&data->a, product, row, k)) - d->a_zero) *
                            (read_value(&data->b, place(&data->b, product, k, column)) - d->b_zero);
        sum += term;
        *sizes += fabs(term);
    }
    return sum;
}

static double bias_of(const product_data *data, int64_t row, int64_t column)
{
    if (!data->desc.bias)
        return 0;
    return read_value(&data->bias, GUARD + (data->desc.bias == RNL_GEMM_BIAS_COLUMNS ? column : row));
}

static double scale_of(const product_data *data, int64_t column)
{
    return data->desc.scale != 0 ? (double)data->desc.scale : read_value(&data->scales, GUARD + column);
}

static double expect_integer(const product_data *data, double sum, int64_t row, int64_t column)
{
    const double whole = sum + bias_of(data, row, column);
    if (data->c.dtype == RNL_I32)
        return whole;
    const double low = data->c.dtype == RNL_U8 ? 0 : -128, high = low + 255;
    const double value = rint(whole * scale_of(data, column)) + data->desc.c_zero;
    return value < low ? low : value > high ? high : value;
}

/* *bound: how far from it a right result may be. */
static double expect(const product_data *data, int64_t product, int64_t row, int64_t column, double *bound)
{
    const rnl_gemm_desc *d = &data->desc;
    const double alpha = (double)(data->test.alpha ? *data->test.alpha : d->alpha);
    const double beta = (double)(data->test.beta ? *data->test.beta : d->beta);
    double sizes, x = alpha == 0 ? 0 : sum_terms(data, product, row, column, &sizes);
    *bound = 0;
    if (data->integers && data->c.dtype != RNL_F32)
        return expect_integer(data, x, row, column);
    if (alpha == 0)
        sizes = 0;
    const double factor = data->integers ? scale_of(data, column) : alpha;
    x *= factor;
    sizes *= fabs(factor);
    if (beta != 0)
        x += beta * read_value(&data->c, place(&data->c, product, row, column));
    x += bias_of(data, row, column);
    if (d->residual)
        x += read_value(&data->residual, place(&data->residual, product, row, column));
    const double result = activate(d->activation, x), step = data->c.dtype == RNL_F16    ? 0x1p-11
                                                             : data->c.dtype == RNL_BF16 ? 0x1p-8
                                                                                         : 0x1p-23;
    *bound = 4e-7 * (sizes + fabs(x) + 1) + step * fabs(result);
    return result;
}

static void check_element(const product_data *data, const operand *got, int64_t product, int64_t row, int64_t column)
{
    double bound;
    const double expected = expect(data, product, row, column, &bound);
    const double value = read_value(got, place(got, product, row, column));
    if (!(fabs(value - expected) <= bound) && !(isnan(value) && isnan(expected)))
        ck_abort_msg("product %lld, row %lld, column %lld is %.9g instead of %.9g, by more than %g (m %lld n %lld k "
                     "%lld)",
                     (long long)product, (long long)row, (long long)column, value, expected, bound,
                     (long long)data->desc.m, (long long)data->desc.n, (long long)data->desc.k);
}

/* What is no element of c is as it was. */
static void check_guards(const product_data *data, operand *got)
{
    const size_t bytes = rnl_dtype_bytes(got->dtype);
    const int64_t batch = data->desc.batch ? data->desc.batch : 1;
    for (int64_t product = 0; product < batch; product++)
        for (int64_t row = 0; row < data->desc.m; row++)
            for (int64_t column = 0; column < data->desc.n; column++) {
                const size_t at = (size_t)place(got, product, row, column) * bytes;
                memcpy(got->data + at, data->c.data + at, bytes);
            }
    ck_assert_msg(memcmp(got->data, data->c.data, (size_t)got->elements * bytes) == 0,
                  "something around the results was written");
}

void product_data_check(product_data *data)
{
    operand got = data->c;
    const size_t bytes = (size_t)got.elements * rnl_dtype_bytes(got.dtype);
    const int64_t batch = data->desc.batch ? data->desc.batch : 1;
    got.data = malloc(bytes);
    test_ok(rnl_stream_read(data->stream, got.data, data->c.buffer, 0, bytes));
    test_ok(rnl_stream_synchronize(data->stream));
    for (int64_t product = 0; product < batch; product++)
        for (int64_t row = 0; row < data->desc.m; row++)
            for (int64_t column = 0; column < data->desc.n; column++)
                check_element(data, &got, product, row, column);
    check_guards(data, &got);
    free(got.data);
}

void product_data_release(product_data *data)
{
    operand *all[] = {&data->a, &data->b, &data->c, &data->residual, &data->bias, &data->scales};
    (void)!rnl_stream_synchronize(data->stream);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rnl_buffer_release(all[i]->buffer);
        free(all[i]->offsets);
        free(all[i]->data);
    }
    rnl_packed_release(data->packed_a);
    rnl_packed_release(data->packed_b);
    rnl_stream_release(data->stream);
    free(data);
}

product_case product_case_layout(unsigned form, int64_t m, int64_t n, int64_t k)
{
    const bool column_major = form & 1, a_turned = form & 2, b_turned = form & 4, gaps = form & 8;
    product_case test = {.desc = {.order = column_major ? RNL_GEMM_COLUMN_MAJOR : RNL_GEMM_ROW_MAJOR,
                                  .transpose_a = a_turned,
                                  .transpose_b = b_turned,
                                  .m = m,
                                  .n = n,
                                  .k = k,
                                  .alpha = form & 16 ? 0.5F : 1,
                                  .beta = form & 16 ? 2.0F : 0},
                         .nan_c = !(form & 16)};
    if (gaps) {
        test.desc.lda = (column_major == a_turned ? k : m) + 3;
        test.desc.ldb = (column_major == b_turned ? n : k) + 5;
        test.desc.ldc = (column_major ? m : n) + 2;
    }
    return test;
}

rnl_status product_case_try(rnl_device *device, const product_case *given)
{
    product_case test = *given;
    rnl_stream *stream = NULL;
    rnl_gemm *gemm = NULL;
    test.desc.struct_size = sizeof test.desc;
    op_looked();
    test_ok(rnl_stream_create(device, &stream));
    product_data *data = product_data_create(device, stream, &test);
    rnl_status status = test.once ? RNL_OK : rnl_gemm_create(device, &test.desc, &gemm);
    if (status == RNL_OK && gemm)
        status = product_data_pack(data, gemm);
    if (status == RNL_OK)
        status =
            gemm ? rnl_stream_gemm(stream, gemm, &data->operands) : rnl_gemm_run(stream, &test.desc, &data->operands);
    if (status == RNL_OK)
        product_data_check(data);
    const rnl_error error = *rnl_last_error();
    product_data_release(data);
    rnl_gemm_release(gemm);
    rnl_stream_release(stream);
    if (status != RNL_OK)
        fprintf(stderr, "%s\n", error.message);
    return status;
}

void product_case_run(rnl_device *device, const product_case *test)
{
    if (op_chosen())
        ck_assert_int_eq(product_case_try(device, test), RNL_OK);
}
