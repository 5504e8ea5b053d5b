/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/random.h"
#include "ops/step_build.h"

rnl_status rnl_op_random(rnl_step_list *list, const rnl_random_params *params, const rnl_view *state,
                         const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){dst, state}, 2, &index64), "operands of random numbers");
    if (!rnl_dtype_is_float(dst->dtype) || state->dtype != RNL_U32 || state->rank != 1 ||
        state->shape[0] != RNL_RANDOM_WORDS || !rnl_view_is_row_major(state))
        return FAIL(RNL_INVALID_ARGUMENT, "random numbers are floats, and made of a state of four words");
    const int64_t count = rnl_view_elements(dst), each = dst->dtype == RNL_F64 ? 2 : 4;
    if (count == 0)
        return RNL_OK;
    rnl_step_begin(&step, list, "random:philox", index64);
    rnl_step_type(&step, "T", dst->dtype);
    rnl_step_define(&step, "NORMAL=%d", params->normal);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, state);
    rnl_step_index(&step, count);
    rnl_step_int(&step, dst->rank > 3);
    rnl_step_dims(&step, dst->shape, dst->rank, 1);
    rnl_step_dims(&step, dst->stride, dst->rank, 0);
    rnl_step_value(&step, &params->ordinal, sizeof params->ordinal);
    rnl_step_int(&step, params->seeded);
    rnl_step_value(&step, &params->seed, sizeof params->seed);
    rnl_step_float(&step, params->a);
    rnl_step_float(&step, params->b);
    rnl_step_range(&step, 1, (size_t[3]){(size_t)((count - 1) / each + 1)}, (size_t[3]){64});
    step.step.bytes = (uint64_t)count * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "random.cl", "random");
}

static rnl_status check_classes(const rnl_view *sums, const rnl_view *uniforms, const rnl_view *dst)
{
    const bool floats = sums->dtype == RNL_F32 || sums->dtype == RNL_F64;
    if (floats && uniforms->dtype == sums->dtype && (dst->dtype == RNL_I32 || dst->dtype == RNL_I64) &&
        sums->rank == 2 && dst->rank == 2 && rnl_shapes_equal(uniforms, dst) && sums->shape[0] == dst->shape[0] &&
        (sums->shape[1] > 0 || rnl_view_elements(dst) == 0))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "classes are drawn by rows of sums, with a random number for each");
}

rnl_status rnl_op_multinomial(rnl_step_list *list, const rnl_view *sums, const rnl_view *uniforms, const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){dst, sums, uniforms}, 3, &index64), "operands of Multinomial");
    TRY(check_classes(sums, uniforms, dst));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    rnl_step_begin(&step, list, "multinomial:portable", index64);
    rnl_step_type(&step, "T", sums->dtype);
    rnl_step_type(&step, "T_DST", dst->dtype);
    rnl_step_view(&step, dst);
    rnl_step_indices(&step, 2, dst->stride, 2, 0);
    rnl_step_view(&step, sums);
    rnl_step_indices(&step, 2, sums->stride, 2, 0);
    rnl_step_view(&step, uniforms);
    rnl_step_indices(&step, 2, uniforms->stride, 2, 0);
    rnl_step_index(&step, dst->shape[0]);
    rnl_step_index(&step, dst->shape[1]);
    rnl_step_index(&step, sums->shape[1]);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)dst->shape[1], (size_t)dst->shape[0]}, (size_t[3]){16, 4});
    step.step.bytes = (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "multinomial.cl", "multinomial");
}
