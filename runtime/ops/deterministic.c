/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/deterministic.h"

static _Thread_local bool is_on;

bool rnl_is_deterministic(void)
{
    return is_on;
}

bool rnl_set_deterministic(bool on)
{
    const bool before = is_on;
    is_on = on;
    return before;
}
