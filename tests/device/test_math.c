/* SPDX-License-Identifier: Apache-2.0 */
/* The elementary functions of math.clh against float64, over all of float's range. */
#include "device/device.h"
#include "kernel/source.h"
#include "support/test_device.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COUNT (1u << 20)

static rnl_device *device;
static rnl_stream *stream;
static rnl_buffer *given, *made;
static float *values, *results;
static size_t value_count;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double gelu(double x)
{
    return x * (0.5 * erfc(-x * M_SQRT1_2));
}

/* Bounds in units in the last place. */
static const struct function {
    const char *name;
    double (*reference)(double);
    double bound, from;
    bool only_down; /* up to 0, and 0 where the result would not be normal */
    double near;    /* or this far off */
} functions[] = {
    {"EXP", exp, 1, -INFINITY, false, 0},
    {"EXPM1", expm1, 1.5, -INFINITY, false, 0},
    {"LOG", log, 1, -INFINITY, false, 0},
    {"LOG1P", log1p, 2, -1, false, 0},
    {"TANH", tanh, 2, -INFINITY, false, 0},
    {"SIGMOID", sigmoid, 2.5, -INFINITY, false, 0},
    {"ERF", erf, 2, -INFINITY, false, 0},
    {"GELU", gelu, 6, -INFINITY, false, 0},
    {"EXP2_DOWN", exp2, 1, -INFINITY, true, 0},
    {"GELU_SUM", gelu, 1.5, -INFINITY, false, 1.2e-7},
    {"EXP_DOWN", exp, 1, -INFINITY, true, 0},
    {"EXP2_ROUGH", exp2, 1270, -INFINITY, true, 0},
    {"GELU_ROUGH", gelu, 480, -INFINITY, false, 6e-5},
};

static bool is_small(void)
{
    const char *small = getenv("RUNNEL_TEST_SMALL");
    return small && *small && strcmp(small, "0") != 0;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Special numbers, what lies around the functions' own limits, and an even sample of all floats. */
static void fill(void)
{
    static const float special[] = {0,         -0.0f,   1,         -1,      INFINITY, -INFINITY, NAN,
                                    0x1p-149f, 88.73f,  88.722f,   -87.4f,  -103.9f,  -104.1f,   -126.4f,
                                    -126.6f,   -127.5f, 0x1p-126f, 0.5493f, 0.34658f};
    const size_t near = value_count / 2;
    size_t count = sizeof special / sizeof *special;
    memcpy(values, special, sizeof special);
    for (; count < near; ++count) /* of both signs, up to 128 */
        values[count] = (float)((double)count / (double)near * 256 - 128) * (count % 3 ? 1 : 0x1p-5f);
    for (; count < value_count; ++count)
        values[count] = from_bits((uint32_t)((uint64_t)(count - near) * 0xffffffffu / (value_count - near)));
}

static void setup(void)
{
    value_count = is_small() ? 1u << 11 : MAX_COUNT;
    device = test_open_device();
    values = malloc(value_count * sizeof *values);
    results = malloc(value_count * sizeof *results);
    ck_assert(values && results);
    fill();
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, value_count * sizeof *values, &given));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, value_count * sizeof *values, &made));
    test_ok(rnl_stream_write(stream, given, 0, values, value_count * sizeof *values));
}

static void teardown(void)
{
    rnl_buffer_release(given);
    rnl_buffer_release(made);
    rnl_stream_release(stream);
    rnl_device_release(device);
    free(values);
    free(results);
}

/* math.clh and a kernel for each function. */
static void add_source(rnl_text *text, int width)
{
    test_ok(rnl_source_get("math.clh", text));
    for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
        rnl_text_add(text, "__kernel void %s(__global const float *x, __global float *y)\n{\n", functions[i].name);
        if (width == 1)
            rnl_text_add(text, "    y[get_global_id(0)] = FAST_%s(x[get_global_id(0)]);\n}\n", functions[i].name);
        else
            rnl_text_add(text, "    vstore%d(FAST_%s(vload%d(get_global_id(0), x)), get_global_id(0), y);\n}\n", width,
                         functions[i].name, width);
    }
    test_ok(text->status);
}

static void run(const char *source, const char *name, int width)
{
    char options[96];
    rnl_kernel *kernel;
    /* As our own kernels are compiled. */
    snprintf(options, sizeof options, "-DMATH_WIDTH=%d%s", width,
             device->asks_for_rounding ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
    test_ok(rnl_kernel_create(device, source, options, name, &kernel));
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = given}, {.kind = RNL_ARG_BUFFER, .buffer = made}};
    const rnl_range range = {
        .dimensions = 1, .global = {value_count / (size_t)width, 1, 1}, .local = {is_small() ? 16 : 64, 1, 1}};
    test_ok(rnl_stream_launch(stream, kernel, &range, args, 2));
    test_ok(rnl_stream_read(stream, results, made, 0, value_count * sizeof *results));
    test_ok(rnl_stream_synchronize(stream));
    rnl_kernel_release(kernel);
}

/* The error in units of the last place of the exact result's float. */
static double error_of(double exact, float got, bool keeps_denormals)
{
    const float rounded = (float)exact;
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (got == rounded)
        return 0;
    if (!keeps_denormals && fabs(exact) < 0x1p-126 && got == 0)
        return 0;
    if (isinf(exact) || (isinf(got) && fabs(exact) < 0x1.fffffcp127))
        return INFINITY;
    int exponent;
    frexp(exact, &exponent);
    const double unit = ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
    return fabs((isinf(got) ? copysign(0x1p128, (double)got) : (double)got) - exact) / unit;
}

static void check(const struct function *function, int width, bool keeps_denormals)
{
    double worst = 0;
    keeps_denormals &= !function->only_down;
    float where = 0, got = 0;
    for (size_t i = 0; i < value_count; ++i) {
        double error = error_of(function->reference((double)values[i]), results[i], keeps_denormals);
        if (!keeps_denormals && fabsf(values[i]) < 0x1p-126f) /* it may also have been read as 0 */
            error = fmin(error, error_of(function->reference(0 * (double)values[i]), results[i], false));
        if ((double)values[i] < function->from || (function->only_down && values[i] > 0))
            error = 0;
        if (fabs((double)results[i] - function->reference((double)values[i])) <= function->near)
            error = 0;
        if (error > worst) {
            worst = error;
            where = values[i];
            got = results[i];
        }
    }
    ck_assert_msg(worst <= function->bound, "%s of width %d is off by %.2f units at %a: got %a, expected %a",
                  function->name, width, worst, (double)where, (double)got, function->reference((double)where));
}

START_TEST(every_function_is_near)
{
    const int width = 1 << (_i ? _i + 1 : 0);
    if ((is_small() && width > 4) || (device->info.emulated && width > 1)) /* takes llvmpipe's compiler half a minute */
        return;
    cl_device_fp_config config = 0;
    rnl_text source;
    ck_assert_int_eq(clGetDeviceInfo(device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL), 0);
    add_source(&source, width);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
        run(source.data, functions[i].name, width);
        check(&functions[i], width, (config & CL_FP_DENORM) != 0);
    }
    rnl_text_free(&source);
}
END_TEST

/* What a tail of a row or another batch computes in narrower vectors. */
START_TEST(all_widths_have_the_same_bits)
{
    static const int widths[] = {1, 4, 8, 16};
    const size_t count = is_small() ? 2 : 4;
    rnl_text sources[4];
    float *first = malloc(value_count * sizeof *first);
    ck_assert_ptr_nonnull(first);
    if (rnl_device_get_info(device)->type != RNL_DEVICE_CPU || device->info.emulated) {
        free(first);
        return;
    }
    for (size_t w = 0; w < count; ++w)
        add_source(&sources[w], widths[w]);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
        for (size_t w = 0; w < count; ++w) {
            run(sources[w].data, functions[i].name, widths[w]);
            if (w == 0)
                memcpy(first, results, value_count * sizeof *first);
            size_t other = 0;
            for (size_t k = 0; k < value_count; ++k)
                other += memcmp(&first[k], &results[k], sizeof *first) != 0 && !(isnan(first[k]) && isnan(results[k]));
            ck_assert_msg(other == 0, "%s of width %d: %zu results are other ones", functions[i].name, widths[w],
                          other);
        }
    for (size_t w = 0; w < count; ++w)
        rnl_text_free(&sources[w]);
    free(first);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("math");
    TCase *tests = tcase_create("math");
    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, every_function_is_near, 0, 4); /* of widths 1, 4, 8, 16 */
    tcase_add_test(tests, all_widths_have_the_same_bits);
    suite_add_tcase(suite, tests);
    return test_run(suite, false);
}
