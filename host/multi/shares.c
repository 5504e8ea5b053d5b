/* SPDX-License-Identifier: Apache-2.0 */
#include "multi/shares.h"

#include <stdint.h>

/* No row takes less: keeps divisions sane where a device's time does not grow with its rows. */
#define LEAST_ROW_NS 1e-3

rnl_line rnl_line_through(size_t rows, double ns, size_t more_rows, double more_ns)
{
    rnl_line line = {0};
    if (more_rows > rows)
        line.row_ns = (more_ns - ns) / (double)(more_rows - rows);
    line.fixed_ns = ns - line.row_ns * (double)rows;
    if (line.row_ns <= 0 || line.fixed_ns < 0) {
        line.fixed_ns = 0;
        line.row_ns = more_ns / (double)(more_rows ? more_rows : 1);
    }
    if (line.row_ns < LEAST_ROW_NS)
        line.row_ns = LEAST_ROW_NS;
    return line;
}

double rnl_line_at(const rnl_line *line, size_t rows)
{
    return rows ? line->fixed_ns + line->row_ns * (double)rows : 0;
}

/* Rows that are done after that long. */
static size_t rows_until(const rnl_line *line, double ns, size_t most)
{
    const double rows = line->is_out ? 0 : (ns - line->fixed_ns) / line->row_ns;
    if (rows <= 0)
        return 0;
    return rows >= (double)most ? most : (size_t)rows;
}

static size_t all_rows_until(const rnl_line *lines, size_t count, double ns, size_t most)
{
    size_t rows = 0;
    for (size_t i = 0; i < count && rows < most; i++)
        rows += rows_until(&lines[i], ns, most - rows);
    return rows;
}

/* The line that ends first with one more row. */
static size_t next_to_get(const rnl_line *lines, size_t count, const size_t *rows)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (!lines[i].is_out &&
            (best == SIZE_MAX || rnl_line_at(&lines[i], rows[i] + 1) < rnl_line_at(&lines[best], rows[best] + 1)))
            best = i;
    return best;
}

/* A time at which fewer rows than all are done, and at most `count` of them are missing. */
static double find_time(const rnl_line *lines, size_t count, size_t rows)
{
    double low = 0, high = 0;
    for (size_t i = 0; i < count; i++)
        if (!lines[i].is_out && (high == 0 || rnl_line_at(&lines[i], rows) < high))
            high = rnl_line_at(&lines[i], rows);
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        if (all_rows_until(lines, count, middle, rows) < rows)
            low = middle;
        else
            high = middle;
    }
    return low;
}

double rnl_shares_find(const rnl_line *lines, size_t count, size_t rows, size_t *out_rows)
{
    const double ns = find_time(lines, count, rows);
    double longest = 0;
    size_t given = 0;
    for (size_t i = 0; i < count; i++) {
        out_rows[i] = rows_until(&lines[i], ns, rows - given);
        given += out_rows[i];
    }
    for (size_t next; given < rows && (next = next_to_get(lines, count, out_rows)) != SIZE_MAX; given++)
        out_rows[next]++;
    for (size_t i = 0; i < count; i++)
        if (rnl_line_at(&lines[i], out_rows[i]) > longest)
            longest = rnl_line_at(&lines[i], out_rows[i]);
    return longest;
}
