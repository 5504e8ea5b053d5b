/* SPDX-License-Identifier: Apache-2.0 */
/* The `runnel` command: picks the subcommand, and prints its failure. */
#include "cli.h"
#include "subject.h"

#include <errno.h>
#include <string.h>

static rnl_exit dispatch(int argc, char **argv)
{
    if (argc < 2)
        return rnl_cli_usage("", "no command given");
    const char *command = argv[1];
    const rnl_subject *subject = argc > 2 ? rnl_subject_find(command, argv[2]) : NULL;
    if (subject)
        return rnl_subject_run(subject, argc - 2, argv + 2);
    if (strcmp(command, "info") == 0)
        return rnl_cli_info(argc - 1, argv + 1);
    if (strcmp(command, "run") == 0)
        return rnl_cli_run(argc - 1, argv + 1);
    if (strcmp(command, "bench") == 0)
        return rnl_cli_bench(argc - 1, argv + 1);
    if (strcmp(command, "compare") == 0)
        return rnl_cli_compare(argc - 1, argv + 1);
    if (strcmp(command, "quantize") == 0)
        return rnl_cli_quantize(argc - 1, argv + 1);
    if (strcmp(command, "tune") == 0)
        return rnl_cli_tune_model(argc - 1, argv + 1);
    bool help = strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0 || strcmp(command, "help") == 0;
    if (help || strcmp(command, "--version") == 0) {
        if (argc > 2)
            return rnl_cli_usage("", "%s takes no argument", command);
        if (help)
            fputs(rnl_cli_help(""), stdout);
        else
            puts("runnel " RNL_VERSION);
        return RNL_EXIT_DONE;
    }
    char clean[RNL_CLI_NAME_BYTES];
    return rnl_cli_usage("", "no command '%s'", rnl_cli_clean(command, clean, sizeof clean));
}

/* Root cause first; further lines indented. */
static void print_failure(void)
{
    const char *line = rnl_cli_failure();
    const char *prefix = "runnel: ";
    while (*line) {
        size_t length = strcspn(line, "\n");
        fprintf(stderr, "%s%.*s\n", prefix, (int)length, line);
        line += length + (line[length] == '\n');
        prefix = "  ";
    }
}

int main(int argc, char **argv)
{
    rnl_exit code = dispatch(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == RNL_EXIT_DONE)
        code = rnl_cli_fail("standard output: %s", strerror(errno));
    print_failure();
    return code;
}
