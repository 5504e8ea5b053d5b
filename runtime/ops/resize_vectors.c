/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/implementation.h"
#include "ops/resize_plan.h"

#define SHORTEST_ROW 4     /* channels from which on pixels are moved whole */
#define ITEM_ELEMENTS 4096 /* that a work-item makes */
#define COLUMNS 16         /* as in resize_vectors.cl */
#define MAX_BATCHES 32768  /* in the range's third dimension */

/* A resized axis; one that is not there has size 1. */
typedef struct axis {
    int64_t to, from, dst_stride, src_stride;
    rnl_position_map map;
} axis;

typedef struct resize_geometry {
    axis x, y;
    rnl_dims batches;
    int64_t channels; /* 1: none go together */
} resize_geometry;

static axis axis_of(const rnl_resize_problem *problem, size_t i)
{
    return (axis){.to = problem->dst->shape[i],
                  .from = problem->src->shape[i],
                  .dst_stride = problem->dst->stride[i],
                  .src_stride = problem->src->stride[i],
                  .map = rnl_resize_map(problem, i)};
}

static bool is_resized(const rnl_resize_problem *problem, size_t i)
{
    return problem->axes[0] == i || (problem->count == 2 && problem->axes[1] == i);
}

static void take_channels(resize_geometry *geometry)
{
    rnl_dims *batches = &geometry->batches;
    const size_t inner = batches->rank - 1;
    geometry->channels = 1;
    if (batches->rank == 0 || batches->stride[0][inner] != 1 || batches->stride[1][inner] != 1 ||
        batches->shape[inner] < SHORTEST_ROW)
        return;
    geometry->channels = batches->shape[inner];
    --batches->rank;
}

static void find_geometry(const rnl_resize_problem *problem, resize_geometry *out)
{
    const rnl_view *src = problem->src, *dst = problem->dst;
    *out = (resize_geometry){.batches.views = 2};
    out->x = axis_of(problem, problem->axes[problem->count - 1]);
    out->y = (axis){.to = 1, .from = 1, .map.divide = 1};
    if (problem->count == 2)
        out->y = axis_of(problem, problem->axes[0]);
    for (size_t i = 0; i < dst->rank; ++i) {
        if (is_resized(problem, i))
            continue;
        out->batches.shape[out->batches.rank] = dst->shape[i];
        out->batches.stride[0][out->batches.rank] = dst->stride[i];
        out->batches.stride[1][out->batches.rank] = src->stride[i];
        ++out->batches.rank;
    }
    rnl_dims_coalesce(&out->batches);
    take_channels(out);
}

bool rnl_resize_vectors_apply(const rnl_device *device, const void *data)
{
    const rnl_resize_problem *problem = data;
    const rnl_resize_params *params = problem->params;
    resize_geometry geometry;
    if (!rnl_device_is_cpu(device) || problem->count > 2 || params->mode == RNL_RESIZE_CUBIC || params->antialias ||
        params->coordinates == RNL_RESIZE_TF_CROP_AND_RESIZE)
        return false;
    if (params->mode == RNL_RESIZE_LINEAR && (params->exclude_outside || problem->src->dtype == RNL_F64))
        return false;
    find_geometry(problem, &geometry);
    return geometry.y.to <= MAX_BATCHES && rnl_dims_elements(&geometry.batches) <= MAX_BATCHES;
}

static void add_defines(rnl_step_builder *step, const rnl_resize_problem *problem, int64_t channels)
{
    const rnl_resize_params *params = problem->params;
    const bool nearest = params->mode == RNL_RESIZE_NEAREST;
    int64_t vector = step->list->device->vector_width;
    while (vector > channels && vector > 4)
        vector /= 2;
    rnl_step_type(step, "T", nearest ? rnl_dtype_bits(problem->dst->dtype) : problem->dst->dtype);
    rnl_step_define(step, "MODE=%d", (int)params->mode);
    if (nearest)
        rnl_step_define(step, "NEAREST=%d", (int)params->nearest);
    else
        rnl_step_define(step, "V=%lld", (long long)vector);
}

static void add_arguments(rnl_step_builder *step, const rnl_resize_problem *problem, const resize_geometry *geometry,
                          int64_t each)
{
    const axis *x = &geometry->x, *y = &geometry->y;
    const rnl_dims *batches = &geometry->batches;
    rnl_step_view(step, problem->dst);
    rnl_step_view(step, problem->src);
    rnl_step_indices(step, 4, (int64_t[]){x->to, y->to, x->dst_stride, y->dst_stride}, 4, 0);
    rnl_step_indices(step, 4, (int64_t[]){x->from, y->from, x->src_stride, y->src_stride}, 4, 0);
    rnl_step_value(step, &x->map, sizeof x->map);
    rnl_step_value(step, &y->map, sizeof y->map);
    rnl_step_index(step, each);
    rnl_step_int(step, batches->rank > 3);
    rnl_step_dims(step, batches->shape, batches->rank, 1);
    for (size_t v = 0; v < 2; ++v)
        rnl_step_dims(step, batches->stride[v], batches->rank, 0);
}

static int64_t parts(int64_t count, int64_t each)
{
    return (count + each - 1) / each;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

rnl_status rnl_resize_vectors_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_resize_problem *problem = data;
    resize_geometry geometry;
    rnl_step_builder step;
    find_geometry(problem, &geometry);
    const bool pixels = geometry.channels > 1;
    const int64_t columns = geometry.x.to, batches = rnl_dims_elements(&geometry.batches);
    const int64_t each = smaller(columns, (ITEM_ELEMENTS / geometry.channels / COLUMNS + 1) * COLUMNS);
    const int64_t batches_each = pixels ? 1 : smaller(batches, ITEM_ELEMENTS / each + 1);

    rnl_step_begin(&step, list, name, problem->index64);
    add_defines(&step, problem, geometry.channels);
    add_arguments(&step, problem, &geometry, each);
    rnl_step_index(&step, pixels ? geometry.channels : batches);
    if (!pixels)
        rnl_step_index(&step, batches_each);
    rnl_step_range(
        &step, 3,
        (size_t[3]){(size_t)parts(columns, each), (size_t)geometry.y.to, (size_t)parts(batches, batches_each)},
        (size_t[3]){1, 1, 1});
    const uint64_t elements = (uint64_t)rnl_view_elements(problem->dst);
    step.step.bytes = (elements + (uint64_t)rnl_view_elements(problem->src)) * rnl_dtype_bytes(problem->src->dtype);
    step.step.flops = elements * 4 * (uint64_t)problem->params->mode * problem->count;
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "resize_vectors.cl", pixels ? "resize_pixels" : "resize_columns");
}
