/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "ops/gemm_clblast.h"
#include "ops/tuning.h"
#include <clblast_c.h>

#define MOST_PARAMETERS 16

static const char *const xgemm_names[] = {"GEMMK", "KREG", "KWG", "KWI", "MDIMA", "MDIMC", "MWG", "NDIMB",
                                          "NDIMC", "NWG",  "SA",  "SB",  "STRM",  "STRN",  "VWM", "VWN"};
static const char *const direct_names[] = {"KWID", "MDIMAD", "MDIMCD", "NDIMBD", "NDIMCD",
                                           "PADA", "PADB",   "VWMD",   "VWND",   "WGD"};

/* Tiles of 64 to 128 squared by 64 to 256 work-items, through local memory and without. */
static const size_t xgemm_sets[][MOST_PARAMETERS] = {
    {0, 1, 16, 2, 16, 16, 128, 16, 16, 128, 1, 1, 0, 0, 4, 4},
    {0, 1, 32, 8, 16, 16, 128, 16, 16, 128, 1, 1, 0, 0, 4, 4},
    {0, 1, 32, 2, 16, 16, 64, 16, 16, 64, 1, 1, 0, 0, 4, 4},
    {0, 1, 32, 2, 8, 8, 64, 8, 8, 64, 1, 1, 0, 0, 4, 4},
    {0, 1, 16, 2, 16, 16, 128, 16, 8, 64, 1, 1, 0, 0, 4, 4},
    {0, 1, 32, 2, 8, 8, 64, 8, 8, 64, 0, 0, 0, 0, 4, 4},
};
static const size_t direct_sets[][MOST_PARAMETERS] = {
    {2, 8, 8, 8, 8, 1, 1, 4, 4, 32},   {2, 16, 16, 16, 16, 1, 1, 4, 4, 64}, {2, 8, 16, 8, 8, 1, 1, 2, 2, 32},
    {8, 16, 16, 8, 8, 1, 1, 1, 1, 32}, {2, 8, 8, 8, 8, 1, 1, 1, 1, 8},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *name;
    const char *const *parameters;
    size_t parameter_count;
    const size_t (*sets)[MOST_PARAMETERS];
    uint32_t set_count;
} kernels[RNL_CLBLAST_KERNELS] = {
    {"Xgemm", xgemm_names, COUNT(xgemm_names), xgemm_sets, COUNT(xgemm_sets)},
    {"XgemmDirect", direct_names, COUNT(direct_names), direct_sets, COUNT(direct_sets)},
};

uint32_t rnl_clblast_sets(rnl_clblast_kernel kernel)
{
    return kernels[kernel].set_count + 1;
}

static rnl_hash place_of(rnl_clblast_kernel kernel)
{
    const int64_t key[] = {'c', 'l', 'b', 'l', 'a', 's', 't', 1, kernel};
    return rnl_hash_bytes(key, sizeof key);
}

uint32_t rnl_clblast_noted(rnl_device *device, rnl_clblast_kernel kernel)
{
    const uint32_t set = rnl_tuning_get_noted(device, place_of(kernel), rnl_clblast_sets(kernel));
    return set == RNL_TUNING_NONE ? 0 : set;
}

rnl_status rnl_clblast_note(rnl_device *device, rnl_clblast_kernel kernel, uint32_t set)
{
    return rnl_tuning_set(device, place_of(kernel), set);
}

rnl_status rnl_clblast_override(rnl_device *device, const uint32_t sets[RNL_CLBLAST_KERNELS])
{
    for (int i = 0; i < RNL_CLBLAST_KERNELS; ++i) {
        const char *names[MOST_PARAMETERS];
        if (sets[i] == 0 || sets[i] > kernels[i].set_count)
            continue;
        for (size_t p = 0; p < kernels[i].parameter_count; ++p)
            names[p] = kernels[i].parameters[p];
        const CLBlastStatusCode code =
            CLBlastOverrideParameters(device->id, kernels[i].name, CLBlastPrecisionSingle, kernels[i].parameter_count,
                                      names, kernels[i].sets[sets[i] - 1]);
        if (code != CLBlastSuccess)
            return rnl_error_set(RNL_INTERNAL, code, "CLBlast does not take parameters for %s (%d)", kernels[i].name,
                                 code);
    }
    return RNL_OK;
}
