/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/amx.h"
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of arch_prctl (Documentation/arch/x86/xstate.rst), which headers of older systems do not name. */
#define REQUEST_PERMISSION 0x1023
#define TILE_DATA 18

bool rnl_amx_request(bool bytes)
{
    const unsigned wanted = 1u << 24 | 1u << (bytes ? 25 : 22); /* of leaf 7: tiles, and what multiplies them */
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & wanted) == wanted &&
           syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
bool rnl_amx_request(bool bytes)
{
    (void)bytes;
    return false;
}
#endif

bool rnl_amx_wish_is(const char *what)
{
    const char *wish = getenv("RUNNEL_AMX");
    return wish && strcmp(wish, what) == 0;
}
