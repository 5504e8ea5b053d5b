/* SPDX-License-Identifier: Apache-2.0 */
/* Which device a request goes to, by what each has been measured to do; and which devices are still there. */
#include "base/clock.h"
#include "base/log.h"
#include "multi/multi.h"

#include <string.h>

#define MOST_GROWTH 8.0 /* of a measurement over those before: a pause of the whole process is not the device's */
#define KEPT 0.8        /* of former measurements, when another comes */
#define NEVER_NS 1e30   /* of a device on which the measured request failed */
/* A device that gets nothing is tried once others have worked so many times as long as it would, then twice that … */
#define PATIENCE 20.0
#define MOST_TRIALS 10u
#define MOST_BLAMES 5
/* The first run plans. An idle GPU lowers its clocks and takes some 50 ms to raise them. */
#define FEWEST_RUNS 2
#define MOST_RUNS 8
#define MEASURED_NS 60000000u

/* ---- Choosing ------------------------------------------------------------------------------------------------- */

/* What was measured grows old while a device gets nothing; it is tried the more rarely the more often that was in vain.
 */
static bool deserves_trial(const rnl_member *member, double work)
{
    const double patience = PATIENCE * (double)(1u << member->trials);
    return member->pending_work < 1 && member->work_ns < NEVER_NS &&
           member->passed_ns > patience * work * member->work_ns;
}

/* When the member would be done with this, too. */
static double done_after(const rnl_member *member, double work)
{
    return deserves_trial(member, work) ? 0 : (member->pending_work + work) * member->work_ns;
}

static bool is_better(const rnl_multi *multi, size_t candidate, size_t best, double work)
{
    if (best == RNL_NOBODY)
        return true;
    return multi->policy == RNL_MULTI_LEAST_LOADED &&
           done_after(&multi->members[candidate], work) < done_after(&multi->members[best], work);
}

static void take(rnl_multi *multi, rnl_member *best, double work)
{
    const unsigned trials = best->trials < MOST_TRIALS ? best->trials + 1 : MOST_TRIALS;
    best->trials = deserves_trial(best, work) ? trials : 0;
    for (size_t i = 0; i < multi->member_count; i++)
        multi->members[i].passed_ns += work * best->work_ns;
    best->passed_ns = 0;
}

size_t rnl_multi_choose(rnl_multi *multi, double work, size_t except)
{
    size_t best = RNL_NOBODY;
    for (size_t i = 0; i < multi->member_count; i++) {
        const size_t candidate = (multi->turn + i) % multi->member_count;
        if (candidate != except && !multi->members[candidate].is_lost && is_better(multi, candidate, best, work))
            best = candidate;
    }
    if (best == RNL_NOBODY)
        return best;
    take(multi, &multi->members[best], work);
    multi->turn = (best + 1) % multi->member_count;
    return best;
}

void rnl_member_start_job(rnl_member *member, rnl_job *job)
{
    if (member->running++ == 0)
        member->mark_ns = rnl_clock_ns();
    member->started++;
    job->ticket = member->running == 1 ? member->started : 0;
}

void rnl_member_end_job(rnl_member *member, rnl_job *job, rnl_status status, bool has_planned, uint64_t elapsed_ns)
{
    const uint64_t now = rnl_clock_ns();
    const double ns = (double)(now - member->mark_ns);
    member->mark_ns = now;
    member->running--;
    member->requests += status == RNL_OK;
    member->failures += rnl_status_is_devices(status);
    if (status == RNL_OK)
        member->blames = 0;
    job->elapsed_ns = elapsed_ns;
    job->is_clean = status == RNL_OK && !has_planned && job->ticket == member->started;
    if (status != RNL_OK || has_planned)
        return;
    /* Requests that run side by side often end side by side: times and work are added up before they are divided. */
    const bool has_former = member->work_ns > 0 && member->work_ns < NEVER_NS;
    const double most_ns = MOST_GROWTH * member->work_ns * job->work;
    member->busy_ns = KEPT * member->busy_ns + (has_former && ns > most_ns ? most_ns : ns);
    member->done_work = KEPT * member->done_work + job->work;
    member->work_ns = member->busy_ns / member->done_work;
    member->latest_work = job->work;
}

/* ---- Who is there --------------------------------------------------------------------------------------------- */

bool rnl_status_is_devices(rnl_status status)
{
    if (status != RNL_OK && status != RNL_CANCELLED && rnl_last_error()->native_code != 0)
        return true;
    if (status == RNL_INTERNAL)
        return !rnl_last_error()->is_callers;
    return status == RNL_RESOURCE_EXHAUSTED || status == RNL_UNAVAILABLE || status == RNL_DATA_LOSS;
}

size_t rnl_multi_count_present(const rnl_multi *multi)
{
    size_t count = 0;
    for (size_t i = 0; i < multi->member_count; i++)
        count += !multi->members[i].is_lost;
    return count;
}

rnl_status rnl_multi_fail_nobody(void)
{
    return FAIL(RNL_UNAVAILABLE, "all devices were lost");
}

/* A few bytes there and back. */
static rnl_status touch(rnl_device *device)
{
    const uint32_t sent[4] = {1, 2, 3, 4};
    uint32_t received[4] = {0};
    rnl_stream *stream = NULL;
    rnl_buffer *buffer = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_stream_create(device, &stream));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof sent, &buffer));
    GOTO(rnl_stream_write(stream, buffer, 0, sent, sizeof sent));
    GOTO(rnl_stream_read(stream, received, buffer, 0, sizeof received));
    GOTO(rnl_stream_synchronize(stream));
    if (memcmp(sent, received, sizeof sent) != 0)
        GOTO(FAIL(RNL_DATA_LOSS, "a device does not give back what was written to it"));
done:
    if (status != RNL_OK && stream)
        (void)!rnl_stream_synchronize(stream);
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    return status;
}

static void leave_out(rnl_multi *multi, size_t member, const char *why)
{
    pthread_mutex_lock(&multi->lock);
    const bool is_news = !multi->members[member].is_lost;
    multi->members[member].is_lost = true;
    pthread_mutex_unlock(&multi->lock);
    if (is_news)
        rnl_log(RNL_LOG_WARNING, "%s is left out from now on: %.*s", multi->members[member].name,
                (int)strcspn(why, "\n"), why);
}

void rnl_multi_suspect(rnl_multi *multi, size_t member)
{
    const rnl_error error = *rnl_last_error();
    if (touch(multi->members[member].device) != RNL_OK)
        leave_out(multi, member, error.message);
    (void)!rnl_error_restore(&error);
}

void rnl_multi_blame(rnl_multi *multi, size_t member)
{
    pthread_mutex_lock(&multi->lock);
    const bool is_enough = ++multi->members[member].blames >= MOST_BLAMES;
    pthread_mutex_unlock(&multi->lock);
    if (is_enough)
        leave_out(multi, member, "it failed again and again where another device did not");
}

/* ---- Measuring ------------------------------------------------------------------------------------------------ */

static rnl_status measure_member(rnl_multi *multi, size_t member, const rnl_job *like)
{
    rnl_status status = RNL_OK;
    uint64_t spent_ns = 0;
    for (int i = 0; status == RNL_OK && (i < FEWEST_RUNS || (i < MOST_RUNS && spent_ns < MEASURED_NS)); i++) {
        rnl_job probe = {.inputs = like->inputs,
                         .input_count = like->input_count,
                         .work = like->work,
                         .member = member,
                         .is_bound = true};
        status = rnl_job_do(multi, &probe);
        spent_ns += i > 0 ? probe.elapsed_ns : 0;
    }
    if (!rnl_status_is_devices(status))
        return status;
    pthread_mutex_lock(&multi->lock);
    multi->members[member].work_ns = NEVER_NS;
    pthread_mutex_unlock(&multi->lock);
    return RNL_OK;
}

static bool wants_measuring(rnl_multi *multi, size_t member)
{
    pthread_mutex_lock(&multi->lock);
    const bool wants = !multi->members[member].is_lost && multi->members[member].work_ns == 0;
    pthread_mutex_unlock(&multi->lock);
    return wants;
}

rnl_status rnl_multi_measure(rnl_multi *multi, rnl_job *like)
{
    rnl_status status = RNL_OK;
    if (multi->policy == RNL_MULTI_ROUND_ROBIN || multi->member_count == 1)
        return RNL_OK;
    pthread_mutex_lock(&multi->lock);
    const bool is_measured = multi->is_measured;
    pthread_mutex_unlock(&multi->lock);
    if (is_measured)
        return RNL_OK;
    pthread_mutex_lock(&multi->measuring);
    for (size_t i = 0; i < multi->member_count && status == RNL_OK; i++)
        if (wants_measuring(multi, i))
            status = measure_member(multi, i, like);
    pthread_mutex_lock(&multi->lock);
    multi->is_measured = status == RNL_OK;
    pthread_mutex_unlock(&multi->lock);
    pthread_mutex_unlock(&multi->measuring);
    return status;
}
