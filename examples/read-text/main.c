/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the lines of text in a picture with PP-OCRv4's detector and reads them with its recogniser. */
#include "read_text.h"

#include <err.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h> /* MAX, PATH_MAX */

enum { MODELS, DEVICE, BOXES, CONFIDENCE, HELP };
static const char *option[] = {"models", NULL, NULL, "0.5", NULL};
static double min_confidence;

/* Returns the path of the picture. */
static char *picture_of(int argc, char **argv)
{
    static const char usage[] =
        "usage: read-text PICTURE [--models DIR] [--device SPEC] [--boxes OUT.png] [--min-confidence 0.5]";
    static const struct option names[] = {{"models", 1, NULL, 0},         {"device", 1, NULL, 0}, {"boxes", 1, NULL, 0},
                                          {"min-confidence", 1, NULL, 0}, {"help", 0, NULL, 0},   {0}};
    int which, more;
    while ((more = getopt_long(argc, argv, "", names, &which)) == 0)
        option[which] = optarg ? optarg : "";
    char *end;
    min_confidence = strtod(option[CONFIDENCE], &end);
    if (option[HELP])
        exit(puts(usage) < 0);
    if (more != -1 || optind + 1 != argc || end == option[CONFIDENCE] || *end)
        errx(2, "%s", usage);
    return argv[optind];
}

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        err(1, NULL);
    return memory;
}

/* The first line of runnel's message is the cause. */
static void check(rnl_status status)
{
    if (status != RNL_OK)
        errx(1, "%.*s", (int)strcspn(rnl_last_error()->message, "\n"), rnl_last_error()->message);
}

static rnl_session *open_network(rnl_device *device, const char *file, rnl_graph **out_graph)
{
    char path[PATH_MAX];
    rnl_model *model;
    rnl_session *session;
    snprintf(path, sizeof path, "%s/%s", option[MODELS], file);
    check(rnl_graph_load(path, out_graph));
    check(rnl_model_open(*out_graph, device, NULL, &model));
    check(rnl_session_create(model, &session));
    rnl_model_release(model);
    return session;
}

/* One colour between the four pixels around (x, y), which count from the part's corner. */
static float sample(const picture *from, box part, float x, float y, int color)
{
    float across = modff(fminf(fmaxf(x, 0), (float)(part.right - part.left - 1)), &x);
    float down = modff(fminf(fmaxf(y, 0), (float)(part.bottom - part.top - 1)), &y);
    int left = part.left + (int)x, top = part.top + (int)y;
    int right = left + 1 < part.right ? 3 : 0, below = top + 1 < part.bottom ? from->width * 3 : 0;
    const unsigned char *at = from->rgb + ((size_t)top * (size_t)from->width + (size_t)left) * 3 + color;
    return ((float)at[0] * (1 - across) + (float)at[right] * across) * (1 - down) +
           ((float)at[below] * (1 - across) + (float)at[below + right] * across) * down;
}

rnl_tensor run_on(rnl_session *session, const picture *from, box part, int width, int height, int row)
{
    rnl_tensor input = {.dtype = RNL_F32, .rank = 4, .shape = {1, 3, height, row}}, output = {0};
    float *planes = input.data = allocate((size_t)(3 * height * row), sizeof *planes);
    float step_x = (float)(part.right - part.left) / (float)width,
          step_y = (float)(part.bottom - part.top) / (float)height;
    input.size_bytes = (size_t)(3 * height * row) * sizeof *planes;
    for (int i = 0; i < 3 * height; i++)
        for (int x = 0; x < width; x++) {
            float at_x = ((float)x + 0.5f) * step_x - 0.5f, at_y = ((float)(i % height) + 0.5f) * step_y - 0.5f;
            planes[i * row + x] = sample(from, part, at_x, at_y, 2 - i / height) / 127.5f - 1;
        }
    check(rnl_session_run(session, &input, 1, &output, 1));
    free(planes);
    if (output.dtype != RNL_F32)
        errx(1, "a network's output is %s, not float32", rnl_dtype_name(output.dtype));
    return output;
}

/* What the recogniser's classes mean, one a line: class 0 is nothing, and the one after the last a space. */
static const char *find_characters(const rnl_graph *graph)
{
    size_t count;
    const rnl_metadata *metadata = rnl_graph_metadata(graph, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(metadata[i].key, "character") == 0)
            return metadata[i].value;
    errx(1, "the recogniser does not say which characters it knows");
}

static void print_character(const char *characters, int index)
{
    const char *const end = characters + strlen(characters);
    const char *line_end = memchr(characters, '\n', (size_t)(end - characters));
    for (; index > 1 && line_end; index--) {
        characters = line_end + 1;
        line_end = memchr(characters, '\n', (size_t)(end - characters));
    }
    const bool is_there = index == 1 && characters < end;
    printf("%.*s", is_there ? (int)((line_end ? line_end : end) - characters) : 1, is_there ? characters : " ");
}

/* The mean probability of what each step reads, repetitions and blanks left out; prints it if `characters` are given.
 */
static double decode(const rnl_tensor *result, const char *characters)
{
    double sum = 0;
    int read = 0, before = 0;
    for (int64_t t = 0; t < result->shape[1]; t++) {
        const float *p = (const float *)result->data + t * result->shape[2];
        int best = 0;
        for (int i = 1; i < result->shape[2]; i++)
            best = p[i] > p[best] ? i : best;
        if (best != before && best != 0) {
            sum += (double)p[best];
            read++;
            if (characters)
                print_character(characters, best);
        }
        before = best;
    }
    return read ? sum / read : 0;
}

/* Prints what it reads; false when that is nothing, or too uncertain. */
static bool read_line(rnl_session *recogniser, const char *characters, const picture *in, box line)
{
    int width = (int)fmin(ceil(48.0 * (line.right - line.left) / (line.bottom - line.top)), 3200);
    rnl_tensor result = run_on(recogniser, in, line, width, 48, MAX(320, (width + 31) / 32 * 32));
    if (result.rank != 3 || result.shape[0] != 1)
        errx(1, "the recogniser's output is not one row of classes a step");
    double confidence = decode(&result, NULL);
    if (!(confidence > 0 && confidence >= min_confidence))
        return false;
    decode(&result, characters);
    printf("\t%.3f\n", confidence);
    return true;
}

int main(int argc, char **argv)
{
    static box lines[MOST_LINES];
    picture in = read_picture(picture_of(argc, argv));
    rnl_device *device;
    rnl_graph *graphs[2];
    check(rnl_device_open(option[DEVICE], NULL, &device));
    fprintf(stderr, "device: %s\n", rnl_device_get_info(device)->name);
    rnl_session *detector = open_network(device, "ch_PP-OCRv4_det_infer.onnx", &graphs[0]);
    rnl_session *recogniser = open_network(device, "ch_PP-OCRv4_rec_infer.onnx", &graphs[1]);
    const char *characters = find_characters(graphs[1]);
    int count = find_lines(detector, &in, lines), read = 0;
    for (int i = 0; i < count; i++)
        if (read_line(recogniser, characters, &in, lines[i]))
            lines[read++] = lines[i];
    if (fflush(stdout) != 0)
        err(1, "standard output");
    if (option[BOXES])
        write_boxes(option[BOXES], &in, lines, read);
    rnl_session_release(recogniser);
    rnl_session_release(detector);
    rnl_graph_release(graphs[1]);
    rnl_graph_release(graphs[0]);
    rnl_device_release(device);
    free(in.rgb);
    return 0;
}
