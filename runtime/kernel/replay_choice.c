/* SPDX-License-Identifier: Apache-2.0 */
/* Which way a device's lists are replayed: a trial of its command buffers, and the remembered choice. */
#include "base/log.h"
#include "base/memory.h"
#include "kernel/cache.h"
#include "kernel/command_list.h"

#define CHOICE_VERSION "replay 1"
#define TRIAL_ITEMS 4

struct rnl_replay {
    pthread_mutex_t lock;
    bool tried, is_read;
    rnl_command_buffers functions;
    rnl_replay_way chosen;
};

static void free_replay(struct rnl_replay *replay)
{
    if (!replay)
        return;
    pthread_mutex_destroy(&replay->lock);
    rnl_free(replay);
}

/* NULL when there is no memory for it: then the device has none of this. */
static struct rnl_replay *get(rnl_device *device)
{
    const rnl_error before = *rnl_last_error();
    pthread_mutex_lock(&device->lock);
    struct rnl_replay *replay = device->replay;
    if (!replay && rnl_alloc(1, sizeof *replay, &replay) == RNL_OK) {
        pthread_mutex_init(&replay->lock, NULL);
        device->replay = replay;
        device->free_replay = free_replay;
    }
    pthread_mutex_unlock(&device->lock);
    rnl_error_restore(&before);
    return replay;
}

/* ---- The trial ---- */

static const char trial_source[] = "__kernel void rnl_trial(__global int *x, int by)\n"
                                   "{\n"
                                   "    x[get_global_id(0)] = 3 * x[get_global_id(0)] + by;\n"
                                   "}\n";

typedef struct trial {
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_kernel *kernel;
    rnl_command_list *list;
    int result[TRIAL_ITEMS];
} trial;

static rnl_arg value_arg(const int *value)
{
    return (rnl_arg){.kind = RNL_ARG_VALUE, .size_bytes = sizeof *value, .value = value};
}

static rnl_status prepare_trial(trial *t, rnl_device *device, const rnl_command_buffers *functions)
{
    static const int by[] = {1, 2};
    const rnl_range range = {.dimensions = 1, .global = {TRIAL_ITEMS, 1, 1}, .local = {1, 1, 1}};
    const rnl_command_list_options options = {.struct_size = sizeof options, .way = RNL_REPLAY_NATIVE};
    TRY(rnl_stream_create(device, &t->stream));
    TRY(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof t->result, &t->buffer));
    TRY(rnl_kernel_create(device, trial_source, NULL, "rnl_trial", &t->kernel));
    TRY(rnl_command_list_create(device, &options, &t->list));
    t->list->functions = *functions;
    for (int i = 0; i < 2; i++) {
        const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = t->buffer}, value_arg(&by[i])};
        TRY(rnl_command_list_launch(t->list, t->kernel, &range, args, 2, NULL));
    }
    return rnl_stream_fill(t->stream, t->buffer, 0, "\0\0\0\0", 4, sizeof t->result);
}

/* Two replays of x -> 9 x + 5 without a wait between them, and one of x -> 9 x + 17: 50, then 467. */
static rnl_status run_trial(trial *t)
{
    static const int other = 5;
    const rnl_arg arg = value_arg(&other);
    for (int i = 0; i < 2; i++)
        TRY(rnl_command_list_replay_native(t->stream, t->list));
    TRY(rnl_command_list_set_arg(t->list, 0, 1, &arg));
    TRY(rnl_command_list_replay_native(t->stream, t->list));
    return rnl_stream_read(t->stream, t->result, t->buffer, 0, sizeof t->result);
}

static bool try_functions(rnl_device *device, const rnl_command_buffers *functions)
{
    trial t = {0};
    rnl_status status = prepare_trial(&t, device, functions);
    if (status == RNL_OK)
        status = run_trial(&t);
    bool right = status == RNL_OK && rnl_stream_synchronize(t.stream) == RNL_OK;
    if (!right && t.stream)
        clFinish(t.stream->queue); /* what was enqueued uses the buffer */
    for (int i = 0; i < TRIAL_ITEMS; i++)
        right = right && t.result[i] == 467;
    rnl_command_list_release(t.list);
    rnl_kernel_release(t.kernel);
    rnl_buffer_release(t.buffer);
    rnl_stream_release(t.stream);
    return right;
}

/* With the choice's lock held. */
static void find_functions(rnl_device *device, rnl_command_buffers *functions)
{
    rnl_command_buffers found;
    *functions = (rnl_command_buffers){0};
    rnl_command_buffers_find(device, &found);
    if (!found.has_all)
        return;
    bool works = try_functions(device, &found);
    if (!works && found.can_mutate) {
        found.can_mutate = false;
        works = try_functions(device, &found);
    }
    rnl_log(RNL_LOG_INFO, "command buffers of %s %s", device->info.name,
            !works             ? "fail their trial"
            : found.can_mutate ? "work, and can be changed"
                               : "work");
    if (works)
        *functions = found;
}

bool rnl_device_get_command_buffers(rnl_device *device, rnl_command_buffers *out_functions)
{
    struct rnl_replay *replay = get(device);
    *out_functions = (rnl_command_buffers){0};
    if (!replay)
        return false;
    const rnl_error before = *rnl_last_error();
    pthread_mutex_lock(&replay->lock);
    if (!replay->tried)
        find_functions(device, &replay->functions);
    replay->tried = true;
    *out_functions = replay->functions;
    pthread_mutex_unlock(&replay->lock);
    rnl_error_restore(&before);
    return out_functions->has_all;
}

bool rnl_device_has_native_replay(rnl_device *device)
{
    rnl_command_buffers functions;
    return rnl_device_get_command_buffers(device, &functions);
}

/* ---- The choice ---- */

/* One byte in a file of the cache; anything else counts as absent. */
static rnl_replay_way read_choice(rnl_device *device)
{
    rnl_hash key;
    void *data = NULL;
    size_t bytes = 0;
    rnl_replay_way way = RNL_REPLAY_ENQUEUE;
    if (rnl_program_cache_key(device, CHOICE_VERSION, "", &key) == RNL_OK && rnl_cache_read(key, &data, &bytes) &&
        bytes == 1 && *(const char *)data == 'n')
        way = RNL_REPLAY_NATIVE;
    rnl_free(data);
    return way;
}

rnl_replay_way rnl_device_get_replay(rnl_device *device)
{
    struct rnl_replay *replay = get(device);
    if (!replay)
        return RNL_REPLAY_ENQUEUE;
    const rnl_error before = *rnl_last_error();
    pthread_mutex_lock(&replay->lock);
    if (!replay->is_read)
        replay->chosen = read_choice(device);
    replay->is_read = true;
    const rnl_replay_way way = replay->chosen;
    pthread_mutex_unlock(&replay->lock);
    rnl_error_restore(&before);
    return way;
}

rnl_status rnl_device_set_replay(rnl_device *device, rnl_replay_way way)
{
    rnl_hash key;
    struct rnl_replay *replay = get(device);
    if (way != RNL_REPLAY_ENQUEUE && way != RNL_REPLAY_NATIVE)
        return FAIL(RNL_INVALID_ARGUMENT, "a device's lists were to be replayed in the unknown way %d", (int)way);
    if (!replay)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "out of memory: the way to replay lists is not kept");
    TRY(rnl_program_cache_key(device, CHOICE_VERSION, "", &key));
    pthread_mutex_lock(&replay->lock);
    replay->chosen = way;
    replay->is_read = true;
    pthread_mutex_unlock(&replay->lock);
    if (rnl_cache_is_on())
        rnl_cache_write(key, way == RNL_REPLAY_NATIVE ? "n" : "o", 1);
    return RNL_OK;
}
