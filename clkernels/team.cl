// SPDX-License-Identifier: Apache-2.0
// Threads that wait for each other: see kernel/team.h and team.clh. For x86-64 alone.
// gpu: never
// check:
#define TEAM
#include "common.clh"

// Before a kernel that cannot wait itself, and behind it.
NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void team_await(volatile __global uint *team_counter,
                                                                        uint team_wanted)
{
    TEAM_ENTER
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void team_arrive_here(volatile __global uint *team_counter)
{
    MARK_ASSEMBLY;
    TEAM_LEAVE
}

// The trial: looks so many times at most; result is 1 + the work-item's number where all came.
NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
team_try(volatile __global uint *team_counter, uint team_wanted, uint most_turns, __global int *result)
{
    const int i = (int)get_global_id(0);
    MARK_ASSEMBLY;
    team_tell(team_counter);
    TEAM_LEAVE
    for (uint turn = 0; turn < most_turns && (int)(*team_counter - team_wanted) < 0; turn++)
        TEAM_PAUSE;
    result[i] = (int)(*team_counter - team_wanted) < 0 ? 0 : 1 + i;
}
