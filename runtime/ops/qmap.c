/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qmap.h"
#include "ops/implementation.h"
#include "ops/pieces.h"

/* The views of a step, in the kernel's order; bits of what is there, as in clkernels/qmap.cl. */
enum { DST, SRC0, SRC1, S0, Z0, S1, Z1, SD, ZD, VIEWS };
static const int32_t bits[VIEWS] = {[S0] = 1, [Z0] = 2, [SRC1] = 4, [S1] = 8, [Z1] = 16, [SD] = 32, [ZD] = 64};

static const struct {
    const char *option;
    bool second; /* needs a second source */
} ops[RNL_QMAP_COUNT] = {
    [RNL_QMAP_COPY] = {"OP=OP_COPY", false},
    [RNL_QMAP_ADD] = {"OP=OP_ADD", true},
    [RNL_QMAP_MUL] = {"OP=OP_MUL", true},
    [RNL_QMAP_SIGMOID] = {"OP=OP_SIGMOID", false},
    [RNL_QMAP_LEAKY_RELU] = {"OP=OP_LEAKY_RELU", false},
    [RNL_QMAP_SCALE] = {"OP=OP_SCALE", false},
};

static bool is_byte(const rnl_view *view)
{
    return view->dtype == RNL_U8 || view->dtype == RNL_I8;
}

static bool is_float(const rnl_view *view)
{
    return view->dtype == RNL_F32 || view->dtype == RNL_F16 || view->dtype == RNL_BF16;
}

static rnl_status bad_type(const rnl_view *view, const char *what)
{
    return FAIL(RNL_INVALID_ARGUMENT, "%s of a quantised operator cannot be %s", what, rnl_dtype_name(view->dtype));
}

/* `parts` are the values, the scale and the zero point of one tensor. */
static rnl_status check_parts(const rnl_view *values, const rnl_view *scale, const rnl_view *zero, bool fits)
{
    if (values && !fits)
        return bad_type(values, "values");
    if (scale && scale->dtype != RNL_F32)
        return bad_type(scale, "a scale");
    if (zero && (!values || !is_byte(values) || zero->dtype != values->dtype))
        return bad_type(zero, "a zero point");
    return RNL_OK;
}

static rnl_status check(rnl_qmap_op op, const rnl_view *const *views)
{
    const rnl_view *first = views[SRC0], *second = views[SRC1], *dst = views[DST];
    if (!first || !dst || (!second && ops[op].second))
        return FAIL(RNL_INVALID_ARGUMENT, "a quantised operator lacks a tensor");
    bool sums = op == RNL_QMAP_SCALE;
    TRY(check_parts(first, views[S0], views[Z0],
                    sums ? first->dtype == RNL_I32 : is_byte(first) || (op == RNL_QMAP_COPY && is_float(first))));
    TRY(check_parts(second, views[S1], views[Z1], second && (sums ? second->dtype == RNL_I32 : is_byte(second))));
    return check_parts(dst, views[SD], views[ZD], is_byte(dst) || is_float(dst));
}

/* Where each view's elements lie for one of dst's. */
static rnl_status collect_dims(const rnl_view *const *views, rnl_dims *out_dims)
{
    const rnl_view *dst = views[DST];
    *out_dims = (rnl_dims){.rank = dst->rank, .views = VIEWS};
    for (size_t i = 0; i < dst->rank; ++i)
        out_dims->shape[i] = dst->shape[i];
    for (size_t v = 0; v < VIEWS; ++v)
        if (views[v])
            TRY(rnl_view_broadcast(views[v], dst->rank, dst->shape, out_dims->stride[v]));
    rnl_dims_coalesce(out_dims);
    return RNL_OK;
}

static void add_type(rnl_step_builder *step, const char *define, const rnl_view *view)
{
    rnl_step_type(step, define, !view || is_byte(view) ? RNL_U8 : view->dtype);
}

/* Elements that are computed together, where they lie so. */
#define VECTOR 8
#define LONG_VECTOR 16 /* with registers of so many floats */

static size_t choose_vector(const rnl_device *device, const rnl_dims *dims)
{
    if (rnl_device_is_cpu(device) && device->vector_width == LONG_VECTOR &&
        rnl_pieces_vector(dims, LONG_VECTOR) == LONG_VECTOR)
        return LONG_VECTOR;
    return rnl_pieces_vector(dims, VECTOR) == VECTOR ? VECTOR : 1;
}

/* The bit that makes unsigned bytes of signed ones. */
static int32_t flip_of(const rnl_view *view)
{
    return view && view->dtype == RNL_I8 ? 0x80 : 0;
}

/* Scales and zero points are the same all along the innermost dimension. */
static bool is_by_row(const rnl_dims *dims)
{
    for (size_t v = S0; v < VIEWS; ++v)
        if (dims->rank > 0 && dims->stride[v][dims->rank - 1] != 0)
            return false;
    return true;
}

static uint64_t traffic(const rnl_view *const *views)
{
    uint64_t bytes = 0;
    for (size_t v = 0; v < VIEWS; ++v)
        bytes += views[v] ? (uint64_t)rnl_view_elements(views[v]) * rnl_dtype_bytes(views[v]->dtype) : 0;
    return bytes;
}

static rnl_status append(rnl_step_list *list, rnl_qmap_op op, float parameter, const rnl_view *const *views,
                         const rnl_dims *dims, bool index64)
{
    rnl_step_builder step;
    int32_t flags[4] = {0, flip_of(views[SRC0]), flip_of(views[SRC1]), flip_of(views[DST])};
    const size_t vector = choose_vector(list->device, dims);
    rnl_step_begin(&step, list, vector > 1 ? "qmap:vectors" : "qmap:portable", index64 || rnl_pieces_index64(dims));
    rnl_step_define(&step, "%s", ops[op].option);
    add_type(&step, "T0", views[SRC0]);
    add_type(&step, "T1", op == RNL_QMAP_SCALE && !views[SRC1] ? views[SRC0] : views[SRC1]);
    add_type(&step, "T_DST", views[DST]);
    rnl_step_define(&step, "V=%zu", vector);
    if (is_by_row(dims))
        rnl_step_define(&step, "BY_ROW");
    for (size_t v = 0; v < VIEWS; ++v) {
        rnl_step_view(&step, views[v]);
        flags[0] |= views[v] ? bits[v] : 0;
    }
    rnl_step_float(&step, parameter);
    rnl_step_value(&step, flags, sizeof flags);
    rnl_step_pieces(&step, dims, vector);
    for (size_t v = 0; v < VIEWS; ++v)
        rnl_step_dims(&step, dims->stride[v], dims->rank, 0);
    step.step.bytes = traffic(views);
    step.step.flops = (uint64_t)rnl_view_elements(views[DST]);
    rnl_step_writes(&step, views[DST]->slot);
    return rnl_step_end(&step, "qmap.cl", "qmap");
}

static const rnl_view *existing(const rnl_view *view)
{
    return rnl_view_exists(view) ? view : NULL;
}

rnl_status rnl_op_qmap(rnl_step_list *list, rnl_qmap_op op, float parameter, const rnl_quantized *first,
                       const rnl_quantized *second, const rnl_quantized *dst)
{
    static const rnl_quantized none = {0};
    const rnl_quantized *other = second ? second : &none;
    const rnl_view *given[VIEWS] = {dst->values,  first->values,     other->values, first->scale,   first->zero_point,
                                    other->scale, other->zero_point, dst->scale,    dst->zero_point};
    const rnl_view *views[VIEWS];
    bool index64 = false;
    rnl_dims dims;
    for (size_t v = 0; v < VIEWS; ++v)
        views[v] = existing(given[v]);
    TRY(check(op, views));
    TRY(rnl_views_check(views, VIEWS, &index64), "operands of a quantised operator");
    TRY(collect_dims(views, &dims), "operands of a quantised operator");
    return rnl_view_elements(views[DST]) == 0 ? RNL_OK : append(list, op, parameter, views, &dims, index64);
}

rnl_status rnl_op_quantize_bounds(rnl_step_list *list, const rnl_view *least, const rnl_view *greatest,
                                  const rnl_view *scale, const rnl_view *zero_point)
{
    const rnl_view *views[4] = {scale, zero_point, least, greatest};
    bool index64 = false;
    rnl_step_builder step;
    TRY(rnl_views_check(views, 4, &index64), "bounds of a quantisation");
    for (size_t i = 0; i < 4; ++i)
        if (views[i]->dtype != (i == 1 ? RNL_U8 : RNL_F32) || rnl_view_elements(views[i]) != 1)
            return FAIL(RNL_INVALID_ARGUMENT,
                        "the bounds of a quantisation are one float32 each, its zero point uint8");
    rnl_step_begin(&step, list, "qbounds:portable", index64);
    for (size_t i = 0; i < 4; ++i)
        rnl_step_view(&step, views[i]);
    rnl_step_range(&step, 1, (size_t[3]){1}, (size_t[3]){1});
    rnl_step_writes(&step, scale->slot);
    rnl_step_writes(&step, zero_point->slot);
    return rnl_step_end(&step, "qbounds.cl", "qbounds");
}
