/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_recurrent.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <ctype.h>
#include <string.h>

/* The order of rnl_activation. Each takes its alpha and beta, where it has them, from the attributes' lists in turn. */
static const struct {
    const char *name;
    bool has_alpha, has_beta;
    float alpha, beta;
} activations[] = {
    {"Tanh", false, false, 0, 0},     {"Sigmoid", false, false, 0, 0},         {"Relu", false, false, 0, 0},
    {"Affine", true, true, 1, 0},     {"LeakyRelu", true, false, 0.01f, 0},    {"ThresholdedRelu", true, false, 1, 0},
    {"ScaledTanh", true, true, 1, 1}, {"HardSigmoid", true, true, 0.2f, 0.5f}, {"Elu", true, false, 1, 0},
    {"Softsign", false, false, 0, 0}, {"Softplus", false, false, 0, 0},
};
#define ACTIVATION_COUNT (sizeof activations / sizeof *activations)

static const int kind_gates[] = {1, 3, 4};

static bool same_word(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

static rnl_status find_activation(const rnl_node *node, const char *name, int *out_activation)
{
    for (size_t i = 0; i < ACTIVATION_COUNT; i++)
        if (same_word(activations[i].name, name)) {
            *out_activation = (int)i;
            return RNL_OK;
        }
    *out_activation = 0;
    return FAIL(RNL_INVALID_ARGUMENT, "%s has no activation '%.64s'", node->op_type, name);
}

/* The names, or their defaults. */
static rnl_status resolve_activations(const rnl_node *node, rnl_recurrent *recurrent)
{
    const rnl_attribute *names = rnl_node_attribute(node, "activations");
    const size_t each = (size_t)recurrent->kind + 1;
    for (size_t i = 0; i < 2 * each; i++)
        recurrent->activations[i / each][i % each] = recurrent->kind > 0 && i % each == 0 ? 1 : 0;
    if (!names || names->type != RNL_ATTRIBUTE_STRINGS || names->count == 0)
        return RNL_OK;
    if (names->count != each * (size_t)recurrent->directions)
        return FAIL(RNL_INVALID_ARGUMENT, "%s names %zu activations where %zu are needed", node->op_type, names->count,
                    each * (size_t)recurrent->directions);
    for (size_t i = 0; i < names->count; i++)
        TRY(find_activation(node, names->strings[i], &recurrent->activations[i / each][i % each]));
    return RNL_OK;
}

static void resolve_numbers(const rnl_node *node, rnl_recurrent *recurrent)
{
    size_t alphas, betas, next_alpha = 0, next_beta = 0;
    const float *alpha = rnl_node_floats(node, "activation_alpha", &alphas);
    const float *beta = rnl_node_floats(node, "activation_beta", &betas);
    for (int64_t d = 0; d < recurrent->directions; d++)
        for (int i = 0; i <= recurrent->kind; i++) {
            const int which = recurrent->activations[d][i];
            recurrent->alpha[d][i] = activations[which].alpha;
            recurrent->beta[d][i] = activations[which].beta;
            if (activations[which].has_alpha && next_alpha < alphas)
                recurrent->alpha[d][i] = alpha[next_alpha++];
            if (activations[which].has_beta && next_beta < betas)
                recurrent->beta[d][i] = beta[next_beta++];
        }
}

static rnl_status resolve_attributes(const rnl_node *node, rnl_recurrent *recurrent)
{
    static const char *const directions[] = {"forward", "reverse", "bidirectional"};
    int direction;
    recurrent->kind = strcmp(node->op_type, "RNN") == 0 ? 0 : strcmp(node->op_type, "GRU") == 0 ? 1 : 2;
    recurrent->gates = kind_gates[recurrent->kind];
    TRY(rnl_choose(node, "direction", directions, 3, &direction));
    recurrent->first_is_reverse = direction == 1;
    recurrent->directions = direction == 2 ? 2 : 1;
    const int64_t layout = rnl_node_int(node, "layout", 0);
    if (layout != 0 && layout != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'layout' of %s is %" PRId64, node->op_type, layout);
    recurrent->rows_first = layout == 1;
    recurrent->clip = rnl_node_float(node, "clip", 0);
    recurrent->coupled = rnl_node_int(node, "input_forget", 0) != 0;
    recurrent->reset_after = rnl_node_int(node, "linear_before_reset", 0) != 0;
    TRY(resolve_activations(node, recurrent));
    resolve_numbers(node, recurrent);
    return RNL_OK;
}

static rnl_status check_shape(const rnl_op_context *context, size_t index, size_t rank, const int64_t *shape)
{
    if (!rnl_input_exists(context, index))
        return RNL_OK;
    const rnl_tensor_desc *input = &context->inputs[index];
    bool same = input->rank == rank;
    for (size_t i = 0; same && i < rank; i++)
        same = input->shape[i] == shape[i];
    if (same)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has shape %s where %s is needed", index, context->node->op_type,
                rnl_shape_format(input->shape, input->rank).text, rnl_shape_format(shape, rank).text);
}

#define CHECK_SHAPE(index, ...)                                                                                        \
    TRY(check_shape(context, index, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__}))

static rnl_status check_shapes(const rnl_op_context *context, const rnl_recurrent *recurrent)
{
    const int64_t d = recurrent->directions, h = recurrent->units, lines = recurrent->gates * h;
    const int64_t wanted = rnl_node_int(context->node, "hidden_size", h);
    if (wanted != h)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'hidden_size' of %s is %" PRId64 ", and its weights have %" PRId64,
                    context->node->op_type, wanted, h);
    CHECK_SHAPE(1, d, lines, recurrent->inputs);
    CHECK_SHAPE(2, d, lines, h);
    CHECK_SHAPE(3, d, 2 * lines);
    CHECK_SHAPE(4, recurrent->rows);
    for (size_t i = 5; i < 7; i++) {
        if (recurrent->rows_first)
            CHECK_SHAPE(i, recurrent->rows, d, h);
        else
            CHECK_SHAPE(i, d, recurrent->rows, h);
    }
    CHECK_SHAPE(7, d, 3 * h);
    return RNL_OK;
}

static rnl_status check_types(const rnl_op_context *context)
{
    TRY(rnl_same_dtype(context, 0, 3));
    for (size_t i = 5; i < context->input_count; i++)
        TRY(rnl_check_dtype(context, i, RNL_TYPE_BIT(context->inputs[0].dtype)));
    return rnl_check_dtype(context, 4, RNL_TYPE_BIT(RNL_I32));
}

rnl_status rnl_recurrent_resolve(const rnl_op_context *context, rnl_recurrent *out_recurrent)
{
    const rnl_tensor_desc *x = &context->inputs[0], *r = &context->inputs[2];
    *out_recurrent = (rnl_recurrent){0};
    TRY(resolve_attributes(context->node, out_recurrent));
    TRY(check_types(context));
    if (x->rank != 3 || r->rank != 3)
        return FAIL(RNL_INVALID_ARGUMENT, "%s needs inputs 0 and 2 of rank 3, not shapes %s and %s",
                    context->node->op_type, rnl_shape_format(x->shape, x->rank).text,
                    rnl_shape_format(r->shape, r->rank).text);
    out_recurrent->steps = x->shape[out_recurrent->rows_first ? 1 : 0];
    out_recurrent->rows = x->shape[out_recurrent->rows_first ? 0 : 1];
    out_recurrent->inputs = x->shape[2];
    out_recurrent->units = r->shape[2];
    return check_shapes(context, out_recurrent);
}

rnl_status rnl_infer_recurrent(rnl_op_context *context)
{
    rnl_recurrent recurrent;
    TRY(rnl_infer_begin(context));
    TRY(rnl_recurrent_resolve(context, &recurrent));
    const rnl_dtype dtype = context->inputs[0].dtype;
    const int64_t t = recurrent.steps, b = recurrent.rows, d = recurrent.directions, h = recurrent.units;
    const bool rows_first = recurrent.rows_first;
    const int64_t y[4] = {rows_first ? b : t, rows_first ? t : d, rows_first ? d : b, h};
    const int64_t state[3] = {rows_first ? b : d, rows_first ? d : b, h};
    TRY(rnl_output_set(context, 0, dtype, y, 4));
    TRY(rnl_output_set(context, 1, dtype, state, 3));
    return recurrent.kind == 2 ? rnl_output_set(context, 2, dtype, state, 3) : RNL_OK;
}
