/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool rnl_picture_allocate(rnl_picture *picture, size_t width, size_t height)
{
    if (width == 0 || height == 0 || width > RNL_PICTURE_PIXELS / height)
        return false;
    picture->width = width;
    picture->height = height;
    picture->samples = malloc(width * height * 3 * sizeof *picture->samples);
    return picture->samples != NULL;
}

void rnl_picture_free(rnl_picture *picture)
{
    free(picture->samples);
    *picture = (rnl_picture){0};
}

/* Where an output row or column reads: two neighbours and the weight of the second. */
typedef struct tap {
    size_t first, second;
    double weight;
} tap;

/* Pixel centres at half-integers, edges repeated, no smoothing: what OpenCV's INTER_LINEAR does. */
static tap make_tap(size_t index, size_t from, size_t to)
{
    double at = ((double)index + 0.5) * (double)from / (double)to - 0.5;
    double last = (double)(from - 1);
    at = at < 0 ? 0 : at > last ? last : at;
    size_t first = (size_t)at;
    return (tap){first, first + 1 < from ? first + 1 : first, at - (double)first};
}

/* One channel between four neighbours, 0 to 255. */
static double sample(const rnl_picture *picture, tap x, tap y, size_t channel)
{
    const uint16_t *top = picture->samples + y.first * picture->width * 3 + channel;
    const uint16_t *bottom = picture->samples + y.second * picture->width * 3 + channel;
    double above = top[x.first * 3] + (top[x.second * 3] - (double)top[x.first * 3]) * x.weight;
    double below = bottom[x.first * 3] + (bottom[x.second * 3] - (double)bottom[x.first * 3]) * x.weight;
    return (above + (below - above) * y.weight) / 257;
}

typedef struct target {
    size_t height, width;
    size_t channel_stride, row_stride, column_stride; /* elements */
} target;

static target make_target(const rnl_tensor *tensor, rnl_picture_layout layout)
{
    size_t at = tensor->rank - 3;
    bool first = layout == RNL_LAYOUT_NCHW;
    size_t height = (size_t)tensor->shape[at + (first ? 1 : 0)];
    size_t width = (size_t)tensor->shape[at + (first ? 2 : 1)];
    return first ? (target){height, width, height * width, width, 1} : (target){height, width, 1, width * 3, 3};
}

static void store(rnl_tensor *tensor, size_t index, double pixel, double mean, double std)
{
    if (tensor->dtype == RNL_U8)
        ((uint8_t *)tensor->data)[index] = (uint8_t)lrint(pixel);
    else
        rnl_values_store(tensor->dtype, tensor->data, index, (pixel / 255 - mean) / std);
}

static void fill(const rnl_picture *picture, const rnl_picture_options *options, target to, rnl_tensor *tensor)
{
    for (size_t y = 0; y < to.height; y++) {
        tap row = make_tap(y, picture->height, to.height);
        for (size_t x = 0; x < to.width; x++) {
            tap column = make_tap(x, picture->width, to.width);
            for (size_t c = 0; c < 3; c++) {
                size_t source = options->color == RNL_COLOR_BGR ? 2 - c : c;
                size_t index = c * to.channel_stride + y * to.row_stride + x * to.column_stride;
                store(tensor, index, sample(picture, column, row, source), options->mean[c], options->std[c]);
            }
        }
    }
}

rnl_exit rnl_picture_to_tensor(const rnl_picture *picture, const rnl_picture_options *options, const char *path,
                               rnl_tensor *tensor)
{
    if (!rnl_dtype_is_float(tensor->dtype) && tensor->dtype != RNL_U8)
        return rnl_cli_fail("%s: a picture becomes a float or uint8 tensor, not %s", path,
                            rnl_dtype_name(tensor->dtype));
    if (tensor->dtype == RNL_U8 && options->has_mean_or_std)
        return rnl_cli_fail("%s: --mean and --std need a float input; this one is uint8", path);
    rnl_exit code = rnl_values_allocate(tensor, path);
    if (code == RNL_EXIT_DONE)
        fill(picture, options, make_target(tensor, options->layout), tensor);
    return code;
}
