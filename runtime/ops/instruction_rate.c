/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/instruction_rate.h"
#include "base/log.h"
#include "device/buffer.h"
#include "ops/instruction.h"
#include "ops/step_build.h"
#include "ops/timing.h"

#define LANES 16
#define SUMS 12 /* as in rate.cl */
#define ROUNDS 50000
#define RUNS 7
#define GAIN 1.25

static rnl_status append(rnl_step_list *list, const char *define)
{
    static const size_t one[3] = {1, 1, 1};
    rnl_step_builder step;
    rnl_step_begin(&step, list, "rate", false);
    if (define[0])
        rnl_step_define(&step, "%s", define);
    rnl_step_slot(&step, 0);
    rnl_step_float(&step, 0.5f);
    rnl_step_int(&step, ROUNDS);
    rnl_step_range(&step, 1, one, one);
    rnl_step_writes(&step, 0);
    return rnl_step_end(&step, "rate.cl", "rate");
}

/* The shortest of several, after one that compiles. */
static rnl_status time_step(const rnl_step_place *place, const rnl_step_list *list, uint64_t *out_ns)
{
    *out_ns = UINT64_MAX;
    for (int i = 0; i <= RUNS; i++) {
        rnl_step_timer timer;
        TRY(rnl_step_enqueue_timed(place, list, 0, true, &timer));
        if (i > 0 && timer.ns < *out_ns)
            *out_ns = timer.ns;
    }
    return RNL_OK;
}

rnl_status rnl_rate_measure(rnl_device *device, const char *define, double *out_rate)
{
    const double per_lane = define[0] ? 2 : 1;
    rnl_status status = RNL_OK;
    rnl_stream *stream = NULL;
    rnl_kernel_set *set = NULL;
    rnl_buffer *buffer = NULL;
    rnl_step_list list;
    uint64_t ns = 0;
    rnl_step_list_init(&list, device);
    GOTO(append(&list, define));
    GOTO(rnl_stream_create(device, &stream));
    GOTO(rnl_kernel_set_create(device, &set));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_DEVICE, LANES * sizeof(float), &buffer));
    const rnl_slot_memory slot = {.memory = buffer->memory};
    const rnl_step_place place = {.stream = stream, .set = set, .slots = &slot, .slot_count = 1};
    GOTO(time_step(&place, &list, &ns));
    *out_rate = per_lane * LANES * SUMS * (double)ROUNDS / ((double)(ns > 0 ? ns : 1) * 1e-9);
done:
    rnl_buffer_release(buffer);
    rnl_kernel_set_release(set);
    rnl_stream_release(stream);
    rnl_step_list_free(&list);
    return status;
}

/* Where it cannot be measured, it is not used. */
static bool gains(rnl_device *device)
{
    double pairs = 0, floats = 0;
    const rnl_error before = *rnl_last_error();
    const rnl_status status = rnl_rate_measure(device, "BF16", &pairs);
    if (status != RNL_OK || rnl_rate_measure(device, "", &floats) != RNL_OK) {
        rnl_log(RNL_LOG_INFO, "bfloat16's rate on %s is not known: %s", device->info.name, rnl_last_error()->message);
        rnl_error_restore(&before);
        return false;
    }
    rnl_log(RNL_LOG_INFO, "%s multiplies bfloat16 at %.2f times the rate of float32", device->info.name,
            pairs / floats);
    return pairs > GAIN * floats;
}

bool rnl_device_gains_by_bf16(rnl_device *device)
{
    enum { UNKNOWN, NO, YES };
    if (rnl_device_runs(device, RNL_INSTRUCTION_AMX_BF16)) /* eight times the rate or more */
        return true;
    if (!rnl_device_runs(device, RNL_INSTRUCTION_BF16))
        return false;
    if (atomic_load(&device->bf16_gain) == UNKNOWN)
        atomic_store(&device->bf16_gain, gains(device) ? YES : NO);
    return atomic_load(&device->bf16_gain) == YES;
}
