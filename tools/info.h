/* SPDX-License-Identifier: Apache-2.0 */
/* The halves of `runnel info`. */
#ifndef RUNNEL_CLI_INFO_H
#define RUNNEL_CLI_INFO_H

#include "job.h"
#include <jansson.h>

rnl_exit rnl_info_devices(bool json);
/* `job` holds the model's options. `on_device`: also what runs each operator there. */
rnl_exit rnl_info_model(rnl_job *job, bool on_device, bool json);

#define RNL_MAX_USES 24
/* So many steps of an implementation do an operator, by themselves or within another operator's step. */
typedef struct rnl_operator_use {
    const char *implementation;
    bool within;
    size_t steps;
} rnl_operator_use;
typedef struct rnl_operator_uses {
    rnl_operator_use rows[RNL_MAX_USES];
    size_t count;
} rnl_operator_uses;
void rnl_info_find_uses(const rnl_step_profile *steps, size_t count, const char *op_type, rnl_operator_uses *out_uses);
void rnl_info_print_uses(const rnl_operator_uses *uses);
json_t *rnl_info_uses_json(const rnl_operator_uses *uses);

/* A JSON string of text that may hold broken UTF-8 (each bad byte becomes U+FFFD); "" for NULL. */
json_t *rnl_json_text(const char *text);
/* Prints and frees; `root` may be NULL (memory was short). */
rnl_exit rnl_json_print(json_t *root);

#endif
