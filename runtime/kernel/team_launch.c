/* SPDX-License-Identifier: Apache-2.0 */
/* Going to a team and back, and launches. */
#include "base/clock.h"
#include "base/stack.h"
#include "device/trace.h"
#include "kernel/team_calls.h"

#include <stdlib.h>
#include <string.h>

#define OWN_STACK_BYTES ((size_t)2 << 20) /* kernels have arrays of their own; the driver's threads have some MiB */
#define MOST_WAITING (1u << 20) /* groups of a launch: the counter's numbers are far less than half of it apart */
#define FREQUENT_NS 300000      /* from one run to the next: threads look for more some 0.2 ms */
#define MOST_CALLED 65534u      /* along a dimension, where pocl compiles anew for more */

/* ---- in and out ------------------------------------------------------------------------------------------------ */

/*
 * For what could not be enqueued and would be waited for. Nobody may be counted before what he waits for is done, so
 * all that is enqueued ends first: each waits for earlier launches alone.
 */
static void stand_in(rnl_team *team, uint32_t count)
{
    if (count == 0)
        return;
    rnl_team_finish(team);
    team->words[RNL_TEAM_DONE] = 0;
    __atomic_fetch_add(&team->words[0], count, __ATOMIC_SEQ_CST);
}

static rnl_status enqueue_one(cl_command_queue queue, cl_kernel kernel)
{
    const size_t offset = RNL_TEAM_FIRST_ID, one = 1;
    return CL(clEnqueueNDRangeKernel(queue, kernel, 1, &offset, &one, &one, 0, NULL, NULL));
}

/* The first `threads` queues wait for all launches so far. */
static rnl_status enqueue_await(rnl_team *team, uint32_t threads)
{
    TRY(rnl_team_settle(team));
    const cl_uint wanted = team->wanted;
    TRY(CL(clSetKernelArg(team->await, 1, sizeof wanted, &wanted)));
    for (uint32_t i = 0; i < threads; i++)
        TRY(enqueue_one(team->queues[i], team->await));
    return RNL_OK;
}

/* All launches so far, of which none waits itself, are waited for from now on. */
static rnl_status enqueue_arrive(rnl_team *team)
{
    uint32_t told = 0;
    rnl_status status = RNL_OK;
    while (told < team->threads && status == RNL_OK) {
        status = enqueue_one(team->queues[told], team->arrive);
        told += status == RNL_OK;
    }
    stand_in(team, team->threads - told);
    team->wanted += team->threads;
    return status;
}

/* With the lock. Where several streams launch, one that helps would have the others wait for its thread. */
static rnl_status set_helper(const rnl_stream *stream)
{
    rnl_team *team = stream->team;
    team->gives = !rnl_team_is_shared(team);
    team->helps = stream->helps_team && team->gives;
    if (team->helps)
        rnl_team_inbox_close(&team->inboxes[0]);
    return team->helps || (team->gives && !team->kept) ? RNL_OK : rnl_team_hand_over(team);
}

/* The stream's queue waits for the team, whose end *out_last becomes. */
static rnl_status enqueue_end(rnl_stream *stream, cl_event *out_last)
{
    rnl_team *team = stream->team;
    TRY(enqueue_await(team, 1));
    stream->is_idle = false;
    TRY(CL(clEnqueueMarkerWithWaitList(team->queues[0], 0, NULL, out_last)));
    return CL(clEnqueueBarrierWithWaitList(stream->queue, 1, out_last, NULL));
}

/* The thread waits for the team itself, as who helps would anyway. */
static rnl_status wait_for_team(rnl_team *team)
{
    TRY(rnl_team_flush(team));
    rnl_team_await(team);
    return RNL_OK;
}

/* Threads that look for more are in the way of whatever comes instead. */
static void note_end(rnl_stream *stream, bool is_end)
{
    rnl_team *team = stream->team;
    team->left_ns = rnl_clock_ns();
    team->left_after = atomic_load_explicit(&stream->device->kernels_launched, memory_order_relaxed);
    for (uint32_t i = 0; i < team->threads && !(is_end && team->is_frequent); i++)
        rnl_team_inbox_close(&team->inboxes[i]);
}

static rnl_status leave(rnl_stream *stream, bool is_end)
{
    rnl_team *team = stream->team;
    cl_event last = NULL;
    pthread_mutex_lock(&team->lock);
    rnl_status status = set_helper(stream);
    if (status == RNL_OK)
        status = team->helps ? wait_for_team(team) : enqueue_end(stream, &last);
    if (status == RNL_OK && team->losses != stream->team_losses)
        status = FAIL(RNL_INTERNAL, "launches of this stream were lost with another stream's");
    if (status != RNL_OK)
        rnl_team_finish(team);
    note_end(stream, is_end);
    rnl_team_start_small(team);
    rnl_team_give_up(team, last); /* of several streams the last event is the last one's */
    pthread_mutex_unlock(&team->lock);
    stream->leave_team = NULL;
    return rnl_stream_fail(stream, status);
}

static rnl_status leave_for_others(rnl_stream *stream)
{
    return leave(stream, false);
}

static rnl_status wait_for_stream(rnl_team *team, rnl_stream *stream)
{
    cl_event before = NULL;
    if (stream->helps_team)
        return CL(clFinish(stream->queue));
    TRY(rnl_team_hand_over(team));
    stream->is_idle = false;
    rnl_status status = CL(clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &before));
    for (uint32_t i = 0; i < team->threads && status == RNL_OK; i++)
        status = CL(clEnqueueBarrierWithWaitList(team->queues[i], 1, &before, NULL));
    if (before)
        clReleaseEvent(before);
    return status;
}

static rnl_status enter(rnl_stream *stream, bool *out_inside)
{
    rnl_team *team = stream->team;
    *out_inside = false;
    /* All that the team does from here on would wait for it, other streams' launches too. */
    if (stream->waits_outside || stream->has_turns || !rnl_team_claim(team))
        return RNL_OK;
    pthread_mutex_lock(&team->lock);
    const rnl_status status = wait_for_stream(team, stream);
    stream->team_losses = team->losses;
    team->is_frequent =
        rnl_clock_ns() - team->left_ns < FREQUENT_NS &&
        atomic_load_explicit(&stream->device->kernels_launched, memory_order_relaxed) == team->left_after;
    if (status != RNL_OK)
        rnl_team_finish(team);
    pthread_mutex_unlock(&team->lock);
    if (status != RNL_OK) {
        rnl_team_give_up(team, NULL);
        return rnl_stream_fail(stream, status);
    }
    stream->leave_team = leave_for_others;
    *out_inside = true;
    return RNL_OK;
}

void rnl_team_begin(rnl_stream *stream)
{
    if (!stream->is_watched)
        stream->team = rnl_team_of(stream->device);
}

void rnl_team_help(rnl_stream *stream)
{
    const char *wish = getenv("RUNNEL_TEAM_HELP");
    const rnl_team *team = stream->team;
    stream->helps_team = team && team->calls && rnl_stack_has(OWN_STACK_BYTES) && !(wish && strcmp(wish, "off") == 0);
}

bool rnl_team_is_helped(const rnl_stream *stream)
{
    return stream->helps_team;
}

rnl_status rnl_team_end(rnl_stream *stream)
{
    const rnl_status status = stream->leave_team ? leave(stream, true) : RNL_OK;
    stream->team = NULL;
    stream->helps_team = false;
    return status;
}

rnl_status rnl_team_follow(rnl_stream *stream)
{
    const rnl_team_wish wish = rnl_team_get_wish();
    rnl_team *team = stream->is_handed_out || wish == RNL_TEAM_OFF ? NULL : rnl_team_of(stream->device);
    if (!team || (wish != RNL_TEAM_ON && rnl_team_takes_a_rest(team)))
        return rnl_team_end(stream);
    rnl_team_begin(stream);
    return RNL_OK;
}

/* ---- launches -------------------------------------------------------------------------------------------------- */

void rnl_team_place(const rnl_range *range, const rnl_team_cut *cut, const rnl_team_piece *piece, size_t out_offset[3],
                    size_t out_global[3])
{
    memcpy(out_offset, (size_t[3]){RNL_TEAM_FIRST_ID, 0, 0}, 3 * sizeof *out_offset);
    memcpy(out_global, range->global, sizeof range->global);
    out_offset[cut->outer] = RNL_TEAM_FIRST_ID + piece->row * range->local[cut->outer];
    out_global[cut->outer] = piece->rows * range->local[cut->outer];
    if (cut->columns > 1) {
        out_offset[cut->inner] = RNL_TEAM_FIRST_ID + piece->column * range->local[cut->inner];
        out_global[cut->inner] = piece->columns * range->local[cut->inner];
    }
}

static rnl_status enqueue_piece(cl_command_queue queue, cl_kernel kernel, const rnl_range *range,
                                const rnl_team_cut *cut, const rnl_team_piece *it, cl_event *event)
{
    size_t offset[3], global[3];
    rnl_team_place(range, cut, it, offset, global);
    return CL(clEnqueueNDRangeKernel(queue, kernel, range->dimensions, offset, global, range->local, 0, NULL, event));
}

/* *event, where it is not NULL, is that of the first thread's. *out_left: groups that are not enqueued, for a failure.
 */
static rnl_status enqueue_parts(const rnl_team *team, cl_kernel kernel, const rnl_range *range, cl_event *event,
                                size_t *out_left)
{
    const rnl_team_cut cut = rnl_team_choose_cut(range, team->threads, event != NULL);
    for (uint32_t i = 0; i < team->threads; i++) {
        rnl_team_piece pieces[RNL_TEAM_MOST_PIECES];
        const uint32_t found = rnl_team_find_pieces(&cut, team->threads, i, pieces);
        for (uint32_t j = 0; j < found; j++) {
            TRY(enqueue_piece(team->queues[i], kernel, range, &cut, &pieces[j], i == 0 ? event : NULL));
            *out_left -= rnl_team_groups_in(range, &cut, &pieces[j]);
        }
    }
    return RNL_OK;
}

/* Its groups wait for what was enqueued before, and are waited for. */
static rnl_status set_together(const rnl_team *team, rnl_team_kernel *kernel)
{
    const cl_uint wanted = team->wanted;
    if (kernel->set != RNL_TEAM_TOGETHER)
        TRY(CL(clSetKernelArg(kernel->object, kernel->first_arg, sizeof team->memory, &team->memory)));
    kernel->set = RNL_TEAM_TOGETHER;
    return CL(clSetKernelArg(kernel->object, kernel->first_arg + 1, sizeof wanted, &wanted));
}

static rnl_status launch_waiting(rnl_team *team, rnl_team_kernel *kernel, const rnl_range *range, cl_event *event)
{
    TRY(rnl_team_settle(team));
    size_t left = rnl_team_groups(range);
    TRY(set_together(team, kernel));
    const uint32_t groups = (uint32_t)left;
    const rnl_status status = enqueue_parts(team, kernel->object, range, event, &left);
    team->wanted += groups;
    stand_in(team, (uint32_t)left);
    return status;
}

/*
 * pocl (3.1) keeps what it made of a kernel by the widest range so far, and takes the newest for that of any: several
 * that come to it with narrow parts first would make it fail.
 */
static bool has_been_wider(const rnl_team_kernel *kernel, const rnl_range *range)
{
    for (uint32_t d = 0; d < range->dimensions; d++)
        if (rnl_team_groups_along(range, d) > kernel->widest)
            return false;
    return true;
}

void rnl_team_note_whole(rnl_team_kernel *kernel, const rnl_range *range)
{
    for (uint32_t d = 0; d < range->dimensions; d++)
        if (rnl_team_groups_along(range, d) > kernel->widest)
            kernel->widest = rnl_team_groups_along(range, d);
}

/* As a whole, on the stream's queue, on which nothing is but what the team's wait for. */
static rnl_status launch_whole(rnl_stream *stream, rnl_team_kernel *kernel, const rnl_range *range, cl_event *event)
{
    const size_t offset[3] = {RNL_TEAM_FIRST_ID, 0, 0};
    TRY(set_together(stream->team, kernel));
    stream->is_idle = false;
    TRY(CL(clEnqueueNDRangeKernel(stream->queue, kernel->object, range->dimensions, offset, range->global, range->local,
                                  0, NULL, event)));
    stream->team->wanted += (uint32_t)rnl_team_groups(range);
    rnl_team_note_whole(kernel, range);
    return CL(clFinish(stream->queue));
}

/* … and tell where their kernel's function is, for which all that is enqueued ends. */
static rnl_status launch_telling(rnl_stream *stream, rnl_team_kernel *kernel, const rnl_range *range, cl_event *event)
{
    rnl_team *team = stream->team;
    TRY(rnl_team_settle(team));
    rnl_team_finish(team);
    team->words[RNL_TEAM_TELL] = 1;
    memset(&team->words[RNL_TEAM_WHERE], 0, sizeof(uint64_t));
    const rnl_status status = has_been_wider(kernel, range) ? launch_waiting(team, kernel, range, event)
                                                            : launch_whole(stream, kernel, range, event);
    rnl_team_finish(team);
    team->words[RNL_TEAM_TELL] = 0;
    if (status != RNL_OK)
        return status;
    kernel->function = rnl_team_find_function(team, kernel->program, kernel->name);
    kernel->is_known = true;
    return RNL_OK;
}

rnl_status rnl_team_leave_out(rnl_team_kernel *kernel)
{
    const cl_mem none = NULL;
    const cl_uint zero = 0;
    if (!kernel->waits || kernel->set == RNL_TEAM_ALONE)
        return RNL_OK;
    kernel->set = RNL_TEAM_UNSET;
    TRY(CL(clSetKernelArg(kernel->object, kernel->first_arg, sizeof none, &none)));
    TRY(CL(clSetKernelArg(kernel->object, kernel->first_arg + 1, sizeof zero, &zero)));
    kernel->set = RNL_TEAM_ALONE;
    return RNL_OK;
}

/* Where its groups cannot wait. */
static rnl_status launch_between(rnl_team *team, rnl_team_kernel *kernel, const rnl_range *range, cl_event *event)
{
    size_t left = 0;
    TRY(rnl_team_leave_out(kernel));
    TRY(enqueue_await(team, team->threads));
    const rnl_status status = enqueue_parts(team, kernel->object, range, event, &left);
    const rnl_status arrival = enqueue_arrive(team);
    return status == RNL_OK ? arrival : status;
}

/* Work-items of one group would each count. */
static bool can_wait(const rnl_range *range)
{
    size_t items = 1;
    for (uint32_t d = 0; d < range->dimensions; d++)
        items *= range->local[d];
    return items == 1 && rnl_team_groups(range) <= MOST_WAITING;
}

static bool can_call(const rnl_range *range)
{
    for (uint32_t d = 0; d < range->dimensions; d++)
        if (rnl_team_groups_along(range, d) > MOST_CALLED)
            return false;
    return rnl_team_can_cut(range) && can_wait(range);
}

bool rnl_team_collects(const rnl_device *device, const rnl_range *range)
{
    return atomic_load(&device->team_is_known) && device->team && device->team->calls && can_call(range);
}

bool rnl_team_may_collect(const rnl_device *device, const rnl_range *range)
{
    return atomic_load(&device->team_is_known) ? rnl_team_collects(device, range)
                                               : rnl_team_is_likely_to_call(device) && can_call(range);
}

/* It waits, and is to be asked where its function is. */
static bool can_tell(const rnl_team *team, const rnl_team_kernel *kernel, const rnl_range *range)
{
    return team->calls && kernel->waits && !kernel->is_known && !kernel->has_local && kernel->name && can_call(range);
}

/* Where the stream is inside, or enters now, with the lock until end_launch. */
static rnl_status begin_launch(rnl_stream *stream, bool *out_inside)
{
    *out_inside = stream->leave_team != NULL;
    if (!*out_inside)
        TRY(enter(stream, out_inside));
    if (!*out_inside)
        return RNL_OK;
    rnl_stream_enter(stream);
    pthread_mutex_lock(&stream->team->lock);
    const rnl_status status = set_helper(stream);
    if (status != RNL_OK)
        pthread_mutex_unlock(&stream->team->lock);
    return rnl_stream_fail(stream, status);
}

static rnl_status launch(rnl_stream *stream, rnl_team_kernel *kernel, const rnl_range *range, cl_event *event)
{
    if (can_tell(stream->team, kernel, range))
        return launch_telling(stream, kernel, range, event);
    return kernel->waits && can_wait(range) ? launch_waiting(stream->team, kernel, range, event)
                                            : launch_between(stream->team, kernel, range, event);
}

static rnl_status end_launch(rnl_stream *stream, rnl_team *team, rnl_status status)
{
    if (status != RNL_OK)
        rnl_team_finish(team);
    rnl_team_look(team);
    pthread_mutex_unlock(&team->lock);
    if (status == RNL_OK) {
        atomic_fetch_add_explicit(&stream->device->kernels_launched, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&stream->device->team_launches, 1, memory_order_relaxed);
        stream->team_launches++;
    }
    return rnl_stream_fail(stream, status);
}

rnl_status rnl_team_launch(rnl_stream *stream, rnl_team_kernel *kernel, const rnl_range *range, bool *out_taken)
{
    rnl_team *team = stream->team;
    *out_taken = false;
    if (!team || stream->event || !rnl_team_can_cut(range) ||
        !(has_been_wider(kernel, range) || can_tell(team, kernel, range)))
        return RNL_OK;
    TRY(begin_launch(stream, out_taken));
    if (!*out_taken)
        return RNL_OK;
    cl_event *event = rnl_stream_begin_launch(stream);
    return end_launch(stream, team, rnl_stream_end(stream, launch(stream, kernel, range, event)));
}

bool rnl_team_may_call(const rnl_stream *stream, const rnl_team_kernel *kernel, const rnl_range *range)
{
    return stream->team && kernel->function && !stream->event && !stream->track && can_call(range);
}

rnl_status rnl_team_call(rnl_stream *stream, rnl_team_kernel *kernel, const rnl_range *range, const rnl_team_arg *args,
                         uint32_t count, bool *out_taken)
{
    rnl_team *team = stream->team;
    rnl_team_arg all[RNL_TEAM_MOST_ARGS + 2];
    *out_taken = false;
    if (count > RNL_TEAM_MOST_ARGS)
        return RNL_OK;
    TRY(begin_launch(stream, out_taken));
    if (!*out_taken)
        return RNL_OK;
    const uint32_t wanted = team->wanted, *const counter = team->words;
    memcpy(all, args, count * sizeof *args);
    all[count] = (rnl_team_arg){.value = (const void *)&counter, .bytes = sizeof counter};
    all[count + 1] = (rnl_team_arg){.value = &wanted, .bytes = sizeof wanted};
    const rnl_status status = rnl_team_make_room(team, all, count + 2);
    if (status == RNL_OK && !rnl_team_add_call(team, kernel->function, range, all, count + 2)) {
        pthread_mutex_unlock(&team->lock);
        *out_taken = false;
        return RNL_OK;
    }
    atomic_fetch_add_explicit(&stream->device->team_calls, status == RNL_OK, memory_order_relaxed);
    return end_launch(stream, team, status);
}

rnl_status rnl_team_push(rnl_stream *stream)
{
    rnl_team *team = stream->team;
    if (!team || !stream->leave_team)
        return RNL_OK;
    pthread_mutex_lock(&team->lock);
    rnl_status status = set_helper(stream);
    if (status == RNL_OK)
        status = team->gives && !team->helps ? rnl_team_flush(team) : rnl_team_settle(team);
    pthread_mutex_unlock(&team->lock);
    return rnl_stream_fail(stream, status);
}
