/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products to be measured: their shapes and operands, and a CPU's BLAS. */
#ifndef RUNNEL_CLI_BENCH_GEMM_H
#define RUNNEL_CLI_BENCH_GEMM_H

#include "subject.h"

#include <runnel/gemm.h>

typedef enum rnl_product_type { RNL_PRODUCT_F32, RNL_PRODUCT_F16, RNL_PRODUCT_BF16, RNL_PRODUCT_I8 } rnl_product_type;
#define RNL_PRODUCT_TYPES 4
extern const char *const rnl_product_type_names[RNL_PRODUCT_TYPES];

#define RNL_MOST_PRODUCTS 64
/* Which ones: what bench and tune share of their options. */
typedef struct rnl_products {
    rnl_gemm_desc descs[RNL_MOST_PRODUCTS]; /* row-major, dense */
    size_t count;
    bool types[RNL_PRODUCT_TYPES]; /* asked for; none: f32 */
} rnl_products;

/* "128x384x1536": M x N x K, of every type asked for. */
rnl_exit rnl_products_add(rnl_products *products, const char *command, const char *shape);
/* "f32", "bf16"; may be given several times. */
rnl_exit rnl_products_add_type(rnl_products *products, const char *command, const char *type);
/* All shapes (the usual ones if none was given) with all types, as descriptions. */
size_t rnl_products_list(const rnl_products *products, rnl_gemm_desc *out_descs, size_t capacity);
rnl_product_type rnl_product_type_of(const rnl_gemm_desc *desc);

/* One product on the device, ready to run again and again. */
typedef struct rnl_product_run {
    rnl_stream *stream;
    rnl_gemm *gemm;
    rnl_packed *packed;
    rnl_gemm_operands operands;
} rnl_product_run;

/* Fills operands with numbers of usual sizes; packs b when asked to. Released on failure too. */
rnl_status rnl_product_create(rnl_device *device, const rnl_gemm_desc *desc, bool packed, rnl_product_run *out_run);
void rnl_product_release(rnl_product_run *run);
/* For rnl_measured; `user` is a rnl_product_run. */
rnl_status rnl_product_enqueue(void *user);
rnl_status rnl_product_finish(void *user);
/* Enqueues and waits. */
rnl_status rnl_product_call(void *user);

/* A BLAS in a shared library. */
typedef struct rnl_blas rnl_blas;
/* `file` NULL: RUNNEL_BLAS, else OpenBLAS where it is installed. NULL in *out_blas: there is none, and none was named.
 */
rnl_exit rnl_blas_open(const char *file, uint32_t threads, rnl_blas **out_blas);
void rnl_blas_close(rnl_blas *blas);
const char *rnl_blas_name(const rnl_blas *blas);
/* c = a * b, dense and row-major, in f32. */
void rnl_blas_multiply(const rnl_blas *blas, int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);

#endif
