/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm.h"
#include "base/status.h"
#include "ops/gemm_problem.h"
#include "ops/implementation.h"
#include <stdlib.h>

static const rnl_implementation implementations[] = {
    {"gemm:clblast", rnl_gemm_clblast_applies, rnl_gemm_clblast_pays, rnl_gemm_clblast_append},
    {"gemm:tiled", rnl_gemm_tiled_applies, rnl_gemm_tiled_pays, rnl_gemm_tiled_append},
    {"gemm:panel", rnl_gemm_panel_applies, rnl_gemm_panel_pays, rnl_gemm_panel_append},
    {"gemm:portable", NULL, NULL, rnl_gemm_portable_append},
};
#define IMPLEMENTATIONS (sizeof implementations / sizeof *implementations)

rnl_status rnl_gemm_scratch(const rnl_device *device, const rnl_gemm_params *params, const rnl_view *a,
                            const rnl_view *b, const rnl_view *c, const rnl_view *dst, int64_t *out_floats)
{
    static const rnl_view plenty = {.dtype = RNL_F32, .rank = 1, .shape = {INT64_MAX}, .stride = {1}};
    rnl_gemm_problem problem;
    *out_floats = 0;
    TRY(rnl_gemm_describe(params, a, b, c, dst, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    problem.scratch = &plenty;
    const rnl_implementation *chosen =
        rnl_implementation_choose(implementations, IMPLEMENTATIONS, getenv("RUNNEL_GEMM"), device, &problem);
    if (chosen && chosen->append == rnl_gemm_panel_append)
        *out_floats = rnl_gemm_panel_scratch(device, &problem);
    if (chosen && chosen->append == rnl_gemm_tiled_append)
        *out_floats = rnl_gemm_tiled_scratch(device, &problem);
    return RNL_OK;
}

rnl_status rnl_op_gemm(rnl_step_list *list, const rnl_gemm_params *params, const rnl_view *a, const rnl_view *b,
                       const rnl_view *c, const rnl_view *dst)
{
    rnl_gemm_problem problem;
    TRY(rnl_gemm_describe(params, a, b, c, dst, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    return rnl_implementation_append(implementations, IMPLEMENTATIONS, getenv("RUNNEL_GEMM"), list, &problem);
}
