/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

/* libpng leaves by longjmp: what must survive it lives here, outside the function that calls setjmp. */
typedef struct decoder {
    png_structp png;
    png_infop info;
    png_bytep *rows;
    rnl_picture picture;
    char reason[128];
} decoder;

static void on_error(png_structp png, png_const_charp text)
{
    decoder *d = png_get_error_ptr(png);
    snprintf(d->reason, sizeof d->reason, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* Any PNG as three channels of 16 bits in the host's byte order. */
static void ask_for_rgb16(decoder *d)
{
    png_set_expand_16(d->png); /* palette and grey of 1, 2 and 4 bits too */
    png_set_strip_alpha(d->png);
    png_set_gray_to_rgb(d->png);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    png_set_swap(d->png);
#endif
    (void)png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
}

static void read_rows(decoder *d)
{
    size_t width = png_get_image_width(d->png, d->info);
    size_t height = png_get_image_height(d->png, d->info);
    if (png_get_rowbytes(d->png, d->info) != width * 6)
        png_error(d->png, "an unusual kind of PNG");
    if (!rnl_picture_allocate(&d->picture, width, height))
        png_error(d->png, RNL_PICTURE_LIMIT_TEXT);
    d->rows = calloc(height, sizeof *d->rows);
    if (!d->rows)
        png_error(d->png, RNL_PICTURE_LIMIT_TEXT);
    for (size_t y = 0; y < height; y++)
        d->rows[y] = (png_bytep)(d->picture.samples + y * width * 3);
    png_read_image(d->png, d->rows);
    png_read_end(d->png, NULL);
}

static bool decode(decoder *d, FILE *file)
{
    if (setjmp(png_jmpbuf(d->png)) != 0)
        return false;
    png_init_io(d->png, file);
    png_read_info(d->png, d->info);
    ask_for_rgb16(d);
    read_rows(d);
    return true;
}

rnl_exit rnl_picture_read_png(FILE *file, const char *path, rnl_picture *out_picture)
{
    decoder d = {.reason = "out of memory"};
    bool done = false;
    *out_picture = (rnl_picture){0};
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
    if (d.png)
        d.info = png_create_info_struct(d.png);
    if (d.info)
        done = decode(&d, file);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    free(d.rows);
    if (!done) {
        rnl_picture_free(&d.picture);
        return rnl_cli_fail("%s: not a PNG picture that can be read: %s", path, d.reason);
    }
    *out_picture = d.picture;
    return RNL_EXIT_DONE;
}
