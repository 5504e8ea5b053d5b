/* SPDX-License-Identifier: Apache-2.0 */
/* `--device gpu,cpu` and `--device all`: a model on several devices. */
#ifndef RUNNEL_CLI_SEVERAL_H
#define RUNNEL_CLI_SEVERAL_H

#include "options.h"

#include <runnel/multi.h>

typedef struct rnl_several {
    rnl_device *devices[RNL_MULTI_MAX_DEVICES];
    size_t count;
    rnl_multi *multi;
    bool is_split; /* batches of these inputs are */
} rnl_several;

/* The list that --device or RUNNEL_DEVICE gives; NULL when it names one device, or stages of a pipeline. */
const char *rnl_several_list(const rnl_run_options *options);
/* Says which options are for one device alone. */
rnl_exit rnl_several_check(const rnl_run_options *options);
/* Opens the devices and says on `out` which. --threads holds for each CPU device, --memory for each device. */
rnl_exit rnl_several_open_devices(const char *list, const rnl_run_options *options, rnl_several *out_several,
                                  FILE *out);
/* "NVIDIA H200 (0:0)" */
void rnl_several_name(const rnl_device *device, char *out_text, size_t capacity);
/* What each device has done, and its part of the last batch. */
void rnl_several_print(const rnl_several *several, FILE *out);
void rnl_several_free(rnl_several *several);

#endif
