/* SPDX-License-Identifier: Apache-2.0 */
/* The lock, the count of calls, and what is made to fail. */
#include "fake/fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_NAMES 128

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;

/* All counts go down to the one that acts; 0 acts never. */
static struct {
    char call[64]; /* "": any */
    uint64_t calls, commands, buffers, uses[FAKE_DEVICES];
    cl_int call_code, command_code, lost_code[FAKE_DEVICES];
    bool from_then_on;
    size_t memory_limit;
    unsigned delay_us;
    cl_uint missing_units;
} plan;

static fake_stats seen;
static struct {
    const char *name;
    uint64_t calls;
} names[MOST_NAMES];

static void count_name(const char *name)
{
    size_t at = 0;
    while (at < MOST_NAMES - 1 && names[at].name && names[at].name != name && strcmp(names[at].name, name) != 0)
        at++;
    names[at].name = name;
    names[at].calls++;
}

/* True when the count comes to its end with this one. */
static bool comes_up(uint64_t *count)
{
    return *count > 0 && --*count == 0;
}

cl_int fake_failed(const char *call, cl_int code)
{
    if (seen.failed_calls++ == 0)
        snprintf(seen.first_failed, sizeof seen.first_failed, "%s", call);
    return code;
}

cl_int fake_enter(const char *call)
{
    pthread_mutex_lock(&fake_lock);
    seen.calls++;
    count_name(call);
    if ((plan.call[0] && strcmp(plan.call, call) != 0) || !comes_up(&plan.calls))
        return CL_SUCCESS;
    plan.calls = plan.from_then_on;
    return fake_failed(call, plan.call_code);
}

bool fake_fails_for_good(void)
{
    return plan.from_then_on;
}

cl_int fake_leave(cl_int code)
{
    pthread_mutex_unlock(&fake_lock);
    return code;
}

void *fake_made(void *object, cl_int code, cl_int *out_code)
{
    if (out_code)
        *out_code = code;
    pthread_mutex_unlock(&fake_lock);
    return code == CL_SUCCESS ? object : NULL;
}

cl_int fake_answer(const void *value, size_t bytes, size_t size, void *out, size_t *out_bytes)
{
    if (out && size < bytes)
        return CL_INVALID_VALUE;
    if (out)
        memcpy(out, value, bytes);
    if (out_bytes)
        *out_bytes = bytes;
    return CL_SUCCESS;
}

/* ---- What the plan makes of things ---- */

cl_int fake_command_fault(void)
{
    return comes_up(&plan.commands) ? fake_failed("a command", plan.command_code) : CL_SUCCESS;
}

bool fake_is_lie(void)
{
    return comes_up(&plan.buffers);
}

cl_int fake_use_device(cl_device_id device)
{
    cl_device_id whole = fake_whole(device);
    if (comes_up(&plan.uses[whole->index]))
        whole->lost = plan.lost_code[whole->index];
    return whole->lost;
}

unsigned fake_delay_us(void)
{
    return plan.delay_us;
}

cl_uint fake_missing_units(void)
{
    return plan.missing_units;
}

size_t fake_memory_limit(void)
{
    return plan.memory_limit;
}

void fake_count_overlap(void)
{
    seen.overlaps++;
}

/* ---- The table ---- */

static void reset(void)
{
    pthread_mutex_lock(&fake_lock);
    memset(&plan, 0, sizeof plan);
    memset(&seen, 0, sizeof seen);
    for (size_t i = 0; i < MOST_NAMES; i++)
        names[i].calls = 0;
    for (size_t i = 0; i < FAKE_DEVICES; i++)
        fake_devices[i].lost = CL_SUCCESS;
    pthread_mutex_unlock(&fake_lock);
}

static void get_stats(fake_stats *out_stats)
{
    pthread_mutex_lock(&fake_lock);
    *out_stats = seen;
    out_stats->alive = fake_alive(false);
    out_stats->memory_bytes = fake_memory_bytes();
    out_stats->busy_queues = fake_busy_queues();
    pthread_mutex_unlock(&fake_lock);
}

static uint64_t calls_of(const char *name)
{
    uint64_t calls = 0;
    pthread_mutex_lock(&fake_lock);
    for (size_t i = 0; i < MOST_NAMES && names[i].name; i++)
        if (strcmp(names[i].name, name) == 0)
            calls = names[i].calls;
    pthread_mutex_unlock(&fake_lock);
    return calls;
}

static void list_alive(void)
{
    pthread_mutex_lock(&fake_lock);
    fake_alive(true);
    pthread_mutex_unlock(&fake_lock);
}

static void fail_call(const char *name, uint64_t n, cl_int code, bool from_then_on)
{
    pthread_mutex_lock(&fake_lock);
    snprintf(plan.call, sizeof plan.call, "%s", name ? name : "");
    plan.calls = n;
    plan.call_code = code;
    plan.from_then_on = from_then_on;
    pthread_mutex_unlock(&fake_lock);
}

static void fail_command(uint64_t n, cl_int code)
{
    pthread_mutex_lock(&fake_lock);
    plan.commands = n;
    plan.command_code = code;
    pthread_mutex_unlock(&fake_lock);
}

static void lie(uint64_t n)
{
    pthread_mutex_lock(&fake_lock);
    plan.buffers = n;
    pthread_mutex_unlock(&fake_lock);
}

static void limit_memory(size_t bytes)
{
    pthread_mutex_lock(&fake_lock);
    plan.memory_limit = bytes;
    pthread_mutex_unlock(&fake_lock);
}

static void lose_device(unsigned index, uint64_t n, cl_int code)
{
    pthread_mutex_lock(&fake_lock);
    if (index < FAKE_DEVICES) {
        fake_devices[index].lost = CL_SUCCESS;
        plan.uses[index] = n;
        plan.lost_code[index] = code;
    }
    pthread_mutex_unlock(&fake_lock);
}

static void delay(unsigned microseconds)
{
    pthread_mutex_lock(&fake_lock);
    plan.delay_us = microseconds;
    pthread_mutex_unlock(&fake_lock);
}

static void shorten_parts(cl_uint units)
{
    pthread_mutex_lock(&fake_lock);
    plan.missing_units = units;
    pthread_mutex_unlock(&fake_lock);
}

extern const fake_control fake_control_table;
const fake_control fake_control_table = {reset, get_stats,    calls_of,    list_alive, fail_call,    fail_command,
                                         lie,   limit_memory, lose_device, delay,      shorten_parts};

/* ---- The environment ---- */

static unsigned long long number(const char *name)
{
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 0) : 0;
}

/* FAKE_OPENCL_FAIL=[NAME:]N[:CODE][+] */
static void read_fail(const char *value)
{
    char name[64] = "";
    unsigned long long n = 0;
    int code = CL_OUT_OF_RESOURCES;
    if (sscanf(value, "%63[A-Za-z]:%llu:%d", name, &n, &code) < 2)
        sscanf(value, "%llu:%d", &n, &code);
    fail_call(name[0] ? name : NULL, n, code, strchr(value, '+') != NULL);
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *fail = getenv("FAKE_OPENCL_FAIL");
    if (fail)
        read_fail(fail);
    lie(number("FAKE_OPENCL_LIE"));
    limit_memory(number("FAKE_OPENCL_LIMIT"));
    delay((unsigned)number("FAKE_OPENCL_DELAY_US"));
    lose_device(0, number("FAKE_OPENCL_LOST"), CL_OUT_OF_RESOURCES);
}

/* What is alive when the process ends is listed; with "fail" the process fails. */
__attribute__((destructor)) static void check_leaks(void)
{
    const char *wish = getenv("FAKE_OPENCL_LEAKS");
    if (!wish || (strcmp(wish, "list") != 0 && strcmp(wish, "fail") != 0))
        return;
    pthread_mutex_lock(&fake_lock);
    size_t count = fake_alive(true);
    pthread_mutex_unlock(&fake_lock);
    if (count > 0 && strcmp(wish, "fail") == 0) {
        fprintf(stderr, "fake OpenCL: %zu objects were not released\n", count);
        fflush(NULL);
        _exit(1);
    }
}
