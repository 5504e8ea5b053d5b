/* SPDX-License-Identifier: Apache-2.0 */
/* runnel info [MODEL] [--json] */
#include "info.h"
#include "options.h"
#include "progress.h"

#include <string.h>

rnl_exit rnl_cli_info(int argc, char **argv)
{
    const char *model = NULL;
    bool json = false;
    bool only_operands = false;
    char clean[RNL_CLI_NAME_BYTES];
    for (int i = 1; i < argc; i++) {
        bool option = !only_operands && argv[i][0] == '-' && argv[i][1];
        rnl_cli_clean(argv[i], clean, sizeof clean);
        if (option && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            fputs(rnl_cli_help("info"), stdout);
            return RNL_EXIT_DONE;
        }
        if (option && strcmp(argv[i], "--") == 0)
            only_operands = true;
        else if (option && strcmp(argv[i], "--json") == 0)
            json = true;
        else if (option)
            return rnl_cli_usage("info", "unknown option '%s'", clean);
        else if (model)
            return rnl_cli_usage("info", "one model at a time: '%s' is one too many", clean);
        else
            model = argv[i];
    }
    rnl_console_open(rnl_verbose_wanted());
    return model ? rnl_info_model(model, json) : rnl_info_devices(json);
}
