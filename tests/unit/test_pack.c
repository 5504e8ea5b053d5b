/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: every element where its view says, zeros elsewhere. */
#include "model/pack.h"
#include "ops/conv.h"
#include "support/test_device.h"

#include <stdlib.h>
#include <string.h>

static uint64_t state;

static int64_t any(int64_t most)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)(most + 1));
}

/* Packs into memory that is not clean, and looks at each element by its indices. */
static void check(rnl_dtype dtype, const rnl_view *view, size_t elements)
{
    size_t bytes = rnl_dtype_bytes(dtype), count = (size_t)rnl_view_elements(view);
    unsigned char *source = malloc(count * bytes + 1), *target = malloc(elements * bytes + 1);
    unsigned char *expected = calloc(elements * bytes + 1, 1);
    ck_assert(source && target && expected);
    for (size_t i = 0; i < count * bytes; i++)
        source[i + 1] = (unsigned char)(1 + any(253));
    memset(target, 0xEE, elements * bytes + 1);
    expected[elements * bytes] = 0xEE; /* nothing behind the end */
    for (size_t i = 0; i < count; i++) {
        int64_t at = view->offset, rest = (int64_t)i;
        for (size_t axis = view->rank; axis-- > 0;) {
            at += rest % view->shape[axis] * view->stride[axis];
            rest /= view->shape[axis];
        }
        memcpy(expected + (size_t)at * bytes, source + 1 + i * bytes, bytes);
    }
    rnl_host_tensor tensor = {.dtype = dtype, .rank = view->rank, .data = source + 1, .size_bytes = count * bytes};
    memcpy(tensor.shape, view->shape, sizeof tensor.shape);
    rnl_pack(&tensor, view, target, elements * bytes);
    ck_assert_int_eq(memcmp(target, expected, elements * bytes + 1), 0);
    free(source);
    free(target);
    free(expected);
}

static const rnl_dtype types[] = {RNL_U8, RNL_F16, RNL_F32, RNL_F64};

/* Any order of the dimensions in memory, with gaps between them. */
START_TEST(test_any_strides)
{
    state = 20 + (uint64_t)_i;
    rnl_view view = {.dtype = types[_i % 4], .rank = (size_t)any(4) + 1, .offset = any(1) * any(20)};
    size_t order[RNL_MAX_RANK];
    for (size_t i = 0; i < view.rank; i++) {
        view.shape[i] = 1 + any(i % 2 ? 5 : 37);
        size_t at = (size_t)any((int64_t)i);
        memmove(&order[at + 1], &order[at], (i - at) * sizeof *order);
        order[at] = i;
    }
    int64_t stride = 1;
    for (size_t i = 0; i < view.rank; i++) {
        view.stride[order[i]] = stride;
        stride = stride * view.shape[order[i]] + (any(2) == 0 ? any(3) : 0);
    }
    check(view.dtype, &view, (size_t)(view.offset + stride + any(40)));
}
END_TEST

START_TEST(test_convolutions)
{
    const int64_t shapes[][4] = {{64, 3, 7, 7}, {16, 16, 1, 1}, {33, 5, 3, 3},
                                 {32, 1, 3, 3}, {1, 20, 1, 5},  {7, 1, 1, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int transposed = 0; transposed < 2; transposed++) {
            rnl_view view;
            int64_t elements;
            rnl_conv_weight_layout(transposed, 1, 0, RNL_F32, 4, shapes[i], &view, &elements);
            check(RNL_F32, &view, (size_t)elements);
        }
}
END_TEST

START_TEST(test_edges)
{
    const int64_t none[] = {3, 0, 2};
    const rnl_view scalar = {.dtype = RNL_F32}, empty = rnl_view_row_major(0, RNL_F32, 3, none);
    check(RNL_F32, &scalar, 1);
    check(RNL_F32, &scalar, 17);
    check(RNL_F32, &empty, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pack");
    TCase *tcase = tcase_create("pack");
    tcase_add_loop_test(tcase, test_any_strides, 0, 400);
    tcase_add_test(tcase, test_convolutions);
    tcase_add_test(tcase, test_edges);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
