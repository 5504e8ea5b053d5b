/* SPDX-License-Identifier: Apache-2.0 */
#include "device/enumerate.h"

rnl_status rnl_device_list(rnl_device_info *out_infos, size_t capacity, size_t *out_count)
{
    rnl_candidates found;
    *out_count = 0;
    TRY(rnl_candidates_find(&found));
    for (size_t i = 0; i < found.count && i < capacity && out_infos; i++) {
        out_infos[i] = found.items[i].info;
        out_infos[i].numa_node = rnl_device_numa_node(&found.items[i]);
    }
    *out_count = found.count;
    rnl_candidates_free(&found);
    return RNL_OK;
}
