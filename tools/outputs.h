/* SPDX-License-Identifier: Apache-2.0 */
/* What `runnel run` says about outputs, and the files it writes. */
#ifndef RUNNEL_CLI_OUTPUTS_H
#define RUNNEL_CLI_OUTPUTS_H

#include "cli.h"

/* "y: float32 [1,1000] min 0.1 max 0.9 mean 0.4"; numbers that are NaN are counted and left out of the rest. */
void rnl_outputs_print(const rnl_tensor *output, FILE *out);

/* One name a line; free with rnl_labels_free. */
typedef struct rnl_labels {
    char **names;
    size_t count;
} rnl_labels;
rnl_exit rnl_labels_read(const char *path, rnl_labels *out_labels);
void rnl_labels_free(rnl_labels *labels);
/* The `k` largest values of each sample (the first dimension, where there are two or more). */
rnl_exit rnl_outputs_print_top(const rnl_tensor *output, uint64_t k, const rnl_labels *labels, FILE *out);

/* Before a long run: can DIR be used, and do all outputs have file names of their own? Creates nothing. */
rnl_exit rnl_outputs_check_folder(const char *folder, const rnl_value_info *infos, size_t count);
/* Writes all files of `folder` or none. Creates the folder if need be, but not its parents. */
rnl_exit rnl_outputs_save(const char *folder, const rnl_tensor *outputs, size_t count);

#endif
