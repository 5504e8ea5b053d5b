/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that OpenCL C has no name for on every device. Whether a device's kernels may use one is found by
 * running it there: a driver's name, an extension or the processor's flags only say where that is worth trying.
 */
#ifndef RUNNEL_OPS_INSTRUCTION_H
#define RUNNEL_OPS_INSTRUCTION_H

#include "device/device.h"

/* X(name, the define of clkernels/instruction.cl) */
/* clang-format off */
#define RNL_INSTRUCTION_LIST(X) \
    X(VNNI, "VNNI")             /* vpdpbusd and vpdpwssd on 16 lanes */ \
    X(VNNI8, "MADD=8 -DFOURS")  /* and on 8, of AVX-VNNI */ \
    X(FOURS, "MADD=8 -DFOURS -DMODEL") /* the same in plain C, for tests */ \
    X(MADD8, "MADD=8")          /* vpmaddwd on 8 lanes */ \
    X(MADD16, "MADD=16")        /* and on 16 */ \
    X(BF16, "BF16")             /* vdpbf16ps on 16 lanes */ \
    X(AMX_BF16, "AMX_BF16")     /* tdpbf16ps: tiles of 16 by 16 sums */ \
    X(AMX_INT8, "AMX_INT8")     /* tdpbusd, and tdpbssd, which comes with it */ \
    X(DP4A, "DP4A")             /* of NVIDIA's GPUs */ \
    X(DOT, "DOT -cl-std=CL3.0") /* cl_khr_integer_dot_product */
/* clang-format on */
typedef enum rnl_instruction {
#define X(name, define) RNL_INSTRUCTION_##name,
    RNL_INSTRUCTION_LIST(X)
#undef X
        RNL_INSTRUCTION_COUNT
} rnl_instruction;

/*
 * Tried at the first call for a device, which remembers it. Always false with RUNNEL_INSTRUCTIONS=off in the
 * environment, and with =model but for those in plain C. Any thread.
 */
RNL_API bool rnl_device_runs(const rnl_device *device, rnl_instruction which);
/* The best of those that multiply bytes in vectors of a CPU; RNL_INSTRUCTION_COUNT where it has none. */
rnl_instruction rnl_device_multiplies_bytes(const rnl_device *device);
/* It multiplies bytes on 8 lanes, as clkernels/madd.clh does: 16 numbers are two registers, of which there are 16. */
bool rnl_instruction_has_8_lanes(rnl_instruction which);
/* What its kernels are compiled with: "VNNI". */
const char *rnl_instruction_define(rnl_instruction which);
/* Tries it now, on devices where that is worthwhile: it compiles, runs and gives the values that it should. */
bool rnl_instruction_try(rnl_device *device, rnl_instruction which);

#endif
