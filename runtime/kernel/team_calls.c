/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/team_calls.h"

#include "kernel/memory_address.h"
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_CALLS 32
#define FEW_CALLS 4
#define MOST_ARGS (RNL_TEAM_MOST_ARGS + 2) /* of a call, with the counter and what it waits for */
#define MOST_MEMORIES 256
#define LAST_MEMORIES 8 /* that are looked at, not to keep one often */
#define VALUE_BYTES ((size_t)64 << 10)
#define VALUE_ALIGNMENT 128u  /* OpenCL C's widest vectors */
#define FIRST_NAP_NS 100000   /* and twice as many for the next */
#define MOST_NAPS 8           /* behind long calls it matters little how they are given */
#define DEFAULT_MXCSR 0x1f80u /* rounding to nearest, denormal numbers, no exceptions */

typedef struct team_call {
    rnl_call_function function;
    rnl_range range;
    rnl_team_cut cut;
    uint32_t wanted, first_arg, arg_count;
} team_call;

struct rnl_team_batch {
    struct rnl_team_batch *next;
    rnl_team *team;
    atomic_uint running; /* threads */
    uint32_t call_count, arg_count, memory_count;
    size_t value_bytes;
    team_call calls[MOST_CALLS];
    uint32_t args[MOST_CALLS * MOST_ARGS]; /* where they are in values */
    cl_mem memories[MOST_MEMORIES];        /* retained */
    _Alignas(VALUE_ALIGNMENT) uint8_t values[VALUE_BYTES];
};

typedef struct thread_share {
    rnl_team *team;
    struct rnl_team_batch *batch; /* NULL: what is in the inbox */
    uint32_t thread;
} thread_share;

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static struct rnl_team_batch *take_batch(rnl_team *team)
{
    pthread_mutex_lock(&team->batches_lock);
    struct rnl_team_batch *batch = team->free_batches;
    if (batch)
        team->free_batches = batch->next;
    pthread_mutex_unlock(&team->batches_lock);
    if (!batch)
        batch = aligned_alloc(VALUE_ALIGNMENT, sizeof *batch);
    if (batch) {
        batch->team = team;
        batch->call_count = batch->arg_count = batch->memory_count = 0;
        batch->value_bytes = 0;
    }
    return batch;
}

static void release_memories(struct rnl_team_batch *batch)
{
    for (uint32_t i = 0; i < batch->memory_count; i++)
        clReleaseMemObject(batch->memories[i]);
}

/* The last thread's, or whoever else is done last. */
static void give_back(struct rnl_team_batch *batch, uint32_t threads)
{
    rnl_team *team = batch->team;
    if (atomic_fetch_sub(&batch->running, threads) != threads)
        return;
    release_memories(batch);
    pthread_mutex_lock(&team->batches_lock);
    batch->next = team->free_batches;
    team->free_batches = batch;
    pthread_mutex_unlock(&team->batches_lock);
}

void rnl_team_free_calls(rnl_team *team)
{
    if (team->batch) {
        release_memories(team->batch);
        free(team->batch);
    }
    for (struct rnl_team_batch *it = team->free_batches, *next; it; it = next) {
        next = it->next;
        free(it);
    }
}

/* ---- adding ---------------------------------------------------------------------------------------------------- */

static void keep(struct rnl_team_batch *batch, cl_mem memory)
{
    for (uint32_t i = 1; i <= LAST_MEMORIES && i <= batch->memory_count; i++)
        if (batch->memories[batch->memory_count - i] == memory)
            return;
    clRetainMemObject(memory);
    batch->memories[batch->memory_count++] = memory;
}

/* As the driver aligns it: the compiled code reads whole vectors. */
static uint32_t add_value(struct rnl_team_batch *batch, const void *value, size_t bytes)
{
    size_t alignment = 8;
    while (alignment < bytes && alignment < VALUE_ALIGNMENT)
        alignment *= 2;
    const size_t at = (batch->value_bytes + alignment - 1) / alignment * alignment;
    memcpy(batch->values + at, value, bytes);
    batch->value_bytes = at + bytes;
    return (uint32_t)at;
}

static bool has_room(const struct rnl_team_batch *batch, const rnl_team_arg *args, uint32_t count)
{
    size_t bytes = batch->value_bytes;
    for (uint32_t i = 0; i < count; i++)
        bytes += VALUE_ALIGNMENT + (args[i].is_memory ? sizeof(void *) : args[i].bytes);
    return count <= MOST_ARGS && batch->call_count < MOST_CALLS && bytes <= VALUE_BYTES &&
           batch->memory_count + count <= MOST_MEMORIES;
}

static bool find_addresses(const rnl_team *team, const rnl_team_arg *args, uint32_t count, void **addresses)
{
    for (uint32_t i = 0; i < count; i++) {
        addresses[i] = args[i].is_memory && args[i].memory ? rnl_memory_address(team->asking, args[i].memory) : NULL;
        if (args[i].is_memory && args[i].memory && !addresses[i])
            return false;
    }
    return true;
}

rnl_status rnl_team_make_room(rnl_team *team, const rnl_team_arg *args, uint32_t count)
{
    const struct rnl_team_batch *batch = team->batch;
    return batch && (batch->call_count >= team->enough || !has_room(batch, args, count)) ? rnl_team_flush(team)
                                                                                         : RNL_OK;
}

bool rnl_team_add_call(rnl_team *team, rnl_call_function function, const rnl_range *range, const rnl_team_arg *args,
                       uint32_t count)
{
    void *addresses[MOST_ARGS];
    if (!team->batch)
        team->batch = take_batch(team);
    struct rnl_team_batch *batch = team->batch;
    if (!batch || !has_room(batch, args, count) || !find_addresses(team, args, count, addresses))
        return false;
    team_call *call = &batch->calls[batch->call_count++];
    *call = (team_call){.function = function,
                        .range = *range,
                        .cut = rnl_team_choose_cut(range, team->threads, false),
                        .wanted = team->wanted,
                        .first_arg = batch->arg_count,
                        .arg_count = count};
    for (uint32_t i = 0; i < count; i++) {
        batch->args[batch->arg_count++] = args[i].is_memory ? add_value(batch, &addresses[i], sizeof addresses[i])
                                                            : add_value(batch, args[i].value, args[i].bytes);
        if (args[i].is_memory && args[i].memory)
            keep(batch, args[i].memory);
    }
    team->wanted += (uint32_t)rnl_team_groups(range);
    return true;
}

void rnl_team_start_small(rnl_team *team)
{
    team->enough = FEW_CALLS;
}

/* ---- running --------------------------------------------------------------------------------------------------- */

static void run_piece(const team_call *call, void **arguments, const rnl_team_piece *piece)
{
    rnl_call_context context = {.others = {0}};
    size_t offset[3], global[3];
    rnl_team_place(&call->range, &call->cut, piece, offset, global);
    for (uint32_t d = 0; d < 3; d++) {
        const bool is_there = d < call->range.dimensions;
        context.local[d] = is_there ? call->range.local[d] : 1;
        context.groups[d] = is_there ? global[d] / call->range.local[d] : 1;
        context.offset[d] = is_there ? offset[d] : 0;
    }
    for (uint64_t z = 0; z < context.groups[2]; z++)
        for (uint64_t y = 0; y < context.groups[1]; y++)
            for (uint64_t x = 0; x < context.groups[0]; x++)
                call->function(arguments, &context, x, y, z);
}

static void run_call(struct rnl_team_batch *batch, uint32_t thread, const team_call *call)
{
    void *arguments[MOST_ARGS];
    rnl_team_piece pieces[RNL_TEAM_MOST_PIECES];
    for (uint32_t i = 0; i < call->arg_count; i++)
        arguments[i] = batch->values + batch->args[call->first_arg + i];
    const uint32_t found = rnl_team_find_pieces(&call->cut, batch->team->threads, thread, pieces);
    for (uint32_t i = 0; i < found; i++)
        run_piece(call, arguments, &pieces[i]);
}

/* Whoever had the thread before may have left denormal numbers turned off. */
static uint32_t set_mxcsr(uint32_t wanted)
{
    uint32_t before = wanted;
#ifdef __x86_64__
    __asm__ volatile("stmxcsr %0" : "=m"(before));
    __asm__ volatile("ldmxcsr %0" : : "m"(wanted));
#endif
    return before;
}

static void run_share(struct rnl_team_batch *batch, uint32_t thread)
{
    const uint32_t before = set_mxcsr(DEFAULT_MXCSR);
    for (uint32_t i = 0; i < batch->call_count; i++)
        run_call(batch, thread, &batch->calls[i]);
    (void)set_mxcsr(before);
    give_back(batch, 1);
}

static void CL_CALLBACK run_one(void *data)
{
    const thread_share *share = data;
    run_share(share->batch, share->thread);
}

/*
 * Who is woken may be put where the one that woke him is, and stays there for some runs, each twice as long, since both
 * look for each other instead of sleeping. So he goes elsewhere, where he may.
 */
static void make_way(const rnl_team *team)
{
    cpu_set_t allowed, others;
    const int here = sched_getcpu();
    if (here < 0 || here != atomic_load(&team->helpers_processor) ||
        sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2)
        return;
    others = allowed;
    CPU_CLR((size_t)here, &others);
    if (sched_setaffinity(0, sizeof others, &others) == 0)
        (void)sched_setaffinity(0, sizeof allowed, &allowed);
}

static void CL_CALLBACK run_given(void *data)
{
    const thread_share *share = data;
    rnl_team *team = share->team;
    struct rnl_team_batch *batch;
    while ((batch = rnl_team_inbox_take(&team->inboxes[share->thread])) != NULL) {
        make_way(team);
        run_share(batch, share->thread);
    }
}

static bool has_share(const rnl_team *team, const struct rnl_team_batch *batch, uint32_t thread)
{
    rnl_team_piece pieces[RNL_TEAM_MOST_PIECES];
    for (uint32_t i = 0; i < batch->call_count; i++)
        if (rnl_team_find_pieces(&batch->calls[i].cut, team->threads, thread, pieces) > 0)
            return true;
    return false;
}

static rnl_status enqueue_native(rnl_team *team, void(CL_CALLBACK *function)(void *), thread_share share)
{
    share.team = team;
    return CL(clEnqueueNativeKernel(team->queues[share.thread], function, &share, sizeof share, 0, NULL, NULL, 0, NULL,
                                    NULL));
}

/* A thread is not woken for nothing. */
static rnl_status enqueue_share(rnl_team *team, struct rnl_team_batch *batch, uint32_t thread)
{
    if (!has_share(team, batch, thread)) {
        give_back(batch, 1);
        return RNL_OK;
    }
    rnl_team_inbox_close(&team->inboxes[thread]);
    return enqueue_native(team, run_one, (thread_share){.batch = batch, .thread = thread});
}

/* Who is far ahead sleeps for a while: his processor is one of the team's, and each time he wakes one of them waits. */
static void let_come(const rnl_team_inbox *inbox)
{
    struct timespec nap = {.tv_nsec = FIRST_NAP_NS};
    if (rnl_team_inbox_count(inbox) < RNL_TEAM_INBOX_PLACES)
        return;
    for (int i = 0; i < MOST_NAPS && rnl_team_inbox_count(inbox) > RNL_TEAM_INBOX_PLACES / 2; i++, nap.tv_nsec *= 2)
        (void)nanosleep(&nap, NULL);
}

/* To a thread that is there already, if it can be. */
static rnl_status give_share(rnl_team *team, struct rnl_team_batch *batch, uint32_t thread)
{
    rnl_team_inbox *inbox = &team->inboxes[thread];
    bool calls;
    if (team->gives)
        let_come(inbox);
    if (!team->gives || !has_share(team, batch, thread) || !rnl_team_inbox_give(inbox, batch, &calls))
        return enqueue_share(team, batch, thread);
    const rnl_status status = calls ? enqueue_native(team, run_given, (thread_share){.thread = thread}) : RNL_OK;
    if (status != RNL_OK)
        rnl_team_inbox_take_back(inbox);
    return status;
}

static bool has_come(const rnl_team *team, uint32_t wanted)
{
    return (int32_t)(__atomic_load_n(&team->words[0], __ATOMIC_SEQ_CST) - wanted) >= 0;
}

static bool has_all(void *context)
{
    const rnl_team *team = context;
    return has_come(team, team->wanted);
}

static void run_kept(rnl_team *team)
{
    struct rnl_team_batch *kept = team->kept;
    team->kept = NULL;
    if (kept)
        run_share(kept, 0);
}

void rnl_team_await(rnl_team *team)
{
    const uint32_t wanted = team->wanted;
    run_kept(team);
    if (rnl_team_look_for(has_all, team))
        return;
    __atomic_fetch_add(&team->words[RNL_TEAM_SLEEPERS], 1, __ATOMIC_SEQ_CST);
    for (uint32_t now; !has_come(team, wanted);) {
        now = __atomic_load_n(&team->words[0], __ATOMIC_SEQ_CST);
        if ((int32_t)(now - wanted) < 0)
            (void)syscall(SYS_futex, &team->words[0], FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
    }
    __atomic_fetch_sub(&team->words[RNL_TEAM_SLEEPERS], 1, __ATOMIC_SEQ_CST);
}

/* Counts for threads that are not there, as they would: others wait for each call's groups before they go on. */
static void count_for_missing(rnl_team *team, const struct rnl_team_batch *batch, const bool *is_there)
{
    for (uint32_t i = 0; i < batch->call_count; i++) {
        const team_call *call = &batch->calls[i];
        uint32_t groups = 0;
        for (uint32_t thread = 0; thread < team->threads; thread++) {
            rnl_team_piece pieces[RNL_TEAM_MOST_PIECES];
            const uint32_t found =
                is_there[thread] ? 0 : rnl_team_find_pieces(&call->cut, team->threads, thread, pieces);
            for (uint32_t j = 0; j < found; j++)
                groups += (uint32_t)rnl_team_groups_in(&call->range, &call->cut, &pieces[j]);
        }
        while (!has_come(team, call->wanted))
            sched_yield();
        __atomic_fetch_add(&team->words[0], groups, __ATOMIC_SEQ_CST);
        (void)syscall(SYS_futex, &team->words[0], FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    }
}

/* What was not enqueued counts as done. Returns how many threads there are of it. */
static uint32_t end_for_missing(rnl_team *team, const struct rnl_team_batch *batch, const bool *is_there)
{
    uint32_t missing = 0;
    const rnl_error before = *rnl_last_error();
    for (uint32_t i = 0; i < team->threads; i++)
        missing += !is_there[i];
    count_for_missing(team, batch, is_there);
    rnl_team_finish(team);
    team->words[RNL_TEAM_DONE] = 0;
    team->losses++;
    (void)rnl_error_restore(&before);
    return missing;
}

rnl_status rnl_team_hand_over(rnl_team *team)
{
    struct rnl_team_batch *kept = team->kept;
    bool is_there[RNL_TEAM_MOST_THREADS] = {false};
    team->kept = NULL;
    const rnl_status status = kept ? enqueue_share(team, kept, 0) : RNL_OK;
    for (uint32_t i = 0; i < team->threads; i++) {
        rnl_team_inbox_close(&team->inboxes[i]);
        is_there[i] = i > 0;
    }
    if (status != RNL_OK)
        give_back(kept, end_for_missing(team, kept, is_there));
    return status;
}

/* With help: the first thread's part. A team of one has nobody to wait for who has none yet. */
static void keep_own(rnl_team *team, struct rnl_team_batch *batch)
{
    run_kept(team);
    team->kept = batch;
    if (team->threads == 1)
        run_kept(team);
}

rnl_status rnl_team_flush(rnl_team *team)
{
    struct rnl_team_batch *batch = team->batch;
    bool is_there[RNL_TEAM_MOST_THREADS] = {false};
    rnl_status status = RNL_OK;
    if (!batch || batch->call_count == 0)
        return RNL_OK;
    team->batch = NULL;
    team->enough = team->enough < MOST_CALLS / 2 ? 2 * team->enough : MOST_CALLS;
    atomic_store(&batch->running, team->threads + 1);
    atomic_store(&team->helpers_processor, team->helps ? sched_getcpu() : -1);
    for (uint32_t i = team->helps ? 1 : 0; i < team->threads && status == RNL_OK; i++) {
        status = give_share(team, batch, i);
        is_there[i] = status == RNL_OK;
    }
    if (status == RNL_OK) {
        if (team->helps)
            keep_own(team, batch);
        give_back(batch, 1);
        return RNL_OK;
    }
    if (team->helps) { /* the others wait for it while what is missing is counted */
        const rnl_error before = *rnl_last_error();
        run_kept(team);
        is_there[0] = enqueue_share(team, batch, 0) == RNL_OK;
        (void)rnl_error_restore(&before);
    }
    give_back(batch, 1 + end_for_missing(team, batch, is_there));
    return status;
}

rnl_status rnl_team_settle(rnl_team *team)
{
    const rnl_status status = rnl_team_flush(team);
    TRY(rnl_team_hand_over(team));
    return status;
}

/* ---- the trial ------------------------------------------------------------------------------------------------- */

void rnl_team_try_calls(rnl_team *team)
{
    const rnl_range range = {.dimensions = 1, .global = {team->threads, 1, 1}, .local = {1, 1, 1}};
    const cl_uint wanted = team->wanted + team->threads, turns = RNL_TEAM_TRIAL_TURNS;
    uint32_t *const words = team->words, *const results = words + RNL_TEAM_RESULTS;
    const rnl_team_arg args[] = {{.is_memory = true, .memory = team->memory},
                                 {.value = &wanted, .bytes = sizeof wanted},
                                 {.value = &turns, .bytes = sizeof turns},
                                 {.value = (const void *)&results, .bytes = sizeof results}};
    const rnl_call_function function = rnl_team_find_function(team, NULL, "team_try");
    if (!function)
        return;
    memset(results, 0, team->threads * sizeof *results);
    rnl_team_start_small(team);
    if (!rnl_team_add_call(team, function, &range, args, sizeof args / sizeof *args) || rnl_team_flush(team))
        return;
    rnl_team_finish(team);
    team->calls = true;
    for (uint32_t i = 0; i < team->threads; i++)
        team->calls = team->calls && results[i] == 1 + i;
}
