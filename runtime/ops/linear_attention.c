/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/linear_attention.h"
#include "ops/implementation.h"
#include "ops/step_build.h"

/* Bits that linear_attention.cl and causal_conv.cl know. */
enum { HAS_DECAY = 1, HAS_BETA = 2, DECAY_OF_KEYS = 4, BETA_OF_HEADS = 8 };
enum { HAS_PAST = 1, HAS_BIAS = 2, SILU = 4 };

#define ARRAY(...) ((const int64_t[]){__VA_ARGS__})

static rnl_status check_dense(const char *what, const rnl_view *view, size_t rank, const int64_t *shape,
                              rnl_dtype dtype)
{
    if (!rnl_view_exists(view))
        return RNL_OK;
    bool same = view->rank == rank && view->dtype == dtype && rnl_view_is_row_major(view);
    for (size_t i = 0; same && i < rank; ++i)
        same = view->shape[i] == shape[i];
    return same ? RNL_OK : FAIL(RNL_INVALID_ARGUMENT, "%s has a wrong shape, type or layout", what);
}

/* ---- linear attention ----------------------------------------------------------------------------------------- */

typedef struct sizes {
    int64_t batches, tokens, query_heads, heads, keys, values;
} sizes;

static sizes sizes_of(const rnl_linear_attention *a)
{
    const int64_t *state = a->state.shape;
    return (sizes){state[0], a->query.shape[1], a->query_heads, state[1], state[2], state[3]};
}

static rnl_status check_tokens(const char *what, const rnl_view *view, const sizes *s, int64_t columns,
                               int64_t or_columns, rnl_dtype dtype)
{
    if (rnl_view_exists(view) && view->rank == 3 && view->shape[2] == or_columns)
        columns = or_columns;
    return check_dense(what, view, 3, ARRAY(s->batches, s->tokens, columns), dtype);
}

static rnl_status check(const rnl_linear_attention *a, bool *out_index64)
{
    const rnl_dtype dtype = a->dst.dtype;
    if (a->state.rank != 4 || a->query.rank != 3 || a->dst.rank != 3)
        return FAIL(RNL_INVALID_ARGUMENT, "linear attention with a state of rank %zu", a->state.rank);
    if (dtype != RNL_F32 && dtype != RNL_F16 && dtype != RNL_BF16)
        return FAIL(RNL_UNIMPLEMENTED, "linear attention of %s", rnl_dtype_name(dtype));
    const sizes s = sizes_of(a);
    if (s.heads < 1 || s.query_heads < 1 || s.query_heads % s.heads != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "linear attention of %lld heads for %lld", (long long)s.query_heads,
                    (long long)s.heads);
    TRY(check_dense("the state", &a->state, 4, a->state.shape, RNL_F32));
    TRY(check_tokens("the query", &a->query, &s, s.query_heads * s.keys, s.query_heads * s.keys, dtype));
    TRY(check_tokens("the key", &a->key, &s, s.heads * s.keys, s.heads * s.keys, dtype));
    TRY(check_tokens("the value", &a->value, &s, s.heads * s.values, s.heads * s.values, dtype));
    TRY(check_tokens("the decay", &a->decay, &s, s.heads * s.keys, s.heads, dtype));
    TRY(check_tokens("beta", &a->beta, &s, s.heads, 1, dtype));
    const int64_t line = s.query_heads * s.values;
    if (a->dst.shape[0] != s.batches || a->dst.shape[1] != s.tokens || a->dst.shape[2] != line ||
        (line > 1 && a->dst.stride[2] != 1))
        return FAIL(RNL_INVALID_ARGUMENT, "the result of linear attention has a wrong shape");
    return rnl_views_check((const rnl_view *[]){&a->query, &a->key, &a->value, &a->decay, &a->beta, &a->state, &a->dst},
                           7, out_index64);
}

static int32_t flags_of(const rnl_linear_attention *a, const sizes *s)
{
    int32_t flags = 0;
    if (rnl_view_exists(&a->decay))
        flags |= HAS_DECAY | (a->decay.shape[2] != s->heads ? DECAY_OF_KEYS : 0);
    if (rnl_view_exists(&a->beta))
        flags |= HAS_BETA | (a->beta.shape[2] == s->heads ? BETA_OF_HEADS : 0);
    return flags;
}

/* On a CPU explicit vectors; elsewhere neighbouring work-items take neighbouring values. */
static int64_t vector_of(const rnl_device *device, int64_t values)
{
    int64_t vector = rnl_device_is_cpu(device) ? device->vector_width : 1;
    while (vector > 16 || values % vector != 0)
        vector /= 2;
    return vector < 4 ? 1 : vector;
}

rnl_status rnl_op_linear_attention(rnl_step_list *list, const rnl_linear_attention *a)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(check(a, &index64), "operands of linear attention");
    const sizes s = sizes_of(a);
    if (s.batches == 0 || s.tokens == 0 || s.values == 0)
        return RNL_OK;
    const int64_t vector = vector_of(list->device, s.values);
    const size_t items[3] = {(size_t)(s.values / vector), (size_t)s.heads, (size_t)s.batches};
    size_t local[3];
    rnl_step_begin(&step, list, "linear_attention:portable", index64);
    rnl_step_type(&step, "T", a->dst.dtype);
    rnl_step_define(&step, "V=%lld", (long long)vector);
    rnl_step_view(&step, &a->dst);
    rnl_step_indices(&step, 2, a->dst.stride, 2, 0);
    rnl_step_view(&step, &a->query);
    rnl_step_view(&step, &a->key);
    rnl_step_view(&step, &a->value);
    rnl_step_view(&step, &a->decay);
    rnl_step_view(&step, &a->beta);
    rnl_step_view(&step, &a->state);
    rnl_step_indices(&step, 8, ARRAY(s.batches, s.tokens, s.query_heads, s.heads, s.keys, s.values), 6, 0);
    rnl_step_int(&step, flags_of(a, &s));
    rnl_step_float(&step, a->scale);
    rnl_tile_group(list->device, items, local);
    rnl_step_range(&step, 3, items, local);
    step.step.flops =
        (uint64_t)(s.batches * s.tokens * s.keys * s.values) * (uint64_t)(5 * s.heads + 2 * s.query_heads);
    step.step.bytes = (uint64_t)(rnl_view_elements(&a->query) + rnl_view_elements(&a->key) +
                                 rnl_view_elements(&a->value) + rnl_view_elements(&a->dst)) *
                      rnl_dtype_bytes(a->dst.dtype);
    rnl_step_writes(&step, a->dst.slot);
    rnl_step_writes(&step, a->state.slot);
    return rnl_step_end(&step, "linear_attention.cl", "linear_attention");
}

/* ---- causal convolution --------------------------------------------------------------------------------------- */

static rnl_status check_conv(const rnl_view *src, const rnl_view *weight, const rnl_view *bias, const rnl_view *past,
                             const rnl_view *dst, bool *out_index64)
{
    if (src->rank != 3 || weight->rank != 3 || weight->shape[2] < 1 || !rnl_shapes_equal(src, dst) ||
        src->dtype != dst->dtype || !rnl_dtype_is_float(src->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "a causal convolution's operands have wrong shapes or types");
    const int64_t channels = src->shape[1], width = weight->shape[2];
    TRY(check_dense("the weight", weight, 3, ARRAY(channels, 1, width), src->dtype));
    TRY(check_dense("the state", past, 3, ARRAY(src->shape[0], channels, width - 1), src->dtype));
    if (rnl_view_exists(bias) && (bias->rank != 1 || bias->shape[0] != channels || bias->dtype != src->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "the bias has a wrong shape or type");
    return rnl_views_check((const rnl_view *[]){src, weight, bias, past, dst}, 5, out_index64);
}

rnl_status rnl_op_causal_conv(rnl_step_list *list, bool silu, const rnl_view *src, const rnl_view *weight,
                              const rnl_view *bias, const rnl_view *past, const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(check_conv(src, weight, bias, past, dst, &index64), "operands of a causal convolution");
    const uint64_t elements = (uint64_t)rnl_view_elements(dst);
    if (elements == 0)
        return RNL_OK;
    const size_t items[3] = {(size_t)src->shape[2], (size_t)src->shape[1], (size_t)src->shape[0]};
    size_t local[3];
    rnl_step_begin(&step, list, "causal_conv:portable", index64);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_view(&step, dst);
    rnl_step_indices(&step, 4, dst->stride, 3, 0);
    rnl_step_view(&step, src);
    rnl_step_indices(&step, 4, src->stride, 3, 0);
    rnl_step_view(&step, weight);
    rnl_step_view(&step, bias);
    rnl_step_index(&step, rnl_view_exists(bias) ? bias->stride[0] : 0);
    rnl_step_view(&step, past);
    rnl_step_indices(&step, 4, ARRAY(src->shape[0], src->shape[1], src->shape[2], weight->shape[2]), 4, 0);
    rnl_step_int(&step,
                 (rnl_view_exists(past) ? HAS_PAST : 0) | (rnl_view_exists(bias) ? HAS_BIAS : 0) | (silu ? SILU : 0));
    rnl_group_of_64(items, local);
    rnl_step_range(&step, 3, items, local);
    step.step.flops = 2 * elements * (uint64_t)weight->shape[2];
    step.step.bytes = 2 * elements * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "causal_conv.cl", "causal_conv");
}
