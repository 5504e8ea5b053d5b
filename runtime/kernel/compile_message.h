/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process that compiles is told, and answers (compilers.h): a message is its length in bytes, uint64_t, and then
 * one program: texts, numbers, kernels. Both ends are of one build on one machine. The answer is one byte; behind
 * RNL_COMPILE_DONE are a number and as many bytes: of each kernel that got a counter and told where it is its name and
 * the path of its library, both with their NUL.
 *
 *     text platform, text device, number bytes of the largest buffer, text source, text options, number kernels, and
 *     for each: text name, number dimensions, first, 3 x local, 3 x groups, number arguments, and for each of these:
 *     number kind, and where it is a value, text bytes
 *
 * A number is a uint64_t; a text its length and its bytes.
 */
#ifndef RUNNEL_KERNEL_COMPILE_MESSAGE_H
#define RUNNEL_KERNEL_COMPILE_MESSAGE_H

#include <stdint.h>

#define RNL_COMPILE_MESSAGE_MOST ((uint64_t)64 << 20)
#define RNL_COMPILE_ARGS_MOST 256u
#define RNL_COMPILE_TOLD_MOST ((uint64_t)64 << 10)
#define RNL_COMPILE_DONE 'd'
#define RNL_COMPILE_FAILED 'f'

typedef enum rnl_compile_arg {
    RNL_COMPILE_VALUE,
    RNL_COMPILE_NOTHING, /* no buffer */
    RNL_COMPILE_READ,    /* a buffer of zeros */
    RNL_COMPILE_WRITTEN, /* another; a kernel that keeps places in one must not find results there */
    RNL_COMPILE_WRITTEN_2,
    RNL_COMPILE_WRITTEN_3,
    RNL_COMPILE_COUNTER /* of a team (clkernels/team.clh) */
} rnl_compile_arg;

#endif
