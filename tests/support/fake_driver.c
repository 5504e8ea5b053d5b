/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_driver.h"

#include "support/fault.h"
#include "support/test_device.h"
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_CALLS 20000
#define HANGS_AFTER_S 60
#define LOOK_AGAIN_US 2000
#define MOST_LOOKS 1000

const fake_control *fake_driver(void)
{
    static const fake_control *control;
    cl_platform_id platform;
    char name[64] = "";
    if (control)
        return control;
    if (clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS &&
        clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
        strncmp(name, "Fake ", 5) == 0)
        control = (const fake_control *)(uintptr_t)clGetExtensionFunctionAddressForPlatform(platform, "fakeControl");
    if (control)
        return control;
    fprintf(stderr, "skipped: this is not the fake driver, see tests/run_on\n");
    exit(77);
}

size_t fake_count_alive(void)
{
    fake_stats stats;
    fake_driver()->get_stats(&stats);
    return stats.alive;
}

void fake_check_alive(size_t alive)
{
    fake_stats now;
    fake_driver()->get_stats(&now);
    for (int i = 0; i < MOST_LOOKS && (now.alive > alive || now.busy_queues > 0); i++) {
        usleep(LOOK_AGAIN_US); /* threads of the library release what was in use to the last */
        fake_driver()->get_stats(&now);
    }
    if (now.alive <= alive) /* fewer: what a failure made unusable is made anew when it is needed */
        return;
    fake_driver()->list_alive();
    ck_abort_msg("%zu objects are alive instead of %zu", now.alive, alive);
}

/*
 * The message has "clFoo: CL_OUT_OF_RESOURCES (-5)". Where one call failed it is that one; where all later ones failed
 * too, it is the first that could not be done without.
 */
static void check_message(const fake_sweep *sweep, const rnl_error *error, uint64_t n, const char *call)
{
    char expected[128];
    const char *message = error->message;
    snprintf(expected, sizeof expected, "%s: %s", sweep->from_then_on ? "" : call, sweep->code_text);
    if (!strstr(message, expected) || error->native_code != sweep->code)
        ck_abort_msg("call %llu, %s, failed, and the message says: %s", (unsigned long long)n, call, message);
}

static void settle(const fake_sweep *sweep)
{
    fake_driver()->reset();
    if (sweep->settle)
        sweep->settle(sweep->data);
}

/* As it is to work without a fault. */
static void run_well(const fake_sweep *sweep)
{
    test_ok(sweep->program(sweep->data));
    settle(sweep);
}

/* Says which call it was before the process ends. */
static volatile unsigned long long failing;

static void say_that_it_hangs(int signal)
{
    char text[96];
    int length = snprintf(text, sizeof text, "the program hangs after call %llu failed\n", failing);
    ssize_t written = write(2, text, (size_t)length);
    (void)written;
    _exit(128 + signal);
}

unsigned fake_sweep_calls(const fake_sweep *sweep)
{
    const fake_control *control = fake_driver();
    const uint64_t wish = sweep->step ? sweep->step : 1, step = test_sweep_step(wish);
    unsigned failures = 0;
    run_well(sweep);
    const size_t alive = fake_count_alive();
    signal(SIGALRM, say_that_it_hangs);
    for (uint64_t n = 1; n < MOST_CALLS; n += step) {
        fake_stats stats;
        failing = n;
        alarm(HANGS_AFTER_S);
        control->fail_call(sweep->call, n, sweep->code, sweep->from_then_on);
        rnl_status status = sweep->program(sweep->data);
        control->get_stats(&stats);
        rnl_error error = *rnl_last_error();
        settle(sweep);
        fake_check_alive(alive);
        if (status != RNL_OK) {
            ck_assert_uint_gt(stats.failed_calls, 0);
            if (status != RNL_NOT_FOUND || !sweep->may_be_not_found)
                check_message(sweep, &error, n, stats.first_failed);
            failures += (unsigned)(step / wish);
        }
        run_well(sweep);
        fake_check_alive(alive);
        alarm(0);
        if (stats.failed_calls == 0)
            return failures;
    }
    ck_abort_msg("the fault never stopped coming");
}
