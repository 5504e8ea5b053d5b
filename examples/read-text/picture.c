/* SPDX-License-Identifier: Apache-2.0 */
/* PNG and JPEG files. */
#include "read_text.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h> /* wants stdio.h before it */
#include <png.h>

static picture make_picture(const char *path, size_t width, size_t height)
{
    if (width - 1 > 65535 || height - 1 > 65535 || width * height > 1 << 26)
        errx(1, "%s: %zu x %zu pixels; at most 65536 a side and 2^26 in all can be read", path, width, height);
    return (picture){(int)width, (int)height, allocate(width * height, 3)};
}

static picture read_png(FILE *file, const char *path)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    const png_color white = {255, 255, 255}; /* behind what is transparent */
    picture out = {0};
    if (png_image_begin_read_from_stdio(&image, file)) {
        image.format = PNG_FORMAT_RGB;
        out = make_picture(path, image.width, image.height);
        (void)png_image_finish_read(&image, &white, out.rgb, 0, NULL);
    }
    if (PNG_IMAGE_FAILED(image))
        errx(1, "%s: not a PNG picture that can be read: %s", path, image.message);
    return out;
}

/* Called for errors, and for warnings, which mean pixels lost: most often the file was cut short. */
static void on_jpeg_message(j_common_ptr jpeg)
{
    char reason[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, reason);
    errx(1, "%s: not a JPEG picture that can be read: %s", (const char *)jpeg->client_data, reason);
}

static picture read_jpeg(FILE *file, char *path)
{
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct jpeg = {.err = jpeg_std_error(&errors), .client_data = path};
    errors.output_message = on_jpeg_message;
    jpeg_create_decompress(&jpeg);
    jpeg_stdio_src(&jpeg, file);
    (void)jpeg_read_header(&jpeg, TRUE);
    picture out = make_picture(path, jpeg.image_width, jpeg.image_height);
    jpeg.out_color_space = JCS_RGB;
    (void)jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW row = out.rgb + (size_t)jpeg.output_scanline * jpeg.output_width * 3;
        (void)jpeg_read_scanlines(&jpeg, &row, 1);
    }
    (void)jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return out;
}

picture read_picture(char *path)
{
    FILE *file = fopen(path, "rb");
    int first = file ? getc(file) : 0;
    if (!file || ferror(file))
        err(1, "%s", path);
    if (first != 0x89 && first != 0xff)
        errx(1, "%s: neither a PNG nor a JPEG picture", path);
    rewind(file);
    picture out = first == 0xff ? read_jpeg(file, path) : read_png(file, path);
    fclose(file);
    return out;
}

void write_boxes(const char *path, picture *on, const box *boxes, int count)
{
    for (const box *b = boxes; b < boxes + count; b++)
        for (int y = b->top; y < b->bottom; y++)
            for (int x = b->left; x < b->right; x++)
                if (y < b->top + 2 || y >= b->bottom - 2 || x < b->left + 2 || x >= b->right - 2)
                    memcpy(on->rgb + ((size_t)y * (size_t)on->width + (size_t)x) * 3, "\xe6\x1e\x3c", 3);
    png_image image = {.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB};
    image.width = (png_uint_32)on->width, image.height = (png_uint_32)on->height;
    if (!png_image_write_to_file(&image, path, 0, on->rgb, 0, NULL))
        errx(1, "%s: %s", path, image.message);
}
