/* SPDX-License-Identifier: Apache-2.0 */
#include "picture.h"

#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>

/* libjpeg leaves by longjmp too. The error manager comes first: libjpeg only knows its address. */
typedef struct decoder {
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct jpeg;
    jmp_buf out;
    JSAMPLE *row;
    rnl_picture picture;
    char reason[JMSG_LENGTH_MAX];
} decoder;

static void on_error(j_common_ptr common)
{
    decoder *d = (decoder *)common->err;
    d->errors.format_message(common, d->reason);
    longjmp(d->out, 1);
}

/* A warning that means lost pixels is an error; the rest is harmless. */
static void on_message(j_common_ptr common, int level)
{
    int code = common->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE))
        on_error(common);
}

static void refuse(decoder *d)
{
    snprintf(d->reason, sizeof d->reason, "%s", RNL_PICTURE_LIMIT_TEXT);
    longjmp(d->out, 1);
}

static void store_rgb(const JSAMPLE *row, size_t width, uint16_t *out_samples)
{
    for (size_t i = 0; i < width * 3; i++)
        out_samples[i] = (uint16_t)(row[i] * 257);
}

/* Adobe's CMYK, which is what exists in practice, is stored inverted. */
static void store_cmyk(const JSAMPLE *row, size_t width, bool inverted, uint16_t *out_samples)
{
    for (size_t x = 0; x < width; x++) {
        unsigned key = inverted ? row[x * 4 + 3] : 255u - row[x * 4 + 3];
        for (size_t c = 0; c < 3; c++) {
            unsigned ink = inverted ? row[x * 4 + c] : 255u - row[x * 4 + c];
            out_samples[x * 3 + c] = (uint16_t)((ink * key + 127) / 255 * 257);
        }
    }
}

static void read_rows(decoder *d)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    size_t width = jpeg->output_width;
    if (!rnl_picture_allocate(&d->picture, width, jpeg->output_height))
        refuse(d);
    d->row = malloc(width * (size_t)jpeg->output_components);
    if (!d->row)
        refuse(d);
    while (jpeg->output_scanline < jpeg->output_height) {
        uint16_t *samples = d->picture.samples + (size_t)jpeg->output_scanline * width * 3;
        (void)jpeg_read_scanlines(jpeg, &d->row, 1);
        if (jpeg->output_components == 4)
            store_cmyk(d->row, width, jpeg->saw_Adobe_marker, samples);
        else
            store_rgb(d->row, width, samples);
    }
}

static bool decode(decoder *d, FILE *file)
{
    if (setjmp(d->out) != 0)
        return false;
    jpeg_create_decompress(&d->jpeg);
    jpeg_stdio_src(&d->jpeg, file);
    (void)jpeg_read_header(&d->jpeg, TRUE);
    if ((uint64_t)d->jpeg.image_width * d->jpeg.image_height > RNL_PICTURE_PIXELS)
        refuse(d);
    d->jpeg.out_color_space = d->jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
    (void)jpeg_start_decompress(&d->jpeg);
    read_rows(d);
    (void)jpeg_finish_decompress(&d->jpeg);
    return true;
}

rnl_exit rnl_picture_read_jpeg(FILE *file, const char *path, rnl_picture *out_picture)
{
    decoder d = {.row = NULL};
    *out_picture = (rnl_picture){0};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.errors.error_exit = on_error;
    d.errors.emit_message = on_message;
    bool done = decode(&d, file);
    jpeg_destroy_decompress(&d.jpeg);
    free(d.row);
    if (!done) {
        rnl_picture_free(&d.picture);
        return rnl_cli_fail("%s: not a JPEG picture that can be read: %s", path, d.reason);
    }
    *out_picture = d.picture;
    return RNL_EXIT_DONE;
}
