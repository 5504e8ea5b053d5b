/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the caller's that have kernels. */
#include "model/lower_list.h"

#include "base/memory.h"
#include "graph/custom.h"
#include "kernel/kernel.h"
#include "ops/step_build.h"
#include <string.h>

#define GROUP_ITEMS 64 /* of a work-group whose size the caller leaves open */

struct rnl_custom_plan {
    rnl_lowering *lowering;
    const rnl_custom_entry *entry;
    rnl_view *inputs, *outputs; /* dense, row-major; behind the node's inputs one that is not there */
    rnl_view *targets;          /* where outputs belong that are not dense there; else RNL_NO_SLOT */
    bool *is_written;           /* one an output: some launch has it */
    rnl_view *scratch;
    size_t scratch_count, scratch_capacity;
    rnl_status status; /* the first failure */
};

/* ---- Checks --------------------------------------------------------------------------------------------------- */

static bool leaves_group_open(const rnl_range *range)
{
    for (uint32_t i = 0; i < range->dimensions; i++)
        if (range->local[i] != 0)
            return false;
    return true;
}

static rnl_status check_range(const rnl_range *range)
{
    size_t items = 1;
    if (range->dimensions < 1 || range->dimensions > 3)
        return FAIL(RNL_INVALID_ARGUMENT, "a range has 1 to 3 dimensions, not %u", range->dimensions);
    const bool is_open = leaves_group_open(range);
    for (uint32_t i = 0; i < range->dimensions; i++) {
        if (!is_open && (range->local[i] == 0 || !rnl_size_mul(items, range->local[i], &items)))
            return FAIL(RNL_INVALID_ARGUMENT, "a work-group cannot have %zu work-items in dimension %u",
                        range->local[i], i);
        if (range->global[i] > SIZE_MAX - range->local[i])
            return FAIL(RNL_INVALID_ARGUMENT, "there cannot be %zu work-items in dimension %u", range->global[i], i);
    }
    return RNL_OK;
}

static bool may_be_left_out(const rnl_custom_plan *plan, size_t input)
{
    const uint32_t most = plan->entry->op.max_inputs;
    return most != UINT32_MAX && input < most;
}

/* NULL: a value. */
static rnl_status find_tensor(const rnl_custom_plan *plan, const rnl_custom_arg *arg, size_t number,
                              const rnl_view **out_view)
{
    const rnl_op_context *context = &plan->lowering->context;
    *out_view = NULL;
    switch (arg->kind) {
    case RNL_CUSTOM_ARG_INPUT:
        if (arg->index >= context->input_count && !may_be_left_out(plan, arg->index))
            return FAIL(RNL_INVALID_ARGUMENT, "argument %zu is input %zu, and the node has %zu", number, arg->index,
                        context->input_count);
        *out_view = &plan->inputs[arg->index < context->input_count ? arg->index : context->input_count];
        return RNL_OK;
    case RNL_CUSTOM_ARG_OUTPUT:
        if (arg->index >= context->output_count)
            return FAIL(RNL_INVALID_ARGUMENT, "argument %zu is output %zu, and the node has %zu", number, arg->index,
                        context->output_count);
        *out_view = &plan->outputs[arg->index];
        return RNL_OK;
    case RNL_CUSTOM_ARG_SCRATCH:
        if (arg->index >= plan->scratch_count)
            return FAIL(RNL_INVALID_ARGUMENT, "argument %zu is scratch memory %zu, and there are %zu", number,
                        arg->index, plan->scratch_count);
        *out_view = &plan->scratch[arg->index];
        return RNL_OK;
    case RNL_CUSTOM_ARG_VALUE:
        if (!arg->value || arg->size_bytes == 0 || arg->size_bytes > RNL_STEP_VALUE_BYTES)
            return FAIL(RNL_INVALID_ARGUMENT, "argument %zu is a value of %zu bytes: 1 to %d are possible", number,
                        arg->value ? arg->size_bytes : 0, RNL_STEP_VALUE_BYTES);
        return RNL_OK;
    }
    return FAIL(RNL_INVALID_ARGUMENT, "argument %zu is of the unknown kind %d", number, (int)arg->kind);
}

/* Against what the kernel takes, as far as the driver tells. */
static rnl_status check_value(const rnl_kernel *kernel, uint32_t at, const void *value, size_t size_bytes)
{
    const rnl_arg arg = {.kind = RNL_ARG_VALUE, .value = value, .size_bytes = size_bytes};
    return rnl_kernel_check_arg(kernel, at, &arg);
}

static rnl_status check_tensor(const rnl_kernel *kernel, uint32_t at)
{
    static const int64_t place = 0;
    rnl_kernel_info info;
    rnl_kernel_arg_info arg;
    TRY(rnl_kernel_get_info(kernel, &info));
    if (!info.has_arg_info)
        return RNL_OK;
    TRY(rnl_kernel_get_arg(kernel, at, &arg));
    if (arg.space != RNL_SPACE_GLOBAL && arg.space != RNL_SPACE_CONSTANT)
        return FAIL(RNL_INVALID_ARGUMENT, "argument %u, '%s', is no pointer to global memory, and a tensor is given",
                    at, arg.name);
    return check_value(kernel, at + 1, &place, sizeof place);
}

/* As the kernel wants its groups, else along the first dimension. */
static rnl_status choose_group(const rnl_kernel *kernel, rnl_range *range)
{
    rnl_kernel_info info;
    TRY(rnl_kernel_get_info(kernel, &info));
    for (uint32_t i = 0; i < range->dimensions; i++)
        range->local[i] = info.required_group[0] ? info.required_group[i] : 1;
    if (!info.required_group[0])
        range->local[0] = info.max_group_items < GROUP_ITEMS ? info.max_group_items : GROUP_ITEMS;
    return check_range(range);
}

static rnl_status check_kernel(const rnl_custom_plan *plan, const rnl_kernel *kernel, const rnl_custom_launch *launch)
{
    rnl_kernel_info info;
    uint32_t count = 0;
    size_t group = 1;
    TRY(rnl_kernel_get_info(kernel, &info));
    for (size_t i = 0; i < launch->arg_count; i++)
        count += launch->args[i].kind == RNL_CUSTOM_ARG_VALUE ? 1 : 2;
    if (count != info.arg_count)
        return FAIL(RNL_INVALID_ARGUMENT, "it takes %u arguments, and %u are given: two for each tensor",
                    info.arg_count, count);
    for (uint32_t i = 0; i < 3; i++) {
        const size_t local = i < launch->range.dimensions ? launch->range.local[i] : 1;
        group *= local;
        if (info.required_group[0] && local != info.required_group[i])
            return FAIL(RNL_INVALID_ARGUMENT,
                        "it requires %zu work-items of a group in dimension %u, and %zu are given",
                        info.required_group[i], i, local);
    }
    if (group > info.max_group_items)
        return FAIL(RNL_INVALID_ARGUMENT, "it allows work-groups of at most %zu work-items on %s, not of %zu",
                    info.max_group_items, rnl_custom_device(plan)->name, group);
    for (uint32_t i = 0, at = 0; i < launch->arg_count; i++) {
        const rnl_custom_arg *arg = &launch->args[i];
        const bool is_value = arg->kind == RNL_CUSTOM_ARG_VALUE;
        TRY(is_value ? check_value(kernel, at, arg->value, arg->size_bytes) : check_tensor(kernel, at));
        at += is_value ? 1 : 2;
    }
    return RNL_OK;
}

/* ---- Launches ------------------------------------------------------------------------------------------------- */

static rnl_status add_step(rnl_custom_plan *plan, rnl_program *program, const rnl_custom_launch *launch)
{
    rnl_step_builder step;
    const char *name;
    TRY(rnl_registry_keep(plan->entry->registry, launch->kernel, &name));
    rnl_step_begin(&step, plan->lowering->list, plan->entry->implementation, true);
    step.step.flops = launch->flops;
    for (size_t i = 0; i < launch->arg_count; i++) {
        const rnl_custom_arg *arg = &launch->args[i];
        const rnl_view *view = NULL;
        if (step.status == RNL_OK)
            step.status = find_tensor(plan, arg, i, &view);
        if (view)
            rnl_step_view(&step, view);
        else
            rnl_step_value(&step, arg->value, arg->size_bytes);
        if (view && view->slot != RNL_NO_SLOT)
            step.step.bytes += (uint64_t)rnl_view_elements(view) * rnl_dtype_bytes(view->dtype);
        if (view && arg->kind != RNL_CUSTOM_ARG_INPUT)
            rnl_step_writes(&step, view->slot);
    }
    if (launch->bytes)
        step.step.bytes = launch->bytes;
    rnl_step_range(&step, launch->range.dimensions, launch->range.global, launch->range.local);
    return rnl_step_end_program(&step, program, name);
}

static rnl_status build(const rnl_custom_plan *plan, const rnl_custom_launch *launch, rnl_kernel **out_kernel)
{
    rnl_device *device = plan->lowering->list->device;
    return launch->path ? rnl_kernel_load(device, launch->path, launch->kernel, launch->options, out_kernel)
                        : rnl_kernel_create_with(device, launch->source, launch->kernel, launch->options, out_kernel);
}

static rnl_status check_launch(const rnl_custom_plan *plan, const rnl_custom_launch *launch)
{
    const rnl_view *view;
    if (!launch->source == !launch->path || !launch->kernel)
        return FAIL(RNL_INVALID_ARGUMENT, "a launch needs a kernel's name and its source or its path");
    if (launch->arg_count > 0 && !launch->args)
        return FAIL(RNL_INVALID_ARGUMENT, "a launch counts arguments that are not there");
    TRY(check_range(&launch->range));
    for (size_t i = 0; i < launch->arg_count; i++)
        TRY(find_tensor(plan, &launch->args[i], i, &view));
    return RNL_OK;
}

static bool is_empty(const rnl_range *range)
{
    for (uint32_t i = 0; i < range->dimensions; i++)
        if (range->global[i] == 0)
            return true;
    return false;
}

static rnl_status add_launch(rnl_custom_plan *plan, const rnl_custom_launch *given)
{
    rnl_custom_launch launch = RNL_CUSTOM_LAUNCH_INIT;
    rnl_kernel *kernel;
    if (!given || given->struct_size < sizeof given->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "the launch was not initialised with RNL_CUSTOM_LAUNCH_INIT");
    memcpy(&launch, given, given->struct_size < sizeof launch ? given->struct_size : sizeof launch);
    TRY(check_launch(plan, &launch));
    for (size_t i = 0; i < launch.arg_count; i++)
        if (launch.args[i].kind == RNL_CUSTOM_ARG_OUTPUT)
            plan->is_written[launch.args[i].index] = true;
    TRY(build(plan, &launch, &kernel), "the kernel '%s'", launch.kernel);
    rnl_status status = leaves_group_open(&launch.range) ? choose_group(kernel, &launch.range) : RNL_OK;
    if (status == RNL_OK)
        status = check_kernel(plan, kernel, &launch);
    if (status != RNL_OK)
        status = rnl_error_add(status, "the kernel '%s'", launch.kernel);
    else if (!is_empty(&launch.range))
        status = add_step(plan, kernel->program, &launch);
    rnl_kernel_release(kernel);
    return status;
}

static rnl_status keep_status(rnl_custom_plan *plan, rnl_status status)
{
    if (plan->status == RNL_OK)
        plan->status = status;
    return rnl_custom_reason(status);
}

rnl_status rnl_custom_add_launch(rnl_custom_plan *plan, const rnl_custom_launch *launch)
{
    return plan->status != RNL_OK ? plan->status : keep_status(plan, add_launch(plan, launch));
}

static rnl_status add_scratch(rnl_custom_plan *plan, size_t size_bytes, size_t *out_index)
{
    const int64_t size = (int64_t)size_bytes;
    if (size_bytes > PTRDIFF_MAX)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%zu bytes of scratch memory are too many", size_bytes);
    TRY(rnl_grow(&plan->scratch, &plan->scratch_capacity, plan->scratch_count + 1, sizeof *plan->scratch));
    TRY(rnl_lower_scratch(plan->lowering, RNL_U8, 1, &size, RNL_LAYOUT_ROW_MAJOR, &plan->scratch[plan->scratch_count]));
    *out_index = plan->scratch_count++;
    return RNL_OK;
}

rnl_status rnl_custom_scratch(rnl_custom_plan *plan, size_t size_bytes, size_t *out_index)
{
    *out_index = 0;
    return plan->status != RNL_OK ? plan->status : keep_status(plan, add_scratch(plan, size_bytes, out_index));
}

const rnl_device_info *rnl_custom_device(const rnl_custom_plan *plan)
{
    return rnl_device_get_info(plan->lowering->list->device);
}

/* ---- The node ------------------------------------------------------------------------------------------------- */

/* An output that is a part of a larger value, with gaps, is made elsewhere and copied. */
static rnl_status place_output(rnl_custom_plan *plan, size_t index)
{
    rnl_view *output = &plan->outputs[index];
    plan->targets[index].slot = RNL_NO_SLOT;
    TRY(rnl_lower_output(plan->lowering, index, RNL_LAYOUT_ROW_MAJOR, output));
    if (rnl_view_is_row_major(output))
        return RNL_OK;
    plan->targets[index] = *output;
    return rnl_lower_scratch(plan->lowering, output->dtype, output->rank, plan->targets[index].shape,
                             RNL_LAYOUT_ROW_MAJOR, output);
}

static rnl_status place(rnl_custom_plan *plan, bool *out_empty)
{
    const rnl_op_context *context = &plan->lowering->context;
    rnl_zone *zone = plan->lowering->planner->zone;
    *out_empty = true;
    TRY(rnl_zone_alloc(zone, context->input_count + 1, sizeof *plan->inputs, &plan->inputs));
    TRY(rnl_zone_alloc(zone, context->output_count, sizeof *plan->outputs, &plan->outputs));
    TRY(rnl_zone_alloc(zone, context->output_count, sizeof *plan->targets, &plan->targets));
    TRY(rnl_zone_alloc(zone, context->output_count, sizeof *plan->is_written, &plan->is_written));
    for (size_t i = 0; i < context->input_count; i++)
        TRY(rnl_lower_input(plan->lowering, i, RNL_LAYOUT_ROW_MAJOR, &plan->inputs[i]));
    plan->inputs[context->input_count].slot = RNL_NO_SLOT;
    for (size_t i = 0; i < context->output_count; i++) {
        TRY(place_output(plan, i));
        *out_empty = *out_empty && rnl_view_elements(&plan->outputs[i]) == 0;
    }
    return RNL_OK;
}

static rnl_status call_plan(rnl_custom_plan *plan)
{
    const rnl_op_context *context = &plan->lowering->context;
    const rnl_custom_call call = rnl_custom_describe(context);
    rnl_custom_frame frame;
    rnl_custom_enter(&frame, context, "plan");
    const rnl_status status = plan->entry->op.plan(&call, context->outputs, plan);
    TRY(rnl_custom_leave(&frame, plan->status != RNL_OK ? plan->status : status));
    for (size_t i = 0; i < context->output_count; i++)
        if (!plan->is_written[i] && rnl_view_elements(&plan->outputs[i]) > 0)
            return FAIL(RNL_INVALID_ARGUMENT, "the plan callback of operator %s added no launch that has output %zu",
                        plan->entry->name, i);
    return RNL_OK;
}

rnl_status rnl_lower_custom(rnl_lowering *lowering)
{
    rnl_custom_plan plan = {.lowering = lowering, .entry = lowering->context.node->schema->custom};
    bool is_empty;
    TRY(place(&plan, &is_empty));
    rnl_status status = is_empty ? RNL_OK : call_plan(&plan);
    rnl_free(plan.scratch);
    for (size_t i = 0; i < lowering->context.output_count && status == RNL_OK && !is_empty; i++)
        if (rnl_view_exists(&plan.targets[i]))
            status = rnl_lower_copy(lowering, &plan.outputs[i], &plan.targets[i]);
    return status;
}
