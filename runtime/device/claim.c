/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's own folder of processors is there for every user, is written by none, and can be locked without the
 * right to write to it: so claims need no file, they meet those of other users, and none is left behind by a crash.
 *
 * The locks are those of an open file, not of a process, which would lose them when anything in it closes that folder.
 */
#include "device/claim.h"

#include "base/log.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

const char *rnl_claim_folder = "/sys/devices/system/cpu";

/* Another one's choice takes microseconds; one that was stopped in it is not waited for. */
#define PATIENCE_MS 100

struct rnl_claim {
    rnl_claim *next;
    int folder;
    bool is_taken;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rnl_claim *claims; /* guarded by `lock` */

/* ---- A child has copies of the parent's open files, whose locks last until all copies are closed ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    for (rnl_claim *it = claims; it; it = it->next) {
        close(it->folder);
        it->folder = -1;
    }
    pthread_mutex_unlock(&lock);
}

static bool is_watched; /* set once */

static void watch_forks(void)
{
    is_watched = pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
}

/* ---- One open folder ---- */

static rnl_claim *open_folder(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    rnl_claim *claim;
    pthread_once(&once, watch_forks);
    if (!is_watched || rnl_alloc(1, sizeof *claim, &claim) != RNL_OK)
        return NULL;
    pthread_mutex_lock(&lock); /* no child is forked between open and the list */
    claim->folder = open(rnl_claim_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool opened = claim->folder >= 0;
    if (opened) {
        claim->next = claims;
        claims = claim;
    }
    pthread_mutex_unlock(&lock);
    if (opened)
        return claim;
    rnl_log(RNL_LOG_DEBUG, "%s cannot be opened: shares of other processes are not seen", rnl_claim_folder);
    rnl_free(claim);
    return NULL;
}

void rnl_claim_give_back(rnl_claim *claim)
{
    if (!claim)
        return;
    pthread_mutex_lock(&lock);
    rnl_claim **at = &claims;
    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
    if (claim->folder >= 0)
        close(claim->folder);
    pthread_mutex_unlock(&lock);
    rnl_free(claim);
}

/* ---- Its bytes ---- */

/* `type` is F_RDLCK or F_UNLCK. */
static bool set_lock(const rnl_claim *claim, short type, int first, int count)
{
    struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
    return fcntl(claim->folder, F_OFD_SETLK, &range) == 0;
}

static bool is_free(const rnl_claim *claim, int first, int count)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
    return fcntl(claim->folder, F_OFD_GETLK, &range) == 0 && range.l_type == F_UNLCK;
}

/* Finds the next processors that follow each other, from *first on. */
static bool next_run(const cpu_set_t *set, int *first, int *count)
{
    int at = *first + *count;
    while (at < CPU_SETSIZE && !CPU_ISSET(at, set))
        at++;
    *first = at;
    while (at < CPU_SETSIZE && CPU_ISSET(at, set))
        at++;
    *count = at - *first;
    return *count > 0;
}

static bool lock_all(rnl_claim *claim, const cpu_set_t *wanted)
{
    claim->is_taken = true;
    for (int first = 0, count = 0; next_run(wanted, &first, &count) && claim->is_taken;)
        claim->is_taken = set_lock(claim, F_RDLCK, first, count);
    if (!claim->is_taken && !set_lock(claim, F_UNLCK, 0, CPU_SETSIZE))
        rnl_log(RNL_LOG_DEBUG, "a claim on processors stays until its folder is closed");
    return claim->is_taken;
}

/* ---- What they mean ---- */

static bool enter(const rnl_claim *claim)
{
    const struct timespec pause = {0, 1000000};
    int left_ms = PATIENCE_MS;
    while (flock(claim->folder, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || left_ms-- == 0)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

rnl_claim *rnl_claim_begin(void)
{
    rnl_claim *claim = open_folder();
    if (!claim || enter(claim))
        return claim;
    rnl_log(RNL_LOG_DEBUG, "%s cannot be locked: shares of other processes are not seen", rnl_claim_folder);
    rnl_claim_give_back(claim);
    return NULL;
}

bool rnl_claim_take(rnl_claim *claim, const cpu_set_t *wanted)
{
    if (!claim || claim->is_taken)
        return false;
    for (int first = 0, count = 0; next_run(wanted, &first, &count);)
        if (!is_free(claim, first, count))
            return false;
    return lock_all(claim, wanted);
}

rnl_claim *rnl_claim_end(rnl_claim *claim)
{
    if (!claim || (claim->is_taken && flock(claim->folder, LOCK_UN) == 0))
        return claim;
    rnl_claim_give_back(claim);
    return NULL;
}

rnl_claim *rnl_claim_beside(const cpu_set_t *wanted)
{
    rnl_claim *claim = open_folder();
    if (!claim || lock_all(claim, wanted))
        return claim;
    rnl_log(RNL_LOG_DEBUG, "%s cannot be locked: other processes do not see this share", rnl_claim_folder);
    rnl_claim_give_back(claim);
    return NULL;
}
