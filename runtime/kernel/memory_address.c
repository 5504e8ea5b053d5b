/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/memory_address.h"

#include "base/memory.h"
#include "device/cl_status.h"
#include <pthread.h>
#include <stddef.h>
#include <string.h>

/* Open addressing; of the process, since the driver may destroy memory after all else of ours has gone. */
typedef struct place {
    cl_mem memory; /* NULL: none */
    void *address;
} place;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static place *places;
static size_t count, capacity; /* a power of two */

static size_t slot_of(cl_mem memory)
{
    const uint64_t bits = (uint64_t)(uintptr_t)memory * 0x9e3779b97f4a7c15u;
    return (size_t)(bits >> 20) & (capacity - 1);
}

static place *find(cl_mem memory)
{
    if (capacity == 0)
        return NULL;
    size_t i = slot_of(memory);
    while (places[i].memory && places[i].memory != memory)
        i = (i + 1) & (capacity - 1);
    return &places[i];
}

static bool grow(void)
{
    place *const before = places;
    const size_t old = capacity;
    place *made = NULL;
    if (rnl_alloc(old ? 2 * old : 64, sizeof *made, &made))
        return false;
    places = made;
    capacity = old ? 2 * old : 64;
    for (size_t i = 0; i < old; i++)
        if (before[i].memory)
            *find(before[i].memory) = before[i];
    rnl_free(before);
    return true;
}

/* What follows in the row moves up, where it may. */
static void remove_at(size_t hole)
{
    for (size_t i = (hole + 1) & (capacity - 1); places[i].memory; i = (i + 1) & (capacity - 1)) {
        const size_t wish = slot_of(places[i].memory);
        if (((i - wish) & (capacity - 1)) >= ((i - hole) & (capacity - 1))) {
            places[hole] = places[i];
            hole = i;
        }
    }
    places[hole].memory = NULL;
    if (--count == 0) {
        rnl_free(places);
        places = NULL;
        capacity = 0;
    }
}

static void CL_CALLBACK forget(cl_mem memory, void *data)
{
    (void)data;
    pthread_mutex_lock(&lock);
    const place *it = find(memory);
    if (it && it->memory)
        remove_at((size_t)(it - places));
    pthread_mutex_unlock(&lock);
}

static void *look_up(cl_mem memory)
{
    pthread_mutex_lock(&lock);
    const place *it = find(memory);
    void *address = it && it->memory ? it->address : NULL;
    pthread_mutex_unlock(&lock);
    return address;
}

static bool remember(cl_mem memory, void *address)
{
    pthread_mutex_lock(&lock);
    const bool fits = 2 * count < capacity || grow();
    place *it = fits ? find(memory) : NULL;
    if (it && !it->memory) {
        *it = (place){memory, address};
        count++;
    }
    pthread_mutex_unlock(&lock);
    if (fits && CL(clSetMemObjectDestructorCallback(memory, forget, NULL)) == RNL_OK)
        return true;
    forget(memory, NULL);
    return false;
}

typedef struct question {
    void **answer;
    void *address; /* the driver writes it */
} question;

static void CL_CALLBACK answer(void *data)
{
    const question *it = data;
    *it->answer = it->address;
}

/* One memory object at a time: pocl (to 5.0) sorts them, and then writes their addresses to each other's places. */
static void *ask_driver(cl_command_queue queue, cl_mem memory)
{
    void *address = NULL;
    question it = {&address, NULL};
    const void *where = &it.address;
    if (CL(clEnqueueNativeKernel(queue, answer, &it, sizeof it, 1, &memory, &where, 0, NULL, NULL)) != RNL_OK)
        return NULL;
    clFinish(queue);
    return address;
}

static void *find_address(cl_command_queue queue, cl_mem memory)
{
    cl_mem whole = NULL;
    size_t offset = 0;
    if (CL(clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(cl_mem), &whole, NULL)) != RNL_OK ||
        CL(clGetMemObjectInfo(memory, CL_MEM_OFFSET, sizeof offset, &offset, NULL)) != RNL_OK)
        return NULL;
    if (!whole)
        return ask_driver(queue, memory);
    char *address = rnl_memory_address(queue, whole);
    return address ? address + offset : NULL;
}

void *rnl_memory_address(cl_command_queue queue, cl_mem memory)
{
    void *address = look_up(memory);
    if (address)
        return address;
    const rnl_error before = *rnl_last_error();
    /* A caller's memory, which may come as a new object at each run, is used in place. */
    if (CL(clGetMemObjectInfo(memory, CL_MEM_HOST_PTR, sizeof address, &address, NULL)) == RNL_OK && address)
        return address;
    address = find_address(queue, memory);
    if (address && !remember(memory, address))
        address = NULL;
    (void)rnl_error_restore(&before);
    return address;
}
