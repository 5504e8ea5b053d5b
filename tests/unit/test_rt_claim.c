/* SPDX-License-Identifier: Apache-2.0 */
/* Claims on processors: between processes, forks and threads, and where the folder cannot be had. */
#include "device/claim.h"
#include "support/test_device.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder;

static void setup(void)
{
    folder = test_folder_create();
    rnl_claim_folder = folder;
}

static void teardown(void)
{
    test_folder_remove(folder);
}

/* A digit for each processor: "0145". */
static cpu_set_t set_of(const char *digits)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (; *digits; digits++)
        CPU_SET(*digits - '0', &set);
    return set;
}

/* Of these, separated by '/', the first that is free. */
static rnl_claim *choose(const char *sets, int *out_at)
{
    char copy[64], *rest = copy;
    rnl_claim *claim = rnl_claim_begin();
    bool taken = false;
    snprintf(copy, sizeof copy, "%s", sets);
    *out_at = -1;
    for (char *digits; !taken && (digits = strsep(&rest, "/"));) {
        const cpu_set_t set = set_of(digits);
        taken = rnl_claim_take(claim, &set);
        ++*out_at;
    }
    claim = rnl_claim_end(claim);
    *out_at = claim ? *out_at : -1;
    return claim;
}

static int chosen(const char *sets)
{
    int at;
    rnl_claim_give_back(choose(sets, &at));
    return at;
}

START_TEST(parts_of_any_size_do_not_overlap)
{
    int at;
    rnl_claim *quarter = choose("01/23/45/67", &at);
    ck_assert_int_eq(at, 0);
    rnl_claim *half = choose("0123/4567", &at);
    ck_assert_int_eq(at, 1);
    ck_assert_int_eq(chosen("01/23/45/67"), 1);
    ck_assert_int_eq(chosen("0123/4567"), -1);
    ck_assert_int_eq(chosen("0246/1357"), -1);
    ck_assert_int_eq(chosen("0/7/3"), 2);
    rnl_claim_give_back(half);
    ck_assert_int_eq(chosen("0123/4567"), 1);
    ck_assert_int_eq(chosen("0246/257"), 1);
    rnl_claim_give_back(quarter);
    ck_assert_int_eq(chosen("0123/4567"), 0);
    rnl_claim_give_back(NULL);
}
END_TEST

START_TEST(what_is_named_is_had_all_the_same)
{
    int at;
    const cpu_set_t odd = set_of("135"), first = set_of("01");
    rnl_claim *free = choose("01/23", &at), *one = rnl_claim_beside(&odd), *two = rnl_claim_beside(&odd);
    ck_assert(one && two);
    rnl_claim_give_back(free);
    ck_assert_int_eq(chosen("01/5/34/24"), 3);
    rnl_claim_give_back(one);
    ck_assert_int_eq(chosen("01/5/34/24"), 3); /* there is another one */
    rnl_claim_give_back(two);
    ck_assert_int_eq(chosen("01/5"), 0);
    rnl_claim *again = rnl_claim_beside(&first);
    ck_assert_int_eq(chosen("01/5"), 1);
    rnl_claim_give_back(again);
}
END_TEST

START_TEST(a_choice_is_made_once)
{
    const cpu_set_t one = set_of("1"), two = set_of("2");
    rnl_claim *claim = rnl_claim_begin();
    ck_assert(rnl_claim_take(claim, &one));
    ck_assert(!rnl_claim_take(claim, &two));
    claim = rnl_claim_end(claim);
    ck_assert_ptr_nonnull(claim);
    ck_assert_int_eq(chosen("2"), 0);
    rnl_claim_give_back(claim);
    ck_assert_ptr_null(rnl_claim_end(rnl_claim_begin()));
    ck_assert_int_eq(chosen("1"), 0);
}
END_TEST

/* A child that tells what it got, and waits to be killed. */
static pid_t start_holder(const char *sets, int *out_at)
{
    int ends[2], at;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        choose(sets, &at);
        if (write(ends[1], &at, sizeof at) != sizeof at)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(ends[0], out_at, sizeof *out_at), sizeof *out_at);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void end_holder(pid_t child)
{
    int status;
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
}

START_TEST(a_process_that_is_killed_leaves_nothing)
{
    int at[3];
    const pid_t first = start_holder("01/23", &at[0]), second = start_holder("01/23", &at[1]);
    ck_assert_int_eq(at[0], 0);
    ck_assert_int_eq(at[1], 1);
    const pid_t third = start_holder("01/23", &at[2]);
    ck_assert_int_eq(at[2], -1);
    end_holder(first);
    ck_assert_int_eq(chosen("01/23"), 0);
    end_holder(second);
    end_holder(third);
    ck_assert_int_eq(chosen("23/01"), 0);
}
END_TEST

START_TEST(a_forked_child_has_no_part_in_it)
{
    int at, ignored;
    rnl_claim *claim = choose("01", &at);
    const pid_t child = start_holder("45", &ignored);
    ck_assert_int_eq(chosen("01"), -1);
    rnl_claim_give_back(claim); /* free, though the child goes on */
    ck_assert_int_eq(chosen("01"), 0);
    claim = choose("01", &at);
    end_holder(child);
    ck_assert_int_eq(chosen("01"), -1); /* and had, though a child has ended */
    const pid_t other = fork();
    if (other == 0) {
        rnl_claim_give_back(claim);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(other, &ignored, 0), other);
    ck_assert_int_eq(chosen("01"), -1);
    rnl_claim_give_back(claim);
}
END_TEST

static atomic_int users[4];

static void *take_turns(void *argument)
{
    for (int i = 0; i < 200; i++) {
        int at;
        rnl_claim *claim = choose("0/1/2/3", &at);
        if (at >= 0 && atomic_fetch_add(&users[at], 1) != 0)
            return NULL;
        if (at >= 0)
            atomic_fetch_sub(&users[at], 1);
        rnl_claim_give_back(claim);
    }
    return argument;
}

START_TEST(threads_choose)
{
    pthread_t threads[4];
    void *result;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_turns, &threads), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        ck_assert_ptr_nonnull(result);
    }
    ck_assert_int_eq(chosen("0123"), 0);
}
END_TEST

static void expect_none(void)
{
    const cpu_set_t one = set_of("1");
    ck_assert_int_eq(chosen("1/2"), -1);
    ck_assert_ptr_null(rnl_claim_beside(&one));
}

START_TEST(without_the_folder_there_is_no_claim)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/none", folder);
    rnl_claim_folder = path;
    expect_none();
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    expect_none(); /* no folder */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_none();
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0000), 0);
    if (geteuid() != 0)
        expect_none();
    ck_assert_int_eq(chmod(path, 0555), 0);
    ck_assert_int_eq(chosen("1/2"), 0); /* nothing is written to it */
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(without_descriptors_there_is_no_claim)
{
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {3, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    rnl_claim *claim = rnl_claim_begin();
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_ptr_null(claim);
    ck_assert_int_eq(chosen("1/2"), 0);
}
END_TEST

/* Somebody who keeps choosing is not waited for. */
START_TEST(a_choice_that_does_not_end_hinders_nobody)
{
    const cpu_set_t one = set_of("1");
    const int held = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(flock(held, LOCK_EX), 0);
    ck_assert_int_eq(chosen("1/2"), -1);
    rnl_claim *claim = rnl_claim_beside(&one);
    ck_assert_ptr_nonnull(claim);
    close(held);
    ck_assert_int_eq(chosen("1/2"), 1);
    rnl_claim_give_back(claim);
}
END_TEST

START_TEST(the_machine_has_its_folder)
{
    rnl_claim_folder = "/sys/devices/system/cpu";
    const cpu_set_t one = set_of("1");
    rnl_claim *claim = rnl_claim_beside(&one);
    if (claim) /* some containers forbid it */
        ck_assert_int_eq(chosen("1"), -1);
    rnl_claim_give_back(claim);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("claim");
    TCase *test_case = tcase_create("claim");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_test(test_case, parts_of_any_size_do_not_overlap);
    tcase_add_test(test_case, what_is_named_is_had_all_the_same);
    tcase_add_test(test_case, a_choice_is_made_once);
    tcase_add_test(test_case, a_process_that_is_killed_leaves_nothing);
    tcase_add_test(test_case, a_forked_child_has_no_part_in_it);
    tcase_add_test(test_case, threads_choose);
    tcase_add_test(test_case, without_the_folder_there_is_no_claim);
    tcase_add_test(test_case, without_descriptors_there_is_no_claim);
    tcase_add_test(test_case, a_choice_that_does_not_end_hinders_nobody);
    tcase_add_test(test_case, the_machine_has_its_folder);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
