/* SPDX-License-Identifier: Apache-2.0 */
/* ValueInfoProto: name, element type and shape of an input or output. */
#include "onnx/reader.h"

#include "base/memory.h"
#include <inttypes.h>

typedef struct shape_fields {
    rnl_reader *reader;
    rnl_value_info *info;
    size_t rank; /* as the file has it, also beyond RNL_MAX_RANK */
} shape_fields;

static rnl_status read_dimension(rnl_reader *reader, rnl_view bytes, int64_t *out_size, const char **out_name)
{
    rnl_view_field name = {.reader = reader};
    rnl_pb_Dimension message = {.dim_param = RNL_ONNX_VIEW(&name)};
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_Dimension_fields, &message, "a dimension"));
    *out_size = message.has_dim_value && message.dim_value >= 0 ? message.dim_value : -1;
    *out_name = NULL;
    if (*out_size < 0 && name.view.size > 0)
        TRY(rnl_onnx_text(reader, name.view, out_name));
    return RNL_OK;
}

static bool on_dimension(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    shape_fields *shape = *arg;
    rnl_view bytes;
    if (!rnl_onnx_take(shape->reader, stream, &bytes))
        return false;
    size_t i = shape->rank++;
    if (i >= RNL_MAX_RANK)
        return true;
    return rnl_onnx_ok(shape->reader,
                       read_dimension(shape->reader, bytes, &shape->info->shape[i], &shape->info->dim_names[i]));
}

/* The shape must be one that could be: free dimensions count as 1. */
static rnl_status check_shape(const rnl_reader *reader, const rnl_value_info *info, size_t rank, const char *what)
{
    int64_t known[RNL_MAX_RANK] = {0};
    int64_t elements, bytes;
    if (rank > RNL_MAX_RANK)
        return FAIL(RNL_UNIMPLEMENTED, "%s has %s of %zu dimensions; at most %d are supported", reader->label, what,
                    rank, RNL_MAX_RANK);
    for (size_t i = 0; i < rank; i++)
        known[i] = info->shape[i] < 0 ? 1 : info->shape[i];
    if (!rnl_shape_elements(known, rank, &elements) || __builtin_mul_overflow(elements, INT64_C(8), &bytes))
        return FAIL(RNL_INVALID_ARGUMENT, "%s has %s whose shape is too large for any memory", reader->label, what);
    return RNL_OK;
}

rnl_status rnl_onnx_read_value_info(rnl_reader *reader, rnl_view bytes, const char *what,
                                    rnl_value_info_fields *out_fields)
{
    rnl_view_field name = {.reader = reader};
    shape_fields shape = {.reader = reader, .info = &out_fields->info};
    rnl_pb_ValueInfo message = {.name = RNL_ONNX_VIEW(&name), .type.tensor_type.shape.dim = {{on_dimension}, &shape}};
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_ValueInfo_fields, &message, what));
    const rnl_pb_TensorType *type = &message.type.tensor_type;
    if (type->elem_type < 0 || type->elem_type > RNL_ONNX_MAX_TYPE)
        return FAIL(RNL_INVALID_ARGUMENT, "%s has %s of the element type %" PRId32 ", which is none of ONNX's",
                    reader->label, what, type->elem_type);
    TRY(check_shape(reader, &out_fields->info, shape.rank, what));
    out_fields->name = name.view;
    out_fields->is_no_tensor = message.has_type && !message.type.has_tensor_type;
    out_fields->info.dtype = (rnl_dtype)type->elem_type;
    out_fields->info.rank = type->has_shape ? shape.rank : SIZE_MAX;
    return RNL_OK;
}
