/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/attention.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "support/op_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct attention_form {
    int64_t batches, heads, key_heads, queries, keys, size, value_size;
    uint32_t bias; /* 0: none; else 1 and a bit for each of its dimensions that is not 1 */
} attention_form;
enum { OF_BATCH = 2, OF_HEAD = 4, OF_QUERY = 8, OF_KEY = 16 };

typedef struct attention_job {
    op_tensor *q, *k, *v, *bias, *dst;
    rnl_attention_step step;
    int64_t row[3]; /* whose scores these are */
    double scores[512], highest;
} attention_job;

static const attention_form forms[] = {
    {1, 1, 1, 1, 1, 1, 1, 0},
    {2, 3, 3, 17, 17, 32, 32, 1 | OF_BATCH | OF_KEY},
    {1, 2, 2, 33, 70, 20, 7, 1 | OF_QUERY | OF_KEY},
    {1, 4, 2, 8, 65, 5, 16, 1 | OF_BATCH | OF_HEAD | OF_QUERY | OF_KEY},
    {2, 2, 1, 19, 9, 16, 33, 1 | OF_QUERY},
    {1, 1, 1, 5, 64, 3, 1, 1 | OF_HEAD | OF_KEY},
    {1, 12, 12, 128, 128, 32, 32, 1 | OF_BATCH | OF_KEY},
    {2, 3, 3, 197, 197, 64, 64, 0},
    {1, 2, 1, 129, 300, 80, 40, 1 | OF_HEAD | OF_QUERY | OF_KEY},
};
enum { FORMS = sizeof forms / sizeof *forms, SMALL_FORMS = 6 };

static int64_t size_of(const attention_form *f, uint32_t bit, int64_t size)
{
    return f->bias & bit ? size : 1;
}

/* Batch, rows, heads, elements in memory, as batch, heads, rows, elements. */
static op_tensor *make_rows(int64_t batches, int64_t heads, int64_t rows, int64_t elements)
{
    op_tensor *tensor = op_tensor_create(RNL_F32, 4, (const int64_t[]){batches, rows, heads, elements}, OP_ROW_MAJOR);
    rnl_view *view = &tensor->view;
    const int64_t stride = view->stride[1];
    view->shape[1] = heads;
    view->shape[2] = rows;
    view->stride[1] = view->stride[2];
    view->stride[2] = stride;
    op_fill(tensor, OP_RANDOM, -2, 2);
    return tensor;
}

static attention_job make_job(const attention_form *f, op_layout layout)
{
    attention_job job = {.row = {-1, -1, -1}};
    const rnl_view none = {.slot = RNL_NO_SLOT};
    job.q = make_rows(f->batches, f->heads, f->queries, f->size);
    job.k = make_rows(f->batches, f->key_heads, f->keys, f->size);
    job.v = make_rows(f->batches, f->key_heads, f->keys, f->value_size);
    job.dst = make_rows(f->batches, f->heads, f->queries, f->value_size);
    const int64_t shape[] = {size_of(f, OF_BATCH, f->batches), size_of(f, OF_HEAD, f->heads),
                             size_of(f, OF_QUERY, f->queries), size_of(f, OF_KEY, f->keys)};
    if (f->bias) {
        job.bias = op_tensor_create(RNL_F32, 4, shape, layout);
        op_fill(job.bias, OP_RANDOM, -3, 3);
    }
    job.step = (rnl_attention_step){.query = job.q->view,
                                    .key = job.k->view,
                                    .value = job.v->view,
                                    .dst = job.dst->view,
                                    .bias = job.bias ? job.bias->view : none,
                                    .scale = 1.0f / sqrtf((float)f->size)};
    return job;
}

static double rounded(double value)
{
    return op_round(RNL_BF16, op_float(value)).f;
}

/* With pairs, of factors that are rounded as the step rounds them: a query when it is scaled, to powers of two. */
static double score(const attention_job *job, const int64_t *at, int64_t key)
{
    const int64_t *q = job->q->view.shape, *k = job->k->view.shape;
    const float log2_e = 1.44269504f, scale = job->step.scale * log2_e;
    double sum = 0;
    for (int64_t i = 0; i < q[3]; i++) {
        const double x = op_get(job->q, (const int64_t[]){at[0], at[1], at[2], i}).f;
        const double y = op_get(job->k, (const int64_t[]){at[0], at[1] / (q[1] / k[1]), key, i}).f;
        sum += job->step.pairs ? rounded((double)((float)x * scale)) * rounded(y) : x * y;
    }
    sum *= job->step.pairs ? 1 / (double)log2_e : (double)job->step.scale;
    return job->bias ? sum + op_get_broadcast(job->bias, 4, (const int64_t[]){at[0], at[1], at[2], key}).f : sum;
}

/* Elements of one row are asked for one after the other. */
static void find_scores(attention_job *job, const int64_t *at)
{
    if (memcmp(job->row, at, sizeof job->row) == 0)
        return;
    memcpy(job->row, at, sizeof job->row);
    job->highest = -INFINITY;
    for (int64_t j = 0; j < job->k->view.shape[2]; j++) {
        const double x = job->scores[j] = score(job, at, j);
        job->highest = isnan(x) || x > job->highest ? x : job->highest;
    }
}

static op_value reference(void *user, const int64_t *at)
{
    attention_job *job = user;
    const int64_t keys = job->k->view.shape[2], owner = at[1] / (job->q->view.shape[1] / job->k->view.shape[1]);
    double total = 0, sum = 0;
    find_scores(job, at);
    for (int64_t j = 0; j < keys; j++) {
        const double share = exp(job->scores[j] - job->highest);
        const double value = op_get(job->v, (const int64_t[]){at[0], owner, j, at[3]}).f;
        total += share;
        sum += share * (job->step.pairs ? rounded(value) : value);
    }
    return op_float(job->step.empty_gives_zero && job->highest == -INFINITY ? 0 : sum / total);
}

static void run_job(attention_job *job)
{
    op_bound bound = op_tolerance(RNL_F32);
    bound.absolute += 4e-6; /* shares of values up to 2, summed */
    if (job->step.pairs)
        bound.absolute += 2 * (ldexp(1, -9) + 2e-4); /* shares are 1e-4 off, and rounded to 8 bits */
    op_expect(RNL_OK, rnl_op_attention(op_list(), &job->step));
    op_run();
    op_check(job->dst, reference, job, bound);
    op_reset();
}

START_TEST(shapes)
{
    if (op_small() && _i >= SMALL_FORMS)
        return;
    attention_job job = make_job(&forms[_i], _i % 2 ? OP_ROW_MAJOR : OP_GAPS);
    op_note("form %d", _i);
    run_job(&job);
}
END_TEST

/* By numbers, by pairs of bfloat16, by matrix tiles' model, and by the processor's. */
enum { NUMBERS, PAIRS, MODEL, TILES, WAYS };

/* False where the device cannot. */
static bool multiply(attention_job *job, int way)
{
    static const char *const wishes[WAYS] = {"off", "off", "model", "on"};
    const rnl_device *device = op_device();
    setenv("RUNNEL_AMX", wishes[way], 1);
    job->step.pairs = way != NUMBERS;
    if (way == PAIRS)
        return rnl_device_runs(device, RNL_INSTRUCTION_BF16) && device->vector_width >= 8;
    if (way == TILES && !rnl_device_runs(device, RNL_INSTRUCTION_AMX_BF16))
        return false;
    return way == NUMBERS || (rnl_device_is_cpu(device) && device->vector_width == 16);
}

START_TEST(narrow)
{
    static const size_t some[] = {1, 2, 3, 4, 7, 8};
    const int way = PAIRS + _i % (WAYS - PAIRS), form = _i / (WAYS - PAIRS);
    attention_job job = make_job(&forms[some[form]], form % 2 ? OP_ROW_MAJOR : OP_GAPS);
    op_note("form %zu, way %d", some[form], way);
    if (multiply(&job, way))
        run_job(&job);
    else
        op_reset();
}
END_TEST

static const attention_form masked = {1, 2, 2, 18, 70, 8, 8, 1 | OF_HEAD | OF_QUERY | OF_KEY};

/* Causal: the first blocks of keys may be all that a query has, or the last ones. */
START_TEST(masks)
{
    attention_job job = make_job(&masked, OP_ROW_MAJOR);
    if (!multiply(&job, _i / 2)) {
        op_reset();
        return;
    }
    for (int64_t h = 0; h < 2; h++)
        for (int64_t i = 0; i < 18; i++)
            for (int64_t j = 0; j < 70; j++)
                if (h == 0 ? j > i : j < 52 + i)
                    op_put(job.bias, (const int64_t[]){0, h, i, j},
                           op_float(_i % 2 ? -3.4028234663852886e38 : -INFINITY));
    run_job(&job);
}
END_TEST

START_TEST(rows_without_keys)
{
    attention_job job = make_job(&masked, OP_ROW_MAJOR);
    for (int64_t j = 0; j < 70; j++) {
        op_put(job.bias, (const int64_t[]){0, 0, 3, j}, op_float(-INFINITY));
        op_put(job.bias, (const int64_t[]){0, 1, 17, j}, op_float(-INFINITY));
    }
    job.step.empty_gives_zero = _i % 2;
    if (multiply(&job, _i / 2))
        run_job(&job);
    else
        op_reset();
}
END_TEST

START_TEST(special_values)
{
    attention_job job = make_job(&masked, OP_ROW_MAJOR);
    if (!multiply(&job, _i)) {
        op_reset();
        return;
    }
    op_put(job.q, (const int64_t[]){0, 0, 1, 2}, op_float(NAN));
    op_put(job.q, (const int64_t[]){0, 0, 4, 2}, op_float(INFINITY));
    op_put(job.q, (const int64_t[]){0, 0, 5, 2}, op_float(1e30));
    op_put(job.bias, (const int64_t[]){0, 0, 6, 69}, op_float(NAN));
    op_put(job.bias, (const int64_t[]){0, 0, 7, 3}, op_float(INFINITY));
    op_put(job.bias, (const int64_t[]){0, 0, 8, 66}, op_float(1e6));
    op_put(job.v, (const int64_t[]){0, 1, 68, 1}, op_float(NAN));
    op_put(job.v, (const int64_t[]){0, 1, 0, 2}, op_float(-INFINITY));
    run_job(&job);
}
END_TEST

START_TEST(nothing_and_refusals)
{
    attention_job job = make_job(&masked, OP_ROW_MAJOR);
    rnl_attention_step wrong = job.step;
    wrong.query.shape[2] = wrong.dst.shape[2] = 0;
    wrong.bias.slot = RNL_NO_SLOT;
    op_expect(RNL_OK, rnl_op_attention(op_list(), &wrong));
    wrong = job.step;
    wrong.key.shape[2] = wrong.value.shape[2] = 0;
    op_expect(RNL_UNIMPLEMENTED, rnl_op_attention(op_list(), &wrong));
    wrong = job.step;
    wrong.value.stride[3] = 2;
    op_expect(RNL_UNIMPLEMENTED, rnl_op_attention(op_list(), &wrong));
    wrong = job.step;
    wrong.value.shape[2]--;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_attention(op_list(), &wrong));
    wrong = job.step;
    wrong.bias.shape[3]--;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_attention(op_list(), &wrong));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attention");
    TCase *tests = op_case(suite, "attention");
    op_add_loop(tests, shapes, 0, FORMS);
    op_add_loop(tests, narrow, 0, 6 * (WAYS - PAIRS));
    op_add_loop(tests, masks, 0, 2 * WAYS);
    op_add_loop(tests, rows_without_keys, 0, 2 * WAYS);
    op_add_loop(tests, special_values, 0, WAYS);
    tcase_add_test(tests, nothing_and_refusals);
    return op_main(suite);
}
