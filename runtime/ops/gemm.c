/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm.h"
#include "base/status.h"
#include "ops/gemm_bf16.h"
#include "ops/gemm_choice.h"
#include "ops/gemm_matrix.h"
#include "ops/gemm_pack.h"
#include "ops/gemm_strassen.h"
#include "ops/gemm_wgmma.h"
#include "ops/implementation.h"
#include <stdlib.h>
#include <string.h>

static bool reads_any_layout(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    (void)device;
    return !problem->packed;
}

/* The form of a packed factor: in pairs where gemm:bf16 reads it, else in floats. */
static bool find_form(const rnl_device *device, const rnl_view *b, rnl_gemm_panels *out_panels)
{
    return rnl_gemm_bf16_panels_of(device, b, out_panels) || rnl_gemm_panels_of(device, b, out_panels);
}

static bool reads_floats(const rnl_device *device, const void *data)
{
    const rnl_gemm_problem *problem = data;
    rnl_gemm_panels pairs;
    return !(problem->packed && rnl_gemm_bf16_panels_of(device, problem->b, &pairs)) &&
           rnl_gemm_panel_applies(device, data);
}

static const rnl_implementation implementations[] = {
    {"gemm:wgmma", rnl_gemm_wgmma_applies, rnl_gemm_wgmma_pays, rnl_gemm_wgmma_append},
    {"gemm:matrix", rnl_gemm_matrix_applies, rnl_gemm_matrix_pays, rnl_gemm_matrix_append},
    {"gemm:clblast", rnl_gemm_clblast_applies, rnl_gemm_clblast_pays, rnl_gemm_clblast_append},
    {"gemm:tiled", rnl_gemm_tiled_applies, rnl_gemm_tiled_pays, rnl_gemm_tiled_append},
    {"gemm:bf16", rnl_gemm_bf16_applies, rnl_gemm_bf16_pays, rnl_gemm_bf16_append},
    {"gemm:strassen", rnl_gemm_strassen_applies, rnl_gemm_strassen_pays, rnl_gemm_strassen_append},
    {"gemm:row", rnl_gemm_row_applies, rnl_gemm_row_pays, rnl_gemm_row_append},
    {"gemm:panel", reads_floats, rnl_gemm_panel_pays, rnl_gemm_panel_append},
    {"gemm:portable", reads_any_layout, NULL, rnl_gemm_portable_append},
};
#define IMPLEMENTATIONS (sizeof implementations / sizeof *implementations)

static rnl_status take_sums(const rnl_device *device, const rnl_gemm_params *params, const rnl_view *b,
                            rnl_gemm_problem *problem)
{
    rnl_strassen_form form;
    if (!rnl_view_exists(params->packed_sums) || !rnl_strassen_form_of(device, b, &form))
        return RNL_OK;
    if (params->packed_sums->dtype != RNL_F32 || rnl_view_elements(params->packed_sums) < form.floats)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "the sums of a matrix product's second factor are %lld elements of %s; they have to be %lld of f32",
                    (long long)rnl_view_elements(params->packed_sums), rnl_dtype_name(params->packed_sums->dtype),
                    (long long)form.floats);
    problem->sums = params->packed_sums;
    return RNL_OK;
}

/* The problem, whose second factor is as it lies in packed_b where there is one: `b_view` is that then. */
static rnl_status describe(const rnl_device *device, const rnl_gemm_params *params, const rnl_view *a,
                           const rnl_view *b, const rnl_view *c, const rnl_view *dst, rnl_view *b_view,
                           rnl_gemm_problem *out_problem)
{
    rnl_gemm_panels panels;
    TRY(rnl_gemm_describe(params, a, b, c, dst, out_problem));
    if (!rnl_view_exists(params->packed_b) || rnl_view_elements(b) == 0)
        return RNL_OK;
    if (!find_form(device, b, &panels))
        return FAIL(RNL_INVALID_ARGUMENT, "a matrix product's second factor of %s has no packed form",
                    rnl_dtype_name(b->dtype));
    if (params->packed_b->dtype != RNL_F32 || rnl_view_elements(params->packed_b) < panels.floats)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "a matrix product's packed second factor is %lld elements of %s; it has to be %lld of f32",
                    (long long)rnl_view_elements(params->packed_b), rnl_dtype_name(params->packed_b->dtype),
                    (long long)panels.floats);
    *b_view = rnl_gemm_packed_view(&panels, b, params->packed_b);
    TRY(rnl_gemm_describe(params, a, b_view, c, dst, out_problem));
    out_problem->packed = true;
    return take_sums(device, params, b, out_problem);
}

rnl_status rnl_gemm_scratch(rnl_device *device, const rnl_gemm_params *params, const rnl_view *a, const rnl_view *b,
                            const rnl_view *c, const rnl_view *dst, int64_t *out_floats)
{
    static const rnl_view plenty = {.dtype = RNL_F32, .rank = 1, .shape = {INT64_MAX}, .stride = {1}};
    rnl_gemm_problem problem;
    rnl_view b_view;
    *out_floats = 0;
    TRY(describe(device, params, a, b, c, dst, &b_view, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    rnl_matrix_find(device);
    problem.scratch = &plenty;
    const rnl_implementation *chosen = rnl_gemm_choose(implementations, IMPLEMENTATIONS, params, device, &problem);
    if (chosen && chosen->append == rnl_gemm_bf16_append)
        *out_floats = rnl_gemm_bf16_scratch(device, &problem);
    if (chosen && chosen->append == rnl_gemm_strassen_append)
        *out_floats = rnl_gemm_strassen_scratch(device, &problem);
    if (chosen && chosen->append == rnl_gemm_panel_append)
        *out_floats = rnl_gemm_panel_scratch(device, &problem);
    if (chosen && chosen->append == rnl_gemm_wgmma_append)
        *out_floats = rnl_gemm_wgmma_scratch(device, device->matrix_instruction, &problem);
    if (chosen && chosen->append == rnl_gemm_tiled_append)
        *out_floats = rnl_gemm_tiled_scratch(device, &problem);
    return RNL_OK;
}

rnl_status rnl_op_gemm(rnl_step_list *list, const rnl_gemm_params *params, const rnl_view *a, const rnl_view *b,
                       const rnl_view *c, const rnl_view *dst)
{
    rnl_gemm_problem problem;
    rnl_view b_view;
    TRY(describe(list->device, params, a, b, c, dst, &b_view, &problem));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    rnl_matrix_find(list->device);
    const rnl_implementation *it = rnl_gemm_choose(implementations, IMPLEMENTATIONS, params, list->device, &problem);
    if (!it)
        return FAIL(RNL_UNIMPLEMENTED, "no implementation of a matrix product applies");
    return it->append(list, it->name, &problem);
}

size_t rnl_gemm_names(const char **out_names, size_t capacity)
{
    for (size_t i = 0; i < IMPLEMENTATIONS && i < capacity; ++i)
        out_names[i] = strchr(implementations[i].name, ':') + 1;
    return IMPLEMENTATIONS;
}

rnl_status rnl_gemm_place(rnl_device *device, const rnl_gemm_params *params, const rnl_view *a, const rnl_view *b,
                          const rnl_view *c, const rnl_view *dst, rnl_hash *out_place)
{
    rnl_gemm_problem problem;
    rnl_view b_view;
    *out_place = (rnl_hash){0, 0};
    TRY(describe(device, params, a, b, c, dst, &b_view, &problem));
    *out_place = rnl_gemm_problem_hash(&problem);
    return RNL_OK;
}

/* ---- packing ahead ---------------------------------------------------------------------------------------------- */

static bool panels_pay(const rnl_device *device, const rnl_view *b)
{
    const char *forced = getenv("RUNNEL_GEMM");
    if (forced && *forced)
        return strcmp(forced, "panel") == 0;
    return rnl_device_is_cpu(device) && b->shape[b->rank - 1] >= 4;
}

rnl_status rnl_gemm_packed(const rnl_device *device, const rnl_view *b, int64_t *out_floats)
{
    rnl_gemm_panels panels;
    bool index64;
    *out_floats = 0;
    TRY(rnl_views_check(&b, 1, &index64), "checking a matrix to be packed");
    if (rnl_gemm_bf16_panels_of(device, b, &panels) ||
        (rnl_gemm_panels_of(device, b, &panels) && panels_pay(device, b)))
        *out_floats = panels.floats;
    return RNL_OK;
}

rnl_status rnl_op_gemm_pack(rnl_step_list *list, const rnl_view *b, const rnl_view *packed)
{
    rnl_gemm_panels panels;
    bool index64;
    TRY(rnl_views_check((const rnl_view *const[]){b, packed}, 2, &index64), "checking a matrix to be packed");
    if (!find_form(list->device, b, &panels))
        return FAIL(RNL_INVALID_ARGUMENT, "a tensor of %s and rank %zu has no packed form", rnl_dtype_name(b->dtype),
                    b->rank);
    if (packed->dtype != RNL_F32 || rnl_view_elements(packed) < panels.floats)
        return FAIL(RNL_INVALID_ARGUMENT, "packing a matrix into %lld elements of %s; it takes %lld of f32",
                    (long long)rnl_view_elements(packed), rnl_dtype_name(packed->dtype), (long long)panels.floats);
    if (rnl_gemm_bf16_panels_of(list->device, b, &panels))
        return rnl_gemm_bf16_append_pack(list, &panels, b, packed);
    return rnl_gemm_append_pack(list, &panels, b, packed);
}

rnl_status rnl_gemm_packed_sums(const rnl_device *device, const rnl_view *b, int64_t *out_floats)
{
    rnl_strassen_form form;
    bool index64;
    *out_floats = 0;
    TRY(rnl_views_check(&b, 1, &index64), "checking a matrix to be packed");
    if (rnl_strassen_form_of(device, b, &form))
        *out_floats = form.floats;
    return RNL_OK;
}

rnl_status rnl_op_gemm_pack_sums(rnl_step_list *list, const rnl_view *b, const rnl_view *packed)
{
    rnl_strassen_form form;
    if (!rnl_strassen_form_of(list->device, b, &form) || packed->dtype != RNL_F32 ||
        rnl_view_elements(packed) < form.floats)
        return FAIL(RNL_INVALID_ARGUMENT, "a matrix of %s, rank %zu, has no sums of %lld elements of %s",
                    rnl_dtype_name(b->dtype), b->rank, (long long)rnl_view_elements(packed),
                    rnl_dtype_name(packed->dtype));
    return rnl_strassen_append_pack(list, &form, b, packed);
}
