/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/attention.h"
#include "base/memory.h"
#include "ops/amx.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/step_build.h"

#define MOST_ELEMENTS 256 /* of a query or a value: what a work-item keeps of each is in its private memory */
#define BLOCK_KEYS 64
#define FEWEST_QUERIES 8 /* fewer leave most lanes empty */

static bool has_rows(const rnl_view *view)
{
    return view->rank == 4 && view->dtype == RNL_F32 && (view->shape[3] == 1 || view->stride[3] == 1);
}

static bool is_possible(const rnl_attention_step *a)
{
    return has_rows(&a->query) && has_rows(&a->key) && has_rows(&a->value) && has_rows(&a->dst) &&
           (!rnl_view_exists(&a->bias) || (a->bias.dtype == RNL_F32 && a->bias.rank <= 4)) && a->key.shape[2] > 0 &&
           a->query.shape[3] > 0 && a->query.shape[3] <= MOST_ELEMENTS && a->value.shape[3] <= MOST_ELEMENTS;
}

bool rnl_op_attention_pays(const rnl_device *device, const rnl_attention_step *attention)
{
    return rnl_device_is_cpu(device) && is_possible(attention) && attention->query.shape[2] >= FEWEST_QUERIES;
}

static rnl_status check(const rnl_attention_step *a, bool *out_index64)
{
    const int64_t *q = a->query.shape, *k = a->key.shape, *v = a->value.shape, *d = a->dst.shape;
    TRY(rnl_views_check((const rnl_view *[]){&a->query, &a->key, &a->value, &a->dst, &a->bias}, 5, out_index64),
        "operands of attention");
    if (!is_possible(a))
        return FAIL(RNL_UNIMPLEMENTED, "attention of these types, sizes or layouts as one step");
    if (k[1] < 1 || q[1] % k[1] != 0 || q[0] != k[0] || q[3] != k[3] || v[0] != k[0] || v[1] != k[1] || v[2] != k[2] ||
        d[0] != q[0] || d[1] != q[1] || d[2] != q[2] || d[3] != v[3])
        return FAIL(RNL_INVALID_ARGUMENT, "the shapes of attention's operands do not fit");
    return RNL_OK;
}

/* Its strides as it broadcasts, and which kind of kernel reads it. */
static rnl_status find_bias(const rnl_attention_step *a, int64_t strides[RNL_MAX_RANK], int *out_kind)
{
    const int64_t shape[] = {a->query.shape[0], a->query.shape[1], a->query.shape[2], a->key.shape[2]};
    *out_kind = 0;
    for (size_t i = 0; i < 4; i++)
        strides[i] = 0;
    if (!rnl_view_exists(&a->bias))
        return RNL_OK;
    TRY(rnl_view_broadcast(&a->bias, 4, shape, strides), "attention's bias");
    *out_kind = strides[2] == 0 ? 1 : 2;
    return RNL_OK;
}

static bool multiplies_pairs(const rnl_device *device, const rnl_attention_step *a, int64_t width)
{
    return a->pairs && width >= 8 && rnl_device_runs(device, RNL_INSTRUCTION_BF16);
}

static bool multiplies_tiles(const rnl_device *device, const rnl_attention_step *a, int64_t width)
{
    return a->pairs && width == 16 && !rnl_amx_wish_is("off") &&
           (rnl_amx_wish_is("model") || rnl_device_runs(device, RNL_INSTRUCTION_AMX_BF16));
}

static void add_defines(rnl_step_builder *step, const rnl_attention_step *a, int64_t width, int64_t vectors, int bias)
{
    const bool tiles = multiplies_tiles(step->list->device, a, width);
    const bool pairs = tiles || multiplies_pairs(step->list->device, a, width);
    /* Twelve sums of scores fit in 16 registers; of results, heads of 32 and 64 elements divide better by eight. */
    const int rows = width == 16 ? 8 : 4, key_rows = width == 8 && !pairs ? 6 : rows;
    rnl_step_define(step, "D=%lld -DE=%lld -DW=%lld -DNB=%lld -DR=%d -DKEY_ROWS=%d -DKEYS=%d -DBIAS=%d",
                    (long long)a->query.shape[3], (long long)a->value.shape[3], (long long)width, (long long)vectors,
                    rows, key_rows, (int)rnl_divide_up(BLOCK_KEYS, key_rows) * key_rows, bias);
    if (pairs)
        rnl_step_define(step, "PAIRS");
    if (tiles)
        rnl_step_define(step, "TILES");
    if (tiles && rnl_amx_wish_is("model"))
        rnl_step_define(step, "MODEL");
}

static void add_arguments(rnl_step_builder *step, const rnl_attention_step *a, const int64_t bias_strides[4])
{
    const rnl_view *views[] = {&a->dst, &a->query, &a->key, &a->value};
    int64_t strides[12];
    for (size_t i = 0; i < 4; i++) {
        rnl_step_slot(step, views[i]->slot);
        for (size_t axis = 0; axis < 3; axis++)
            strides[3 * i + axis] = views[i]->stride[axis];
    }
    const int64_t sizes[] = {a->query.shape[2], a->key.shape[2], a->query.shape[1] / a->key.shape[1],
                             a->empty_gives_zero};
    rnl_step_offsets(step, 4, views, 4, NULL, 0);
    rnl_step_indices(step, 16, strides, 12, 0);
    rnl_step_view(step, &a->bias);
    rnl_step_indices(step, 4, bias_strides, 4, 0);
    rnl_step_indices(step, 4, sizes, 4, 0);
    rnl_step_float(step, a->scale);
}

rnl_status rnl_op_attention(rnl_step_list *list, const rnl_attention_step *a)
{
    bool index64 = false;
    int bias;
    int64_t bias_strides[RNL_MAX_RANK];
    rnl_step_builder step;
    TRY(check(a, &index64));
    TRY(find_bias(a, bias_strides, &bias));
    const int64_t rows = a->query.shape[2], width = list->device->vector_width < 4 ? 4 : list->device->vector_width;
    const int64_t vectors = rows > width ? 2 : 1, group = vectors * width;
    const uint64_t pairs =
        (uint64_t)rnl_view_elements(&a->query) / (uint64_t)a->query.shape[3] * (uint64_t)a->key.shape[2];
    const size_t items[3] = {(size_t)((rows + group - 1) / group), (size_t)a->query.shape[1],
                             (size_t)a->query.shape[0]};
    if (rnl_view_elements(&a->dst) == 0)
        return RNL_OK;
    rnl_step_begin(&step, list, multiplies_tiles(list->device, a, width) ? "attention:amx" : "attention:lanes",
                   index64);
    add_defines(&step, a, width, vectors, bias);
    add_arguments(&step, a, bias_strides);
    rnl_step_range(&step, 3, items, (size_t[3]){1, 1, 1});
    step.step.flops = pairs * (uint64_t)(2 * (a->query.shape[3] + a->value.shape[3]) + 5);
    step.step.bytes = 4 * (uint64_t)(rnl_view_elements(&a->query) + rnl_view_elements(&a->key) +
                                     rnl_view_elements(&a->value) + rnl_view_elements(&a->dst));
    rnl_step_writes(&step, a->dst.slot);
    return rnl_step_end(&step, "attention.cl", "attention");
}
