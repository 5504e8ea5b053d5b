/* SPDX-License-Identifier: Apache-2.0 */
/* Work on host arrays that are larger than the device memory that it may use; see docs/out-of-core.md. */
#include "ooc.h"

#include <errno.h>
#include <string.h>

static const char usage[] =
    "usage: out-of-core gemm|axpy|chain [OPTIONS]\n"
    "\n"
    "Computes on arrays in host memory that pass through a part of the device's memory, tile by tile: one is copied "
    "in\n"
    "while others are computed with and copied out. Prints the speed, beside that of copies alone and in-core.\n"
    "\n"
    "  --size N          of the square matrices of gemm (default 768)\n"
    "  --m, --n, --k N   c (m x n) = a (m x k) * b (k x n)\n"
    "  --elements N      of each vector of axpy and chain (default 4000000)\n"
    "  --budget BYTES    of device memory, also as 512M or 2G (default: a tenth of the data)\n"
    "  --depth N         columns of a and rows of b in a tile (default: chosen from the budget)\n"
    "  --device SPEC     as for runnel (default: RUNNEL_DEVICE, else the best there is)\n"
    "  --pageable        the arrays are ordinary memory, not pinned\n"
    "  --no-in-core      skip the measurement with all data on the device\n"
    "  --samples N       results that are compared with float64 (default 2000; 0: none)\n"
    "  --require RATIO   fail below this part of the speed that computing and copying allow\n";

/* "1000", "512M", "2G". */
static bool parse_size(const char *text, size_t *out_size)
{
    static const char units[] = "kMG";
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    const unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (errno || end == text || *text == '-' || (*end && (!unit || end[1])) || number > SIZE_MAX >> shift)
        return false;
    *out_size = (size_t)number << shift;
    return true;
}

typedef struct size_option {
    const char *name;
    size_t *value;
} size_option;

static bool take_size(ooc_options *options, const char *name, const char *value)
{
    const size_option known[] = {{"--m", &options->m},
                                 {"--n", &options->n},
                                 {"--k", &options->k},
                                 {"--elements", &options->elements},
                                 {"--budget", &options->budget},
                                 {"--depth", &options->depth},
                                 {"--samples", &options->samples}};
    if (strcmp(name, "--size") == 0) {
        if (!parse_size(value, &options->m))
            return false;
        options->n = options->k = options->m;
        return true;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0)
            return parse_size(value, known[i].value);
    return false;
}

static bool take_value(ooc_options *options, const char *name, const char *value)
{
    char *end;
    if (strcmp(name, "--device") == 0) {
        options->device = value;
        return true;
    }
    if (strcmp(name, "--require") != 0)
        return take_size(options, name, value);
    options->require = strtod(value, &end);
    return end != value && !*end;
}

static bool parse(int argc, char **argv, ooc_options *options)
{
    if (argc < 2 || (strcmp(argv[1], "gemm") && strcmp(argv[1], "axpy") && strcmp(argv[1], "chain")))
        return false;
    options->what = argv[1];
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--pageable") == 0)
            options->pageable = true;
        else if (strcmp(argv[i], "--no-in-core") == 0)
            options->in_core = false;
        else if (i + 1 == argc || !take_value(options, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    return true;
}

/* There are arrays, and their bytes can be counted. */
static bool is_addressable(const ooc_options *options)
{
    const size_t most = SIZE_MAX / 64;
    if (options->m == 0 || options->n == 0 || options->k == 0 || options->elements == 0)
        return false;
    return options->m <= most / options->k && options->k <= most / options->n && options->m <= most / options->n &&
           options->elements <= most;
}

int main(int argc, char **argv)
{
    ooc_options options = {
        .m = 768, .n = 768, .k = 768, .elements = 4000000, .samples = 2000, .in_core = true, .device = NULL};
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    if (!parse(argc, argv, &options) || !is_addressable(&options)) {
        fputs(usage, stderr);
        return 2;
    }
    return (strcmp(options.what, "gemm") == 0 ? ooc_gemm(&options) : ooc_vectors(&options)) ? 0 : 1;
}
