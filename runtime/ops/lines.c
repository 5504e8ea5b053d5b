/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/lines.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"

#define MOST_ROWS 32768    /* of a range's second dimension */
#define SHORTEST_GROUP 256 /* elements of a line that a work-group takes */
#define MANY_LINES 16384   /* that keep a device busy with a work-item each */

void rnl_lines_select(rnl_dims *dims, const rnl_view *const *views, size_t count, size_t axis)
{
    rnl_dims_select(dims, views, count, ~(1u << axis));
}

void rnl_lines_add(rnl_step_builder *step, const rnl_dims *dims)
{
    rnl_step_index(step, rnl_dims_elements(dims));
    rnl_step_int(step, dims->rank > 3);
    rnl_step_dims(step, dims->shape, dims->rank, 1);
    for (size_t v = 0; v < dims->views; ++v)
        rnl_step_dims(step, dims->stride[v], dims->rank, 0);
}

void rnl_lines_range(rnl_step_builder *step, int64_t lines)
{
    rnl_step_range(step, 1, (size_t[3]){(size_t)lines}, (size_t[3]){lines < RNL_LINES_GROUP ? 1 : RNL_LINES_GROUP});
}

void rnl_lines_columns(rnl_step_builder *step, int64_t columns, int64_t lines)
{
    const size_t rows = (size_t)(lines < MOST_ROWS ? lines : MOST_ROWS);
    rnl_step_range(step, 3, (size_t[3]){(size_t)columns, rows, ((size_t)lines + rows - 1) / rows},
                   columns >= 64 ? (size_t[3]){64, 1, 1} : (size_t[3]){4, 16, 1});
}

bool rnl_lines_take_groups(const rnl_device *device, int64_t lines, int64_t length)
{
    return !rnl_device_is_cpu(device) && !device->info.emulated &&
           device->info.max_work_group_size >= RNL_LINES_GROUP &&
           device->info.local_memory_bytes >= RNL_LINES_GROUP * 2 * sizeof(double) && length >= SHORTEST_GROUP &&
           rnl_count_to_choose_by(lines, 1) < MANY_LINES;
}

void rnl_lines_groups(rnl_step_builder *step, int64_t lines)
{
    rnl_step_range(step, 1, (size_t[3]){(size_t)lines * RNL_LINES_GROUP}, (size_t[3]){RNL_LINES_GROUP});
}
