/* SPDX-License-Identifier: Apache-2.0 */
/* Options that need each other, or do not go together. */
#include "options.h"

#include <string.h>

static rnl_exit check_pipeline(const rnl_run_options *options)
{
    if (options->depth && !options->pipeline)
        return rnl_cli_usage(rnl_cli_command(), "--depth needs --pipeline");
    if (options->pipeline && (options->layers || options->streams || options->tune || options->report))
        return rnl_cli_usage(rnl_cli_command(), "--%s and --pipeline do not go together",
                             options->layers    ? "layers"
                             : options->streams ? "streams"
                             : options->tune    ? "tune"
                                                : "report");
    return RNL_EXIT_DONE;
}

rnl_exit rnl_run_options_check(const rnl_run_options *options)
{
    if (options->labels && !options->top)
        return rnl_cli_usage(rnl_cli_command(), "--labels needs --top");
    if (strcmp(rnl_cli_command(), "compare") == 0 && !options->against)
        return rnl_cli_usage(rnl_cli_command(), "--against is missing: cpu, reference or a device");
    if (strcmp(rnl_cli_command(), "quantize") == 0 && !options->calibrate)
        return rnl_cli_usage(rnl_cli_command(), "--calibrate is missing: a folder of inputs");
    if (options->percentile > 0 && options->ranges != 1)
        return rnl_cli_usage(rnl_cli_command(), "--percentile needs --ranges percentile");
    if (options->report && options->precision != RNL_PRECISION_BF16)
        return rnl_cli_usage(rnl_cli_command(), "--report needs --precision bf16");
    if (options->trace_every && !options->trace)
        return rnl_cli_usage(rnl_cli_command(), "--trace-every needs --trace");
    if (options->sort_by_time && !options->layers)
        return rnl_cli_usage(rnl_cli_command(), "--sort needs --layers");
    return check_pipeline(options);
}
