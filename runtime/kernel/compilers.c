/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr, posix_spawn_file_actions_addclosefrom_np */
#endif
#include "kernel/compilers.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "device/host_limits.h"
#include "device/trace.h"
#include "kernel/program_internal.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKER "runnel-rt/compile_worker" /* beside the library */
#define MOST_PROCESSES 8u                 /* of some 150 MB each, while they last */
#define FEWEST_PROGRAMS 3u
#define WIDE_RANGE 65535u /* groups along a dimension from which pocl compiles another variant */

const char *rnl_compile_worker;
int rnl_compile_patience_ms = 120000;

static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
extern char **environ;

/* ---- messages ---- */

static void add_number(rnl_text *text, uint64_t number)
{
    rnl_text_add_bytes(text, (const char *)&number, sizeof number);
}

static void add_text(rnl_text *text, const char *bytes, size_t size)
{
    const char end = '\0';
    add_number(text, size + sizeof end);
    rnl_text_add_bytes(text, bytes, size);
    rnl_text_add_bytes(text, &end, sizeof end);
}

void rnl_compile_job_add(rnl_compile_job *job, const char *kernel, const rnl_range *range, size_t first,
                         uint32_t arg_count)
{
    add_text(&job->kernels, kernel, strlen(kernel));
    add_number(&job->kernels, range->dimensions);
    add_number(&job->kernels, first);
    for (uint32_t i = 0; i < 3; i++)
        add_number(&job->kernels, i < range->dimensions ? range->local[i] : 1);
    for (uint32_t i = 0; i < 3; i++) {
        const size_t groups = i < range->dimensions ? (range->global[i] + range->local[i] - 1) / range->local[i] : 1;
        add_number(&job->kernels, groups >= WIDE_RANGE ? groups : 1);
    }
    add_number(&job->kernels, arg_count);
    job->kernel_count++;
}

void rnl_compile_job_add_value(rnl_compile_job *job, const void *bytes, size_t size_bytes)
{
    add_number(&job->kernels, RNL_COMPILE_VALUE);
    add_text(&job->kernels, bytes, size_bytes);
}

void rnl_compile_job_add_buffer(rnl_compile_job *job, rnl_compile_arg kind)
{
    add_number(&job->kernels, kind);
}

static rnl_status write_message(const rnl_compile_job *job, uint64_t buffer_bytes, rnl_text *out_message)
{
    const rnl_device_info *info = &job->program->registry->device->info;
    rnl_text source = {0}, options = {0};
    rnl_status status = rnl_program_get_text(job->program, &source, &options);
    if (status == RNL_OK) {
        add_text(out_message, info->platform, strlen(info->platform));
        add_text(out_message, info->name, strlen(info->name));
        add_number(out_message, buffer_bytes);
        add_text(out_message, source.data, source.length);
        add_text(out_message, options.data, options.length);
        add_number(out_message, job->kernel_count);
        rnl_text_add_bytes(out_message, job->kernels.data, job->kernels.length);
        status = job->kernels.status != RNL_OK ? job->kernels.status : out_message->status;
    }
    rnl_text_free(&source);
    rnl_text_free(&options);
    return status;
}

/* ---- a process ---- */

#define NO_JOB SIZE_MAX

typedef struct process {
    pid_t id; /* 0: none */
    int socket;
    size_t job; /* that it has, or NO_JOB */
} process;

/* Beside the library that this function is in, or the program that it was linked into. */
static bool find_worker(char path[PATH_MAX])
{
    Dl_info here;
    size_t length = 0;
    if (rnl_compile_worker) {
        length = strlen(rnl_compile_worker);
        if (length < PATH_MAX)
            memcpy(path, rnl_compile_worker, length + 1);
        return length < PATH_MAX;
    }
    if (dladdr((const void *)&running, &here) && here.dli_fname && strchr(here.dli_fname, '/')) {
        length = strlen(here.dli_fname);
        if (length < PATH_MAX)
            memcpy(path, here.dli_fname, length + 1);
    } else {
        const ssize_t got = readlink("/proc/self/exe", path, PATH_MAX - 1);
        length = got > 0 ? (size_t)got : PATH_MAX;
    }
    while (length < PATH_MAX && length > 0 && path[length - 1] != '/')
        length--;
    if (length == 0 || length + sizeof WORKER > PATH_MAX)
        return false;
    memcpy(path + length, WORKER, sizeof WORKER);
    return access(path, X_OK) == 0;
}

static bool spawn(const char *path, int socket, pid_t *out_id)
{
    posix_spawn_file_actions_t actions;
    char *arguments[] = {(char *)(uintptr_t)path, NULL};
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    bool is_ready = posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO) == 0;
    for (int file = STDOUT_FILENO; file <= STDERR_FILENO; file++)
        is_ready = is_ready && posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_WRONLY, 0) == 0;
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    is_ready = is_ready && posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1) == 0;
#endif
    is_ready = is_ready && posix_spawn(out_id, path, &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return is_ready;
}

static void start(process *it, const char *path)
{
    int ends[2];
    *it = (process){.job = NO_JOB};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return;
    if (spawn(path, ends[1], &it->id)) {
        it->socket = ends[0];
    } else {
        it->id = 0;
        close(ends[0]);
    }
    close(ends[1]);
}

/* Not by the socket's end alone, which a child that somebody forked meanwhile would hold open. */
static void end(process *it)
{
    if (it->id == 0)
        return;
    (void)kill(it->id, SIGKILL);
    close(it->socket);
    while (waitpid(it->id, NULL, 0) < 0 && errno == EINTR)
        ;
    *it = (process){.job = NO_JOB};
}

static bool send_all(int socket, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static void give(process *it, const rnl_compile_job *jobs, size_t job, uint64_t buffer_bytes)
{
    rnl_text message = {0};
    const rnl_status status = write_message(&jobs[job], buffer_bytes, &message);
    const uint64_t size = message.length;
    it->job = job;
    if (status != RNL_OK || size > RNL_COMPILE_MESSAGE_MOST || !send_all(it->socket, &size, sizeof size) ||
        !send_all(it->socket, message.data, size))
        end(it);
    rnl_text_free(&message);
}

/* ---- all of them ---- */

typedef struct work {
    const rnl_compile_job *jobs;
    size_t count, next;
    uint64_t buffer_bytes;
    process processes[MOST_PROCESSES];
    uint32_t process_count;
    const char *path;  /* of the worker */
    uint32_t restarts; /* that are left */
} work;

/* False when none has anything to do. */
static bool is_busy(const work *all)
{
    for (uint32_t i = 0; i < all->process_count; i++)
        if (all->processes[i].id != 0 && all->processes[i].job != NO_JOB)
            return true;
    return false;
}

/* One that died over a program gets a successor for the others. */
static void feed(work *all)
{
    for (uint32_t i = 0; i < all->process_count && all->next < all->count; i++) {
        process *it = &all->processes[i];
        if (it->id == 0 && all->restarts > 0) {
            all->restarts--;
            start(it, all->path);
        }
        if (it->id != 0 && it->job == NO_JOB)
            give(it, all->jobs, all->next++, all->buffer_bytes);
    }
}

static bool receive_all(int socket, void *to, size_t size)
{
    char *at = to;
    while (size > 0) {
        struct pollfd wait = {.fd = socket, .events = POLLIN};
        if (poll(&wait, 1, rnl_compile_patience_ms) <= 0)
            return false;
        const ssize_t got = recv(socket, at, size, MSG_DONTWAIT);
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

/* What its kernels told. */
static bool keep_told(int socket, rnl_program *program)
{
    uint64_t size = 0;
    char *told;
    if (!receive_all(socket, &size, sizeof size) || size > RNL_COMPILE_TOLD_MOST ||
        rnl_alloc(size + 1, 1, &told) != RNL_OK)
        return false;
    const bool is_whole = receive_all(socket, told, size);
    for (const char *at = told; is_whole && at < told + size;) {
        const char *path = at + strlen(at) + 1;
        if (path >= told + size)
            break;
        rnl_program_keep_library(program, at, path);
        at = path + strlen(path) + 1;
    }
    rnl_free(told);
    return is_whole;
}

/* What a process did, or NO_JOB. One that is gone, or does not answer as it should, ends. */
static size_t listen_to(process *it, const rnl_compile_job *jobs)
{
    char answer = 0;
    const ssize_t got = recv(it->socket, &answer, sizeof answer, MSG_DONTWAIT);
    const size_t job = it->job;
    if (got != 1 || (answer != RNL_COMPILE_DONE && answer != RNL_COMPILE_FAILED) ||
        (answer == RNL_COMPILE_DONE && !keep_told(it->socket, jobs[job].program))) {
        end(it);
        return NO_JOB;
    }
    it->job = NO_JOB;
    return answer == RNL_COMPILE_DONE ? job : NO_JOB;
}

/* Waits for answers; in `done` there is room for one of each process. False when none came in time. */
static bool await(work *all, size_t *done, uint32_t *out_count)
{
    struct pollfd waits[MOST_PROCESSES];
    for (uint32_t i = 0; i < all->process_count; i++) {
        const bool is_at_work = all->processes[i].id != 0 && all->processes[i].job != NO_JOB;
        waits[i] = (struct pollfd){.fd = is_at_work ? all->processes[i].socket : -1, .events = POLLIN};
    }
    *out_count = 0;
    const int ready = poll(waits, all->process_count, rnl_compile_patience_ms);
    if (ready <= 0)
        return ready < 0 && errno == EINTR;
    for (uint32_t i = 0; i < all->process_count; i++)
        if (waits[i].fd >= 0 && waits[i].revents != 0) {
            const size_t job = listen_to(&all->processes[i], all->jobs);
            if (job != NO_JOB)
                done[(*out_count)++] = job;
        }
    return true;
}

static rnl_status compile_all(work *all, rnl_compiled_fn compiled, void *user)
{
    size_t done[MOST_PROCESSES];
    uint32_t count;
    for (feed(all); is_busy(all); feed(all)) {
        if (!await(all, done, &count)) {
            rnl_log(RNL_LOG_WARNING, "processes that compile do not answer: this one goes on alone");
            return RNL_OK;
        }
        feed(all);
        for (uint32_t i = 0; i < count; i++) {
            rnl_device *device = all->jobs[done[i]].program->registry->device;
            atomic_fetch_add(&device->programs_compiled_beside, 1);
            TRY(compiled(user, all->jobs[done[i]].program));
        }
    }
    return RNL_OK;
}

/* Processes for that many programs; less than two are of no use. */
static uint32_t count_wanted(const rnl_device *device, size_t programs)
{
    const char *wish = getenv("RUNNEL_COMPILERS"), *keeps = getenv("POCL_KERNEL_CACHE");
    char *rest = NULL;
    if (!device->binaries_compile || programs < FEWEST_PROGRAMS || (keeps && strcmp(keeps, "0") == 0))
        return 0;
    unsigned long most = rnl_host_cpus();
    if (wish && *wish) {
        most = strtoul(wish, &rest, 10);
        if (*rest != '\0')
            most = 0;
    }
    if (most > MOST_PROCESSES)
        most = MOST_PROCESSES;
    if (most > programs)
        most = programs;
    return (uint32_t)most;
}

rnl_status rnl_compilers_run(rnl_device *device, const rnl_compile_job *jobs, size_t count, uint64_t buffer_bytes,
                             rnl_compiled_fn compiled, void *user)
{
    char path[PATH_MAX];
    work all = {.jobs = jobs, .count = count, .buffer_bytes = buffer_bytes};
    const uint32_t wanted = count_wanted(device, count);
    if (wanted < 2 || !find_worker(path) || pthread_mutex_trylock(&running) != 0)
        return RNL_OK;
    const uint64_t span = rnl_trace_start();
    all.path = path;
    all.restarts = wanted;
    for (; all.process_count < wanted; all.process_count++)
        start(&all.processes[all.process_count], path);
    const rnl_status status = compile_all(&all, compiled, user);
    for (uint32_t i = 0; i < all.process_count; i++)
        end(&all.processes[i]);
    rnl_trace_stop(span, "compile %zu programs beside", count);
    pthread_mutex_unlock(&running);
    return status;
}
