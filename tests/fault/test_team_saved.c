/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of kernels that a team calls, kept on disk: the next device needs no driver's program for them. Libraries
 * that are broken, or none, and it does. Where the device has no team everything runs the usual way.
 */
#include "base/file.h"
#include "base/memory.h"
#include "kernel/cache.h"
#include "kernel/program_internal.h"
#include "kernel/team.h"
#include "support/fault.h"
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/runnel.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIDE 48
#define ROWS 37
#define LAYERS 5
#define MOST_CALLS 4000

static rnl_graph *graph;
static proto bytes;
static float rows[ROWS * SIDE];
static char *folder;

static void setup(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    unsetenv("RUNNEL_CACHE");
    setenv("RUNNEL_INSTRUCTIONS", "off", 1); /* whose trials are programs, too */
    bytes = small_layers(SIDE, LAYERS);
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    for (size_t i = 0; i < ROWS * SIDE; i++)
        rows[i] = (float)((int)(i * 29 % 19) - 9) * 0.125f;
}

static void teardown(void)
{
    rnl_graph_release(graph);
    proto_free(&bytes);
    test_folder_remove(folder);
}

/* A device with the model, from its opening to its end. */
typedef struct place {
    rnl_device *device;
    rnl_model *model;
    rnl_session *session;
} place;

static place open_place(void)
{
    place it = {.device = test_open_device()};
    test_ok(rnl_model_open(graph, it.device, NULL, &it.model));
    test_ok(rnl_session_create(it.model, &it.session));
    return it;
}

static void close_place(place *it)
{
    rnl_session_release(it->session);
    rnl_model_release(it->model);
    rnl_device_release(it->device);
}

static rnl_status run(const place *it)
{
    static double expected[ROWS * SIDE];
    rnl_tensor x = {.name = "x",
                    .dtype = RNL_F32,
                    .rank = 2,
                    .shape = {ROWS, SIDE},
                    .data = rows,
                    .size_bytes = sizeof rows},
               y = {.name = "y"};
    TRY(rnl_session_run(it->session, &x, 1, &y, 1));
    small_layers_compute(SIDE, LAYERS, rows, ROWS, expected);
    for (size_t i = 0; i < ROWS * SIDE; i++)
        ck_assert_double_eq_tol((double)((const float *)y.data)[i], expected[i], 1e-4);
    return RNL_OK;
}

static uint64_t compiled(rnl_device *device)
{
    rnl_device_stats stats;
    rnl_device_get_stats(device, &stats);
    return stats.programs_compiled;
}

/* What to do with each file of the cache that ends so. Returns how many there were. */
typedef void visit_fn(const char *path);
static size_t visit(const char *ending, visit_fn *to_do)
{
    char path[4096];
    size_t count = 0;
    DIR *listing = opendir(folder);
    ck_assert_ptr_nonnull(listing);
    for (const struct dirent *it; (it = readdir(listing));) {
        const size_t length = strlen(it->d_name);
        if (length < strlen(ending) || strcmp(it->d_name + length - strlen(ending), ending) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, it->d_name);
        to_do(path);
        count++;
    }
    closedir(listing);
    return count;
}

static void delete (const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
}

/* One bit, in the middle. */
static void break_it(const char *path)
{
    FILE *file = fopen(path, "r+b");
    ck_assert_ptr_nonnull(file);
    fseek(file, 0, SEEK_END);
    fseek(file, ftell(file) / 2, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 4, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* That is a library's, or nothing right. */
static rnl_hash key_of(const unsigned char *file, size_t size)
{
    rnl_hash key = {0};
    ck_assert_uint_gt(size, 2 * RNL_CACHE_HASH_BYTES);
    for (int i = 0; i < 8; i++) {
        key.low |= (uint64_t)file[size - 2 * RNL_CACHE_HASH_BYTES + i] << (8 * i);
        key.high |= (uint64_t)file[size - RNL_CACHE_HASH_BYTES - 8 + i] << (8 * i);
    }
    return key;
}

static void check_sound(const char *path)
{
    void *file;
    size_t size;
    test_ok(rnl_file_read(path, 1 << 24, &file, &size));
    ck_assert(rnl_cache_check_library(file, size, key_of(file, size)));
    rnl_free(file);
}

/* Sound, and no library. */
static void fill_with_text(const char *path)
{
    static const char text[] = "no library";
    void *file, *made;
    size_t size, made_size;
    test_ok(rnl_file_read(path, 1 << 24, &file, &size));
    const rnl_hash key = key_of(file, size);
    rnl_free(file);
    test_ok(rnl_cache_pack_library(key, text, sizeof text, &made, &made_size));
    test_ok(rnl_file_replace(path, made, made_size));
    rnl_free(made);
}

static void cut_short(const char *path)
{
    ck_assert_int_eq(truncate(path, 100), 0);
}

static size_t fill_cache(void)
{
    place it = open_place();
    const bool has_team = test_must_have_team(it.device);
    for (int i = 0; i < 3; i++)
        test_ok(run(&it));
    close_place(&it);
    const size_t libraries = visit(".rnllib", check_sound);
    ck_assert(libraries > 0 || !has_team);
    return libraries;
}

/* The file of the team's own program in the cache. */
static void find_own(rnl_device *device, char *path, size_t size)
{
    rnl_program *own;
    rnl_hash key;
    char name[64];
    test_ok(rnl_program_get(device, "team.cl", "", &own));
    test_ok(rnl_program_get_key(own, &key));
    rnl_cache_file_name(key, RNL_CACHE_SUFFIX, name, sizeof name);
    snprintf(path, size, "%s/%s", folder, name);
}

/* Without the programs that is all there is, but for the team's own. */
START_TEST(test_programs_are_not_needed)
{
    char own[4096], aside[4096 + 8];
    if (fill_cache() == 0)
        return;
    place it = open_place();
    find_own(it.device, own, sizeof own);
    snprintf(aside, sizeof aside, "%s.aside", own);
    ck_assert_int_eq(rename(own, aside), 0);
    ck_assert_uint_gt(visit(".rnlprog", delete), 0);
    ck_assert_int_eq(rename(aside, own), 0);
    for (int i = 0; i < 3; i++)
        test_ok(run(&it));
    const uint64_t before = compiled(it.device);
    ck_assert_uint_eq(before, 0);
    ck_assert_uint_ge(rnl_device_team_calls(it.device), 3 * LAYERS);
    /* A stream that keeps times needs them after all. */
    const rnl_step_profile *steps;
    size_t count;
    rnl_tensor x = {
        .name = "x", .dtype = RNL_F32, .rank = 2, .shape = {ROWS, SIDE}, .data = rows, .size_bytes = sizeof rows};
    test_ok(rnl_session_profile(it.session, &x, 1, &steps, &count));
    ck_assert_uint_ge(count, LAYERS);
    ck_assert_uint_gt(compiled(it.device), before);
    test_ok(run(&it));
    close_place(&it);
}
END_TEST

/* They are compared before anything is loaded; what is broken is written anew. */
START_TEST(test_broken_libraries)
{
    static visit_fn *const ways[] = {break_it, cut_short, fill_with_text, delete};
    const size_t libraries = fill_cache();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ck_assert_uint_eq(visit(".rnllib", ways[i]), libraries);
        place it = open_place();
        test_ok(run(&it));
        test_ok(run(&it));
        ck_assert_uint_eq(compiled(it.device), 0);
        close_place(&it);
        ck_assert_uint_eq(visit(".rnllib", check_sound), libraries);
    }
}
END_TEST

/* The n-th call of a first run fails, in which kernels tell where they are, without a cache, or are loaded. */
static void fail_each(void)
{
    const uint64_t step = test_sweep_step(1);
    bool more = true;
    for (uint64_t n = 1; more && n < MOST_CALLS; n += step) {
        place it = open_place();
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        const rnl_status status = run(&it);
        more = !test_cl_fault_left();
        if (status != RNL_OK)
            ck_assert_uint_gt(strlen(rnl_last_error()->message), 10);
        test_ok(run(&it));
        close_place(&it);
    }
    ck_assert(!more);
}

START_TEST(test_every_call)
{
    (void)fill_cache();
    fail_each();
    setenv("RUNNEL_CACHE", "off", 1);
    fail_each();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("team_saved");
    TCase *tcase = tcase_create("team_saved");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 0);
    tcase_add_test(tcase, test_programs_are_not_needed);
    tcase_add_test(tcase, test_broken_libraries);
    tcase_add_test(tcase, test_every_call);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
