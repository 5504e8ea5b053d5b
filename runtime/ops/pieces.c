/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pieces.h"
#include "ops/implementation.h"

#define LEAST_PIECE 1024 /* elements: below, a work-group of its own costs more than what it computes */
#define MOST_PIECE 8192
#define PIECES_A_THREAD 4
#define MAX_RANGE 32768 /* in the second and third dimension; NVIDIA's limit there is twice that */

typedef struct extent {
    int64_t columns, rows, blocks;
} extent;

bool rnl_pieces_index64(const rnl_dims *dims)
{
    return rnl_dims_elements(dims) > INT32_MAX / 2;
}

static bool has_neighbours(const rnl_dims *dims)
{
    const size_t inner = dims->rank - 1;
    if (dims->rank == 0 || dims->stride[0][inner] != 1)
        return false;
    for (size_t v = 1; v < dims->views; v++)
        if (dims->stride[v][inner] != 0 && dims->stride[v][inner] != 1)
            return false;
    return true;
}

size_t rnl_pieces_vector(const rnl_dims *dims, size_t widest)
{
    if (!has_neighbours(dims))
        return 1;
    const int64_t columns = dims->shape[dims->rank - 1], most = (int64_t)widest;
    int64_t vector = most;
    while (vector > 4 && columns % vector != 0)
        vector /= 2;
    if (columns >= 8 * most || columns % vector != 0) /* a rest costs little, or cannot be avoided */
        for (vector = most; vector > 4 && vector > columns;)
            vector /= 2;
    return (size_t)vector;
}

static extent whole(const rnl_dims *dims)
{
    const size_t rank = dims->rank;
    extent all = {1, 1, 1};
    if (rank > 0)
        all.columns = dims->shape[rank - 1];
    if (rank > 1)
        all.rows = dims->shape[rank - 2];
    for (size_t i = 0; i + 2 < rank; i++)
        all.blocks *= dims->shape[i];
    return all;
}

static int64_t quotient_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t at_least_one(int64_t value)
{
    return value > 1 ? value : 1;
}

/* Equal parts of at most `most` of `count`. */
static int64_t even_part(int64_t count, int64_t most)
{
    return most >= count ? count : quotient_up(count, quotient_up(count, at_least_one(most)));
}

static extent cpu_piece(const rnl_device *device, const extent *all, int64_t vector)
{
    const int64_t elements = all->columns * all->rows * all->blocks;
    int64_t most = elements / (PIECES_A_THREAD * at_least_one(device->info.compute_units));
    most = most < LEAST_PIECE ? LEAST_PIECE : most > MOST_PIECE ? MOST_PIECE : most;
    extent piece = {even_part(all->columns, most), 1, 1};
    if (piece.columns == all->columns)
        piece.rows = even_part(all->rows, most / piece.columns);
    else
        piece.columns = quotient_up(piece.columns, vector) * vector;
    if (piece.columns == all->columns && piece.rows == all->rows)
        piece.blocks = even_part(all->blocks, most / (piece.columns * piece.rows));
    return piece;
}

/* Neighbouring work-items take neighbouring vectors. */
static extent gpu_piece(const extent *all, int64_t vector)
{
    return (extent){vector, quotient_up(all->rows, MAX_RANGE), quotient_up(all->blocks, MAX_RANGE)};
}

void rnl_step_pieces(rnl_step_builder *builder, const rnl_dims *dims, size_t vector)
{
    const rnl_device *device = builder->list->device;
    const bool cpu = rnl_device_is_cpu(device);
    const extent all = whole(dims);
    const extent piece = cpu ? cpu_piece(device, &all, (int64_t)vector) : gpu_piece(&all, (int64_t)vector);
    rnl_step_indices(builder, 4, (int64_t[3]){all.columns, all.rows, all.blocks}, 3, 0);
    rnl_step_indices(builder, 4, (int64_t[3]){piece.columns, piece.rows, piece.blocks}, 3, 0);
    rnl_step_dims(builder, dims->shape, dims->rank, 1);
    const size_t items[3] = {(size_t)quotient_up(all.columns, piece.columns), (size_t)quotient_up(all.rows, piece.rows),
                             (size_t)quotient_up(all.blocks, piece.blocks)};
    size_t local[3] = {1, 1, 1};
    if (!cpu)
        rnl_group_of_64(items, local);
    rnl_step_range(builder, 3, items, local);
}
