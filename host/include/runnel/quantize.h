/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static quantisation: an 8-bit copy of a model, in which QuantizeLinear and DequantizeLinear stand around what is
 * computed on integers. The ranges of the values between come from runs on inputs like those that the model will see:
 *
 *     rnl_quantizer_open("model.onnx", NULL, &quantizer);
 *     rnl_quantizer_build(quantizer, RNL_QUANTIZER_FLOAT, RNL_QUANTIZER_ALL, &data, &bytes);
 *     ... rnl_graph_load_memory(data, bytes, &graph), open it, and for each set of inputs run it for all its outputs:
 *         rnl_quantizer_observe(quantizer, inputs, input_count);
 *         rnl_quantizer_observe(quantizer, outputs, output_count);
 *     rnl_quantizer_write(quantizer, "model-int8.onnx");
 *
 * The conventions of runnel/rt.h hold here too. One caller at a time.
 */
#ifndef RUNNEL_QUANTIZE_H
#define RUNNEL_QUANTIZE_H

#include <runnel/runnel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_quantizer rnl_quantizer;

typedef enum rnl_quantizer_ranges {
    RNL_RANGES_MIN_MAX,    /* all values that were seen */
    RNL_RANGES_PERCENTILE, /* all but the outermost few on either side */
    RNL_RANGES_MSE         /* the range with the least squared error over what was seen */
} rnl_quantizer_ranges;

typedef struct rnl_quantizer_options {
    size_t struct_size;
    rnl_quantizer_ranges ranges;
    double percentile;       /* of RNL_RANGES_PERCENTILE: so many of 100 values lie inside; 0 = 99.99 */
    bool signed_activations; /* int8 between layers instead of uint8 */
} rnl_quantizer_options;
#define RNL_QUANTIZER_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(rnl_quantizer_options), RNL_RANGES_MIN_MAX, 0, false                                                    \
    }

/*
 * Reads an ONNX file of opset 9 or later and finds what can be computed on 8-bit integers. RNL_FAILED_PRECONDITION when
 * the model is quantised already or holds nothing that can be. The file must not be written to meanwhile.
 */
RNL_API RNL_NODISCARD rnl_status rnl_quantizer_open(const char *path, const rnl_quantizer_options *options,
                                                    rnl_quantizer **out_quantizer);
RNL_API void rnl_quantizer_release(rnl_quantizer *quantizer);

/* A convolution or a product with constant weights. */
typedef struct rnl_quantizer_layer {
    const char *name; /* the node's, else its output's */
    const char *op_type;
    size_t output; /* which output of a model built with RNL_QUANTIZER_FLOAT or _INTEGERS is what it computes */
    bool is_kept;  /* in float32 */
} rnl_quantizer_layer;
/* In the file's order. Borrowed, valid as long as the quantizer. */
RNL_API const rnl_quantizer_layer *rnl_quantizer_layers(const rnl_quantizer *quantizer, size_t *out_count);
/* Keeps a layer in float32, or has it quantised again. */
RNL_API void rnl_quantizer_keep(rnl_quantizer *quantizer, size_t layer, bool is_kept);

typedef enum rnl_quantizer_form {
    RNL_QUANTIZER_FLOAT,    /* in float32; behind its own outputs are those whose ranges are wanted */
    RNL_QUANTIZER_INTEGERS, /* quantised, with the same outputs, each as the model goes on with it */
    RNL_QUANTIZER_FILE      /* quantised, as rnl_quantizer_write writes it */
} rnl_quantizer_form;
#define RNL_QUANTIZER_ALL SIZE_MAX
/*
 * Builds a model as the bytes of an ONNX file. `only`: with this layer quantised alone, kept or not; or
 * RNL_QUANTIZER_ALL: each layer that is not kept. Quantised ones come after observing: RNL_FAILED_PRECONDITION before.
 * RNL_RESOURCE_EXHAUSTED beyond 2 GiB, which is what such a file can hold. Free with rnl_quantizer_free.
 */
RNL_API RNL_NODISCARD rnl_status rnl_quantizer_build(rnl_quantizer *quantizer, rnl_quantizer_form form, size_t only,
                                                     void **out_data, size_t *out_bytes);
RNL_API void rnl_quantizer_free(void *data);

/*
 * Widens ranges by the float32 tensors (in host memory) that have one of the wanted names; others are passed over. NaN
 * and infinity are RNL_INVALID_ARGUMENT, and the message names the value.
 */
RNL_API RNL_NODISCARD rnl_status rnl_quantizer_observe(rnl_quantizer *quantizer, const rnl_tensor *tensors,
                                                       size_t count);
/*
 * For every other kind of ranges than RNL_RANGES_MIN_MAX: counts how often which value occurs, in a second pass over
 * the same tensors, when all have been observed.
 */
RNL_API RNL_NODISCARD rnl_status rnl_quantizer_count(rnl_quantizer *quantizer, const rnl_tensor *tensors, size_t count);

/* Builds RNL_QUANTIZER_FILE and puts it in the place of `path`: either all of it is there afterwards, or nothing new.
 */
RNL_API RNL_NODISCARD rnl_status rnl_quantizer_write(rnl_quantizer *quantizer, const char *path);

#ifdef __cplusplus
}
#endif
#endif
