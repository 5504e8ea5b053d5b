/* SPDX-License-Identifier: Apache-2.0 */
/* A CPU's BLAS beside ours: whichever OpenBLAS there is, also the one that numpy's packages carry. */
#include "bench_gemm.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MAJOR = 101, AS_IT_IS = 111 }; /* of cblas.h */

typedef void narrow_sgemm(int order, int a_form, int b_form, int m, int n, int k, float alpha, const float *a, int lda,
                          const float *b, int ldb, float beta, float *c, int ldc);
typedef void wide_sgemm(int order, int a_form, int b_form, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                        int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

struct rnl_blas {
    void *library;
    narrow_sgemm *narrow;
    wide_sgemm *wide;
    char name[128];
};

/* The ways in which OpenBLAS's functions are named; `wide` ones count in 64 bits. */
static const struct {
    const char *sgemm, *threads, *config;
    bool wide;
} forms[] = {
    {"scipy_cblas_sgemm64_", "scipy_openblas_set_num_threads64_", "scipy_openblas_get_config64_", true},
    {"cblas_sgemm64_", "openblas_set_num_threads64_", "openblas_get_config64_", true},
    {"scipy_cblas_sgemm", "scipy_openblas_set_num_threads", "scipy_openblas_get_config", false},
    {"cblas_sgemm", "openblas_set_num_threads", "openblas_get_config", false},
};

/* Functions and objects have different pointers in C; dlsym knows one kind. */
static bool find(void *library, const char *name, void *out_function)
{
    void *symbol = dlsym(library, name);
    memcpy(out_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool bind(rnl_blas *blas, uint32_t threads)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        void (*set_threads)(int) = NULL;
        const char *(*get_config)(void) = NULL;
        if (!(forms[i].wide ? find(blas->library, forms[i].sgemm, &blas->wide)
                            : find(blas->library, forms[i].sgemm, &blas->narrow)))
            continue;
        if (find(blas->library, forms[i].threads, &set_threads))
            set_threads((int)threads);
        if (find(blas->library, forms[i].config, &get_config))
            snprintf(blas->name, sizeof blas->name, "%s", get_config());
        return true;
    }
    return false;
}

rnl_exit rnl_blas_open(const char *file, uint32_t threads, rnl_blas **out_blas)
{
    static const char *const installed[] = {"libopenblas.so.0", "libopenblas64.so.0"};
    char clean[RNL_CLI_NAME_BYTES];
    rnl_blas blas = {.name = "BLAS"};
    *out_blas = NULL;
    file = file ? file : getenv("RUNNEL_BLAS");
    if (file && *file)
        blas.library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; !(file && *file) && !blas.library && i < sizeof installed / sizeof *installed; i++)
        blas.library = dlopen(installed[i], RTLD_NOW | RTLD_LOCAL);
    if (!blas.library && !(file && *file))
        return RNL_EXIT_DONE;
    if (!blas.library)
        return rnl_cli_fail("%s", rnl_cli_clean(dlerror(), clean, sizeof clean));
    if (!bind(&blas, threads)) {
        dlclose(blas.library);
        return rnl_cli_fail("%s has no cblas_sgemm", rnl_cli_clean(file ? file : "OpenBLAS", clean, sizeof clean));
    }
    *out_blas = malloc(sizeof **out_blas);
    if (!*out_blas)
        return rnl_cli_fail("out of memory");
    **out_blas = blas;
    return RNL_EXIT_DONE;
}

void rnl_blas_close(rnl_blas *blas)
{
    free(blas); /* the library stays: its threads do not survive their code */
}

const char *rnl_blas_name(const rnl_blas *blas)
{
    return blas->name;
}

void rnl_blas_multiply(const rnl_blas *blas, int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    if (blas->wide)
        blas->wide(ROW_MAJOR, AS_IT_IS, AS_IT_IS, m, n, k, 1, a, k, b, n, 0, c, n);
    else
        blas->narrow(ROW_MAJOR, AS_IT_IS, AS_IT_IS, (int)m, (int)n, (int)k, 1, a, (int)k, b, (int)n, 0, c, (int)n);
}
