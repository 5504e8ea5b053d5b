/* SPDX-License-Identifier: Apache-2.0 */
/* Counting what is copied. */
#ifndef RUNNEL_DEVICE_TRAFFIC_H
#define RUNNEL_DEVICE_TRAFFIC_H

#include "device/device.h"

static inline void rnl_traffic_add(atomic_ullong *counter, size_t size_bytes)
{
    atomic_fetch_add_explicit(counter, size_bytes, memory_order_relaxed);
}

/* Memory of the caller's was used where it is. */
RNL_API void rnl_traffic_in_place(rnl_device *device, size_t size_bytes);

#endif
