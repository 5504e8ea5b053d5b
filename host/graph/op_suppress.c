/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: the boxes of each class, best score first, that overlap none chosen before. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <stdlib.h>
#include <string.h>

typedef struct box {
    float x0, y0, x1, y1;
} box;

typedef struct candidate {
    float score;
    int64_t index;
} candidate;

typedef struct suppress {
    const rnl_tensor_desc *boxes, *scores;
    int64_t batches, classes, count, most; /* of one class, most are chosen */
    float overlap, least_score;
    bool has_least, is_centered;
    candidate *candidates;
    box *chosen;
    int64_t *results; /* rows of batch, class, box; NULL: they are only counted */
    int64_t found;
} suppress;

static rnl_status read_number(const rnl_op_context *context, size_t index, const char *what, double *out_value)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    if (!rnl_input_exists(context, index))
        return RNL_OK;
    if (rnl_desc_elements(input) != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "%s (input %zu) has shape %s; it must be one number", what, index,
                    rnl_shape_format(input->shape, input->rank).text);
    *out_value = rnl_number_double(rnl_element_load(input->host, 0, input->dtype), input->dtype);
    return RNL_OK;
}

static rnl_status resolve(const rnl_op_context *context, suppress *out)
{
    double most = 0, overlap = 0, least_score = 0;
    const rnl_tensor_desc *boxes = &context->inputs[0], *scores = &context->inputs[1];
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_F32)));
    if (boxes->rank != 3 || scores->rank != 3 || boxes->shape[2] != 4 || boxes->shape[0] != scores->shape[0] ||
        boxes->shape[1] != scores->shape[2])
        return FAIL(RNL_INVALID_ARGUMENT, "NonMaxSuppression has boxes of shape %s and scores of shape %s",
                    rnl_shape_format(boxes->shape, boxes->rank).text,
                    rnl_shape_format(scores->shape, scores->rank).text);
    TRY(rnl_evaluate_begin(context));
    TRY(read_number(context, 2, "max_output_boxes_per_class", &most));
    TRY(read_number(context, 3, "iou_threshold", &overlap));
    TRY(read_number(context, 4, "score_threshold", &least_score));
    if (!(overlap >= 0 && overlap <= 1))
        return FAIL(RNL_INVALID_ARGUMENT, "iou_threshold is %g; it must be from 0 to 1", overlap);
    *out = (suppress){.boxes = boxes,
                      .scores = scores,
                      .batches = boxes->shape[0],
                      .classes = scores->shape[1],
                      .count = boxes->shape[1],
                      .most = most > 0 ? most < (double)boxes->shape[1] ? (int64_t)most : boxes->shape[1] : 0,
                      .overlap = (float)overlap,
                      .least_score = (float)least_score,
                      .has_least = rnl_input_exists(context, 4),
                      .is_centered = rnl_node_int(context->node, "center_point_box", 0) != 0};
    return RNL_OK;
}

static float load(const rnl_tensor_desc *desc, int64_t index)
{
    return (float)rnl_element_load(desc->host, index, RNL_F32).f;
}

static float least(float a, float b)
{
    return a < b ? a : b;
}

static float greatest(float a, float b)
{
    return a > b ? a : b;
}

/* Corners may come in any order. */
static box load_box(const suppress *s, int64_t index)
{
    const float a = load(s->boxes, 4 * index), b = load(s->boxes, 4 * index + 1);
    const float c = load(s->boxes, 4 * index + 2), d = load(s->boxes, 4 * index + 3);
    if (s->is_centered)
        return (box){a - c / 2, b - d / 2, a + c / 2, b + d / 2};
    return (box){least(b, d), least(a, c), greatest(b, d), greatest(a, c)};
}

static bool overlaps(const suppress *s, const box *a, const box *b)
{
    const float width = least(a->x1, b->x1) - greatest(a->x0, b->x0);
    const float height = least(a->y1, b->y1) - greatest(a->y0, b->y0);
    const float area_a = (a->x1 - a->x0) * (a->y1 - a->y0), area_b = (b->x1 - b->x0) * (b->y1 - b->y0);
    if (!(width > 0 && height > 0))
        return false;
    const float shared = width * height, joined = area_a + area_b - shared;
    return area_a > 0 && area_b > 0 && joined > 0 && shared / joined > s->overlap;
}

static int compare(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->score != b->score)
        return a->score < b->score ? 1 : -1;
    return (a->index > b->index) - (a->index < b->index);
}

static int64_t find_candidates(suppress *s, int64_t batch, int64_t class)
{
    int64_t count = 0;
    for (int64_t i = 0; i < s->count; i++) {
        float score = load(s->scores, (batch * s->classes + class) * s->count + i);
        if (score == score && (!s->has_least || score > s->least_score)) /* NaN is no score */
            s->candidates[count++] = (candidate){score, i};
    }
    if (count > 1)
        qsort(s->candidates, (size_t)count, sizeof *s->candidates, compare);
    return count;
}

static void choose(suppress *s, int64_t batch, int64_t class)
{
    int64_t candidates = find_candidates(s, batch, class), chosen = 0;
    for (int64_t i = 0; i < candidates && chosen < s->most; i++) {
        const int64_t index = s->candidates[i].index;
        const box next = load_box(s, batch * s->count + index);
        bool is_free = true;
        for (int64_t k = 0; k < chosen && is_free; k++)
            is_free = !overlaps(s, &next, &s->chosen[k]);
        if (!is_free)
            continue;
        s->chosen[chosen++] = next;
        if (s->results) {
            const int64_t row[3] = {batch, class, index};
            memcpy(s->results + 3 * s->found, row, sizeof row);
        }
        s->found++;
    }
}

static rnl_status choose_all(suppress *s)
{
    rnl_zone zone = {0};
    rnl_status status = RNL_OK;
    GOTO(rnl_zone_alloc(&zone, (size_t)s->count + 1, sizeof *s->candidates, &s->candidates));
    GOTO(rnl_zone_alloc(&zone, (size_t)s->count + 1, sizeof *s->chosen, &s->chosen));
    for (int64_t i = 0; i < s->batches; i++)
        for (int64_t k = 0; k < s->classes && s->most > 0; k++)
            choose(s, i, k);
done:
    rnl_zone_free(&zone);
    return status;
}

rnl_status rnl_infer_suppress(rnl_op_context *context)
{
    suppress s;
    TRY(rnl_infer_begin(context));
    TRY(resolve(context, &s));
    TRY(choose_all(&s));
    const int64_t shape[2] = {s.found, 3};
    return rnl_output_set(context, 0, RNL_I64, shape, 2);
}

rnl_status rnl_evaluate_suppress(rnl_op_context *context)
{
    suppress s;
    TRY(resolve(context, &s));
    s.results = context->results[0];
    return choose_all(&s);
}
