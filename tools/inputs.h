/* SPDX-License-Identifier: Apache-2.0 */
/* From "-i NAME=SOURCE" and the model's inputs to tensors. */
#ifndef RUNNEL_CLI_INPUTS_H
#define RUNNEL_CLI_INPUTS_H

#include "options.h"

typedef struct rnl_input_set {
    const rnl_value_info *infos; /* the model's; borrowed */
    const char **sources;        /* one each; NULL: not given */
    const rnl_shape_option **shapes;
    rnl_tensor *tensors;
    size_t count;
} rnl_input_set;

/* Matches the options with the model's inputs. Free with rnl_inputs_free whatever it returned. */
rnl_exit rnl_inputs_bind(const rnl_graph *graph, const rnl_run_options *options, rnl_input_set *out_set);
/* Reads or makes every tensor. */
rnl_exit rnl_inputs_load(rnl_input_set *set, const rnl_run_options *options);
/* One line for each input that was not given. */
void rnl_inputs_print(const rnl_input_set *set, FILE *out);
void rnl_inputs_free(rnl_input_set *set);

#endif
