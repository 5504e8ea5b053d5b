/* SPDX-License-Identifier: Apache-2.0 */
/* Which processors of this machine shares are bound to, in all processes: so one that may choose takes others. */
#ifndef RUNNEL_DEVICE_CLAIM_H
#define RUNNEL_DEVICE_CLAIM_H

#include <sched.h>
#include <stdbool.h>

/* Ends with the process that made it, however that ends; a child that is forked has no part in it. */
typedef struct rnl_claim rnl_claim;

/* A folder that all processes open: read locks on its bytes are claims, byte N for processor N. Tests set another. */
extern const char *rnl_claim_folder;

/*
 * To choose: from begin to end no other chooses. Takes all of `wanted` if no claim of any process has one of them, and
 * says so; at most once. NULL, with which take is always false, where it cannot be known.
 */
rnl_claim *rnl_claim_begin(void);
bool rnl_claim_take(rnl_claim *claim, const cpu_set_t *wanted);
/* Returns the claim, or NULL when nothing was taken. */
rnl_claim *rnl_claim_end(rnl_claim *claim);

/* Whoever else has them; NULL where others cannot be told. */
rnl_claim *rnl_claim_beside(const cpu_set_t *wanted);

/* NULL is legal. */
void rnl_claim_give_back(rnl_claim *claim);

#endif
