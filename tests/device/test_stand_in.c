/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pocl compiled for a launch stands in for what it would compile for a binary, and the binary is whole: this
 * program again, which has our cache and none of pocl's, compiles nothing and computes the same.
 */
#include "device/device.h"
#include "kernel/program.h"
#include "support/test_device.h"
#include <ftw.h>
#include <runnel/gemm.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN "again"
#define N 24
#define K 40

extern char **environ;

static char *ours, *first, *second; /* our cache, and pocl's of the two processes */
static size_t generals, stand_ins;

/* A row of 0, 1, 2 … times a matrix of 2: each sum is K (K - 1). */
static void multiply(rnl_device *device)
{
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    rnl_stream *stream;
    rnl_buffer *a, *b, *c;
    float row[K], matrix[K * N], sums[N];
    for (int i = 0; i < K; i++)
        row[i] = (float)i;
    for (int i = 0; i < K * N; i++)
        matrix[i] = 2.0f;
    desc.m = 1, desc.n = N, desc.k = K;
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof row, &a));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof matrix, &b));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof sums, &c));
    test_ok(rnl_stream_write(stream, a, 0, row, sizeof row));
    test_ok(rnl_stream_write(stream, b, 0, matrix, sizeof matrix));
    const rnl_gemm_operands operands = {.struct_size = sizeof operands, .a = a, .b = b, .c = c};
    test_ok(rnl_gemm_run(stream, &desc, &operands));
    test_ok(rnl_stream_read(stream, sums, c, 0, sizeof sums));
    test_ok(rnl_stream_synchronize(stream));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(sums[i], K * (K - 1));
    rnl_buffer_release(a);
    rnl_buffer_release(b);
    rnl_buffer_release(c);
    rnl_stream_release(stream);
    rnl_device_save_programs(device);
}

static int count_general(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)at;
    if (kind == FTW_F && strstr(path, "/0-0-0/") && strcmp(path + strlen(path) - 3, ".so") == 0) {
        generals++;
        stand_ins += info->st_nlink > 1;
    }
    return 0;
}

static int run_again(void)
{
    char program[] = "/proc/self/exe", again[] = AGAIN, *arguments[] = {program, again, NULL};
    pid_t process;
    int ended;
    setenv("POCL_CACHE_DIR", second, 1);
    ck_assert_int_eq(posix_spawn(&process, program, NULL, NULL, arguments, environ), 0);
    ck_assert_int_eq(waitpid(process, &ended, 0), process);
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
}

START_TEST(binaries_hold_what_was_launched)
{
    rnl_device *device = test_open_device();
    const bool is_pocl = device->binaries_compile;
    multiply(device);
    rnl_device_release(device);
    ck_assert_int_eq(nftw(first, count_general, 16, FTW_PHYS), 0);
    ck_assert_uint_eq(is_pocl, generals > 0);
    ck_assert_uint_eq(is_pocl, stand_ins > 0);
    ck_assert_int_eq(run_again(), 0);
}
END_TEST

START_TEST(another_process_compiles_nothing)
{
    rnl_device *device = test_open_device();
    const bool is_pocl = device->binaries_compile;
    rnl_device_stats stats;
    multiply(device);
    rnl_device_get_stats(device, &stats);
    if (is_pocl)
        ck_assert_uint_eq(stats.programs_compiled, 0);
    rnl_device_release(device);
}
END_TEST

int main(int argc, char **argv)
{
    const bool again = argc > 1 && strcmp(argv[1], AGAIN) == 0;
    Suite *suite = suite_create(again ? "stand_in_again" : "stand_in");
    TCase *test_case = tcase_create("stand_in");
    tcase_set_timeout(test_case, 200);
    tcase_add_test(test_case, again ? another_process_compiles_nothing : binaries_hold_what_was_launched);
    suite_add_tcase(suite, test_case);
    if (again)
        return test_run(suite, false);
    ours = test_folder_create();
    first = test_folder_create();
    second = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", ours, 1);
    setenv("POCL_CACHE_DIR", first, 1); /* the driver reads it when it is loaded */
    unsetenv("RUNNEL_CACHE");
    const int result = test_run(suite, false);
    test_folder_remove(ours);
    test_folder_remove(first);
    test_folder_remove(second);
    return result;
}
