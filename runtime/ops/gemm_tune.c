/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing how products are done by measuring them. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "ops/gemm.h"
#include "ops/gemm_api.h"
#include "ops/gemm_choice.h"
#include "ops/gemm_clblast.h"
#include "ops/tuning.h"
#include <stdlib.h>
#include <string.h>

#define MOST_NAMES 16
#define SAMPLES 5 /* whose shortest time counts: what disturbs a product makes it longer */
#define LEAST_SAMPLE_NS 5e5

typedef struct tuner {
    rnl_device *device;
    rnl_gemm_tune_options options;
    const char *names[MOST_NAMES];
    size_t name_count;
    size_t done, total;
    double sample_ns;
} tuner;

/* One description's operands, and the fastest way so far. */
typedef struct subject {
    size_t index;
    rnl_gemm_form form;
    rnl_gemm_operands operands;
    rnl_gemm_trial best;
} subject;

/* ---- operands ------------------------------------------------------------------------------------------------- */

static rnl_status make_operand(rnl_device *device, rnl_stream *stream, rnl_dtype dtype, int64_t elements,
                               rnl_buffer **out_buffer)
{
    /* 1 in each type, side by side. */
    static const uint32_t f32 = 0x3f800000, f16 = 0x3c003c00, bf16 = 0x3f803f80;
    const uint32_t *ones = dtype == RNL_F16 ? &f16 : dtype == RNL_BF16 ? &bf16 : &f32;
    size_t bytes = 0;
    if (elements == 0)
        return RNL_OK;
    if (!rnl_size_mul((size_t)elements, rnl_dtype_bytes(dtype), &bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "an operand of %lld elements", (long long)elements);
    bytes = rnl_align_up(bytes, sizeof *ones);
    TRY(rnl_buffer_create(device, RNL_MEMORY_DEVICE, bytes, out_buffer));
    return rnl_stream_fill(stream, *out_buffer, 0, ones, sizeof *ones, bytes);
}

static rnl_status make_operands(rnl_device *device, subject *it)
{
    const rnl_gemm_form *form = &it->form;
    rnl_gemm_operands *o = &it->operands;
    rnl_stream *stream = NULL;
    rnl_status status = RNL_OK;
    *o = (rnl_gemm_operands)RNL_GEMM_OPERANDS_INIT;
    TRY(rnl_stream_create(device, &stream));
    GOTO(make_operand(device, stream, form->a.dtype, form->a.whole, &o->a));
    GOTO(make_operand(device, stream, form->b.dtype, form->b.whole, &o->b));
    GOTO(make_operand(device, stream, form->c.dtype, form->c.whole, &o->c));
    if (form->desc.residual)
        GOTO(make_operand(device, stream, form->c.dtype, form->residual.whole, &o->residual));
    if (form->desc.bias != RNL_GEMM_BIAS_NONE)
        GOTO(make_operand(device, stream, form->c.dtype,
                          form->desc.bias == RNL_GEMM_BIAS_COLUMNS ? form->desc.n : form->desc.m, &o->bias));
    GOTO(rnl_stream_synchronize(stream));
done:
    rnl_stream_release(stream);
    return status;
}

static void release_operands(subject *it)
{
    rnl_buffer_release(it->operands.a);
    rnl_buffer_release(it->operands.b);
    rnl_buffer_release(it->operands.c);
    rnl_buffer_release(it->operands.residual);
    rnl_buffer_release(it->operands.bias);
}

/* ---- one measurement ------------------------------------------------------------------------------------------ */

static rnl_status sample(rnl_stream *stream, rnl_gemm *gemm, const subject *it, uint64_t count, double *out_ns)
{
    const uint64_t start = rnl_clock_ns();
    for (uint64_t i = 0; i < count; ++i)
        TRY(rnl_stream_gemm(stream, gemm, &it->operands));
    TRY(rnl_stream_synchronize(stream));
    *out_ns = (double)(rnl_clock_ns() - start);
    return RNL_OK;
}

static rnl_status time_product(const tuner *t, rnl_stream *stream, rnl_gemm *gemm, const subject *it, double *out_ns)
{
    double ns = 0, best = 0;
    uint64_t count = 1;
    TRY(sample(stream, gemm, it, 1, &ns)); /* which compiles */
    TRY(sample(stream, gemm, it, 1, &ns));
    while (ns < t->sample_ns && count < UINT64_C(1) << 20) {
        count *= 2;
        TRY(sample(stream, gemm, it, count, &ns));
    }
    best = ns;
    for (int i = 1; i < SAMPLES; ++i) {
        TRY(sample(stream, gemm, it, count, &ns));
        best = ns < best ? ns : best;
    }
    *out_ns = best / (double)count;
    return RNL_OK;
}

/* 0 ns: it does not take this product, or fails. Only where memory runs out is that the end. */
static rnl_status try_one(const tuner *t, const subject *it, const char *name, uint32_t variant, double *out_ns)
{
    rnl_gemm_desc desc = it->form.desc;
    rnl_stream *stream = NULL;
    rnl_gemm *gemm = NULL;
    rnl_status status = RNL_OK;
    *out_ns = 0;
    desc.implementation = name;
    GOTO(rnl_stream_create(t->device, &stream)); /* of its own: a stream keeps its first failure */
    GOTO(rnl_gemm_create_in(t->device, &desc, variant, NULL, &gemm));
    GOTO(time_product(t, stream, gemm, it, out_ns));
done:
    rnl_gemm_release(gemm);
    rnl_stream_release(stream);
    return status == RNL_RESOURCE_EXHAUSTED ? status : RNL_OK;
}

static rnl_status tell(tuner *t, const rnl_gemm_trial *trial)
{
    rnl_gemm_trial told = *trial;
    told.done = ++t->done;
    told.total = t->total > t->done ? t->total : t->done;
    if (t->options.progress && !t->options.progress(t->options.user, &told))
        return FAIL(RNL_CANCELLED, "tuning was cancelled");
    return RNL_OK;
}

static rnl_status measure(tuner *t, subject *it, const char *name, uint32_t variant)
{
    rnl_gemm_trial trial = {.index = it->index, .implementation = name, .variant = variant};
    TRY(try_one(t, it, name, variant, &trial.ns));
    if (trial.ns > 0 && (it->best.ns == 0 || trial.ns < it->best.ns))
        it->best = trial;
    return tell(t, &trial);
}

/* ---- CLBlast's parameters ------------------------------------------------------------------------------------- */

/* Some implementations are for other devices, and take long to compile. */
static bool is_candidate(const tuner *t, const char *name)
{
    const char *forced = getenv("RUNNEL_GEMM");
    const bool of_gpus = strcmp(name, "clblast") == 0 || strcmp(name, "tiled") == 0 || strcmp(name, "matrix") == 0 ||
                         strcmp(name, "wgmma") == 0;
    const bool of_cpus = strcmp(name, "panel") == 0 || strcmp(name, "bf16") == 0 || strcmp(name, "strassen") == 0;
    if (forced && strcmp(forced, name) == 0)
        return true;
    return t->device->info.type == RNL_DEVICE_GPU ? !of_cpus : !of_gpus;
}

static bool has_clblast(const tuner *t)
{
    for (size_t i = 0; i < t->name_count; ++i)
        if (strcmp(t->names[i], "clblast") == 0)
            return true;
    return false;
}

/* The sets that make the largest product fastest (it goes through the one kernel) and the smallest (the other). */
static rnl_status tune_clblast(tuner *t, subject *it, rnl_clblast_kernel kernel)
{
    uint32_t sets[RNL_CLBLAST_KERNELS] = {rnl_clblast_noted(t->device, RNL_CLBLAST_XGEMM),
                                          rnl_clblast_noted(t->device, RNL_CLBLAST_DIRECT)};
    rnl_status status = RNL_OK;
    uint32_t best = sets[kernel];
    double best_ns = 0, ns;
    for (uint32_t set = 0; status == RNL_OK && set < rnl_clblast_sets(kernel); ++set) {
        sets[kernel] = set;
        if (rnl_clblast_use(t->device, sets) != RNL_OK)
            continue;
        status = try_one(t, it, "clblast", 0, &ns);
        if (ns > 0 && (best_ns == 0 || ns < best_ns)) {
            best_ns = ns;
            best = set;
        }
        const rnl_gemm_trial trial = {.index = it->index, .implementation = "clblast", .variant = set, .ns = ns};
        if (status == RNL_OK)
            status = tell(t, &trial);
    }
    sets[kernel] = status == RNL_OK ? best : rnl_clblast_noted(t->device, kernel);
    rnl_error error = *rnl_last_error();
    if (rnl_clblast_use(t->device, sets) == RNL_OK && status == RNL_OK)
        status = rnl_clblast_note(t->device, kernel, best);
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

/* Others may not take what bounds errors by norm alone. */
static bool is_accurate(const subject *it, const char *name)
{
    return it->form.desc.accuracy == RNL_GEMM_NORMWISE || strcmp(name, "strassen") != 0;
}

static rnl_status measure_all(tuner *t, subject *it)
{
    for (size_t i = 0; i < t->name_count; ++i)
        for (uint32_t v = 0; is_accurate(it, t->names[i]) && v <= rnl_gemm_choice_variants(t->device, t->names[i]); ++v)
            TRY(measure(t, it, t->names[i], v));
    return RNL_OK;
}

static rnl_status tune_one(tuner *t, subject *it)
{
    const rnl_gemm_desc *desc = &it->form.desc;
    const double work = (double)desc->m * (double)desc->n * (double)desc->k;
    rnl_status status = RNL_OK;
    GOTO(make_operands(t->device, it), "operands to be tuned with");
    if (has_clblast(t) && it->form.desc.c_type == RNL_F32)
        GOTO(tune_clblast(t, it, work >= 512.0 * 512 * 512 ? RNL_CLBLAST_XGEMM : RNL_CLBLAST_DIRECT));
    GOTO(measure_all(t, it));
done:
    release_operands(it);
    return status;
}

static rnl_status note(tuner *t, const subject *it)
{
    const rnl_gemm_mode mode = {.alpha = it->form.desc.alpha, .beta = it->form.desc.beta};
    rnl_hash place;
    if (it->best.ns == 0)
        return RNL_OK;
    TRY(rnl_gemm_form_place(&it->form, &mode, t->device, &place));
    return rnl_tuning_set(t->device, place, rnl_gemm_choice_number(it->best.implementation, it->best.variant));
}

/* In an array of a caller's, whose descriptions may be shorter than ours. */
static const rnl_gemm_desc *desc_at(const rnl_gemm_desc *descs, size_t index)
{
    return (const rnl_gemm_desc *)(const void *)((const char *)descs + index * descs->struct_size);
}

static rnl_status start(tuner *t, const rnl_gemm_desc *descs, size_t count, const rnl_gemm_tune_options *options,
                        subject *subjects)
{
    const char *all[MOST_NAMES];
    const size_t known = rnl_gemm_names(all, MOST_NAMES);
    size_t each = 0;
    t->options = (rnl_gemm_tune_options)RNL_GEMM_TUNE_OPTIONS_INIT;
    if (options && (options->struct_size == 0 || options->struct_size > sizeof t->options))
        return FAIL(RNL_INVALID_ARGUMENT, "tuning: options.struct_size is %zu; use RNL_GEMM_TUNE_OPTIONS_INIT",
                    options->struct_size);
    if (options)
        memcpy(&t->options, options, options->struct_size);
    for (size_t i = 0; i < known && i < MOST_NAMES; ++i)
        if (is_candidate(t, all[i])) {
            t->names[t->name_count++] = all[i];
            each += 1 + rnl_gemm_choice_variants(t->device, all[i]);
        }
    if (has_clblast(t))
        each += rnl_clblast_sets(RNL_CLBLAST_XGEMM);
    t->total = each * count;
    t->sample_ns = (t->options.seconds > 0 ? t->options.seconds : 1) * 1e9 / (double)each / (SAMPLES + 2);
    t->sample_ns = t->sample_ns > LEAST_SAMPLE_NS ? t->sample_ns : LEAST_SAMPLE_NS;
    for (size_t i = 0; i < count; ++i) {
        subjects[i] = (subject){.index = i};
        TRY(rnl_gemm_form_of(desc_at(descs, i), &subjects[i].form), "description %zu", i);
        if (subjects[i].form.integers || subjects[i].form.desc.implementation)
            return FAIL(RNL_UNIMPLEMENTED, "tuning: description %zu is of %s, which leaves nothing to choose", i,
                        subjects[i].form.integers ? "8-bit integers" : "a named implementation");
    }
    return RNL_OK;
}

rnl_status rnl_gemm_tune(rnl_device *device, const rnl_gemm_desc *descs, size_t count,
                         const rnl_gemm_tune_options *options, rnl_gemm_trial *best)
{
    tuner t = {.device = device};
    subject *subjects = NULL;
    rnl_status status = RNL_OK;
    if (!device || (!descs && count > 0))
        return FAIL(RNL_INVALID_ARGUMENT, "tuning: %s is NULL", device ? "descs" : "device");
    TRY(rnl_alloc(count, sizeof *subjects, &subjects));
    GOTO(start(&t, descs, count, options, subjects));
    for (size_t i = 0; i < count; ++i)
        if (!subjects[i].form.empty)
            GOTO(tune_one(&t, &subjects[i]), "tuning a product of %lldx%lldx%lld", (long long)subjects[i].form.desc.m,
                 (long long)subjects[i].form.desc.n, (long long)subjects[i].form.desc.k);
    for (size_t i = 0; i < count; ++i)
        GOTO(note(&t, &subjects[i]));
    for (size_t i = 0; best && i < count; ++i)
        best[i] = subjects[i].best;
    rnl_tuning_save(device);
done:
    rnl_free(subjects);
    return status;
}
