/* SPDX-License-Identifier: Apache-2.0 */
#include "device/enumerate.h"

#include <hwloc.h>
#include <hwloc/opencl.h>
#include <pthread.h>
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

int32_t rnl_device_numa_node(const rnl_candidate *item)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int32_t node = -1;
    if (!item->tells_place && !item->info.pci_bus_id[0])
        return node;
    pthread_once(&once, load_topology);
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
