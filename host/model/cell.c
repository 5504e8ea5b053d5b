/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cell.h"

#include "base/memory.h"
#include "graph/host_element.h"
#include <string.h>

rnl_status rnl_cell_create(rnl_dtype dtype, size_t rank, const int64_t *shape, rnl_cell **out_cell)
{
    rnl_cell *cell = NULL;
    int64_t elements;
    size_t bytes;
    *out_cell = NULL;
    if (!rnl_shape_elements(shape, rank, &elements) || !rnl_size_mul((size_t)elements, rnl_dtype_bytes(dtype), &bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a tensor of shape %s is too large for any memory",
                    rnl_shape_format(shape, rank).text);
    TRY(rnl_alloc(1, sizeof *cell, &cell));
    cell->references = 1;
    cell->desc.dtype = dtype;
    cell->desc.rank = rank;
    for (size_t i = 0; i < rank; i++)
        cell->desc.shape[i] = shape[i];
    *out_cell = cell;
    return RNL_OK;
}

rnl_cell *rnl_cell_retain(rnl_cell *cell)
{
    if (cell)
        cell->references++;
    return cell;
}

void rnl_cell_release(rnl_cell *cell)
{
    while (cell && --cell->references == 0) {
        rnl_cell *base = cell->base;
        rnl_buffer_release(cell->buffer);
        rnl_free(cell->owned);
        rnl_free(cell);
        cell = base;
    }
}

void rnl_cell_set(rnl_cell **variable, rnl_cell *cell)
{
    rnl_cell *old = *variable;
    *variable = rnl_cell_retain(cell);
    rnl_cell_release(old);
}

size_t rnl_cell_bytes(const rnl_cell *cell)
{
    return (size_t)rnl_desc_elements(&cell->desc) * rnl_dtype_bytes(cell->desc.dtype);
}

rnl_status rnl_cell_alloc_host(rnl_cell *cell)
{
    size_t bytes = rnl_cell_bytes(cell);
    TRY(rnl_alloc(bytes ? bytes : 1, 1, &cell->owned));
    cell->host = cell->owned;
    return RNL_OK;
}

rnl_status rnl_cell_alloc_device(rnl_session *session, rnl_cell *cell)
{
    size_t bytes = rnl_cell_bytes(cell);
    if (bytes == 0)
        return RNL_OK;
    TRY(rnl_buffer_create(session->model->device, RNL_MEMORY_DEVICE, bytes, &cell->buffer),
        "a value of shape %s between two plans", rnl_shape_format(cell->desc.shape, cell->desc.rank).text);
    cell->offset_bytes = 0;
    return RNL_OK;
}

rnl_status rnl_cell_to_host(rnl_session *session, rnl_cell *cell)
{
    rnl_status status = RNL_OK;
    if (cell->host)
        return RNL_OK;
    TRY(rnl_cell_alloc_host(cell));
    if (rnl_cell_bytes(cell) == 0)
        return RNL_OK;
    GOTO(rnl_stream_read(session->stream, cell->owned, cell->buffer, cell->offset_bytes, rnl_cell_bytes(cell)));
    GOTO(rnl_stream_synchronize(session->stream));
    return RNL_OK;
done:
    cell->host = NULL; /* the memory goes with the cell: a command may still write to it */
    return status;
}

rnl_status rnl_cell_to_device(rnl_session *session, rnl_cell *cell)
{
    if (cell->buffer || rnl_cell_bytes(cell) == 0)
        return RNL_OK;
    TRY(rnl_cell_alloc_device(session, cell));
    return rnl_stream_write(session->stream, cell->buffer, 0, cell->host, rnl_cell_bytes(cell));
}

rnl_status rnl_cell_part(rnl_cell *base, size_t offset_bytes, size_t rank, const int64_t *shape, rnl_cell **out_cell)
{
    rnl_cell *cell = NULL;
    TRY(rnl_cell_create(base->desc.dtype, rank, shape, &cell));
    cell->base = rnl_cell_retain(base);
    if (base->host)
        cell->host = (const unsigned char *)base->host + offset_bytes;
    if (base->buffer) {
        cell->buffer = rnl_buffer_retain(base->buffer);
        cell->offset_bytes = base->offset_bytes + offset_bytes;
    }
    *out_cell = cell;
    return RNL_OK;
}

rnl_status rnl_cell_of_int(rnl_dtype dtype, size_t rank, int64_t value, rnl_cell **out_cell)
{
    const int64_t shape[RNL_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    rnl_cell *cell = NULL;
    *out_cell = NULL;
    TRY(rnl_cell_create(dtype, rank, shape, &cell));
    rnl_status status = rnl_cell_alloc_host(cell);
    if (status != RNL_OK) {
        rnl_cell_release(cell);
        return status;
    }
    rnl_element_store(cell->owned, 0, dtype, (rnl_number){.i = value});
    *out_cell = cell;
    return RNL_OK;
}

rnl_status rnl_cell_int(rnl_session *session, rnl_cell *cell, const char *what, int64_t *out_value)
{
    *out_value = 0;
    if (rnl_desc_elements(&cell->desc) != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "%s has shape %s; it must be one element", what,
                    rnl_shape_format(cell->desc.shape, cell->desc.rank).text);
    if (rnl_dtype_kind(cell->desc.dtype) == RNL_NUMBER_FLOAT)
        return FAIL(RNL_INVALID_ARGUMENT, "%s is %s", what, rnl_dtype_name(cell->desc.dtype));
    TRY(rnl_cell_to_host(session, cell));
    *out_value = rnl_element_load(cell->host, 0, cell->desc.dtype).i;
    return RNL_OK;
}
