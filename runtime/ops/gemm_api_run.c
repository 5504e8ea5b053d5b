/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueueing a prepared product. */
#include "base/status.h"
#include "kernel/team.h"
#include "ops/gemm_api.h"
#include <string.h>

#define FEWEST_IN_A_ROW 4 /* a team's threads are gone to and left in the time of two launches */
#define MOST_WORK 5e8     /* multiply-adds: of what takes longer, none is worth going to them */

/* A matrix as the user gave it. */
typedef struct given {
    const rnl_gemm_matrix *matrix;
    uint32_t slot;
    const rnl_buffer *buffer;
    int64_t offset;
    const int64_t *offsets;
} given;

static size_t place_of(const given *it, int64_t product)
{
    const int64_t first = it->offset + (it->offsets ? it->offsets[product] : product * it->matrix->batch_stride);
    return (size_t)first * rnl_dtype_bytes(it->matrix->dtype);
}

static void set_vector(rnl_slot_memory *slot, const rnl_buffer *buffer, int64_t offset, rnl_dtype dtype)
{
    if (buffer)
        *slot = (rnl_slot_memory){buffer->memory, (size_t)offset * rnl_dtype_bytes(dtype)};
}

/* What is not there is never read: any memory stands for it. */
static void set_slots(const rnl_gemm *gemm, const rnl_gemm_operands *o, const given *matrices, size_t count,
                      int64_t product, rnl_slot_memory slots[RNL_GEMM_SLOTS])
{
    const rnl_gemm_desc *d = &gemm->form.desc;
    const bool integers = gemm->form.integers && d->c_type != RNL_F32;
    for (size_t i = 0; i < RNL_GEMM_SLOTS; ++i)
        slots[i] = (rnl_slot_memory){o->c->memory, 0};
    for (size_t i = 0; i < count; ++i)
        if (matrices[i].buffer)
            slots[matrices[i].slot] = (rnl_slot_memory){matrices[i].buffer->memory, place_of(&matrices[i], product)};
    set_vector(&slots[RNL_GEMM_SLOT_BIAS], o->bias, o->bias_offset, integers ? RNL_I32 : d->c_type);
    set_vector(&slots[RNL_GEMM_SLOT_SCALES], o->scales, o->scales_offset, RNL_F32);
    set_vector(&slots[RNL_GEMM_SLOT_CONSTANTS], gemm->constants, 0, RNL_U8);
    set_vector(&slots[RNL_GEMM_SLOT_SCRATCH], gemm->workspace->scratch, 0, RNL_U8);
}

static rnl_status enqueue(rnl_stream *stream, rnl_gemm *gemm, const rnl_gemm_plan *plan, const rnl_gemm_operands *o,
                          const given *matrices, size_t count)
{
    const int64_t products = plan->mode.single ? gemm->form.desc.batch : 1;
    rnl_slot_memory slots[RNL_GEMM_SLOTS];
    for (int64_t product = 0; product < products; ++product) {
        set_slots(gemm, o, matrices, count, product, slots);
        for (size_t i = 0; i < plan->steps.step_count; ++i)
            TRY(rnl_step_enqueue(stream, gemm->kernels, &plan->steps, i, slots, RNL_GEMM_SLOTS), "a matrix product");
    }
    return rnl_team_push(stream); /* nobody knows when the caller comes back */
}

/* From the object's own memory: it goes after the stream has got there. */
static rnl_status write_constants(rnl_stream *stream, rnl_gemm *gemm)
{
    if (!gemm->constants || gemm->constants_written)
        return RNL_OK;
    rnl_gemm_constants(&gemm->form.desc, gemm->constant_bytes);
    TRY(rnl_stream_write(stream, gemm->constants, 0, gemm->constant_bytes, sizeof gemm->constant_bytes));
    gemm->constants_written = true;
    return RNL_OK;
}

/* Pinned memory has two sides on some devices. */
static rnl_status push(rnl_stream *stream, const rnl_buffer *buffer)
{
    return buffer ? rnl_buffer_push(stream, buffer, 0, buffer->size_bytes) : RNL_OK;
}

static rnl_status push_all(rnl_stream *stream, const rnl_gemm_operands *o)
{
    const rnl_buffer *buffers[] = {
        o->packed_a ? NULL : o->a, o->packed_b ? NULL : o->b, o->c, o->bias, o->residual, o->scales};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; ++i)
        TRY(push(stream, buffers[i]));
    return RNL_OK;
}

/* What is given but not used was not checked either. */
static void drop_unused(const rnl_gemm *gemm, const rnl_gemm_mode *mode, rnl_gemm_operands *o)
{
    const rnl_gemm_desc *d = &gemm->form.desc;
    if (mode->alpha == 0 || d->k == 0)
        o->a = o->b = NULL, o->packed_a = o->packed_b = NULL;
    if (d->bias == RNL_GEMM_BIAS_NONE)
        o->bias = NULL;
    if (!d->residual)
        o->residual = NULL;
    if (!gemm->form.integers || d->c_type == RNL_I32 || d->scale != 0)
        o->scales = NULL;
}

static given packed_or(const rnl_gemm_matrix *matrix, uint32_t slot, const rnl_packed *packed, const rnl_buffer *buffer,
                       int64_t offset, const int64_t *offsets)
{
    static const rnl_gemm_matrix whole = {.dtype = RNL_U8};
    if (packed)
        return (given){&whole, slot, packed->buffer, 0, NULL};
    return (given){matrix, slot, buffer, offset, offsets};
}

static bool all_wait(const rnl_step_list *steps)
{
    for (size_t i = 0; i < steps->step_count; ++i)
        if (!steps->steps[i].waits || !steps->steps[i].may_be_cut)
            return false;
    return true;
}

/* Small products that follow each other. */
static rnl_status follow(rnl_stream *stream, const rnl_gemm *gemm, const rnl_gemm_plan *plan, uint32_t in_a_row)
{
    const rnl_gemm_desc *d = &gemm->form.desc;
    const double work = (double)d->m * (double)d->n * (double)d->k * (double)d->batch;
    if (in_a_row < FEWEST_IN_A_ROW || work > MOST_WORK || !all_wait(&plan->steps))
        return rnl_team_end(stream);
    return rnl_team_follow(stream);
}

rnl_status rnl_stream_gemm(rnl_stream *stream, rnl_gemm *gemm, const rnl_gemm_operands *operands)
{
    rnl_gemm_operands o;
    rnl_gemm_mode mode;
    rnl_gemm_plan *plan;
    TRY(rnl_gemm_operands_of(stream, gemm, operands, &o));
    TRY(rnl_stream_check_only(stream));
    if (gemm->form.empty)
        return RNL_OK;
    TRY(rnl_gemm_mode_of(gemm, &o, &mode));
    TRY(rnl_gemm_find_plan(gemm, &mode, &plan));
    rnl_gemm_note(gemm, plan);
    TRY(rnl_gemm_reserve(gemm->workspace, gemm->device, stream, plan->scratch_bytes));
    drop_unused(gemm, &mode, &o);
    const rnl_gemm_form *form = &gemm->form;
    const given matrices[] = {
        packed_or(&form->a, RNL_GEMM_SLOT_A, o.packed_a, o.a, o.a_offset, o.a_offsets),
        packed_or(&form->b, RNL_GEMM_SLOT_B, o.packed_b, o.b, o.b_offset, o.b_offsets),
        {&form->c, RNL_GEMM_SLOT_C, o.c, o.c_offset, o.c_offsets},
        {&form->residual, RNL_GEMM_SLOT_RESIDUAL, o.residual, o.residual_offset, o.residual_offsets},
    };
    TRY(write_constants(stream, gemm));
    TRY(push_all(stream, &o));
    const uint32_t in_a_row = stream->products;
    TRY(follow(stream, gemm, plan, in_a_row));
    TRY(enqueue(stream, gemm, plan, &o, matrices, sizeof matrices / sizeof *matrices));
    stream->products = in_a_row < FEWEST_IN_A_ROW || stream->leave_team ? in_a_row + 1 : 0;
    return rnl_buffer_pull(stream, o.c, 0, o.c->size_bytes);
}
