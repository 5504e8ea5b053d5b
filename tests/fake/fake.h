/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The insides of the fake OpenCL driver. One lock guards all objects: an entry point takes it with ENTER and gives it
 * up with fake_leave or fake_made. Only commands run without it, each queue's in a thread of its own.
 */
#ifndef RUNNEL_TESTS_FAKE_H
#define RUNNEL_TESTS_FAKE_H

#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include "fake/control.h"
#include <CL/cl_icd.h>
#include <pthread.h>
#include <stddef.h>

extern const cl_icd_dispatch fake_dispatch;

/* ---- Objects (object.c) ---- */

typedef enum fake_kind {
    FAKE_NOTHING,
    FAKE_PLATFORM,
    FAKE_DEVICE,
    FAKE_CONTEXT,
    FAKE_QUEUE,
    FAKE_MEMORY,
    FAKE_PROGRAM,
    FAKE_KERNEL,
    FAKE_EVENT,
    FAKE_KINDS
} fake_kind;

typedef struct fake_object {
    const cl_icd_dispatch *dispatch; /* first: the loader follows it */
    fake_kind kind;
    cl_uint references; /* the application's: the handle is good while there are some */
    cl_uint holds;      /* the driver's own */
    struct fake_object *next, *previous;
} fake_object;

/* A new object with one reference; of zeros behind its head. NULL: no memory. */
void *fake_create(fake_kind kind, size_t bytes);
/* CL_SUCCESS or CL_INVALID_… for a handle that is none, or has been released. */
cl_int fake_check(const void *handle, fake_kind kind);
cl_int fake_retain(void *handle, fake_kind kind);
/* Aborts when the application releases more than it has. */
cl_int fake_release(void *handle, fake_kind kind);
void *fake_hold(void *object);
void fake_drop(void *object); /* NULL is legal */
size_t fake_alive(bool list);
/* Queues that have something to do, and those that nobody holds any more but their own threads. */
size_t fake_busy_queues(void);

/* ---- Entry points (control.c) ---- */

extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed; /* an event has ended, or a queue has something to do */

/* Takes the lock and counts the call; the code that it is to fail with, else CL_SUCCESS. */
cl_int fake_enter(const char *call);
/* True when what fails now fails from then on. */
bool fake_fails_for_good(void);
cl_int fake_leave(cl_int code);
/* For calls that make an object: `code` to *out_code, and the object, or NULL with a failure. */
void *fake_made(void *object, cl_int code, cl_int *out_code);

#define REQUIRE(condition, code)                                                                                       \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return fake_leave(code);                                                                                   \
    } while (0)
/* Goes on when the call `expression` succeeds. */
#define ATTEMPT(expression)                                                                                            \
    do {                                                                                                               \
        cl_int attempt_ = (expression);                                                                                \
        if (attempt_ != CL_SUCCESS)                                                                                    \
            return fake_leave(attempt_);                                                                               \
    } while (0)
#define ENTER(call) ATTEMPT(fake_enter(call))
#define ATTEMPT_NEW(expression, out_code)                                                                              \
    do {                                                                                                               \
        cl_int attempt_ = (expression);                                                                                \
        if (attempt_ != CL_SUCCESS)                                                                                    \
            return fake_made(NULL, attempt_, (out_code));                                                              \
    } while (0)
#define REQUIRE_NEW(condition, code, out_code) ATTEMPT_NEW((condition) ? CL_SUCCESS : (code), out_code)

/* Answers an info query: CL_INVALID_VALUE when `size` is too small. */
cl_int fake_answer(const void *value, size_t bytes, size_t size, void *out, size_t *out_bytes);
#define ANSWER(type, ...) fake_answer(&(type){__VA_ARGS__}, sizeof(type), size, out, out_bytes)

/* What the plan makes of this command (fail_command), buffer (lie) or use of a device (lose_device). */
cl_int fake_command_fault(void);
bool fake_is_lie(void);
cl_int fake_use_device(cl_device_id device);
/* Counts a failure that was asked for; returns `code`. */
cl_int fake_failed(const char *call, cl_int code);
unsigned fake_delay_us(void);
cl_uint fake_missing_units(void); /* of a new part */
size_t fake_memory_limit(void);   /* 0: none was set */
void fake_count_overlap(void);

/* ---- Platforms and devices (platform.c) ---- */

struct _cl_platform_id {
    fake_object object;
    const char *name;
};

struct _cl_device_id {
    fake_object object;
    cl_platform_id platform;
    cl_device_id parent; /* of a part */
    unsigned index;
    cl_int lost; /* the code, of the whole device */
    const char *name, *vendor, *extensions;
    cl_device_type type;
    cl_uint vendor_id, units, align_bits;
    size_t group;
    cl_ulong memory, largest, local;
    cl_bool unified;
};

extern struct _cl_device_id fake_devices[FAKE_DEVICES];
cl_device_id fake_whole(cl_device_id device);

/* ---- Contexts and queues (queue.c) ---- */

struct _cl_context {
    fake_object object;
    cl_uint device_count;
    cl_device_id devices[FAKE_DEVICES];
};

struct fake_command;

struct _cl_command_queue {
    fake_object object;
    cl_context context;
    cl_device_id device;
    cl_command_queue_properties properties;
    struct fake_command *first, **last;
    size_t enqueued, flushed, ended; /* commands: those that are not flushed wait */
    cl_int failure;                  /* of a command; those behind it end with it too */
    bool closing;
};

bool fake_has_device(cl_context context, cl_device_id device);
void fake_flush(cl_command_queue queue);

/* A command: what a queue's thread does without the lock. */
typedef struct fake_command {
    struct fake_command *next;
    cl_event event; /* held, as all below */
    cl_uint wait_count;
    cl_event *waits;
    size_t held_count;
    fake_object **held;
    void (*run)(struct fake_command *command); /* NULL: a marker */
    char *to;
    const char *from;
    size_t bytes, pattern_bytes;
    unsigned char pattern[128];
    size_t items; /* of a kernel */
} fake_command;

/* The checks that all commands share. Counts as a use of the device. */
cl_int fake_command_check(const char *call, cl_command_queue queue, cl_uint wait_count, const cl_event *waits);
/* Takes the command; NULL: a marker. Blocks without the lock, when asked, until it has ended. */
cl_int fake_command_enqueue(cl_command_queue queue, const fake_command *command, cl_command_type type,
                            cl_uint wait_count, const cl_event *waits, cl_bool blocking, cl_event *out_event);

/* ---- Events (event.c) ---- */

typedef struct fake_callback {
    struct fake_callback *next;
    void(CL_CALLBACK *function)(cl_event event, cl_int state, void *user);
    void *user;
} fake_callback;

struct _cl_event {
    fake_object object;
    cl_context context;
    cl_command_queue queue; /* NULL: a user event */
    cl_command_type type;
    cl_int state;
    cl_ulong queued, submitted, started, ended;
    fake_callback *callbacks;
};

cl_ulong fake_now(void);
/* Ends it, and calls back without the lock. */
void fake_event_end(cl_event event, cl_int state);
/* Waits until it has ended; returns its state. */
cl_int fake_event_wait(cl_event event);

/* ---- Buffers (memory.c) ---- */

typedef struct fake_mapping {
    struct fake_mapping *next;
    char *at;
    size_t offset, bytes; /* in the whole buffer */
    cl_map_flags flags;
} fake_mapping;

struct _cl_mem {
    fake_object object;
    cl_context context;
    cl_mem whole; /* of a sub-buffer */
    size_t origin, bytes;
    cl_mem_flags flags;
    char *data; /* the device's side */
    char *host; /* what the host maps: the same where host and device share memory */
    bool lies, owns_data, owns_host;
    cl_uint map_count;
    fake_mapping *mappings;
    void(CL_CALLBACK *destructor)(cl_mem memory, void *data); /* one at most */
    void *destructor_data;
};

/* A buffer for a command of the queue, and the range in it. */
cl_int fake_use_memory(const char *call, cl_command_queue queue, cl_mem memory, size_t offset, size_t bytes);
/* The host's side; made when it is first asked for. NULL: no memory. */
char *fake_host_side(cl_mem memory);
size_t fake_memory_bytes(void);

/* ---- Programs and kernels (source.c, program.c, kernel.c) ---- */

typedef enum fake_arg_kind { FAKE_ARG_VALUE, FAKE_ARG_MEMORY, FAKE_ARG_LOCAL } fake_arg_kind;

typedef struct fake_parameter {
    fake_arg_kind kind;
    cl_kernel_arg_address_qualifier address;
    size_t bytes; /* of a value; 0: not known */
    char *type, *name;
} fake_parameter;

typedef struct fake_function {
    struct fake_function *next;
    char *name;
    size_t group[3]; /* that it requires; 0: none */
    cl_uint parameter_count;
    fake_parameter *parameters;
} fake_function;

/* What a source with its options is found to hold. Kept for the life of the process. */
typedef struct fake_unit {
    struct fake_unit *next;
    char *source, *options, *log;
    cl_int code; /* CL_SUCCESS, CL_BUILD_PROGRAM_FAILURE, CL_INVALID_BUILD_OPTIONS */
    fake_function *functions;
} fake_unit;

const fake_unit *fake_compile(const char *source, const char *options);
/* Finds the kernels in preprocessed text. */
fake_function *fake_find_functions(char *text);

struct _cl_program {
    fake_object object;
    cl_context context;
    char *source, *options; /* options: of a binary, or once it is built */
    bool from_binary;
    const fake_unit *unit; /* once it is built */
};

typedef struct fake_argument {
    bool is_set;
    size_t bytes;
    cl_mem memory;
    unsigned char value[128];
} fake_argument;

struct _cl_kernel {
    fake_object object;
    cl_program program; /* held */
    const fake_function *function;
    fake_argument *arguments;
};

void fake_destroy_context(void *object);
void fake_destroy_queue(void *object);
void fake_destroy_memory(void *object);
void fake_destroy_program(void *object);
void fake_destroy_kernel(void *object);
void fake_destroy_event(void *object);
void fake_destroy_device(void *object);

#endif
