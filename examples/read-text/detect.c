/* SPDX-License-Identifier: Apache-2.0 */
/* From the detector's map, the probability that a pixel is in the core of a line, to boxes of whole lines. */
#include "read_text.h"

#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h> /* MIN, MAX */

typedef struct map {
    int width, height;
    const float *probability;
    bool *taken;
    int *stack;
} map;

static box around(box a, box b)
{
    return (box){MIN(a.left, b.left), MIN(a.top, b.top), MAX(a.right, b.right), MAX(a.bottom, b.bottom)};
}

static bool take(map *m, int x, int y)
{
    int at = y * m->width + x;
    if (x < 0 || x >= m->width || y < 0 || y >= m->height || m->taken[at] || !(m->probability[at] > 0.3f))
        return false;
    return m->taken[at] = true;
}

/* Takes all likely pixels that hang together with the first, corners included; returns their bounds. */
static box take_component(map *m, int first)
{
    box bounds = {m->width, m->height, 0, 0};
    int depth = 0;
    for (m->stack[depth++] = first; depth > 0;) {
        int at = m->stack[--depth], x = at % m->width, y = at / m->width;
        bounds = around(bounds, (box){x, y, x + 1, y + 1});
        for (int i = 0; i < 9; i++)
            if (take(m, x + i % 3 - 1, y + i / 3 - 1))
                m->stack[depth++] = at + (i / 3 - 1) * m->width + i % 3 - 1;
    }
    return bounds;
}

/* The network marks lines that are shrunk by area * 1.6 / perimeter: undoes that, in the picture's pixels. */
static bool make_box(const map *m, box core, const picture *in, box *out_box)
{
    double width = core.right - core.left, height = core.bottom - core.top, sum = 0;
    for (int y = core.top; y < core.bottom; y++)
        for (int x = core.left; x < core.right; x++)
            sum += (double)m->probability[y * m->width + x];
    if (width < 3 || height < 3 || sum < 0.5 * width * height)
        return false;
    double grow = width * height * 1.6 / (2 * (width + height));
    double more = grow + 0.3 * (height + 2 * grow); /* with air above and below, the recogniser sees spaces better */
    double wider = (double)in->width / m->width, higher = (double)in->height / m->height;
    out_box->left = (int)fmax((core.left - grow) * wider + 0.5, 0);
    out_box->top = (int)fmax((core.top - more) * higher + 0.5, 0);
    out_box->right = (int)fmin((core.right + grow) * wider + 0.5, in->width);
    out_box->bottom = (int)fmin((core.bottom + more) * higher + 0.5, in->height);
    return out_box->right - out_box->left > 3 && out_box->bottom - out_box->top > 3;
}

static bool same_row(box a, box b)
{
    return 2 * (MIN(a.bottom, b.bottom) - MAX(a.top, b.top)) > MIN(a.bottom - a.top, b.bottom - b.top);
}

/* Adds a box, joined with those that wide spaces tore off the same line, in the order of reading; returns the count. */
static int add_box(box *lines, int count, box b)
{
    for (int i = 0; i < count; i++) {
        int gap = MAX(lines[i].left, b.left) - MIN(lines[i].right, b.right);
        if (same_row(lines[i], b) && gap < MIN(lines[i].bottom - lines[i].top, b.bottom - b.top)) {
            b = around(lines[i], b);
            memmove(&lines[i], &lines[i + 1], (size_t)(--count - i) * sizeof b);
            i = -1; /* the wider box may reach others */
        }
    }
    int at = count;
    for (; at > 0 && (same_row(lines[at - 1], b) ? lines[at - 1].left > b.left : lines[at - 1].top > b.top); at--)
        lines[at] = lines[at - 1];
    lines[at] = b;
    return count + 1;
}

int find_lines(rnl_session *detector, const picture *in, box *out_lines)
{
    double ratio = fmin(fmax(1, 736.0 / MIN(in->width, in->height)), 2000.0 / MAX(in->width, in->height));
    int width = (int)fmax(1, round(in->width * ratio / 32)) * 32;
    int height = (int)fmax(1, round(in->height * ratio / 32)) * 32;
    rnl_tensor result = run_on(detector, in, (box){0, 0, in->width, in->height}, width, height, width);
    if (result.rank != 4 || result.shape[0] * result.shape[1] != 1 || result.shape[2] != height ||
        result.shape[3] != width)
        errx(1, "the detector's output is not a map of its input");
    int count = 0, pixels = width * height;
    map m = {width, height, result.data, allocate((size_t)pixels, 1), allocate((size_t)pixels, sizeof *m.stack)};
    for (int i = 0; count < MOST_LINES && i < pixels; i++) {
        box b;
        if (take(&m, i % width, i / width) && make_box(&m, take_component(&m, i), in, &b))
            count = add_box(out_lines, count, b);
    }
    free(m.taken);
    free(m.stack);
    return count;
}
