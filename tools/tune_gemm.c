/* SPDX-License-Identifier: Apache-2.0 */
/* `runnel tune gemm`: measures every way of doing products and keeps the fastest. */
#include "bench_gemm.h"
#include "progress.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DESCRIPTIONS (RNL_MOST_PRODUCTS * RNL_PRODUCT_TYPES)

enum { OPTION_SHAPE = RNL_SUBJECT_OPTION, OPTION_TYPE };

static const struct option extra[] = {
    {"shape", required_argument, NULL, OPTION_SHAPE},
    {"type", required_argument, NULL, OPTION_TYPE},
    {0},
};

static const char help[] = "\n"
                           "      --shape MxNxK          this product; several times for several (default: those of\n"
                           "                             `runnel bench gemm`)\n"
                           "      --type TYPE            f32, f16 or bf16; several times for several (default f32)\n";

static rnl_products asked;

static rnl_exit take(int code, const char *value)
{
    char clean[RNL_CLI_NAME_BYTES];
    if (code == OPTION_SHAPE)
        return rnl_products_add(&asked, "tune", value);
    if (code == OPTION_TYPE && strcmp(value, "i8") == 0)
        return rnl_cli_usage("tune", "--type i8: 8-bit integers leave nothing to choose");
    if (code == OPTION_TYPE)
        return rnl_products_add_type(&asked, "tune", value);
    return rnl_cli_usage("tune", "gemm: '%s' is one argument too many", rnl_cli_clean(value, clean, sizeof clean));
}

static bool show(void *user, const rnl_gemm_trial *trial)
{
    const rnl_gemm_desc *desc = (const rnl_gemm_desc *)user + trial->index;
    char what[96];
    snprintf(what, sizeof what, "%lldx%lldx%lld %s", (long long)desc->m, (long long)desc->n, (long long)desc->k,
             trial->implementation);
    rnl_console_step(what, trial->done, trial->total);
    if (trial->done == trial->total)
        rnl_console_clear();
    return true;
}

static double flops(const rnl_gemm_desc *desc)
{
    return 2.0 * (double)desc->m * (double)desc->n * (double)desc->k;
}

static void print(const rnl_gemm_desc *descs, const rnl_gemm_trial *best, size_t count)
{
    printf("\n%4s %6s %6s %6s  %-15s %7s %11s %9s\n", "type", "m", "n", "k", "implementation", "variant", "us",
           "GFLOP/s");
    for (size_t i = 0; i < count; i++) {
        const rnl_gemm_desc *d = &descs[i];
        printf("%4s %6lld %6lld %6lld  %-15s %7u %11.2f %9.1f\n", rnl_product_type_names[rnl_product_type_of(d)],
               (long long)d->m, (long long)d->n, (long long)d->k, best[i].implementation ? best[i].implementation : "-",
               (unsigned)best[i].variant, best[i].ns * 1e-3, best[i].ns > 0 ? flops(d) / best[i].ns : 0);
    }
}

static rnl_exit write_json(const char *path, const rnl_gemm_desc *descs, const rnl_gemm_trial *best, size_t count)
{
    char clean[RNL_CLI_NAME_BYTES];
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(rows, json_pack("{s:s, s:I, s:I, s:I, s:s, s:I, s:f}", "type",
                                              rnl_product_type_names[rnl_product_type_of(&descs[i])], "m",
                                              (json_int_t)descs[i].m, "n", (json_int_t)descs[i].n, "k",
                                              (json_int_t)descs[i].k, "implementation",
                                              best[i].implementation ? best[i].implementation : "", "variant",
                                              (json_int_t)best[i].variant, "ns", best[i].ns));
    const bool written = rows && json_dump_file(rows, path, JSON_INDENT(1)) == 0;
    json_decref(rows);
    return written ? RNL_EXIT_DONE : rnl_cli_fail("%s: %s", rnl_cli_clean(path, clean, sizeof clean), strerror(errno));
}

static rnl_exit run(const rnl_subject_options *options)
{
    static rnl_gemm_desc descs[MOST_DESCRIPTIONS];
    static rnl_gemm_trial best[MOST_DESCRIPTIONS];
    rnl_gemm_tune_options tuning = RNL_GEMM_TUNE_OPTIONS_INIT;
    rnl_device *device;
    const size_t count = rnl_products_list(&asked, descs, MOST_DESCRIPTIONS);
    rnl_exit code = rnl_subject_open(options, &device);
    if (code != RNL_EXIT_DONE)
        return code;
    tuning.seconds = options->seconds;
    tuning.progress = show;
    tuning.user = descs;
    if (rnl_gemm_tune(device, descs, count, &tuning, best) != RNL_OK)
        code = rnl_cli_fail_library("tuning matrix products");
    if (code == RNL_EXIT_DONE)
        print(descs, best, count);
    if (code == RNL_EXIT_DONE && options->json)
        code = write_json(options->json, descs, best, count);
    rnl_device_release(device);
    return code;
}

const rnl_subject rnl_subject_tune_gemm = {
    "tune", "gemm", "matrix products: measures all ways and keeps the fastest", help, extra, take, run,
};
