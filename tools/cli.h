/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands share: exit codes, the one failure message, and names made safe for a terminal. */
#ifndef RUNNEL_CLI_H
#define RUNNEL_CLI_H

#include <runnel/runnel.h>
#include <stdio.h>

/* The process's exit code. A function that returns one has recorded a failure unless it is RNL_EXIT_DONE. */
typedef enum rnl_exit { RNL_EXIT_DONE, RNL_EXIT_FAILED, RNL_EXIT_USAGE } rnl_exit;

/* Each records the message that main() prints at the end; the first failure stays. `command` is "run", "bench", "info"
 * or "". */
rnl_exit rnl_cli_fail(const char *format, ...) RNL_PRINTF(1, 2);
rnl_exit rnl_cli_usage(const char *command, const char *format, ...) RNL_PRINTF(2, 3);
/* The library's last error; the format adds a last line to it, unless it is empty. */
rnl_exit rnl_cli_fail_library(const char *format, ...) RNL_PRINTF(1, 2);
/* "" when nothing failed; lines separated by '\n', the later ones indented. */
const char *rnl_cli_failure(void);
void rnl_cli_failure_clear(void);

/* Copies `name` with control characters and broken UTF-8 replaced by '?'; shortened to `capacity` - 1 bytes with "…".
 */
const char *rnl_cli_clean(const char *name, char *out_text, size_t capacity);
#define RNL_CLI_NAME_BYTES 256
/* Bytes of the well-formed UTF-8 character at `start`, 0 when it is not one. */
size_t rnl_cli_character_bytes(const char *start);

rnl_exit rnl_cli_info(int argc, char **argv);
rnl_exit rnl_cli_run(int argc, char **argv);
rnl_exit rnl_cli_bench(int argc, char **argv);
rnl_exit rnl_cli_compare(int argc, char **argv);
rnl_exit rnl_cli_quantize(int argc, char **argv);
rnl_exit rnl_cli_tune_model(int argc, char **argv);
/* Full help text of "run", "bench", "info" or "" (the command itself). */
const char *rnl_cli_help(const char *command);

#endif
