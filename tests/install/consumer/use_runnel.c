// SPDX-License-Identifier: Apache-2.0
// Runs a model that computes y = x + x, given as a file. Compiled as C11 and as C++17.
#include <runnel/runnel.h>
#include <stdio.h>
#include <string.h>

static bool is_ok(rnl_status status)
{
    if (status != RNL_OK)
        fprintf(stderr, "%s\n", rnl_last_error()->message);
    return status == RNL_OK;
}

static bool run(rnl_model *model)
{
    static float x[] = {1, -2, 0.5F, 8};
    rnl_session *session;
    rnl_tensor input, output;
    bool right = true;
    if (!is_ok(rnl_session_create(model, &session)))
        return false;
    memset(&input, 0, sizeof input);
    memset(&output, 0, sizeof output);
    input.dtype = RNL_F32;
    input.rank = 1;
    input.shape[0] = 4;
    input.data = x;
    input.size_bytes = sizeof x;
    const bool done = is_ok(rnl_session_run(session, &input, 1, &output, 1));
    for (int i = 0; done && i < 4; i++)
        right = right && ((const float *)output.data)[i] == 2 * x[i];
    rnl_session_release(session);
    return done && right;
}

int main(int argc, char **argv)
{
    rnl_graph *graph = NULL;
    rnl_device *device = NULL;
    rnl_model *model = NULL;
    const bool done = argc == 2 && is_ok(rnl_graph_load(argv[1], &graph)) &&
                      is_ok(rnl_device_open(NULL, NULL, &device)) &&
                      is_ok(rnl_model_open(graph, device, NULL, &model)) && run(model);
    rnl_model_release(model);
    rnl_device_release(device);
    rnl_graph_release(graph);
    puts(done ? "right" : "wrong");
    return !done;
}
