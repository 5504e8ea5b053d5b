/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that other processes compile, on pocl: what runs then compiles nothing more and computes the same; processes
 * that die, say nothing or talk nonsense are done without. Elsewhere nobody is asked.
 */
#include "base/status.h"
#include "device/device.h"
#include "ops/compile_ahead.h"
#include "ops/map.h"
#include "ops/reduce.h"
#include "support/op_test.h"
#include "support/test_device.h"
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PROGRAMS 4
#define BUFFER_BYTES ((uint64_t)1 << 20)

static char *folder; /* pocl's cache */
static size_t kernels;
static rnl_program *programs[PROGRAMS];
static op_tensor *results[PROGRAMS], *source;
static rnl_map_op ops[PROGRAMS - 1];
static size_t built;

/* Three operators and a softmax of 3 x 40 numbers: a program each. */
static void make_list(rnl_map_op first, rnl_map_op second, rnl_map_op third, bool logarithm)
{
    const int64_t shape[] = {3, 40};
    const rnl_map_op wanted[] = {first, second, third};
    memcpy(ops, wanted, sizeof ops);
    source = op_tensor_create(RNL_F32, 2, shape, OP_ROW_MAJOR);
    op_fill(source, OP_RANDOM, 0.1, 0.9);
    for (size_t i = 0; i < PROGRAMS; i++) {
        results[i] = op_tensor_create(RNL_F32, 2, shape, OP_ROW_MAJOR);
        if (i < PROGRAMS - 1)
            op_expect(RNL_OK, rnl_op_map(op_list(), ops[i], 0, 0, &source->view, 1, &results[i]->view));
        else
            op_expect(RNL_OK, rnl_op_softmax(op_list(), logarithm, 1, 1, &source->view, &results[i]->view));
        programs[i] = op_list()->steps[op_list()->step_count - 1].program;
        for (size_t before = 0; before < i; before++)
            ck_assert_ptr_ne(programs[before], programs[i]);
    }
    ck_assert_uint_eq(op_list()->step_count, PROGRAMS);
    built = 0;
}

static rnl_status build(void *user, rnl_program *program)
{
    (void)user;
    if (rnl_program_is_built(program))
        return RNL_OK;
    built++;
    return rnl_program_build(program);
}

static rnl_status refuse(void *user, rnl_program *program)
{
    TRY(build(user, program));
    return built < 2 ? RNL_OK : FAIL(RNL_INTERNAL, "no more of that");
}

static double apply(rnl_map_op op, double x)
{
    switch (op) {
    case RNL_MAP_EXP:
        return exp(x);
    case RNL_MAP_LOG:
        return log(x);
    case RNL_MAP_SIN:
        return sin(x);
    case RNL_MAP_COS:
        return cos(x);
    case RNL_MAP_TAN:
        return tan(x);
    case RNL_MAP_TANH:
        return tanh(x);
    case RNL_MAP_SINH:
        return sinh(x);
    case RNL_MAP_COSH:
        return cosh(x);
    case RNL_MAP_ATAN:
        return atan(x);
    case RNL_MAP_ASIN:
        return asin(x);
    case RNL_MAP_ACOS:
        return acos(x);
    case RNL_MAP_ERF:
        return erf(x);
    case RNL_MAP_SQRT:
        return sqrt(x);
    case RNL_MAP_FLOOR:
        return floor(x);
    case RNL_MAP_CEIL:
        return ceil(x);
    case RNL_MAP_RELU:
        return x > 0 ? x : 0;
    case RNL_MAP_NEG:
        return -x;
    case RNL_MAP_ABS:
        return fabs(x);
    default:
        ck_abort_msg("no reference");
    }
}

static op_value reference(void *user, const int64_t *coordinates)
{
    return op_float(apply(*(const rnl_map_op *)user, op_get(source, coordinates).f));
}

/* The softmax's rows sum up to 1, whatever it is of. */
static void check_results(bool logarithm)
{
    const op_bound bound = {1e-5, 1e-6};
    for (size_t i = 0; i + 1 < PROGRAMS; i++)
        op_check(results[i], reference, &ops[i], bound);
    for (int64_t row = 0; row < 3; row++) {
        double sum = 0;
        for (int64_t column = 0; column < 40; column++) {
            const double got = op_get(results[PROGRAMS - 1], (const int64_t[]){row, column}).f;
            sum += logarithm ? exp(got) : got;
        }
        ck_assert_double_eq_tol(sum, 1, 1e-5);
    }
}

/* Those of teams (kernel/team.h) are of no step. */
static int count_kernel(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)at;
    const size_t length = strlen(path);
    kernels += kind == FTW_F && length > 3 && strcmp(path + length - 3, ".so") == 0 && !strstr(path, "/team_");
    return 0;
}

static size_t count_kernels(void)
{
    kernels = 0;
    ck_assert_int_eq(nftw(folder, count_kernel, 16, FTW_PHYS), 0);
    return kernels;
}

static uint64_t count_beside(void)
{
    return atomic_load(&op_device()->programs_compiled_beside);
}

static bool is_pocl(void)
{
    return op_device()->binaries_compile;
}

static rnl_status compile(rnl_compiled_fn compiled)
{
    return rnl_compile_ahead(op_list(), programs, PROGRAMS, BUFFER_BYTES, compiled, NULL);
}

static void check_no_children(void)
{
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

/* What nobody has compiled this process does. */
static void check_done_without(void)
{
    const uint64_t before = count_beside();
    op_expect(RNL_OK, compile(build));
    check_no_children();
    ck_assert_uint_eq(count_beside(), before);
    ck_assert_uint_eq(built, is_pocl() ? 1 : 0); /* which showed that the others are new */
    op_run();
}

START_TEST(other_processes_compile)
{
    make_list(RNL_MAP_EXP, RNL_MAP_LOG, RNL_MAP_SIN, false);
    const uint64_t before = count_beside();
    op_expect(RNL_OK, compile(build));
    check_no_children();
    ck_assert_uint_eq(count_beside() - before, is_pocl() ? PROGRAMS : 0);
    ck_assert_uint_eq(built, is_pocl() ? PROGRAMS : 0);
    const size_t compiled = count_kernels();
    op_run();
    if (is_pocl())
        ck_assert_uint_eq(count_kernels(), compiled);
    check_results(false);
}
END_TEST

START_TEST(what_is_compiled_is_not_asked_for_again)
{
    make_list(RNL_MAP_EXP, RNL_MAP_LOG, RNL_MAP_SIN, false);
    const uint64_t before = count_beside();
    op_expect(RNL_OK, compile(build));
    ck_assert_uint_eq(count_beside(), before);
}
END_TEST

START_TEST(they_can_be_turned_off)
{
    make_list(RNL_MAP_COS, RNL_MAP_TAN, RNL_MAP_TANH, true);
    setenv("RUNNEL_COMPILERS", "off", 1);
    check_done_without();
    setenv("RUNNEL_COMPILERS", "2", 1);
    check_results(true);
}
END_TEST

START_TEST(those_that_die_are_done_without)
{
    make_list(RNL_MAP_SINH, RNL_MAP_COSH, RNL_MAP_ATAN, true);
    rnl_compile_worker = "/bin/false";
    check_done_without();
    rnl_compile_worker = NULL;
    check_results(true);
}
END_TEST

/* The one that dies has one of three programs, which this process compiles then; the softmax is there already. */
START_TEST(one_that_dies_has_a_successor)
{
    char path[4096];
    make_list(RNL_MAP_RELU, RNL_MAP_NEG, RNL_MAP_ABS, false);
    ck_assert(rnl_program_is_built(programs[PROGRAMS - 1]));
    snprintf(path, sizeof path, "%s/dies_once", folder);
    FILE *script = fopen(path, "w");
    ck_assert_ptr_nonnull(script);
    fprintf(script,
            "#!/bin/sh\nmkdir %s/once 2>/dev/null && exec head -c 8 >/dev/null\nexec %s/runnel-rt/compile_worker\n",
            folder, getenv("RUNNEL_BUILD"));
    ck_assert_int_eq(fclose(script), 0);
    ck_assert_int_eq(chmod(path, S_IRWXU), 0);
    rnl_compile_worker = path;
    const uint64_t before = count_beside();
    op_expect(RNL_OK, compile(build));
    check_no_children();
    ck_assert_uint_eq(count_beside() - before, is_pocl() ? PROGRAMS - 2 : 0);
    rnl_compile_worker = NULL;
    op_run();
    check_results(false);
}
END_TEST

START_TEST(those_that_say_nothing_are_done_without)
{
    make_list(RNL_MAP_ASIN, RNL_MAP_ACOS, RNL_MAP_ERF, true);
    rnl_compile_worker = "/bin/cat";
    rnl_compile_patience_ms = 200;
    check_done_without();
    rnl_compile_worker = NULL;
    rnl_compile_patience_ms = 120000;
    check_results(true);
}
END_TEST

START_TEST(those_that_talk_nonsense_are_done_without)
{
    char path[4096];
    make_list(RNL_MAP_SQRT, RNL_MAP_FLOOR, RNL_MAP_CEIL, true);
    snprintf(path, sizeof path, "%s/nonsense", folder);
    FILE *script = fopen(path, "w");
    ck_assert_ptr_nonnull(script);
    fputs("#!/bin/sh\nprintf nonsense >&0\nexec cat\n", script);
    ck_assert_int_eq(fclose(script), 0);
    ck_assert_int_eq(chmod(path, S_IRWXU), 0);
    rnl_compile_worker = path;
    check_done_without();
    rnl_compile_worker = NULL;
    check_results(true);
}
END_TEST

START_TEST(an_error_ends_it)
{
    make_list(RNL_MAP_ASINH, RNL_MAP_ACOSH, RNL_MAP_ATANH, true);
    op_expect(is_pocl() ? RNL_INTERNAL : RNL_OK, compile(refuse));
    check_no_children();
    op_reset();
    make_list(RNL_MAP_EXP, RNL_MAP_LOG, RNL_MAP_SIN, false);
    op_expect(RNL_OK, compile(build));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("compilers");
    folder = test_folder_create();
    setenv("POCL_CACHE_DIR", folder, 1); /* the driver reads it when it is loaded */
    setenv("RUNNEL_CACHE", "off", 1);
    setenv("RUNNEL_COMPILERS", "2", 1);
    TCase *tests = op_case(suite, "compilers");
    tcase_set_timeout(tests, 200);
    tcase_add_test(tests, other_processes_compile);
    tcase_add_test(tests, what_is_compiled_is_not_asked_for_again);
    tcase_add_test(tests, they_can_be_turned_off);
    tcase_add_test(tests, those_that_die_are_done_without);
    tcase_add_test(tests, one_that_dies_has_a_successor);
    tcase_add_test(tests, those_that_say_nothing_are_done_without);
    tcase_add_test(tests, those_that_talk_nonsense_are_done_without);
    tcase_add_test(tests, an_error_ends_it);
    const int failed = op_main(suite);
    test_folder_remove(folder);
    return failed;
}
