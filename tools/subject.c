/* SPDX-License-Identifier: Apache-2.0 */
#include "subject.h"
#include "device.h"
#include "options.h"
#include "parse.h"
#include "progress.h"

#include <string.h>

/* NULL ends each command's list. */
static const rnl_subject *const subjects[] = {
    &rnl_subject_bench_launch,  &rnl_subject_tune_launch, &rnl_subject_bench_gemm,
    &rnl_subject_tune_gemm,     &rnl_subject_bench_copy,  &rnl_subject_tune_copy,
    &rnl_subject_bench_streams, &rnl_subject_bench_pool,  NULL,
};

enum { LONG_DEVICE = 256, LONG_JSON, LONG_THREADS, LONG_MEMORY, LONG_REPEAT, LONG_SECONDS, LONG_VERBOSE };
#define MOST_OPTIONS 32

static const struct option common[] = {
    {"device", required_argument, NULL, LONG_DEVICE},   {"json", required_argument, NULL, LONG_JSON},
    {"threads", required_argument, NULL, LONG_THREADS}, {"memory", required_argument, NULL, LONG_MEMORY},
    {"repeat", required_argument, NULL, LONG_REPEAT},   {"seconds", required_argument, NULL, LONG_SECONDS},
    {"verbose", no_argument, NULL, LONG_VERBOSE},       {"help", no_argument, NULL, 'h'},
};
#define COMMON (sizeof common / sizeof *common)

static const char common_help[] = "      --device SPEC          which device, as for `runnel run`\n"
                                  "      --threads N            use N of a CPU device's threads\n"
                                  "      --memory F             take at most this part of the device's memory\n"
                                  "      --repeat N             the median of N samples (default 7)\n"
                                  "      --seconds S            the samples of one figure together take at least S "
                                  "seconds (default 0.3)\n"
                                  "      --json FILE            write all figures to FILE\n"
                                  "      --verbose              say on stderr what is compiled\n"
                                  "      --help                 print this\n";

const rnl_subject *rnl_subject_find(const char *command, const char *name)
{
    for (const rnl_subject *const *it = subjects; *it; it++)
        if (strcmp((*it)->command, command) == 0 && strcmp((*it)->name, name) == 0)
            return *it;
    return NULL;
}

void rnl_subject_print_list(const char *command, FILE *out)
{
    for (const rnl_subject *const *it = subjects; *it; it++)
        if (strcmp((*it)->command, command) == 0)
            fprintf(out, "       runnel %s %-10s %s\n", command, (*it)->name, (*it)->summary);
}

static rnl_exit take_count(const rnl_subject *subject, const char *option, const char *value, uint64_t *out_count)
{
    char clean[RNL_CLI_NAME_BYTES];
    if (rnl_parse_whole(value, 65536, out_count) && *out_count > 0)
        return RNL_EXIT_DONE;
    return rnl_cli_usage(subject->command, "--%s %s: not a whole number from 1 to 65536", option,
                         rnl_cli_clean(value, clean, sizeof clean));
}

static rnl_exit take(const rnl_subject *subject, int code, const char *value, rnl_subject_options *options)
{
    char clean[RNL_CLI_NAME_BYTES];
    switch (code) {
    case LONG_DEVICE:
        options->device = value;
        return RNL_EXIT_DONE;
    case LONG_JSON:
        options->json = value;
        return RNL_EXIT_DONE;
    case LONG_THREADS:
        return take_count(subject, "threads", value, &options->threads);
    case LONG_MEMORY:
        if (rnl_parse_seconds(value, 1, &options->memory) && options->memory > 0)
            return RNL_EXIT_DONE;
        return rnl_cli_usage(subject->command, "--memory %s: not a number above 0 and up to 1",
                             rnl_cli_clean(value, clean, sizeof clean));
    case LONG_REPEAT:
        return take_count(subject, "repeat", value, &options->repeat);
    case LONG_SECONDS:
        if (rnl_parse_seconds(value, 3600, &options->seconds))
            return RNL_EXIT_DONE;
        return rnl_cli_usage(subject->command, "--seconds %s: not a number from 0 to 3600",
                             rnl_cli_clean(value, clean, sizeof clean));
    case LONG_VERBOSE:
        options->verbose = true;
        return RNL_EXIT_DONE;
    case 'h':
        options->help = true;
        return RNL_EXIT_DONE;
    default:
        return subject->take(code, value);
    }
}

static rnl_exit take_operands(const rnl_subject *subject, int argc, char **argv)
{
    char clean[RNL_CLI_NAME_BYTES];
    rnl_exit code = RNL_EXIT_DONE;
    if (optind < argc && !subject->take)
        return rnl_cli_usage(subject->command, "%s: '%s' is one argument too many", subject->name,
                             rnl_cli_clean(argv[optind], clean, sizeof clean));
    for (; code == RNL_EXIT_DONE && optind < argc; optind++)
        code = subject->take(0, argv[optind]);
    return code;
}

/* getopt's two complaints: ':' a value is missing, '?' no such option, or a value where none is taken. */
static rnl_exit complain(const rnl_subject *subject, int code, char **argv)
{
    char clean[RNL_CLI_NAME_BYTES];
    rnl_cli_clean(argv[optind - 1], clean, sizeof clean);
    if (code == ':')
        return rnl_cli_usage(subject->command, "%s: the value is missing", clean);
    if (optopt >= LONG_DEVICE)
        return rnl_cli_usage(subject->command, "%s: takes no value", clean);
    return rnl_cli_usage(subject->command, "%s: unknown option '%s'", subject->name, clean);
}

static rnl_exit parse(const rnl_subject *subject, int argc, char **argv, rnl_subject_options *options)
{
    struct option all[MOST_OPTIONS + 1] = {{0}};
    size_t count = 0;
    for (; count < COMMON; count++)
        all[count] = common[count];
    for (const struct option *it = subject->extra; it && it->name && count < MOST_OPTIONS; it++)
        all[count++] = *it;
    optind = 0;
    opterr = 0;
    for (;;) {
        int code = getopt_long(argc, argv, ":h", all, NULL);
        if (code < 0)
            return options->help ? RNL_EXIT_DONE : take_operands(subject, argc, argv);
        rnl_exit exit_code =
            code == ':' || code == '?' ? complain(subject, code, argv) : take(subject, code, optarg, options);
        if (exit_code != RNL_EXIT_DONE)
            return exit_code;
    }
}

rnl_exit rnl_subject_run(const rnl_subject *subject, int argc, char **argv)
{
    rnl_subject_options options = {.repeat = 7, .seconds = 0.3, .verbose = rnl_verbose_wanted()};
    rnl_exit code = parse(subject, argc, argv, &options);
    if (code != RNL_EXIT_DONE)
        return code;
    if (options.help) {
        printf("usage: runnel %s %s [options]\n\n%s\n%s%s", subject->command, subject->name, subject->summary,
               subject->help, common_help);
        return RNL_EXIT_DONE;
    }
    rnl_console_open(options.verbose);
    code = subject->run(&options);
    rnl_console_clear();
    return code;
}

rnl_exit rnl_subject_open(const rnl_subject_options *options, rnl_device **out_device)
{
    char name[RNL_CLI_NAME_BYTES];
    const rnl_device_wish wish = {options->device, options->threads, options->memory, false};
    if (rnl_cli_device_open(&wish, out_device) != RNL_OK)
        return rnl_cli_fail_library("opening a device");
    const rnl_device_info *info = rnl_device_get_info(*out_device);
    printf("device %u:%u %s\n", (unsigned)info->platform_index, (unsigned)info->device_index,
           rnl_cli_clean(info->name, name, sizeof name));
    fflush(stdout);
    return RNL_EXIT_DONE;
}
