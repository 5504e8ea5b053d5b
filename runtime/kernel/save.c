/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saving what was compiled. Asked for a binary, pocl compiles the program's kernels for any size, but for those with a
 * stand-in, lets no kernel be launched meanwhile, nor bears one that runs. So a thread does it there, one a device,
 * which begins some time after the first run, takes its turns when no stream launches (gate.h), spends at most a tenth
 * of its time in the driver, hurries when the device is released, and ends when nothing is left to save. Other drivers
 * answer at once, and not all of them bear a second thread.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "device/gate.h"
#include "kernel/cache.h"
#include "kernel/program_internal.h"
#include "kernel/stand_in.h"
#include "kernel/team.h"
#include <stdlib.h>

#define FIRST_PAUSE_NS 1000000000u
#define RETRY_NS 5000000u
#define PAUSE_FACTOR 9 /* of the time that the last program took */

/*
 * A process may end while a saver is in the driver, whose compiler would be taken down around it. So the end waits for
 * the program in hand; no other is begun then. It makes no OpenCL call.
 */
static pthread_mutex_t in_driver = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t watches_exit = PTHREAD_ONCE_INIT;
static atomic_bool exiting;

static void wait_at_exit(void)
{
    atomic_store(&exiting, true);
    pthread_mutex_lock(&in_driver);
    pthread_mutex_unlock(&in_driver);
}

static void watch_exit(void)
{
    atexit(wait_at_exit);
}

static void save(const rnl_program *program)
{
    void *binary = NULL;
    size_t size = 0;
    if (!rnl_cache_is_on())
        return;
    pthread_mutex_lock(&in_driver);
    const bool leaves = atomic_load(&exiting);
    if (!leaves && program->file && program->registry->device->binaries_compile)
        rnl_stand_in(program->program);
    rnl_status status = leaves ? RNL_CANCELLED : rnl_program_get_binary(program->program, &binary, &size);
    pthread_mutex_unlock(&in_driver);
    if (leaves)
        return;
    if (status == RNL_OK && !program->file)
        status = rnl_program_pack(&binary, &size, rnl_program_reflection(program));
    if (status != RNL_OK) {
        rnl_free(binary);
        rnl_log(RNL_LOG_WARNING, "%s is not kept: %s", program->name, rnl_last_error()->message);
        return;
    }
    rnl_cache_write(program->cache_key, binary, size);
    rnl_free(binary);
}

/* Marks what has been built since the last call: what is built later may not have been launched yet. */
static bool mark(struct rnl_program_registry *registry)
{
    bool any = false;
    for (rnl_program *program = registry->programs; program; program = program->next) {
        bool wanted = program->state == PROGRAM_BUILT && !program->from_cache && !program->saved && !program->untracked;
        program->to_save = program->to_save || wanted;
        any = any || wanted;
    }
    return any;
}

/* A program to save, which no other thread gets. Built programs do not change any more. */
static rnl_program *take(struct rnl_program_registry *registry)
{
    rnl_program *program = registry->programs;
    while (program && (!program->to_save || program->saved))
        program = program->next;
    if (program)
        program->saved = true;
    return program;
}

/* Until somebody is in a hurry. Called with the lock held, which is given up meanwhile. */
static void pause_saving(struct rnl_program_registry *registry, uint64_t ns)
{
    uint64_t end = rnl_clock_ns() + ns;
    const struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    while (!registry->hurry && rnl_clock_ns() < end)
        pthread_cond_timedwait(&registry->changed, &registry->lock, &until);
}

/* Saves a program or, when all are saved, tidies the folder up. Called with the lock held, which is given up meanwhile.
 */
static void save_one(struct rnl_program_registry *registry, const rnl_program *program)
{
    pthread_mutex_unlock(&registry->lock);
    if (program)
        save(program);
    else
        rnl_cache_trim();
    pthread_mutex_lock(&registry->lock);
}

/*
 * Saves what is marked, until a look at the list under the lock finds nothing. Where streams launch, `paced` waits for
 * a better time; who is in a hurry leaves the rest. Called with the lock held.
 */
static void save_marked(struct rnl_program_registry *registry, bool paced)
{
    rnl_gate *gate = registry->device->gate;
    bool untidy = false;
    for (;;) {
        if (!rnl_gate_try_close(gate)) {
            if (!paced || registry->hurry || atomic_load(&registry->device->is_shared))
                return;
            pause_saving(registry, RETRY_NS);
            continue;
        }
        rnl_team_rest(registry->device); /* its first thread alone is waited for by streams */
        uint64_t start = rnl_clock_ns();
        rnl_program *program = take(registry);
        if (program || untidy)
            save_one(registry, program);
        rnl_gate_open(gate);
        if (!program && !untidy)
            return;
        untidy = program;
        if (paced)
            pause_saving(registry, (rnl_clock_ns() - start) * PAUSE_FACTOR);
    }
}

static void *run_saver(void *argument)
{
    struct rnl_program_registry *registry = argument;
    pthread_setname_np(pthread_self(), "runnel-saver");
    pthread_mutex_lock(&registry->lock);
    pause_saving(registry, FIRST_PAUSE_NS);
    save_marked(registry, true);
    registry->saving = false;
    pthread_mutex_unlock(&registry->lock);
    return NULL;
}

/* Called with the lock held, also before: a saver that has found nothing more needs it no longer. */
static void join_saver(struct rnl_program_registry *registry)
{
    if (registry->has_saver)
        pthread_join(registry->saver, NULL);
    registry->has_saver = false;
}

static bool start_saver(struct rnl_program_registry *registry)
{
    if (registry->saving)
        return true;
    join_saver(registry);
    registry->saving = true;
    pthread_once(&watches_exit, watch_exit);
    registry->has_saver = pthread_create(&registry->saver, NULL, run_saver, registry) == 0;
    registry->saving = registry->has_saver;
    return registry->has_saver;
}

static struct rnl_program_registry *registry_of(rnl_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct rnl_program_registry *registry = device->programs;
    pthread_mutex_unlock(&device->lock);
    return registry;
}

void rnl_device_save_programs(rnl_device *device)
{
    struct rnl_program_registry *registry = registry_of(device);
    if (!registry || !rnl_cache_is_on() || atomic_load(&device->is_shared))
        return;
    rnl_error before = *rnl_last_error();
    pthread_mutex_lock(&registry->lock);
    if (mark(registry) && !(device->binaries_compile && start_saver(registry)))
        save_marked(registry, false);
    pthread_mutex_unlock(&registry->lock);
    rnl_error_restore(&before); /* nothing here is the caller's failure */
}

void rnl_device_finish_saving(rnl_device *device)
{
    struct rnl_program_registry *registry = registry_of(device);
    if (!registry)
        return;
    pthread_mutex_lock(&registry->lock);
    bool joinable = registry->has_saver;
    pthread_t saver = registry->saver;
    registry->has_saver = false;
    registry->hurry = true;
    pthread_cond_broadcast(&registry->changed);
    pthread_mutex_unlock(&registry->lock);
    if (joinable)
        pthread_join(saver, NULL);
    pthread_mutex_lock(&registry->lock);
    registry->hurry = false;
    pthread_mutex_unlock(&registry->lock);
}
