/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum's equation: numpy's forms, with dimensions of size 1 that broadcast. */
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

/* One term of an equation: letters, at most one ellipsis. */
typedef struct term {
    size_t count, ellipsis_at; /* of the letters; SIZE_MAX: no ellipsis */
    uint8_t letters[RNL_MAX_RANK];
} term;

static bool letter_of(char c, uint8_t *out_label)
{
    *out_label = (uint8_t)(c >= 'A' && c <= 'Z' ? c - 'A' : c - 'a' + 26);
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Reads one term up to ',', "->" or the end. */
static rnl_status read_term(const char **at, term *out_term)
{
    *out_term = (term){.ellipsis_at = SIZE_MAX};
    for (; **at && **at != ',' && **at != '-'; ++*at) {
        uint8_t label;
        if (**at == ' ')
            continue;
        if (strncmp(*at, "...", 3) == 0 && out_term->ellipsis_at == SIZE_MAX) {
            out_term->ellipsis_at = out_term->count;
            *at += 2;
        } else if (!letter_of(**at, &label)) {
            return FAIL(RNL_INVALID_ARGUMENT, "Einsum's equation does not make sense at '%.32s'", *at);
        } else if (out_term->count == RNL_MAX_RANK) {
            return FAIL(RNL_INVALID_ARGUMENT, "a term of Einsum's equation has more than %d letters", RNL_MAX_RANK);
        } else {
            out_term->letters[out_term->count++] = label;
        }
    }
    return RNL_OK;
}

/* The labels of an operand of this rank: the ellipsis stands for those that the letters leave. */
static rnl_status place_labels(const term *read, size_t index, size_t rank, rnl_einsum *einsum)
{
    bool fits = read->ellipsis_at == SIZE_MAX ? read->count == rank : read->count <= rank;
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "Einsum's equation has %zu letters for input %zu, which has rank %zu",
                    read->count, index, rank);
    size_t hidden = rank - read->count, next = 0;
    einsum->rank[index] = rank;
    for (size_t i = 0; i < read->count; i++) {
        next = i == read->ellipsis_at ? i + hidden : next;
        einsum->labels[index][next++] = read->letters[i];
    }
    for (size_t i = 0; i < hidden; i++)
        einsum->labels[index][read->ellipsis_at + i] = (uint8_t)(RNL_EINSUM_LABELS - hidden + i);
    einsum->hidden = hidden > einsum->hidden ? hidden : einsum->hidden;
    return RNL_OK;
}

static rnl_status merge_sizes(const rnl_op_context *context, size_t index, rnl_einsum *einsum)
{
    for (size_t i = 0; i < einsum->rank[index]; i++) {
        int64_t size = context->inputs[index].shape[i], *known = &einsum->size[einsum->labels[index][i]];
        if (*known == -1 || *known == 1)
            *known = size;
        else if (size != 1 && size != *known)
            return FAIL(RNL_INVALID_ARGUMENT,
                        "Einsum's input %zu has %" PRId64 " elements along axis %zu, another input has %" PRId64
                        " under the same letter",
                        index, size, i, *known);
    }
    return RNL_OK;
}

static void add_output(rnl_einsum *einsum, size_t label)
{
    if (einsum->output_rank < RNL_EINSUM_LABELS)
        einsum->output[einsum->output_rank++] = (uint8_t)label;
}

static void add_hidden(rnl_einsum *einsum)
{
    for (size_t i = RNL_EINSUM_LABELS - einsum->hidden; i < RNL_EINSUM_LABELS; i++)
        add_output(einsum, i);
}

/* No "->": what the ellipsis stands for, then the letters that stand once, in alphabetical order. */
static void derive_output(rnl_einsum *einsum)
{
    size_t uses[RNL_EINSUM_LABELS] = {0};
    for (size_t i = 0; i < einsum->operands; i++)
        for (size_t j = 0; j < einsum->rank[i]; j++)
            uses[einsum->labels[i][j]]++;
    add_hidden(einsum);
    for (size_t i = 0; i < RNL_EINSUM_LETTERS; i++)
        if (uses[i] == 1)
            add_output(einsum, i);
}

static rnl_status read_output(const char *at, rnl_einsum *einsum)
{
    term read;
    uint64_t seen = 0;
    TRY(read_term(&at, &read));
    if (*at)
        return FAIL(RNL_INVALID_ARGUMENT, "Einsum's equation does not make sense at '%.32s'", at);
    for (size_t i = 0; i <= read.count; i++) {
        if (i == read.ellipsis_at)
            add_hidden(einsum);
        if (i == read.count)
            break;
        if (seen >> read.letters[i] & 1 || einsum->size[read.letters[i]] == -1)
            return FAIL(RNL_INVALID_ARGUMENT, "a letter of Einsum's output stands there twice, or in no input");
        seen |= UINT64_C(1) << read.letters[i];
        add_output(einsum, read.letters[i]);
    }
    return RNL_OK;
}

rnl_status rnl_einsum_resolve(const rnl_op_context *context, rnl_einsum *out_einsum)
{
    const char *at = rnl_node_string(context->node, "equation", "");
    *out_einsum = (rnl_einsum){.operands = context->input_count};
    if (context->input_count > RNL_EINSUM_OPERANDS)
        return FAIL(RNL_UNIMPLEMENTED, "Einsum of %zu inputs; %d are the most", context->input_count,
                    RNL_EINSUM_OPERANDS);
    for (size_t i = 0; i < RNL_EINSUM_LABELS; i++)
        out_einsum->size[i] = -1;
    for (size_t i = 0; i < context->input_count; i++) {
        term read;
        TRY(read_term(&at, &read));
        if ((*at == ',') != (i + 1 < context->input_count))
            return FAIL(RNL_INVALID_ARGUMENT, "Einsum's equation '%.64s' is not one of %zu inputs",
                        rnl_node_string(context->node, "equation", ""), context->input_count);
        at += *at == ',';
        TRY(place_labels(&read, i, context->inputs[i].rank, out_einsum));
        TRY(merge_sizes(context, i, out_einsum));
    }
    if (!*at) {
        derive_output(out_einsum);
        return RNL_OK;
    }
    if (strncmp(at, "->", 2) != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "Einsum's equation does not make sense at '%.32s'", at);
    return read_output(at + 2, out_einsum);
}

rnl_status rnl_infer_einsum(rnl_op_context *context)
{
    rnl_einsum einsum;
    int64_t shape[RNL_EINSUM_LABELS];
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, context->input_count - 1));
    TRY(rnl_einsum_resolve(context, &einsum));
    for (size_t i = 0; i < einsum.output_rank; i++)
        shape[i] = einsum.size[einsum.output[i]];
    return rnl_output_set(context, 0, context->inputs[0].dtype, shape, einsum.output_rank);
}
