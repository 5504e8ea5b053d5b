/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures: every kind of PNG and JPEG against the pixels they were made of, resizing against its definition. */
#include "picture.h"

#include <check.h>
#include <jpeglib.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static unsigned next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* A PNG of random samples; `samples` holds what was written, each of 8 or 16 bits. */
static bytes make_png(unsigned width, unsigned height, int color, int depth, int interlace, uint16_t *samples)
{
    bytes out = {0};
    unsigned seed = 5;
    unsigned channels = color == PNG_COLOR_TYPE_GRAY         ? 1
                        : color == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                        : color == PNG_COLOR_TYPE_RGB        ? 3
                        : color == PNG_COLOR_TYPE_PALETTE    ? 1
                                                             : 4;
    size_t row_bytes = (width * channels * (unsigned)depth + 7) / 8;
    unsigned char *data = calloc(height, row_bytes);
    png_bytep *rows = calloc(height, sizeof *rows);
    for (size_t y = 0; y < height; y++) {
        rows[y] = data + y * row_bytes;
        for (size_t i = 0; i < width * channels; i++) {
            unsigned sample = next(&seed) & ((1u << depth) - 1);
            samples[y * width * channels + i] = (uint16_t)sample;
            if (depth == 16) {
                rows[y][2 * i] = (unsigned char)(sample >> 8);
                rows[y][2 * i + 1] = (unsigned char)sample;
            } else {
                size_t per_byte = 8 / (size_t)depth;
                rows[y][i / per_byte] |= (unsigned char)(sample << (8 - depth - (int)(i % per_byte) * depth));
            }
        }
    }
    FILE *file = open_memstream(&out.data, &out.size);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_color palette[256];
    for (int i = 0; i < 256; i++)
        palette[i] = (png_color){(png_byte)i, (png_byte)(255 - i), (png_byte)(i * 7)};
    png_init_io(png, file);
    png_set_IHDR(png, info, width, height, depth, color, interlace, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_PLTE(png, info, palette, 1 << depth);
    png_write_info(png, info);
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    fclose(file);
    free(rows);
    free(data);
    return out;
}

static rnl_exit read_png(bytes file, size_t size, rnl_picture *out_picture)
{
    FILE *stream = fmemopen(file.data, size ? size : 1, "rb");
    rnl_cli_failure_clear();
    rnl_exit code = rnl_picture_read_png(stream, "p.png", out_picture);
    fclose(stream);
    return code;
}

/* What a sample should be as 16 bits. */
static unsigned expected(int color, int depth, unsigned sample, size_t channel)
{
    if (color != PNG_COLOR_TYPE_PALETTE)
        return sample * (65535u / ((1u << depth) - 1));
    unsigned parts[3] = {sample, 255 - sample, (sample * 7) & 255};
    return parts[channel] * 257;
}

START_TEST(test_png_kinds)
{
    static const int kinds[][2] = {
        {PNG_COLOR_TYPE_GRAY, 1},        {PNG_COLOR_TYPE_GRAY, 2},       {PNG_COLOR_TYPE_GRAY, 4},
        {PNG_COLOR_TYPE_GRAY, 8},        {PNG_COLOR_TYPE_GRAY, 16},      {PNG_COLOR_TYPE_GRAY_ALPHA, 8},
        {PNG_COLOR_TYPE_GRAY_ALPHA, 16}, {PNG_COLOR_TYPE_RGB, 8},        {PNG_COLOR_TYPE_RGB, 16},
        {PNG_COLOR_TYPE_RGB_ALPHA, 8},   {PNG_COLOR_TYPE_RGB_ALPHA, 16}, {PNG_COLOR_TYPE_PALETTE, 1},
        {PNG_COLOR_TYPE_PALETTE, 4},     {PNG_COLOR_TYPE_PALETTE, 8}};
    enum { WIDTH = 13, HEIGHT = 9 };
    uint16_t samples[WIDTH * HEIGHT * 4];
    for (size_t k = 0; k < 2 * sizeof kinds / sizeof kinds[0]; k++) {
        int color = kinds[k / 2][0];
        int depth = kinds[k / 2][1];
        size_t channels = color == PNG_COLOR_TYPE_GRAY_ALPHA  ? 2
                          : color == PNG_COLOR_TYPE_RGB       ? 3
                          : color == PNG_COLOR_TYPE_RGB_ALPHA ? 4
                                                              : 1;
        rnl_picture picture;
        bytes file = make_png(WIDTH, HEIGHT, color, depth, k % 2 ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, samples);
        ck_assert_msg(read_png(file, file.size, &picture) == RNL_EXIT_DONE, "%s", rnl_cli_failure());
        ck_assert(picture.width == WIDTH && picture.height == HEIGHT);
        for (size_t i = 0; i < WIDTH * HEIGHT; i++)
            for (size_t c = 0; c < 3; c++)
                ck_assert_uint_eq(picture.samples[i * 3 + c],
                                  expected(color, depth, samples[i * channels + (channels >= 3 ? c : 0)], c));
        rnl_picture_free(&picture);
        free(file.data);
    }
}
END_TEST

START_TEST(test_png_damage)
{
    uint16_t samples[20 * 20 * 3];
    rnl_picture picture;
    bytes file = make_png(20, 20, PNG_COLOR_TYPE_RGB, 8, PNG_INTERLACE_NONE, samples);
    for (size_t size = 0; size < file.size; size++) {
        ck_assert_int_eq(read_png(file, size, &picture), RNL_EXIT_FAILED);
        ck_assert_ptr_null(picture.samples);
        ck_assert(strncmp(rnl_cli_failure(), "p.png: not a PNG picture", 24) == 0);
    }
    unsigned seed = 11;
    char *sound = malloc(file.size);
    memcpy(sound, file.data, file.size);
    for (int round = 0; round < 3000; round++) {
        memcpy(file.data, sound, file.size);
        file.data[next(&seed) % file.size] ^= (char)(1 << next(&seed) % 8);
        (void)read_png(file, file.size, &picture);
        rnl_picture_free(&picture);
    }
    free(sound);
    free(file.data);
}
END_TEST

static bytes make_jpeg(unsigned size, int channels, J_COLOR_SPACE space, bool progressive, const JSAMPLE *color)
{
    unsigned char *data = NULL;
    unsigned long length = 0;
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    JSAMPLE *row = malloc(size * (size_t)channels);
    for (size_t i = 0; i < size * (size_t)channels; i++)
        row[i] = color[i % (size_t)channels];
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &data, &length);
    jpeg.image_width = jpeg.image_height = size;
    jpeg.input_components = channels;
    jpeg.in_color_space = space;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    if (progressive)
        jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < size)
        (void)jpeg_write_scanlines(&jpeg, &row, 1);
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    free(row);
    return (bytes){(char *)data, length};
}

static rnl_exit read_jpeg(bytes file, size_t size, rnl_picture *out_picture)
{
    FILE *stream = fmemopen(file.data, size ? size : 1, "rb");
    rnl_cli_failure_clear();
    rnl_exit code = rnl_picture_read_jpeg(stream, "p.jpg", out_picture);
    fclose(stream);
    return code;
}

static void check_flat(bytes file, unsigned red, unsigned green, unsigned blue)
{
    unsigned wanted[3] = {red, green, blue};
    rnl_picture picture;
    ck_assert_msg(read_jpeg(file, file.size, &picture) == RNL_EXIT_DONE, "%s", rnl_cli_failure());
    for (size_t i = 0; i < picture.width * picture.height * 3; i++)
        ck_assert_int_le(abs((int)(picture.samples[i] / 257) - (int)wanted[i % 3]), 2);
    rnl_picture_free(&picture);
    free(file.data);
}

START_TEST(test_jpeg_kinds)
{
    check_flat(make_jpeg(24, 3, JCS_RGB, false, (JSAMPLE[]){200, 100, 50}), 200, 100, 50);
    check_flat(make_jpeg(17, 3, JCS_RGB, true, (JSAMPLE[]){10, 250, 90}), 10, 250, 90);
    check_flat(make_jpeg(24, 1, JCS_GRAYSCALE, false, (JSAMPLE[]){77}), 77, 77, 77);
    /* libjpeg writes the Adobe marker, which means inverted inks: 255 is none of it. */
    check_flat(make_jpeg(24, 4, JCS_CMYK, false, (JSAMPLE[]){200, 100, 50, 255}), 200, 100, 50);
}
END_TEST

START_TEST(test_jpeg_damage)
{
    rnl_picture picture;
    bytes file = make_jpeg(24, 3, JCS_RGB, false, (JSAMPLE[]){200, 100, 50});
    for (size_t size = 0; size + 2 < file.size; size++) { /* the end marker itself may be missing */
        ck_assert_msg(read_jpeg(file, size, &picture) == RNL_EXIT_FAILED, "%zu of %zu bytes", size, file.size);
        ck_assert_ptr_null(picture.samples);
        ck_assert(strncmp(rnl_cli_failure(), "p.jpg: not a JPEG picture", 25) == 0);
    }
    unsigned seed = 3;
    char *sound = malloc(file.size);
    memcpy(sound, file.data, file.size);
    for (int round = 0; round < 3000; round++) {
        memcpy(file.data, sound, file.size);
        file.data[next(&seed) % file.size] = (char)next(&seed);
        (void)read_jpeg(file, file.size, &picture);
        rnl_picture_free(&picture);
    }
    free(sound);
    free(file.data);
}
END_TEST

/* Columns 0 and 255 made twice as wide: centres at -0.25, 0.25, 0.75, 1.25 of the source. */
START_TEST(test_resize)
{
    uint16_t samples[2 * 3] = {0, 0, 65535, 65535, 65535, 0};
    rnl_picture picture = {2, 1, samples};
    rnl_picture_options options = {.layout = RNL_LAYOUT_NCHW, .mean = {0, 0, 0.5}, .std = {1, 1, 0.25}};
    rnl_tensor tensor = {.dtype = RNL_F32, .rank = 4, .shape = {1, 3, 2, 4}};
    static const float ramp[4] = {0, 0.25f, 0.75f, 1};
    ck_assert_int_eq(rnl_picture_to_tensor(&picture, &options, "p", &tensor), RNL_EXIT_DONE);
    const float *values = tensor.data;
    for (size_t y = 0; y < 2; y++)
        for (size_t x = 0; x < 4; x++) {
            ck_assert_float_eq_tol(values[y * 4 + x], ramp[x], 1e-6f);
            ck_assert_float_eq_tol(values[8 + y * 4 + x], ramp[x], 1e-6f);
            ck_assert_float_eq_tol(values[16 + y * 4 + x], (1 - ramp[x] - 0.5f) / 0.25f, 1e-6f);
        }
    free(tensor.data);
    options.layout = RNL_LAYOUT_NHWC;
    options.color = RNL_COLOR_BGR;
    options.mean[2] = 0;
    options.std[2] = 1;
    tensor = (rnl_tensor){.dtype = RNL_F32, .rank = 4, .shape = {1, 1, 2, 3}};
    ck_assert_int_eq(rnl_picture_to_tensor(&picture, &options, "p", &tensor), RNL_EXIT_DONE);
    values = tensor.data;
    for (size_t x = 0; x < 2; x++) {
        ck_assert_float_eq(values[x * 3], x ? 0 : 1);
        ck_assert_float_eq(values[x * 3 + 1], x ? 1 : 0);
        ck_assert_float_eq(values[x * 3 + 2], x ? 1 : 0);
    }
    free(tensor.data);
}
END_TEST

START_TEST(test_types)
{
    uint16_t samples[3] = {257 * 3, 257 * 200, 65535};
    rnl_picture picture = {1, 1, samples};
    rnl_picture_options options = {.layout = RNL_LAYOUT_NCHW, .std = {1, 1, 1}};
    rnl_tensor tensor = {.dtype = RNL_U8, .rank = 3, .shape = {3, 1, 1}};
    ck_assert_int_eq(rnl_picture_to_tensor(&picture, &options, "p", &tensor), RNL_EXIT_DONE);
    ck_assert_mem_eq(tensor.data, "\x03\xc8\xff", 3);
    free(tensor.data);
    rnl_cli_failure_clear();
    tensor = (rnl_tensor){.dtype = RNL_I64, .rank = 3, .shape = {3, 1, 1}};
    ck_assert_int_eq(rnl_picture_to_tensor(&picture, &options, "p", &tensor), RNL_EXIT_FAILED);
    ck_assert_str_eq(rnl_cli_failure(), "p: a picture becomes a float or uint8 tensor, not int64");
    rnl_cli_failure_clear();
    options.has_mean_or_std = true;
    tensor = (rnl_tensor){.dtype = RNL_U8, .rank = 3, .shape = {3, 1, 1}};
    ck_assert_int_eq(rnl_picture_to_tensor(&picture, &options, "p", &tensor), RNL_EXIT_FAILED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("picture");
    TCase *tests = tcase_create("picture");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_png_kinds);
    tcase_add_test(tests, test_png_damage);
    tcase_add_test(tests, test_jpeg_kinds);
    tcase_add_test(tests, test_jpeg_damage);
    tcase_add_test(tests, test_resize);
    tcase_add_test(tests, test_types);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
