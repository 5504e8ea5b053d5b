/* SPDX-License-Identifier: Apache-2.0 */
/* A device's insides, for the layers of the runtime. */
#ifndef RUNNEL_DEVICE_DEVICE_H
#define RUNNEL_DEVICE_DEVICE_H

#include "device/cl_status.h"
#include <pthread.h>
#include <stdatomic.h>

/* rnl_device_info.vendor_id: of a PCI vendor. */
#define RNL_VENDOR_AMD 0x1002u
#define RNL_VENDOR_INTEL 0x8086u
#define RNL_VENDOR_NVIDIA 0x10deu

struct rnl_pool;
struct rnl_gate;
struct rnl_guards;
struct rnl_program_registry;
struct rnl_tuning;
struct rnl_replay;
struct rnl_team;
struct rnl_part;
struct rnl_claim;
struct rnl_waiter;

/* What rnl_copy_stats tells. */
typedef struct rnl_traffic {
    atomic_ullong to_device, to_host, on_device, in_place, staged;
    atomic_ullong pinned, pinned_peak, pinned_refused;
} rnl_traffic;

#define RNL_COPY_CLASSES 6 /* sizes that differ by a factor of four */

struct rnl_device {
    atomic_uint references;
    rnl_device_info info;
    cl_platform_id platform;
    cl_device_id id;         /* a sub-device when options asked for one */
    cl_device_id parent_id;  /* NULL unless id is a sub-device */
    struct rnl_part *part;   /* that one's, where it is not the caller's */
    struct rnl_claim *claim; /* on the processors of a process that is held to them, see open_alone.c */
    cl_context context;
    struct rnl_pool *pool;
    /* Owned by kernel/program.c, which sets the hook that frees it: this layer knows nothing of programs. */
    struct rnl_program_registry *programs;
    void (*free_programs)(struct rnl_program_registry *programs);
    struct rnl_tuning *tuning; /* ops/tuning.c's, likewise */
    void (*free_tuning)(struct rnl_tuning *tuning);
    struct rnl_replay *replay; /* kernel/replay_choice.c's, likewise */
    void (*free_replay)(struct rnl_replay *replay);
    struct rnl_team *team; /* kernel/team.c's, likewise, once team_is_known */
    void (*free_team)(struct rnl_team *team);
    atomic_bool team_is_known;
    atomic_ullong team_launches, team_calls;
    /* Set by a layer above that uses a library which keeps objects of the context. */
    void (*before_release)(rnl_device *device);
    struct rnl_waiter *waiter; /* NULL until it is needed */
    pthread_mutex_t lock;      /* guards the creation of `programs`, `tuning`, `waiter`, and idle_queues */
    atomic_ullong programs_compiled, programs_loaded, kernels_launched;
    atomic_ullong programs_compiled_beside; /* by other processes, see kernel/compilers.h */
    /* ops/instruction.h's */
    atomic_uint instructions;
    atomic_uint bf16_gain, fip_gain, float_fip_gain; /* see ops/instruction_rate.h */
    bool maps_in_place;               /* a mapped buffer's host memory is the memory that commands use: see buffer.h */
    bool binaries_compile;            /* asking for a program's binary takes as long as building it */
    atomic_bool needs_header;         /* where binaries_compile: our own declarations do not do, see kernel/compile.c */
    bool asks_for_rounding;           /* of divisions and roots in our kernels: a GPU may be off by 3 units otherwise */
    bool runs_in_caller;              /* commands run in the thread that enqueues them, which user events lock up */
    atomic_bool is_shared;            /* others may run kernels in its context: see interop.c */
    struct rnl_guards *guards;        /* of its buffers, see guard.h; NULL: they have none */
    struct rnl_gate *gate;            /* where binaries_compile: keeps that apart from launches, see gate.h */
    uint32_t vector_width;            /* floats of the widest useful vector: 16, 8 or 4 */
    atomic_int matrix_instruction;    /* ops/gemm_matrix.h's */
    bool copies_in_caller;            /* a thread of ours is no help: its commands, or what waits for them, get stuck */
    atomic_ullong pinned_limit_bytes; /* 0: the default, not asked for yet */
    rnl_traffic traffic;
    atomic_int wraps;                   /* the caller's memory in place: 0 not tried yet, 1 yes, -1 no */
    struct rnl_side_queue *idle_queues; /* see side_queue.h */
    size_t idle_queue_count;
    /* rnl_copy_way + 1 for each direction and class of sizes, once copies_known: see way.h */
    atomic_uchar copy_ways[2][RNL_COPY_CLASSES];
    atomic_bool copies_known;
};

#endif
