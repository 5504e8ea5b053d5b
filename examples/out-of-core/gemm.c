/* SPDX-License-Identifier: Apache-2.0 */
/*
 * c = a * b of matrices that the device does not hold, row-major. Some rows of c are on the device at a time, a panel;
 * the same rows of a pass by, a few columns in a tile, and with them as many rows of b. Each tile adds a part of all
 * sums:
 *
 *     c[rows, :] += a[rows, from .. to] * b[from .. to, :]
 *
 * Each element of b that is copied is used for as many products as there are rows: 2 * rows operations for 4 bytes.
 * That must be more than what the device computes while its bus carries 4 bytes, else copying takes longer than
 * computing. So the room belongs to c. A tile of b is one stretch of memory; one of a is gathered from its rows by the
 * host, which is little work, since all of a is copied only once. The rows of c that are done travel back meanwhile.
 */
#include "ooc.h"

#include <math.h>
#include <runnel/gemm.h>
#include <string.h>

#define PANELS 2      /* of rows of c: one is computed while another leaves */
#define TILES 2       /* of a and of b: one is computed with while another arrives */
#define ROW_ALIGN 128 /* what a work-group computes, or a multiple: others would leave a part of one idle */

typedef struct product {
    const ooc_options *options;
    ooc_streams streams;
    size_t m, n, k;
    size_t rows, depth; /* of a panel; columns of a and rows of b in a tile */
    size_t panels, tiles;
    ooc_array a, b, c, gathered[TILES];
    rnl_buffer *panels_c[PANELS], *tiles_a[TILES], *tiles_b[TILES];
    rnl_event *c_done[PANELS], *c_free[PANELS], *sent[TILES], *here[TILES], *used[TILES];
    size_t turn; /* tiles so far in this run */
    bool computes;
} product;

/* ---- sizes ---------------------------------------------------------------------------------------------------- */

static size_t ceil_div(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A quarter of the budget is for b, where tiles must be deep enough for adding to c in memory not to matter. */
static size_t choose_depth(const product *p, size_t budget)
{
    const size_t row = TILES * p->n * sizeof(float);
    size_t depth = p->options->depth ? p->options->depth : budget / 4 / row;
    if (depth >= ROW_ALIGN)
        depth -= depth % ROW_ALIGN;
    return depth == 0 ? 1 : least(depth, p->k);
}

/* What a row of c takes, and its part of the tiles of a. */
static size_t bytes_a_row(const product *p, size_t depth)
{
    return (PANELS * p->n + TILES * depth) * sizeof(float);
}

static size_t bytes_of_b(const product *p, size_t depth)
{
    return TILES * depth * p->n * sizeof(float);
}

static size_t fewest_bytes(const product *p)
{
    return bytes_a_row(p, 1) + bytes_of_b(p, 1);
}

/* Panels of about the same size, as large as `bytes` allow; false where they allow none. */
static bool choose_sizes(product *p, size_t bytes)
{
    if (bytes < fewest_bytes(p))
        return false;
    p->depth = choose_depth(p, bytes);
    while (p->depth > 1 && bytes_of_b(p, p->depth) + bytes_a_row(p, p->depth) > bytes)
        p->depth /= 2;
    const size_t most = least(p->m, (bytes - bytes_of_b(p, p->depth)) / bytes_a_row(p, p->depth));
    const size_t aligned = most > ROW_ALIGN ? most - most % ROW_ALIGN : most;
    p->rows = ceil_div(p->m, ceil_div(p->m, aligned));
    p->rows = least(aligned, ceil_div(p->rows, ROW_ALIGN) * ROW_ALIGN);
    p->panels = ceil_div(p->m, p->rows);
    p->tiles = ceil_div(p->k, p->depth);
    return true;
}

static size_t panel_rows(const product *p, size_t panel)
{
    return least(p->rows, p->m - panel * p->rows);
}

static size_t tile_depth(const product *p, size_t tile)
{
    return least(p->depth, p->k - tile * p->depth);
}

static double bytes_moved(const product *p)
{
    const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    return sizeof(float) * (m * k + (double)p->panels * k * n + m * n);
}

/* Panel and tile number what kind of product it is: full or the last one, overwriting c or adding to it. */
static rnl_gemm_desc describe(const product *p, size_t panel, size_t tile)
{
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    desc.m = (int64_t)panel_rows(p, panel), desc.n = (int64_t)p->n, desc.k = (int64_t)tile_depth(p, tile);
    desc.beta = tile == 0 ? 0 : 1; /* the first tile overwrites what an earlier panel left */
    return desc;
}

/* The kinds that there are: the first and the last panel with the first, the second and the last tile. */
static size_t list_kinds(const product *p, size_t kinds[6][2])
{
    const size_t panels[2] = {0, p->panels - 1}, tiles[3] = {0, 1, p->tiles - 1};
    size_t count = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 3; j++) {
            const bool again = (i > 0 && p->panels == 1) || tiles[j] >= p->tiles || (j == 2 && tiles[j] <= 1);
            if (again)
                continue;
            kinds[count][0] = panels[i];
            kinds[count++][1] = tiles[j];
        }
    return count;
}

/* That products take besides their operands: the stream keeps each kind's. */
static size_t scratch_bytes(const product *p)
{
    size_t kinds[6][2], bytes = 0;
    const size_t count = list_kinds(p, kinds);
    for (size_t i = 0; i < count; i++) {
        const rnl_gemm_desc desc = describe(p, kinds[i][0], kinds[i][1]);
        rnl_gemm *gemm;
        rnl_gemm_info info;
        CHECK(rnl_gemm_create(p->streams.device, &desc, &gemm));
        rnl_gemm_get_info(gemm, &info);
        bytes += info.scratch_bytes;
        rnl_gemm_release(gemm);
    }
    return bytes;
}

static size_t tile_bytes(const product *p)
{
    const size_t panels = least(p->panels, PANELS), tiles = least(p->panels * p->tiles, TILES);
    return (panels * p->rows * p->n + tiles * p->depth * (p->rows + p->n)) * sizeof(float);
}

/* Smaller tiles take less scratch memory, or more. */
static void fit_budget(product *p, size_t budget)
{
    size_t bytes = budget, scratch = 0;
    for (int attempt = 0; attempt < 8 && choose_sizes(p, bytes); attempt++) {
        scratch = scratch_bytes(p);
        if (scratch <= budget && tile_bytes(p) <= budget - scratch)
            return;
        bytes = scratch < bytes ? least(bytes - scratch / 2 - 1, budget - least(scratch, budget)) : 0;
    }
    fprintf(stderr,
            "out-of-core: a budget of %zu bytes is too small: a product of %zu x %zu x %zu takes at least %zu\n",
            budget, p->m, p->n, p->k, fewest_bytes(p) + scratch);
    exit(1);
}

/* ---- copying in ----------------------------------------------------------------------------------------------- */

/* The host goes on once the tile before the last one is on its way, so it is never far ahead of the device. */
static void bring_a(product *p, size_t panel, size_t tile, size_t slot)
{
    const size_t rows = panel_rows(p, panel), depth = tile_depth(p, tile);
    const float *first = p->a.data + panel * p->rows * p->k + tile * p->depth;
    float *gathered = p->gathered[slot].data;
    if (p->sent[slot])
        CHECK(rnl_event_synchronize(p->sent[slot]));
    for (size_t row = 0; row < rows; row++)
        memcpy(gathered + row * depth, first + row * p->k, depth * sizeof(float));
    CHECK(rnl_stream_write(p->streams.in, p->tiles_a[slot], 0, gathered, rows * depth * sizeof(float)));
    ooc_record(p->streams.in, &p->sent[slot]);
}

static void bring_b(product *p, size_t tile, size_t slot)
{
    CHECK(rnl_stream_write(p->streams.in, p->tiles_b[slot], 0, p->b.data + tile * p->depth * p->n,
                           tile_depth(p, tile) * p->n * sizeof(float)));
}

/* ---- computing and copying out -------------------------------------------------------------------------------- */

static void multiply(product *p, size_t panel, size_t tile, size_t slot)
{
    const rnl_gemm_desc desc = describe(p, panel, tile);
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    operands.a = p->tiles_a[slot];
    operands.b = p->tiles_b[slot];
    operands.c = p->panels_c[panel % PANELS];
    CHECK(rnl_gemm_run(p->streams.compute, &desc, &operands));
}

static void take_c(product *p, size_t panel)
{
    const size_t slot = panel % PANELS;
    ooc_record(p->streams.compute, &p->c_done[slot]);
    ooc_wait(p->streams.out, p->c_done[slot]);
    CHECK(rnl_stream_read(p->streams.out, p->c.data + panel * p->rows * p->n, p->panels_c[slot], 0,
                          panel_rows(p, panel) * p->n * sizeof(float)));
    ooc_record(p->streams.out, &p->c_free[slot]);
}

static void do_tile(product *p, size_t panel, size_t tile)
{
    const size_t slot = p->turn++ % TILES;
    ooc_wait(p->streams.in, p->used[slot]);
    bring_a(p, panel, tile, slot);
    bring_b(p, tile, slot);
    ooc_record(p->streams.in, &p->here[slot]);
    ooc_wait(p->streams.compute, p->here[slot]);
    if (p->computes)
        multiply(p, panel, tile, slot);
    ooc_record(p->streams.compute, &p->used[slot]);
}

static double stream_product(product *p, bool computes)
{
    const double start = ooc_seconds();
    p->computes = computes;
    p->turn = 0;
    for (size_t panel = 0; panel < p->panels; panel++) {
        ooc_wait(p->streams.compute, p->c_free[panel % PANELS]);
        for (size_t tile = 0; tile < p->tiles; tile++)
            do_tile(p, panel, tile);
        take_c(p, panel);
    }
    ooc_synchronize(&p->streams);
    return ooc_seconds() - start;
}

/* ---- in core -------------------------------------------------------------------------------------------------- */

static double in_core_product(product *p, rnl_buffer *const matrices[3])
{
    rnl_stream *stream = p->streams.compute;
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    double best = 0;
    desc.m = (int64_t)p->m, desc.n = (int64_t)p->n, desc.k = (int64_t)p->k;
    operands.a = matrices[0], operands.b = matrices[1], operands.c = matrices[2];
    CHECK(rnl_stream_write(stream, matrices[0], 0, p->a.data, p->m * p->k * sizeof(float)));
    CHECK(rnl_stream_write(stream, matrices[1], 0, p->b.data, p->k * p->n * sizeof(float)));
    for (int run = 0; run < 3; run++) { /* the first one compiles */
        CHECK(rnl_stream_synchronize(stream));
        const double start = ooc_seconds();
        CHECK(rnl_gemm_run(stream, &desc, &operands));
        CHECK(rnl_stream_synchronize(stream));
        const double seconds = ooc_seconds() - start;
        best = run == 0 || seconds < best ? seconds : best;
    }
    return best;
}

/* All matrices on the device; 0 where it has no room for them. */
static double in_core(product *p)
{
    rnl_buffer *matrices[3] = {0};
    const size_t elements[3] = {p->m * p->k, p->k * p->n, p->m * p->n};
    size_t made = 0;
    while (made < 3 && rnl_buffer_create(p->streams.device, RNL_MEMORY_DEVICE, elements[made] * sizeof(float),
                                         &matrices[made]) == RNL_OK)
        made++;
    const double seconds = made == 3 ? in_core_product(p, matrices) : 0;
    if (made < 3)
        printf("in core:     the device has no room for all three matrices\n");
    for (size_t i = 0; i < 3; i++)
        rnl_buffer_release(matrices[i]);
    return seconds;
}

/* ---- the check ------------------------------------------------------------------------------------------------ */

/* Samples are spread by a step that meets all rows and columns; the last element is one of them. */
static size_t count_wrong(const product *p)
{
    const size_t total = p->m * p->n, samples = least(p->options->samples, total);
    size_t wrong = 0;
    for (size_t i = 0; i < samples; i++) {
        const size_t at = i + 1 == samples ? total - 1 : (size_t)(((uint64_t)i * 0x9E3779B97F4A7C15u) % total);
        const size_t row = at / p->n, column = at % p->n;
        double sum = 0, size = 0;
        for (size_t j = 0; j < p->k; j++) {
            const double term = (double)p->a.data[row * p->k + j] * (double)p->b.data[j * p->n + column];
            sum += term;
            size += fabs(term);
        }
        wrong += !(fabs((double)p->c.data[at] - sum) <= (double)p->k * 0x1p-24 * size);
    }
    return wrong;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static void prepare(product *p)
{
    const ooc_options *options = p->options;
    p->a = ooc_array_create(options, p->streams.device, p->m * p->k, 1);
    p->b = ooc_array_create(options, p->streams.device, p->k * p->n, 2);
    p->c = ooc_array_create(options, p->streams.device, p->m * p->n, 3);
    for (size_t i = 0; i < PANELS && i < p->panels; i++)
        p->panels_c[i] = ooc_device_memory(p->streams.device, p->rows * p->n);
    for (size_t i = 0; i < TILES && i < p->panels * p->tiles; i++) {
        p->gathered[i] = ooc_array_create(options, p->streams.device, p->rows * p->depth, 4);
        p->tiles_a[i] = ooc_device_memory(p->streams.device, p->rows * p->depth);
        p->tiles_b[i] = ooc_device_memory(p->streams.device, p->depth * p->n);
    }
}

/* Compiles. */
static void warm(product *p)
{
    size_t kinds[6][2];
    const size_t count = list_kinds(p, kinds);
    for (size_t i = 0; i < count; i++)
        multiply(p, kinds[i][0], kinds[i][1], 0);
    ooc_synchronize(&p->streams);
}

static void finish(product *p)
{
    ooc_drop(p->c_done, PANELS);
    ooc_drop(p->c_free, PANELS);
    ooc_drop(p->sent, TILES);
    ooc_drop(p->here, TILES);
    ooc_drop(p->used, TILES);
    for (size_t i = 0; i < PANELS; i++)
        rnl_buffer_release(p->panels_c[i]);
    for (size_t i = 0; i < TILES; i++) {
        rnl_buffer_release(p->tiles_a[i]);
        rnl_buffer_release(p->tiles_b[i]);
        ooc_array_release(&p->gathered[i]);
    }
    ooc_array_release(&p->a);
    ooc_array_release(&p->b);
    ooc_array_release(&p->c);
    ooc_close(&p->streams);
}

/* Of the speed that is possible: that of computing, or of copying where it takes longer. */
static double report(product *p, double copies, double streamed, double resident)
{
    const double gigaflops = 2e-9 * (double)p->m * (double)p->n * (double)p->k, gigabytes = bytes_moved(p) * 1e-9;
    const double bound = resident > copies ? resident : copies;
    if (resident > 0)
        printf("in core:     %10.3f ms  %10.1f GFLOP/s\n", resident * 1e3, gigaflops / resident);
    printf("copies only: %10.3f ms  %10.2f GB/s\n", copies * 1e3, gigabytes / copies);
    printf("out of core: %10.3f ms  %10.1f GFLOP/s, %.2f GB/s", streamed * 1e3, gigaflops / streamed,
           gigabytes / streamed);
    if (resident > 0)
        printf(", %.3f of the in-core speed", resident / streamed);
    printf("\nbound by %s: %.3f of what is possible\n", resident > copies ? "computing" : "copying", bound / streamed);
    return bound / streamed;
}

bool ooc_gemm(const ooc_options *options)
{
    product p = {.options = options, .m = options->m, .n = options->n, .k = options->k};
    const size_t data = (p.m * p.k + p.k * p.n + p.m * p.n) * sizeof(float);
    const size_t budget = ooc_budget(options, data);
    ooc_open(options, data, &p.streams);
    fit_budget(&p, budget);
    prepare(&p);
    printf("gemm %zu x %zu x %zu, %zu bytes: %zu panels of %zu rows, tiles of %zu of a's columns and b's rows, %zu a "
           "panel\n",
           p.m, p.n, p.k, data, p.panels, p.rows, p.depth, p.tiles);
    printf("%.0f operations for each byte that is copied\n",
           2 * (double)p.m * (double)p.n * (double)p.k / bytes_moved(&p));
    warm(&p);
    (void)stream_product(&p, false); /* pages and pinned slots are there from now on */
    const double copies = stream_product(&p, false), streamed = stream_product(&p, true);
    const size_t wrong = count_wrong(&p);
    ooc_check_memory(options, p.streams.device, data);
    const double resident = options->in_core ? in_core(&p) : 0, ratio = report(&p, copies, streamed, resident);
    printf("compared with float64: %zu wrong\n", wrong);
    finish(&p);
    return wrong == 0 && ratio >= options->require;
}
