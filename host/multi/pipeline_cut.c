/* SPDX-License-Identifier: Apache-2.0 */
#include "multi/pipeline_cut.h"

#include "base/memory.h"
#include "base/status.h"
#include <math.h>

/* What fewer bytes may cost: no more than noise does. */
#define SLACK 1.05

/* The best way to give the nodes before a place to the devices so far. */
typedef struct state {
    double slowest;
    double bytes; /* travelling */
    size_t from;  /* where the last stage begins */
} state;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double rnl_cut_time(const rnl_cut_problem *problem, size_t device, size_t first, size_t end)
{
    if (first == end)
        return 0;
    const double compute = problem->time_ns[device][end] - problem->time_ns[device][first];
    const double comes = (double)problem->crossing_bytes[first] * problem->ns_per_byte[device];
    const double goes = (double)problem->crossing_bytes[end] * problem->ns_per_byte[device];
    return larger(compute, larger(comes, goes));
}

size_t rnl_cut_memory(const rnl_cut_problem *problem, size_t device, size_t first, size_t end)
{
    if (first == end)
        return 0;
    const size_t at = first * problem->count + end;
    const double bytes = (double)problem->weight_bytes[at] + (double)problem->arenas * (double)problem->arena_bytes[at];
    const double scaled = bytes * problem->memory_scale[device];
    return scaled < (double)(SIZE_MAX / 2) ? (size_t)scaled : SIZE_MAX / 2;
}

static bool is_better(const state *a, const state *b, bool by_bytes)
{
    if (by_bytes && a->bytes != b->bytes)
        return a->bytes < b->bytes;
    return a->slowest < b->slowest;
}

/* The last stage, [from, end), behind the best way to `from`. */
static state extend(const rnl_cut_problem *problem, size_t device, const state *before, size_t from, size_t end)
{
    const bool travels = from < end && from > 0;
    return (state){.slowest = larger(before->slowest, rnl_cut_time(problem, device, from, end)),
                   .bytes = before->bytes + (travels ? (double)problem->crossing_bytes[from] : 0),
                   .from = from};
}

static void solve_device(const rnl_cut_problem *problem, size_t device, double limit, bool by_bytes,
                         const state *before, state *after)
{
    for (size_t end = 0; end < problem->count; end++) {
        after[end] = (state){INFINITY, INFINITY, 0};
        for (size_t from = 0; from <= end; from++) {
            if (isinf(before[from].slowest) ||
                rnl_cut_memory(problem, device, from, end) > problem->budget_bytes[device])
                continue;
            const state next = extend(problem, device, &before[from], from, end);
            if (next.slowest <= limit && is_better(&next, &after[end], by_bytes))
                after[end] = next;
        }
    }
}

/* states[device + 1][place]; states[0] is before all devices. */
static double solve(const rnl_cut_problem *problem, double limit, bool by_bytes, state *states)
{
    const size_t count = problem->count;
    for (size_t i = 0; i < count; i++)
        states[i] = (state){i == 0 ? 0 : INFINITY, 0, 0};
    for (size_t d = 0; d < problem->device_count; d++)
        solve_device(problem, d, limit, by_bytes, states + d * count, states + (d + 1) * count);
    return states[problem->device_count * count + count - 1].slowest;
}

rnl_status rnl_cut_solve(const rnl_cut_problem *problem, size_t *out_cuts)
{
    state *states = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_alloc((problem->device_count + 1) * problem->count, sizeof *states, &states));
    const double best = solve(problem, INFINITY, false, states);
    if (isinf(best))
        GOTO(FAIL(RNL_RESOURCE_EXHAUSTED, "the model does not fit the devices' memory, however it is cut"));
    solve(problem, best * SLACK, true, states);
    out_cuts[problem->device_count] = problem->count - 1;
    for (size_t d = problem->device_count; d-- > 0;)
        out_cuts[d] = states[(d + 1) * problem->count + out_cuts[d + 1]].from;
done:
    rnl_free(states);
    return status;
}
