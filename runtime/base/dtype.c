/* SPDX-License-Identifier: Apache-2.0 */
#include <runnel/rt.h>

size_t rnl_dtype_bytes(rnl_dtype dtype)
{
    switch (dtype) {
#define X(name, code, bytes, text)                                                                                     \
    case RNL_##name:                                                                                                   \
        return bytes;
        RNL_DTYPE_LIST(X)
#undef X
    case RNL_DTYPE_NONE:
        break;
    }
    return 0;
}

size_t rnl_dtype_width(rnl_dtype dtype)
{
    switch (dtype) {
    case RNL_U4:
    case RNL_I4:
    case RNL_F4E2M1:
        return 4;
    case RNL_U2:
    case RNL_I2:
        return 2;
    default:
        return 8 * rnl_dtype_bytes(dtype);
    }
}

const char *rnl_dtype_name(rnl_dtype dtype)
{
    switch (dtype) {
#define X(name, code, bytes, text)                                                                                     \
    case RNL_##name:                                                                                                   \
        return text;
        RNL_DTYPE_LIST(X)
#undef X
    case RNL_DTYPE_NONE:
        break;
    }
    return "unknown";
}
