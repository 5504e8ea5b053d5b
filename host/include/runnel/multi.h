/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One model on several devices, of any platforms.
 *
 *     rnl_multi_open_devices("gpu,cpu", NULL, devices, 8, &count);
 *     rnl_multi_open(graph, devices, count, NULL, &multi);
 *     rnl_multi_run(multi, inputs, 1, outputs, 1);          a whole request, on the device that will be done first
 *     rnl_multi_run_split(multi, inputs, 1, outputs, 1);    one batch, split in proportion to the devices' speed
 *
 * Every function here may be called from any thread at any time, but for rnl_multi_release. docs/multi.md has the rest.
 */
#ifndef RUNNEL_MULTI_H
#define RUNNEL_MULTI_H

#include <runnel/runnel.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_multi rnl_multi;

#define RNL_MULTI_MAX_DEVICES 64

/*
 * Opens devices that a list names: "gpu,cpu", "0:0,1:0", each as rnl_device_open takes it, or "all": every device but
 * emulated ones, where there are others. The devices are the caller's to release. On failure none is open. `options`
 * (may be NULL) are for each of them.
 */
RNL_API RNL_NODISCARD rnl_status rnl_multi_open_devices(const char *list, const rnl_device_options *options,
                                                        rnl_device **out_devices, size_t capacity, size_t *out_count);

typedef enum rnl_multi_policy {
    RNL_MULTI_LEAST_LOADED, /* a request goes where it will be done first, by measured speed */
    RNL_MULTI_ROUND_ROBIN   /* to one device after the other */
} rnl_multi_policy;

typedef struct rnl_multi_options {
    size_t struct_size;
    rnl_multi_policy policy;
    /* Requests at a time on one device, each with a session; 0: 1 where memory is the host's, else 3. */
    uint32_t in_flight;
    const rnl_model_options *model; /* for each device's model; may be NULL */
    /* Of a batch: one a device, in any unit, instead of measuring and comparing. NULL: they are measured. */
    const double *shares;
    rnl_trace *trace; /* as rnl_multi_trace, from the first request on; opening is recorded, too. May be NULL */
} rnl_multi_options;
#define RNL_MULTI_OPTIONS_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(rnl_multi_options), RNL_MULTI_LEAST_LOADED, 0, NULL, NULL, NULL                                         \
    }

/* Opens the graph on each device; the weights are there once. Retains what it is given. `options` may be NULL. */
RNL_API RNL_NODISCARD rnl_status rnl_multi_open(rnl_graph *graph, rnl_device *const *devices, size_t device_count,
                                                const rnl_multi_options *options, rnl_multi **out_multi);
/* Cancels and waits for what was submitted. No other call may be under way or follow. NULL is legal. */
RNL_API void rnl_multi_release(rnl_multi *multi);

/*
 * A whole request on one device; blocks. Tensors are in host memory. As an output: leave `data` NULL and get memory
 * that is the caller's, to be given back with rnl_output_release; or give memory and its `size_bytes`. The first call
 * runs the request on every device, to plan there and to measure.
 * What a device fails to do is done once more on another, unless the request itself is at fault. A device that is lost
 * is left out from then on, with a warning in the log. On failure `outputs` are as they were, and the next call works.
 */
RNL_API RNL_NODISCARD rnl_status rnl_multi_run(rnl_multi *multi, const rnl_tensor *inputs, size_t input_count,
                                               rnl_tensor *outputs, size_t output_count);
/*
 * The same without blocking, as many as there is memory for. `complete` is called once, from a thread of the multi; it
 * may submit, and must not release the multi or wait for other requests. The tensors must stay valid until then.
 * *out_id (may be NULL) is for rnl_multi_cancel, and is there before the request starts.
 */
RNL_API RNL_NODISCARD rnl_status rnl_multi_submit(rnl_multi *multi, const rnl_tensor *inputs, size_t input_count,
                                                  rnl_tensor *outputs, size_t output_count, rnl_complete_fn complete,
                                                  void *user, uint64_t *out_id);

/*
 * RNL_OK where batches can be split: the first dimension of every input and output is free. Else, or where a first
 * split has shown that the rows of a batch depend on each other, RNL_FAILED_PRECONDITION and a sentence that says why.
 */
RNL_API RNL_NODISCARD rnl_status rnl_multi_check_split(rnl_multi *multi);
/*
 * One batch, whose rows are shared out over the devices so that all end at the same time; blocks. Tensors as for
 * rnl_multi_run; what comes of each row stands where a single session would write it. The first call for a shape
 * measures the devices, alone and together, and compares a split's results with a single device's; shares follow the
 * measured times from then on. A device that does not make the batch faster gets no rows. What a device fails to do is
 * done once more on another; else the call fails, when all others have ended.
 */
RNL_API RNL_NODISCARD rnl_status rnl_multi_run_split(rnl_multi *multi, const rnl_tensor *inputs, size_t input_count,
                                                     rnl_tensor *outputs, size_t output_count);

/*
 * From the next request on, what is done for requests and batches is recorded in the trace (runnel/trace.h): a track
 * for each session of each device ("0:0 session 1") with its commands, and on the threads of the host "request 1 on
 * 0:0" and "batch of 8 rows". NULL: no longer. Where a track cannot be made, requests go on without. The multi may hold
 * a trace until it is released.
 */
RNL_API void rnl_multi_trace(rnl_multi *multi, rnl_trace *trace);

/* Stops a submitted request, or (0) all that has begun, of whichever kind; what is stopped ends with RNL_CANCELLED. */
RNL_API void rnl_multi_cancel(rnl_multi *multi, uint64_t id);

typedef struct rnl_multi_device {
    rnl_device *device;    /* borrowed */
    bool is_lost;          /* left out from now on */
    size_t share;          /* rows of the last batch that was split */
    uint64_t requests;     /* done here, parts of batches and measurements among them */
    uint64_t failures;     /* requests that failed here */
    double requests_per_s; /* whole requests like the latest, as measured; 0: not yet */
    double rows_per_s;     /* of the last batch that was split here; 0: there was none */
    rnl_model_stats model;
} rnl_multi_device;
/* Writes at most `capacity` entries, in the order of opening, and returns how many there are. */
RNL_API size_t rnl_multi_get_devices(rnl_multi *multi, rnl_multi_device *out_devices, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
