/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qgemm.h"
#include "base/status.h"
#include "ops/implementation.h"
#include "ops/qgemm_problem.h"
#include <stdlib.h>

/* The portable one is the only one that does not read packed factors: it is left out where there is one. */
static bool reads_b(const rnl_device *device, const void *problem)
{
    (void)device;
    return !((const rnl_qgemm_problem *)problem)->packed;
}

static const rnl_implementation implementations[] = {
    {"qgemm:vnni", rnl_qgemm_vnni_applies, rnl_qgemm_panel_pays, rnl_qgemm_vnni_append},
    {"qgemm:madd", rnl_qgemm_madd_applies, rnl_qgemm_panel_pays, rnl_qgemm_madd_append},
    {"qgemm:dot", rnl_qgemm_dot_applies, rnl_qgemm_dot_pays, rnl_qgemm_dot_append},
    {"qgemm:panel", rnl_qgemm_panel_applies, rnl_qgemm_panel_pays, rnl_qgemm_panel_append},
    {"qgemm:portable", reads_b, NULL, rnl_qgemm_portable_append},
};
#define IMPLEMENTATIONS (sizeof implementations / sizeof *implementations)

static const char *forced_name(const rnl_qgemm_params *params)
{
    return params->implementation ? params->implementation : getenv("RUNNEL_QGEMM");
}

rnl_status rnl_qgemm_scratch(rnl_device *device, const rnl_qgemm_params *params, const rnl_view *a, const rnl_view *b,
                             const rnl_view *dst, int64_t *out_ints)
{
    static const rnl_view plenty = {.dtype = RNL_I32, .rank = 1, .shape = {INT64_MAX}, .stride = {1}};
    rnl_qgemm_problem problem;
    *out_ints = 0;
    TRY(rnl_qgemm_describe(device, params, a, b, dst, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    problem.scratch = &plenty;
    const rnl_implementation *chosen =
        rnl_implementation_choose(implementations, IMPLEMENTATIONS, forced_name(params), device, &problem);
    if (chosen && chosen->append != rnl_qgemm_portable_append)
        *out_ints = rnl_qgemm_panel_scratch(&problem);
    return RNL_OK;
}

rnl_status rnl_op_qgemm(rnl_step_list *list, const rnl_qgemm_params *params, const rnl_view *a, const rnl_view *b,
                        const rnl_view *dst)
{
    rnl_qgemm_problem problem;
    TRY(rnl_qgemm_describe(list->device, params, a, b, dst, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    return rnl_implementation_append(implementations, IMPLEMENTATIONS, forced_name(params), list, &problem);
}
