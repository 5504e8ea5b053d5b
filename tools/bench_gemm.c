/* SPDX-License-Identifier: Apache-2.0 */
/* `runnel bench gemm`: matrix products by implementation, beside the device's roofline and a CPU's BLAS. */
#include "bench_gemm.h"
#include "bench.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DESCRIPTIONS (RNL_MOST_PRODUCTS * RNL_PRODUCT_TYPES)
#define MOST_NAMES 16

enum { OPTION_SHAPE = RNL_SUBJECT_OPTION, OPTION_TYPE, OPTION_PACKED, OPTION_IMPLEMENTATION, OPTION_BLAS };

static const struct option extra[] = {
    {"shape", required_argument, NULL, OPTION_SHAPE},
    {"type", required_argument, NULL, OPTION_TYPE},
    {"packed", no_argument, NULL, OPTION_PACKED},
    {"implementation", required_argument, NULL, OPTION_IMPLEMENTATION},
    {"blas", required_argument, NULL, OPTION_BLAS},
    {0},
};

static const char help[] =
    "\n"
    "      --shape MxNxK          this product; several times for several (default: squares,\n"
    "                             ResNet-50's, MiniLM's, few rows)\n"
    "      --type TYPE            f32, f16, bf16 or i8; several times for several (default f32)\n"
    "      --packed               the second factor is packed beforehand\n"
    "      --implementation NAME  that one alone, best for what is chosen, or all (default:\n"
    "                             all that are meant for such a device)\n"
    "      --blas FILE            a BLAS to compare with (default: RUNNEL_BLAS, else OpenBLAS\n"
    "                             where it is installed; none for none)\n";

static struct {
    rnl_products products;
    bool packed;
    const char *implementation, *blas;
} asked;

static rnl_exit take(int code, const char *value)
{
    char clean[RNL_CLI_NAME_BYTES];
    switch (code) {
    case OPTION_SHAPE:
        return rnl_products_add(&asked.products, "bench", value);
    case OPTION_TYPE:
        return rnl_products_add_type(&asked.products, "bench", value);
    case OPTION_PACKED:
        asked.packed = true;
        return RNL_EXIT_DONE;
    case OPTION_IMPLEMENTATION:
        asked.implementation = value;
        return RNL_EXIT_DONE;
    case OPTION_BLAS:
        asked.blas = value;
        return RNL_EXIT_DONE;
    default:
        return rnl_cli_usage("bench", "gemm: '%s' is one argument too many", rnl_cli_clean(value, clean, sizeof clean));
    }
}

/* One line of the table. */
typedef struct row {
    const rnl_gemm_desc *desc;
    const char *implementation;
    bool chosen, packed;
    double ns, min_ns, call_ns;
} row;

typedef struct bench {
    const rnl_subject_options *options;
    rnl_device *device;
    const rnl_device_info *info;
    rnl_bench_peak peak;
    rnl_blas *blas;
    json_t *rows;
} bench;

static double flops(const rnl_gemm_desc *desc)
{
    return 2.0 * (double)desc->m * (double)desc->n * (double)desc->k;
}

/* The least that must move: each matrix once. */
static double bytes(const rnl_gemm_desc *d)
{
    return (double)d->m * (double)d->k * (double)rnl_dtype_bytes(d->a_type) +
           (double)d->k * (double)d->n * (double)rnl_dtype_bytes(d->b_type) +
           (double)d->m * (double)d->n * (double)rnl_dtype_bytes(d->c_type);
}

/* Of float32's arithmetic: min(peak, bandwidth * intensity). */
static double roof(const bench *b, const rnl_gemm_desc *desc)
{
    const double by_memory = b->peak.bytes_per_s * flops(desc) / bytes(desc);
    return by_memory < b->peak.flops_per_s ? by_memory : b->peak.flops_per_s;
}

static void print_head(const bench *b)
{
    printf("peak: %.1f GFLOP/s, %.1f GB/s (float32 multiply-adds; a[i] = b[i] + s * c[i] in memory)\n",
           b->peak.flops_per_s * 1e-9, b->peak.bytes_per_s * 1e-9);
    if (b->blas)
        printf("blas: %s\n", rnl_blas_name(b->blas));
    printf("\n%4s %6s %6s %6s  %-19s %11s %9s %9s %6s %11s\n", "type", "m", "n", "k", "implementation", "us", "GFLOP/s",
           "roof", "of it", "one call us");
}

static void report(const bench *b, const row *r)
{
    const rnl_gemm_desc *d = r->desc;
    const char *type = rnl_product_type_names[rnl_product_type_of(d)];
    const double speed = flops(d) / r->ns, limit = roof(b, d) * 1e-9;
    char name[32];
    snprintf(name, sizeof name, "%s%s%s", r->implementation, r->packed ? " packed" : "", r->chosen ? " *" : "");
    printf("%4s %6lld %6lld %6lld  %-19s %11.2f %9.1f %9.1f %5.0f%% %11.2f\n", type, (long long)d->m, (long long)d->n,
           (long long)d->k, name, r->ns * 1e-3, speed, limit, 100 * speed / limit, r->call_ns * 1e-3);
    fflush(stdout);
    if (b->rows)
        json_array_append_new(
            b->rows, json_pack("{s:s, s:I, s:I, s:I, s:s, s:b, s:b, s:f, s:f, s:f, s:f, s:f}", "type", type, "m",
                               (json_int_t)d->m, "n", (json_int_t)d->n, "k", (json_int_t)d->k, "implementation",
                               r->implementation, "packed", (int)r->packed, "chosen", (int)r->chosen, "ns", r->ns,
                               "min_ns", r->min_ns, "gflops", speed, "roof_gflops", limit, "call_ns", r->call_ns));
}

static rnl_status nothing(void *user)
{
    (void)user;
    return RNL_OK;
}

static rnl_status measure(const bench *b, const rnl_measured *work, rnl_status (*call)(void *user), row *r)
{
    static const double short_time = 0.1;
    rnl_subject_options calls = *b->options;
    const rnl_measured one = {call, nothing, work->user};
    calls.seconds = calls.seconds < short_time ? calls.seconds : short_time;
    rnl_status status = rnl_measure(work, b->options, &r->ns, &r->min_ns);
    return status == RNL_OK ? rnl_measure(&one, &calls, &r->call_ns, NULL) : status;
}

/* What is chosen when nothing is named; "" when this product cannot be made. */
static rnl_exit find_chosen(const bench *b, const rnl_gemm_desc *desc, const char **out_name)
{
    rnl_product_run run;
    rnl_gemm_info info;
    *out_name = "";
    rnl_status status = rnl_product_create(b->device, desc, asked.packed, &run);
    if (status == RNL_OK) {
        rnl_gemm_get_info(run.gemm, &info);
        const char *colon = strchr(info.implementation, ':');
        *out_name = colon ? colon + 1 : info.implementation;
    }
    rnl_product_release(&run);
    return status == RNL_OK ? RNL_EXIT_DONE
                            : rnl_cli_fail_library("a product of %lldx%lldx%lld", (long long)desc->m,
                                                   (long long)desc->n, (long long)desc->k);
}

/* What does not take this product is left out. */
static rnl_exit measure_implementation(const bench *b, const rnl_gemm_desc *desc, const char *name, const char *chosen)
{
    rnl_gemm_desc named = *desc;
    rnl_product_run run;
    row r = {.desc = desc, .implementation = name, .packed = asked.packed, .chosen = strcmp(name, chosen) == 0};
    const rnl_measured work = {rnl_product_enqueue, rnl_product_finish, &run};
    named.implementation = name;
    rnl_status status = rnl_product_create(b->device, &named, asked.packed, &run);
    if (status == RNL_OK)
        status = measure(b, &work, rnl_product_call, &r);
    rnl_product_release(&run);
    if (status == RNL_OK)
        report(b, &r);
    if (status == RNL_OK || (status == RNL_UNIMPLEMENTED && !r.chosen))
        return RNL_EXIT_DONE;
    return rnl_cli_fail_library("%s, a product of %lldx%lldx%lld", name, (long long)desc->m, (long long)desc->n,
                                (long long)desc->k);
}

/* Others compile for long, or are made for other devices: those are measured when they are asked for. */
static bool is_wanted(const bench *b, const char *name, const char *chosen)
{
    const char *wanted = asked.implementation;
    if (wanted && strcmp(wanted, "best") == 0)
        return strcmp(name, chosen) == 0;
    if (wanted)
        return strcmp(wanted, "all") == 0 || strcmp(wanted, name) == 0;
    if (strcmp(name, chosen) == 0)
        return true;
    const bool of_gpus = strcmp(name, "clblast") == 0 || strcmp(name, "tiled") == 0 || strcmp(name, "matrix") == 0 ||
                         strcmp(name, "wgmma") == 0;
    const bool of_cpus = strcmp(name, "panel") == 0 || strcmp(name, "vnni") == 0 || strcmp(name, "madd") == 0 ||
                         strcmp(name, "bf16") == 0 || strcmp(name, "strassen") == 0;
    return b->info->type == RNL_DEVICE_GPU ? !of_cpus : !of_gpus;
}

/* ---- a BLAS --------------------------------------------------------------------------------------------------- */

typedef struct blas_run {
    const rnl_blas *blas;
    const rnl_gemm_desc *desc;
    float *a, *b, *c;
} blas_run;

static rnl_status blas_enqueue(void *user)
{
    const blas_run *run = user;
    rnl_blas_multiply(run->blas, run->desc->m, run->desc->n, run->desc->k, run->a, run->b, run->c);
    return RNL_OK;
}

static float *ones(int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; values && i < count; i++)
        values[i] = 1;
    return values;
}

static rnl_exit measure_blas(const bench *b, const rnl_gemm_desc *d)
{
    blas_run run = {b->blas, d, ones(d->m * d->k), ones(d->k * d->n), ones(d->m * d->n)};
    row r = {.desc = d, .implementation = "blas"};
    const rnl_measured work = {blas_enqueue, nothing, &run};
    const bool made = run.a && run.b && run.c;
    if (made && measure(b, &work, blas_enqueue, &r) == RNL_OK)
        report(b, &r);
    free(run.a);
    free(run.b);
    free(run.c);
    return made ? RNL_EXIT_DONE : rnl_cli_fail("out of memory");
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

static rnl_exit measure_product(const bench *b, const rnl_gemm_desc *desc)
{
    const char *names[MOST_NAMES], *chosen;
    size_t count = rnl_gemm_implementations(names, MOST_NAMES);
    rnl_exit code = find_chosen(b, desc, &chosen);
    for (size_t i = 0; code == RNL_EXIT_DONE && i < count && i < MOST_NAMES; i++)
        if (is_wanted(b, names[i], chosen))
            code = measure_implementation(b, desc, names[i], chosen);
    if (code == RNL_EXIT_DONE && b->blas && rnl_product_type_of(desc) == RNL_PRODUCT_F32)
        code = measure_blas(b, desc);
    return code;
}

static rnl_exit write_json(const bench *b)
{
    char clean[RNL_CLI_NAME_BYTES];
    json_t *root = json_pack("{s:s, s:I, s:f, s:f, s:O}", "device", b->info->name, "compute_units",
                             (json_int_t)b->info->compute_units, "peak_flops_per_s", b->peak.flops_per_s,
                             "peak_bytes_per_s", b->peak.bytes_per_s, "rows", b->rows);
    const bool written = root && json_dump_file(root, b->options->json, JSON_INDENT(1)) == 0;
    json_decref(root);
    return written ? RNL_EXIT_DONE
                   : rnl_cli_fail("%s: %s", rnl_cli_clean(b->options->json, clean, sizeof clean), strerror(errno));
}

static rnl_exit measure_all(bench *b)
{
    static rnl_gemm_desc descs[MOST_DESCRIPTIONS];
    const size_t count = rnl_products_list(&asked.products, descs, MOST_DESCRIPTIONS);
    rnl_exit code = rnl_bench_find_peak(b->device, &b->peak);
    if (code == RNL_EXIT_DONE && b->info->type == RNL_DEVICE_CPU && !(asked.blas && strcmp(asked.blas, "none") == 0))
        code = rnl_blas_open(asked.blas, b->info->compute_units, &b->blas);
    if (code == RNL_EXIT_DONE)
        print_head(b);
    for (size_t i = 0; code == RNL_EXIT_DONE && i < count; i++)
        code = measure_product(b, &descs[i]);
    return code;
}

static rnl_exit run(const rnl_subject_options *options)
{
    bench b = {.options = options};
    rnl_exit code = rnl_subject_open(options, &b.device);
    if (code != RNL_EXIT_DONE)
        return code;
    b.info = rnl_device_get_info(b.device);
    b.rows = options->json ? json_array() : NULL;
    code = measure_all(&b);
    if (code == RNL_EXIT_DONE && options->json)
        code = write_json(&b);
    json_decref(b.rows);
    rnl_blas_close(b.blas);
    rnl_device_release(b.device);
    return code;
}

const rnl_subject rnl_subject_bench_gemm = {
    "bench", "gemm", "matrix products by implementation, beside the roofline", help, extra, take, run,
};
