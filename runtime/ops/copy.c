/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/copy.h"
#include "ops/pieces.h"

rnl_status rnl_op_copy(rnl_step_list *list, const rnl_dims *dims, const rnl_view *src, const rnl_view *dst,
                       bool index64)
{
    rnl_step_builder step;
    const size_t vector = rnl_pieces_vector(dims, list->device->vector_width);
    const bool repeats = vector > 1 && dims->stride[1][dims->rank - 1] == 0;
    rnl_step_begin(&step, list, vector > 1 ? "copy:vectors" : "copy:portable", index64 || rnl_pieces_index64(dims));
    rnl_step_type(&step, "T", rnl_dtype_bits(dst->dtype));
    rnl_step_define(&step, "V=%zu", vector);
    rnl_step_define(&step, "STEP=%d", !repeats);
    rnl_step_view(&step, dst);
    rnl_step_pieces(&step, dims, vector);
    rnl_step_dims(&step, dims->stride[0], dims->rank, 0);
    rnl_step_view(&step, src);
    rnl_step_dims(&step, dims->stride[1], dims->rank, 0);
    step.step.bytes = 2 * (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "copy.cl", "copy");
}
