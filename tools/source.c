/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"
#include "file.h"
#include "npy.h"
#include "parse.h"
#include "picture.h"
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef enum file_kind { KIND_UNKNOWN, KIND_NPY, KIND_PNG, KIND_JPEG } file_kind;

static bool is_random(const char *source)
{
    return strcmp(source, "random") == 0 || strncmp(source, "random:", 7) == 0;
}

bool rnl_source_is_file(const char *source)
{
    return !is_random(source) && strcmp(source, "zeros") != 0;
}

static file_kind kind_of(FILE *file)
{
    unsigned char bytes[8] = {0};
    size_t count = fread(bytes, 1, sizeof bytes, file);
    rewind(file);
    if (count >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0)
        return KIND_NPY;
    if (count == 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0)
        return KIND_PNG;
    return count >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0 ? KIND_JPEG : KIND_UNKNOWN;
}

bool rnl_source_is_picture(const char *source)
{
    uint64_t bytes;
    FILE *file = rnl_source_is_file(source) ? rnl_file_open(source, &bytes) : NULL;
    file_kind kind = file ? kind_of(file) : KIND_UNKNOWN;
    if (file)
        fclose(file);
    return kind == KIND_PNG || kind == KIND_JPEG;
}

static rnl_exit load_generated(const char *source, const rnl_value_info *info, rnl_tensor *out_tensor)
{
    char name[RNL_CLI_NAME_BYTES];
    uint64_t seed = 0;
    size_t count, bytes;
    rnl_cli_clean(info->name, name, sizeof name);
    if (strncmp(source, "random:", 7) == 0 && !rnl_parse_whole(source + 7, UINT64_MAX, &seed))
        return rnl_cli_usage(rnl_cli_command(), "--input %s: the seed in '%s' is not a whole number", name, source);
    if (info->rank == SIZE_MAX)
        return rnl_cli_fail("input '%s' has no shape in the model: give it a file or --shape", name);
    out_tensor->dtype = info->dtype;
    out_tensor->rank = info->rank;
    for (size_t i = 0; i < info->rank; i++)
        out_tensor->shape[i] = info->shape[i] < 0 ? 1 : info->shape[i];
    char what[RNL_CLI_NAME_BYTES + 16];
    snprintf(what, sizeof what, "input '%s'", name);
    rnl_exit code = rnl_values_allocate(out_tensor, what);
    if (code == RNL_EXIT_DONE && is_random(source) &&
        rnl_values_bytes(out_tensor->dtype, out_tensor->shape, out_tensor->rank, &count, &bytes))
        rnl_values_random(out_tensor, count, seed);
    return code;
}

/* Without --layout: channels last where the model says so, [?,?,?,3], and first otherwise. */
static rnl_picture_layout layout_of(const rnl_value_info *info)
{
    size_t rank = info->rank;
    bool last = (rank == 3 || rank == 4) && info->shape[rank - 1] == 3 && info->shape[rank - 3] != 3;
    return last ? RNL_LAYOUT_NHWC : RNL_LAYOUT_NCHW;
}

/* --size, else the model's where it is fixed, else the picture's. */
static void picture_shape(const rnl_picture *picture, const rnl_value_info *info, const rnl_picture_options *options,
                          rnl_tensor *tensor)
{
    bool first = options->layout == RNL_LAYOUT_NCHW;
    size_t rank = info->rank == 3 ? 3 : 4;
    size_t at = rank - 3;
    size_t row = at + (first ? 1 : 0);
    int64_t height = info->rank == rank && info->shape[row] > 0 ? info->shape[row] : (int64_t)picture->height;
    int64_t width = info->rank == rank && info->shape[row + 1] > 0 ? info->shape[row + 1] : (int64_t)picture->width;
    tensor->dtype = info->dtype;
    tensor->rank = rank;
    tensor->shape[0] = 1;
    tensor->shape[first ? at : at + 2] = 3;
    tensor->shape[row] = options->height ? options->height : height;
    tensor->shape[row + 1] = options->width ? options->width : width;
}

static rnl_exit load_picture(FILE *file, file_kind kind, const char *path, const rnl_value_info *info,
                             const rnl_picture_options *options, rnl_tensor *out_tensor)
{
    rnl_picture picture = {0};
    rnl_exit code =
        kind == KIND_PNG ? rnl_picture_read_png(file, path, &picture) : rnl_picture_read_jpeg(file, path, &picture);
    if (code == RNL_EXIT_DONE) {
        rnl_picture_options settled = *options;
        if (settled.layout == RNL_LAYOUT_OF_MODEL)
            settled.layout = layout_of(info);
        picture_shape(&picture, info, &settled, out_tensor);
        code = rnl_picture_to_tensor(&picture, &settled, path, out_tensor);
    }
    rnl_picture_free(&picture);
    return code;
}

static rnl_exit check(const rnl_tensor *tensor, const rnl_value_info *info, const char *path, bool is_picture)
{
    char name[RNL_CLI_NAME_BYTES], has[RNL_SHAPE_TEXT_BYTES], wants[RNL_SHAPE_TEXT_BYTES];
    bool fits = tensor->dtype == info->dtype && (info->rank == SIZE_MAX || info->rank == tensor->rank);
    for (size_t i = 0; fits && info->rank != SIZE_MAX && i < info->rank; i++)
        fits = info->shape[i] < 0 || info->shape[i] == tensor->shape[i];
    if (fits)
        return RNL_EXIT_DONE;
    rnl_shape_text(tensor->shape, NULL, tensor->rank, has);
    rnl_shape_text(info->shape, info->dim_names, info->rank == SIZE_MAX ? 0 : info->rank, wants);
    return rnl_cli_fail("%s: %s %s does not fit input '%s', which is %s %s%s", path, rnl_dtype_name(tensor->dtype), has,
                        rnl_cli_clean(info->name, name, sizeof name), rnl_dtype_name(info->dtype),
                        info->rank == SIZE_MAX ? "of any shape" : wants,
                        is_picture ? " (see --size and --layout)" : "");
}

static rnl_exit load_file(const char *path, const rnl_value_info *info, const rnl_picture_options *picture,
                          rnl_tensor *out_tensor)
{
    uint64_t bytes = 0;
    FILE *file = rnl_file_open(path, &bytes);
    if (!file)
        return rnl_cli_fail("%s: %s", path, rnl_file_reason(errno));
    file_kind kind = kind_of(file);
    rnl_exit code = RNL_EXIT_DONE;
    if (kind == KIND_NPY)
        code = rnl_npy_read(file, bytes, path, out_tensor);
    else if (kind != KIND_UNKNOWN)
        code = load_picture(file, kind, path, info, picture, out_tensor);
    else
        code = rnl_cli_fail("%s: neither a .npy file nor a PNG or JPEG picture", path);
    fclose(file);
    return code == RNL_EXIT_DONE ? check(out_tensor, info, path, kind != KIND_NPY) : code;
}

rnl_exit rnl_source_load(const char *source, const rnl_value_info *info, const rnl_picture_options *picture,
                         rnl_tensor *out_tensor)
{
    *out_tensor = (rnl_tensor){0};
    rnl_exit code = rnl_source_is_file(source) ? load_file(source, info, picture, out_tensor)
                                               : load_generated(source, info, out_tensor);
    out_tensor->name = info->name;
    return code;
}
