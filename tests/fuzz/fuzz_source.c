/* SPDX-License-Identifier: Apache-2.0 */
/* A file for an input, as `runnel run` and `runnel quantize` read it: numpy's format, PNG or JPEG. */
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check(const rnl_tensor *tensor)
{
    size_t sum = 0;
    size_t bytes = rnl_dtype_bytes(tensor->dtype);
    require(tensor->rank <= RNL_MAX_RANK && rnl_dtype_width(tensor->dtype) == 8 * bytes);
    for (size_t i = 0; i < tensor->rank; i++) {
        require(tensor->shape[i] >= 0);
        bytes *= (size_t)tensor->shape[i];
    }
    require(tensor->size_bytes == bytes && (tensor->data || bytes == 0));
    for (size_t i = 0; i < bytes; i++)
        sum += ((const uint8_t *)tensor->data)[i];
    require(sum <= 255 * bytes); /* so that it is all read */
}

/* The file's size chooses the model's shape, which a picture is made to fit. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const rnl_value_info infos[3] = {
        {.name = "x", .dtype = RNL_F32, .rank = 4, .shape = {1, 3, -1, -1}},
        {.name = "x", .dtype = RNL_U8, .rank = 4, .shape = {1, 5, 7, 1}},
        {.name = "x", .dtype = RNL_F32, .rank = SIZE_MAX},
    };
    const rnl_picture_options picture = {.std = {1, 0.5, 2}};
    rnl_tensor tensor = {0};
    char path[64];
    const int file = memfd_create("input", 0);
    require(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    rnl_source_is_picture(path);
    if (rnl_source_load(path, &infos[size % 3], &picture, &tensor) == RNL_EXIT_DONE)
        check(&tensor);
    free(tensor.data);
    close(file);
    return 0;
}
