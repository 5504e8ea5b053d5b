/* SPDX-License-Identifier: Apache-2.0 */
/* What a team's memory holds, in words of 32 bits behind the counter: clkernels/team.clh. */
#ifndef RUNNEL_KERNEL_TEAM_WORDS_H
#define RUNNEL_KERNEL_TEAM_WORDS_H

#define RNL_TEAM_SLEEPERS 1 /* threads that sleep until it has come */
#define RNL_TEAM_SLEPT 2    /* cycles that threads slept, … */
#define RNL_TEAM_WAITED 4   /* … and waited for longer than they look; two words each */
#define RNL_TEAM_TELL 8     /* not 0: kernels tell where their code is, … */
#define RNL_TEAM_DONE 16    /* groups of a launch that are done */
#define RNL_TEAM_RESULTS 32 /* of the trial, behind the counter's cache line */
#define RNL_TEAM_WHERE 48   /* … here, in two words */

#endif
