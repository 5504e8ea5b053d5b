/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/team_calls.h"

#include "base/log.h"
#include "base/memory.h"
#include "device/part.h"
#include "kernel/cache.h"
#include "kernel/compilers.h"
#include "kernel/program_internal.h"
#include "kernel/team_cut.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CLAIM_NS 2000000 /* between two attempts at it */
#define MOST_CLAIMS 50
#define FILE_NAME "team.cl"
#define AWAIT "team_await"
#define ARRIVE "team_arrive_here"
#define TRIAL "team_try"

static pthread_mutex_t teams_lock = PTHREAD_MUTEX_INITIALIZER, making = PTHREAD_MUTEX_INITIALIZER;
static rnl_team *teams;

/* ---- one thread's device -------------------------------------------------------------------------------------- */

/*
 * The process keeps them: contexts of pocl before 4.0 do not, and its threads look at the device of a command even
 * after clFinish has returned. Under `making`.
 */
typedef struct units {
    struct units *next;
    cl_device_id root;
    uint32_t first, count;
    cl_device_id ids[RNL_TEAM_MOST_THREADS + 1];
} units;

static units *all_units;

static rnl_status create_units(cl_device_id root, uint32_t first, uint32_t count, units **out_units)
{
    cl_device_partition_property wanted[RNL_TEAM_MOST_THREADS + 4] = {CL_DEVICE_PARTITION_BY_COUNTS};
    units *made;
    uint32_t at = 1;
    if (first > 0)
        wanted[at++] = first;
    for (uint32_t i = 0; i < count; i++)
        wanted[at++] = 1;
    wanted[at] = CL_DEVICE_PARTITION_BY_COUNTS_LIST_END;
    TRY(rnl_alloc(1, sizeof *made, &made));
    *made = (units){.next = all_units, .root = root, .first = first, .count = count};
    const rnl_status status = CL(clCreateSubDevices(root, wanted, at - 1, made->ids, NULL));
    if (status != RNL_OK) {
        rnl_free(made);
        return status;
    }
    *out_units = all_units = made;
    return RNL_OK;
}

static rnl_status find_units(cl_device_id root, uint32_t first, uint32_t count, const cl_device_id **out_ids)
{
    units *it = all_units;
    while (it && (it->root != root || it->first != first || it->count != count))
        it = it->next;
    if (!it)
        TRY(create_units(root, first, count, &it));
    *out_ids = it->ids + (first > 0);
    return RNL_OK;
}

/* ---- making one ----------------------------------------------------------------------------------------------- */

/* Those whose kernels all begin with TEAM_ENTER. */
static const char *const files[] = {
    "attention.cl",      "chain.cl",          "conv_amx.cl",          "conv_block.cl",      "conv_colours.cl",
    "conv_depthwise.cl", "conv_fip.cl",       "conv_panel.cl",        "conv_strassen.cl",   "conv_winograd.cl",
    "copy.cl",           "gather.cl",         "gemm_bf16.cl",         "gemm_pack.cl",       "gemm_panel.cl",
    "gemm_row.cl",       "gemm_strassen.cl",  "normalize_vectors.cl", "pool_vectors.cl",    "qconv_amx.cl",
    "qconv_columns.cl",  "qconv_panel.cl",    "qconv_winograd.cl",    "qdynamic.cl",        "qgemm_panel.cl",
    "qmap.cl",           "reduce_vectors.cl", "resize_vectors.cl",    "softmax_vectors.cl", "transpose.cl"};

/* The driver compiles for the processor that it runs on. */
static bool is_pocl(const rnl_device *device)
{
#if defined(__x86_64__) && defined(__linux__)
    return device->binaries_compile && device->info.type == RNL_DEVICE_CPU;
#else
    (void)device;
    return false;
#endif
}

const char *rnl_team_define(const rnl_device *device, const char *file)
{
    for (size_t i = 0; i < sizeof files / sizeof *files && is_pocl(device); i++)
        if (strcmp(files[i], file) == 0)
            return "TEAM";
    return NULL;
}

size_t rnl_team_offset(const rnl_device *device, const rnl_range *range)
{
    return atomic_load(&device->team_is_known) && device->team && rnl_team_can_cut(range) ? RNL_TEAM_FIRST_ID : 0;
}

rnl_team_wish rnl_team_get_wish(void)
{
    const char *wish = getenv("RUNNEL_TEAM");
    if (wish && strcmp(wish, "off") == 0)
        return RNL_TEAM_OFF;
    return wish && strcmp(wish, "on") == 0 ? RNL_TEAM_ON : RNL_TEAM_AS_MEASURED;
}

/* Versions of pocl whose functions are as kernel/team_calls.h says. */
static bool may_call(const rnl_device *device)
{
    const char *wish = getenv("RUNNEL_TEAM_CALLS"), *version = device->info.driver_version;
    return version[0] >= '3' && version[0] <= '7' && version[1] == '.' && !(wish && strcmp(wish, "off") == 0);
}

static bool may_have(const rnl_device *device)
{
    const bool is_known = !device->parent_id || (device->part && device->part->kind == RNL_SHARE_UNITS);
    return is_pocl(device) && !device->runs_in_caller && is_known &&
           device->info.compute_units >= (may_call(device) ? 1 : 2) &&
           device->info.compute_units <= RNL_TEAM_MOST_THREADS && rnl_team_get_wish() != RNL_TEAM_OFF;
}

bool rnl_team_is_likely_to_call(const rnl_device *device)
{
    return may_have(device) && may_call(device);
}

size_t rnl_team_likely_offset(const rnl_device *device, const rnl_range *range)
{
    const bool is_likely = atomic_load(&device->team_is_known) ? device->team != NULL : may_have(device);
    return is_likely && rnl_team_can_cut(range) ? RNL_TEAM_FIRST_ID : 0;
}

bool rnl_team_is_new(rnl_device *device)
{
    rnl_program *program;
    const rnl_error before = *rnl_last_error();
    if (atomic_load(&device->team_is_known) || !may_have(device))
        return false;
    const bool is_got = rnl_program_get(device, FILE_NAME, "", &program) == RNL_OK;
    (void)rnl_error_restore(&before);
    return is_got && !rnl_program_is_built(program) && rnl_cache_is_on() && !rnl_program_is_on_disk(program);
}

rnl_status rnl_team_make_job(rnl_device *device, rnl_compile_job *out_job)
{
    /* Their arguments: a counter, a value, a buffer. */
    static const struct {
        const char *name, *args;
    } kernels[] = {{AWAIT, "cv"}, {ARRIVE, "c"}, {TRIAL, "cvvb"}};
    const rnl_range one = {.dimensions = 1, .global = {1, 1, 1}, .local = {1, 1, 1}};
    const cl_uint zero = 0;
    *out_job = (rnl_compile_job){.program = NULL};
    TRY(rnl_program_get(device, FILE_NAME, "", &out_job->program));
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        rnl_compile_job_add(out_job, kernels[i].name, &one, RNL_TEAM_FIRST_ID, (uint32_t)strlen(kernels[i].args));
        for (const char *arg = kernels[i].args; *arg; arg++)
            if (*arg == 'v')
                rnl_compile_job_add_value(out_job, &zero, sizeof zero);
            else
                rnl_compile_job_add_buffer(out_job, *arg == 'c' ? RNL_COMPILE_COUNTER : RNL_COMPILE_WRITTEN);
    }
    return out_job->kernels.status;
}

void rnl_team_finish(rnl_team *team)
{
    (void)!rnl_team_hand_over(team);
    for (uint32_t i = 0; i < team->threads; i++)
        if (team->queues[i])
            clFinish(team->queues[i]);
}

static void free_team(rnl_team *team)
{
    if (!team)
        return;
    pthread_mutex_lock(&teams_lock);
    for (rnl_team **at = &teams; *at; at = &(*at)->next)
        if (*at == team) {
            *at = team->next;
            break;
        }
    pthread_mutex_unlock(&teams_lock);
    rnl_team_finish(team); /* a thread that has been counted may still look at the counter */
    for (uint32_t i = 0; i < team->threads; i++)
        if (team->queues[i])
            clReleaseCommandQueue(team->queues[i]);
    if (team->asking)
        clReleaseCommandQueue(team->asking);
    if (team->last)
        clReleaseEvent(team->last);
    if (team->await)
        clReleaseKernel(team->await);
    if (team->arrive)
        clReleaseKernel(team->arrive);
    rnl_team_free_calls(team);
    rnl_team_free_libraries(team);
    if (team->memory)
        clReleaseMemObject(team->memory);
    pthread_mutex_destroy(&team->lock);
    pthread_mutex_destroy(&team->batches_lock);
    free(team);
}

static rnl_status create_queues(rnl_device *device, rnl_team *team)
{
    const cl_device_id *ids;
    cl_int code;
    TRY(find_units(device->parent_id ? device->parent_id : device->id, team->first, team->threads, &ids));
    for (uint32_t i = 0; i < team->threads; i++) { /* for traces; it costs next to nothing there */
        team->queues[i] =
            CL_NEW(&code, clCreateCommandQueue(device->context, ids[i], CL_QUEUE_PROFILING_ENABLE, &code));
        TRY(rnl_cl_status(code, "clCreateCommandQueue"));
    }
    team->asking = CL_NEW(&code, clCreateCommandQueue(device->context, ids[0], 0, &code));
    TRY(rnl_cl_status(code, "clCreateCommandQueue"));
    team->memory = CL_NEW(&code, clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                                sizeof team->words, team->words, &code));
    return rnl_cl_status(code, "clCreateBuffer");
}

static rnl_status set_trial(const rnl_team *team, cl_kernel kernel)
{
    const cl_uint wanted = team->threads, turns = RNL_TEAM_TRIAL_TURNS;
    TRY(CL(clSetKernelArg(kernel, 0, sizeof team->memory, &team->memory)));
    TRY(CL(clSetKernelArg(kernel, 1, sizeof wanted, &wanted)));
    TRY(CL(clSetKernelArg(kernel, 2, sizeof turns, &turns)));
    return CL(clSetKernelArg(kernel, 3, sizeof team->memory, &team->memory));
}

/* Whether they run side by side, each its part of a range, and share memory with the host. */
static rnl_status try_team(rnl_team *team, cl_kernel kernel)
{
    const size_t one = 1;
    rnl_status status = set_trial(team, kernel);
    for (uint32_t i = 0; i < team->threads && status == RNL_OK; i++) {
        const size_t offset = RNL_TEAM_FIRST_ID + RNL_TEAM_RESULTS + i;
        status = CL(clEnqueueNDRangeKernel(team->queues[i], kernel, 1, &offset, &one, &one, 0, NULL, NULL));
    }
    rnl_team_finish(team);
    TRY(status);
    for (uint32_t i = 0; i < team->threads; i++)
        if (team->words[RNL_TEAM_RESULTS + i] != 1 + RNL_TEAM_RESULTS + i)
            return FAIL(RNL_UNAVAILABLE, "thread %u of %u did not meet the others", (unsigned)i,
                        (unsigned)team->threads);
    team->wanted = team->threads;
    return RNL_OK;
}

static rnl_status try_all(const rnl_device *device, rnl_team *team, cl_kernel kernel)
{
    team->words[RNL_TEAM_TELL] = may_call(device);
    TRY(try_team(team, kernel));
    if (team->words[RNL_TEAM_TELL])
        rnl_team_try_calls(team);
    team->words[RNL_TEAM_TELL] = 0;
    if (team->threads == 1 && !team->calls)
        return FAIL(RNL_UNAVAILABLE, "a single thread's launches cannot be collected");
    return RNL_OK;
}

/* Another team of these threads would be waited for in vain. */
static rnl_status try_claimed(const rnl_device *device, rnl_team *team, cl_kernel kernel)
{
    const struct timespec pause = {.tv_nsec = CLAIM_NS};
    int attempts = 0;
    while (!rnl_team_claim(team))
        if (++attempts == MOST_CLAIMS)
            return FAIL(RNL_UNAVAILABLE, "another device's team works with its threads");
        else
            nanosleep(&pause, NULL);
    const rnl_status status = try_all(device, team, kernel);
    rnl_team_give_up(team, NULL);
    return status;
}

static rnl_status prepare(rnl_device *device, rnl_team *team)
{
    rnl_program *program;
    cl_kernel trial;
    TRY(create_queues(device, team));
    TRY(rnl_program_get(device, FILE_NAME, "", &program));
    TRY(rnl_program_create_kernel(program, AWAIT, &team->await));
    TRY(rnl_program_create_kernel(program, ARRIVE, &team->arrive));
    TRY(CL(clSetKernelArg(team->await, 0, sizeof team->memory, &team->memory)));
    TRY(CL(clSetKernelArg(team->arrive, 0, sizeof team->memory, &team->memory)));
    TRY(rnl_program_create_kernel(program, TRIAL, &trial));
    const rnl_status status = try_claimed(device, team, trial);
    clReleaseKernel(trial);
    return status;
}

static void add_to_list(rnl_team *team)
{
    pthread_mutex_lock(&teams_lock);
    team->next = teams;
    teams = team;
    pthread_mutex_unlock(&teams_lock);
}

static rnl_team *create(rnl_device *device)
{
    rnl_team *team = aligned_alloc(_Alignof(rnl_team), sizeof *team);
    if (!team)
        return NULL;
    memset(team, 0, sizeof *team);
    pthread_mutex_init(&team->lock, NULL);
    pthread_mutex_init(&team->batches_lock, NULL);
    team->first = device->part ? device->part->first : 0;
    team->threads = device->info.compute_units;
    add_to_list(team);
    if (prepare(device, team) != RNL_OK) {
        rnl_log(RNL_LOG_INFO, "%s: its threads do not work as a team: %s", device->info.name,
                rnl_last_error()->message);
        free_team(team);
        return NULL;
    }
    return team;
}

rnl_team *rnl_team_of(rnl_device *device)
{
    if (!atomic_load(&device->team_is_known)) {
        const rnl_error before = *rnl_last_error();
        pthread_mutex_lock(&making);
        if (!atomic_load(&device->team_is_known)) {
            device->team = may_have(device) ? create(device) : NULL;
            device->free_team = free_team;
            atomic_store(&device->team_is_known, true);
        }
        pthread_mutex_unlock(&making);
        rnl_error_restore(&before);
    }
    return device->team;
}

void rnl_team_rest(rnl_device *device)
{
    if (atomic_load(&device->team_is_known) && device->team)
        rnl_team_finish(device->team);
}

bool rnl_device_has_team(rnl_device *device)
{
    return rnl_team_of(device) != NULL;
}

uint64_t rnl_device_team_launches(const rnl_device *device)
{
    return atomic_load(&device->team_launches);
}

uint64_t rnl_device_team_calls(const rnl_device *device)
{
    return atomic_load(&device->team_calls);
}

/* ---- who has the threads --------------------------------------------------------------------------------------- */

static bool is_busy(rnl_team *team)
{
    cl_int state = CL_COMPLETE;
    if (team->users > 0)
        return true;
    if (team->last)
        (void)clGetEventInfo(team->last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    return state > CL_COMPLETE;
}

bool rnl_team_claim(rnl_team *team)
{
    bool is_free = true;
    pthread_mutex_lock(&teams_lock);
    for (rnl_team *it = teams; it && is_free; it = it->next) {
        const bool meets = it->first < team->first + team->threads && team->first < it->first + it->threads;
        is_free = it == team || !meets || !is_busy(it);
    }
    team->users += is_free;
    pthread_mutex_unlock(&teams_lock);
    return is_free;
}

bool rnl_team_is_shared(const rnl_team *team)
{
    pthread_mutex_lock(&teams_lock);
    const bool is_shared = team->users > 1;
    pthread_mutex_unlock(&teams_lock);
    return is_shared;
}

void rnl_team_give_up(rnl_team *team, cl_event last)
{
    pthread_mutex_lock(&teams_lock);
    team->users--;
    if (team->last)
        clReleaseEvent(team->last);
    team->last = last;
    pthread_mutex_unlock(&teams_lock);
}
