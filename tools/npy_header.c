/* SPDX-License-Identifier: Apache-2.0 */
/* The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), } */
#include "npy.h"

#include <ctype.h>
#include <string.h>

typedef struct reader {
    const char *at, *end;
} reader;

typedef struct string {
    const char *data;
    size_t length;
} string;

static void skip_blanks(reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static bool take(reader *r, const char *token)
{
    size_t length = strlen(token);
    skip_blanks(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, token, length) != 0)
        return false;
    r->at += length;
    return true;
}

static bool take_string(reader *r, string *out_string)
{
    skip_blanks(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
        return false;
    const char *start = r->at + 1;
    const char *close = memchr(start, *r->at, (size_t)(r->end - start));
    if (!close)
        return false;
    *out_string = (string){start, (size_t)(close - start)};
    r->at = close + 1;
    return true;
}

static bool is(string s, const char *text)
{
    return s.length == strlen(text) && memcmp(s.data, text, s.length) == 0;
}

static bool take_number(reader *r, int64_t *out_number)
{
    int64_t number = 0;
    skip_blanks(r);
    if (r->at == r->end || !isdigit((unsigned char)*r->at))
        return false;
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *r->at - '0', &number))
            return false;
    if (r->at < r->end && *r->at == 'L') /* Python 2 */
        r->at++;
    *out_number = number;
    return true;
}

static const char *take_shape(reader *r, rnl_npy_header *header)
{
    if (!take(r, "("))
        return "its shape is not a tuple";
    for (header->rank = 0; !take(r, ")"); header->rank++) {
        int64_t size;
        if (!take_number(r, &size))
            return "its shape is not a tuple of sizes";
        if (header->rank == RNL_MAX_RANK)
            return "it has more than 8 dimensions";
        header->shape[header->rank] = size;
        bool comma = take(r, ",");
        skip_blanks(r);
        if (!comma && (header->rank == 0 || r->at == r->end || *r->at != ')'))
            return "its shape is not a tuple of sizes";
    }
    return NULL;
}

static const char *take_type(reader *r, rnl_npy_header *header)
{
    static const struct {
        const char *text;
        rnl_dtype dtype;
    } types[] = {{"f4", RNL_F32}, {"f8", RNL_F64}, {"f2", RNL_F16}, {"u1", RNL_U8},  {"i1", RNL_I8},  {"u2", RNL_U16},
                 {"i2", RNL_I16}, {"u4", RNL_U32}, {"i4", RNL_I32}, {"u8", RNL_U64}, {"i8", RNL_I64}, {"b1", RNL_BOOL}};
    string text;
    if (!take_string(r, &text))
        return "its element type is not a plain one";
    if (text.length == 3 && text.data[0] == '>' && text.data[2] != '1')
        return "it is big-endian: save it with array.astype(array.dtype.newbyteorder('<'))";
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        string rest = {text.data + 1, text.length - 1};
        if (text.length == 3 && is(rest, types[i].text) && (text.data[0] == '<' || text.data[2] == '1')) {
            header->dtype = types[i].dtype;
            return NULL;
        }
    }
    return "its element type is none of float16, float32, float64, int8 to int64, uint8 to uint64 and bool";
}

static const char *take_order(reader *r)
{
    if (take(r, "False"))
        return NULL;
    return take(r, "True") ? "it is in Fortran order: save it with numpy.ascontiguousarray"
                           : "its header has no sound fortran_order";
}

const char *rnl_npy_parse_header(const char *text, size_t length, rnl_npy_header *out_header)
{
    static const char unsound[] = "its header is not a numpy header";
    reader r = {text, text + length};
    unsigned seen = 0;
    *out_header = (rnl_npy_header){0};
    if (!take(&r, "{"))
        return unsound;
    while (!take(&r, "}")) {
        string key;
        if (!take_string(&r, &key) || !take(&r, ":"))
            return unsound;
        unsigned bit = is(key, "descr") ? 1 : is(key, "fortran_order") ? 2 : is(key, "shape") ? 4 : 0;
        if (bit == 0 || (seen & bit))
            return unsound;
        seen |= bit;
        const char *reason = bit == 1   ? take_type(&r, out_header)
                             : bit == 2 ? take_order(&r)
                                        : take_shape(&r, out_header);
        if (reason)
            return reason;
        if (!take(&r, ",")) {
            if (!take(&r, "}"))
                return unsound;
            break;
        }
    }
    skip_blanks(&r);
    return seen == 7 && r.at == r.end ? NULL : unsound;
}
