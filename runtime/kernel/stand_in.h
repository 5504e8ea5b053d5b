/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pocl's cache folder holds what a kernel was compiled for as PROGRAM/KERNEL/1-1-1-smallgrid/KERNEL.so. Asked for a
 * binary, pocl wants each kernel for any local size too, in 0-0-0, and compiles those that are not there, though no
 * launch takes them where a compiler is at hand. That would be all of a program once more.
 */
#ifndef RUNNEL_KERNEL_STAND_IN_H
#define RUNNEL_KERNEL_STAND_IN_H

#include "device/device.h"

/*
 * Before a program of ours is asked for its binary: each of its kernels that this process has launched in groups of one
 * work-item, as CPUs get them, stands in for the one of any size, under a second name. Elsewhere than with pocl, or
 * with a pocl that names its files otherwise, nothing happens.
 */
void rnl_stand_in(cl_program program);

#endif
