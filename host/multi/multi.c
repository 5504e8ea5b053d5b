/* SPDX-License-Identifier: Apache-2.0 */
/* Opening several devices, and a model on them. */
#include "multi/multi.h"

#include "base/memory.h"
#include "base/text.h"
#include "graph/graph.h"
#include <stdio.h>
#include <string.h>

/* ---- Devices from a list -------------------------------------------------------------------------------------- */

static rnl_status add_device(const char *spec, const rnl_device_options *options, rnl_device **out_devices,
                             size_t capacity, size_t *count)
{
    if (*count == capacity)
        return FAIL(RNL_INVALID_ARGUMENT, "the list names more than %zu devices", capacity);
    TRY(rnl_device_open(spec, options, &out_devices[*count]));
    ++*count;
    return RNL_OK;
}

static rnl_status add_all(const rnl_device_options *options, rnl_device **out_devices, size_t capacity, size_t *count)
{
    rnl_device_info infos[RNL_MULTI_MAX_DEVICES];
    size_t found = 0, real = 0;
    char spec[32];
    TRY(rnl_device_list(infos, RNL_MULTI_MAX_DEVICES, &found));
    found = found < RNL_MULTI_MAX_DEVICES ? found : RNL_MULTI_MAX_DEVICES;
    for (size_t i = 0; i < found; i++)
        real += !infos[i].emulated;
    for (size_t i = 0; i < found; i++) {
        if (infos[i].emulated && real > 0)
            continue;
        snprintf(spec, sizeof spec, "%u:%u", (unsigned)infos[i].platform_index, (unsigned)infos[i].device_index);
        TRY(add_device(spec, options, out_devices, capacity, count));
    }
    return RNL_OK;
}

static rnl_status add_named(const char *list, const rnl_device_options *options, rnl_device **out_devices,
                            size_t capacity, size_t *count)
{
    for (const char *at = list;; at++) {
        char spec[256];
        const size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof spec)
            return FAIL(RNL_INVALID_ARGUMENT, "'%s' names %s between its commas", list,
                        length ? "something too long" : "nothing");
        memcpy(spec, at, length);
        spec[length] = '\0';
        TRY(add_device(spec, options, out_devices, capacity, count));
        at += length;
        if (!*at)
            return RNL_OK;
    }
}

rnl_status rnl_multi_open_devices(const char *list, const rnl_device_options *options, rnl_device **out_devices,
                                  size_t capacity, size_t *out_count)
{
    size_t count = 0;
    if (!list || !out_devices || !out_count)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_multi_open_devices: %s is NULL",
                    !list          ? "list"
                    : !out_devices ? "out_devices"
                                   : "out_count");
    *out_count = 0;
    const rnl_status status = strcmp(list, "all") == 0 ? add_all(options, out_devices, capacity, &count)
                                                       : add_named(list, options, out_devices, capacity, &count);
    if (status == RNL_OK) {
        *out_count = count;
        return RNL_OK;
    }
    const rnl_error error = *rnl_last_error();
    while (count > 0)
        rnl_device_release(out_devices[--count]);
    return rnl_error_restore(&error);
}

/* ---- A model on them ------------------------------------------------------------------------------------------ */

/* Why batches cannot be split, as the file has it. */
static void find_batch(rnl_multi *multi)
{
    const rnl_graph *graph = multi->graph;
    for (size_t i = 0; i < graph->input_count + graph->output_count; i++) {
        const bool is_input = i < graph->input_count;
        const rnl_value_info *info = is_input ? &graph->inputs[i] : &graph->outputs[i - graph->input_count];
        if (info->rank != SIZE_MAX && info->rank > 0 && info->shape[0] < 0)
            continue;
        snprintf(multi->no_split, sizeof multi->no_split,
                 "a batch cannot be split: the first dimension of %s '%.80s' is %s", is_input ? "input" : "output",
                 info->name,
                 info->rank == SIZE_MAX ? "not known"
                 : info->rank == 0      ? "missing"
                                        : "not free in the model's file");
        return;
    }
    if (graph->input_count == 0 || graph->output_count == 0)
        snprintf(multi->no_split, sizeof multi->no_split, "a batch cannot be split: the model has no %s",
                 graph->input_count ? "outputs" : "inputs");
}

static rnl_status copy_options(const rnl_multi_options *given, rnl_multi_options *out_options)
{
    *out_options = (rnl_multi_options)RNL_MULTI_OPTIONS_INIT;
    if (!given)
        return RNL_OK;
    if (given->struct_size < sizeof given->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "multi options were not initialised with RNL_MULTI_OPTIONS_INIT");
    memcpy(out_options, given, given->struct_size < sizeof *out_options ? given->struct_size : sizeof *out_options);
    if (out_options->in_flight > 64)
        return FAIL(RNL_INVALID_ARGUMENT, "in_flight is at most 64, not %u", (unsigned)out_options->in_flight);
    return RNL_OK;
}

static rnl_status check_devices(rnl_graph *graph, rnl_device *const *devices, size_t count)
{
    if (!graph || !devices || count == 0 || count > RNL_MULTI_MAX_DEVICES)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_multi_open takes a graph and 1 to %d devices", RNL_MULTI_MAX_DEVICES);
    for (size_t i = 0; i < count; i++) {
        if (!devices[i])
            return FAIL(RNL_INVALID_ARGUMENT, "device %zu is NULL", i);
        for (size_t j = 0; j < i; j++)
            if (devices[i] == devices[j])
                return FAIL(RNL_INVALID_ARGUMENT, "devices %zu and %zu are the same object", j, i);
    }
    return RNL_OK;
}

static rnl_status copy_shares(rnl_multi *multi, const double *shares, size_t count)
{
    double sum = 0;
    if (!shares)
        return RNL_OK;
    TRY(rnl_alloc(count, sizeof *shares, &multi->fixed_shares));
    for (size_t i = 0; i < count; i++) {
        if (!(shares[i] >= 0 && shares[i] <= 1e9))
            return FAIL(RNL_INVALID_ARGUMENT, "a share is a number from 0 to 1e9, not %g", shares[i]);
        multi->fixed_shares[i] = shares[i];
        sum += shares[i];
    }
    return sum > 0 ? RNL_OK : FAIL(RNL_INVALID_ARGUMENT, "all shares are 0");
}

static rnl_status make_locks(rnl_multi *multi)
{
    multi->has_lock = pthread_mutex_init(&multi->lock, NULL) == 0;
    multi->has_measuring = multi->has_lock && pthread_mutex_init(&multi->measuring, NULL) == 0;
    return multi->has_measuring ? RNL_OK : FAIL(RNL_RESOURCE_EXHAUSTED, "no mutex for several devices");
}

/* Placing weights is recorded where requests will be. */
static rnl_status open_members(rnl_multi *multi, rnl_device *const *devices, size_t count,
                               const rnl_multi_options *options)
{
    rnl_trace *before = rnl_trace_current();
    rnl_status status = RNL_OK;
    if (options->trace)
        rnl_trace_use(options->trace);
    for (size_t i = 0; i < count && status == RNL_OK; i++) {
        multi->member_count++;
        status = rnl_member_open(multi, devices[i], options, &multi->members[i]);
    }
    rnl_trace_use(before);
    return status;
}

rnl_status rnl_multi_open(rnl_graph *graph, rnl_device *const *devices, size_t device_count,
                          const rnl_multi_options *given, rnl_multi **out_multi)
{
    rnl_multi *multi = NULL;
    rnl_multi_options options;
    rnl_status status = RNL_OK;
    if (!out_multi)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_multi_open: out_multi is NULL");
    *out_multi = NULL;
    TRY(copy_options(given, &options));
    TRY(check_devices(graph, devices, device_count));
    TRY(rnl_alloc(1, sizeof *multi, &multi));
    multi->graph = rnl_graph_retain(graph);
    multi->policy = options.policy;
    multi->trace = rnl_trace_retain(options.trace);
    GOTO(make_locks(multi));
    GOTO(rnl_alloc(device_count, sizeof *multi->members, &multi->members));
    GOTO(copy_shares(multi, options.shares, device_count));
    find_batch(multi);
    GOTO(open_members(multi, devices, device_count, &options));
    *out_multi = multi;
    return RNL_OK;
done:
    rnl_multi_release(multi);
    return status;
}

void rnl_multi_release(rnl_multi *multi)
{
    if (!multi)
        return;
    if (multi->has_measuring)
        rnl_multi_cancel(multi, 0);
    for (size_t i = 0; i < multi->member_count; i++)
        rnl_member_stop(&multi->members[i]);
    for (size_t i = 0; i < multi->member_count; i++)
        rnl_member_close(&multi->members[i]);
    rnl_splits_free(multi);
    rnl_trace_release(multi->trace);
    if (multi->has_lock)
        pthread_mutex_destroy(&multi->lock);
    if (multi->has_measuring)
        pthread_mutex_destroy(&multi->measuring);
    rnl_free(multi->fixed_shares);
    rnl_free(multi->members);
    rnl_graph_release(multi->graph);
    rnl_free(multi);
}

rnl_status rnl_multi_check_split(rnl_multi *multi)
{
    char reason[sizeof multi->no_split];
    if (!multi)
        return FAIL(RNL_INVALID_ARGUMENT, "multi is NULL");
    pthread_mutex_lock(&multi->lock);
    memcpy(reason, multi->no_split, sizeof reason);
    pthread_mutex_unlock(&multi->lock);
    return *reason ? FAIL(RNL_FAILED_PRECONDITION, "%s", reason) : RNL_OK;
}

void rnl_multi_trace(rnl_multi *multi, rnl_trace *trace)
{
    pthread_mutex_lock(&multi->lock);
    rnl_trace *before = multi->trace;
    multi->trace = rnl_trace_retain(trace);
    multi->trace_turn = (rnl_trace_turn){0};
    pthread_mutex_unlock(&multi->lock);
    rnl_trace_release(before);
}

/* That of the member where recording costs most, among those that know. */
static uint32_t measured_interval(const rnl_multi *multi)
{
    uint32_t most = 0;
    for (size_t i = 0; i < multi->member_count; i++) {
        const uint32_t runs = rnl_trace_cost_interval(&multi->members[i].trace_cost);
        most = runs > most ? runs : most;
    }
    return most;
}

/* Automatically all measurements are: they are few, and take no turns from the caller's first requests. */
rnl_trace *rnl_multi_next_trace(rnl_multi *multi, bool measures)
{
    if (!multi->trace)
        return NULL;
    if (measures && rnl_trace_is_automatic(multi->trace)) {
        rnl_trace_count_extra(multi->trace);
        return multi->trace;
    }
    return rnl_trace_takes(multi->trace, &multi->trace_turn, measured_interval(multi)) ? multi->trace : NULL;
}

static void describe(rnl_member *member, rnl_multi_device *out_device)
{
    const double request_ns = member->latest_work * member->work_ns;
    *out_device = (rnl_multi_device){.device = member->device,
                                     .is_lost = member->is_lost,
                                     .share = member->share,
                                     .requests = member->requests,
                                     .failures = member->failures,
                                     .requests_per_s = request_ns > 0 ? 1e9 / request_ns : 0,
                                     .rows_per_s = member->row_ns > 0 ? 1e9 / member->row_ns : 0};
    rnl_model_get_stats(member->model, &out_device->model);
}

size_t rnl_multi_get_devices(rnl_multi *multi, rnl_multi_device *out_devices, size_t capacity)
{
    pthread_mutex_lock(&multi->lock);
    for (size_t i = 0; i < multi->member_count && i < capacity; i++)
        describe(&multi->members[i], &out_devices[i]);
    pthread_mutex_unlock(&multi->lock);
    return multi->member_count;
}
