/* SPDX-License-Identifier: Apache-2.0 */
/* The halves of `runnel info`. */
#ifndef RUNNEL_CLI_INFO_H
#define RUNNEL_CLI_INFO_H

#include "cli.h"
#include <jansson.h>

rnl_exit rnl_info_devices(bool json);
rnl_exit rnl_info_model(const char *path, bool json);

/* A JSON string of text that may hold broken UTF-8 (each bad byte becomes U+FFFD); "" for NULL. */
json_t *rnl_json_text(const char *text);
/* Prints and frees; `root` may be NULL (memory was short). */
rnl_exit rnl_json_print(json_t *root);

#endif
