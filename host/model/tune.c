/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring the variants of kernels: a trial model is planned and profiled with each variant forced in turn. */
#include "base/memory.h"
#include "model/profile.h"
#include "ops/tuning.h"
#include <string.h>

#define RUNS 7 /* whose shortest time counts: what disturbs a step makes it longer */
/* A variant must beat the present choice by that much, or noise would decide. */
#define LEAST_GAIN 0.97

typedef struct problem {
    rnl_hash hash;
    uint32_t best; /* variant */
    uint64_t present_ns, best_ns;
} problem;

typedef struct tuner {
    rnl_model *model;
    const rnl_tensor *inputs;
    size_t input_count;
    rnl_tune_options options;
    size_t done;
    problem *problems;
    size_t count, capacity;
    uint32_t variants; /* the most that a step has */
} tuner;

static rnl_status find_problem(tuner *t, rnl_hash hash, problem **out_problem)
{
    for (size_t i = 0; i < t->count; i++) {
        *out_problem = &t->problems[i];
        if (rnl_hash_equal(t->problems[i].hash, hash))
            return RNL_OK;
    }
    TRY(rnl_grow(&t->problems, &t->capacity, t->count + 1, sizeof *t->problems));
    *out_problem = &t->problems[t->count++];
    **out_problem = (problem){hash, RNL_TUNING_NONE, UINT64_MAX, UINT64_MAX};
    return RNL_OK;
}

/* Takes note of one run's times; `variant` is RNL_TUNING_NONE for those of the present choices. */
static rnl_status note_times(tuner *t, const rnl_plan *plan, const rnl_step_profile *times, uint32_t variant)
{
    for (size_t i = 0; i < plan->steps.step_count; i++) {
        const rnl_step *step = &plan->steps.steps[i];
        problem *p;
        if (step->variants == 0 || (variant != RNL_TUNING_NONE && variant >= step->variants) || times[i].time_ns == 0)
            continue;
        TRY(find_problem(t, step->problem, &p));
        if (variant == RNL_TUNING_NONE && times[i].time_ns < p->present_ns)
            p->present_ns = times[i].time_ns;
        if (variant != RNL_TUNING_NONE && times[i].time_ns < p->best_ns) {
            p->best_ns = times[i].time_ns;
            p->best = variant;
        }
    }
    return RNL_OK;
}

static rnl_status note_run(tuner *t, const rnl_profile *profile, uint32_t variant)
{
    for (size_t i = 0; i < profile->piece_count; i++)
        TRY(note_times(t, profile->pieces[i].plan, profile->steps + profile->pieces[i].first_step, variant));
    return RNL_OK;
}

static void note_variants(tuner *t, const rnl_profile *profile)
{
    for (size_t i = 0; i < profile->piece_count; i++) {
        const rnl_step_list *steps = &profile->pieces[i].plan->steps;
        for (size_t j = 0; j < steps->step_count; j++)
            t->variants = steps->steps[j].variants > t->variants ? steps->steps[j].variants : t->variants;
    }
}

static rnl_status tell(tuner *t)
{
    const size_t total = (size_t)(RUNS + 1) * (1 + t->variants);
    ++t->done;
    if (t->options.progress && !t->options.progress(t->options.user, t->done < total ? t->done : total, total))
        return FAIL(RNL_CANCELLED, "tuning was cancelled");
    return RNL_OK;
}

static rnl_status measure(tuner *t, uint32_t variant)
{
    rnl_model *trial = NULL;
    rnl_session *session = NULL;
    const rnl_step_profile *times;
    size_t count;
    rnl_status status = RNL_OK;
    GOTO(rnl_tuning_force(t->model->device, variant));
    GOTO(rnl_model_open(t->model->graph, t->model->device, &t->model->options, &trial));
    GOTO(rnl_session_create(trial, &session));
    for (size_t i = 0; i <= RUNS; i++) { /* the first one compiles */
        GOTO(rnl_session_profile(session, t->inputs, t->input_count, &times, &count));
        if (i > 0)
            GOTO(note_run(t, session->profile, variant));
        note_variants(t, session->profile);
        GOTO(tell(t));
    }
done:
    rnl_session_release(session);
    rnl_model_release(trial);
    return status;
}

static rnl_status note_best(tuner *t, size_t *out_changed)
{
    rnl_device *device = t->model->device;
    for (size_t i = 0; i < t->count; i++) {
        const problem *p = &t->problems[i];
        if (p->best == RNL_TUNING_NONE || (double)p->best_ns > LEAST_GAIN * (double)p->present_ns)
            continue;
        TRY(rnl_tuning_set(device, p->hash, p->best));
        ++*out_changed;
    }
    if (*out_changed == 0)
        return RNL_OK;
    rnl_tuning_save(device);
    rnl_plan_cache_forget(&t->model->plans);
    return RNL_OK;
}

static rnl_status take_options(tuner *t, const rnl_tune_options *options)
{
    if (options && (options->struct_size == 0 || options->struct_size > sizeof t->options))
        return FAIL(RNL_INVALID_ARGUMENT, "tuning: options.struct_size is %zu; use RNL_TUNE_OPTIONS_INIT",
                    options->struct_size);
    if (options)
        memcpy(&t->options, options, options->struct_size);
    return RNL_OK;
}

rnl_status rnl_model_tune(rnl_model *model, const rnl_tensor *inputs, size_t input_count,
                          const rnl_tune_options *options, size_t *out_changed)
{
    tuner t = {.model = model, .inputs = inputs, .input_count = input_count};
    size_t changed = 0;
    rnl_status status = RNL_OK;
    if (out_changed)
        *out_changed = 0;
    if (!model)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_model_tune: model is NULL");
    if (model->is_deterministic)
        return FAIL(RNL_FAILED_PRECONDITION, "a deterministic model goes by no tuning table: there is nothing to tune");
    TRY(take_options(&t, options));
    GOTO(measure(&t, RNL_TUNING_NONE), "tuning");
    for (uint32_t variant = 0; variant < t.variants; variant++)
        GOTO(measure(&t, variant), "tuning");
    GOTO(note_best(&t, &changed));
    if (out_changed)
        *out_changed = changed;
done:;
    rnl_error error = *rnl_last_error();
    (void)!rnl_tuning_force(model->device, RNL_TUNING_NONE);
    if (status != RNL_OK)
        rnl_error_restore(&error);
    rnl_free(t.problems);
    return status;
}
