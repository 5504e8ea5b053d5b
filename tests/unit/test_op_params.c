/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes in resolved form: padding, slices, axes and scales, worked out by hand. */
#include "unit/op_text.h"

static op_text t;

static void make(const char *op_type, int64_t opset, const char *inputs, const char *attributes)
{
    op_text_init(&t, op_type, opset, inputs, attributes, 1);
}

static void check_window(const rnl_window *w, int64_t begin, int64_t end, int64_t output)
{
    ck_assert_int_eq(w->pad_begin[0], begin);
    ck_assert_int_eq(w->pad_end[0], end);
    ck_assert_int_eq(w->output[0], output);
}

START_TEST(convolution)
{
    rnl_window w;
    make("Conv", 11, "f32:1x4x7x5 f32:6x2x3x2", "group:i=2 strides:is=2,1 pads:is=1,0,2,1 dilations:is=1,3");
    ck_assert_int_eq(rnl_window_conv(&t.n.context, 1, &w), RNL_OK);
    ck_assert_uint_eq(w.spatial, 2);
    ck_assert_int_eq(w.groups, 2);
    check_window(&w, 1, 2, 4);
    ck_assert_int_eq(w.kernel[1], 2);
    ck_assert_int_eq(w.dilation[1], 3);
    ck_assert_int_eq(w.pad_end[1], 1);
    ck_assert_int_eq(w.output[1], 3);
    make("Conv", 11, "f32:1x1x6 f32:1x1x3", "auto_pad:s=SAME_UPPER strides:is=2");
    ck_assert_int_eq(rnl_window_conv(&t.n.context, 1, &w), RNL_OK);
    check_window(&w, 0, 1, 3);
    make("Conv", 11, "f32:1x1x6 f32:1x1x3", "auto_pad:s=SAME_LOWER strides:is=2");
    ck_assert_int_eq(rnl_window_conv(&t.n.context, 1, &w), RNL_OK);
    check_window(&w, 1, 0, 3);
    make("Conv", 11, "f32:1x1x6 f32:1x1x3", "auto_pad:s=VALID pads:is=5,5"); /* explicit padding does not count */
    ck_assert_int_eq(rnl_window_conv(&t.n.context, 1, &w), RNL_OK);
    check_window(&w, 0, 0, 4);
}
END_TEST

/* 3 elements, stride 2, kernel 3: 7 without padding. */
START_TEST(transposed_convolution)
{
    static const struct {
        const char *attributes;
        int64_t begin, end, output;
    } rows[] = {
        {"strides:is=2", 0, 0, 7},
        {"strides:is=2 pads:is=1,2 output_padding:is=1", 1, 2, 5},
        {"strides:is=2 output_shape:is=6", 1, 0, 6},
        {"strides:is=2 output_shape:is=6 auto_pad:s=SAME_UPPER", 0, 1, 6},
        {"strides:is=2 output_shape:is=6 auto_pad:s=SAME_LOWER", 1, 0, 6},
        {"strides:is=2 output_shape:is=1,1,4", 2, 1, 4},
        {"strides:is=2 output_shape:is=8", 0, 0, 8},
        {"strides:is=2 auto_pad:s=SAME_UPPER", 0, 1, 6},
        {"strides:is=2 auto_pad:s=SAME_LOWER", 1, 0, 6},
        {"strides:is=2 auto_pad:s=VALID", 0, 0, 7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rnl_window w;
        make("ConvTranspose", 11, "f32:1x1x3 f32:1x1x3", rows[i].attributes);
        ck_assert_int_eq(rnl_window_conv_transpose(&t.n.context, &w), RNL_OK);
        check_window(&w, rows[i].begin, rows[i].end, rows[i].output);
    }
}
END_TEST

START_TEST(pooling)
{
    rnl_window w;
    make("MaxPool", 12, "f32:1x1x7", "kernel_shape:is=3 strides:is=3 ceil_mode:i=1 pads:is=0,2");
    ck_assert_int_eq(rnl_window_pool(&t.n.context, &w), RNL_OK);
    check_window(&w, 0, 2, 3);
    make("MaxPool", 12, "f32:1x1x6", "kernel_shape:is=3 strides:is=3 ceil_mode:i=1 pads:is=0,2");
    ck_assert_int_eq(rnl_window_pool(&t.n.context, &w), RNL_OK);
    check_window(&w, 0, 2, 2); /* a third window would start in the padding */
    make("AveragePool", 19, "f32:1x1x7", "kernel_shape:is=2 dilations:is=3 auto_pad:s=SAME_LOWER");
    ck_assert_int_eq(rnl_window_pool(&t.n.context, &w), RNL_OK);
    check_window(&w, 2, 1, 7);
}
END_TEST

START_TEST(slicing)
{
    rnl_slice s;
    make("Slice", 13, "f32:4x5x6 i32:2=-1,1 i32:2=-100,100 i32:2=-1,1 i32:2=-2,3", "");
    ck_assert_int_eq(rnl_slice_resolve(&t.n.context, &s), RNL_OK);
    const int64_t want[3][3] = {{0, 1, 4}, {1, 3, 2}, {5, -2, 3}}; /* start, step, size */
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(s.start[i], want[i][0]);
        ck_assert_int_eq(s.step[i], want[i][1]);
        ck_assert_int_eq(s.size[i], want[i][2]);
    }
}
END_TEST

START_TEST(reducing)
{
    uint32_t axes;
    bool noop;
    make("ReduceSum", 13, "f32:2x3x4 i64:2=-1,0", "");
    ck_assert_int_eq(rnl_reduce_axes(&t.n.context, &axes, &noop), RNL_OK);
    ck_assert(axes == 5 && !noop);
    make("ReduceMax", 13, "f32:2x3x4", "");
    ck_assert_int_eq(rnl_reduce_axes(&t.n.context, &axes, &noop), RNL_OK);
    ck_assert(axes == 7 && !noop);
    make("ReduceSum", 13, "f32:2x3x4", "noop_with_empty_axes:i=1");
    ck_assert_int_eq(rnl_reduce_axes(&t.n.context, &axes, &noop), RNL_OK);
    ck_assert(axes == 0 && noop);
    make("ReduceL1", 18, "f32:2x3x4", "noop_with_empty_axes:i=1"); /* still takes the magnitude */
    ck_assert_int_eq(rnl_reduce_axes(&t.n.context, &axes, &noop), RNL_OK);
    ck_assert(axes == 0 && !noop);
}
END_TEST

START_TEST(resizing)
{
    rnl_resize r;
    make("Resize", 19, "f32:1x2x4x8 - - i64:2=8,8", "axes:is=-1,2 keep_aspect_ratio_policy:s=not_smaller mode:s=cubic");
    ck_assert_int_eq(rnl_resize_resolve(&t.n.context, &r), RNL_OK);
    ck_assert(r.output[0] == 1 && r.output[1] == 2 && r.output[2] == 8 && r.output[3] == 16);
    ck_assert(r.scale[1] == 1 && r.scale[2] == 2 && r.scale[3] == 2);
    ck_assert(r.mode == 2 && r.coordinates == 0 && r.nearest == 0 && r.cubic_a == -0.75f);
    make("Resize", 13, "f32:1x10 f32:4=0,0.25,1,0.75 f32:2=1,2",
         "coordinate_transformation_mode:s=tf_crop_and_resize extrapolation_value:f=5 nearest_mode:s=ceil");
    ck_assert_int_eq(rnl_resize_resolve(&t.n.context, &r), RNL_OK);
    ck_assert(r.output[1] == 10 && r.roi_begin[1] == 0.25f && r.roi_end[1] == 0.75f);
    ck_assert(r.coordinates == 6 && r.nearest == 3 && r.extrapolation_value == 5);
    make("Resize", 10, "f32:4 f32:1=0.6", ""); /* the element above where it shrinks … */
    ck_assert_int_eq(rnl_resize_resolve(&t.n.context, &r), RNL_OK);
    ck_assert(r.coordinates == 4 && r.nearest == 3 && r.output[0] == 2);
    make("Upsample", 9, "f32:4 f32:1=1.6", ""); /* … and below where it grows */
    ck_assert_int_eq(rnl_resize_resolve(&t.n.context, &r), RNL_OK);
    ck_assert(r.coordinates == 4 && r.nearest == 2 && r.output[0] == 6);
}
END_TEST

START_TEST(padding_and_splitting)
{
    int64_t sizes[3];
    size_t axis;
    rnl_pad p;
    make("Pad", 18, "f32:2x3x4 i64:4=1,-2,3,4 - i64:2=-1,0", "mode:s=constant");
    ck_assert_int_eq(rnl_pad_resolve(&t.n.context, &p), RNL_OK);
    ck_assert(p.mode == 0 && p.begin[2] == 1 && p.end[2] == 3 && p.begin[0] == -2 && p.end[0] == 4);
    ck_assert(p.begin[1] == 0 && p.end[1] == 0);
    op_text_init(&t, "Split", 18, "f32:2x7", "axis:i=-1 num_outputs:i=3", 3);
    ck_assert_int_eq(rnl_split_resolve(&t.n.context, &axis, sizes), RNL_OK);
    ck_assert(axis == 1 && sizes[0] == 3 && sizes[1] == 3 && sizes[2] == 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op_params");
    TCase *tests = tcase_create("params");
    tcase_add_test(tests, convolution);
    tcase_add_test(tests, transposed_convolution);
    tcase_add_test(tests, pooling);
    tcase_add_test(tests, slicing);
    tcase_add_test(tests, reducing);
    tcase_add_test(tests, resizing);
    tcase_add_test(tests, padding_and_splitting);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
