/* SPDX-License-Identifier: Apache-2.0 */
/* What rnl_op_map knows of each operator. */
#ifndef RUNNEL_OPS_MAP_TABLE_H
#define RUNNEL_OPS_MAP_TABLE_H

#include "ops/map.h"

enum {
    RNL_MAP_FLOATS = 1,
    RNL_MAP_INTEGERS = 2,
    RNL_MAP_BOOLS = 4,
    RNL_MAP_STORED = 8, /* types that are not computed with */
    RNL_MAP_NUMBERS = RNL_MAP_FLOATS | RNL_MAP_INTEGERS,
    RNL_MAP_ALL = RNL_MAP_NUMBERS | RNL_MAP_BOOLS,
    RNL_MAP_EVERY = RNL_MAP_ALL | RNL_MAP_STORED
};

typedef struct rnl_map_row {
    const char *name;
    const char *option; /* "OP=OP_ADD" */
    size_t sources, parameters;
    unsigned types; /* that the sources may have */
    bool makes_bool;
} rnl_map_row;

/* NULL for an unknown operator. */
const rnl_map_row *rnl_map_row_of(rnl_map_op op);

#endif
