/* SPDX-License-Identifier: Apache-2.0 */
/* Host evaluation by hand: what the reference cases do not reach. Inputs lie at odd addresses. */
#include "unit/op_text.h"
#include <math.h>

typedef struct eval_row {
    const char *op_type;
    int opset;
    const char *inputs, *attributes, *output;
} eval_row;

static const eval_row integers[] = {
    {"Div", 14, "i32:4=7,-7,5,-2147483648 i32:4=-2,2,0,-1", "", "i32:4=-3,-3,0,-2147483648"},
    {"Div", 14, "i64:2=-9223372036854775808,3 i64:2=-1,0", "", "i64:2=-9223372036854775808,0"},
    {"Div", 14, "i8:2=-128,100 i8:2=-1,7", "", "i8:2=-128,14"},
    {"Div", 14, "u8:3=200,7,9 u8:3=7,0,255", "", "u8:3=28,0,0"},
    {"Div", 14, "u64:1=18446744073709551615 u64:1=2", "", "u64:1=9223372036854775807"},
    {"Mod", 13, "i64:5=7,-7,7,-7,1 i64:5=3,3,-3,-3,0", "", "i64:5=1,2,-2,-1,0"},
    {"Mod", 13, "i64:5=7,-7,7,-7,1 i64:5=3,3,-3,-3,0", "fmod:i=1", "i64:5=1,-1,1,-1,0"},
    {"Mod", 13, "i64:1=-9223372036854775808 i64:1=-1", "", "i64:1=0"},
    {"Mod", 13, "u32:2=7,7 u32:2=0,4", "", "u32:2=0,3"},
    {"Add", 14, "i8:3=127,-128,1 i8:3=1,-1,2", "", "i8:3=-128,127,3"},
    {"Mul", 14, "i64:2=4611686018427387904,3 i64:2=4,-5", "", "i64:2=0,-15"},
    {"Sub", 14, "u16:2=1,5 u16:2=2,5", "", "u16:2=65535,0"},
    {"Neg", 13, "i64:2=-9223372036854775808,5", "", "i64:2=-9223372036854775808,-5"},
    {"Abs", 13, "i8:2=-128,-5", "", "i8:2=-128,5"},
    {"Sign", 13, "u64:2=18446744073709551615,0", "", "u64:2=1,0"},
    {"Pow", 15, "i64:6=2,-3,0,1,-1,2 i64:6=10,3,0,-5,-3,-1", "", "i64:6=1024,-27,1,1,-1,0"},
    {"Pow", 15, "i32:1=3 u64:1=40", "", "i32:1=689956897"}, /* 3^40 mod 2^32 */
    {"Max", 13, "u64:1=18446744073709551615 u64:1=1", "", "u64:1=18446744073709551615"},
    {"Min", 13, "i64:1=-1 i64:1=1", "", "i64:1=-1"},
    {"Less", 13, "u64:1=18446744073709551615 u64:1=1", "", "bool:1=0"},
    {"Equal", 13, "i64:2=9007199254740993,1 i64:2=9007199254740992,1", "", "bool:2=0,1"},
    {"Equal", 13, "bool:2=1,0 bool:1=1", "", "bool:2=1,0"},
    {"Clip", 13, "u64:2=18446744073709551615,3 - u64:=7", "", "u64:2=7,3"},
    {"Clip", 13, "i8:3=-128,0,127 i8:=-5 i8:=5", "", "i8:3=-5,0,5"},
    {"Clip", 13, "i8:3=-128,0,127", "", "i8:3=-128,0,127"},
    {"PRelu", 16, "i32:2=-3,4 i32:1=2", "", "i32:2=-6,4"},
    {"ReduceSum", 13, "i32:2=2147483647,1 i64:1=0", "", "i32:1=-2147483648"},
    {"ReduceMean", 18, "i32:3=-3,-4,0 i64:1=0", "", "i32:1=-2"},
    {"ReduceMean", 18, "u64:2=18446744073709551614,1 i64:1=0", "", "u64:1=9223372036854775807"},
    {"ReduceMax", 18, "i8:0=", "keepdims:i=0", "i8:=-128"},
    {"ReduceMin", 18, "u8:0=", "", "u8:1=255"},
    {"ReduceMax", 20, "bool:2x2=0,1,0,0 i64:1=1", "keepdims:i=0", "bool:2=1,0"},
    {"ReduceMin", 20, "bool:2x2=1,1,0,1 i64:1=1", "keepdims:i=0", "bool:2=1,0"},
    {"ReduceL1", 18, "i64:3=-1,2,-3 i64:1=0", "", "i64:1=6"},
    {"ReduceL2", 18, "i64:2=-3,4 i64:1=0", "", "i64:1=5"},
    {"ReduceMean", 18, "i64:0= i64:1=0", "", "i64:1=0"},
};

static const eval_row casts[] = {
    {"Cast", 13, "f32:5=nan,inf,-inf,1e20,-1e20", "to:i=7",
     "i64:5=0,9223372036854775807,-9223372036854775808,9223372036854775807,-9223372036854775808"},
    {"Cast", 13, "f32:5=300,-1,255.9,-0.5,nan", "to:i=2", "u8:5=255,0,255,0,0"},
    {"Cast", 13, "f64:3=18446744073709551615,1e300,-1", "to:i=13", "u64:3=18446744073709551615,18446744073709551615,0"},
    {"Cast", 13, "f32:4=0,-0,nan,0.25", "to:i=9", "bool:4=0,0,1,1"},
    {"Cast", 13, "i64:3=256,0,-1", "to:i=9", "bool:3=1,0,1"},
    {"Cast", 13, "i64:3=300,-1,128", "to:i=3", "i8:3=44,-1,-128"},
    {"Cast", 13, "u64:1=18446744073709551615", "to:i=7", "i64:1=-1"},
    {"Cast", 13, "i64:2=16777217,-16777219", "to:i=1", "f32:2=16777216,-16777220"},
    {"Cast", 13, "i64:1=1152921573326323713", "to:i=1", "f32:1=1152921642045800448"}, /* not by way of a double */
    {"Cast", 13, "f64:6=65519.99,65520,-65520,5.9604645e-8,2.9802322e-8,2.9802323e-8", "to:i=10",
     "f16:6=65504,inf,-inf,5.9604645e-8,0,5.9604645e-8"},
    {"Cast", 13, "f64:3=1.00048828125,1.00048828126,1.00146484375", "to:i=10", "f16:3=1,1.0009765625,1.001953125"},
    {"Cast", 13, "f32:4=1.00390625,1.01171875,3.4e38,1e-40", "to:i=16", "bf16:4=1,1.015625,inf,9.918e-41"},
    {"Cast", 13, "f16:2=65504,-6.1e-5", "to:i=11", "f64:2=65504,-6.0975551605224609e-5"},
    {"Cast", 13, "bool:2=1,0", "to:i=10", "f16:2=1,0"},
};

static const eval_row floats[] = {
    {"Mod", 28, "f32:6=5.5,-5.5,5.5,-1,1,-0 f32:6=2,2,-2,inf,-inf,-3", "", "f32:6=1.5,0.5,-0.5,inf,-inf,-0"},
    {"Mod", 13, "f32:3=5.5,-5.5,1 f32:3=2,2,0", "fmod:i=1", "f32:3=1.5,-1.5,nan"},
    {"Max", 13, "f32:3=nan,1,-0 f32:3=1,nan,1", "", "f32:3=nan,nan,1"},
    {"Min", 13, "f16:3=nan,1,-inf f16:3=1,nan,1", "", "f16:3=nan,nan,-inf"},
    {"Less", 13, "f32:3=nan,1,2 f32:1=2", "", "bool:3=0,1,0"},
    {"GreaterOrEqual", 16, "f32:3=nan,1,2 f32:1=2", "", "bool:3=0,0,1"},
    {"Div", 14, "f32:3=1,-1,0 f32:1=0", "", "f32:3=inf,-inf,nan"},
    {"Clip", 13, "f32:3=-inf,nan,inf", "", "f32:3=-3.4028234663852886e38,nan,3.4028234663852886e38"},
    {"Clip", 13, "bf16:2=-inf,inf", "", "bf16:2=-3.3895313892515355e38,3.3895313892515355e38"},
    {"Clip", 13, "f32:1=5 f32:=7 f32:=3", "", "f32:1=3"},
    {"Where", 9, "bool:2x1=1,0 bf16:2=1,2 bf16:=9", "", "bf16:2x2=1,2,9,9"},
    {"Round", 11, "f32:6=0.5,1.5,-0.5,-2.5,nan,inf", "", "f32:6=0,2,-0,-2,nan,inf"},
    {"Sum", 13, "f16:2=2048,1 f16:1=1 f16:1=1", "", "f16:2=2048,3"}, /* rounds after each input */
    {"ReduceMax", 18, "f32:2x0= i64:1=1", "", "f32:2x1=-inf,-inf"},
    {"ReduceMin", 18, "f32:0= i64:1=0", "keepdims:i=0", "f32:=inf"},
    {"ReduceMax", 18, "f32:3=1,nan,2 i64:1=0", "", "f32:1=nan"},
    {"ReduceMean", 18, "f32:0= i64:1=0", "", "f32:1=nan"},
    {"ReduceLogSumExp", 18, "f32:2=1000,1000 i64:1=0", "", "f32:1=1000.6931471805599"},
    {"ReduceLogSumExp", 18, "f32:2=-inf,-inf i64:1=0", "", "f32:1=-inf"},
    {"ReduceSumSquare", 18, "f32:2=-3,2", "noop_with_empty_axes:i=1", "f32:2=9,4"},
    {"ReduceLogSum", 18, "f32:2=1,0", "noop_with_empty_axes:i=1", "f32:2=0,-inf"},
    {"ReduceSum", 13, "f32:=4", "", "f32:=4"},
    {"Range", 11, "f32:=1 f32:=2 f32:=0.25", "", "f32:4=1,1.25,1.5,1.75"},
    {"Range", 27, "bf16:=0 bf16:=3 bf16:=1 ", "stash_type:i=1", "bf16:3=0,1,2"},
    {"Pad", 7, "f32:2=1,2", "pads:is=1,2 value:f=9", "f32:5=9,1,2,9,9"},
    {"Pad", 13, "bool:2=1,0 i64:2=0,1 bool:=1", "", "bool:3=1,0,1"},
    {"Pad", 19, "i32:3=1,2,3 i64:2=4,5", "mode:s=wrap", "i32:12=3,1,2,3,1,2,3,1,2,3,1,2"},
    {"Pad", 13, "i32:4=1,2,3,4 i64:2=-1,2", "mode:s=reflect", "i32:5=2,3,4,3,2"},
    {"Gather", 13, "u8:2x3=1,2,3,4,5,6 i32:2=-1,0", "axis:i=1", "u8:2x2=3,1,6,4"},
    {"Slice", 13, "i16:2x3=1,2,3,4,5,6 i64:2=-1,-1 i64:2=-100,0 i64:2=0,1 i64:2=-1,-2", "", "i16:2x1=6,3"},
    {"Concat", 13, "f16:2x1=1,2 f16:2x0= f16:2x2=3,4,5,6", "axis:i=-1", "f16:2x3=1,3,4,2,5,6"},
    {"Transpose", 13, "i8:2x3=1,2,3,4,5,6", "", "i8:3x2=1,4,2,5,3,6"},
    {"Tile", 13, "i8:2x1=1,2 i64:2=1,3", "", "i8:2x3=1,1,1,2,2,2"},
    {"Size", 13, "f32:2x3", "", "i64:=6"}, /* contents not known */
    {"Shape", 15, "f32:2x3x4", "start:i=-2", "i64:2=3,4"},
    {"CastLike", 15, "f32:1=2.7 i32:5", "", "i32:1=2"},
};

static bool same_number(rnl_number a, rnl_number b, rnl_dtype dtype)
{
    if (rnl_dtype_kind(dtype) != RNL_NUMBER_FLOAT)
        return a.u == b.u;
    if (isnan(b.f))
        return isnan(a.f);
    return fabs(a.f - b.f) <= 1e-7 * fabs(b.f) ? signbit(a.f) == signbit(b.f) : a.f == b.f;
}

static void check_row(const eval_row *row)
{
    unsigned char data[OP_TEXT_VALUES * 8];
    op_text *t = malloc(sizeof *t);
    rnl_tensor_desc want = op_text_tensor(row->output, data);
    op_text_init(t, row->op_type, row->opset, row->inputs, row->attributes, 1);
    ck_assert_msg(op_node_infer(&t->n) == RNL_OK, "%s: %s", row->op_type, rnl_last_error()->message);
    ck_assert_msg(op_node_evaluate(&t->n) == RNL_OK, "%s: %s", row->op_type, rnl_last_error()->message);
    const rnl_tensor_desc *got = &t->n.outputs[0];
    ck_assert_msg(got->dtype == want.dtype && got->rank == want.rank &&
                      memcmp(got->shape, want.shape, want.rank * sizeof *want.shape) == 0,
                  "%s(%s): %s, not %s", row->op_type, row->inputs, rnl_shape_format(got->shape, got->rank).text,
                  row->output);
    for (int64_t i = 0; i < rnl_desc_elements(&want); i++) {
        rnl_number a = rnl_element_load(t->n.results[0], i, want.dtype), b = rnl_element_load(data, i, want.dtype);
        ck_assert_msg(same_number(a, b, want.dtype), "%s(%s): element %d is %.17g, not %s", row->op_type, row->inputs,
                      (int)i, rnl_number_double(a, want.dtype), row->output);
    }
    op_node_free(&t->n);
    free(t);
}

#define TABLE_TEST(table)                                                                                              \
    START_TEST(table##_rows)                                                                                           \
    {                                                                                                                  \
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)                                                      \
            check_row(&table[i]);                                                                                      \
    }                                                                                                                  \
    END_TEST
TABLE_TEST(integers)
TABLE_TEST(casts)
TABLE_TEST(floats)

/* Contents that are not there are named, not read. */
START_TEST(unknown_contents)
{
    static const eval_row rows[] = {
        {"Add", 14, "i64:2=1,2 i64:2", "", "input 1 of Add"},
        {"Neg", 13, "i64:2", "", "input 0 of Neg"},
        {"Gather", 13, "f32:3 i64:1=0", "", "input 0 of Gather"},
        {"Cast", 13, "f32:3", "to:i=1", "input 0 of Cast"},
        {"Concat", 13, "f32:1=1 f32:3", "axis:i=0", "input 1 of Concat"},
        {"Where", 9, "bool:1=1 f32:1=1 f32:1", "", "input 2 of Where"},
    };
    op_text *t = malloc(sizeof *t);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        op_text_init(t, rows[i].op_type, rows[i].opset, rows[i].inputs, rows[i].attributes, 1);
        ck_assert_int_eq(op_node_infer(&t->n), RNL_OK);
        ck_assert_int_eq(op_node_evaluate(&t->n), RNL_FAILED_PRECONDITION);
        ck_assert_msg(strstr(rnl_last_error()->message, rows[i].output) != NULL, "%s", rnl_last_error()->message);
        op_node_free(&t->n);
    }
    free(t);
}
END_TEST

/* Every f16 and bf16 survives the way to a double and back; neighbours' midpoints round to the even one. */
START_TEST(sixteen_bits)
{
    const rnl_dtype types[] = {RNL_F16, RNL_BF16};
    for (size_t t = 0; t < 2; t++) {
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            uint16_t in = (uint16_t)bits, next = (uint16_t)(bits + 1), out;
            rnl_number x = rnl_element_load(&in, 0, types[t]);
            rnl_element_store(&out, 0, types[t], x);
            ck_assert(isnan(x.f) ? isnan(rnl_element_load(&out, 0, types[t]).f) : out == in);
            rnl_number y = rnl_element_load(&next, 0, types[t]);
            if (!isfinite(x.f) || !isfinite(y.f) || (bits & 0x7fff) == 0x7fff)
                continue;
            rnl_element_store(&out, 0, types[t], (rnl_number){.f = (x.f + y.f) / 2});
            ck_assert_uint_eq(out, bits & 1 ? next : in);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("op_eval");
    TCase *tests = tcase_create("eval");
    tcase_add_test(tests, integers_rows);
    tcase_add_test(tests, casts_rows);
    tcase_add_test(tests, floats_rows);
    tcase_add_test(tests, unknown_contents);
    tcase_add_test(tests, sixteen_bits);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
