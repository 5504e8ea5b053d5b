/* SPDX-License-Identifier: Apache-2.0 */
#include "inputs.h"
#include "source.h"
#include "values.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char source_if_not_given[] = "random:0";

/* "'a', 'b', 'c' and 4 more" */
static const char *list_names(const rnl_input_set *set, char *out_text, size_t capacity)
{
    size_t used = 0;
    out_text[0] = '\0';
    for (size_t i = 0; i < set->count; i++) {
        char name[64];
        size_t room = capacity - used;
        if (room < 96) {
            snprintf(out_text + used, room, " and %zu more", set->count - i);
            break;
        }
        used += (size_t)snprintf(out_text + used, room, "%s'%s'", i ? ", " : "",
                                 rnl_cli_clean(set->infos[i].name, name, sizeof name));
    }
    return out_text;
}

static rnl_exit fail_unknown(const rnl_input_set *set, const char *name, size_t name_bytes)
{
    char names[1024], copy[RNL_CLI_NAME_BYTES], clean[RNL_CLI_NAME_BYTES];
    if (set->count == 0)
        return rnl_cli_fail("the model has no inputs");
    snprintf(copy, sizeof copy, "%.*s", name_bytes > 250 ? 250 : (int)name_bytes, name);
    return rnl_cli_fail("the model has no input '%s'; it has %s", rnl_cli_clean(copy, clean, sizeof clean),
                        list_names(set, names, sizeof names));
}

/* The longest of the model's names that `option` starts with, followed by '='; names may hold '=' themselves. */
static size_t match_name(const rnl_input_set *set, const char *option)
{
    size_t best = SIZE_MAX;
    size_t best_bytes = 0;
    for (size_t i = 0; i < set->count; i++) {
        size_t bytes = strlen(set->infos[i].name);
        if (strncmp(option, set->infos[i].name, bytes) == 0 && option[bytes] == '=' &&
            (best == SIZE_MAX || bytes > best_bytes)) {
            best = i;
            best_bytes = bytes;
        }
    }
    return best;
}

static rnl_exit find_input(const rnl_input_set *set, const char *option, size_t *out_index, const char **out_source)
{
    const char *equals = strchr(option, '=');
    *out_index = match_name(set, option);
    *out_source = option;
    if (*out_index != SIZE_MAX) {
        *out_source = option + strlen(set->infos[*out_index].name) + 1;
        return RNL_EXIT_DONE;
    }
    *out_index = 0;
    bool whole_is_source = !equals || !rnl_source_is_file(option) || access(option, F_OK) == 0;
    if (set->count == 1 && whole_is_source)
        return RNL_EXIT_DONE;
    if (equals || set->count == 0)
        return fail_unknown(set, option, equals ? (size_t)(equals - option) : strlen(option));
    char names[1024];
    return rnl_cli_fail("-i %s: say which input it is for, as NAME=%s; the model has %s", option, option,
                        list_names(set, names, sizeof names));
}

static rnl_exit bind_source(rnl_input_set *set, const char *option)
{
    size_t index;
    const char *source;
    char name[RNL_CLI_NAME_BYTES];
    rnl_exit code = find_input(set, option, &index, &source);
    if (code != RNL_EXIT_DONE)
        return code;
    rnl_cli_clean(set->infos[index].name, name, sizeof name);
    if (!*source)
        return rnl_cli_usage(rnl_cli_command(), "--input %s=: the source is missing", name);
    if (set->sources[index])
        return rnl_cli_usage(rnl_cli_command(), "input '%s' is given twice", name);
    set->sources[index] = source;
    return RNL_EXIT_DONE;
}

static rnl_exit check_shape(const rnl_shape_option *shape, const rnl_value_info *info)
{
    char name[RNL_CLI_NAME_BYTES], has[RNL_SHAPE_TEXT_BYTES], wants[RNL_SHAPE_TEXT_BYTES];
    bool fits = info->rank == SIZE_MAX || info->rank == shape->rank;
    for (size_t i = 0; fits && info->rank != SIZE_MAX && i < info->rank; i++)
        fits = info->shape[i] < 0 || info->shape[i] == shape->shape[i];
    if (fits)
        return RNL_EXIT_DONE;
    return rnl_cli_fail(
        "--shape %s does not fit input '%s', which is %s", rnl_shape_text(shape->shape, NULL, shape->rank, has),
        rnl_cli_clean(info->name, name, sizeof name), rnl_shape_text(info->shape, info->dim_names, info->rank, wants));
}

static rnl_exit bind_shape(rnl_input_set *set, const rnl_shape_option *shape)
{
    size_t index = shape->name || set->count != 1 ? SIZE_MAX : 0;
    char name[RNL_CLI_NAME_BYTES], names[1024];
    for (size_t i = 0; shape->name && i < set->count; i++)
        if (strlen(set->infos[i].name) == shape->name_bytes &&
            memcmp(set->infos[i].name, shape->name, shape->name_bytes) == 0)
            index = i;
    if (index == SIZE_MAX && shape->name)
        return fail_unknown(set, shape->name, shape->name_bytes);
    if (index == SIZE_MAX)
        return rnl_cli_fail("--shape: say which input it is for, as NAME=SHAPE; the model has %s",
                            list_names(set, names, sizeof names));
    if (set->shapes[index])
        return rnl_cli_usage(rnl_cli_command(), "--shape is given twice for input '%s'",
                             rnl_cli_clean(set->infos[index].name, name, sizeof name));
    set->shapes[index] = shape;
    return check_shape(shape, &set->infos[index]);
}

rnl_exit rnl_inputs_bind(const rnl_graph *graph, const rnl_run_options *options, rnl_input_set *out_set)
{
    *out_set = (rnl_input_set){0};
    out_set->infos = rnl_graph_inputs(graph, &out_set->count);
    size_t slots = out_set->count + 1;
    out_set->sources = calloc(slots, sizeof *out_set->sources);
    out_set->shapes = calloc(slots, sizeof *out_set->shapes);
    out_set->tensors = calloc(slots, sizeof *out_set->tensors);
    if (!out_set->sources || !out_set->shapes || !out_set->tensors)
        return rnl_cli_fail("out of memory");
    rnl_exit code = RNL_EXIT_DONE;
    for (size_t i = 0; code == RNL_EXIT_DONE && i < options->input_count; i++)
        code = bind_source(out_set, options->inputs[i]);
    for (size_t i = 0; code == RNL_EXIT_DONE && i < options->shape_count; i++)
        code = bind_shape(out_set, &options->shapes[i]);
    bool picture = options->picture.first_given == NULL;
    for (size_t i = 0; code == RNL_EXIT_DONE && !picture && i < out_set->count; i++)
        picture = out_set->sources[i] && rnl_source_is_picture(out_set->sources[i]);
    if (code == RNL_EXIT_DONE && !picture)
        code =
            rnl_cli_usage(rnl_cli_command(), "--%s is given, but no input is a picture", options->picture.first_given);
    return code;
}

rnl_exit rnl_inputs_load(rnl_input_set *set, const rnl_run_options *options)
{
    rnl_exit code = RNL_EXIT_DONE;
    for (size_t i = 0; code == RNL_EXIT_DONE && i < set->count; i++) {
        rnl_value_info info = set->infos[i];
        const char *source = set->sources[i] ? set->sources[i] : source_if_not_given;
        if (set->shapes[i]) {
            info.rank = set->shapes[i]->rank;
            memcpy(info.shape, set->shapes[i]->shape, sizeof info.shape);
        }
        code = rnl_source_load(source, &info, &options->picture, &set->tensors[i]);
    }
    return code;
}

void rnl_inputs_print(const rnl_input_set *set, FILE *out)
{
    char name[RNL_CLI_NAME_BYTES], shape[RNL_SHAPE_TEXT_BYTES];
    for (size_t i = 0; i < set->count; i++)
        if (!set->sources[i])
            fprintf(out, "input %s: not given, %s %s %s\n", rnl_cli_clean(set->infos[i].name, name, sizeof name),
                    source_if_not_given, rnl_dtype_name(set->tensors[i].dtype),
                    rnl_shape_text(set->tensors[i].shape, NULL, set->tensors[i].rank, shape));
}

void rnl_inputs_free(rnl_input_set *set)
{
    for (size_t i = 0; set->tensors && i < set->count; i++)
        free(set->tensors[i].data);
    free(set->tensors);
    free(set->sources);
    free(set->shapes);
    *set = (rnl_input_set){0};
}
