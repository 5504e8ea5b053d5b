/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qdynamic.h"
#include "base/status.h"
#include "ops/implementation.h"
#include "ops/step_build.h"

#define ALONE (1 << 16) /* elements that one thread has done before another one is woken, twice */
#define PIECE (1 << 13)
#define MOST_PIECES 256

/* How many elements lie side by side, in one order in both; 0: they do not. */
static int64_t dense_elements(const rnl_view *src, const rnl_view *dst)
{
    rnl_dims dims = {.rank = dst->rank, .views = 2};
    if (src->dtype != RNL_F32 || dst->dtype != RNL_U8 || !rnl_shapes_equal(src, dst))
        return 0;
    for (size_t i = 0; i < dst->rank; ++i) {
        dims.shape[i] = dst->shape[i];
        dims.stride[0][i] = dst->stride[i];
        dims.stride[1][i] = src->stride[i];
    }
    rnl_dims_coalesce(&dims);
    return dims.rank == 1 && dims.stride[0][0] == 1 && dims.stride[1][0] == 1 ? dims.shape[0] : 0;
}

static int64_t vector_of(const rnl_device *device)
{
    return device->vector_width < 4 ? 4 : device->vector_width;
}

/* Pieces of whole vectors; one: the tensor is small. */
static int64_t count_pieces(int64_t elements, int64_t *out_each)
{
    int64_t each = PIECE;
    while ((elements - 1) / each >= MOST_PIECES)
        each *= 2;
    *out_each = elements <= ALONE ? elements : each;
    return (elements - 1) / *out_each + 1;
}

size_t rnl_quantize_dynamic_scratch(const rnl_device *device, const rnl_view *src, const rnl_view *dst)
{
    const int64_t elements = dense_elements(src, dst);
    int64_t each;
    return rnl_device_is_cpu(device) && elements >= vector_of(device) ? 2 * (size_t)count_pieces(elements, &each) : 0;
}

static rnl_status check(const rnl_view *const views[5], size_t floats, bool *out_index64)
{
    TRY(rnl_views_check(views, 5, out_index64), "operands of a dynamic quantisation");
    if (!floats)
        return FAIL(RNL_INVALID_ARGUMENT, "a dynamic quantisation of floats that do not lie side by side");
    for (size_t i = 2; i < 4; ++i)
        if (views[i]->dtype != (i == 2 ? RNL_F32 : RNL_U8) || rnl_view_elements(views[i]) != 1)
            return FAIL(RNL_INVALID_ARGUMENT,
                        "a dynamic quantisation's scale is one float32, its zero point one uint8");
    if (views[4]->dtype != RNL_F32 || rnl_view_elements(views[4]) < (int64_t)floats)
        return FAIL(RNL_INVALID_ARGUMENT, "a dynamic quantisation lacks memory for its bounds");
    return RNL_OK;
}

typedef struct pieces {
    int64_t vector, elements, each, count;
} pieces;

static rnl_status append(rnl_step_list *list, const char *kernel, const rnl_view *const views[5], const pieces *p,
                         bool index64, bool stores)
{
    rnl_step_builder step;
    rnl_step_begin(&step, list, "qdynamic:vectors", index64);
    rnl_step_define(&step, "V=%lld", (long long)p->vector);
    for (size_t i = 0; i < 4; ++i)
        rnl_step_slot(&step, views[i]->slot);
    rnl_step_offsets(&step, 8, views, 4, (const int64_t[]){p->elements, p->each, p->count}, 3);
    rnl_step_view(&step, views[4]);
    rnl_step_range(&step, 1, (size_t[3]){(size_t)p->count}, (size_t[3]){1});
    step.step.bytes = (uint64_t)p->elements * (stores ? 5 : 4);
    step.step.flops = (uint64_t)p->elements * 2;
    for (size_t i = 0; stores && i < 4; ++i)
        if (i != 1)
            rnl_step_writes(&step, views[i]->slot);
    if (!stores)
        rnl_step_writes(&step, views[4]->slot);
    return rnl_step_end(&step, "qdynamic.cl", kernel);
}

rnl_status rnl_op_quantize_dynamic(rnl_step_list *list, const rnl_view *src, const rnl_view *scratch,
                                   const rnl_view *dst, const rnl_view *scale, const rnl_view *zero_point)
{
    const rnl_view *views[5] = {dst, src, scale, zero_point, scratch};
    bool index64 = false;
    TRY(check(views, rnl_quantize_dynamic_scratch(list->device, src, dst), &index64));
    pieces p = {.vector = vector_of(list->device), .elements = dense_elements(src, dst)};
    p.count = count_pieces(p.elements, &p.each);
    index64 = index64 || p.elements > INT32_MAX - p.each;
    if (p.count == 1)
        return append(list, "qdynamic_whole", views, &p, index64, true);
    TRY(append(list, "qdynamic_bounds", views, &p, index64, false));
    return append(list, "qdynamic_store", views, &p, index64, true);
}
