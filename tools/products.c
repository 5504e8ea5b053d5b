/* SPDX-License-Identifier: Apache-2.0 */
/* The products that are measured, and their operands. */
#include "bench_gemm.h"
#include "parse.h"

#include <stdlib.h>
#include <string.h>

const char *const rnl_product_type_names[RNL_PRODUCT_TYPES] = {"f32", "f16", "bf16", "i8"};

/* Squares; ResNet-50's convolutions as products (1x1, then 3x3); MiniLM's layers; few rows. */
static const int64_t usual[][3] = {
    {256, 256, 256}, {512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048}, {3136, 64, 64},
    {3136, 256, 64}, {784, 128, 512},  {784, 512, 128},    {196, 256, 1024},   {196, 1024, 256},
    {49, 512, 2048}, {49, 2048, 512},  {3136, 64, 576},    {784, 128, 1152},   {196, 256, 2304},
    {49, 512, 4608}, {128, 384, 384},  {128, 1536, 384},   {128, 384, 1536},   {1, 1000, 2048},
    {4, 1000, 2048}, {16, 1000, 2048}, {1, 1536, 384},     {4, 1536, 384},     {16, 1536, 384},
};

static rnl_gemm_desc describe(const int64_t size[3], rnl_product_type type)
{
    static const rnl_dtype types[RNL_PRODUCT_TYPES][3] = {{RNL_F32, RNL_F32, RNL_F32},
                                                          {RNL_F16, RNL_F16, RNL_F16},
                                                          {RNL_BF16, RNL_BF16, RNL_BF16},
                                                          {RNL_U8, RNL_I8, RNL_I32}};
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    desc.m = size[0], desc.n = size[1], desc.k = size[2];
    desc.a_type = types[type][0], desc.b_type = types[type][1], desc.c_type = types[type][2];
    return desc;
}

rnl_product_type rnl_product_type_of(const rnl_gemm_desc *desc)
{
    return desc->a_type == RNL_F16    ? RNL_PRODUCT_F16
           : desc->a_type == RNL_BF16 ? RNL_PRODUCT_BF16
           : desc->a_type == RNL_U8   ? RNL_PRODUCT_I8
                                      : RNL_PRODUCT_F32;
}

rnl_exit rnl_products_add(rnl_products *products, const char *command, const char *shape)
{
    char clean[RNL_CLI_NAME_BYTES];
    int64_t size[3];
    size_t rank;
    if (products->count == RNL_MOST_PRODUCTS)
        return rnl_cli_usage(command, "more than %d shapes", RNL_MOST_PRODUCTS);
    if (!rnl_parse_shape(shape, size, 3, &rank) || rank != 3 || size[0] < 1 || size[1] < 1 || size[2] < 1)
        return rnl_cli_usage(command, "--shape %s: not MxNxK, as 128x384x1536",
                             rnl_cli_clean(shape, clean, sizeof clean));
    products->descs[products->count++] = describe(size, RNL_PRODUCT_F32);
    return RNL_EXIT_DONE;
}

rnl_exit rnl_products_add_type(rnl_products *products, const char *command, const char *type)
{
    char clean[RNL_CLI_NAME_BYTES];
    for (size_t i = 0; i < RNL_PRODUCT_TYPES; i++)
        if (strcmp(type, rnl_product_type_names[i]) == 0) {
            products->types[i] = true;
            return RNL_EXIT_DONE;
        }
    return rnl_cli_usage(command, "--type %s: not f32, f16, bf16 or i8", rnl_cli_clean(type, clean, sizeof clean));
}

size_t rnl_products_list(const rnl_products *products, rnl_gemm_desc *out_descs, size_t capacity)
{
    const size_t shapes = products->count ? products->count : sizeof usual / sizeof *usual;
    bool any = false;
    size_t count = 0;
    for (size_t t = 0; t < RNL_PRODUCT_TYPES; t++)
        any = any || products->types[t];
    for (size_t t = 0; t < RNL_PRODUCT_TYPES; t++)
        for (size_t i = 0; (products->types[t] || (!any && t == 0)) && i < shapes && count < capacity; i++) {
            const rnl_gemm_desc *given = &products->descs[i];
            const int64_t asked[3] = {given->m, given->n, given->k};
            out_descs[count++] = describe(products->count ? asked : usual[i], (rnl_product_type)t);
        }
    return count;
}

/* ---- operands ------------------------------------------------------------------------------------------------- */

/* Bytes of numbers around 1, of either sign; integers of all sizes. */
static void fill(unsigned char *memory, size_t bytes, rnl_dtype dtype)
{
    const size_t element = rnl_dtype_bytes(dtype);
    uint64_t state = 1;
    for (size_t i = 0; i + element <= bytes; i += element) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint32_t random = (uint32_t)(state >> 33);
        const float value = (float)(int)(random % 2001 - 1000) * 1e-3F;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (dtype == RNL_F16) /* 0.5 to 2, in halves' own bits */
            bits = 0x3800U + (random & 0x7ffU) + (random & 0x8000U);
        if (dtype == RNL_BF16)
            bits >>= 16;
        if (element == 1)
            bits = random;
        memcpy(memory + i, &bits, element);
    }
}

static rnl_status make_operand(rnl_device *device, rnl_stream *stream, rnl_dtype dtype, int64_t elements,
                               rnl_buffer **out_buffer)
{
    const size_t bytes = (size_t)elements * rnl_dtype_bytes(dtype);
    rnl_status status = rnl_buffer_create(device, RNL_MEMORY_DEVICE, bytes, out_buffer);
    unsigned char *memory = status == RNL_OK ? malloc(bytes) : NULL;
    if (!memory)
        return status == RNL_OK ? RNL_RESOURCE_EXHAUSTED : status;
    fill(memory, bytes, dtype);
    status = rnl_stream_write(stream, *out_buffer, 0, memory, bytes);
    if (status == RNL_OK)
        status = rnl_stream_synchronize(stream);
    free(memory);
    return status;
}

rnl_status rnl_product_create(rnl_device *device, const rnl_gemm_desc *desc, bool packed, rnl_product_run *out_run)
{
    rnl_gemm_operands *o = &out_run->operands;
    *out_run = (rnl_product_run){.operands = RNL_GEMM_OPERANDS_INIT};
    rnl_status status = rnl_stream_create(device, &out_run->stream);
    if (status == RNL_OK)
        status = rnl_gemm_create(device, desc, &out_run->gemm);
    if (status == RNL_OK)
        status = make_operand(device, out_run->stream, desc->a_type, desc->m * desc->k, &o->a);
    if (status == RNL_OK)
        status = make_operand(device, out_run->stream, desc->b_type, desc->k * desc->n, &o->b);
    if (status == RNL_OK)
        status = make_operand(device, out_run->stream, desc->c_type, desc->m * desc->n, &o->c);
    if (status == RNL_OK && packed)
        status = rnl_stream_gemm_pack(out_run->stream, out_run->gemm, RNL_GEMM_SIDE_B, o, &out_run->packed);
    o->packed_b = out_run->packed;
    if (status == RNL_OK)
        status = rnl_product_call(out_run);
    return status;
}

void rnl_product_release(rnl_product_run *run)
{
    if (run->stream && rnl_stream_synchronize(run->stream) != RNL_OK) {
        /* It has failed before, which was told. */
    }
    rnl_packed_release(run->packed);
    rnl_buffer_release(run->operands.a);
    rnl_buffer_release(run->operands.b);
    rnl_buffer_release(run->operands.c);
    rnl_gemm_release(run->gemm);
    rnl_stream_release(run->stream);
}

rnl_status rnl_product_enqueue(void *user)
{
    rnl_product_run *run = user;
    return rnl_stream_gemm(run->stream, run->gemm, &run->operands);
}

rnl_status rnl_product_finish(void *user)
{
    rnl_product_run *run = user;
    return rnl_stream_synchronize(run->stream);
}

rnl_status rnl_product_call(void *user)
{
    rnl_status status = rnl_product_enqueue(user);
    return status == RNL_OK ? rnl_product_finish(user) : status;
}
