/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between layouts: transposed, interleaved, in rows. */
#include "ops/map.h"
#include "support/op_test.h"
#include <string.h>

static op_value reference(void *user, const int64_t *at)
{
    return op_get(user, at);
}

/* Copies elements [1, channels + 1) of wider tensors where `slices`: rows with gaps between. */
static void run_copy(rnl_dtype dtype, const int64_t shape[4], op_layout from, op_layout to, bool slices,
                     const char *expected)
{
    int64_t wide[4];
    memcpy(wide, shape, sizeof wide);
    wide[1] += slices ? 3 : 0;
    op_tensor *src = op_tensor_create(dtype, 4, wide, from), *dst = op_tensor_create(dtype, 4, wide, to);
    op_fill(src, OP_RANDOM, 0, 100);
    if (slices) {
        src->view.shape[1] = dst->view.shape[1] = shape[1];
        src->view.offset += src->view.stride[1];
        dst->view.offset += 2 * dst->view.stride[1];
    }
    op_note("copy of %s, %d x %d x %d x %d, layout %d to %d", rnl_dtype_name(dtype), (int)shape[0], (int)shape[1],
            (int)shape[2], (int)shape[3], (int)from, (int)to);
    op_expect(RNL_OK, rnl_op_map(op_list(), RNL_MAP_COPY, 0, 0, &src->view, 1, &dst->view));
    if (expected)
        ck_assert_str_eq(op_list()->steps[0].implementation, expected);
    op_run();
    op_check(dst, reference, src, (op_bound){0, 0});
    op_reset();
}

static const int64_t shapes[][4] = {{2, 3, 5, 7},  {1, 3, 1, 64},  {1, 3, 3, 11}, {1, 4, 2, 2},  {3, 5, 3, 3},
                                    {1, 16, 4, 8}, {2, 17, 5, 13}, {1, 35, 1, 9}, {1, 2, 6, 40}, {1, 64, 7, 5}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(images)
{
    static const rnl_dtype types[] = {RNL_F32, RNL_F16, RNL_U8, RNL_I64};
    for (size_t t = 0; t < (op_small() ? 2 : 4); ++t)
        for (int slices = 0; slices < 2; ++slices) {
            run_copy(types[t], shapes[_i], OP_ROW_MAJOR, OP_CHANNELS_LAST, slices, NULL);
            run_copy(types[t], shapes[_i], OP_CHANNELS_LAST, OP_ROW_MAJOR, slices, NULL);
            run_copy(types[t], shapes[_i], OP_CHANNELS_LAST, OP_CHANNELS_LAST, slices, NULL);
            run_copy(types[t], shapes[_i], OP_ROW_MAJOR, OP_ROW_MAJOR, slices, NULL);
        }
}
END_TEST

START_TEST(other_layouts)
{
    for (int to = 0; to < OP_LAYOUT_COUNT; ++to) {
        run_copy(RNL_F32, shapes[6], (op_layout)_i, (op_layout)to, false, NULL);
        run_copy(RNL_BF16, shapes[0], (op_layout)_i, (op_layout)to, true, NULL);
    }
}
END_TEST

/* A source whose only neighbours in memory are repeats of one element. */
START_TEST(repeats)
{
    const int64_t shape[4] = {2, 8, 6, 5};
    for (uint32_t repeated = 0; repeated < 16; ++repeated) {
        op_tensor *src = op_tensor_create_repeated(RNL_F32, 4, shape, OP_CHANNELS_LAST, repeated);
        op_tensor *dst = op_tensor_create(RNL_F32, 4, shape, OP_ROW_MAJOR);
        op_fill(src, OP_RANDOM, -9, 9);
        op_expect(RNL_OK, rnl_op_map(op_list(), RNL_MAP_COPY, 0, 0, &src->view, 1, &dst->view));
        op_run();
        op_check(dst, reference, src, (op_bound){0, 0});
        op_reset();
    }
}
END_TEST

/* What is worth a kernel of its own takes that. */
START_TEST(choices)
{
    const int64_t large[4] = {1, 24, 10, 10}, colours[4] = {1, 3, 9, 9}, picture[4] = {2, 3, 21, 23};
    run_copy(RNL_F32, large, OP_ROW_MAJOR, OP_CHANNELS_LAST, false, "copy:transpose");
    run_copy(RNL_F32, large, OP_CHANNELS_LAST, OP_ROW_MAJOR, true, "copy:transpose");
    if (op_info()->type != RNL_DEVICE_CPU || op_info()->emulated)
        return;
    run_copy(RNL_F32, colours, OP_ROW_MAJOR, OP_CHANNELS_LAST, false, "copy:three");
    run_copy(RNL_F32, colours, OP_CHANNELS_LAST, OP_ROW_MAJOR, false, "copy:three");
    run_copy(RNL_U8, picture, OP_ROW_MAJOR, OP_CHANNELS_LAST, false, "copy:three");
    run_copy(RNL_U8, picture, OP_CHANNELS_LAST, OP_ROW_MAJOR, false, "copy:three");
    run_copy(RNL_F32, large, OP_CHANNELS_LAST, OP_CHANNELS_LAST, true, "copy:rows");
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    op_add_loop(tests, images, 0, SHAPES);
    op_add_loop(tests, other_layouts, 0, OP_LAYOUT_COUNT);
    tcase_add_test(tests, repeats);
    tcase_add_test(tests, choices);
}

int main(void)
{
    Suite *suite = suite_create("transpose");
    add_tests(op_case(suite, "transpose"));
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    return op_main(suite);
}
