/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/instruction.h"
#include "base/log.h"
#include "base/memory.h"
#include "device/buffer.h"
#include "device/enumerate.h"
#include "ops/amx.h"
#include "ops/execute.h"
#include "ops/implementation.h"
#include "ops/step_build.h"
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define LANES 16

static const char *const names[] = {
#define X(name, define) #name,
    RNL_INSTRUCTION_LIST(X)
#undef X
};

static const char *const defines[] = {
#define X(name, define) define,
    RNL_INSTRUCTION_LIST(X)
#undef X
};

const char *rnl_instruction_define(rnl_instruction which)
{
    return defines[which];
}

bool rnl_instruction_has_8_lanes(rnl_instruction which)
{
    return which == RNL_INSTRUCTION_VNNI8 || which == RNL_INSTRUCTION_FOURS || which == RNL_INSTRUCTION_MADD8;
}

/* pocl compiles for the processor that it runs on. Others refuse assembly in kernels, some in writing to the terminal.
 */
static bool is_pocl(const rnl_device *device)
{
    return rnl_device_is_cpu(device) && strcmp(device->info.platform, "Portable Computing Language") == 0;
}

#if defined(__x86_64__)
/* Leaf 7, subleaf 1 of cpuid; not all compilers know it by name. */
static bool has_avx_vnni(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & 1u << 4);
}
#endif

static bool may_have(const rnl_device *device, rnl_instruction which)
{
    if (which == RNL_INSTRUCTION_FOURS)
        return rnl_device_is_cpu(device);
#if defined(__x86_64__)
    if (which == RNL_INSTRUCTION_VNNI8)
        return is_pocl(device) && device->vector_width == LANES / 2 && has_avx_vnni();
    if (which == RNL_INSTRUCTION_VNNI)
        return is_pocl(device) && device->vector_width == LANES && __builtin_cpu_supports("avx512vnni");
    if (which == RNL_INSTRUCTION_MADD8)
        return is_pocl(device) && device->vector_width == LANES / 2 && __builtin_cpu_supports("avx2");
    if (which == RNL_INSTRUCTION_MADD16)
        return is_pocl(device) && device->vector_width == LANES && __builtin_cpu_supports("avx512bw");
    if (which == RNL_INSTRUCTION_BF16)
        return is_pocl(device) && device->vector_width == LANES && __builtin_cpu_supports("avx512bf16");
    if (which == RNL_INSTRUCTION_AMX_BF16 || which == RNL_INSTRUCTION_AMX_INT8)
        return is_pocl(device) && device->vector_width == LANES && rnl_amx_request(which == RNL_INSTRUCTION_AMX_INT8);
#endif
    if (which == RNL_INSTRUCTION_DP4A)
        return device->info.type == RNL_DEVICE_GPU && strcmp(device->info.platform, "NVIDIA CUDA") == 0;
    return which == RNL_INSTRUCTION_DOT && rnl_device_has_extension(device, "cl_khr_integer_dot_product");
}

/* x, y, the addends and room for the sums, as in instruction.cl. */
typedef struct trial {
    uint32_t x[LANES], y[LANES], addend[LANES], sum[LANES];
} trial;
#define TILES_BYTES (3 * 1024) /* of AMX: two factors and sums */

/* Values whose products and sums leave 16 bits, and one sum that wraps. */
static void fill_bytes(trial *t, uint32_t expected[LANES])
{
    static const uint8_t x[8] = {255, 0, 1, 128, 127, 254, 255, 77};
    static const int8_t y[8] = {-128, 127, -1, 0, 126, -128, 127, -77};
    for (int lane = 0; lane < LANES; ++lane) {
        t->addend[lane] = lane == 5 ? INT32_MAX - 3 : (uint32_t)lane * 1000003u;
        expected[lane] = t->addend[lane];
        for (int i = 0; i < 4; ++i) {
            const uint8_t xi = lane < 3 ? 255 : x[(lane + 3 * i) % 8];
            const int8_t yi = lane == 0 || lane == 5 ? 127 : lane == 1 ? -128 : y[(5 * lane + i) % 8];
            t->x[lane] |= (uint32_t)xi << (8 * i);
            t->y[lane] |= (uint32_t)(uint8_t)yi << (8 * i);
            expected[lane] += (uint32_t)(xi * yi);
        }
    }
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Whole numbers and halves: products and sums are exact. */
static void fill_floats(trial *t, uint32_t expected[LANES])
{
    for (int lane = 0; lane < LANES; ++lane) {
        const float low = (float)(lane - 7), high = 1.5f, y_low = 0.5f, y_high = (float)(2 * lane + 1);
        const float addend = (float)(lane * 64);
        t->x[lane] = bits_of(low) >> 16 | bits_of(high);
        t->y[lane] = bits_of(y_low) >> 16 | bits_of(y_high);
        t->addend[lane] = bits_of(addend);
        expected[lane] = bits_of(low * y_low + high * y_high + addend);
    }
}

static rnl_status run(rnl_stream *stream, rnl_kernel_set *set, rnl_step_list *list, rnl_instruction which,
                      rnl_buffer *buffer, rnl_buffer *tiles, trial *t)
{
    static const size_t one[3] = {1, 1, 1};
    const rnl_slot_memory slots[2] = {{.memory = buffer->memory}, {.memory = tiles->memory}};
    rnl_step_builder step;
    rnl_step_begin(&step, list, "instruction", false);
    rnl_step_define(&step, "%s", defines[which]);
    rnl_step_slot(&step, 0);
    rnl_step_slot(&step, 1);
    rnl_step_range(&step, 1, one, one);
    rnl_step_writes(&step, 0);
    TRY(rnl_step_end(&step, "instruction.cl", "instruction"));
    TRY(rnl_stream_write(stream, buffer, 0, t, sizeof *t));
    TRY(rnl_step_enqueue(stream, set, list, 0, slots, 2));
    TRY(rnl_stream_read(stream, t, buffer, 0, sizeof *t));
    return rnl_stream_synchronize(stream);
}

static rnl_status try_now(rnl_device *device, rnl_instruction which, bool *out_right)
{
    rnl_status status = RNL_OK;
    rnl_stream *stream = NULL;
    rnl_kernel_set *set = NULL;
    rnl_buffer *buffer = NULL, *tiles = NULL;
    rnl_step_list list;
    trial t = {.sum = {0}};
    uint32_t expected[LANES];
    *out_right = false;
    if (which == RNL_INSTRUCTION_BF16 || which == RNL_INSTRUCTION_AMX_BF16)
        fill_floats(&t, expected);
    else
        fill_bytes(&t, expected);
    rnl_step_list_init(&list, device);
    GOTO(rnl_stream_create(device, &stream));
    GOTO(rnl_kernel_set_create(device, &set));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof t, &buffer));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_DEVICE, TILES_BYTES, &tiles));
    GOTO(run(stream, set, &list, which, buffer, tiles, &t));
    *out_right = memcmp(t.sum, expected, sizeof expected) == 0;
done:
    if (status != RNL_OK && stream && rnl_stream_synchronize(stream) != RNL_OK)
        rnl_log(RNL_LOG_DEBUG, "trying %s on %s left its stream failed", names[which], device->info.name);
    rnl_buffer_release(tiles);
    rnl_buffer_release(buffer);
    rnl_kernel_set_release(set);
    rnl_stream_release(stream);
    rnl_step_list_free(&list);
    return status;
}

bool rnl_instruction_try(rnl_device *device, rnl_instruction which)
{
    bool right = false;
    if (!may_have(device, which))
        return false;
    rnl_error before = *rnl_last_error();
    if (try_now(device, which, &right) != RNL_OK)
        rnl_log(RNL_LOG_INFO, "%s cannot be used on %s: %s", names[which], device->info.name,
                rnl_last_error()->message);
    else
        rnl_log(RNL_LOG_INFO, "%s %s on %s", names[which], right ? "works" : "gives wrong values", device->info.name);
    rnl_error_restore(&before);
    return right;
}

/* Two bits each: tried, and right. Two threads may both try: they find the same. */
bool rnl_device_runs(const rnl_device *device, rnl_instruction which)
{
    const char *wish = getenv("RUNNEL_INSTRUCTIONS");
    const uint32_t tried = 1u << (2 * which), right = 2u << (2 * which);
    rnl_device *found = (rnl_device *)(uintptr_t)device; /* what it remembers changes nothing that it is */
    const bool model = wish && strcmp(wish, "model") == 0;
    if ((wish && strcmp(wish, "off") == 0) || model != (which == RNL_INSTRUCTION_FOURS))
        return false;
    if (!(atomic_load(&found->instructions) & tried))
        atomic_fetch_or(&found->instructions, tried | (rnl_instruction_try(found, which) ? right : 0));
    return (atomic_load(&found->instructions) & right) != 0;
}

rnl_instruction rnl_device_multiplies_bytes(const rnl_device *device)
{
    static const rnl_instruction best_first[] = {RNL_INSTRUCTION_VNNI, RNL_INSTRUCTION_VNNI8, RNL_INSTRUCTION_FOURS,
                                                 RNL_INSTRUCTION_MADD16, RNL_INSTRUCTION_MADD8};
    for (size_t i = 0; i < sizeof best_first / sizeof *best_first; ++i)
        if (rnl_device_runs(device, best_first[i]))
            return best_first[i];
    return RNL_INSTRUCTION_COUNT;
}
