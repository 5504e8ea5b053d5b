/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/execute.h"
#include "base/memory.h"
#include "device/trace.h"
#include "kernel/team.h"
#include "ops/describe_step.h"
#include "ops/gemm.h"
#include <string.h>

#define MOSTLY 8u /* all but one in so many */

/* What an argument was set to last, for those that are passed by value. */
typedef struct set_value {
    uint32_t size_bytes; /* 0: not known */
    uint8_t bytes[RNL_STEP_VALUE_BYTES];
} set_value;

typedef struct set_entry {
    rnl_team_kernel team;          /* its object is NULL: not made yet, nor what is behind */
    size_t max_group, fixed_group; /* work-items; fixed by the kernel's source, else 0 */
    size_t static_local;           /* bytes, asked before any argument is set */
    size_t checked_local[3];
    set_value *values; /* one an argument */
    uint32_t value_count;
} set_entry;

struct rnl_kernel_set {
    rnl_device *device;
    set_entry *entries;
    size_t count, capacity;
};

rnl_status rnl_kernel_set_create(rnl_device *device, rnl_kernel_set **out_set)
{
    *out_set = NULL;
    rnl_kernel_set *set = NULL;
    TRY(rnl_alloc(1, sizeof *set, &set));
    set->device = rnl_device_retain(device);
    *out_set = set;
    return RNL_OK;
}

void rnl_kernel_set_release(rnl_kernel_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->count; ++i) {
        if (set->entries[i].team.object)
            clReleaseKernel(set->entries[i].team.object);
        rnl_free(set->entries[i].values);
    }
    rnl_free(set->entries);
    rnl_device_release(set->device);
    rnl_free(set);
}

static bool may_be_called(const rnl_device *device, const rnl_step *step)
{
    return step->kind == RNL_STEP_KERNEL && step->may_be_cut && step->waits && rnl_team_collects(device, &step->range);
}

static rnl_call_function find_function(rnl_device *device, const rnl_step *step)
{
    return may_be_called(device, step) ? rnl_team_get_function(device, step->program, step->kernel) : NULL;
}

/* Or will have, once there is a team. */
static bool has_function(rnl_device *device, const rnl_step *step)
{
    return step->may_be_cut && step->waits && rnl_team_may_collect(device, &step->range) &&
           rnl_team_has_function(device, step->program, step->kernel);
}

bool rnl_steps_need(const rnl_step_list *list, const rnl_program *program)
{
    for (size_t i = 0; i < list->step_count; ++i)
        if (list->steps[i].kind == RNL_STEP_KERNEL && list->steps[i].program == program &&
            !has_function(list->device, &list->steps[i]))
            return true;
    return false;
}

bool rnl_steps_are_collected(const rnl_step_list *list)
{
    size_t collected = 0;
    for (size_t i = 0; i < list->step_count; ++i)
        collected += may_be_called(list->device, &list->steps[i]);
    return collected * MOSTLY >= list->step_count * (MOSTLY - 1);
}

static rnl_status add_entry(rnl_kernel_set *set, const rnl_step *step, set_entry **out_entry)
{
    TRY(rnl_grow(&set->entries, &set->capacity, set->count + 1, sizeof *set->entries));
    set_entry *entry = &set->entries[set->count++];
    *entry = (set_entry){.value_count = step->arg_count};
    entry->team = (rnl_team_kernel){.program = step->program,
                                    .waits = step->waits,
                                    .first_arg = step->arg_count,
                                    .name = step->kernel,
                                    .function = find_function(set->device, step)};
    entry->team.is_known = entry->team.function != NULL;
    *out_entry = entry;
    return RNL_OK;
}

/* The driver's object, which a launch that the team calls does without. */
static rnl_status make_object(const rnl_kernel_set *set, set_entry *entry)
{
    rnl_status status = RNL_OK;
    cl_kernel kernel = NULL;
    if (entry->team.object)
        return RNL_OK;
    TRY(rnl_program_create_kernel(entry->team.program, entry->team.name, &kernel));
    GOTO(rnl_kernel_max_group(set->device, kernel, &entry->max_group));
    GOTO(rnl_kernel_fixed_group(set->device, kernel, &entry->fixed_group));
    GOTO(rnl_kernel_static_local(set->device, kernel, &entry->static_local));
    GOTO(rnl_alloc(entry->value_count, sizeof *entry->values, &entry->values));
    entry->team.has_local = entry->static_local > 0;
    entry->team.object = kernel;
done:
    if (status)
        clReleaseKernel(kernel);
    return status;
}

static rnl_status find_entry(rnl_kernel_set *set, const rnl_step *step, set_entry **out_entry)
{
    for (size_t i = 0; i < set->count; ++i) {
        set_entry *entry = &set->entries[i];
        if (entry->team.program == step->program &&
            (entry->team.name == step->kernel || !strcmp(entry->team.name, step->kernel))) {
            *out_entry = entry;
            return RNL_OK;
        }
    }
    return add_entry(set, step, out_entry);
}

/* Most arguments are what they were at the last launch, and setting one costs as much as a tenth of a launch. */
static rnl_status set_value_arg(set_entry *entry, cl_uint index, size_t size_bytes, const void *bytes)
{
    set_value *value = index < entry->value_count ? &entry->values[index] : NULL;
    const bool fits = value && size_bytes <= RNL_STEP_VALUE_BYTES;
    if (fits && value->size_bytes == size_bytes && memcmp(value->bytes, bytes, size_bytes) == 0)
        return RNL_OK;
    if (value)
        value->size_bytes = 0;
    TRY(CL(clSetKernelArg(entry->team.object, index, size_bytes, bytes)));
    if (fits) {
        memcpy(value->bytes, bytes, size_bytes);
        value->size_bytes = (uint32_t)size_bytes;
    }
    return RNL_OK;
}

/* Adds a slot's place in its buffer, in elements, to one of the kernel's indices. */
static rnl_status move_index(uint8_t *index, uint32_t index_bytes, int64_t place)
{
    int64_t wide = 0;
    int32_t narrow = 0;
    if (index_bytes == sizeof wide) {
        memcpy(&wide, index, sizeof wide);
        wide += place;
        memcpy(index, &wide, sizeof wide);
        return RNL_OK;
    }
    memcpy(&narrow, index, sizeof narrow);
    if (place + narrow > INT32_MAX)
        return FAIL(RNL_INTERNAL, "a step with 32-bit indices lies %lld elements into its buffer", (long long)place);
    narrow += (int32_t)place;
    memcpy(index, &narrow, sizeof narrow);
    return RNL_OK;
}

static rnl_status find_offsets(const rnl_step_list *list, const rnl_step_arg *arg, const rnl_slot_memory *slots,
                               size_t slot_count, uint8_t bytes[RNL_STEP_VALUE_BYTES])
{
    memcpy(bytes, list->values + arg->value_at, arg->size_bytes);
    for (uint32_t i = 0; i < arg->offset_count; ++i) {
        const uint32_t slot = arg->offset_slots[i];
        if (slot == RNL_NO_SLOT)
            continue;
        if (slot >= slot_count)
            return FAIL(RNL_INTERNAL, "a step names slot %u of %zu", slot, slot_count);
        TRY(move_index(bytes + i * arg->index_bytes, arg->index_bytes,
                       (int64_t)(slots[slot].offset_bytes / arg->offset_element_bytes[i])));
    }
    return RNL_OK;
}

/* What an argument is in this run; bytes: room for offsets. */
static rnl_status find_arg(const rnl_step_list *list, const rnl_step_arg *arg, const rnl_slot_memory *slots,
                           size_t slot_count, uint8_t bytes[RNL_STEP_VALUE_BYTES], rnl_team_arg *out_arg)
{
    *out_arg = (rnl_team_arg){.value = list->values + arg->value_at, .bytes = arg->size_bytes};
    switch (arg->kind) {
    case RNL_STEP_SLOT:
        if (arg->slot != RNL_NO_SLOT && arg->slot >= slot_count)
            return FAIL(RNL_INTERNAL, "a step names slot %u of %zu", arg->slot, slot_count);
        *out_arg =
            (rnl_team_arg){.is_memory = true, .memory = arg->slot == RNL_NO_SLOT ? NULL : slots[arg->slot].memory};
        break;
    case RNL_STEP_OFFSET:
        TRY(find_offsets(list, arg, slots, slot_count, bytes));
        out_arg->value = bytes;
        break;
    case RNL_STEP_VALUE:
        break;
    }
    return RNL_OK;
}

/* Memory is always set: a handle may name another buffer by now. */
static rnl_status set_args(set_entry *entry, const rnl_step_list *list, const rnl_step *step,
                           const rnl_slot_memory *slots, size_t slot_count)
{
    for (uint32_t i = 0; i < step->arg_count; ++i) {
        uint8_t bytes[RNL_STEP_VALUE_BYTES];
        rnl_team_arg arg;
        rnl_status status = find_arg(list, &list->args[step->first_arg + i], slots, slot_count, bytes, &arg);
        if (status == RNL_OK)
            status = arg.is_memory ? CL(clSetKernelArg(entry->team.object, i, sizeof arg.memory, &arg.memory))
                                   : set_value_arg(entry, i, arg.bytes, arg.value);
        TRY(status, "argument %u of %s in %s", i, step->kernel, rnl_program_name(step->program));
    }
    return RNL_OK;
}

/* Without the driver's arguments. */
static rnl_status call_kernel(rnl_stream *stream, set_entry *entry, const rnl_step_list *list, const rnl_step *step,
                              const rnl_range *range, const rnl_slot_memory *slots, size_t slot_count, bool *out_taken)
{
    uint8_t bytes[RNL_TEAM_MOST_ARGS][RNL_STEP_VALUE_BYTES];
    rnl_team_arg args[RNL_TEAM_MOST_ARGS];
    *out_taken = false;
    if (step->arg_count > RNL_TEAM_MOST_ARGS)
        return RNL_OK;
    for (uint32_t i = 0; i < step->arg_count; ++i)
        TRY(find_arg(list, &list->args[step->first_arg + i], slots, slot_count, bytes[i], &args[i]));
    return rnl_team_call(stream, &entry->team, range, args, step->arg_count, out_taken);
}

/* The step's range with a local size that the kernel allows, rounded up to whole groups. */
static rnl_range fit_range(const rnl_device *device, const rnl_range *wish, const set_entry *entry)
{
    rnl_range range = *wish;
    const size_t most = entry->max_group < device->info.max_work_group_size ? entry->max_group
                                                                            : (size_t)device->info.max_work_group_size;
    while (!entry->fixed_group && range.local[0] * range.local[1] * range.local[2] > most) {
        size_t largest = 0;
        for (size_t i = 1; i < 3; ++i)
            if (range.local[i] > range.local[largest])
                largest = i;
        if (range.local[largest] <= 1)
            break;
        range.local[largest] /= 2;
    }
    for (uint32_t i = 0; i < range.dimensions; ++i)
        range.global[i] = (range.global[i] + range.local[i] - 1) / range.local[i] * range.local[i];
    return range;
}

static rnl_status check_once(rnl_device *device, set_entry *entry, const rnl_range *range)
{
    if (!memcmp(range->local, entry->checked_local, sizeof range->local))
        return RNL_OK;
    TRY(rnl_kernel_check(device, entry->team.object, range, entry->static_local, 0), "launching %s of %s",
        entry->team.name, rnl_program_name(entry->team.program));
    memcpy(entry->checked_local, range->local, sizeof range->local);
    return RNL_OK;
}

static rnl_status enqueue_kernel(rnl_stream *stream, rnl_kernel_set *set, const rnl_step_list *list,
                                 const rnl_step *step, const rnl_slot_memory *slots, size_t slot_count)
{
    set_entry *entry = NULL;
    TRY(find_entry(set, step, &entry));
    bool is_taken = false;
    if (step->may_be_cut && rnl_team_may_call(stream, &entry->team, &step->range))
        TRY(call_kernel(stream, entry, list, step, &step->range, slots, slot_count, &is_taken));
    if (is_taken)
        return RNL_OK;
    TRY(make_object(set, entry));
    const rnl_range range = fit_range(set->device, &step->range, entry);
    TRY(set_args(entry, list, step, slots, slot_count));
    TRY(check_once(set->device, entry, &range));
    rnl_stream_call_kernel(stream, step->kernel);
    if (step->may_be_cut)
        TRY(rnl_team_launch(stream, &entry->team, &range, &is_taken));
    if (is_taken)
        return RNL_OK;
    TRY(rnl_team_leave_out(&entry->team));
    rnl_team_note_whole(&entry->team, &range);
    rnl_watch watch;
    rnl_watch_begin(&watch, stream);
    const rnl_status status =
        rnl_watch_end(&watch, rnl_kernel_enqueue(stream, entry->team.object, &range,
                                                 step->may_be_cut ? rnl_team_offset(set->device, &range) : 0));
    if (status == RNL_OK && !watch.is_on)
        return RNL_OK;
    return rnl_step_describe(&watch, list, step, &range, slots, status);
}

static rnl_status enqueue_clblast(rnl_stream *stream, const rnl_clblast_gemm *gemm, const rnl_slot_memory *slots,
                                  size_t slot_count)
{
    if (gemm->a_slot >= slot_count || gemm->b_slot >= slot_count || gemm->c_slot >= slot_count)
        return FAIL(RNL_INTERNAL, "a matrix product names a slot beyond %zu", slot_count);
    const rnl_slot_memory *a = &slots[gemm->a_slot], *b = &slots[gemm->b_slot], *c = &slots[gemm->c_slot];
    const size_t bytes = rnl_dtype_bytes(gemm->dtype);
    rnl_clblast_gemm placed = *gemm;
    placed.a_offset += a->offset_bytes / bytes;
    placed.b_offset += b->offset_bytes / bytes;
    placed.c_offset += c->offset_bytes / bytes;
    TRY(rnl_stream_check(stream));
    rnl_stream_call_kernel(stream, "CLBlast");
    rnl_watch watch;
    rnl_watch_begin(&watch, stream);
    rnl_status status = rnl_watch_end(&watch, rnl_clblast_run(stream, &placed, a->memory, b->memory, c->memory));
    rnl_watch_tell(&watch, "clblast", "", "");
    return rnl_stream_fail(stream, status);
}

rnl_status rnl_step_enqueue(rnl_stream *stream, rnl_kernel_set *set, const rnl_step_list *list, size_t step_index,
                            const rnl_slot_memory *slots, size_t slot_count)
{
    const rnl_step *step = &list->steps[step_index];
    TRY(rnl_stream_check_only(stream));
    switch (step->kind) {
    case RNL_STEP_CLBLAST_GEMM:
        return enqueue_clblast(stream, &list->gemms[step->gemm_at], slots, slot_count);
    case RNL_STEP_KERNEL:
        break;
    }
    return enqueue_kernel(stream, set, list, step, slots, slot_count);
}

rnl_status rnl_slot_read(rnl_stream *stream, const rnl_slot_memory *slot, size_t offset_bytes, size_t size_bytes,
                         void *out_bytes)
{
    TRY(rnl_stream_check(stream));
    return rnl_stream_fail(
        stream, CL(clEnqueueReadBuffer(stream->queue, slot->memory, CL_TRUE, slot->offset_bytes + offset_bytes,
                                       size_bytes, out_bytes, 0, NULL, NULL)));
}
