/* SPDX-License-Identifier: Apache-2.0 */
#include "support/matrix_case.h"

#include "device/device.h"
#include "ops/gemm_matrix.h"
#include <stdio.h>
#include <stdlib.h>

static int before;
static char implementation[32];

void matrix_force(const char *name, int instruction)
{
    setenv("RUNNEL_GEMM", name, 1);
    snprintf(implementation, sizeof implementation, "gemm:%s", name);
    before = op_device()->matrix_instruction;
    op_device()->matrix_instruction = instruction;
}

void matrix_force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
    op_device()->matrix_instruction = before;
}

bool matrix_has_room(void)
{
    return op_info()->local_memory_bytes >= 32768 && op_info()->max_work_group_size >= 128;
}

void matrix_run(const gemm_case *test)
{
    const int instruction = op_device()->matrix_instruction;
    if (instruction <= 0 || !op_chosen())
        return;
    gemm_run run = {.test = *test};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    gemm_case_enqueue(&run);
    if (matrix_has_room() && test->k > 0 &&
        (test->dtype != RNL_F32 || (instruction & ~RNL_MATRIX_MODEL) == RNL_MATRIX_MFMA))
        ck_assert_str_eq(op_list()->steps[0].implementation, implementation);
    gemm_case_check(&run);
    op_reset();
}

void matrix_run_ends(void)
{
    static const gemm_case tests[] = {
        {.dtype = RNL_F16, .m = 20, .n = 37, .k = 21, .alpha = 0.5f, .beta = 2, .c_rank = 1},
        {.dtype = RNL_BF16,
         .m = 20,
         .n = 40,
         .k = 24,
         .a_transposed = true,
         .batch_rank = 1,
         .batch = {3},
         .dst_gaps = true},
        {.dtype = RNL_F16, .m = 20, .n = 37, .k = 0},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i)
        matrix_run(&tests[i]);
}
