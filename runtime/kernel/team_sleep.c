/* SPDX-License-Identifier: Apache-2.0 */
/* How long a team's threads wait for each other and sleep, and what follows from it. */
#include "base/clock.h"
#include "kernel/team_parts.h"

#include <sched.h>

#define TURNS 2000
#define YIELDS 100
#define YIELD_TURNS 50
#define LOOK_AFTER 256      /* launches */
#define MOST_ASLEEP_NS 20e3 /* a launch; a team saves some 15 us of it */
#define FIRST_REST 128u     /* calls; twice as many for the next, fewer after launches that did not sleep; up to … */
#define LONGEST_REST 16384u

static void pause_turn(void)
{
#ifdef __x86_64__
    __asm__ volatile("pause" ::: "memory");
#endif
}

/* As team.clh's team_wait does. */
bool rnl_team_look_for(bool (*has_come)(void *context), void *context)
{
    for (int turn = 0; turn < TURNS && !has_come(context); turn++)
        pause_turn();
    for (int yields = 0; yields < YIELDS && !has_come(context); yields++) {
        sched_yield();
        for (int turn = 0; turn < YIELD_TURNS && !has_come(context); turn++)
            pause_turn();
    }
    return has_come(context);
}

static uint64_t processor_clock(void)
{
#ifdef __x86_64__
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
#else
    return 0;
#endif
}

static uint64_t read_cycles(const uint32_t *words)
{
    uint64_t cycles = 0;
    __atomic_load((const uint64_t *)(const void *)words, &cycles, __ATOMIC_RELAXED);
    return cycles;
}

rnl_team_mark rnl_team_set_mark(const rnl_device *device)
{
    const rnl_team *team = device->team;
    return (rnl_team_mark){.cycles = processor_clock(),
                           .waited = team ? read_cycles(&team->words[RNL_TEAM_WAITED]) : 0};
}

double rnl_team_waited(const rnl_device *device, const rnl_team_mark *since)
{
    const rnl_team_mark now = rnl_team_set_mark(device);
    if (!device->team || device->team->threads == 1 || now.cycles <= since->cycles)
        return 0;
    return (double)(now.waited - since->waited) / (double)(now.cycles - since->cycles) / (device->team->threads - 1);
}

/* Of a launch that is waited for, on average since the last look. With the lock; what it sees is some launches old. */
static double slept_ns(rnl_team *team)
{
    const uint64_t now_ns = rnl_clock_ns(), now = processor_clock(), slept = read_cycles(&team->words[RNL_TEAM_SLEPT]);
    const double ns = (double)(now_ns - team->looked_ns), cycles = (double)(now - team->looked_cycles);
    const double mean = (double)(slept - team->slept_cycles) / team->launched / (team->threads - 1);
    team->looked_ns = now_ns;
    team->looked_cycles = now;
    team->slept_cycles = slept;
    team->launched = 0;
    return cycles > 0 ? mean * ns / cycles : 0;
}

void rnl_team_look(rnl_team *team)
{
    if (++team->launched < LOOK_AFTER || team->threads == 1)
        return;
    const bool is_sleepy = slept_ns(team) > MOST_ASLEEP_NS, was_sleepy = team->was_sleepy;
    team->was_sleepy = is_sleepy;
    if (!is_sleepy)
        team->rest -= team->rest / 4;
    if (!is_sleepy || !was_sleepy) /* once may be a kernel that was loaded, for which all waited some milliseconds */
        return;
    team->rest = team->rest < FIRST_REST ? FIRST_REST : team->rest < LONGEST_REST / 2 ? 2 * team->rest : LONGEST_REST;
    atomic_store_explicit(&team->rests, team->rest, memory_order_relaxed);
}

bool rnl_team_takes_a_rest(rnl_team *team)
{
    unsigned left = atomic_load_explicit(&team->rests, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&team->rests, &left, left - 1))
        ;
    return left > 0;
}
