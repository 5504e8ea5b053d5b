/* SPDX-License-Identifier: Apache-2.0 */
#include "model/pack.h"

#include "graph/host_element.h"
#include <string.h>

#define TILE 16

/*
 * The tensor as [outer…][lanes][inner…], where the lanes are neighbours in the target. A tile is 16 lanes of 16
 * consecutive source elements: both sides then move whole cache lines, and rows whose distance is a power of two do not
 * fight for the same place in the cache.
 */
typedef struct packer {
    size_t bytes; /* of an element */
    size_t rank, axis;
    const int64_t *shape, *stride; /* of the view */
    int64_t lanes, lane_stride;
    int64_t inner; /* elements of the tensor between two lanes */
} packer;

static size_t find_lane_axis(const rnl_view *view)
{
    size_t axis = view->rank - 1;
    for (size_t i = 0; i < view->rank; i++)
        if (view->shape[i] > 1 && (view->shape[axis] <= 1 || view->stride[i] < view->stride[axis]))
            axis = i;
    return axis;
}

/* Moves to the next index of the dimensions [first, end); returns the position in the target that belongs to it. */
static int64_t advance(const packer *p, size_t first, size_t end, int64_t *index, int64_t at)
{
    for (size_t i = end; i-- > first;) {
        at += p->stride[i];
        if (++index[i] < p->shape[i])
            return at;
        at -= index[i] * p->stride[i];
        index[i] = 0;
    }
    return at;
}

static inline __attribute__((always_inline)) void move_tile(const packer *p, const unsigned char *source, int64_t lanes,
                                                            const int64_t *place, int64_t count, unsigned char *target,
                                                            size_t bytes)
{
    unsigned char tile[TILE * TILE * 8];
    size_t lane_bytes = (size_t)p->inner * bytes;
    for (int64_t lane = 0; lane < lanes; lane++)
        for (int64_t i = 0; i < count; i++)
            memcpy(tile + (size_t)(i * TILE + lane) * bytes, source + (size_t)lane * lane_bytes + (size_t)i * bytes,
                   bytes);
    for (int64_t i = 0; i < count; i++) {
        unsigned char *line = target + (size_t)place[i] * bytes;
        const unsigned char *row = tile + (size_t)(i * TILE) * bytes;
        if (p->lane_stride == 1 && lanes == TILE)
            memcpy(line, row, TILE * bytes);
        else
            for (int64_t lane = 0; lane < lanes; lane++)
                memcpy(line + (size_t)(lane * p->lane_stride) * bytes, row + (size_t)lane * bytes, bytes);
    }
}

static void move(const packer *p, const unsigned char *source, int64_t lanes, const int64_t *place, int64_t count,
                 unsigned char *target)
{
    switch (p->bytes) {
    case 1:
        move_tile(p, source, lanes, place, count, target, 1);
        break;
    case 2:
        move_tile(p, source, lanes, place, count, target, 2);
        break;
    case 4:
        move_tile(p, source, lanes, place, count, target, 4);
        break;
    default:
        move_tile(p, source, lanes, place, count, target, 8);
        break;
    }
}

/* All inner elements of up to 16 lanes, the first of which starts at element `at` of the target. */
static void pack_lanes(const packer *p, const unsigned char *source, int64_t lanes, int64_t at, unsigned char *target)
{
    int64_t index[RNL_MAX_RANK] = {0}, place[TILE];
    for (int64_t done = 0; done < p->inner; done += TILE) {
        int64_t count = p->inner - done < TILE ? p->inner - done : TILE;
        for (int64_t i = 0; i < count; i++) {
            place[i] = at;
            at = advance(p, p->axis + 1, p->rank, index, at);
        }
        move(p, source + (size_t)done * p->bytes, lanes, place, count, target);
    }
}

static void pack_all(const packer *p, int64_t outer, int64_t offset, const unsigned char *source, unsigned char *target)
{
    int64_t index[RNL_MAX_RANK] = {0}, at = offset;
    for (int64_t i = 0; i < outer; i++) {
        for (int64_t lane = 0; lane < p->lanes; lane += TILE) {
            int64_t count = p->lanes - lane < TILE ? p->lanes - lane : TILE;
            pack_lanes(p, source + (size_t)(lane * p->inner) * p->bytes, count, at + lane * p->lane_stride, target);
        }
        source += (size_t)(p->lanes * p->inner) * p->bytes;
        at = advance(p, 0, p->axis, index, at);
    }
}

/* Zeroes what the view leaves out: all of the target where there are gaps between elements, else what lies behind. */
static void clear_gaps(const rnl_view *view, size_t bytes, unsigned char *target, size_t size_bytes)
{
    int64_t last = view->offset;
    for (size_t i = 0; i < view->rank; i++)
        last += (view->shape[i] - 1) * view->stride[i];
    bool dense = view->offset == 0 && last + 1 == rnl_view_elements(view);
    size_t used = dense ? (size_t)(last + 1) * bytes : 0;
    memset(target + used, 0, size_bytes - used);
}

void rnl_pack(const rnl_host_tensor *tensor, const rnl_view *view, unsigned char *target, size_t size_bytes)
{
    int64_t elements = rnl_view_elements(view), outer = 1;
    size_t bytes = rnl_dtype_bytes(tensor->dtype);
    if (elements == 0) {
        memset(target, 0, size_bytes);
        return;
    }
    clear_gaps(view, bytes, target, size_bytes);
    if (rnl_view_is_row_major(view)) {
        memcpy(target + (size_t)view->offset * bytes, tensor->data, tensor->size_bytes);
        return;
    }
    packer p = {.bytes = bytes, .rank = view->rank, .shape = view->shape, .stride = view->stride, .inner = 1};
    p.axis = find_lane_axis(view);
    p.lanes = view->shape[p.axis];
    p.lane_stride = view->stride[p.axis];
    for (size_t i = 0; i < view->rank; i++)
        *(i < p.axis ? &outer : &p.inner) *= i == p.axis ? 1 : view->shape[i];
    pack_all(&p, outer, view->offset, tensor->data, target);
}

/* ---- scaling -------------------------------------------------------------------------------------------------- */

static void scale_lane(const rnl_view *view, int64_t at, int64_t count, int64_t stride, const double *factors,
                       void *target)
{
    float *floats = target;
    for (int64_t i = 0; i < count && view->dtype == RNL_F32; i++)
        floats[at + i * stride] = (float)((double)floats[at + i * stride] * factors[i]);
    for (int64_t i = 0; i < count && view->dtype != RNL_F32; i++) {
        rnl_number number = rnl_element_load(target, at + i * stride, view->dtype);
        number.f *= factors[i];
        rnl_element_store(target, at + i * stride, view->dtype, number);
    }
}

void rnl_pack_scale(const rnl_view *view, size_t axis, int64_t group, const double *factors, void *target)
{
    int64_t index[RNL_MAX_RANK] = {0};
    int64_t lanes = view->shape[axis], stride = view->stride[axis], others = rnl_view_elements(view);
    rnl_view rest = *view; /* one element of each lane */
    rest.shape[axis] = 1;
    others = lanes ? others / lanes : 0;
    for (int64_t i = 0; i < others; i++) {
        int64_t at = view->offset;
        for (size_t j = 0; j < rest.rank; j++)
            at += index[j] * rest.stride[j];
        const double *first = axis == 1 && group > 0 ? factors + index[0] / group * lanes : factors;
        scale_lane(view, at, lanes, stride, first, target);
        for (size_t j = rest.rank; j-- > 0;) {
            if (++index[j] < rest.shape[j])
                break;
            index[j] = 0;
        }
    }
}
