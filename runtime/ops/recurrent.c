/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/recurrent.h"
#include "ops/deterministic.h"
#include "ops/implementation.h"
#include "ops/step_build.h"

/* Bits that recurrent.clh knows. */
enum {
    HAS_BIAS = 1,
    HAS_LENGTHS = 2,
    HAS_PEEPHOLES = 4,
    HAS_CLIP = 8,
    COUPLED = 16,
    RESET_AFTER = 32,
    HAS_Y = 64,
    FIRST_IS_REVERSE = 128
};

/* The weights that a thread reads in a step of a layer that is one launch: for a row, and for several. */
#define MOST_ROW_BYTES ((int64_t)4 << 20)
#define MOST_ROWS_BYTES ((int64_t)512 << 10)

#define ARRAY(...) ((const int64_t[]){__VA_ARGS__})

int64_t rnl_recurrent_gates(rnl_recurrent_kind kind)
{
    return kind == RNL_RNN ? 1 : kind == RNL_GRU ? 3 : RNL_RECURRENT_MAX_GATES;
}

int64_t rnl_recurrent_states(rnl_recurrent_kind kind)
{
    return kind == RNL_RNN ? 1 : 2;
}

typedef struct sizes {
    int64_t directions, rows, units, steps, gates;
} sizes;

static sizes sizes_of(const rnl_recurrent_params *params, const rnl_recurrent_views *views)
{
    return (sizes){views->state.shape[2], views->state.shape[3], views->state.shape[4], views->x.shape[1],
                   rnl_recurrent_gates(params->kind)};
}

static rnl_status check_shape(const char *what, const rnl_view *view, size_t rank, const int64_t *shape)
{
    bool same = view->rank == rank;
    for (size_t i = 0; same && i < rank; ++i)
        same = view->shape[i] == shape[i];
    return same ? RNL_OK : FAIL(RNL_INVALID_ARGUMENT, "the %s of a recurrent layer have a wrong shape", what);
}

static rnl_status check_dense(const char *what, const rnl_view *view, size_t rank, const int64_t *shape,
                              rnl_dtype dtype)
{
    if (!rnl_view_exists(view))
        return RNL_OK;
    TRY(check_shape(what, view, rank, shape));
    if (view->dtype != dtype || !rnl_view_is_row_major(view))
        return FAIL(RNL_INVALID_ARGUMENT, "the %s of a recurrent layer are not dense %s", what, rnl_dtype_name(dtype));
    return RNL_OK;
}

static rnl_status check_y(const rnl_view *y, const sizes *s)
{
    if (!rnl_view_exists(y))
        return RNL_OK;
    TRY(check_shape("results", y, 4, ARRAY(s->steps, s->directions, s->rows, s->units)));
    if (!rnl_dtype_is_float(y->dtype) || (s->units > 1 && y->stride[3] != 1))
        return FAIL(RNL_INVALID_ARGUMENT, "the results of a recurrent layer are not rows of floats");
    return RNL_OK;
}

static rnl_status check(const rnl_recurrent_params *params, const rnl_recurrent_views *views, bool *out_index64)
{
    const rnl_dtype dtype = views->state.dtype;
    if (views->state.rank != 5 || views->x.rank != 4 || (dtype != RNL_F32 && dtype != RNL_F64))
        return FAIL(RNL_INVALID_ARGUMENT, "a recurrent layer's state has rank %zu and type %s", views->state.rank,
                    rnl_dtype_name(dtype));
    const sizes s = sizes_of(params, views);
    const int64_t line = s.gates * s.units;
    if (s.directions < 1 || s.directions > 2 || s.steps > INT32_MAX)
        return FAIL(RNL_INVALID_ARGUMENT, "a recurrent layer of %lld directions and %lld steps",
                    (long long)s.directions, (long long)s.steps);
    TRY(check_shape("inputs", &views->x, 4, ARRAY(s.directions, s.steps, s.rows, line)));
    if (views->x.dtype != dtype || (line > 1 && views->x.stride[3] != 1))
        return FAIL(RNL_INVALID_ARGUMENT, "the inputs of a recurrent layer are not rows of %s", rnl_dtype_name(dtype));
    TRY(check_dense("biases", &views->bias, 2, ARRAY(s.directions, 2 * line), dtype));
    TRY(check_dense("peepholes", &views->peepholes, 2, ARRAY(s.directions, 3 * s.units), dtype));
    TRY(check_dense("lengths", &views->lengths, 1, ARRAY(s.rows), RNL_I32));
    TRY(check_dense("states", &views->state, 5,
                    ARRAY(2, rnl_recurrent_states(params->kind), s.directions, s.rows, s.units), dtype));
    TRY(check_dense("products", &views->product, 3, ARRAY(s.directions, s.rows, line), dtype));
    TRY(check_y(&views->y, &s));
    return rnl_views_check((const rnl_view *[]){&views->x, &views->bias, &views->peepholes, &views->lengths,
                                                &views->state, &views->product, &views->y},
                           7, out_index64);
}

/* Units of a vector on a CPU: as many as fit. */
static int64_t vector_of(const rnl_device *device, const sizes *s, rnl_dtype dtype)
{
    if (!rnl_device_is_cpu(device) || dtype == RNL_F64)
        return 1;
    int64_t vector = device->vector_width < 16 ? device->vector_width : 16;
    while (vector > s->units)
        vector /= 2;
    return vector < 4 ? 1 : vector;
}

static void define(rnl_step_builder *step, const rnl_recurrent_params *params, const rnl_recurrent_views *views,
                   int64_t vector)
{
#define X(name) #name,
    static const char *const names[] = {RNL_ACTIVATION_LIST(X)};
#undef X
    static const char *const kinds[] = {"RNN", "GRU", "LSTM"};
    static const char letters[] = "FGH";
    rnl_step_define(step, "KIND=%s", kinds[params->kind]);
    rnl_step_define(step, "V=%lld", (long long)vector);
    for (size_t i = 0; i <= (size_t)params->kind; ++i)
        rnl_step_define(step, "ACT_%c=%s", letters[i], names[params->activations[i]]);
    rnl_step_type(step, "T", views->state.dtype);
    rnl_step_type(step, "T_Y", rnl_view_exists(&views->y) ? views->y.dtype : views->state.dtype);
}

static int32_t flags_of(const rnl_recurrent_params *params, const rnl_recurrent_views *views)
{
    return (rnl_view_exists(&views->bias) ? HAS_BIAS : 0) | (rnl_view_exists(&views->lengths) ? HAS_LENGTHS : 0) |
           (rnl_view_exists(&views->peepholes) ? HAS_PEEPHOLES : 0) | (params->clip > 0 ? HAS_CLIP : 0) |
           (params->coupled ? COUPLED : 0) | (params->reset_after ? RESET_AFTER : 0) |
           (rnl_view_exists(&views->y) ? HAS_Y : 0) | (params->first_is_reverse ? FIRST_IS_REVERSE : 0);
}

/* recurrent.clh's LAYER_ARGUMENTS. */
static void add_layer(rnl_step_builder *step, const rnl_recurrent_params *params, const rnl_recurrent_views *views,
                      const sizes *s)
{
    const rnl_view *x = &views->x, *y = &views->y;
    const bool has_y = rnl_view_exists(y);
    const float numbers[8] = {params->alpha[0], params->beta[0], params->alpha[1], params->beta[1],
                              params->alpha[2], params->beta[2], params->clip,     0};
    rnl_step_view(step, x);
    rnl_step_indices(step, 4, x->stride, 3, 0);
    rnl_step_view(step, &views->bias);
    rnl_step_view(step, &views->peepholes);
    rnl_step_view(step, &views->lengths);
    rnl_step_view(step, y);
    rnl_step_indices(step, 4, y->stride, has_y ? 3 : 0, 0);
    rnl_step_indices(step, 4, ARRAY(s->directions, s->rows, s->units, s->steps), 4, 0);
    rnl_step_int(step, flags_of(params, views));
    rnl_step_value(step, numbers, sizeof numbers);
}

static void add_writes(rnl_step_builder *step, const rnl_recurrent_views *views)
{
    rnl_step_writes(step, views->state.slot);
    if (rnl_view_exists(&views->y))
        rnl_step_writes(step, views->y.slot);
}

/* One step in time: a work-item for each vector of units. */
static rnl_status append_units(rnl_step_list *list, const char *kernel, const rnl_recurrent_params *params,
                               const rnl_recurrent_views *views, int64_t at)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(check(params, views, &index64), "operands of %s", kernel);
    const sizes s = sizes_of(params, views);
    if (s.rows == 0 || s.units == 0)
        return RNL_OK;
    const int64_t vector = vector_of(list->device, &s, views->state.dtype);
    const size_t items[3] = {(size_t)((s.units + vector - 1) / vector), (size_t)s.rows, (size_t)s.directions};
    size_t local[3];
    rnl_step_begin(&step, list, "recurrent:step", index64);
    define(&step, params, views, vector);
    add_layer(&step, params, views, &s);
    rnl_step_view(&step, &views->product);
    rnl_step_view(&step, &views->state);
    rnl_step_index(&step, at);
    rnl_group_of_64(items, local);
    rnl_step_range(&step, 3, items, local);
    const uint64_t elements = (uint64_t)(s.directions * s.rows * s.units);
    step.step.flops = 16 * elements * (uint64_t)s.gates;
    step.step.bytes = elements * (uint64_t)(2 * s.gates + 3) * rnl_dtype_bytes(views->state.dtype);
    add_writes(&step, views);
    return rnl_step_end(&step, "recurrent.cl", kernel);
}

rnl_status rnl_op_recurrent_cell(rnl_step_list *list, const rnl_recurrent_params *params,
                                 const rnl_recurrent_views *views, int64_t step)
{
    return append_units(list, "recurrent_cell", params, views, step);
}

rnl_status rnl_op_recurrent_reset(rnl_step_list *list, const rnl_recurrent_params *params,
                                  const rnl_recurrent_views *views, int64_t step)
{
    return append_units(list, "recurrent_reset", params, views, step);
}

/*
 * A work-item does all steps of a row: where rows are few, that is faster than launches and products that are not worth
 * dividing. Measured on two cores: a row of 64 to 512 units takes 0.25 to 0.8 of the time.
 */
bool rnl_recurrent_layer_pays(const rnl_device *device, const rnl_recurrent_params *params,
                              const rnl_recurrent_views *views)
{
    const sizes s = sizes_of(params, views);
    const bool rows = !rnl_view_exists(&views->y) || s.units <= 1 || views->y.stride[3] == 1;
    const int64_t batch = rnl_count_to_choose_by(s.rows, 1);
    const int64_t each_thread = (s.directions * batch + device->info.compute_units - 1) / device->info.compute_units;
    const int64_t weight_bytes = s.units * s.units * s.gates * 4;
    return rows && vector_of(device, &s, views->state.dtype) > 1 &&
           (each_thread <= 1 ? weight_bytes <= MOST_ROW_BYTES : weight_bytes <= MOST_ROWS_BYTES / each_thread);
}

rnl_status rnl_op_recurrent_layer(rnl_step_list *list, const rnl_recurrent_params *params,
                                  const rnl_recurrent_views *views, const rnl_view *r)
{
    bool index64 = false, index64_r = false;
    rnl_step_builder step;
    TRY(check(params, views, &index64), "operands of a recurrent layer");
    TRY(rnl_views_check(&r, 1, &index64_r));
    const sizes s = sizes_of(params, views);
    const int64_t line = s.gates * s.units, vector = vector_of(list->device, &s, views->state.dtype);
    TRY(check_shape("recurrence weights", r, 3, ARRAY(s.units, s.directions, line)));
    if (r->dtype != views->state.dtype || r->stride[2] != 1 || (s.directions > 1 && r->stride[1] != line))
        return FAIL(RNL_INVALID_ARGUMENT, "the recurrence weights are not rows of %s",
                    rnl_dtype_name(views->state.dtype));
    if (vector == 1 || views->product.slot != views->state.slot)
        return FAIL(RNL_INVALID_ARGUMENT, "a recurrent layer that cannot be one step");
    if (s.rows == 0 || s.steps == 0)
        return RNL_OK;
    rnl_step_begin(&step, list, "recurrent:layer", index64 || index64_r);
    define(&step, params, views, vector);
    add_layer(&step, params, views, &s);
    rnl_step_view(&step, r);
    rnl_step_index(&step, r->stride[0]);
    rnl_step_view(&step, &views->state);
    rnl_step_view(&step, &views->product);
    rnl_step_range(&step, 2, (size_t[3]){(size_t)s.rows, (size_t)s.directions}, (size_t[3]){1, 1});
    const uint64_t states = (uint64_t)(s.directions * s.rows * s.steps * s.units);
    step.step.flops = states * (uint64_t)(s.gates * (2 * s.units + 16));
    step.step.bytes = states * (uint64_t)(s.gates + 1) * sizeof(float) + (uint64_t)rnl_view_elements(r) * sizeof(float);
    add_writes(&step, views);
    return rnl_step_end(&step, "recurrent.cl", "recurrent_layer");
}
