// SPDX-License-Identifier: Apache-2.0
// A program that is not linked to runnel: opens the library that is given by its path, runs a model (y = x + x) from
// many threads, and ends in the way that is named: load_late LIBRARY MODEL WAY.
#include <dlfcn.h>
#include <pthread.h>
#include <runnel/runnel.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 8
#define RUNS 20
#define VALUES 64

#define FUNCTIONS(X)                                                                                                   \
    X(rnl_graph_load)                                                                                                  \
    X(rnl_graph_release)                                                                                               \
    X(rnl_device_open)                                                                                                 \
    X(rnl_device_release)                                                                                              \
    X(rnl_model_open)                                                                                                  \
    X(rnl_model_release)                                                                                               \
    X(rnl_session_create)                                                                                              \
    X(rnl_session_release)                                                                                             \
    X(rnl_session_run)                                                                                                 \
    X(rnl_last_error)
#define X(name) static __typeof__(&name) p_##name;
FUNCTIONS(X)
#undef X

static void *library;
static rnl_graph *graph;
static rnl_device *device;
static rnl_model *model;
static atomic_int running, started;
static pthread_t threads[THREADS];

// Not exit(): how a process ends with its objects is what is tested.
static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    _exit(1);
}

// False once the process ends, and calls are refused; any other failure is one of the test.
static bool check(rnl_status status)
{
    const char *message = p_rnl_last_error()->message;
    if (status != RNL_OK && (status != RNL_UNAVAILABLE || !strstr(message, "the process is ending")))
        die(message);
    return status == RNL_OK;
}

static void open_library(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die(dlerror());
#define X(name)                                                                                                        \
    *(void **)&p_##name = dlsym(library, #name);                                                                       \
    if (!p_##name)                                                                                                     \
        die(dlerror());
    FUNCTIONS(X)
#undef X
}

static void open_model(const char *path)
{
    check(p_rnl_graph_load(path, &graph));
    check(p_rnl_device_open(getenv("RUNNEL_TEST_DEVICE"), NULL, &device));
    check(p_rnl_model_open(graph, device, NULL, &model));
}

static void release_model(void)
{
    p_rnl_device_release(device);
    p_rnl_graph_release(graph);
    p_rnl_model_release(model);
}

static bool run_once(rnl_session *session, float first)
{
    const char *computes = getenv("FAKE_OPENCL_LEAKS"); // set: a driver that computes nothing
    float x[VALUES];
    for (int i = 0; i < VALUES; i++)
        x[i] = first + (float)i;
    rnl_tensor input = {.dtype = RNL_F32, .rank = 1, .shape = {VALUES}, .data = x, .size_bytes = sizeof x};
    rnl_tensor output = {.name = NULL};
    if (!check(p_rnl_session_run(session, &input, 1, &output, 1)))
        return false;
    for (int i = 0; i < VALUES && !computes; i++)
        if (((const float *)output.data)[i] != 2 * x[i])
            die("a wrong result");
    return true;
}

static void *work(void *user)
{
    rnl_session *session;
    const int *endless = user;
    if (!check(p_rnl_session_create(model, &session)))
        return NULL;
    bool runs = run_once(session, 0);
    atomic_fetch_add(&started, 1);
    for (int i = 0; runs && (i < RUNS || *endless); i++)
        runs = run_once(session, (float)(i % 1000));
    p_rnl_session_release(session);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void start(int endless)
{
    static int is_endless;
    is_endless = endless;
    atomic_store(&running, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &is_endless) != 0)
            die("no thread");
}

static void join(void)
{
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void wait_until_all_run(void)
{
    while (atomic_load(&started) < THREADS)
        usleep(1000);
}

static void *exit_here(void *user)
{
    (void)user;
    wait_until_all_run();
    exit(0);
}

static void exit_from_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, exit_here, NULL) != 0)
        die("no thread");
}

static void run_and_release_at_exit(void)
{
    rnl_session *session;
    if (check(p_rnl_session_create(model, &session)))
        run_once(session, 5);
    p_rnl_session_release(session);
    release_model();
    dlclose(library);
}

static void again(const char *path, const char *model_path)
{
    for (int i = 0; i < 3; i++) {
        open_library(path);
        open_model(model_path);
        start(0);
        join();
        release_model();
        dlclose(library);
    }
}

static void end(const char *way)
{
    if (strcmp(way, "release-then-close") == 0) {
        join();
        release_model();
        dlclose(library);
    } else if (strcmp(way, "close-then-release") == 0) {
        dlclose(library);
        join();
        release_model();
    } else if (strcmp(way, "release-early") == 0) { // sessions hold what they need
        wait_until_all_run();
        release_model();
        join();
    } else if (strcmp(way, "exit-unreleased") == 0) {
        join();
        exit(0);
    } else if (strcmp(way, "exit-while-running") == 0) {
        wait_until_all_run();
        exit(0);
    } else if (strcmp(way, "exit-from-thread") == 0) {
        exit_from_thread();
        join();
    } else if (strcmp(way, "main-ends-first") == 0) {
        exit_from_thread();
        pthread_exit(NULL);
    } else if (strcmp(way, "atexit-before") != 0 && strcmp(way, "atexit-after") != 0) {
        die("no such way");
    } else {
        join();
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage: load_late LIBRARY MODEL WAY");
    const char *way = argv[3];
    if (strcmp(way, "again") == 0) {
        again(argv[1], argv[2]);
        return 0;
    }
    if (strcmp(way, "atexit-before") == 0 && atexit(run_and_release_at_exit) != 0)
        die("no handler");
    open_library(argv[1]);
    open_model(argv[2]);
    if (strcmp(way, "atexit-after") == 0 && atexit(run_and_release_at_exit) != 0)
        die("no handler");
    start(strcmp(way, "exit-while-running") == 0 || strcmp(way, "exit-from-thread") == 0 ||
          strcmp(way, "main-ends-first") == 0);
    end(way);
    return 0;
}
