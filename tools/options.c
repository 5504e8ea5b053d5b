/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"
#include "parse.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
    LONG_DEVICE = 256,
    LONG_SHAPE,
    LONG_REPEAT,
    LONG_TOP,
    LONG_LABELS,
    LONG_THREADS,
    LONG_PRECISION,
    LONG_DETERMINISTIC,
    LONG_REPORT,
    LONG_WEIGHTS_BUDGET,
    LONG_VERBOSE,
    LONG_PIPELINE,
    LONG_DEPTH,
    LONG_SIZE,
    LONG_MEAN,
    LONG_STD,
    LONG_LAYOUT,
    LONG_COLOR,
    LONG_SECONDS,
    LONG_WARM,
    LONG_LAYERS,
    LONG_SORT,
    LONG_JSON,
    LONG_TUNE,
    LONG_STREAMS,
    LONG_AGAINST,
    LONG_ALL,
    LONG_CALIBRATE,
    LONG_KEEP,
    LONG_RANGES,
    LONG_PERCENTILE,
    LONG_MAX_ERROR,
    LONG_ACTIVATIONS,
    LONG_MEMORY,
    LONG_TRACE,
    LONG_TRACE_EVERY
};

#define OPTIONS_OF_BOTH                                                                                                \
    {"input", required_argument, NULL, 'i'}, {"device", required_argument, NULL, LONG_DEVICE},                         \
        {"shape", required_argument, NULL, LONG_SHAPE}, {"repeat", required_argument, NULL, LONG_REPEAT},              \
        {"threads", required_argument, NULL, LONG_THREADS}, {"memory", required_argument, NULL, LONG_MEMORY},          \
        {"verbose", no_argument, NULL, LONG_VERBOSE}, {"help", no_argument, NULL, 'h'},                                \
        {"size", required_argument, NULL, LONG_SIZE}, {"mean", required_argument, NULL, LONG_MEAN},                    \
        {"std", required_argument, NULL, LONG_STD}, {"layout", required_argument, NULL, LONG_LAYOUT},                  \
    {                                                                                                                  \
        "color", required_argument, NULL, LONG_COLOR                                                                   \
    }

#define OPTIONS_OF_MODEL                                                                                               \
    {"precision", required_argument, NULL, LONG_PRECISION}, {"deterministic", no_argument, NULL, LONG_DETERMINISTIC},  \
        {"weights-budget", required_argument, NULL, LONG_WEIGHTS_BUDGET},                                              \
    {                                                                                                                  \
        "report", no_argument, NULL, LONG_REPORT                                                                       \
    }

#define OPTIONS_OF_PIPELINE                                                                                            \
    {"pipeline", no_argument, NULL, LONG_PIPELINE},                                                                    \
    {                                                                                                                  \
        "depth", required_argument, NULL, LONG_DEPTH                                                                   \
    }

static const struct option run_options[] = {
    OPTIONS_OF_BOTH,
    OPTIONS_OF_MODEL,
    OPTIONS_OF_PIPELINE,
    {"output", required_argument, NULL, 'o'},
    {"top", required_argument, NULL, LONG_TOP},
    {"labels", required_argument, NULL, LONG_LABELS},
    {"trace", required_argument, NULL, LONG_TRACE},
    {"trace-every", required_argument, NULL, LONG_TRACE_EVERY},
    {NULL, 0, NULL, 0},
};

static const struct option bench_options[] = {
    OPTIONS_OF_BOTH,
    OPTIONS_OF_MODEL,
    OPTIONS_OF_PIPELINE,
    {"seconds", required_argument, NULL, LONG_SECONDS},
    {"warm", required_argument, NULL, LONG_WARM},
    {"layers", no_argument, NULL, LONG_LAYERS},
    {"sort", required_argument, NULL, LONG_SORT},
    {"json", required_argument, NULL, LONG_JSON},
    {"tune", no_argument, NULL, LONG_TUNE},
    {"streams", required_argument, NULL, LONG_STREAMS},
    {"trace", required_argument, NULL, LONG_TRACE},
    {NULL, 0, NULL, 0},
};

static const struct option compare_options[] = {
    OPTIONS_OF_BOTH,
    {"against", required_argument, NULL, LONG_AGAINST},
    {"all", no_argument, NULL, LONG_ALL},
    {NULL, 0, NULL, 0},
};

static const struct option quantize_options[] = {
    {"calibrate", required_argument, NULL, LONG_CALIBRATE},
    {"output", required_argument, NULL, 'o'},
    {"keep", required_argument, NULL, LONG_KEEP},
    {"max-error", required_argument, NULL, LONG_MAX_ERROR},
    {"ranges", required_argument, NULL, LONG_RANGES},
    {"percentile", required_argument, NULL, LONG_PERCENTILE},
    {"activations", required_argument, NULL, LONG_ACTIVATIONS},
    {"device", required_argument, NULL, LONG_DEVICE},
    {"threads", required_argument, NULL, LONG_THREADS},
    {"memory", required_argument, NULL, LONG_MEMORY},
    {"verbose", no_argument, NULL, LONG_VERBOSE},
    {"help", no_argument, NULL, 'h'},
    {"size", required_argument, NULL, LONG_SIZE},
    {"mean", required_argument, NULL, LONG_MEAN},
    {"std", required_argument, NULL, LONG_STD},
    {"layout", required_argument, NULL, LONG_LAYOUT},
    {"color", required_argument, NULL, LONG_COLOR},
    {NULL, 0, NULL, 0},
};

static const struct option tune_options[] = {
    OPTIONS_OF_BOTH,
    {NULL, 0, NULL, 0},
};

static const struct option info_options[] = {
    {"device", required_argument, NULL, LONG_DEVICE},
    {"shape", required_argument, NULL, LONG_SHAPE},
    {"threads", required_argument, NULL, LONG_THREADS},
    {"memory", required_argument, NULL, LONG_MEMORY},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const struct command {
    const char *name, *letters;
    const struct option *options;
} commands[] = {{"run", ":hi:o:", run_options},       {"bench", ":hi:", bench_options},
                {"compare", ":hi:", compare_options}, {"quantize", ":ho:", quantize_options},
                {"tune", ":hi:", tune_options},       {"info", ":h", info_options}};
static const struct command *command = commands;

static void find_command(const char *name)
{
    command = commands;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            command = &commands[i];
}

const char *rnl_cli_command(void)
{
    return command->name;
}

static const char *option_name(int code)
{
    for (const struct option *option = command->options; option->name; option++)
        if (option->val == code)
            return option->name;
    return "?";
}

static rnl_exit bad_value(int code, const char *value, const char *wanted)
{
    char clean[RNL_CLI_NAME_BYTES];
    return rnl_cli_usage(rnl_cli_command(), "--%s %s: %s", option_name(code), rnl_cli_clean(value, clean, sizeof clean),
                         wanted);
}

static rnl_exit take_count(int code, const char *value, uint64_t limit, uint64_t *out_count)
{
    if (rnl_parse_whole(value, limit, out_count) && *out_count > 0)
        return RNL_EXIT_DONE;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "not a whole number from 1 to %llu", (unsigned long long)limit);
    return bad_value(code, value, wanted);
}

/* "300000000", "512M", "2G". */
static rnl_exit take_bytes(int code, const char *value, size_t *out_bytes)
{
    static const char units[] = "kMG";
    char digits[32];
    const size_t length = strlen(value);
    const char *unit = length > 1 ? strchr(units, value[length - 1]) : NULL;
    const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    uint64_t number = 0;
    snprintf(digits, sizeof digits, "%.*s", (int)(unit ? length - 1 : length), value);
    if (length >= sizeof digits || !rnl_parse_whole(digits, SIZE_MAX >> shift, &number) || number == 0)
        return bad_value(code, value, "not a number of bytes, as 300000000, 512M or 2G");
    *out_bytes = (size_t)number << shift;
    return RNL_EXIT_DONE;
}

static rnl_exit take_size(const char *value, rnl_picture_options *picture)
{
    int64_t size[2];
    size_t rank;
    if (!rnl_parse_shape(value, size, 2, &rank) || rank != 2 || size[0] < 1 || size[1] < 1 || size[0] > 65536 ||
        size[1] > 65536)
        return bad_value(LONG_SIZE, value, "not HEIGHTxWIDTH, each from 1 to 65536");
    picture->height = size[0];
    picture->width = size[1];
    return RNL_EXIT_DONE;
}

static rnl_exit take_triple(int code, const char *value, double *out_triple)
{
    if (!rnl_parse_triple(value, out_triple))
        return bad_value(code, value, "not one number or three with commas between");
    if (code == LONG_STD && (out_triple[0] == 0 || out_triple[1] == 0 || out_triple[2] == 0))
        return bad_value(code, value, "must not be 0");
    return RNL_EXIT_DONE;
}

/* One of two words. */
static rnl_exit take_choice(int code, const char *value, const char *first, const char *second, bool *out_second)
{
    *out_second = strcmp(value, second) == 0;
    if (*out_second || strcmp(value, first) == 0)
        return RNL_EXIT_DONE;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "neither %s nor %s", first, second);
    return bad_value(code, value, wanted);
}

static rnl_exit take_picture_option(int code, const char *value, rnl_picture_options *picture)
{
    bool second = false;
    rnl_exit exit_code = RNL_EXIT_DONE;
    if (!picture->first_given)
        picture->first_given = option_name(code);
    if (code == LONG_SIZE)
        return take_size(value, picture);
    if (code == LONG_MEAN || code == LONG_STD) {
        picture->has_mean_or_std = true;
        return take_triple(code, value, code == LONG_MEAN ? picture->mean : picture->std);
    }
    if (code == LONG_LAYOUT) {
        exit_code = take_choice(code, value, "nchw", "nhwc", &second);
        picture->layout = second ? RNL_LAYOUT_NHWC : RNL_LAYOUT_NCHW;
    } else {
        exit_code = take_choice(code, value, "rgb", "bgr", &second);
        picture->color = second ? RNL_COLOR_BGR : RNL_COLOR_RGB;
    }
    return exit_code;
}

static rnl_exit take_text(int code, const char *value, const char **out_text)
{
    if (!*value)
        return rnl_cli_usage(rnl_cli_command(), "--%s: the value is empty", option_name(code));
    *out_text = value;
    return RNL_EXIT_DONE;
}

static rnl_exit take_input(const char *value, rnl_run_options *options)
{
    for (size_t i = 0; i < options->input_count; i++)
        if (strcmp(options->inputs[i], value) == 0)
            return bad_value('i', value, "given twice");
    return take_text('i', value, &options->inputs[options->input_count++]);
}

/* Names may hold '=', shapes do not. */
static rnl_exit take_shape(const char *value, rnl_run_options *options)
{
    rnl_shape_option *shape = &options->shapes[options->shape_count++];
    const char *equals = strrchr(value, '=');
    const char *text = equals ? equals + 1 : value;
    shape->name = equals ? value : NULL;
    shape->name_bytes = equals ? (size_t)(equals - value) : 0;
    if (!rnl_parse_shape(text, shape->shape, RNL_MAX_RANK, &shape->rank))
        return bad_value(LONG_SHAPE, value, "not NAME=1x3x48x320 (1 to 8 sizes)");
    return RNL_EXIT_DONE;
}

static rnl_exit take_seconds(int code, const char *value, double *out_seconds)
{
    static const double most = 3600;
    if (rnl_parse_seconds(value, most, out_seconds))
        return RNL_EXIT_DONE;
    return bad_value(code, value, "not a number from 0 to 3600");
}

static rnl_exit take_ranges(const char *value, int *out_ranges)
{
    static const char *const names[] = {"minmax", "percentile", "mse"};
    for (int i = 0; i < 3; i++)
        if (strcmp(value, names[i]) == 0) {
            *out_ranges = i;
            return RNL_EXIT_DONE;
        }
    return bad_value(LONG_RANGES, value, "neither minmax, percentile nor mse");
}

static rnl_exit take_positive(int code, const char *value, double most, double *out_number)
{
    if (rnl_parse_seconds(value, most, out_number) && *out_number > 0)
        return RNL_EXIT_DONE;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "not a number above 0 and up to %g", most);
    return bad_value(code, value, wanted);
}

static rnl_exit take_quantize_option(int code, const char *value, rnl_run_options *options)
{
    switch (code) {
    case LONG_CALIBRATE:
        return take_text(code, value, &options->calibrate);
    case LONG_KEEP:
        return take_text(code, value, &options->keep[options->keep_count++]);
    case LONG_RANGES:
        return take_ranges(value, &options->ranges);
    case LONG_PERCENTILE:
        return take_positive(code, value, 100, &options->percentile);
    case LONG_MAX_ERROR:
        return take_positive(code, value, 1, &options->max_error);
    default:
        return take_choice(code, value, "u8", "s8", &options->signed_activations);
    }
}

static rnl_exit take_other_option(int code, const char *value, rnl_run_options *options)
{
    switch (code) {
    case LONG_SECONDS:
        return take_seconds(code, value, &options->seconds);
    case LONG_WARM:
        return take_seconds(code, value, &options->warm_seconds);
    case LONG_SORT:
        return take_choice(code, value, "run", "time", &options->sort_by_time);
    case LONG_JSON:
        return take_text(code, value, &options->json);
    case LONG_TRACE:
        return take_text(code, value, &options->trace);
    case LONG_TRACE_EVERY:
        return take_count(code, value, 1000000, &options->trace_every);
    case LONG_TUNE:
        options->tune = true;
        return RNL_EXIT_DONE;
    case LONG_STREAMS:
        return take_count(code, value, 256, &options->streams);
    case LONG_MEMORY:
        return take_positive(code, value, 1, &options->memory);
    case LONG_AGAINST:
        return take_text(code, value, &options->against);
    case LONG_ALL:
        options->all = true;
        return RNL_EXIT_DONE;
    case LONG_CALIBRATE:
    case LONG_KEEP:
    case LONG_RANGES:
    case LONG_PERCENTILE:
    case LONG_MAX_ERROR:
    case LONG_ACTIVATIONS:
        return take_quantize_option(code, value, options);
    default:
        options->layers = true;
        return RNL_EXIT_DONE;
    }
}

static rnl_exit take_precision(const char *value, rnl_precision *out_precision)
{
    bool is_bf16 = false;
    rnl_exit exit_code = take_choice(LONG_PRECISION, value, "f32", "bf16", &is_bf16);
    *out_precision = is_bf16 ? RNL_PRECISION_BF16 : RNL_PRECISION_F32;
    return exit_code;
}

static rnl_exit take_option(int code, const char *value, rnl_run_options *options)
{
    switch (code) {
    case 'i':
        return take_input(value, options);
    case 'o':
        return take_text(code, value, &options->output_folder);
    case LONG_DEVICE:
        return take_text(code, value, &options->device);
    case LONG_LABELS:
        return take_text(code, value, &options->labels);
    case LONG_SHAPE:
        return take_shape(value, options);
    case LONG_REPEAT:
        return take_count(code, value, 1000000, &options->repeat);
    case LONG_TOP:
        return take_count(code, value, 1000000, &options->top);
    case LONG_THREADS:
        return take_count(code, value, 65536, &options->threads);
    case LONG_REPORT:
        options->report = true;
        return RNL_EXIT_DONE;
    case LONG_PRECISION:
        return take_precision(value, &options->precision);
    case LONG_DETERMINISTIC:
        options->deterministic = true;
        return RNL_EXIT_DONE;
    case LONG_WEIGHTS_BUDGET:
        return take_bytes(code, value, &options->weights_budget);
    case LONG_VERBOSE:
        options->verbose = true;
        return RNL_EXIT_DONE;
    case LONG_PIPELINE:
        options->pipeline = true;
        return RNL_EXIT_DONE;
    case LONG_DEPTH:
        return take_count(code, value, 64, &options->depth);
    case 'h':
        options->help = true;
        return RNL_EXIT_DONE;
    default:
        return code < LONG_SECONDS ? take_picture_option(code, value, &options->picture)
                                   : take_other_option(code, value, options);
    }
}

/* getopt's two complaints: ':' a value is missing, '?' no such option, or a value where none is taken. */
static rnl_exit complain(int code, char **argv)
{
    const char *argument = argv[optind - 1];
    char clean[RNL_CLI_NAME_BYTES];
    rnl_cli_clean(argument, clean, sizeof clean);
    if (code == ':')
        return rnl_cli_usage(rnl_cli_command(), "%s: the value is missing", clean);
    if (optopt >= LONG_DEVICE)
        return rnl_cli_usage(rnl_cli_command(), "%s: takes no value", clean);
    if (optopt)
        return rnl_cli_usage(rnl_cli_command(), "unknown option '-%c'", optopt >= 0x20 && optopt < 0x7f ? optopt : '?');
    return rnl_cli_usage(rnl_cli_command(), "unknown option '%s'", clean);
}

static rnl_exit take_operands(int argc, char **argv, rnl_run_options *options)
{
    char clean[RNL_CLI_NAME_BYTES];
    if (options->help)
        return RNL_EXIT_DONE;
    if (optind >= argc && strcmp(command->name, "info") == 0) /* the machine, then */
        return options->device || options->shape_count
                   ? rnl_cli_usage(rnl_cli_command(), "--device and --shape need a model")
                   : RNL_EXIT_DONE;
    if (optind >= argc)
        return rnl_cli_usage(rnl_cli_command(), "no model given");
    if (optind + 1 < argc)
        return rnl_cli_usage(rnl_cli_command(), "one model at a time: '%s' is one too many",
                             rnl_cli_clean(argv[optind + 1], clean, sizeof clean));
    options->model = argv[optind];
    return rnl_run_options_check(options);
}

rnl_exit rnl_run_options_parse(int argc, char **argv, rnl_run_options *out_options)
{
    find_command(argv[0]);
    *out_options = (rnl_run_options){.picture.std = {1, 1, 1}, .verbose = rnl_verbose_wanted()};
    if (strcmp(command->name, "bench") == 0) {
        out_options->repeat = 20;
        out_options->seconds = out_options->warm_seconds = 1;
    }
    out_options->inputs = calloc((size_t)argc + 1, sizeof *out_options->inputs);
    out_options->shapes = calloc((size_t)argc + 1, sizeof *out_options->shapes);
    out_options->keep = calloc((size_t)argc + 1, sizeof *out_options->keep);
    if (!out_options->inputs || !out_options->shapes || !out_options->keep)
        return rnl_cli_fail("out of memory");
    optind = 0;
    opterr = 0;
    for (;;) {
        int code = getopt_long(argc, argv, command->letters, command->options, NULL);
        if (code < 0)
            return take_operands(argc, argv, out_options);
        rnl_exit exit_code = code == ':' || code == '?' ? complain(code, argv) : take_option(code, optarg, out_options);
        if (exit_code != RNL_EXIT_DONE)
            return exit_code;
    }
}

void rnl_run_options_free(rnl_run_options *options)
{
    free(options->inputs);
    free(options->shapes);
    free(options->keep);
    *options = (rnl_run_options){0};
}

bool rnl_verbose_wanted(void)
{
    const char *value = getenv("RUNNEL_VERBOSE");
    return value && strcmp(value, "1") == 0;
}
