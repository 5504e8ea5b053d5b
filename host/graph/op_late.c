/* SPDX-License-Identifier: Apache-2.0 */
/* If, Loop and Scan: what they give is known when they have run. */
#include "graph/op_common.h"
#include "graph/op_rows.h"

rnl_status rnl_infer_late(rnl_op_context *context)
{
    return FAIL(RNL_FAILED_PRECONDITION, "what %s gives is not known while planning", context->node->op_type);
}
