/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READ_TEXT_H
#define READ_TEXT_H
#include <runnel/runnel.h>

typedef struct picture {
    int width, height;
    unsigned char *rgb;
} picture;

/* In pixels; right and bottom lie just outside. */
typedef struct box {
    int left, top, right, bottom;
} box;

/* The program ends at its first failure: errx() prints one sentence. */
void *allocate(size_t count, size_t size);
picture read_picture(char *path);
/* Draws the outlines of boxes, and writes a PNG file. */
void write_boxes(const char *path, picture *on, const box *boxes, int count);
/* Stretches a part of the picture to width x height, and runs a network on its planes of blue, green and red between -1
 * and 1, padded with 0 to `row` columns. The result's data belongs to the session. */
rnl_tensor run_on(rnl_session *session, const picture *from, box part, int width, int height, int row);
/* Finds horizontal lines of text, in the order of reading; returns how many. */
#define MOST_LINES 1000
int find_lines(rnl_session *detector, const picture *in, box *out_lines);
#endif
