/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that is given work in memory, and other work by a queue: all of it in the order in which it was given, with
 * the thread leaving and coming back, the inbox full, closed and open, and its kernel refused by the driver.
 */
#include "kernel/team_inbox.h"
#include "support/test_device.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define GIVEN 6000u
#define MOST_QUEUED 8192u /* more than there can be */
#define TAKE 0u           /* a command of the queue: the kernel that takes; others are work */
#define LONGEST_NS 600000 /* a thread stays some 0.2 ms */

typedef struct thread_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t commands[MOST_QUEUED], count; /* the last is the end */
    rnl_team_inbox inbox;
    uint32_t done, wrong, kernels; /* the thread's */
    uint32_t full;                 /* the other's: how often it was */
} thread_queue;

static thread_queue queue;

static struct rnl_team_batch *batch_of(uint32_t work)
{
    return (struct rnl_team_batch *)(uintptr_t)work;
}

/* Once in a while so long that the inbox, which nobody closes then, gets full. */
static void work_on(uint32_t work)
{
    static const struct timespec while_full = {.tv_nsec = 100000000};
    queue.wrong += work != queue.done + 1;
    queue.done = work;
    if (work % 2000 == 1000)
        nanosleep(&while_full, NULL);
}

static uint32_t wait_for_command(uint32_t at)
{
    pthread_mutex_lock(&queue.lock);
    while (at >= queue.count)
        pthread_cond_wait(&queue.changed, &queue.lock);
    const uint32_t command = queue.commands[at];
    pthread_mutex_unlock(&queue.lock);
    return command;
}

static void *run_queue(void *argument)
{
    (void)argument;
    for (uint32_t at = 0, command; (command = wait_for_command(at)) <= GIVEN; at++) {
        struct rnl_team_batch *batch;
        if (command != TAKE) {
            work_on(command);
            continue;
        }
        queue.kernels++;
        while ((batch = rnl_team_inbox_take(&queue.inbox)) != NULL)
            work_on((uint32_t)(uintptr_t)batch);
    }
    return NULL;
}

static void enqueue(uint32_t command)
{
    pthread_mutex_lock(&queue.lock);
    ck_assert_uint_lt(queue.count, MOST_QUEUED);
    queue.commands[queue.count++] = command;
    pthread_cond_signal(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
}

static void enqueue_work(uint32_t work)
{
    rnl_team_inbox_close(&queue.inbox);
    enqueue(work);
}

/* One time in eight the kernel cannot be enqueued. */
static void give(uint32_t work)
{
    bool calls;
    queue.full += rnl_team_inbox_count(&queue.inbox) == RNL_TEAM_INBOX_PLACES;
    if (!rnl_team_inbox_give(&queue.inbox, batch_of(work), &calls)) {
        enqueue_work(work);
    } else if (calls && rand() % 8 == 0) {
        rnl_team_inbox_take_back(&queue.inbox);
        enqueue_work(work);
    } else if (calls) {
        enqueue(TAKE);
    }
}

static void rest(void)
{
    const struct timespec pause = {.tv_nsec = rand() % LONGEST_NS};
    if (rand() % 4 == 0)
        nanosleep(&pause, NULL);
}

START_TEST(test_order)
{
    pthread_t thread;
    pthread_mutex_init(&queue.lock, NULL);
    pthread_cond_init(&queue.changed, NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_queue, NULL), 0);
    srand(7);
    for (uint32_t work = 1; work <= GIVEN; work++) {
        const bool closes = work % 2000 < 1000;
        if (closes && rand() % 16 == 0)
            enqueue_work(work);
        else
            give(work);
        if (closes && rand() % 16 == 0)
            rnl_team_inbox_close(&queue.inbox);
        rest();
    }
    rnl_team_inbox_close(&queue.inbox);
    enqueue(GIVEN + 1);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(queue.done, GIVEN);
    ck_assert_uint_eq(queue.wrong, 0);
    ck_assert_uint_gt(queue.full, 0);
    ck_assert_uint_gt(queue.kernels, 10);
    ck_assert_uint_lt(queue.kernels, GIVEN / 2); /* most came to a thread that was there */
}
END_TEST

/* With one thread for both: what is full, closed and left is seen for sure. */
START_TEST(test_states)
{
    static rnl_team_inbox inbox;
    bool calls;
    for (uint32_t i = 1; i <= RNL_TEAM_INBOX_PLACES; i++) {
        ck_assert(rnl_team_inbox_give(&inbox, batch_of(i), &calls));
        ck_assert(calls == (i == 1));
    }
    ck_assert(!rnl_team_inbox_give(&inbox, batch_of(9999), &calls));
    ck_assert_ptr_eq(rnl_team_inbox_take(&inbox), batch_of(1));
    ck_assert_uint_eq(rnl_team_inbox_count(&inbox), RNL_TEAM_INBOX_PLACES - 1);
    ck_assert(rnl_team_inbox_give(&inbox, batch_of(RNL_TEAM_INBOX_PLACES + 1), &calls));
    ck_assert(!calls);
    rnl_team_inbox_close(&inbox);
    for (uint32_t i = 2; i <= RNL_TEAM_INBOX_PLACES + 1; i++) {
        ck_assert(!rnl_team_inbox_give(&inbox, batch_of(9999), &calls));
        ck_assert_ptr_eq(rnl_team_inbox_take(&inbox), batch_of(i));
    }
    ck_assert_ptr_null(rnl_team_inbox_take(&inbox));
    ck_assert(rnl_team_inbox_give(&inbox, batch_of(10), &calls));
    ck_assert(calls);
    rnl_team_inbox_take_back(&inbox);
    rnl_team_inbox_close(&inbox); /* nobody is there to be told */
    ck_assert(rnl_team_inbox_give(&inbox, batch_of(11), &calls));
    ck_assert(calls);
    ck_assert_ptr_eq(rnl_team_inbox_take(&inbox), batch_of(11));
    ck_assert_ptr_null(rnl_team_inbox_take(&inbox)); /* after some 0.2 ms */
    ck_assert(rnl_team_inbox_give(&inbox, batch_of(12), &calls));
    ck_assert(calls);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("team_inbox");
    TCase *tcase = tcase_create("team_inbox");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, test_order);
    tcase_add_test(tcase, test_states);
    suite_add_tcase(suite, tcase);
    return test_run(suite, true);
}
