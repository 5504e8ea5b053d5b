/* SPDX-License-Identifier: Apache-2.0 */
/* Where a pipeline is cut, against trying every cut there is. */
#include "multi/pipeline_cut.h"
#include "support/test_device.h"
#include <math.h>
#include <stdlib.h>

#define PLACES 8
#define MOST_DEVICES 4

typedef struct problem {
    rnl_cut_problem cut;
    size_t crossing[PLACES], weights[PLACES * PLACES], arenas[PLACES * PLACES];
    double times[MOST_DEVICES][PLACES], per_byte[MOST_DEVICES], scale[MOST_DEVICES];
    const double *rows[MOST_DEVICES];
    size_t budgets[MOST_DEVICES];
} problem;

static unsigned state;

static unsigned next(unsigned below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static void fill_ranges(problem *p)
{
    for (size_t a = 0; a < PLACES; a++)
        for (size_t b = a + 1; b < PLACES; b++) {
            p->weights[a * PLACES + b] = (b - a) * 100;
            p->arenas[a * PLACES + b] = 10 * b;
        }
}

/* Whole numbers, so that no sum is rounded. */
static void make(problem *p, size_t devices)
{
    *p = (problem){.cut = {.count = PLACES, .device_count = devices, .arenas = 1 + next(2)}};
    fill_ranges(p);
    for (size_t i = 1; i + 1 < PLACES; i++)
        p->crossing[i] = next(20);
    for (size_t d = 0; d < devices; d++) {
        for (size_t i = 1; i < PLACES; i++)
            p->times[d][i] = p->times[d][i - 1] + 1 + next(30);
        p->per_byte[d] = next(3);
        p->scale[d] = 1;
        p->budgets[d] = 200 + next(700);
        p->rows[d] = p->times[d];
    }
    p->cut.crossing_bytes = p->crossing;
    p->cut.weight_bytes = p->weights;
    p->cut.arena_bytes = p->arenas;
    p->cut.time_ns = p->rows;
    p->cut.ns_per_byte = p->per_byte;
    p->cut.budget_bytes = p->budgets;
    p->cut.memory_scale = p->scale;
}

typedef struct answer {
    double slowest, bytes;
} answer;

/* False where a stage does not fit. */
static bool judge(const rnl_cut_problem *p, const size_t *cuts, answer *out)
{
    *out = (answer){0, 0};
    for (size_t d = 0; d < p->device_count; d++) {
        if (rnl_cut_memory(p, d, cuts[d], cuts[d + 1]) > p->budget_bytes[d])
            return false;
        out->slowest = fmax(out->slowest, rnl_cut_time(p, d, cuts[d], cuts[d + 1]));
        if (cuts[d] > 0 && cuts[d] < cuts[d + 1])
            out->bytes += (double)p->crossing_bytes[cuts[d]];
    }
    return true;
}

/* The least time of all cuts; then the least bytes among those that take up to `limit`. */
static answer try_all(const rnl_cut_problem *p, size_t *cuts, size_t device, double limit)
{
    answer best = {INFINITY, INFINITY}, one;
    if (device == p->device_count) {
        if (cuts[device] == p->count - 1 && judge(p, cuts, &one) && one.slowest <= limit)
            best = one;
        return best;
    }
    for (cuts[device + 1] = cuts[device]; cuts[device + 1] < p->count; cuts[device + 1]++) {
        const size_t kept = cuts[device + 1];
        one = try_all(p, cuts, device + 1, limit);
        best.slowest = fmin(best.slowest, one.slowest);
        best.bytes = fmin(best.bytes, one.bytes);
        cuts[device + 1] = kept;
    }
    return best;
}

START_TEST(the_cut_is_the_best_of_all)
{
    problem p;
    size_t cuts[MOST_DEVICES + 1] = {0}, again[MOST_DEVICES + 1], tried[MOST_DEVICES + 1] = {0};
    answer found;
    state = (unsigned)_i;
    make(&p, 1 + (size_t)_i % MOST_DEVICES);
    const answer fastest = try_all(&p.cut, tried, 0, INFINITY);
    if (isinf(fastest.slowest)) {
        test_fails(RNL_RESOURCE_EXHAUSTED, "does not fit", rnl_cut_solve(&p.cut, cuts));
        return;
    }
    test_ok(rnl_cut_solve(&p.cut, cuts));
    test_ok(rnl_cut_solve(&p.cut, again));
    ck_assert_mem_eq(cuts, again, (p.cut.device_count + 1) * sizeof *cuts);
    ck_assert_uint_eq(cuts[0], 0);
    ck_assert(judge(&p.cut, cuts, &found));
    ck_assert_double_le(found.slowest, 1.05 * fastest.slowest);
    tried[0] = 0;
    ck_assert_double_eq(found.bytes, try_all(&p.cut, tried, 0, 1.05 * fastest.slowest).bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipeline_cut");
    TCase *test_case = tcase_create("pipeline_cut");
    tcase_add_loop_test(test_case, the_cut_is_the_best_of_all, 0, 400);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
