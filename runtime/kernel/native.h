/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of one processor alone, in kernels of ours. NVIDIA's compiler of OpenCL C translates for a family
 * ("sm_90") and gives its assembler's text (PTX) as the program's binary; what only that processor has ("sm_90a":
 * wgmma) neither takes then. A kernel writes such instructions as comments, `//@ instruction`, which the compiler
 * passes on in their place, with registers filled in; once they are instructions in the text, the driver takes it back.
 */
#ifndef RUNNEL_KERNEL_NATIVE_H
#define RUNNEL_KERNEL_NATIVE_H

#include "base/text.h"
#include "device/device.h"

#define RNL_NATIVE_MARK "//@ "

/* Whether a source has such instructions, and the device may have them. */
bool rnl_native_is_asked(const rnl_device *device, const char *source);
/*
 * PTX of `size` bytes for the processor itself. RNL_UNIMPLEMENTED when it is no PTX for a family of processors that
 * has such instructions.
 */
RNL_NODISCARD rnl_status rnl_native_translate(const char *ptx, size_t size, rnl_text *out_ptx);

#endif
