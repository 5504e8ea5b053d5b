/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/compile_ahead.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernel/program_internal.h"
#include "kernel/source.h"
#include "kernel/team.h"
#include "ops/execute.h"
#include <stdlib.h>
#include <string.h>

/* Of the thread that builds: a program that the driver finds on its disk takes it 8 to 12 ms on a Zen 5, the smallest
 * of others 43. */
#define READ_NS 36000000u

static rnl_compile_arg kind_of(const rnl_step *step, uint32_t slot)
{
    return slot == RNL_NO_SLOT          ? RNL_COMPILE_NOTHING
           : slot == step->write_slot   ? RNL_COMPILE_WRITTEN
           : slot == step->write_slot_2 ? RNL_COMPILE_WRITTEN_2
           : slot == step->write_slot_3 ? RNL_COMPILE_WRITTEN_3
                                        : RNL_COMPILE_READ;
}

/* Indices into buffers are as if each slot began its buffer. */
static void add_args(rnl_compile_job *job, const rnl_step_list *list, const rnl_step *step)
{
    const uint32_t zero = 0;
    for (uint32_t i = 0; i < step->arg_count; i++) {
        const rnl_step_arg *arg = &list->args[step->first_arg + i];
        if (arg->kind == RNL_STEP_SLOT)
            rnl_compile_job_add_buffer(job, kind_of(step, arg->slot));
        else
            rnl_compile_job_add_value(job, list->values + arg->value_at, arg->size_bytes);
    }
    if (step->waits) {
        const bool tells = step->may_be_cut && rnl_team_may_collect(list->device, &step->range);
        rnl_compile_job_add_buffer(job, tells ? RNL_COMPILE_COUNTER : RNL_COMPILE_NOTHING);
        rnl_compile_job_add_value(job, &zero, sizeof zero);
    }
}

/* The first step of each kernel: others differ in their arguments and sizes. */
static void add_kernels(rnl_compile_job *job, const rnl_step_list *list)
{
    for (size_t i = 0; i < list->step_count; i++) {
        const rnl_step *step = &list->steps[i];
        bool is_new = step->kind == RNL_STEP_KERNEL && step->program == job->program;
        for (size_t before = 0; before < i && is_new; before++)
            is_new = list->steps[before].program != step->program || list->steps[before].kind != RNL_STEP_KERNEL ||
                     strcmp(list->steps[before].kernel, step->kernel) != 0;
        if (!is_new)
            continue;
        const size_t first = step->may_be_cut ? rnl_team_likely_offset(list->device, &step->range) : 0;
        rnl_compile_job_add(job, step->kernel, &step->range, first, step->arg_count + (step->waits ? 2 : 0));
        add_args(job, list, step);
    }
}

/* *out_is_new: neither our cache nor the driver's disk had it. */
static rnl_status build_here(rnl_program *program, rnl_compiled_fn compiled, void *user, bool *out_is_new)
{
    const bool was_built = rnl_program_is_built(program);
    const uint64_t begin = rnl_clock_thread_ns();
    TRY(compiled(user, program));
    *out_is_new =
        !was_built && program->file && !rnl_program_from_cache(program) && rnl_clock_thread_ns() - begin > READ_NS;
    return RNL_OK;
}

/* Of all that processes compile; the team's program is nobody else's. */
typedef struct listener {
    const rnl_program *team;
    rnl_compiled_fn compiled;
    void *user;
} listener;

static rnl_status tell(void *user, rnl_program *program)
{
    const listener *to = user;
    return program == to->team ? RNL_OK : to->compiled(to->user, program);
}

static size_t file_bytes(const rnl_compile_job *job)
{
    const rnl_embedded_file *it = rnl_embedded_files;
    while (it->name && strcmp(it->name, rnl_program_file(job->program)) != 0)
        it++;
    return it->size_bytes;
}

/* A large one at the end would keep one process at work when the others are done. */
static int largest_first(const void *a, const void *b)
{
    const size_t x = file_bytes(a), y = file_bytes(b);
    return (x < y) - (x > y);
}

/* Our disk has neither the program nor what is needed of it. */
static bool is_new(const rnl_step_list *list, const rnl_program *program)
{
    return program->file && !rnl_program_is_built(program) && !rnl_program_is_on_disk(program) &&
           rnl_steps_need(list, program);
}

/*
 * The first, whose kernels are not compiled yet, and those behind it that no disk has. Where the team is not known, its
 * program as well.
 */
static rnl_status compile_beside(const rnl_step_list *list, rnl_program *const *programs, size_t count,
                                 uint64_t buffer_bytes, rnl_compiled_fn compiled, void *user)
{
    rnl_compile_job *jobs;
    size_t job_count = 0, first = 0;
    rnl_status status = RNL_OK;
    listener to = {.compiled = compiled, .user = user};
    TRY(rnl_alloc(count + 1, sizeof *jobs, &jobs));
    if (rnl_team_is_new(list->device)) {
        status = rnl_team_make_job(list->device, &jobs[0]);
        to.team = jobs[0].program;
        job_count = first = 1;
    } else {
        (void)rnl_device_has_team(list->device); /* a range begins elsewhere where there is one: another variant */
    }
    for (size_t i = 0; i < count; i++)
        if (i == 0 || is_new(list, programs[i]))
            jobs[job_count++].program = programs[i];
    for (size_t i = first; i < job_count; i++)
        add_kernels(&jobs[i], list);
    qsort(jobs, job_count, sizeof *jobs, largest_first);
    if (status == RNL_OK)
        status = rnl_compilers_run(list->device, jobs, job_count, buffer_bytes, tell, &to);
    for (size_t i = 0; i < job_count; i++)
        rnl_text_free(&jobs[i].kernels);
    rnl_free(jobs);
    return status;
}

bool rnl_compile_is_first(const rnl_step_list *list, rnl_program *const *programs, size_t count)
{
    return count > 0 && rnl_team_is_new(list->device) && is_new(list, programs[0]);
}

/*
 * Until the first new one all are built here: with that the driver shows whether its disk has the others. Where our own
 * disk has nothing, nor will the driver's.
 */
rnl_status rnl_compile_ahead(const rnl_step_list *list, rnl_program *const *programs, size_t count,
                             uint64_t buffer_bytes, rnl_compiled_fn compiled, void *user)
{
    bool found = false;
    if (rnl_compile_is_first(list, programs, count))
        return compile_beside(list, programs, count, buffer_bytes, compiled, user);
    for (size_t i = 0; i < count && list->device->binaries_compile && !found; i++) {
        TRY(build_here(programs[i], compiled, user, &found));
        if (found)
            TRY(compile_beside(list, programs + i, count - i, buffer_bytes, compiled, user));
    }
    return RNL_OK;
}
