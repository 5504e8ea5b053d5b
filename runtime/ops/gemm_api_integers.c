/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 8-bit integers, from a description to an operator's views. */
#include "base/status.h"
#include "ops/gemm_api.h"
#include "ops/qgemm.h"
#include <string.h>

static rnl_view constant_view(rnl_dtype dtype, int64_t index)
{
    rnl_view view = {.slot = RNL_GEMM_SLOT_CONSTANTS, .dtype = dtype, .rank = 1, .shape = {1}, .stride = {1}};
    view.offset = index * RNL_GEMM_CONSTANT_BYTES / (int64_t)rnl_dtype_bytes(dtype);
    return view;
}

void rnl_gemm_constants(const rnl_gemm_desc *desc, unsigned char out_bytes[4 * RNL_GEMM_CONSTANT_BYTES])
{
    const int32_t zeros[3] = {desc->a_zero, desc->b_zero, desc->c_zero};
    memset(out_bytes, 0, 4 * RNL_GEMM_CONSTANT_BYTES);
    for (size_t i = 0; i < 3; ++i)
        out_bytes[i * RNL_GEMM_CONSTANT_BYTES] = (unsigned char)(zeros[i] & 0xff);
    memcpy(&out_bytes[3 * RNL_GEMM_CONSTANT_BYTES], &desc->scale, sizeof desc->scale);
}

static void add_zeros(const rnl_gemm_form *form, rnl_gemm_product *p, rnl_qgemm_params *params)
{
    const rnl_gemm_desc *d = &form->desc;
    const int32_t zeros[2] = {form->swapped ? d->b_zero : d->a_zero, form->swapped ? d->a_zero : d->b_zero};
    p->a_zero = constant_view(p->a.dtype, form->swapped);
    p->b_zero = constant_view(p->b.dtype, !form->swapped);
    p->c_zero = constant_view(p->c.dtype, 2);
    params->a_zero_point = zeros[0] ? &p->a_zero : NULL;
    params->b_zero_point = zeros[1] ? &p->b_zero : NULL;
    params->dst_zero_point = d->c_zero ? &p->c_zero : NULL;
}

static void add_scales(const rnl_gemm_form *form, rnl_gemm_product *p, rnl_qgemm_params *params)
{
    if (form->desc.c_type == RNL_I32)
        return;
    p->scale = constant_view(RNL_F32, 3);
    p->scales = rnl_gemm_line(RNL_GEMM_SLOT_SCALES, RNL_F32, form->desc.n);
    if (form->desc.scale != 0)
        params->a_scale = &p->scale;
    else
        params->b_scale = &p->scales;
}

rnl_status rnl_gemm_append_integers(const rnl_gemm_form *form, rnl_step_list *list, rnl_gemm_product *p,
                                    size_t *out_scratch_bytes)
{
    const rnl_gemm_desc *d = &form->desc;
    rnl_qgemm_params params = {.chain = p->chain.stage_count ? &p->chain : NULL, .implementation = d->implementation};
    int64_t ints = 0;
    size_t bytes = 0;
    add_zeros(form, p, &params);
    add_scales(form, p, &params);
    if (d->bias != RNL_GEMM_BIAS_NONE && d->c_type != RNL_F32) {
        p->bias = rnl_gemm_line(RNL_GEMM_SLOT_BIAS, RNL_I32, d->bias == RNL_GEMM_BIAS_COLUMNS ? d->n : d->m);
        params.bias = &p->bias;
    }
    if (p->packed_b) {
        TRY(rnl_qgemm_packed_bytes(list->device, &p->b, &bytes));
        p->packed = rnl_gemm_line(p->b.slot, RNL_I32, (int64_t)(bytes / sizeof(int32_t)));
        params.packed_b = &p->packed;
    }
    TRY(rnl_qgemm_scratch(list->device, &params, &p->a, &p->b, &p->c, &ints));
    TRY(rnl_gemm_scratch_bytes(ints, out_scratch_bytes));
    p->scratch = rnl_gemm_line(RNL_GEMM_SLOT_SCRATCH, RNL_I32, ints);
    if (ints > 0)
        params.scratch = &p->scratch;
    return rnl_op_qgemm(list, &params, &p->a, &p->b, &p->c);
}

rnl_status rnl_gemm_packed_integers(rnl_device *device, const rnl_view *view, size_t *out_bytes)
{
    return rnl_qgemm_packed_bytes(device, view, out_bytes);
}

rnl_status rnl_gemm_pack_integers(rnl_step_list *list, const rnl_view *from, const rnl_view *to)
{
    return rnl_op_qgemm_pack(list, from, to);
}
