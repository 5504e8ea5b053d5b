/* SPDX-License-Identifier: Apache-2.0 */
#include "support/small_model.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const float small_weight[SMALL_INPUTS][SMALL_OUTPUTS] = {{1, -2, 0.5f, 3}, {-1, 4, 0.25f, -3}, {2, 1, -0.125f, 0}};
const float small_bias[SMALL_OUTPUTS] = {0.5f, -1, 2, -0.75f};

enum { FLOAT32 = 1, OPSET = 13 };

proto small_model(void)
{
    proto graph = {0};
    proto weight =
        onnx_tensor_raw("w", FLOAT32, 2, (int64_t[]){SMALL_INPUTS, SMALL_OUTPUTS}, small_weight, sizeof small_weight);
    proto bias = onnx_tensor_raw("b", FLOAT32, 1, (int64_t[]){SMALL_OUTPUTS}, small_bias, sizeof small_bias);
    onnx_node(&graph, "MatMul", "product", "x w", "xw", NULL);
    onnx_node(&graph, "Add", "sum", "xw b", "xwb", NULL);
    onnx_node(&graph, "Relu", "relu", "xwb", "y", NULL);
    proto_message(&graph, GRAPH_INITIALIZER, &weight);
    proto_message(&graph, GRAPH_INITIALIZER, &bias);
    onnx_value(&graph, GRAPH_INPUT, "x", FLOAT32, 2, (int64_t[]){-1, SMALL_INPUTS});
    onnx_value(&graph, GRAPH_OUTPUT, "y", FLOAT32, 2, (int64_t[]){-1, SMALL_OUTPUTS});
    return onnx_model(&graph, OPSET);
}

proto small_chain(int64_t n, int count)
{
    proto graph = {0};
    char names[64], output[32];
    float *values = calloc((size_t)(n * n), sizeof *values);
    for (int64_t i = 0; values && i < n * n; i++)
        values[i] = 1.0f / (float)n;
    proto weight = onnx_tensor_raw("w", FLOAT32, 2, (int64_t[]){n, n}, values, (size_t)(n * n) * sizeof *values);
    free(values);
    for (int i = 0; i < count; i++) {
        snprintf(names, sizeof names, i ? "v%d w" : "x w", i);
        snprintf(output, sizeof output, i + 1 < count ? "v%d" : "y", i + 1);
        onnx_node(&graph, "MatMul", "", names, output, NULL);
    }
    proto_message(&graph, GRAPH_INITIALIZER, &weight);
    onnx_value(&graph, GRAPH_INPUT, "x", FLOAT32, 2, (int64_t[]){n, n});
    onnx_value(&graph, GRAPH_OUTPUT, "y", FLOAT32, 2, (int64_t[]){n, n});
    return onnx_model(&graph, OPSET);
}

proto small_layers(int64_t n, int count)
{
    proto graph = {0};
    char name[32], names[64], output[32];
    for (int i = 0; i < count; i++) {
        float *values = calloc((size_t)(n * n), sizeof *values);
        for (int64_t j = 0; values && j < n; j++) {
            values[j * n + (j + 1) % n] = 1;
            values[j * n + j] = (float)(i + 1) / 64;
        }
        snprintf(name, sizeof name, "w%d", i);
        proto weight = onnx_tensor_raw(name, FLOAT32, 2, (int64_t[]){n, n}, values, (size_t)(n * n) * sizeof *values);
        free(values);
        proto_message(&graph, GRAPH_INITIALIZER, &weight);
        if (i > 0)
            snprintf(names, sizeof names, "v%d w%d", i, i);
        else
            snprintf(names, sizeof names, "x w0");
        snprintf(output, sizeof output, i + 1 < count ? "v%d" : "y", i + 1);
        onnx_node(&graph, "MatMul", "", names, output, NULL);
    }
    onnx_value(&graph, GRAPH_INPUT, "x", FLOAT32, 2, (int64_t[]){-1, n});
    onnx_value(&graph, GRAPH_OUTPUT, "y", FLOAT32, 2, (int64_t[]){-1, n});
    return onnx_model(&graph, OPSET);
}

void small_layers_compute(int64_t n, int count, const float *x, int64_t rows, double *out)
{
    double *now = malloc((size_t)n * sizeof *now);
    ck_assert_ptr_nonnull(now);
    for (int64_t row = 0; row < rows; row++) {
        double *to = out + row * n;
        for (int64_t column = 0; column < n; column++)
            to[column] = (double)x[row * n + column];
        for (int layer = 0; layer < count; layer++) {
            memcpy(now, to, (size_t)n * sizeof *now);
            for (int64_t column = 0; column < n; column++)
                to[column] = now[(column + n - 1) % n] + now[column] * (layer + 1) / 64;
        }
    }
    free(now);
}
