/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce_plan.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"

#define GROUP 64       /* as in group.clh */
#define ITEM_WORK 8192 /* elements that a work-item of the vector kernels should have, where there are enough … */
#define ITEMS_A_UNIT 8 /* … for so many work-items a compute unit */
#define SMALLEST_VECTOR 4

/* Work-items, and local memory for a value of each. */
static bool has_groups(const rnl_device *device)
{
    return device->info.max_work_group_size >= GROUP && device->info.local_memory_bytes >= GROUP * sizeof(double);
}

/* A group reads neighbours at once, and gets few results done faster. */
static bool groups_pay(const rnl_dims *taken, size_t src_index, int64_t results)
{
    if (taken->rank == 0)
        return false;
    const int64_t stride = taken->stride[src_index][taken->rank - 1];
    return taken->shape[taken->rank - 1] >= GROUP && (stride == 1 || rnl_count_to_choose_by(results, 256) < 256);
}

/* Vectors can run along the innermost dimension: it has stride 1, or, in views behind src, 0. */
static bool takes_vectors(const rnl_dims *dims, size_t src_index)
{
    if (dims->rank == 0 || dims->shape[dims->rank - 1] < SMALLEST_VECTOR)
        return false;
    for (size_t v = 0; v < dims->views; ++v) {
        const int64_t stride = dims->stride[v][dims->rank - 1];
        if (stride != 1 && !(v > src_index && stride == 0))
            return false;
    }
    return true;
}

/* A batch may be among the dimensions that are merged with the innermost one: that one alone has to be long enough,
 * and not be the only one, for then it would be the batch. */
static bool columns_without_batch(const rnl_view *src, uint32_t axes)
{
    size_t kept = 0, last = 0;
    for (size_t i = 0; i < src->rank; ++i)
        if (!(axes >> i & 1)) {
            ++kept;
            last = i;
        }
    return kept > 1 && src->shape[last] >= SMALLEST_VECTOR;
}

static void share_out(const rnl_device *device, rnl_reduce_plan *plan)
{
    const bool rows = plan->way == RNL_REDUCE_ROWS;
    const rnl_dims *along = rows ? &plan->taken : &plan->kept;
    const int64_t inner = along->shape[along->rank - 1], taken = rnl_dims_elements(&plan->taken);
    plan->vector = device->vector_width;
    while (plan->vector > inner)
        plan->vector /= 2;
    const int64_t blocks = (inner + plan->vector - 1) / plan->vector;
    const int64_t count = rows ? plan->results : plan->results / inner * blocks;
    const int64_t wanted = ITEM_WORK / (taken * (rows ? 1 : plan->vector)) + 1;
    const int64_t fair = count / ((int64_t)device->info.compute_units * ITEMS_A_UNIT) + 1;
    plan->each = wanted < fair ? wanted : fair;
    plan->items = (size_t)((count + plan->each - 1) / plan->each);
}

static bool has_vectors(const rnl_device *device, rnl_dtype dtype)
{
    return rnl_device_is_cpu(device) && rnl_dtype_is_float(dtype) && dtype != RNL_F64;
}

void rnl_reduce_plan_make(const rnl_device *device, uint32_t axes, const rnl_view *const *views, size_t count,
                          size_t kept_only, rnl_reduce_plan *out_plan)
{
    rnl_reduce_plan *plan = out_plan;
    *plan = (rnl_reduce_plan){.vector = 1, .each = 1};
    rnl_dims_select(&plan->kept, views, count, ~axes);
    rnl_dims_select(&plan->taken, views + kept_only, count - kept_only, axes);
    plan->results = rnl_dims_elements(&plan->kept);
    const bool vectors = has_vectors(device, views[1]->dtype) && rnl_dims_elements(&plan->taken) > 0;
    if (vectors && takes_vectors(&plan->taken, 1 - kept_only))
        plan->way = RNL_REDUCE_ROWS;
    else if (vectors && takes_vectors(&plan->kept, 1) &&
             (!rnl_is_deterministic() || columns_without_batch(views[1], axes)))
        plan->way = RNL_REDUCE_COLUMNS;
    else
        plan->way = has_groups(device) && groups_pay(&plan->taken, 1 - kept_only, plan->results) ? RNL_REDUCE_GROUPS
                                                                                                 : RNL_REDUCE_ITEMS;
    if (plan->way == RNL_REDUCE_ROWS || plan->way == RNL_REDUCE_COLUMNS)
        share_out(device, plan);
    else
        plan->items = (size_t)plan->results * (plan->way == RNL_REDUCE_GROUPS ? GROUP : 1);
}

static void add_dims(rnl_step_builder *step, const rnl_dims *kept, const rnl_dims *taken)
{
    const int64_t elements = rnl_dims_elements(taken);
    const int64_t columns = taken->rank && elements ? taken->shape[taken->rank - 1] : 1;
    rnl_step_index(step, rnl_dims_elements(kept));
    rnl_step_int(step, kept->rank > 3);
    rnl_step_dims(step, kept->shape, kept->rank, 1);
    for (size_t v = 0; v < kept->views; ++v)
        rnl_step_dims(step, kept->stride[v], kept->rank, 0);
    rnl_step_index(step, elements / columns);
    rnl_step_int(step, taken->rank > 3);
    rnl_step_dims(step, taken->shape, elements ? taken->rank : 0, 1);
    for (size_t v = 0; v < taken->views; ++v)
        rnl_step_dims(step, taken->stride[v], taken->rank, 0);
}

void rnl_reduce_plan_add(rnl_step_builder *step, const rnl_reduce_plan *plan)
{
    const bool vectors = plan->way == RNL_REDUCE_ROWS || plan->way == RNL_REDUCE_COLUMNS;
    add_dims(step, &plan->kept, &plan->taken);
    if (vectors) {
        rnl_step_define(step, "V=%lld", (long long)plan->vector);
        rnl_step_index(step, plan->each);
    }
    rnl_step_range(step, 1, (size_t[3]){plan->items}, (size_t[3]){vectors ? 1 : GROUP});
}
