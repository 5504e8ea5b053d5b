/* SPDX-License-Identifier: Apache-2.0 */
#include "npy.h"
#include "small.h"
#include "values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const size_t header_limit = 64 * 1024;

static rnl_exit fail_file(const char *path, const char *reason)
{
    return rnl_cli_fail("%s: not a .npy file that can be used: %s", path, reason);
}

static bool read_all(FILE *file, void *data, size_t count)
{
    return count == 0 || fread(data, 1, count, file) == count;
}

/* Magic, version and the header's length; *out_prefix is the bytes these take. */
static const char *read_prefix(FILE *file, size_t *out_length, size_t *out_prefix)
{
    unsigned char bytes[12] = {0};
    if (!read_all(file, bytes, 8) || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return "it does not start like one";
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return "its format is none of 1.0, 2.0 and 3.0";
    size_t count = bytes[6] == 1 ? 2 : 4;
    if (!read_all(file, bytes + 8, count))
        return "it ends in the header";
    *out_prefix = 8 + count;
    *out_length = (size_t)bytes[8] | (size_t)bytes[9] << 8 | (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    return *out_length > header_limit ? "its header is too long" : NULL;
}

static rnl_exit read_header(FILE *file, const char *path, rnl_npy_header *out_header, size_t *out_bytes)
{
    size_t length = 0;
    size_t prefix = 0;
    const char *reason = read_prefix(file, &length, &prefix);
    if (reason)
        return fail_file(path, reason);
    char *text = malloc(length + 1);
    if (!text)
        return rnl_cli_fail("%s: out of memory", path);
    reason = read_all(file, text, length) ? rnl_npy_parse_header(text, length, out_header) : "it ends in the header";
    free(text);
    *out_bytes = prefix + length;
    return reason ? fail_file(path, reason) : RNL_EXIT_DONE;
}

/* Any other byte than 0 is true. */
static void normalise_bool(unsigned char *data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        data[i] = data[i] != 0;
}

rnl_exit rnl_npy_read(FILE *file, uint64_t size_bytes, const char *path, rnl_tensor *out_tensor)
{
    rnl_npy_header header;
    size_t header_bytes = 0;
    size_t count, bytes;
    *out_tensor = (rnl_tensor){0};
    rnl_exit code = read_header(file, path, &header, &header_bytes);
    if (code != RNL_EXIT_DONE)
        return code;
    char shape[RNL_SHAPE_TEXT_BYTES];
    rnl_shape_text(header.shape, NULL, header.rank, shape);
    if (!rnl_values_bytes(header.dtype, header.shape, header.rank, &count, &bytes) ||
        bytes != size_bytes - header_bytes)
        return rnl_cli_fail("%s: %s %s does not match the %llu bytes of data in the file", path,
                            rnl_dtype_name(header.dtype), shape, (unsigned long long)(size_bytes - header_bytes));
    out_tensor->dtype = header.dtype;
    out_tensor->rank = header.rank;
    memcpy(out_tensor->shape, header.shape, sizeof header.shape);
    code = rnl_values_allocate(out_tensor, path);
    if (code == RNL_EXIT_DONE && !read_all(file, out_tensor->data, bytes))
        code = rnl_cli_fail("%s: cannot be read to its end", path);
    if (code != RNL_EXIT_DONE) {
        free(out_tensor->data);
        *out_tensor = (rnl_tensor){0};
    } else if (header.dtype == RNL_BOOL) {
        normalise_bool(out_tensor->data, count);
    }
    return code;
}

static const char *type_text(rnl_dtype dtype)
{
    switch (dtype) {
    case RNL_F32:
    case RNL_BF16:
        return "<f4";
    case RNL_F64:
        return "<f8";
    case RNL_F16:
        return "<f2";
    case RNL_U8:
        return "|u1";
    case RNL_I8:
        return "|i1";
    case RNL_BOOL:
        return "|b1";
    case RNL_U16:
        return "<u2";
    case RNL_I16:
        return "<i2";
    case RNL_U32:
        return "<u4";
    case RNL_I32:
        return "<i4";
    case RNL_U64:
        return "<u8";
    case RNL_I64:
        return "<i8";
    default:
        if (rnl_small_is_float(dtype))
            return "<f4";
        return dtype == RNL_I4 || dtype == RNL_I2 ? "|i1" : rnl_small_is(dtype) ? "|u1" : NULL;
    }
}

/* The whole header, padded so that the data starts at a multiple of 64 bytes. */
static size_t format_header(const rnl_tensor *tensor, char out_text[512])
{
    char shape[RNL_SHAPE_TEXT_BYTES];
    rnl_shape_text(tensor->shape, NULL, tensor->rank, shape);
    shape[strlen(shape) - 1] = '\0'; /* drop the closing bracket */
    int used = snprintf(out_text + 10, 384, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }",
                        type_text(tensor->dtype), shape + 1, tensor->rank == 1 ? "," : "");
    size_t total = (10 + (size_t)used + 1 + 63) / 64 * 64;
    memset(out_text + 10 + used, ' ', total - 10 - (size_t)used);
    out_text[total - 1] = '\n';
    memcpy(out_text, "\x93NUMPY\x01\x00", 8);
    out_text[8] = (char)((total - 10) & 255);
    out_text[9] = (char)((total - 10) >> 8);
    return total;
}

/* Types that numpy does not have. */
static bool write_each(FILE *file, const rnl_tensor *tensor, size_t count)
{
    bool is_float = tensor->dtype == RNL_BF16 || rnl_small_is_float(tensor->dtype);
    for (size_t i = 0; i < count; i++) {
        long double value = rnl_values_load(tensor->dtype, tensor->data, i);
        float number = is_float ? (float)value : 0;
        uint8_t byte = is_float ? 0 : (uint8_t)(int)value;
        if (fwrite(is_float ? (void *)&number : (void *)&byte, is_float ? sizeof number : 1, 1, file) != 1)
            return false;
    }
    return true;
}

bool rnl_npy_write(FILE *file, const rnl_tensor *tensor)
{
    char header[512];
    size_t count, bytes;
    errno = EINVAL;
    if (!type_text(tensor->dtype) || !rnl_values_bytes(tensor->dtype, tensor->shape, tensor->rank, &count, &bytes))
        return false;
    size_t length = format_header(tensor, header);
    if (fwrite(header, 1, length, file) != length)
        return false;
    if (tensor->dtype == RNL_BF16 || rnl_small_is(tensor->dtype))
        return write_each(file, tensor, count);
    return bytes == 0 || fwrite(tensor->data, 1, bytes, file) == bytes;
}
