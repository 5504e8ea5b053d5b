/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tell.h"

#include "base/text.h"
#include "base/verbose.h"
#include "device/watch.h"

static void add_shapes(rnl_text *text, const rnl_planner *planner, const uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] == RNL_NO_VALUE)
            continue;
        const rnl_tensor_desc *desc = &planner->values[values[i]].desc;
        rnl_text_add(text, " ");
        rnl_text_add_shape(text, desc->shape, desc->rank);
    }
}

/* "Conv 'c1' + Relu: 1x3x8x8 4x3x3x3 -> 1x4x8x8": the shapes are those of the first node. */
static void add_node(rnl_text *text, const rnl_planner *planner, const rnl_step_label *label)
{
    if (label->node == RNL_NO_NODE) {
        rnl_text_add(text, "edge");
        return;
    }
    const rnl_node *node = &planner->graph->nodes[label->node];
    rnl_text_add(text, "%s '%s'%s:", node->op_type, node->name, label->also);
    add_shapes(text, planner, node->inputs, node->input_count);
    rnl_text_add(text, " ->");
    add_shapes(text, planner, node->outputs, node->output_count);
}

void rnl_plan_tell(const rnl_planner *planner)
{
    char place[RNL_PLACE_BYTES];
    const rnl_plan *plan = planner->plan;
    if (!rnl_verbose_is_on(RNL_VERBOSE_DISPATCH))
        return;
    rnl_place_text(planner->model->device, place);
    for (size_t i = 0; i < plan->steps.step_count; i++) {
        const rnl_step *step = &plan->steps.steps[i];
        rnl_text text = {0};
        add_node(&text, planner, &plan->step_labels[i]);
        rnl_verbose_write(&(rnl_verbose_event){RNL_VERBOSE_DISPATCH, place, step->implementation,
                                               step->program ? rnl_program_name(step->program) : "", text.data, -1});
        rnl_text_free(&text);
    }
}
