/* SPDX-License-Identifier: Apache-2.0 */
#include "device/enumerate.h"
#include "device/host_limits.h"
#include "device/part.h"

static void find_shares(const rnl_candidate *item, rnl_device_info *info)
{
    rnl_part_kinds kinds;
    const rnl_part_parent parent = {item->id, rnl_usable_units(info), info->name, false};
    info->most_shares = 1;
    info->numa_shares = 0;
    if (rnl_part_ask(item->id, true, &kinds) != RNL_OK)
        return;
    info->numa_shares = kinds.numa_nodes;
    if (kinds.by_counts && rnl_part_try(&parent))
        info->most_shares = parent.units;
}

rnl_status rnl_device_list(rnl_device_info *out_infos, size_t capacity, size_t *out_count)
{
    rnl_candidates found;
    *out_count = 0;
    TRY(rnl_candidates_find(&found));
    for (size_t i = 0; i < found.count && i < capacity && out_infos; i++) {
        out_infos[i] = found.items[i].info;
        out_infos[i].numa_node = rnl_device_numa_node(&found.items[i]);
        find_shares(&found.items[i], &out_infos[i]);
    }
    *out_count = found.count;
    rnl_candidates_free(&found);
    return RNL_OK;
}
