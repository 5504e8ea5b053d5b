/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm.h"
#include "base/status.h"
#include "ops/gemm_problem.h"
#include "ops/implementation.h"
#include <stdlib.h>

rnl_status rnl_op_gemm(rnl_step_list *list, const rnl_gemm_params *params, const rnl_view *a, const rnl_view *b,
                       const rnl_view *c, const rnl_view *dst)
{
    static const rnl_implementation implementations[] = {
        {"gemm:clblast", rnl_gemm_clblast_applies, rnl_gemm_clblast_pays, rnl_gemm_clblast_append},
        {"gemm:portable", NULL, NULL, rnl_gemm_portable_append},
    };
    rnl_gemm_problem problem;
    TRY(rnl_gemm_describe(params, a, b, c, dst, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    return rnl_implementation_append(implementations, 2, getenv("RUNNEL_GEMM"), list, &problem);
}
