/* SPDX-License-Identifier: Apache-2.0 */
/* Which matrix instruction a device has, by running it. */
#include "base/log.h"
#include "base/memory.h"
#include "device/buffer.h"
#include "device/enumerate.h"
#include "ops/execute.h"
#include "ops/gemm_matrix.h"
#include "ops/gemm_wgmma.h"
#include <stdlib.h>
#include <string.h>

/* No whole tiles, but lines of 16 bytes: what copies these alone is tried, too. */
#define ROWS 33
#define COLUMNS 48
#define DEPTH 56

/* Small whole numbers: halves and bfloat16 hold them, and their products' sums are exact. */
static int value_at(int row, int column)
{
    return (row * 7 + column * 5) % 9 - 4;
}

/* Whole numbers of at most 8 have the same upper bits in a float and in a bfloat16; a half's are counted out. */
static uint16_t bits_of(int value, rnl_dtype type)
{
    const int magnitude = value < 0 ? -value : value, sign = value < 0;
    int exponent = 0;
    if (magnitude == 0)
        return 0;
    while (magnitude >> (exponent + 1))
        ++exponent;
    const int fraction = magnitude - (1 << exponent);
    if (type == RNL_F16)
        return (uint16_t)(sign << 15 | (exponent + 15) << 10 | (fraction << 10 >> exponent));
    return (uint16_t)(sign << 15 | (exponent + 127) << 7 | (fraction << 7 >> exponent));
}

static int value_of(uint16_t bits, rnl_dtype type)
{
    const int shift = type == RNL_F16 ? 10 : 7, bias = type == RNL_F16 ? 15 : 127;
    const int exponent = (bits & 0x7fff) >> shift, fraction = bits & ((1 << shift) - 1);
    if (exponent < bias || exponent > bias + 15)
        return bits & 0x7fff ? INT32_MIN : 0; /* not a whole number, or far too large */
    const int scaled = ((1 << shift) + fraction) << (exponent - bias) >> shift;
    return bits & 0x8000 ? -scaled : scaled;
}

static void fill(void *memory, rnl_dtype type, int rows, int columns)
{
    for (int i = 0; i < rows * columns; ++i) {
        const int value = value_at(i / columns, i % columns);
        if (type == RNL_F32)
            ((float *)memory)[i] = (float)value;
        else
            ((uint16_t *)memory)[i] = bits_of(value, type);
    }
}

/* A result of 16 bits is rounded: compared as it would be stored. */
static bool is_right(const void *memory, rnl_dtype type, int at, int sum)
{
    if (type == RNL_F32)
        return ((const float *)memory)[at] == (float)sum;
    const int got = value_of(((const uint16_t *)memory)[at], type), step = sum < 0 ? -sum / 128 : sum / 128;
    return abs(got - sum) <= step;
}

static bool all_right(const void *memory, rnl_dtype type)
{
    for (int m = 0; m < ROWS; ++m)
        for (int n = 0; n < COLUMNS; ++n) {
            int sum = 0;
            for (int k = 0; k < DEPTH; ++k)
                sum += value_at(m, k) * value_at(k, n);
            if (!is_right(memory, type, m * COLUMNS + n, sum))
                return false;
        }
    return true;
}

typedef struct probe {
    rnl_stream *stream;
    rnl_kernel_set *set;
    rnl_buffer *buffers[4]; /* a, b, dst, scratch */
    void *host;
    rnl_step_list list;
} probe;

static rnl_status append(probe *p, int instruction, rnl_dtype type, size_t *out_scratch_bytes)
{
    const rnl_gemm_params params = {.alpha = 1};
    const rnl_view a = rnl_view_row_major(0, type, 2, (const int64_t[]){ROWS, DEPTH});
    const rnl_view b = rnl_view_row_major(1, type, 2, (const int64_t[]){DEPTH, COLUMNS});
    const rnl_view dst = rnl_view_row_major(2, type, 2, (const int64_t[]){ROWS, COLUMNS});
    rnl_gemm_problem problem;
    *out_scratch_bytes = 4;
    TRY(rnl_gemm_describe(&params, &a, &b, NULL, &dst, &problem));
    if ((instruction & ~RNL_MATRIX_MODEL) == RNL_MATRIX_WGMMA) {
        const int64_t floats = rnl_gemm_wgmma_scratch(p->list.device, instruction, &problem);
        const rnl_view scratch = rnl_view_row_major(3, RNL_F32, 1, &floats);
        *out_scratch_bytes = (size_t)floats * 4;
        problem.scratch = &scratch;
        return rnl_gemm_wgmma_append_with(instruction, &p->list, "gemm:wgmma", &problem);
    }
    return rnl_gemm_matrix_append_with(instruction, &p->list, "gemm:matrix", &problem);
}

static rnl_status multiply(probe *p, int instruction, rnl_dtype type)
{
    static const int sizes[3][2] = {{ROWS, DEPTH}, {DEPTH, COLUMNS}, {ROWS, COLUMNS}};
    rnl_slot_memory slots[4] = {{0}};
    size_t scratch_bytes;
    TRY(append(p, instruction, type, &scratch_bytes));
    TRY(rnl_buffer_create(p->list.device, RNL_MEMORY_DEVICE, scratch_bytes, &p->buffers[3]));
    slots[3].memory = p->buffers[3]->memory;
    for (int i = 0; i < 3; ++i) {
        const size_t bytes = (size_t)(sizes[i][0] * sizes[i][1]) * rnl_dtype_bytes(type);
        TRY(rnl_buffer_create(p->list.device, RNL_MEMORY_DEVICE, bytes, &p->buffers[i]));
        slots[i] = (rnl_slot_memory){.memory = p->buffers[i]->memory};
        fill(p->host, type, sizes[i][0], sizes[i][1]);
        TRY(rnl_stream_write(p->stream, p->buffers[i], 0, p->host, bytes));
        TRY(rnl_stream_synchronize(p->stream));
    }
    TRY(rnl_step_enqueue(p->stream, p->set, &p->list, 0, slots, 4));
    TRY(rnl_stream_read(p->stream, p->host, p->buffers[2], 0, rnl_buffer_size(p->buffers[2])));
    return rnl_stream_synchronize(p->stream);
}

static rnl_status try_type(rnl_device *device, int instruction, rnl_dtype type, bool *out_right)
{
    rnl_status status = RNL_OK;
    probe p = {0};
    *out_right = false;
    rnl_step_list_init(&p.list, device);
    GOTO(rnl_alloc(DEPTH * DEPTH, sizeof(float), &p.host));
    GOTO(rnl_stream_create(device, &p.stream));
    GOTO(rnl_kernel_set_create(device, &p.set));
    GOTO(multiply(&p, instruction, type));
    *out_right = all_right(p.host, type);
done:
    if (status != RNL_OK && p.stream && rnl_stream_synchronize(p.stream) != RNL_OK)
        rnl_log(RNL_LOG_DEBUG, "the probe of a matrix instruction failed on %s", device->info.name);
    for (int i = 0; i < 4; ++i)
        rnl_buffer_release(p.buffers[i]);
    rnl_kernel_set_release(p.set);
    rnl_stream_release(p.stream);
    rnl_step_list_free(&p.list);
    rnl_free(p.host);
    return status;
}

bool rnl_matrix_works(rnl_device *device, int instruction)
{
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16, RNL_F32};
    const size_t count = (instruction & ~RNL_MATRIX_MODEL) == RNL_MATRIX_MFMA ? 3 : 2;
    bool right = true;
    for (size_t i = 0; right && i < count; ++i)
        if (try_type(device, instruction, types[i], &right) != RNL_OK)
            right = false;
    return right;
}

/* The GPUs on which trying is worthwhile: elsewhere the kernel does not compile. */
static bool may_have(const rnl_device *device, int instruction)
{
    static const char *const amd[] = {"gfx90a", "gfx940", "gfx941", "gfx942", "gfx950"};
    if (device->info.type != RNL_DEVICE_GPU)
        return false;
    if (instruction == RNL_MATRIX_WGMMA)
        return rnl_device_compute_capability(device) == 90;
    if (instruction == RNL_MATRIX_MMA)
        return rnl_device_compute_capability(device) >= 80;
    for (size_t i = 0; instruction == RNL_MATRIX_MFMA && i < sizeof amd / sizeof *amd; ++i)
        if (device->info.vendor_id == RNL_VENDOR_AMD && strncmp(device->info.name, amd[i], strlen(amd[i])) == 0)
            return true;
    return instruction != RNL_MATRIX_MFMA && device->info.vendor_id == RNL_VENDOR_INTEL &&
           rnl_device_has_extension(device, "cl_intel_subgroup_matrix_multiply_accumulate");
}

void rnl_matrix_find(rnl_device *device)
{
    static const int instructions[] = {RNL_MATRIX_WGMMA, RNL_MATRIX_MMA, RNL_MATRIX_MFMA, RNL_MATRIX_DPAS16,
                                       RNL_MATRIX_DPAS8};
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    if (device->matrix_instruction != RNL_MATRIX_UNKNOWN)
        return;
    pthread_mutex_lock(&one_at_a_time);
    int found = device->matrix_instruction != RNL_MATRIX_UNKNOWN ? device->matrix_instruction : RNL_MATRIX_NONE;
    for (size_t i = 0; found == RNL_MATRIX_NONE && i < sizeof instructions / sizeof *instructions; ++i)
        if (may_have(device, instructions[i]) && rnl_matrix_works(device, instructions[i]) &&
            (instructions[i] != RNL_MATRIX_WGMMA || rnl_matrix_works(device, RNL_MATRIX_MMA)))
            found = instructions[i];
    device->matrix_instruction = found;
    pthread_mutex_unlock(&one_at_a_time);
}
