/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments that all kernels of the family take, and the portable one. */
#include "ops/implementation.h"
#include "ops/qgemm_problem.h"

int32_t rnl_qgemm_flip(rnl_dtype dtype, bool is_b)
{
    return (dtype == RNL_U8) == is_b ? 0x80 : 0;
}

/* Results of either type of 8 bits are the same bytes. */
static rnl_dtype kernel_type(rnl_dtype dtype)
{
    return dtype == RNL_I8 ? RNL_U8 : dtype;
}

static void add_batch(rnl_step_builder *step, const rnl_dims *batch)
{
    static const int views[5] = {RNL_QGEMM_A, RNL_QGEMM_B, RNL_QGEMM_DST, RNL_QGEMM_ZA, RNL_QGEMM_ZB};
    int64_t sizes[RNL_MAX_RANK], strides[RNL_MAX_RANK];
    for (size_t i = 0; i < batch->rank; ++i)
        sizes[i] = batch->shape[batch->rank - 1 - i];
    rnl_step_indices(step, 8, sizes, batch->rank, 1);
    for (size_t v = 0; v < 5; ++v) {
        for (size_t i = 0; i < batch->rank; ++i)
            strides[i] = batch->stride[views[v]][batch->rank - 1 - i];
        rnl_step_indices(step, 8, strides, batch->rank, 0);
    }
}

static void add_chain(rnl_step_builder *step, const rnl_qgemm_problem *p)
{
    int64_t strides[RNL_CHAIN_MAX_OPERANDS][RNL_MAX_RANK] = {{0}};
    const rnl_dims *batch = &p->batch;
    for (size_t i = 0; p->chain && i < p->chain->operand_count; ++i) {
        for (size_t d = 0; d < batch->rank; ++d)
            strides[i][d] = batch->stride[RNL_QGEMM_OPERAND + i][batch->rank - 1 - d];
        strides[i][6] = p->operand_m[i];
        strides[i][7] = p->operand_n[i];
    }
    rnl_chain_define(step, p->chain, p->operand_n);
    rnl_chain_arguments(step, p->chain, 8, (const int64_t(*)[RNL_MAX_RANK])strides, 8);
}

void rnl_qgemm_add_common(rnl_step_builder *step, const rnl_qgemm_problem *p, const rnl_qgemm_grid *grid)
{
    const rnl_view *views[] = {p->a, p->b, p->dst, p->za, p->zb, p->bias, p->a_scale, p->b_scale, p->dst_scale, p->zd};
    const int64_t size[4] = {p->m, p->n, p->k, rnl_dims_elements(&p->batch)};
    const int64_t stride[8] = {p->a_m, p->a_k, p->b_k, p->b_n, p->dst_m, p->dst_n, p->za_m, p->zb_n};
    const int32_t flags[8] = {(int32_t)p->has,
                              grid->rows_first,
                              rnl_qgemm_flip(p->a->dtype, false),
                              rnl_qgemm_flip(p->b_given->dtype, true),
                              p->dst->dtype == RNL_I8,
                              grid->fours_of_a,
                              grid->tiles,
                              grid->blocks};
    rnl_step_type(step, "T_DST", kernel_type(p->dst->dtype));
    for (size_t i = 0; i < sizeof views / sizeof *views; ++i)
        rnl_step_view(step, views[i]);
    rnl_step_indices(step, 4, size, 4, 0);
    rnl_step_indices(step, 8, stride, 8, 0);
    rnl_step_indices(step, 2, (const int64_t[]){p->bias_n, p->b_scale_n}, 2, 0);
    add_batch(step, &p->batch);
    rnl_step_value(step, flags, sizeof flags);
    add_chain(step, p);
}

rnl_status rnl_qgemm_end(rnl_step_builder *step, const rnl_qgemm_problem *p, const char *file, const char *kernel)
{
    const uint64_t results = (uint64_t)rnl_view_elements(p->dst);
    step->step.flops = 2 * results * (uint64_t)p->k + rnl_chain_flops(p->chain, p->dst);
    step->step.bytes = (uint64_t)rnl_view_elements(p->a) + (uint64_t)rnl_view_elements(p->b_given) +
                       results * rnl_dtype_bytes(p->dst->dtype) + rnl_chain_bytes(p->chain);
    rnl_step_writes(step, p->dst->slot);
    return rnl_step_end(step, file, kernel);
}

rnl_status rnl_qgemm_portable_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_qgemm_problem *p = data;
    const size_t items[3] = {(size_t)p->n, (size_t)p->m, (size_t)rnl_dims_elements(&p->batch)};
    size_t local[3];
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, p->index64);
    rnl_qgemm_add_common(&step, p, &(rnl_qgemm_grid){.tiles = 1});
    rnl_group_of_64(items, local);
    rnl_step_range(&step, 3, items, local);
    return rnl_qgemm_end(&step, p, "qgemm.cl", "qgemm");
}
