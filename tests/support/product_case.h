/* SPDX-License-Identifier: Apache-2.0 */
/* One product of <runnel/gemm.h>, run and compared with a float64 (integers: exact) reference. */
#ifndef RUNNEL_TESTS_PRODUCT_CASE_H
#define RUNNEL_TESTS_PRODUCT_CASE_H

#include <runnel/gemm.h>

typedef struct product_case {
    rnl_gemm_desc desc; /* struct_size 0: set by the run, as are types */
    bool packed_a, packed_b;
    bool scattered; /* batches by arrays of offsets */
    bool once;      /* rnl_gemm_run instead of an object */
    bool nan_c;     /* what stands in c is NaN: it must not be read */
    rnl_memory memory;
    const float *alpha, *beta; /* in place of the description's */
} product_case;

/* A product of these sizes: each order, both transpositions, leading dimensions, factors. */
#define PRODUCT_LAYOUTS 32
product_case product_case_layout(unsigned form, int64_t m, int64_t n, int64_t k);

/* RNL_OK, or the status with which making or running it was refused; values are checked. */
rnl_status product_case_try(rnl_device *device, const product_case *test);
/* The same, which must succeed. */
void product_case_run(rnl_device *device, const product_case *test);

/* Operands for a description, filled with random values, and c checked after a product. */
typedef struct product_data product_data;
product_data *product_data_create(rnl_device *device, rnl_stream *stream, const product_case *test);
const rnl_gemm_operands *product_data_operands(const product_data *data);
/* Packs what the case says; an object of its description. */
rnl_status product_data_pack(product_data *data, rnl_gemm *gemm);
/* Reads c back and compares all of its memory. */
void product_data_check(product_data *data);
/* Synchronises the stream. */
void product_data_release(product_data *data);

#endif
