/* SPDX-License-Identifier: Apache-2.0 */
/* SparseTensorProto, made dense: nothing behind the reader knows of sparse tensors. */
#include "onnx/reader.h"

#include "base/memory.h"
#include <inttypes.h>
#include <string.h>

#define MAX_DENSE_BYTES                                                                                                \
    ((size_t)1 << 28) /* of all sparse tensors of a model: a few bytes of a file can ask for any                       \
                       */

typedef struct sparse_fields {
    rnl_view_field values, indices;
    int64_t dims[RNL_MAX_RANK];
    size_t rank; /* as the file has it */
} sparse_fields;

static bool on_dim(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    sparse_fields *sparse = *arg;
    while (stream->bytes_left > 0) {
        uint64_t bits;
        if (!pb_decode_varint(stream, &bits))
            return false;
        if (sparse->rank < RNL_MAX_RANK)
            sparse->dims[sparse->rank] = (int64_t)bits;
        sparse->rank++;
    }
    return true;
}

/* Zeros of the whole shape. */
static rnl_status make_dense(rnl_reader *reader, const sparse_fields *fields, rnl_host_tensor *dense,
                             unsigned char **out_bytes)
{
    int64_t elements;
    rnl_reader *root = reader;
    while (root->parent)
        root = root->parent;
    if (fields->rank > RNL_MAX_RANK)
        return FAIL(RNL_UNIMPLEMENTED, "it has %zu dimensions; at most %d are supported", fields->rank, RNL_MAX_RANK);
    dense->rank = fields->rank;
    memcpy(dense->shape, fields->dims, sizeof fields->dims);
    if (!rnl_shape_elements(dense->shape, dense->rank, &elements))
        return FAIL(RNL_INVALID_ARGUMENT, "its shape is impossible");
    if (!rnl_size_mul((size_t)elements, rnl_dtype_bytes(dense->dtype), &dense->size_bytes) ||
        dense->size_bytes > MAX_DENSE_BYTES - root->sparse_bytes)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "sparse tensors of more than %zu bytes together are not supported",
                    MAX_DENSE_BYTES);
    root->sparse_bytes += dense->size_bytes;
    TRY(rnl_zone_alloc(&reader->graph->zone, dense->size_bytes ? dense->size_bytes : 1, 1, out_bytes));
    dense->data = memset(*out_bytes, 0, dense->size_bytes);
    return RNL_OK;
}

/* Where value `i` stands: one number for each, row-major, or as many as there are dimensions. False: nowhere. */
static bool find_place(const rnl_host_tensor *indices, const rnl_host_tensor *dense, int64_t i, int64_t *out_place)
{
    size_t numbers = indices->rank == 2 ? dense->rank : 1;
    const unsigned char *at = (const unsigned char *)indices->data + (size_t)i * numbers * sizeof(int64_t);
    int64_t elements = 0;
    *out_place = 0;
    if (!rnl_shape_elements(dense->shape, dense->rank, &elements))
        return false;
    for (size_t k = 0; k < numbers; k++) {
        int64_t index, size = indices->rank == 2 ? dense->shape[k] : elements;
        memcpy(&index, at + k * sizeof index, sizeof index);
        if (index < 0 || index >= size)
            return false;
        *out_place = *out_place * size + index;
    }
    return true;
}

static rnl_status place_values(const rnl_host_tensor *values, const rnl_host_tensor *indices,
                               const rnl_host_tensor *dense, unsigned char *bytes)
{
    size_t width = rnl_dtype_bytes(dense->dtype);
    bool listed = indices->rank == 1 || (indices->rank == 2 && indices->shape[1] == (int64_t)dense->rank);
    if (values->rank != 1 || indices->dtype != RNL_I64 || !listed || indices->shape[0] != values->shape[0])
        return FAIL(RNL_INVALID_ARGUMENT, "its indices are not those of its values");
    for (int64_t i = 0; i < values->shape[0]; i++) {
        int64_t place;
        if (!find_place(indices, dense, i, &place))
            return FAIL(RNL_INVALID_ARGUMENT, "its value %" PRId64 " stands outside", i);
        memcpy(bytes + (size_t)place * width, (const unsigned char *)values->data + (size_t)i * width, width);
    }
    return RNL_OK;
}

static rnl_status read_parts(rnl_reader *reader, const sparse_fields *fields, const char *what, rnl_view *out_name,
                             rnl_host_tensor *dense)
{
    rnl_view none;
    unsigned char *bytes = NULL;
    rnl_host_tensor values, indices = {.dtype = RNL_I64, .rank = 1};
    if (!fields->values.view.data)
        return FAIL(RNL_INVALID_ARGUMENT, "it has no values");
    TRY(rnl_onnx_read_tensor(reader, fields->values.view, what, out_name, &values));
    if (fields->indices.view.data)
        TRY(rnl_onnx_read_tensor(reader, fields->indices.view, what, &none, &indices));
    dense->dtype = values.dtype;
    if (rnl_dtype_bytes(values.dtype) == 0)
        return RNL_OK; /* its users are refused by the check */
    TRY(make_dense(reader, fields, dense, &bytes));
    return place_values(&values, &indices, dense, bytes);
}

rnl_status rnl_onnx_read_sparse(rnl_reader *reader, rnl_view bytes, const char *what, rnl_view *out_name,
                                rnl_host_tensor *out_tensor)
{
    sparse_fields fields = {.values = {.reader = reader}, .indices = {.reader = reader}};
    rnl_pb_SparseTensor message = {.values = RNL_ONNX_VIEW(&fields.values),
                                   .indices = RNL_ONNX_VIEW(&fields.indices),
                                   .dims = {{on_dim}, &fields}};
    *out_name = (rnl_view){0};
    *out_tensor = (rnl_host_tensor){0};
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_SparseTensor_fields, &message, "a sparse tensor"));
    TRY(read_parts(reader, &fields, what, out_name, out_tensor), "the sparse tensor of %s", what);
    return RNL_OK;
}
