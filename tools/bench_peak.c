/* SPDX-License-Identifier: Apache-2.0 */
/* What a device can do at best: multiply-adds that need no memory, and a sum that needs nothing else. */
#include "bench.h"

#include <time.h>

/* Rounds of multiply-adds are doubled until a launch takes this long. Many short launches: other processes disturb
 * some. */
#define LAUNCH_MS 5.0
#define LAUNCHES 20
#define TRIAD_BYTES ((size_t)64 << 20) /* of each of three buffers: beyond every cache */
#define EMULATED_BYTES ((size_t)1 << 20)

static const char source[] =
    "#define CAT_(a, b) a##b\n"
    "#define CAT(a, b) CAT_(a, b)\n"
    "#if LANES == 1\n"
    "typedef float vec;\n"
    "#else\n"
    "typedef CAT(float, LANES) vec;\n"
    "#endif\n"
    "#if CHAINS == 12\n"
    "#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)\n"
    "#else\n"
    "#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5)\n"
    "#endif\n"
    "kernel void multiply_add(global vec *out, float factor, float addend, int rounds)\n"
    "{\n"
    "    vec sum = (vec)0, f = (vec)factor, s = (vec)addend;\n"
    "#define START(i) vec a##i = (vec)(float)(i + get_global_id(0) % 7);\n"
    "#define STEP(i) a##i = MULTIPLY_ADD(a##i, f, s);\n"
    "#define END(i) sum += a##i;\n"
    "    EACH(START)\n"
    "    for (int r = 0; r < rounds; ++r) {\n"
    "        EACH(STEP) EACH(STEP) EACH(STEP) EACH(STEP)\n"
    "    }\n"
    "    EACH(END)\n"
    "    out[get_global_id(0)] = sum;\n"
    "}\n"
    "kernel void triad(global vec *a, global const vec *b, global const vec *c, float factor)\n"
    "{\n"
    "    size_t i = get_global_id(0);\n"
    "    a[i] = b[i] + factor * c[i];\n"
    "}\n";

typedef struct probe {
    rnl_device *device;
    const rnl_device_info *info;
    rnl_stream *stream;
    rnl_buffer *a, *b, *c;
    size_t bytes; /* of each */
} probe;

static rnl_status launch(probe *p, rnl_kernel *kernel, const rnl_range *range, const rnl_arg *args, double *out_ms)
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    rnl_status status = rnl_stream_launch(p->stream, kernel, range, args, 4);
    if (status == RNL_OK)
        status = rnl_stream_synchronize(p->stream);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *out_ms = (double)(end.tv_sec - start.tv_sec) * 1e3 + (double)(end.tv_nsec - start.tv_nsec) * 1e-6;
    return status;
}

/* The shortest of several. */
static rnl_status launch_best(probe *p, rnl_kernel *kernel, const rnl_range *range, const rnl_arg *args, double *out_ms)
{
    double ms = 0;
    rnl_status status = launch(p, kernel, range, args, out_ms);
    for (int i = 1; status == RNL_OK && i < LAUNCHES; i++) {
        status = launch(p, kernel, range, args, &ms);
        *out_ms = ms < *out_ms ? ms : *out_ms;
    }
    return status;
}

static size_t group_items(const rnl_device_info *info)
{
    size_t items = info->emulated ? 16 : info->type == RNL_DEVICE_CPU ? 256 : 64;
    while (items > 1 && items > info->max_work_group_size)
        items /= 2;
    return items;
}

static rnl_status find_flops(probe *p, int lanes, int chains, rnl_kernel *kernel, double *best)
{
    bool cpu = p->info->type == RNL_DEVICE_CPU;
    size_t local = cpu ? 1 : group_items(p->info);
    size_t items = cpu ? 64 * (size_t)p->info->compute_units : 64 * local * p->info->compute_units;
    size_t room = p->bytes / (sizeof(float) * (size_t)lanes);
    items = items < room ? items : room / local * local;
    rnl_range range = {1, {items, 1, 1}, {local, 1, 1}};
    float factor = 0.5F, addend = 1.0F;
    int32_t rounds = 1;
    rnl_arg args[4] = {{.kind = RNL_ARG_BUFFER, .buffer = p->a},
                       {.kind = RNL_ARG_VALUE, .size_bytes = sizeof factor, .value = &factor},
                       {.kind = RNL_ARG_VALUE, .size_bytes = sizeof addend, .value = &addend},
                       {.kind = RNL_ARG_VALUE, .size_bytes = sizeof rounds, .value = &rounds}};
    double ms = 0;
    rnl_status status = launch(p, kernel, &range, args, &ms);
    for (ms = 0; status == RNL_OK && ms < LAUNCH_MS && rounds < 1 << 28; rounds *= 2)
        status = launch(p, kernel, &range, args, &ms);
    rounds /= 2;
    if (status == RNL_OK)
        status = launch_best(p, kernel, &range, args, &ms);
    double flops = 2.0 * 4 * rounds * chains * lanes * (double)items / (ms * 1e-3);
    if (status == RNL_OK && flops > *best)
        *best = flops;
    return status;
}

static rnl_status find_bandwidth(probe *p, int lanes, rnl_kernel *kernel, double *best)
{
    float factor = 0.5F, zero = 0;
    size_t vector = sizeof(float) * (size_t)lanes, local = group_items(p->info);
    rnl_range range = {1, {p->bytes / vector / local * local, 1, 1}, {local, 1, 1}};
    rnl_arg args[4] = {{.kind = RNL_ARG_BUFFER, .buffer = p->a},
                       {.kind = RNL_ARG_BUFFER, .buffer = p->b},
                       {.kind = RNL_ARG_BUFFER, .buffer = p->c},
                       {.kind = RNL_ARG_VALUE, .size_bytes = sizeof factor, .value = &factor}};
    double ms = 0;
    rnl_status status = rnl_stream_fill(p->stream, p->b, 0, &zero, sizeof zero, p->bytes);
    if (status == RNL_OK)
        status = rnl_stream_fill(p->stream, p->c, 0, &zero, sizeof zero, p->bytes);
    if (status == RNL_OK)
        status = launch(p, kernel, &range, args, &ms);
    if (status == RNL_OK)
        status = launch_best(p, kernel, &range, args, &ms);
    double bytes = 3.0 * (double)(range.global[0] * vector) / (ms * 1e-3);
    if (status == RNL_OK && bytes > *best)
        *best = bytes;
    return status;
}

/*
 * One width of vectors and number of independent chains: what suits a device best is not known beforehand. Nor whether
 * mad is one instruction (pocl 5: it is two) and fma not a function.
 */
static rnl_status try_variant(probe *p, int lanes, int chains, const char *multiply_add, rnl_bench_peak *peak)
{
    char options[96];
    rnl_kernel *fma = NULL, *triad = NULL;
    snprintf(options, sizeof options, "-w -DLANES=%d -DCHAINS=%d -DMULTIPLY_ADD=%s", lanes, chains, multiply_add);
    rnl_status status = rnl_kernel_create(p->device, source, options, "multiply_add", &fma);
    if (status == RNL_OK)
        status = rnl_kernel_create(p->device, source, options, "triad", &triad);
    if (status == RNL_OK)
        status = find_flops(p, lanes, chains, fma, &peak->flops_per_s);
    if (status == RNL_OK)
        status = find_bandwidth(p, lanes, triad, &peak->bytes_per_s);
    rnl_kernel_release(fma);
    rnl_kernel_release(triad);
    return status;
}

static size_t buffer_bytes(const rnl_device_info *info)
{
    size_t bytes = info->emulated ? EMULATED_BYTES : TRIAD_BYTES;
    while (bytes > 4096 && (bytes > info->max_allocation_bytes / 2 || bytes > info->global_memory_bytes / 16))
        bytes /= 2;
    return bytes;
}

static rnl_status find_peak(probe *p, rnl_bench_peak *peak)
{
    bool cpu = p->info->type == RNL_DEVICE_CPU;
    rnl_status status = rnl_stream_create(p->device, &p->stream);
    rnl_buffer **buffers[3] = {&p->a, &p->b, &p->c};
    for (int i = 0; status == RNL_OK && i < 3; i++)
        status = rnl_buffer_create(p->device, RNL_MEMORY_DEVICE, p->bytes, buffers[i]);
    /* An emulated device compiles slowly. */
    if (status == RNL_OK && !p->info->emulated)
        status = try_variant(p, cpu ? 16 : 1, 12, cpu ? "fma" : "mad", peak);
    if (status == RNL_OK)
        status = try_variant(p, cpu && !p->info->emulated ? 16 : 4, 6, "mad", peak);
    return status;
}

rnl_exit rnl_bench_find_peak(rnl_device *device, rnl_bench_peak *out_peak)
{
    probe p = {.device = device, .info = rnl_device_get_info(device)};
    *out_peak = (rnl_bench_peak){0, 0};
    p.bytes = buffer_bytes(p.info);
    rnl_status status = find_peak(&p, out_peak);
    rnl_buffer_release(p.a);
    rnl_buffer_release(p.b);
    rnl_buffer_release(p.c);
    rnl_stream_release(p.stream);
    return status == RNL_OK ? RNL_EXIT_DONE : rnl_cli_fail_library("measuring what the device can do");
}
