/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 8-bit integers: not offered yet. */
#include "base/status.h"
#include "ops/gemm_api.h"

rnl_status rnl_gemm_append_integers(const rnl_gemm_form *form, rnl_step_list *list, rnl_gemm_product *p,
                                    size_t *out_scratch_bytes)
{
    (void)list, (void)p, (void)out_scratch_bytes;
    return FAIL(RNL_UNIMPLEMENTED, "matrix product of %s", rnl_dtype_name(form->desc.a_type));
}

rnl_status rnl_gemm_packed_integers(rnl_device *device, const rnl_view *view, size_t *out_bytes)
{
    (void)device, (void)out_bytes;
    return FAIL(RNL_UNIMPLEMENTED, "matrix product of %s", rnl_dtype_name(view->dtype));
}

rnl_status rnl_gemm_pack_integers(rnl_step_list *list, const rnl_view *from, const rnl_view *to)
{
    (void)list, (void)to;
    return FAIL(RNL_UNIMPLEMENTED, "matrix product of %s", rnl_dtype_name(from->dtype));
}

void rnl_gemm_constants(const rnl_gemm_desc *desc, unsigned char out_bytes[4 * RNL_GEMM_CONSTANT_BYTES])
{
    (void)desc;
    for (int i = 0; i < 4 * RNL_GEMM_CONSTANT_BYTES; ++i)
        out_bytes[i] = 0;
}
