/* SPDX-License-Identifier: Apache-2.0 */
/* Memory from the pool: a budget, reuse in a stream's order, labels, and what is left over. */
#include <runnel/pool.h>
#include <stdio.h>

static int fail(const char *doing)
{
    fprintf(stderr, "%s: %s\n", doing, rnl_last_error()->message);
    return 1;
}

static void print_log(void *user, rnl_log_level level, const char *line)
{
    (void)user;
    (void)level;
    printf("log: %s\n", line);
}

/* Each step has a scratch buffer of its own, and all of them the same memory: nobody waits. */
static rnl_status run_steps(rnl_device *device, rnl_stream *stream, int steps)
{
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    rnl_status status = RNL_OK;
    options.label = "scratch";
    options.stream = stream;
    for (int i = 0; status == RNL_OK && i < steps; i++) {
        rnl_buffer *scratch;
        status = rnl_buffer_create_with(device, RNL_MEMORY_DEVICE, 64 << 10, &options, &scratch);
        if (status == RNL_OK)
            status = rnl_stream_fill(stream, scratch, 0, &i, sizeof i, 64 << 10);
        rnl_status released = rnl_buffer_release_after(scratch, stream);
        status = status == RNL_OK ? released : status;
    }
    return status == RNL_OK ? rnl_stream_synchronize(stream) : status;
}

static void print_stats(const rnl_device *device)
{
    rnl_pool_stats stats;
    rnl_device_pool_stats(device, RNL_MEMORY_DEVICE, &stats);
    printf("%llu allocations, %llu found memory ready; at most %zu KiB in use, fragmentation %.0f%%\n",
           (unsigned long long)stats.allocations, (unsigned long long)stats.hits, stats.peak_bytes >> 10,
           100 * stats.fragmentation);
}

int main(void)
{
    rnl_device_options limits = RNL_DEVICE_OPTIONS_INIT;
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    rnl_device *device;
    rnl_stream *stream = NULL;
    rnl_buffer *forgotten = NULL, *too_large = NULL;
    limits.memory_limit_bytes = 64 << 20; /* or memory_fraction: a part of the device's memory */
    if (rnl_device_open(NULL, &limits, &device) != RNL_OK)
        return fail("opening a device");
    if (rnl_stream_create(device, &stream) != RNL_OK || run_steps(device, stream, 1000) != RNL_OK)
        return fail("running");
    print_stats(device);

    if (rnl_buffer_create(device, RNL_MEMORY_DEVICE, 65 << 20, &too_large) == RNL_OK)
        return 1;
    printf("refused: %s\n", rnl_last_error()->message);

    options.label = "forgotten";
    if (rnl_buffer_create_with(device, RNL_MEMORY_DEVICE, 1000, &options, &forgotten) != RNL_OK)
        return fail("allocating");
    rnl_log_set(print_log, NULL, RNL_LOG_WARNING);
    printf("%llu not released\n", (unsigned long long)rnl_device_pool_report(device));

    rnl_buffer_release(forgotten);
    rnl_stream_release(stream);
    rnl_device_release(device);
    return 0;
}
