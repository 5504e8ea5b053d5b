/* SPDX-License-Identifier: Apache-2.0 */
/* runnel info [MODEL] [--device SPEC] [--shape ...] [--json] */
#include "info.h"
#include "options.h"
#include "progress.h"

#include <string.h>

static bool is(const char *argument, const char *name)
{
    return strcmp(argument, name) == 0;
}

/* Takes --json out of the arguments, which stay ended by NULL. What stands behind "--" or an option is its value. */
static bool take_json(int *argc, char **argv)
{
    bool found = false;
    int kept = 1;
    for (int i = 1; i < *argc; i++) {
        const bool value =
            i > 1 && (is(argv[i - 1], "--device") || is(argv[i - 1], "--shape") || is(argv[i - 1], "--threads") ||
                      is(argv[i - 1], "--memory") || is(argv[i - 1], "--"));
        if (is(argv[i], "--json") && !value)
            found = true;
        else
            argv[kept++] = argv[i];
    }
    *argc = kept;
    argv[kept] = NULL;
    return found;
}

rnl_exit rnl_cli_info(int argc, char **argv)
{
    rnl_job job = {0};
    const bool json = take_json(&argc, argv);
    rnl_exit code = rnl_run_options_parse(argc, argv, &job.options);
    if (code == RNL_EXIT_DONE && job.options.help) {
        fputs(rnl_cli_help("info"), stdout);
    } else if (code == RNL_EXIT_DONE) {
        rnl_console_open(rnl_verbose_wanted());
        const bool on_device = job.options.device || job.options.shape_count;
        code = job.options.model ? rnl_info_model(&job, on_device, json) : rnl_info_devices(json);
    }
    rnl_console_clear();
    rnl_job_free(&job);
    return code;
}
