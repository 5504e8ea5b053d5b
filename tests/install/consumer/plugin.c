// SPDX-License-Identifier: Apache-2.0
// Refers to runnel, so that the static libraries are part of it. load_late.c takes their functions from it.
#include <runnel/runnel.h>

RNL_API const char *plugin_name(void)
{
    return rnl_status_name(RNL_OK) ? "plugin" : "";
}

RNL_API void plugin_release(rnl_graph *graph)
{
    rnl_graph_release(graph);
}
