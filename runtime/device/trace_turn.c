/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs are recorded: every N-th, or as many as cost little by what has been measured. */
#include "device/trace_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_COST 0.01
#define MOST_INTERVAL 999u
#define LEAST_PAIRS 5u
#define FIRST_RUNS 5u /* are recorded whatever that costs: who runs a model a few times wants to see all of it */
/* Until the cost is known. */
#define UNKNOWN_INTERVAL 3u
/* Kinds that never come again make no pairs: then so many apart, which keeps the cost where a recorded run takes twice
 * as long. */
#define PATIENCE 60u
#define BLIND_INTERVAL 101u
#define LOOK_EVERY 32u /* of runs that are all recorded one is not, to see what it takes */

void rnl_trace_set_interval(rnl_trace *trace, uint32_t runs)
{
    unsigned long long before = atomic_load(&trace->interval);
    while (!atomic_compare_exchange_weak(&trace->interval, &before, (((before >> 32) + 1) << 32) | runs))
        ;
    pthread_mutex_lock(&trace->lock);
    for (rnl_trace_device *device = trace->devices; device && runs > 0; device = device->next)
        rnl_trace_device_pair(device, RNL_PAIR_EVERY_NS);
    pthread_mutex_unlock(&trace->lock);
}

bool rnl_trace_is_automatic(const rnl_trace *trace)
{
    return (uint32_t)atomic_load(&trace->interval) == RNL_TRACE_AUTOMATIC;
}

static bool takes_every(rnl_trace_turn *turn, uint32_t runs)
{
    if (turn->left >= runs)
        turn->left = runs - 1;
    const bool takes = turn->left == 0;
    turn->left = takes ? runs - 1 : turn->left - 1;
    return takes;
}

static bool takes_automatically(rnl_trace_turn *turn, uint32_t measured)
{
    const uint32_t number = turn->count++;
    if (number < FIRST_RUNS)
        turn->left = UNKNOWN_INTERVAL - 1;
    if (number < FIRST_RUNS || measured == 1)
        return number < FIRST_RUNS || number % LOOK_EVERY != 0;
    if (measured == 0)
        measured = number < PATIENCE ? UNKNOWN_INTERVAL : BLIND_INTERVAL;
    return takes_every(turn, measured);
}

bool rnl_trace_takes(rnl_trace *trace, rnl_trace_turn *turn, uint32_t measured)
{
    const uint64_t interval = atomic_load(&trace->interval);
    const uint32_t setting = (uint32_t)(interval >> 32), runs = (uint32_t)interval;
    if (turn->setting != setting)
        *turn = (rnl_trace_turn){.setting = setting};
    const bool takes =
        runs == RNL_TRACE_AUTOMATIC ? takes_automatically(turn, measured) : runs > 0 && takes_every(turn, runs);
    atomic_fetch_add_explicit(&trace->runs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&trace->recorded_runs, takes, memory_order_relaxed);
    return takes;
}

void rnl_trace_count_extra(rnl_trace *trace)
{
    atomic_fetch_add_explicit(&trace->runs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&trace->recorded_runs, 1, memory_order_relaxed);
}

uint64_t rnl_trace_get_runs(rnl_trace *trace, uint64_t *out_recorded)
{
    *out_recorded = atomic_load(&trace->recorded_runs);
    return atomic_load(&trace->runs);
}

/* ---- What it costs ---- */

void rnl_trace_cost_add(rnl_trace_cost *cost, bool is_recorded, uint64_t kind, uint64_t ns)
{
    const uint32_t known = cost->kinds < RNL_TRACE_KINDS ? cost->kinds : RNL_TRACE_KINDS;
    uint32_t at = 0;
    while (at < known && cost->plain[at].kind != kind)
        at++;
    if (is_recorded) {
        if (at == known || cost->plain[at].ns <= 0)
            return;
        cost->times[cost->count++ % RNL_TRACE_PAIRS] = (double)ns / cost->plain[at].ns;
        cost->plain[at].ns = 0;
        return;
    }
    if (at == known)
        at = cost->kinds++ % RNL_TRACE_KINDS;
    cost->plain[at].kind = kind;
    cost->plain[at].ns = (double)ns;
}

static int compare_times(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* A machine's unrest is no cost: then a good part of the recorded runs is faster than the others. */
uint32_t rnl_trace_cost_interval(const rnl_trace_cost *cost)
{
    double sorted[RNL_TRACE_PAIRS];
    const uint32_t count = cost->count < RNL_TRACE_PAIRS ? cost->count : RNL_TRACE_PAIRS;
    if (count < LEAST_PAIRS)
        return 0;
    memcpy(sorted, cost->times, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_times);
    return sorted[count / 4] <= 1 ? 1 : rnl_trace_choose_interval(sorted[count / 2]);
}

/* Odd: where long and short runs take turns, both are recorded. */
uint32_t rnl_trace_choose_interval(double times)
{
    const double runs = ceil((times - 1) / MOST_COST);
    if (!(runs > 1))
        return 1;
    return runs < MOST_INTERVAL ? (uint32_t)runs | 1 : MOST_INTERVAL;
}
