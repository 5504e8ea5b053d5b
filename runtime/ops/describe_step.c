/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/describe_step.h"

#include "kernel/describe.h"

static void add_slot(rnl_text *text, uint32_t index, uint32_t slot, const rnl_slot_memory *slots)
{
    size_t bytes = 0;
    if (slot == RNL_NO_SLOT) {
        rnl_text_add(text, "; %u: none", (unsigned)index);
        return;
    }
    /* The answer is for a message, which goes without it. */
    if (clGetMemObjectInfo(slots[slot].memory, CL_MEM_SIZE, sizeof bytes, &bytes, NULL) != CL_SUCCESS)
        bytes = 0;
    rnl_text_add(text, "; %u: slot %u at %zu of %zu bytes", (unsigned)index, (unsigned)slot, slots[slot].offset_bytes,
                 bytes);
}

/* Views' offsets are shown without their slots' places, which stand with the slots. */
static void add_args(rnl_text *text, const rnl_step_list *list, const rnl_step *step, const rnl_slot_memory *slots)
{
    for (uint32_t i = 0; i < step->arg_count; i++) {
        const rnl_step_arg *arg = &list->args[step->first_arg + i];
        if (arg->kind == RNL_STEP_SLOT)
            add_slot(text, i, arg->slot, slots);
        else
            rnl_describe_value(text, i, "", list->values + arg->value_at, arg->size_bytes);
    }
}

rnl_status rnl_step_describe(const rnl_watch *watch, const rnl_step_list *list, const rnl_step *step,
                             const rnl_range *range, const rnl_slot_memory *slots, rnl_status status)
{
    const rnl_error error = *rnl_last_error();
    rnl_text text = {0};
    rnl_describe_range(&text, range);
    add_args(&text, list, step, slots);
    rnl_watch_tell(watch, step->kernel, rnl_program_name(step->program), text.data);
    if (status != RNL_OK)
        status = rnl_error_add(rnl_error_restore(&error), "launching %s of %s, %s", step->kernel,
                               rnl_program_name(step->program), text.data ? text.data : "");
    rnl_text_free(&text);
    return rnl_stream_fail(watch->stream, status);
}
