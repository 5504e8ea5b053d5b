/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate.h"
#include "source.h"
#include "values.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void free_entries(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

static char *join(const char *folder, const char *name)
{
    const size_t length = strlen(folder);
    char *path = malloc(length + strlen(name) + 2);
    if (path)
        sprintf(path, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
    return path;
}

/* Whether "a_b.npy" is the file of input "a/b", as `runnel run -o` names it. */
static bool is_file_of(const char *file, const char *input)
{
    for (; *input; input++, file++) {
        const char wanted = isascii(*input) && (isalnum((unsigned char)*input) || strchr("._-", *input)) ? *input : '_';
        if (*file != wanted)
            return false;
    }
    return *file == '.' && !strchr(file + 1, '.');
}

static rnl_exit add_from_folder(rnl_calibration *c, const char *folder, struct dirent **entries, int count)
{
    char name[RNL_CLI_NAME_BYTES];
    for (size_t i = 0; i < c->input_count; i++) {
        int found = c->input_count == 1 && count == 1 ? 0 : -1;
        for (int j = 0; j < count && found < 0; j++)
            found = is_file_of(entries[j]->d_name, c->infos[i].name) ? j : -1;
        if (found < 0)
            return rnl_cli_fail("%s: no file for input '%s'", folder,
                                rnl_cli_clean(c->infos[i].name, name, sizeof name));
        char *path = join(folder, entries[found]->d_name);
        if (!path)
            return rnl_cli_fail("out of memory");
        c->paths[c->set_count * c->input_count + i] = path;
    }
    c->set_count++;
    return RNL_EXIT_DONE;
}

/* Takes `path`, a file or a folder. */
static rnl_exit add_set(rnl_calibration *c, char *path)
{
    struct stat status;
    struct dirent **entries = NULL;
    rnl_exit code = RNL_EXIT_DONE;
    if (stat(path, &status) != 0) {
        code = rnl_cli_fail("%s: %s", path, strerror(errno));
    } else if (S_ISDIR(status.st_mode)) {
        const int count = scandir(path, &entries, is_shown, alphasort);
        code = count < 0 ? rnl_cli_fail("%s: %s", path, strerror(errno)) : add_from_folder(c, path, entries, count);
        free_entries(entries, count);
    } else if (c->input_count != 1) {
        code = rnl_cli_fail("%s: the model has %zu inputs, so each set is a folder with NAME.npy for all of them", path,
                            c->input_count);
    } else {
        c->paths[c->set_count++] = path;
        return RNL_EXIT_DONE;
    }
    free(path);
    return code;
}

static rnl_exit add_all(rnl_calibration *c, const char *folder, struct dirent **entries, int count)
{
    rnl_exit code = RNL_EXIT_DONE;
    c->path_count = (size_t)count * c->input_count;
    c->paths = calloc(c->path_count + 1, sizeof *c->paths);
    c->set.tensors = calloc(c->input_count + 1, sizeof *c->set.tensors);
    if (!c->paths || !c->set.tensors)
        return rnl_cli_fail("out of memory");
    for (int i = 0; code == RNL_EXIT_DONE && i < count; i++) {
        char *path = join(folder, entries[i]->d_name);
        code = path ? add_set(c, path) : rnl_cli_fail("out of memory");
    }
    return code;
}

rnl_exit rnl_calibration_find(const rnl_graph *graph, const rnl_run_options *options, rnl_calibration *out)
{
    struct dirent **entries = NULL;
    *out = (rnl_calibration){.options = options};
    out->infos = rnl_graph_inputs(graph, &out->input_count);
    const int count = scandir(options->calibrate, &entries, is_shown, alphasort);
    if (count < 0)
        return rnl_cli_fail("calibration folder %s: %s", options->calibrate, strerror(errno));
    rnl_exit code = RNL_EXIT_DONE;
    if (out->input_count == 0)
        code = rnl_cli_fail("the model has no inputs");
    else if (count == 0)
        code = rnl_cli_fail("calibration folder %s is empty", options->calibrate);
    else
        code = add_all(out, options->calibrate, entries, count);
    free_entries(entries, count);
    bool picture = options->picture.first_given == NULL;
    for (size_t i = 0; code == RNL_EXIT_DONE && !picture && i < out->input_count; i++)
        picture = rnl_source_is_picture(out->paths[i]);
    if (code == RNL_EXIT_DONE && !picture)
        code =
            rnl_cli_usage(rnl_cli_command(), "--%s is given, but no input is a picture", options->picture.first_given);
    return code;
}

static void forget(rnl_calibration *c)
{
    for (size_t i = 0; c->set.tensors && i < c->input_count; i++) {
        free(c->set.tensors[i].data);
        c->set.tensors[i] = (rnl_tensor){0};
    }
    c->set.count = 0;
}

static rnl_exit check_finite(const rnl_tensor *tensor, const char *path)
{
    size_t count, bytes;
    if (!rnl_dtype_is_float(tensor->dtype) ||
        !rnl_values_bytes(tensor->dtype, tensor->shape, tensor->rank, &count, &bytes))
        return RNL_EXIT_DONE;
    for (size_t i = 0; i < count; i++) {
        const long double value = rnl_values_load(tensor->dtype, tensor->data, i);
        if (!isfinite(value))
            return rnl_cli_fail("%s: element %zu is %s", path, i, isnan(value) ? "NaN" : "infinite");
    }
    return RNL_EXIT_DONE;
}

rnl_exit rnl_calibration_read(rnl_calibration *c, size_t index)
{
    forget(c);
    for (size_t i = 0; i < c->input_count; i++) {
        const char *path = c->paths[index * c->input_count + i];
        rnl_exit code = rnl_source_load(path, &c->infos[i], &c->options->picture, &c->set.tensors[i]);
        if (code == RNL_EXIT_DONE)
            code = check_finite(&c->set.tensors[i], path);
        if (code != RNL_EXIT_DONE)
            return code;
    }
    c->set.count = c->input_count;
    return RNL_EXIT_DONE;
}

const char *rnl_calibration_name(const rnl_calibration *c, size_t index)
{
    return c->paths[index * c->input_count];
}

void rnl_calibration_free(rnl_calibration *c)
{
    forget(c);
    free(c->set.tensors);
    for (size_t i = 0; c->paths && i < c->path_count; i++)
        free(c->paths[i]);
    free(c->paths);
    *c = (rnl_calibration){0};
}
