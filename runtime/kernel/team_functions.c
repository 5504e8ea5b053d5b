/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where kernels' functions are. A launch tells (clkernels/team.clh); the library that holds it is kept on disk, for the
 * next process to load without the driver, whose program would cost 0.5 MiB of memory and some milliseconds.
 */
#include "base/file.h"
#include "base/memory.h"
#include "kernel/cache.h"
#include "kernel/program_internal.h"
#include "kernel/team_calls.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY_BYTES ((size_t)16 << 20) /* at most */

struct rnl_program_function {
    struct rnl_program_function *next;
    rnl_call_function function; /* NULL: it is not on disk */
    char name[];
};

/* ---- libraries ------------------------------------------------------------------------------------------------- */

void rnl_team_free_libraries(rnl_team *team)
{
    for (size_t i = 0; i < team->library_count; i++)
        dlclose(team->libraries[i]);
    rnl_free(team->libraries);
}

/* pocl unloads what it has not run for some time. Takes the handle; with the team's lock. */
static bool keep_library(rnl_team *team, void *library)
{
    for (size_t i = 0; i < team->library_count; i++)
        if (team->libraries[i] == library) {
            dlclose(library);
            return true;
        }
    if (rnl_grow(&team->libraries, &team->library_capacity, team->library_count + 1, sizeof *team->libraries)) {
        dlclose(library);
        return false;
    }
    team->libraries[team->library_count++] = library;
    return true;
}

/* With the team's lock. */
static rnl_call_function look_up(rnl_team *team, const char *path, int flags, const char *kernel)
{
    char symbol[256];
    rnl_call_function function = NULL;
    if (snprintf(symbol, sizeof symbol, "_pocl_kernel_%s_workgroup", kernel) >= (int)sizeof symbol)
        return NULL;
    void *library = dlopen(path, flags | RTLD_LOCAL);
    if (!library)
        return NULL;
    void *found = dlsym(library, symbol);
    if (!keep_library(team, library) || !found)
        return NULL;
    memcpy(&function, &found, sizeof function);
    return function;
}

/* ---- those of a program ---------------------------------------------------------------------------------------- */

static struct rnl_program_function *find_known(const rnl_program *program, const char *kernel)
{
    struct rnl_program_function *it = program->functions;
    while (it && strcmp(it->name, kernel) != 0)
        it = it->next;
    return it;
}

/* With the registry's lock. Without memory it is looked for again. */
static void note(rnl_program *program, const char *kernel, rnl_call_function function)
{
    struct rnl_program_function *it = find_known(program, kernel);
    if (!it) {
        it = rnl_malloc(sizeof *it + strlen(kernel) + 1);
        if (!it)
            return;
        memcpy(it->name, kernel, strlen(kernel) + 1);
        it->next = program->functions;
        program->functions = it;
    }
    it->function = function;
}

void rnl_program_free_functions(rnl_program *program)
{
    for (struct rnl_program_function *it = program->functions, *next; it; it = next) {
        next = it->next;
        rnl_free(it);
    }
}

/* Of a kernel's library. With the registry's lock. */
static bool get_key(rnl_program *program, const char *kernel, rnl_hash *out_key)
{
    char text[512];
    if (!program->has_library_key) {
        const rnl_error before = *rnl_last_error();
        program->has_library_key = rnl_program_get_key(program, &program->library_key) == RNL_OK;
        (void)rnl_error_restore(&before);
    }
    const rnl_hash *key = &program->library_key;
    const int length = snprintf(text, sizeof text, "%016llx%016llx %s", (unsigned long long)key->high,
                                (unsigned long long)key->low, kernel);
    *out_key = rnl_hash_bytes(text, strlen(text));
    return program->has_library_key && length < (int)sizeof text;
}

/* With the registry's lock, as the next. */
static bool find_on_disk(rnl_program *program, const char *kernel, char path[PATH_MAX], rnl_hash *out_key)
{
    return program->file && rnl_cache_is_on() && get_key(program, kernel, out_key) &&
           rnl_cache_find_library(*out_key, path, PATH_MAX);
}

static void keep_on_disk(rnl_program *program, const char *kernel, const char *path)
{
    char kept[PATH_MAX];
    rnl_hash key = {0};
    void *data;
    size_t size;
    const rnl_error before = *rnl_last_error();
    if (rnl_cache_is_on() && !find_on_disk(program, kernel, kept, &key) && program->has_library_key &&
        rnl_file_read(path, LIBRARY_BYTES, &data, &size) == RNL_OK) {
        rnl_cache_write_library(key, data, size);
        rnl_free(data);
    }
    (void)rnl_error_restore(&before);
}

rnl_call_function rnl_team_find_function(rnl_team *team, rnl_program *program, const char *kernel)
{
    uintptr_t place;
    Dl_info info;
    memcpy(&place, &team->words[RNL_TEAM_WHERE], sizeof place);
    if (place == 0 || !dladdr((void *)place, &info) || !info.dli_fname)
        return NULL;
    const rnl_call_function function = look_up(team, info.dli_fname, RTLD_NOLOAD | RTLD_LAZY, kernel);
    if (function && program) {
        pthread_mutex_lock(&program->registry->lock);
        keep_on_disk(program, kernel, info.dli_fname);
        note(program, kernel, function);
        pthread_mutex_unlock(&program->registry->lock);
    }
    return function;
}

void rnl_program_keep_library(rnl_program *program, const char *kernel, const char *path)
{
    if (!program->file)
        return;
    pthread_mutex_lock(&program->registry->lock);
    keep_on_disk(program, kernel, path);
    program->is_new = true;
    pthread_mutex_unlock(&program->registry->lock);
}

rnl_call_function rnl_team_get_function(rnl_device *device, rnl_program *program, const char *kernel)
{
    rnl_team *team = atomic_load(&device->team_is_known) ? device->team : NULL;
    char path[PATH_MAX];
    rnl_hash key;
    rnl_call_function function = NULL;
    if (!team || !team->calls)
        return NULL;
    pthread_mutex_lock(&team->lock); /* first, as where a launch tells */
    pthread_mutex_lock(&program->registry->lock);
    const struct rnl_program_function *known = find_known(program, kernel);
    if (known) {
        function = known->function;
    } else {
        if (find_on_disk(program, kernel, path, &key))
            function = look_up(team, path, RTLD_NOW, kernel);
        note(program, kernel, function);
    }
    pthread_mutex_unlock(&program->registry->lock);
    pthread_mutex_unlock(&team->lock);
    return function;
}

bool rnl_team_has_function(rnl_device *device, rnl_program *program, const char *kernel)
{
    char path[PATH_MAX];
    rnl_hash key;
    if (atomic_load(&device->team_is_known))
        return rnl_team_get_function(device, program, kernel) != NULL;
    pthread_mutex_lock(&program->registry->lock);
    const bool is_there = rnl_team_is_likely_to_call(device) && find_on_disk(program, kernel, path, &key);
    pthread_mutex_unlock(&program->registry->lock);
    return is_there;
}
