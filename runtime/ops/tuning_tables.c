/* SPDX-License-Identifier: Apache-2.0 */
/* Written by tools/ship-tuning. */
#include "ops/tuning_shipped.h"

const rnl_shipped_table rnl_shipped_tables[] = {{0}};
