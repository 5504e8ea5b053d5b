/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers against Philox's known answers, and element by element against the same generator in plain C. */
#include "kernel/source.h"
#include "ops/random.h"
#include "support/op_test.h"
#include "support/test_device.h"
#include <math.h>
#include <string.h>

/* ---- the generator -------------------------------------------------------------------------------------------- */

/* Salmon et al. 2011, figure 3, with 64-bit products. */
static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c[4], k[2] = {key[0], key[1]};
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = UINT64_C(0xD2511F53) * c[0], b = UINT64_C(0xCD9E8D57) * c[2];
        const uint32_t next[] = {(uint32_t)(b >> 32) ^ c[1] ^ k[0], (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k[1],
                                 (uint32_t)a};
        memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    memcpy(out, c, sizeof c);
}

/* Philox4x32-10 of kat_vectors in the Random123 distribution: counter, key, words. */
static const uint32_t answers[][10] = {{0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                       {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
                                        0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                       {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0,
                                        0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
enum { ANSWERS = sizeof answers / sizeof *answers };

static void add_source(rnl_text *text)
{
    test_ok(rnl_source_get("philox.clh", text));
    rnl_text_add(text,
                 "__kernel void answer(__global const uint *x, __global uint *y)\n"
                 "{\n    const size_t i = get_global_id(0) * 10;\n"
                 "    vstore4(philox(vload4(0, x + i), vload2(0, x + i + 4)), 0, y + get_global_id(0) * 4);\n}\n");
    test_ok(text->status);
}

START_TEST(gives_the_known_answers)
{
    rnl_text source;
    rnl_stream *stream;
    rnl_buffer *given, *made;
    rnl_kernel *kernel;
    uint32_t words[ANSWERS][4];
    add_source(&source);
    test_ok(rnl_stream_create(op_device(), &stream));
    test_ok(rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, sizeof answers, &given));
    test_ok(rnl_buffer_create(op_device(), RNL_MEMORY_DEVICE, sizeof words, &made));
    test_ok(rnl_stream_write(stream, given, 0, answers, sizeof answers));
    test_ok(rnl_kernel_create(op_device(), source.data, "", "answer", &kernel));
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = given}, {.kind = RNL_ARG_BUFFER, .buffer = made}};
    const rnl_range range = {.dimensions = 1, .global = {ANSWERS, 1, 1}, .local = {1, 1, 1}};
    test_ok(rnl_stream_launch(stream, kernel, &range, args, 2));
    test_ok(rnl_stream_read(stream, words, made, 0, sizeof words));
    test_ok(rnl_stream_synchronize(stream));
    for (size_t i = 0; i < ANSWERS; ++i) {
        uint32_t expected[4];
        philox(answers[i], answers[i] + 4, expected);
        ck_assert_mem_eq(words[i], answers[i] + 6, sizeof words[i]);
        ck_assert_mem_eq(expected, answers[i] + 6, sizeof expected);
    }
    rnl_kernel_release(kernel);
    rnl_buffer_release(given);
    rnl_buffer_release(made);
    rnl_stream_release(stream);
    rnl_text_free(&source);
}
END_TEST

/* ---- numbers -------------------------------------------------------------------------------------------------- */

typedef struct random_job {
    rnl_random_params params;
    rnl_random_state state;
    op_tensor *dst;
} random_job;

static uint64_t row_major_number(const rnl_view *view, const int64_t *at)
{
    uint64_t flat = 0;
    for (size_t i = 0; i < view->rank; ++i)
        flat = flat * (uint64_t)view->shape[i] + (uint64_t)at[i];
    return flat;
}

static void words_of(const random_job *job, uint64_t block, uint32_t out[4])
{
    const uint64_t draw = ((uint64_t)job->state.draw[1] << 32 | job->state.draw[0]) + job->params.ordinal;
    const uint32_t counter[] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)draw, (uint32_t)(draw >> 32)};
    const uint32_t seeded[] = {job->params.seed, 0};
    philox(counter, job->params.seeded ? seeded : job->state.key, out);
}

static double wide(const uint32_t *words)
{
    return (double)(((uint64_t)words[0] << 32 | words[1]) >> 11);
}

/* In [0, 1), or normal: the cosine and sine of a pair's second word, by its first. */
static double number(const random_job *job, const int64_t *at)
{
    const bool is_double = job->dst->view.dtype == RNL_F64;
    const uint64_t flat = row_major_number(&job->dst->view, at), each = is_double ? 2 : 4;
    const unsigned which = (unsigned)(flat % each);
    uint32_t words[4];
    words_of(job, flat / each, words);
    if (!job->params.normal)
        return is_double ? wide(words + 2 * which) * 0x1p-53 : (double)(words[which] >> 8) * 0x1p-24;
    double radicand, turn;
    if (is_double) {
        radicand = (wide(words) + 0.5) * 0x1p-53;
        turn = wide(words + 2) * 0x1p-53;
        return sqrt(-2 * log(radicand)) * (which ? sin(2 * M_PI * turn) : cos(2 * M_PI * turn));
    }
    const unsigned pair = which % 2; /* both cosines come first */
    radicand = (double)(((float)words[2 * pair] + 0.5f) * 0x1p-32f);
    turn = (double)(words[2 * pair + 1] >> 8) * 0x1p-24;
    return sqrt(-2 * log(radicand)) * (which >= 2 ? sin(2 * M_PI * turn) : cos(2 * M_PI * turn));
}

static op_value reference(void *user, const int64_t *at)
{
    const random_job *job = user;
    const double x = number(job, at), a = (double)job->params.a, b = (double)job->params.b;
    return op_float(job->params.normal ? x * b + a : a + x * (b - a));
}

static const rnl_dtype types[] = {RNL_F32, RNL_F16, RNL_BF16, RNL_F64};
static const struct {
    size_t rank;
    int64_t shape[5];
} forms[] = {{0, {0}}, {1, {1}}, {1, {1003}}, {2, {7, 31}}, {5, {2, 3, 5, 1, 7}}};
enum { TYPES = sizeof types / sizeof *types, FORMS = sizeof forms / sizeof *forms };

static op_tensor *state_tensor(const rnl_random_state *state)
{
    const int64_t words = RNL_RANDOM_WORDS;
    op_tensor *tensor = op_tensor_create(RNL_U32, 1, &words, OP_ROW_MAJOR);
    uint32_t all[RNL_RANDOM_WORDS];
    memcpy(all, state, sizeof all);
    for (int64_t i = 0; i < words; ++i)
        op_put(tensor, &i, op_int(all[i]));
    return tensor;
}

static void run(rnl_dtype dtype, int form, int layout, bool normal)
{
    random_job job = {.params = {.normal = normal, .seeded = layout % 2 == 0, .seed = 0x7fc00001, .ordinal = 3},
                      .state = {{0xfffffffe, 7}, {0x12345678, 0x9abcdef0}}};
    job.params.a = normal ? -1.5f : -2;
    job.params.b = normal ? 0.25f : 3;
    op_tensor *state = state_tensor(&job.state);
    job.dst = op_tensor_create(dtype, forms[form].rank, forms[form].shape, (op_layout)layout);
    op_note("%s of %s, form %d, layout %d", normal ? "normal" : "uniform", rnl_dtype_name(dtype), form, layout);
    op_expect(RNL_OK, rnl_op_random(op_list(), &job.params, &state->view, &job.dst->view));
    op_run();
    op_bound bound = op_tolerance(dtype);
    bound.absolute += dtype == RNL_F64 ? 1e-14 : 1e-5; /* a turn's sine near 0, and a sum that cancels */
    op_check(job.dst, reference, &job, bound);
    op_reset();
}

START_TEST(numbers_are_the_generator_s)
{
    const rnl_dtype dtype = types[_i];
    if (dtype == RNL_F64 && !op_info()->has_fp64)
        return;
    for (int form = 0; form < FORMS; ++form)
        for (int layout = 0; layout < OP_LAYOUT_COUNT; ++layout)
            for (int normal = 0; normal < 2; ++normal)
                run(dtype, form, layout, normal != 0);
}
END_TEST

START_TEST(nothing_is_drawn_into_nothing)
{
    const int64_t shape[] = {3, 0};
    const rnl_random_state state = {{0, 0}, {0, 0}};
    const rnl_random_params params = {.b = 1};
    op_tensor *from = state_tensor(&state), *dst = op_tensor_create(RNL_F32, 2, shape, OP_ROW_MAJOR);
    op_expect(RNL_OK, rnl_op_random(op_list(), &params, &from->view, &dst->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
    op_tensor *integers = op_tensor_create(RNL_I32, 1, (const int64_t[]){3}, OP_ROW_MAJOR);
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_random(op_list(), &params, &from->view, &integers->view));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_random(op_list(), &params, &integers->view, &dst->view));
}
END_TEST

/* ---- classes -------------------------------------------------------------------------------------------------- */

typedef struct class_job {
    op_tensor *sums, *uniforms;
} class_job;

/* The first class whose sum is above the part of the whole. */
static op_value class_reference(void *user, const int64_t *at)
{
    const class_job *job = user;
    const int64_t classes = job->sums->view.shape[1];
    const double whole = op_get(job->sums, (const int64_t[]){at[0], classes - 1}).f;
    const double part = op_round(job->sums->view.dtype, op_float(whole * op_get(job->uniforms, at).f)).f;
    for (int64_t i = 0; i < classes; ++i) {
        const double sum = op_get(job->sums, (const int64_t[]){at[0], i}).f;
        if (sum > part || sum >= whole)
            return op_int(i);
    }
    return op_int(classes - 1);
}

static void fill_sums(op_tensor *sums)
{
    for (int64_t row = 0; row < sums->view.shape[0]; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < sums->view.shape[1]; ++i) {
            sum += i % 3 == 1 ? 0 : op_random_between(0, 1); /* some classes weigh nothing */
            op_put(sums, (const int64_t[]){row, i}, op_float(row == 2 ? NAN : sum));
        }
    }
}

START_TEST(classes_are_drawn_by_weight)
{
    static const int64_t classes[] = {1, 2, 37};
    const rnl_dtype dtype = _i % 2 && op_info()->has_fp64 ? RNL_F64 : RNL_F32;
    for (size_t c = 0; c < 3; ++c) {
        class_job job;
        const op_layout layout = (op_layout)(c % OP_LAYOUT_COUNT);
        job.sums = op_tensor_create(dtype, 2, (const int64_t[]){3, classes[c]}, layout);
        job.uniforms = op_tensor_create(dtype, 2, (const int64_t[]){3, 19}, OP_GAPS);
        op_tensor *dst = op_tensor_create(_i / 2 ? RNL_I64 : RNL_I32, 2, (const int64_t[]){3, 19}, layout);
        fill_sums(job.sums);
        op_fill(job.uniforms, OP_RANDOM, 0, 0.999);
        op_put(job.uniforms, (const int64_t[]){0, 0}, op_float(0));
        op_put(job.uniforms, (const int64_t[]){0, 1}, op_float(dtype == RNL_F64 ? 1 - 0x1p-53 : 1 - 0x1p-24));
        op_expect(RNL_OK, rnl_op_multinomial(op_list(), &job.sums->view, &job.uniforms->view, &dst->view));
        op_run();
        op_check(dst, class_reference, &job, (op_bound){0, 0});
        op_reset();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op_random");
    tcase_add_test(op_case(suite, "philox"), gives_the_known_answers);
    TCase *numbers = op_case(suite, "numbers");
    op_add_loop(numbers, numbers_are_the_generator_s, 0, TYPES);
    tcase_add_test(numbers, nothing_is_drawn_into_nothing);
    op_add_loop(op_case(suite, "classes"), classes_are_drawn_by_weight, 0, 4);
    return op_main(suite);
}
