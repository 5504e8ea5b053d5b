/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"
#include "half.h"
#include "small.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool rnl_values_bytes(rnl_dtype dtype, const int64_t *shape, size_t rank, size_t *out_count, size_t *out_bytes)
{
    size_t count = 1;
    bool zero = false;
    *out_count = *out_bytes = 0;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return false;
        if (shape[i] == 0)
            zero = true;
        else if (__builtin_mul_overflow(count, (uint64_t)shape[i], &count))
            return false;
    }
    if (__builtin_mul_overflow(count, rnl_dtype_bytes(dtype), out_bytes) || *out_bytes > PTRDIFF_MAX) {
        *out_bytes = 0;
        return false;
    }
    if (zero)
        *out_bytes = 0;
    *out_count = zero ? 0 : count;
    return true;
}

/* Memory is promised lazily: asking for more than the machine has would kill the process later. */
static bool machine_has(size_t bytes)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    return pages <= 0 || page_bytes <= 0 || bytes / (size_t)page_bytes < (size_t)pages;
}

rnl_exit rnl_values_allocate(rnl_tensor *tensor, const char *what)
{
    char shape[RNL_SHAPE_TEXT_BYTES];
    size_t count, bytes;
    rnl_shape_text(tensor->shape, NULL, tensor->rank, shape);
    if (!rnl_values_bytes(tensor->dtype, tensor->shape, tensor->rank, &count, &bytes))
        return rnl_cli_fail("%s: shape %s is too large", what, shape);
    if (machine_has(bytes))
        tensor->data = calloc(bytes ? bytes : 1, 1);
    if (!tensor->data)
        return rnl_cli_fail("%s: no memory for shape %s (%zu bytes)", what, shape, bytes);
    tensor->size_bytes = bytes;
    return RNL_EXIT_DONE;
}

/* SplitMix64: a counter, mixed. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* As many random bits as the type's mantissa holds, so that no value rounds up to 1. */
static int mantissa_bits(rnl_dtype dtype)
{
    switch (dtype) {
    case RNL_F64:
        return 53;
    case RNL_F32:
        return 24;
    case RNL_F16:
        return 11;
    case RNL_BF16:
        return 8;
    default:
        return 0;
    }
}

void rnl_values_random(rnl_tensor *tensor, size_t count, uint64_t seed)
{
    int bits = mantissa_bits(tensor->dtype);
    size_t bytes = rnl_dtype_bytes(tensor->dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t random = next_random(&seed);
        if (bits)
            rnl_values_store(tensor->dtype, tensor->data, i,
                             (double)(random >> (64 - bits)) / (double)(UINT64_C(1) << bits));
        else if (rnl_small_is_float(tensor->dtype))
            ((unsigned char *)tensor->data)[i] = (unsigned char)(random % rnl_small_one(tensor->dtype));
        else
            ((unsigned char *)tensor->data)[i * bytes] = (unsigned char)(random >> 63);
    }
}

bool rnl_dtype_is_float(rnl_dtype dtype)
{
    return mantissa_bits(dtype) > 0;
}

#define LOAD(type)                                                                                                     \
    do {                                                                                                               \
        type value_;                                                                                                   \
        memcpy(&value_, (const char *)data + index * sizeof value_, sizeof value_);                                    \
        return (long double)value_;                                                                                    \
    } while (0)

static long double load_short_float(rnl_dtype dtype, const void *data, size_t index)
{
    uint16_t bits;
    memcpy(&bits, (const char *)data + index * sizeof bits, sizeof bits);
    return (long double)(dtype == RNL_F16 ? rnl_half_to_float(bits) : rnl_bfloat_to_float(bits));
}

long double rnl_values_load(rnl_dtype dtype, const void *data, size_t index)
{
    switch (dtype) {
    case RNL_F32:
        LOAD(float);
    case RNL_F64:
        LOAD(double);
    case RNL_U8:
    case RNL_BOOL:
        LOAD(uint8_t);
    case RNL_I8:
        LOAD(int8_t);
    case RNL_U16:
        LOAD(uint16_t);
    case RNL_I16:
        LOAD(int16_t);
    case RNL_U32:
        LOAD(uint32_t);
    case RNL_I32:
        LOAD(int32_t);
    case RNL_U64:
        LOAD(uint64_t);
    case RNL_I64:
        LOAD(int64_t);
    case RNL_F16:
    case RNL_BF16:
        return load_short_float(dtype, data, index);
    default:
        return (long double)rnl_small_to_double(dtype, ((const uint8_t *)data)[index]);
    }
}

void rnl_values_store(rnl_dtype dtype, void *data, size_t index, double value)
{
    if (dtype == RNL_F64) {
        memcpy((char *)data + index * sizeof value, &value, sizeof value);
    } else if (dtype == RNL_F32) {
        float number = (float)value;
        memcpy((char *)data + index * sizeof number, &number, sizeof number);
    } else {
        uint16_t bits = dtype == RNL_F16 ? rnl_half_from_float((float)value) : rnl_bfloat_from_float((float)value);
        memcpy((char *)data + index * sizeof bits, &bits, sizeof bits);
    }
}

const char *rnl_shape_text(const int64_t *shape, const char *const *dim_names, size_t rank, char *out_text)
{
    char name[32];
    size_t used = (size_t)snprintf(out_text, RNL_SHAPE_TEXT_BYTES, "[");
    for (size_t i = 0; i < rank && i < RNL_MAX_RANK; i++) {
        const char *comma = i ? "," : "";
        char *end = out_text + used;
        size_t room = RNL_SHAPE_TEXT_BYTES - used;
        if (shape[i] >= 0)
            used += (size_t)snprintf(end, room, "%s%lld", comma, (long long)shape[i]);
        else if (dim_names && dim_names[i] && dim_names[i][0])
            used += (size_t)snprintf(end, room, "%s%.27s", comma, rnl_cli_clean(dim_names[i], name, 28));
        else
            used += (size_t)snprintf(end, room, "%s?", comma);
    }
    snprintf(out_text + used, RNL_SHAPE_TEXT_BYTES - used, "]");
    return out_text;
}
