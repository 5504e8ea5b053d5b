/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and kernels: building, the caches, launching. */
#include "kernel/cache.h"
#include "kernel/program.h"
#include "support/test_device.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char add_source[] = "__kernel void add(__global const float *a, __global float *b, int offset)\n"
                                 "{\n"
                                 "    b[get_global_id(0)] += a[get_global_id(0)] + SCALE * offset;\n"
                                 "}\n";
static const char local_source[] = "__kernel void reverse(__global int *x, __local int *t)\n"
                                   "{\n"
                                   "    int i = get_local_id(0), n = get_local_size(0);\n"
                                   "    t[i] = x[get_global_id(0)];\n"
                                   "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                                   "    x[get_global_id(0)] = t[n - 1 - i];\n"
                                   "}\n";
static const char wrong_source[] = "__kernel void f(__global int *x)\n{\n    x[0] = not_there;\n}\n";

static char *folder;
static rnl_device *device;
static rnl_stream *stream;
static rnl_kernel *kernel;
static rnl_buffer *a, *b;

static void open_all(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    unsetenv("RUNNEL_CACHE");
    device = test_open_device();
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 256, &a));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 256, &b));
}

static void close_all(void)
{
    rnl_kernel_release(kernel);
    kernel = NULL;
    rnl_buffer_release(a);
    rnl_buffer_release(b);
    rnl_stream_release(stream);
    rnl_device_release(device);
    test_folder_remove(folder);
}

static rnl_device_stats stats_of(const rnl_device *of)
{
    rnl_device_stats stats;
    rnl_device_get_stats(of, &stats);
    return stats;
}

static void add_on(rnl_device *own, const char *options)
{
    float in[16], out[16];
    int offset = 2;
    rnl_stream *own_stream;
    rnl_buffer *from, *to;
    rnl_kernel *add;
    for (int i = 0; i < 16; i++)
        in[i] = (float)i;
    test_ok(rnl_stream_create(own, &own_stream));
    test_ok(rnl_buffer_create(own, RNL_MEMORY_DEVICE, sizeof in, &from));
    test_ok(rnl_buffer_create(own, RNL_MEMORY_DEVICE, sizeof in, &to));
    test_ok(rnl_kernel_create(own, add_source, options, "add", &add));
    test_ok(rnl_stream_write(own_stream, from, 0, in, sizeof in));
    test_ok(rnl_stream_fill(own_stream, to, 0, "\0\0\0\0", 4, sizeof in));
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = from},
                            {.kind = RNL_ARG_BUFFER, .buffer = to},
                            {.kind = RNL_ARG_VALUE, .size_bytes = sizeof offset, .value = &offset}};
    const rnl_range range = {.dimensions = 1, .global = {16, 1, 1}, .local = {8, 1, 1}};
    test_ok(rnl_stream_launch(own_stream, add, &range, args, 3));
    test_ok(rnl_stream_read(own_stream, out, to, 0, sizeof out));
    test_ok(rnl_stream_synchronize(own_stream));
    for (int i = 0; i < 16; i++)
        ck_assert_float_eq(out[i], (float)i + 6);
    rnl_kernel_release(add);
    rnl_buffer_release(from);
    rnl_buffer_release(to);
    rnl_stream_release(own_stream);
}

/* Adds on a device of its own; the counters of that device. */
static rnl_device_stats add_on_another_device(const char *options)
{
    rnl_device *own = test_open_device();
    add_on(own, options);
    rnl_device_save_programs(own);
    rnl_device_stats stats = stats_of(own);
    ck_assert_uint_eq(stats.kernels_launched, 1);
    rnl_device_release(own);
    return stats;
}

static void check_counts(rnl_device_stats stats, uint64_t compiled, uint64_t loaded)
{
    ck_assert_uint_eq(stats.programs_compiled, compiled);
    ck_assert_uint_eq(stats.programs_loaded, loaded);
}

START_TEST(a_second_device_loads_from_disk)
{
    check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
    check_counts(add_on_another_device("-DSCALE=3"), 0, 1);
    check_counts(add_on_another_device("-D SCALE=3"), 1, 0);
    check_counts(add_on_another_device("-DSCALE=3"), 0, 1);
}
END_TEST

START_TEST(the_cache_can_be_off)
{
    setenv("RUNNEL_CACHE", "off", 1);
    check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
    check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
    unsetenv("RUNNEL_CACHE");
    check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
    check_counts(add_on_another_device("-DSCALE=3"), 0, 1);
}
END_TEST

/* The path of the one file in the cache. */
static void find_file(char *path, size_t capacity)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    size_t found = 0;
    while ((entry = readdir(entries)))
        if (strstr(entry->d_name, RNL_CACHE_SUFFIX)) {
            snprintf(path, capacity, "%s/%s", folder, entry->d_name);
            found++;
        }
    closedir(entries);
    ck_assert_uint_eq(found, 1);
}

static long file_size(const char *path)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return (long)info.st_size;
}

static void overwrite(const char *path, long at, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "r+b");
    ck_assert_int_eq(fseek(file, at, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

START_TEST(damaged_files_are_compiled_again_and_replaced)
{
    char path[4096];
    check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
    find_file(path, sizeof path);
    long size = file_size(path);
    const long lengths[] = {0, 1, RNL_CACHE_HEADER_BYTES, size / 2, size - 1};
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(truncate(path, lengths[i]), 0);
        check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
        ck_assert_int_gt(file_size(path), size / 2);
        check_counts(add_on_another_device("-DSCALE=3"), 0, 1);
    }
    overwrite(path, size / 2, "\x55\xaa\x55", 3);
    check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
    check_counts(add_on_another_device("-DSCALE=3"), 0, 1);
}
END_TEST

static unsigned warnings;
static char warning[1024];

static void count_warnings(void *user, rnl_log_level level, const char *line)
{
    (void)user;
    if (level <= RNL_LOG_WARNING) {
        warnings++;
        snprintf(warning, sizeof warning, "%s", line);
    }
}

START_TEST(a_folder_that_anybody_can_write_to_is_not_used)
{
    warnings = 0;
    rnl_log_set(count_warnings, NULL, RNL_LOG_WARNING);
    ck_assert_int_eq(chmod(folder, 0777), 0);
    check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
    check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
    rnl_log_set(NULL, NULL, RNL_LOG_ERROR);
    ck_assert_uint_eq(warnings, 1);
    ck_assert_ptr_nonnull(strstr(warning, folder));
}
END_TEST

START_TEST(programs_are_one_object_and_build_once)
{
    rnl_program *one, *same, *different;
    test_ok(rnl_program_get_user(device, add_source, "-DSCALE=1", NULL, false, &one));
    test_ok(rnl_program_get_user(device, add_source, "-DSCALE=1", NULL, false, &same));
    test_ok(rnl_program_get_user(device, add_source, "-DSCALE=2", NULL, false, &different));
    ck_assert_ptr_eq(one, same);
    ck_assert_ptr_ne(one, different);
    ck_assert(!rnl_program_is_built(one));
    check_counts(stats_of(device), 0, 0);
    test_ok(rnl_program_build(one));
    test_ok(rnl_program_build(same));
    ck_assert(rnl_program_is_built(one) && !rnl_program_from_cache(one) && !rnl_program_is_built(different));
    check_counts(stats_of(device), 1, 0);
    ck_assert_str_eq(rnl_program_name(one), "(source) -DSCALE=1");
}
END_TEST

static void *build_program(void *program)
{
    static const char right = 0;
    rnl_status status = rnl_program_build(program);
    if (status == RNL_OK)
        return (void *)(uintptr_t)&right;
    return strstr(rnl_last_error()->message, "not_there") ? NULL : program;
}

static size_t build_in_threads(rnl_program *program, size_t *out_strange)
{
    pthread_t threads[6];
    size_t built = 0;
    *out_strange = 0;
    for (size_t i = 0; i < 6; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, build_program, program), 0);
    for (size_t i = 0; i < 6; i++) {
        void *result;
        pthread_join(threads[i], &result);
        built += result != NULL && result != program;
        *out_strange += result == program;
    }
    return built;
}

START_TEST(threads_wait_for_the_one_that_builds)
{
    rnl_program *program;
    size_t strange;
    test_ok(rnl_program_get_user(device, add_source, "-DSCALE=9", NULL, false, &program));
    ck_assert_uint_eq(build_in_threads(program, &strange), 6);
    check_counts(stats_of(device), 1, 0);
    test_ok(rnl_program_get_user(device, wrong_source, "-DTHREADS", NULL, false, &program));
    ck_assert_uint_eq(build_in_threads(program, &strange), 0);
    ck_assert_uint_eq(strange, 0);
    check_counts(stats_of(device), 1, 0);
}
END_TEST

START_TEST(a_build_error_holds_the_compilers_log)
{
    test_fails(RNL_INVALID_ARGUMENT, "not_there", rnl_kernel_create(device, wrong_source, "-DX", "f", &kernel));
    ck_assert_ptr_null(kernel);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "building (source) -DX"));
    test_fails(RNL_INVALID_ARGUMENT, "not_there", rnl_kernel_create(device, wrong_source, "-DX", "f", &kernel));
    test_fails(RNL_NOT_FOUND, "'minus'", rnl_kernel_create(device, add_source, "-DSCALE=1", "minus", &kernel));
    ck_assert_ptr_null(kernel);
    test_fails(RNL_INVALID_ARGUMENT, "source", rnl_kernel_create(device, NULL, NULL, "f", &kernel));
    test_ok(rnl_kernel_create(device, add_source, "-DSCALE=1", "add", &kernel));
}
END_TEST

static rnl_arg buffer_arg(rnl_buffer *buffer)
{
    return (rnl_arg){.kind = RNL_ARG_BUFFER, .buffer = buffer};
}

START_TEST(local_memory_is_given_and_limited)
{
    int in[64], out[64];
    size_t limit = rnl_device_get_info(device)->local_memory_bytes;
    for (int i = 0; i < 64; i++)
        in[i] = i * i;
    rnl_arg args[] = {buffer_arg(a), {.kind = RNL_ARG_LOCAL, .size_bytes = 16 * sizeof(int)}};
    const rnl_range range = {.dimensions = 1, .global = {64, 1, 1}, .local = {16, 1, 1}};
    test_ok(rnl_kernel_create(device, local_source, NULL, "reverse", &kernel));
    test_ok(rnl_stream_write(stream, a, 0, in, sizeof in));
    args[1].size_bytes = limit + 16;
    test_fails(RNL_RESOURCE_EXHAUSTED, "local memory", rnl_stream_launch(stream, kernel, &range, args, 2));
    args[1].size_bytes = SIZE_MAX;
    test_fails(RNL_RESOURCE_EXHAUSTED, "local memory", rnl_stream_launch(stream, kernel, &range, args, 2));
    args[1].size_bytes = 0;
    test_fails(RNL_INVALID_ARGUMENT, "local memory", rnl_stream_launch(stream, kernel, &range, args, 2));
    args[1].size_bytes = 16 * sizeof(int);
    test_ok(rnl_stream_launch(stream, kernel, &range, args, 2));
    test_ok(rnl_stream_read(stream, out, a, 0, sizeof out));
    test_ok(rnl_stream_synchronize(stream));
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(out[i], in[i / 16 * 16 + 15 - i % 16]);
}
END_TEST

START_TEST(local_memory_counts_once_when_the_range_changes)
{
    rnl_arg args[] = {buffer_arg(a), {.kind = RNL_ARG_LOCAL}};
    args[1].size_bytes = rnl_device_get_info(device)->local_memory_bytes / 10 * 6 / 64 * 64;
    test_ok(rnl_kernel_create(device, local_source, NULL, "reverse", &kernel));
    for (size_t local = 1; local <= 8; local *= 2) {
        const rnl_range range = {.dimensions = 1, .global = {16, 1, 1}, .local = {local, 1, 1}};
        test_ok(rnl_stream_launch(stream, kernel, &range, args, 2));
        test_ok(rnl_stream_synchronize(stream));
    }
}
END_TEST

START_TEST(parts_and_wholes_share_the_cache)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    const rnl_device_info *info = rnl_device_get_info(device);
    char spec[32];
    rnl_device *part;
    snprintf(spec, sizeof spec, "%u:%u", info->platform_index, info->device_index);
    options.compute_units = 1;
    check_counts(add_on_another_device("-DSCALE=3"), 1, 0);
    if (rnl_device_open(spec, &options, &part) != RNL_OK)
        return; /* it cannot be divided */
    add_on(part, "-DSCALE=3");
    check_counts(stats_of(part), 0, 1);
    add_on(part, "-D  SCALE=3");
    rnl_device_release(part); /* saves what it compiled */
    check_counts(add_on_another_device("-D  SCALE=3"), 0, 1);
}
END_TEST

START_TEST(kernels_reach_pinned_memory)
{
    rnl_buffer *pinned;
    int offset = 3;
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 256, &pinned));
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = pinned},
                            {.kind = RNL_ARG_BUFFER, .buffer = pinned},
                            {.kind = RNL_ARG_VALUE, .size_bytes = sizeof offset, .value = &offset}};
    const rnl_range range = {.dimensions = 1, .global = {64, 1, 1}, .local = {8, 1, 1}};
    test_ok(rnl_kernel_create(device, add_source, "-DSCALE=2", "add", &kernel));
    float *host = rnl_buffer_host(pinned);
    for (int round = 0; round < 4; round++) {
        device->maps_in_place = device->maps_in_place && round < 2; /* later as on a GPU */
        for (int i = 0; i < 64; i++)
            host[i] = (float)(i + round);
        test_ok(rnl_stream_launch(stream, kernel, &range, args, 3));
        test_ok(rnl_stream_launch(stream, kernel, &range, args, 3));
        test_ok(rnl_stream_synchronize(stream));
        for (int i = 0; i < 64; i++)
            ck_assert_float_eq(host[i], (float)(4 * (i + round) + 18)); /* x + x + 6, twice */
    }
    rnl_buffer_release(pinned);
}
END_TEST

START_TEST(too_much_static_local_memory_is_refused)
{
    static const char source[] = "__kernel void f(__global int *x)\n"
                                 "{\n"
                                 "    __local int t[BYTES / 4];\n"
                                 "    for (int i = 0; i < BYTES / 4; i += 1024)\n"
                                 "        t[i] = x[i & 15];\n"
                                 "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                                 "    x[0] = t[x[1] & 1023];\n"
                                 "}\n";
    char options[64];
    snprintf(options, sizeof options, "-DBYTES=%llu",
             (unsigned long long)rnl_device_get_info(device)->local_memory_bytes * 2);
    rnl_status status = rnl_kernel_create(device, source, options, "f", &kernel);
    if (status != RNL_OK)
        return; /* this driver notices while it compiles */
    if (rnl_device_get_info(device)->vendor_id == 0x10de)
        return; /* this one allows more than it reports */
    const rnl_arg arg = buffer_arg(a);
    const rnl_range range = {.dimensions = 1, .global = {1, 1, 1}, .local = {1, 1, 1}};
    status = rnl_stream_launch(stream, kernel, &range, &arg, 1);
    ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
}
END_TEST

START_TEST(bad_launches_are_refused_and_leave_the_stream_usable)
{
    int offset = 0;
    size_t most = rnl_device_get_info(device)->max_work_group_size;
    rnl_arg args[] = {buffer_arg(a), buffer_arg(b), {.kind = RNL_ARG_VALUE, .size_bytes = 4, .value = &offset}};
    rnl_range good = {.dimensions = 1, .global = {8, 1, 1}, .local = {4, 1, 1}}, range = good;
    test_ok(rnl_kernel_create(device, add_source, "-DSCALE=1", "add", &kernel));
    test_fails(RNL_INVALID_ARGUMENT, "takes 3", rnl_stream_launch(stream, kernel, &good, args, 2));
    range.dimensions = 0;
    test_fails(RNL_INVALID_ARGUMENT, "dimensions", rnl_stream_launch(stream, kernel, &range, args, 3));
    range.dimensions = 4;
    test_fails(RNL_INVALID_ARGUMENT, "dimensions", rnl_stream_launch(stream, kernel, &range, args, 3));
    range = (rnl_range){.dimensions = 1, .global = {9, 1, 1}, .local = {4, 1, 1}};
    test_fails(RNL_INVALID_ARGUMENT, "divide", rnl_stream_launch(stream, kernel, &range, args, 3));
    range = (rnl_range){.dimensions = 2, .global = {8, 0, 1}, .local = {4, 1, 1}};
    test_fails(RNL_INVALID_ARGUMENT, "dimension 1", rnl_stream_launch(stream, kernel, &range, args, 3));
    range = (rnl_range){.dimensions = 1, .global = {8, 1, 1}, .local = {0, 1, 1}};
    test_fails(RNL_INVALID_ARGUMENT, "groups of 0", rnl_stream_launch(stream, kernel, &range, args, 3));
    range = (rnl_range){.dimensions = 1, .global = {2 * most, 1, 1}, .local = {2 * most, 1, 1}};
    test_fails(RNL_INVALID_ARGUMENT, "work-group", rnl_stream_launch(stream, kernel, &range, args, 3));
    range = (rnl_range){.dimensions = 2, .global = {SIZE_MAX / 2 + 1, 4, 1}, .local = {1, 1, 1}};
    test_fails(RNL_INVALID_ARGUMENT, "too large", rnl_stream_launch(stream, kernel, &range, args, 3));
    args[1].buffer = NULL;
    test_fails(RNL_INVALID_ARGUMENT, "argument 1", rnl_stream_launch(stream, kernel, &good, args, 3));
    args[1].buffer = b;
    args[2].value = NULL;
    test_fails(RNL_INVALID_ARGUMENT, "argument 2", rnl_stream_launch(stream, kernel, &good, args, 3));
    args[2].kind = (rnl_arg_kind)7;
    test_fails(RNL_INVALID_ARGUMENT, "argument 2", rnl_stream_launch(stream, kernel, &good, args, 3));
    args[2] = (rnl_arg){.kind = RNL_ARG_VALUE, .size_bytes = 4, .value = &offset};
    test_ok(rnl_stream_launch(stream, kernel, &good, args, 3));
    test_ok(rnl_stream_synchronize(stream));
}
END_TEST

START_TEST(a_kernel_outlives_the_callers_device)
{
    rnl_device *own = test_open_device();
    test_ok(rnl_kernel_create(own, add_source, "-DSCALE=1", "add", &kernel));
    rnl_device_release(own);
    ck_assert_ptr_eq(rnl_kernel_retain(kernel), kernel);
    rnl_kernel_release(kernel);
    rnl_kernel_release(NULL);
    int offset = 0;
    const rnl_arg args[] = {buffer_arg(a), buffer_arg(b), {.kind = RNL_ARG_VALUE, .size_bytes = 4, .value = &offset}};
    const rnl_range range = {.dimensions = 1, .global = {8, 1, 1}, .local = {4, 1, 1}};
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_stream_launch(stream, kernel, &range, args, 3));
}
END_TEST

START_TEST(not_a_number_propagates)
{
    static const char source[] = "__kernel void f(__global const float *x, __global int *y)\n"
                                 "{\n"
                                 "    y[0] = isnan(x[0] * x[2]) && isnan(x[1] * x[2]);\n"
                                 "    y[1] = x[0] != x[0];\n"
                                 "    y[2] = isinf(x[1]);\n"
                                 "}\n";
    /* The zero is data: Mesa folds a product with a constant 0 to 0, whatever the flags. */
    const uint32_t in[3] = {0x7fc00000u, 0x7f800000u, 0};
    int out[3] = {0};
    const rnl_arg args[] = {buffer_arg(a), buffer_arg(b)};
    const rnl_range range = {.dimensions = 1, .global = {1, 1, 1}, .local = {1, 1, 1}};
    test_ok(rnl_kernel_create(device, source, NULL, "f", &kernel));
    test_ok(rnl_stream_write(stream, a, 0, in, sizeof in));
    test_ok(rnl_stream_launch(stream, kernel, &range, args, 2));
    test_ok(rnl_stream_read(stream, out, b, 0, sizeof out));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_int_eq(out[1], 1);
    ck_assert_int_eq(out[2], 1);
    ck_assert_int_eq(out[0], 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program");
    TCase *test_case = tcase_create("program");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, a_second_device_loads_from_disk);
    tcase_add_test(test_case, the_cache_can_be_off);
    tcase_add_test(test_case, damaged_files_are_compiled_again_and_replaced);
    tcase_add_test(test_case, a_folder_that_anybody_can_write_to_is_not_used);
    tcase_add_test(test_case, programs_are_one_object_and_build_once);
    tcase_add_test(test_case, threads_wait_for_the_one_that_builds);
    tcase_add_test(test_case, a_build_error_holds_the_compilers_log);
    tcase_add_test(test_case, local_memory_is_given_and_limited);
    tcase_add_test(test_case, local_memory_counts_once_when_the_range_changes);
    tcase_add_test(test_case, parts_and_wholes_share_the_cache);
    tcase_add_test(test_case, kernels_reach_pinned_memory);
    tcase_add_test(test_case, too_much_static_local_memory_is_refused);
    tcase_add_test(test_case, bad_launches_are_refused_and_leave_the_stream_usable);
    tcase_add_test(test_case, a_kernel_outlives_the_callers_device);
    tcase_add_test(test_case, not_a_number_propagates);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
