/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A layer of a network: y = gelu(x w + bias), in one call; then with the weights packed beforehand. Both give the same,
 * which a plain loop confirms.
 */
#include <math.h>
#include <runnel/gemm.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 32, INPUTS = 96, OUTPUTS = 80 };

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != RNL_OK) {                                                                                        \
            fprintf(stderr, "%s\n", rnl_last_error()->message);                                                        \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static float x[ROWS][INPUTS], w[INPUTS][OUTPUTS], bias[OUTPUTS], y[ROWS][OUTPUTS];

static rnl_buffer *upload(rnl_stream *stream, rnl_device *device, const void *data, size_t bytes)
{
    rnl_buffer *buffer;
    CHECK(rnl_buffer_create(device, RNL_MEMORY_DEVICE, bytes, &buffer));
    CHECK(rnl_stream_write(stream, buffer, 0, data, bytes));
    return buffer;
}

/* The largest difference between y and what it should be. */
static double check(rnl_stream *stream, rnl_buffer *from)
{
    double worst = 0;
    CHECK(rnl_stream_read(stream, y, from, 0, sizeof y));
    CHECK(rnl_stream_synchronize(stream));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < OUTPUTS; j++) {
            double sum = bias[j];
            for (int k = 0; k < INPUTS; k++)
                sum += (double)x[i][k] * (double)w[k][j];
            worst = fmax(worst, fabs(sum / 2 * (1 + erf(sum / sqrt(2))) - (double)y[i][j]));
        }
    return worst;
}

int main(void)
{
    rnl_device *device;
    rnl_stream *stream;
    for (int k = 0; k < INPUTS; k++) {
        for (int i = 0; i < ROWS; i++)
            x[i][k] = sinf((float)(i + k));
        for (int j = 0; j < OUTPUTS; j++)
            w[k][j] = cosf((float)(k - 2 * j)) / 8;
    }
    for (int j = 0; j < OUTPUTS; j++)
        bias[j] = (float)j / OUTPUTS;
    CHECK(rnl_device_open(NULL, NULL, &device));
    CHECK(rnl_stream_create(device, &stream));

    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    desc.m = ROWS, desc.n = OUTPUTS, desc.k = INPUTS;
    desc.bias = RNL_GEMM_BIAS_COLUMNS;
    desc.activation = RNL_GEMM_GELU;
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    operands.a = upload(stream, device, x, sizeof x);
    operands.b = upload(stream, device, w, sizeof w);
    operands.bias = upload(stream, device, bias, sizeof bias);
    operands.c = upload(stream, device, y, sizeof y);

    CHECK(rnl_gemm_run(stream, &desc, &operands));
    printf("in one call: differs by at most %.0e\n", check(stream, operands.c));

    rnl_gemm *gemm;
    rnl_packed *packed;
    rnl_gemm_info info;
    CHECK(rnl_gemm_create(device, &desc, &gemm));
    CHECK(rnl_stream_gemm_pack(stream, gemm, RNL_GEMM_SIDE_B, &operands, &packed));
    operands.packed_b = packed;
    CHECK(rnl_stream_gemm(stream, gemm, &operands));
    rnl_gemm_get_info(gemm, &info);
    const double worst = check(stream, operands.c);
    printf("packed, by %s: differs by at most %.0e\n", info.implementation, worst);

    rnl_packed_release(packed);
    rnl_gemm_release(gemm);
    rnl_buffer_release(operands.a);
    rnl_buffer_release(operands.b);
    rnl_buffer_release(operands.bias);
    rnl_buffer_release(operands.c);
    rnl_stream_release(stream);
    rnl_device_release(device);
    return worst < 1e-4 ? 0 : 1;
}
