/* SPDX-License-Identifier: Apache-2.0 */
/* Packing an operand for the products that follow. */
#include "base/memory.h"
#include "base/status.h"
#include "kernel/team.h"
#include "ops/gemm_api.h"

typedef struct packing {
    rnl_stream *stream;
    rnl_gemm *gemm;
    rnl_gemm_side side;
    const rnl_gemm_matrix *matrix;
    const rnl_buffer *from;
    int64_t offset;
    bool wide;
} packing;

static rnl_status find_source(const rnl_gemm_operands *o, packing *p)
{
    const bool is_a = p->side == RNL_GEMM_SIDE_A;
    p->matrix = is_a ? &p->gemm->form.a : &p->gemm->form.b;
    p->from = is_a ? o->a : o->b;
    p->offset = is_a ? o->a_offset : o->b_offset;
    if (!is_a && p->side != RNL_GEMM_SIDE_B)
        return FAIL(RNL_INVALID_ARGUMENT, "packing a matrix: side is %d, which is neither a nor b", (int)p->side);
    if (is_a ? o->a_offsets != NULL : o->b_offsets != NULL)
        return FAIL(RNL_INVALID_ARGUMENT, "packing a matrix: %s_offsets are given; matrices lie by their stride",
                    p->matrix->name);
    if (p->matrix->whole == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "packing a matrix: %s has no elements", p->matrix->name);
    return rnl_gemm_check_range(p->gemm->device, p->matrix->name, p->from, p->matrix->dtype, p->offset,
                                p->matrix->whole, &p->wide);
}

static rnl_status enqueue(const packing *p, const rnl_step_list *steps, const rnl_packed *packed)
{
    rnl_slot_memory slots[RNL_GEMM_SLOTS];
    const size_t place = (size_t)p->offset * rnl_dtype_bytes(p->matrix->dtype);
    for (size_t i = 0; i < RNL_GEMM_SLOTS; ++i)
        slots[i] = (rnl_slot_memory){p->from->memory, place};
    slots[RNL_GEMM_SLOT_SCRATCH] = (rnl_slot_memory){packed->buffer->memory, 0};
    TRY(rnl_buffer_push(p->stream, p->from, 0, p->from->size_bytes));
    for (size_t i = 0; i < steps->step_count; ++i)
        TRY(rnl_step_enqueue(p->stream, p->gemm->kernels, steps, i, slots, RNL_GEMM_SLOTS), "packing a matrix");
    return RNL_OK;
}

static void describe(const packing *p, rnl_packed *packed)
{
    const rnl_gemm_form *form = &p->gemm->form;
    packed->side = rnl_gemm_side_of(form, p->side);
    packed->dtype = p->matrix->dtype;
    packed->rows = form->swapped ? p->matrix->columns : p->matrix->rows;
    packed->columns = form->swapped ? p->matrix->rows : p->matrix->columns;
    packed->matrices = p->matrix->batch_stride ? form->desc.batch : 1;
    packed->integers = form->integers;
}

static rnl_status pack(const packing *p, rnl_packed *packed)
{
    rnl_status status = RNL_OK;
    rnl_device *device = p->gemm->device;
    rnl_step_list steps;
    size_t bytes = 0;
    rnl_step_list_init(&steps, device);
    describe(p, packed);
    GOTO(rnl_gemm_form_pack(&p->gemm->form, p->side, p->wide, device, &steps, &packed->store, &bytes));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_DEVICE, bytes, &packed->buffer), "memory for a packed matrix");
    GOTO(enqueue(p, &steps, packed));
done:
    rnl_step_list_free(&steps);
    return status;
}

rnl_status rnl_stream_gemm_pack(rnl_stream *stream, rnl_gemm *gemm, rnl_gemm_side side,
                                const rnl_gemm_operands *operands, rnl_packed **out_packed)
{
    rnl_gemm_operands o;
    rnl_packed *packed;
    packing p = {.stream = stream, .gemm = gemm, .side = side};
    *out_packed = NULL;
    TRY(rnl_gemm_operands_of(stream, gemm, operands, &o));
    TRY(rnl_stream_check(stream));
    TRY(rnl_team_end(stream)); /* the steps that pack follow nothing */
    TRY(find_source(&o, &p));
    TRY(rnl_alloc(1, sizeof *packed, &packed));
    atomic_init(&packed->references, 1);
    const rnl_status status = pack(&p, packed);
    if (status == RNL_OK) {
        *out_packed = packed;
        return RNL_OK;
    }
    const rnl_error error = *rnl_last_error();
    (void)!rnl_stream_synchronize(stream); /* a step before the one that failed may be writing */
    rnl_packed_release(packed);
    return rnl_error_restore(&error);
}

rnl_packed *rnl_packed_retain(rnl_packed *packed)
{
    if (packed)
        atomic_fetch_add_explicit(&packed->references, 1, memory_order_relaxed);
    return packed;
}

void rnl_packed_release(rnl_packed *packed)
{
    if (!packed || atomic_fetch_sub_explicit(&packed->references, 1, memory_order_acq_rel) != 1)
        return;
    rnl_buffer_release(packed->buffer);
    rnl_free(packed);
}

size_t rnl_packed_size(const rnl_packed *packed)
{
    return packed ? rnl_buffer_size(packed->buffer) : 0;
}
