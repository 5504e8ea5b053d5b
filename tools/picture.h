/* SPDX-License-Identifier: Apache-2.0 */
/* PNG and JPEG files as RGB, and from there to tensors. */
#ifndef RUNNEL_CLI_PICTURE_H
#define RUNNEL_CLI_PICTURE_H

#include "options.h"

/* Three channels, red first, 16 bits each (8-bit samples are times 257, so 65535 is white in both). */
typedef struct rnl_picture {
    size_t width, height;
    uint16_t *samples;
} rnl_picture;

/* The file is open at its start. Alpha is dropped, grey and palette become RGB. */
rnl_exit rnl_picture_read_png(FILE *file, const char *path, rnl_picture *out_picture);
rnl_exit rnl_picture_read_jpeg(FILE *file, const char *path, rnl_picture *out_picture);
void rnl_picture_free(rnl_picture *picture);
/* Memory for width x height; refuses sizes past 2^27 pixels. False when it cannot be had. */
bool rnl_picture_allocate(rnl_picture *picture, size_t width, size_t height);
#define RNL_PICTURE_PIXELS ((size_t)1 << 27)
#define RNL_PICTURE_LIMIT_TEXT "too large: more than 134217728 pixels, or no memory"

/*
 * Fills `tensor`, whose dtype and shape are given: by options->layout (not RNL_LAYOUT_OF_MODEL) [1,3,H,W] or [1,H,W,3]
 * (rank 3: without the 1), of height x width. Float types: (pixel/255 - mean)/std. uint8: the pixel itself.
 */
rnl_exit rnl_picture_to_tensor(const rnl_picture *picture, const rnl_picture_options *options, const char *path,
                               rnl_tensor *tensor);

#endif
