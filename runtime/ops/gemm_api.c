/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared products. */
#include "ops/gemm_api.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernel/team.h"
#include "ops/gemm.h"
#include <string.h>

static rnl_status build(const rnl_step_list *steps)
{
    for (size_t i = 0; i < steps->step_count; ++i)
        if (steps->steps[i].kind == RNL_STEP_KERNEL)
            TRY(rnl_program_build(steps->steps[i].program));
    return RNL_OK;
}

static bool is_mode(const rnl_gemm_mode *a, const rnl_gemm_mode *b)
{
    return memcmp(&a->alpha, &b->alpha, sizeof a->alpha) == 0 && memcmp(&a->beta, &b->beta, sizeof a->beta) == 0 &&
           a->a == b->a && a->b == b->b && a->single == b->single && a->wide == b->wide;
}

rnl_status rnl_gemm_find_plan(rnl_gemm *gemm, const rnl_gemm_mode *mode, rnl_gemm_plan **out_plan)
{
    rnl_gemm_plan *oldest = gemm->plans, plan = {.mode = *mode};
    rnl_status status = RNL_OK;
    for (size_t i = 0; i < RNL_GEMM_PLANS; ++i) {
        *out_plan = &gemm->plans[i];
        if ((*out_plan)->steps.device && is_mode(&(*out_plan)->mode, mode)) {
            (*out_plan)->used = ++gemm->uses;
            return RNL_OK;
        }
        if ((*out_plan)->used < oldest->used)
            oldest = *out_plan;
    }
    *out_plan = NULL;
    rnl_step_list_init(&plan.steps, gemm->device);
    GOTO(rnl_gemm_form_append(&gemm->form, mode, &plan.steps, &plan.scratch_bytes));
    GOTO(build(&plan.steps));
    rnl_step_list_free(&oldest->steps);
    *oldest = plan;
    gemm->noted = NULL;
    oldest->used = ++gemm->uses;
    *out_plan = oldest;
done:
    if (status)
        rnl_step_list_free(&plan.steps);
    return status;
}

rnl_status rnl_gemm_reserve(rnl_gemm_workspace *workspace, rnl_device *device, rnl_stream *stream, size_t size_bytes)
{
    rnl_buffer *larger = NULL;
    if (rnl_buffer_size(workspace->scratch) >= size_bytes)
        return RNL_OK;
    if (workspace->scratch && stream)
        TRY(rnl_stream_synchronize(stream));
    rnl_buffer_release(workspace->scratch);
    workspace->scratch = NULL;
    TRY(rnl_buffer_create(device, RNL_MEMORY_DEVICE, size_bytes, &larger), "scratch memory of a matrix product");
    workspace->scratch = larger;
    return RNL_OK;
}

void rnl_gemm_note(rnl_gemm *gemm, const rnl_gemm_plan *plan)
{
    const rnl_step_list *steps = &plan->steps;
    rnl_gemm_info *info = &gemm->info;
    if (gemm->noted == plan)
        return;
    gemm->noted = plan;
    info->launches = (uint32_t)steps->step_count;
    info->scratch_bytes = plan->scratch_bytes;
    info->flops = 0;
    for (size_t i = 0; i < steps->step_count; ++i) {
        info->flops += steps->steps[i].flops;
        info->implementation = steps->steps[i].implementation;
    }
}

/* What must move at least: each operand once. */
static uint64_t needed_bytes(const rnl_gemm_form *form)
{
    const rnl_gemm_matrix *matrices[4] = {&form->a, &form->b, &form->c, &form->residual};
    const size_t count = form->desc.residual ? 4 : 3;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; ++i) {
        const uint64_t copies = matrices[i]->batch_stride ? (uint64_t)form->desc.batch : 1;
        bytes +=
            copies * (uint64_t)matrices[i]->rows * (uint64_t)matrices[i]->columns * rnl_dtype_bytes(matrices[i]->dtype);
    }
    return form->desc.beta != 0 ? bytes + (uint64_t)form->c.whole * rnl_dtype_bytes(form->c.dtype) : bytes;
}

static rnl_status prepare(rnl_gemm *gemm)
{
    const rnl_gemm_mode mode = {.alpha = gemm->form.desc.alpha, .beta = gemm->form.desc.beta};
    rnl_gemm_plan *plan;
    gemm->info = (rnl_gemm_info){.implementation = ""};
    if (gemm->form.desc.implementation)
        TRY(rnl_strdup(gemm->form.desc.implementation, &gemm->implementation));
    gemm->form.desc.implementation = gemm->implementation;
    TRY(rnl_kernel_set_create(gemm->device, &gemm->kernels));
    if (gemm->form.empty)
        return RNL_OK;
    (void)rnl_device_has_team(gemm->device); /* before any step: see rnl_team_offset */
    if (gemm->form.integers)
        TRY(rnl_buffer_create(gemm->device, RNL_MEMORY_DEVICE, 4 * RNL_GEMM_CONSTANT_BYTES, &gemm->constants));
    TRY(rnl_gemm_find_plan(gemm, &mode, &plan));
    rnl_gemm_note(gemm, plan);
    gemm->info.bytes = needed_bytes(&gemm->form);
    return gemm->workspace == &gemm->own ? rnl_gemm_reserve(&gemm->own, gemm->device, NULL, plan->scratch_bytes)
                                         : RNL_OK;
}

rnl_status rnl_gemm_create_in(rnl_device *device, const rnl_gemm_desc *desc, uint32_t variant,
                              rnl_gemm_workspace *workspace, rnl_gemm **out_gemm)
{
    rnl_gemm *gemm = NULL;
    rnl_gemm_form form;
    *out_gemm = NULL;
    if (!device)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product: device is NULL");
    TRY(rnl_gemm_form_of(desc, &form));
    TRY(rnl_alloc(1, sizeof *gemm, &gemm));
    atomic_init(&gemm->references, 1);
    gemm->device = rnl_device_retain(device);
    gemm->form = form;
    gemm->form.variant = variant;
    gemm->workspace = workspace ? workspace : &gemm->own;
    const rnl_status status = prepare(gemm);
    if (status != RNL_OK)
        rnl_gemm_release(gemm);
    else
        *out_gemm = gemm;
    return status;
}

rnl_status rnl_gemm_create(rnl_device *device, const rnl_gemm_desc *desc, rnl_gemm **out_gemm)
{
    return rnl_gemm_create_in(device, desc, 0, NULL, out_gemm);
}

rnl_gemm *rnl_gemm_retain(rnl_gemm *gemm)
{
    if (gemm)
        atomic_fetch_add_explicit(&gemm->references, 1, memory_order_relaxed);
    return gemm;
}

void rnl_gemm_release(rnl_gemm *gemm)
{
    if (!gemm || atomic_fetch_sub_explicit(&gemm->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < RNL_GEMM_PLANS; ++i)
        rnl_step_list_free(&gemm->plans[i].steps);
    rnl_kernel_set_release(gemm->kernels);
    rnl_buffer_release(gemm->constants);
    rnl_buffer_release(gemm->own.scratch);
    rnl_device_release(gemm->device);
    rnl_free(gemm->implementation);
    rnl_free(gemm);
}

void rnl_gemm_get_info(const rnl_gemm *gemm, rnl_gemm_info *out_info)
{
    *out_info = gemm ? gemm->info : (rnl_gemm_info){.implementation = ""};
}

size_t rnl_gemm_implementations(const char **out_names, size_t capacity)
{
    static const char *const of_integers[] = {"vnni", "madd", "dot"}; /* the others have names that floats' have too */
    size_t count = rnl_gemm_names(out_names, capacity);
    for (size_t i = 0; i < sizeof of_integers / sizeof *of_integers; ++i, ++count)
        if (count < capacity)
            out_names[count] = of_integers[i];
    return count;
}
