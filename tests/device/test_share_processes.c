/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of several processes: this program again, which opens a device, says what it got and keeps it. */
#include "device/claim.h"
#include "device/device.h"
#include "device/host_limits.h"
#include "device/part.h"
#include "support/test_device.h"
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLD "hold"

extern char **environ;

static char *folder;

/* ---- The process that keeps a share ---- */

typedef struct holding {
    rnl_status status;
    uint32_t first, units;
    bool is_claimed, is_bound; /* the latter: all of it, or the share's threads */
    pid_t process;
} holding;

/* hold FOLDER alone|among SPEC */
static int keep_share(char **arguments)
{
    rnl_device *device;
    holding own = {0};
    rnl_claim_folder = arguments[1];
    const uint32_t before = rnl_host_cpus();
    own.status = strcmp(arguments[2], "alone") == 0 ? rnl_device_open_alone(arguments[3], NULL, &device)
                                                    : rnl_device_open(arguments[3], NULL, &device);
    if (own.status == RNL_OK) {
        const rnl_device_info *info = rnl_device_get_info(device);
        own.first = info->first_unit;
        own.units = info->compute_units;
        own.is_claimed = device->claim || (device->part && device->part->claim);
        own.is_bound = device->part ? device->part->bound != NULL : rnl_host_cpus() < before;
    } else {
        fprintf(stderr, "%s\n", rnl_last_error()->message);
    }
    if (write(STDOUT_FILENO, &own, sizeof own) != sizeof own)
        return 1;
    char end;
    const bool ended = read(STDIN_FILENO, &end, 1) == 0;
    rnl_device_release(device);
    return ended ? 0 : 1;
}

/* ---- Starting some ---- */

static int pipes[2][2]; /* what they read, and what they write */

static holding start(const char *how, const char *share)
{
    char spec[128];
    const char *device = getenv("RUNNEL_TEST_DEVICE");
    snprintf(spec, sizeof spec, "%s%s", device ? device : "", share);
    const char *const arguments[] = {"test_share_processes", HOLD, rnl_claim_folder, how, spec, NULL};
    posix_spawn_file_actions_t actions;
    holding made;
    pid_t process;
    ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, pipes[0][0], STDIN_FILENO), 0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, pipes[1][1], STDOUT_FILENO), 0);
    ck_assert_int_eq(posix_spawn_file_actions_addclose(&actions, pipes[0][1]), 0);
    ck_assert_int_eq(
        posix_spawn(&process, "/proc/self/exe", &actions, NULL, (char *const *)(uintptr_t)arguments, environ), 0);
    ck_assert_int_eq(posix_spawn_file_actions_destroy(&actions), 0);
    ck_assert_int_eq(read(pipes[1][0], &made, sizeof made), sizeof made);
    made.process = process;
    return made;
}

static void crash(const holding *held)
{
    int status;
    ck_assert_int_eq(kill(held->process, SIGKILL), 0);
    ck_assert_int_eq(waitpid(held->process, &status, 0), held->process);
}

/* All that are left release theirs. */
static void end_all(void)
{
    int status;
    close(pipes[0][1]);
    while (wait(&status) > 0)
        ck_assert_int_eq(status, 0);
    ck_assert_int_eq(pipe(pipes[0]), 0);
}

static void setup(void)
{
    folder = test_folder_create();
    rnl_claim_folder = folder;
    ck_assert_int_eq(pipe(pipes[0]), 0);
    ck_assert_int_eq(pipe(pipes[1]), 0);
}

static void teardown(void)
{
    for (int i = 0; i < 4; i++)
        close(pipes[i / 2][i % 2]);
    test_folder_remove(folder);
}

/* ---- What they get ---- */

static const char *const ways[] = {"alone", "among"};

/* Not every driver lets its threads be bound when other devices are open. */
static bool binds(const char *how)
{
    const holding named = start(how, "/2.1");
    end_all();
    return named.status == RNL_OK && named.is_bound;
}

START_TEST(halves_of_two_processes_are_two)
{
    const char *how = ways[_i];
    if (!binds(how))
        return;
    holding held[4];
    for (int i = 0; i < 3; i++) {
        held[i] = start(how, "/2");
        ck_assert_int_eq(held[i].status, RNL_OK);
    }
    ck_assert_uint_eq(held[0].first, 0);
    ck_assert_uint_eq(held[1].first, held[0].units);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(held[i].is_claimed, i < 2);
        ck_assert_int_eq(held[i].is_bound, i < 2); /* the system finds a place for the third one */
    }
    crash(&held[1]);
    held[3] = start(how, "/2");
    ck_assert_uint_eq(held[3].first, held[1].first);
    ck_assert(held[3].is_bound);
    end_all();
}
END_TEST

START_TEST(a_half_that_is_named_is_avoided)
{
    const char *how = ways[_i];
    if (!binds(how))
        return;
    const holding named = start(how, "/2.0"), twice = start(how, "/2.0"), free = start(how, "/2");
    ck_assert(named.is_claimed && twice.is_claimed && free.is_claimed);
    ck_assert_uint_eq(twice.first, 0);
    ck_assert_uint_eq(free.first, named.units);
    const holding beside = start(how, "/2.1"); /* had, though another process chose it */
    ck_assert_int_eq(beside.status, RNL_OK);
    ck_assert(beside.is_bound && beside.is_claimed);
    crash(&free);
    const holding none = start(how, "/2");
    ck_assert(none.status == RNL_OK && !none.is_bound);
    end_all();
}
END_TEST

START_TEST(parts_of_other_sizes_are_avoided)
{
    const char *how = ways[_i];
    if (rnl_host_cpus() < 4 || !binds(how))
        return;
    const holding quarter = start(how, "/4"), half = start(how, "/2"), next = start(how, "/4");
    ck_assert(quarter.is_claimed && half.is_claimed && next.is_claimed);
    ck_assert_uint_eq(quarter.first, 0);
    ck_assert_uint_ge(half.first, 2 * quarter.units);
    ck_assert_uint_eq(next.first, quarter.units);
    end_all();
}
END_TEST

/* Both ways of opening see each other. */
START_TEST(a_process_alone_and_one_among_several)
{
    if (!binds("alone") || !binds("among"))
        return;
    const holding alone = start("alone", "/2"), among = start("among", "/2");
    ck_assert(alone.is_claimed && among.is_claimed);
    ck_assert_uint_eq(alone.first, 0);
    ck_assert_uint_eq(among.first, alone.units);
    end_all();
}
END_TEST

START_TEST(nodes_are_claimed)
{
    const holding node = start("alone", "/numa"), again = start("alone", "/numa"), half = start("alone", "/2");
    if (node.is_claimed) /* where the process can be held to one */
        ck_assert(again.is_claimed && again.status == RNL_OK);
    if (node.is_claimed && node.units == rnl_host_cpus()) /* the only one */
        ck_assert(half.status == RNL_OK && !half.is_claimed);
    end_all();
}
END_TEST

START_TEST(a_share_is_had_without_claims)
{
    char none[4096];
    const char *how = ways[_i];
    if (!binds(how))
        return;
    snprintf(none, sizeof none, "%s/none", folder);
    rnl_claim_folder = none;
    const holding named = start(how, "/2.1"), first = start(how, "/2"), second = start(how, "/2");
    ck_assert(named.status == RNL_OK && first.status == RNL_OK && second.status == RNL_OK);
    ck_assert(named.is_bound && !first.is_bound && !second.is_bound);
    ck_assert(!named.is_claimed && !first.is_claimed && !second.is_claimed);
    ck_assert_uint_eq(first.first, 0);
    ck_assert_uint_eq(second.first, 0);
    end_all();
}
END_TEST

int main(int count, char **arguments)
{
    if (count == 5 && strcmp(arguments[1], HOLD) == 0)
        return keep_share(arguments + 1);
    if (rnl_host_cpus() < 2)
        return 77;
    Suite *suite = suite_create("share_processes");
    TCase *test_case = tcase_create("share_processes");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_loop_test(test_case, halves_of_two_processes_are_two, 0, 2);
    tcase_add_loop_test(test_case, a_half_that_is_named_is_avoided, 0, 2);
    tcase_add_loop_test(test_case, parts_of_other_sizes_are_avoided, 0, 2);
    tcase_add_test(test_case, a_process_alone_and_one_among_several);
    tcase_add_test(test_case, nodes_are_claimed);
    tcase_add_loop_test(test_case, a_share_is_had_without_claims, 0, 2);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
