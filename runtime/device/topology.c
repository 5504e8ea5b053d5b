/* SPDX-License-Identifier: Apache-2.0 */
#include "device/enumerate.h"

#include "base/log.h"
#include "base/memory.h"
#include "device/place.h"

#include <hwloc.h>
#include <hwloc/opencl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

/* Loading costs about 10 ms: once a process, and kept. */
static hwloc_topology_t topology;

static void load_topology(void)
{
    hwloc_topology_t loaded = NULL;
    if (hwloc_topology_init(&loaded) != 0)
        return;
    if (hwloc_topology_load(loaded) == 0)
        topology = loaded;
    else
        hwloc_topology_destroy(loaded);
}

/* The processors near the device; false when nothing says which. */
static bool find_processors(const rnl_candidate *item, hwloc_bitmap_t set)
{
    hwloc_const_cpuset_t whole = hwloc_topology_get_complete_cpuset(topology);
    /* Its success is no answer: without knowledge it gives the whole machine. */
    if (item->tells_place && hwloc_opencl_get_device_cpuset(topology, item->id, set) == 0 &&
        !hwloc_bitmap_iszero(set) && !hwloc_bitmap_isequal(set, whole))
        return true;
    if (!item->info.pci_bus_id[0] || !hwloc_topology_is_thissystem(topology))
        return false;
    char path[128];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/local_cpus", item->info.pci_bus_id);
    return hwloc_linux_read_path_as_cpumask(path, set) == 0 && !hwloc_bitmap_iszero(set) &&
           !hwloc_bitmap_isequal(set, whole);
}

static void need_topology(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_topology);
}

int32_t rnl_device_numa_node(const rnl_candidate *item)
{
    int32_t node = -1;
    if (!item->tells_place && !item->info.pci_bus_id[0])
        return node;
    need_topology();
    hwloc_bitmap_t processors = topology ? hwloc_bitmap_alloc() : NULL;
    hwloc_bitmap_t nodes = processors ? hwloc_bitmap_alloc() : NULL;
    if (nodes && find_processors(item, processors)) {
        hwloc_cpuset_to_nodeset(topology, processors, nodes);
        if (hwloc_bitmap_weight(nodes) == 1)
            node = hwloc_bitmap_first(nodes);
    }
    hwloc_bitmap_free(nodes);
    hwloc_bitmap_free(processors);
    return node;
}

/* ---- Allocating near a device ---- */

struct rnl_place {
    hwloc_bitmap_t nodes; /* as before */
    hwloc_membind_policy_t policy;
};

static void free_place(rnl_place *place)
{
    if (place)
        hwloc_bitmap_free(place->nodes);
    rnl_free(place);
}

static bool bind_thread(hwloc_const_bitmap_t nodes, hwloc_membind_policy_t policy)
{
    return hwloc_set_membind(topology, nodes, policy, HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) == 0;
}

rnl_place *rnl_place_enter(int32_t numa_node)
{
    /* A node is known from the topology, so that is loaded where it is not -1. */
    if (numa_node < 0 || !topology || hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) < 2)
        return NULL;
    rnl_place *place = NULL;
    hwloc_bitmap_t wanted = hwloc_bitmap_alloc();
    bool bound = false;
    if (wanted && rnl_alloc(1, sizeof *place, &place) == RNL_OK && (place->nodes = hwloc_bitmap_alloc()) &&
        hwloc_get_membind(topology, place->nodes, &place->policy, HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) ==
            0) {
        hwloc_bitmap_only(wanted, (unsigned)numa_node);
        bound = bind_thread(wanted, HWLOC_MEMBIND_BIND);
    }
    hwloc_bitmap_free(wanted);
    if (bound)
        return place;
    rnl_log(RNL_LOG_DEBUG, "pinned memory cannot be bound to NUMA node %d", (int)numa_node);
    free_place(place);
    return NULL;
}

void rnl_place_leave(rnl_place *place)
{
    if (place && !bind_thread(place->nodes, place->policy))
        rnl_log(RNL_LOG_DEBUG, "the thread's memory stays bound to a NUMA node");
    free_place(place);
}

/* The node of the processor that we run on; -1 when it is not known. */
static int32_t current_node(void)
{
    unsigned cpu = 0, node = 0;
    return getcpu(&cpu, &node) == 0 && node <= INT32_MAX ? (int32_t)node : -1;
}

bool rnl_place_bind_process(int32_t numa_node)
{
    need_topology();
    const int32_t node = numa_node >= 0 ? numa_node : current_node();
    hwloc_obj_t found = topology && node >= 0 ? hwloc_get_numanode_obj_by_os_index(topology, (unsigned)node) : NULL;
    hwloc_bitmap_t processors = found && found->cpuset ? hwloc_bitmap_alloc() : NULL;
    bool bound = false;
    if (processors && hwloc_get_cpubind(topology, processors, HWLOC_CPUBIND_PROCESS) == 0 &&
        hwloc_bitmap_and(processors, processors, found->cpuset) == 0 && !hwloc_bitmap_iszero(processors))
        bound = hwloc_set_cpubind(topology, processors, HWLOC_CPUBIND_PROCESS) == 0;
    hwloc_bitmap_free(processors);
    return bound;
}
