/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/instruction_rate.h"
#include "base/log.h"
#include "device/buffer.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/step_build.h"
#include "ops/timing.h"

#define RUNS 15
#define BF16_GAIN 1.25
#define FIP_GAIN 1.05
#define FLOAT_FIP_GAIN 1.2
#define BUFFER_BYTES 8192 /* a chunk of weights, as in rate.cl */

/* As rate.cl has them: what a round multiplies, and rounds of a run. */
static const struct {
    const char *name, *define;
    double products;
    int32_t rounds;
} rates[] = {
    [RNL_RATE_F32] = {"float32", NULL, 16 * 12, 20000},
    [RNL_RATE_BF16] = {"bfloat16", "BF16", 2 * 16 * 12, 20000},
    [RNL_RATE_INNER] = {"float32 with fewer products", "INNER", 2 * 16 * 12, 20000},
    [RNL_RATE_MADD] = {"bytes", "MADD=8", 24576, 200},
    [RNL_RATE_FIP] = {"bytes with fewer products", "MADD=8 -DFIP", 24576, 200},
};

static rnl_status append(rnl_step_list *list, rnl_rate rate)
{
    static const size_t one[3] = {1, 1, 1};
    rnl_step_builder step;
    rnl_step_begin(&step, list, "rate", false);
    if (rates[rate].define)
        rnl_step_define(&step, "%s", rates[rate].define);
    rnl_step_slot(&step, 0);
    rnl_step_float(&step, 0.5f);
    rnl_step_int(&step, rates[rate].rounds);
    rnl_step_range(&step, 1, one, one);
    rnl_step_writes(&step, 0);
    return rnl_step_end(&step, "rate.cl", "rate");
}

/* The shortest of several, in turns, after one each that compiles: the clock may change meanwhile. */
static rnl_status time_steps(const rnl_step_place *place, const rnl_step_list *list, uint64_t out_ns[2])
{
    for (size_t i = 0; i < 2; ++i)
        out_ns[i] = UINT64_MAX;
    for (int run = 0; run <= RUNS; ++run)
        for (size_t i = 0; i < 2; ++i) {
            rnl_step_timer timer;
            TRY(rnl_step_enqueue_timed(place, list, i, true, &timer));
            if (run > 0 && timer.ns < out_ns[i])
                out_ns[i] = timer.ns;
        }
    return RNL_OK;
}

rnl_status rnl_rate_measure(rnl_device *device, rnl_rate first, rnl_rate second, double out_rates[2])
{
    const rnl_rate measured[2] = {first, second};
    rnl_status status = RNL_OK;
    rnl_stream *stream = NULL;
    rnl_kernel_set *set = NULL;
    rnl_buffer *buffer = NULL;
    rnl_step_list list;
    uint64_t ns[2] = {0};
    rnl_step_list_init(&list, device);
    GOTO(append(&list, first));
    GOTO(append(&list, second));
    GOTO(rnl_stream_create(device, &stream));
    GOTO(rnl_kernel_set_create(device, &set));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BUFFER_BYTES, &buffer));
    const rnl_slot_memory slot = {.memory = buffer->memory};
    const rnl_step_place place = {.stream = stream, .set = set, .slots = &slot, .slot_count = 1};
    GOTO(time_steps(&place, &list, ns));
    for (size_t i = 0; i < 2; ++i)
        out_rates[i] =
            rates[measured[i]].products * rates[measured[i]].rounds / ((double)(ns[i] > 0 ? ns[i] : 1) * 1e-9);
done:
    rnl_buffer_release(buffer);
    rnl_kernel_set_release(set);
    rnl_stream_release(stream);
    rnl_step_list_free(&list);
    return status;
}

/* Where it cannot be measured, it is not used. */
static bool gains(rnl_device *device, rnl_rate better, rnl_rate plain, double gain)
{
    double rate[2] = {0};
    const rnl_error before = *rnl_last_error();
    if (rnl_rate_measure(device, better, plain, rate) != RNL_OK) {
        rnl_log(RNL_LOG_INFO, "%s: the rate on %s is not known: %s", rates[better].name, device->info.name,
                rnl_last_error()->message);
        rnl_error_restore(&before);
        return false;
    }
    rnl_log(RNL_LOG_INFO, "%s multiplies %s at %.2f times the rate of %s", device->info.name, rates[better].name,
            rate[0] / rate[1], rates[plain].name);
    return rate[0] > gain * rate[1];
}

/* Two threads may both measure. */
static bool remembered(rnl_device *device, atomic_uint *known, rnl_rate better, rnl_rate plain, double gain)
{
    enum { UNKNOWN, NO, YES };
    if (atomic_load(known) == UNKNOWN)
        atomic_store(known, gains(device, better, plain, gain) ? YES : NO);
    return atomic_load(known) == YES;
}

bool rnl_device_gains_by_bf16(rnl_device *device)
{
    if (rnl_device_runs(device, RNL_INSTRUCTION_AMX_BF16)) /* eight times the rate or more */
        return true;
    return rnl_device_runs(device, RNL_INSTRUCTION_BF16) &&
           remembered(device, &device->bf16_gain, RNL_RATE_BF16, RNL_RATE_F32, BF16_GAIN);
}

bool rnl_device_gains_by_fip(rnl_device *device)
{
    return rnl_device_runs(device, RNL_INSTRUCTION_MADD8) &&
           remembered(device, &device->fip_gain, RNL_RATE_FIP, RNL_RATE_MADD, FIP_GAIN);
}

bool rnl_device_gains_by_float_fip(const rnl_device *device)
{
    rnl_device *found = (rnl_device *)(uintptr_t)device; /* what it remembers changes nothing that it is */
    /* Assembly gains, not what compilers make of plain C. AMD's processors that have it have bfloat16, too. */
    return rnl_device_is_cpu(device) && device->vector_width == 16 && rnl_device_runs(device, RNL_INSTRUCTION_BF16) &&
           remembered(found, &found->float_fip_gain, RNL_RATE_INNER, RNL_RATE_F32, FLOAT_FIP_GAIN);
}
