/* SPDX-License-Identifier: Apache-2.0 */
/* The quantizer on any model file: it refuses it, or makes models that can be read again. */
#include "base/status.h"
#include <runnel/quantize.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NUMBERS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_message(rnl_status status)
{
    require(rnl_last_error()->status == status && rnl_last_error()->message[0]);
}

/* As a run would show them: some outputs of rank 2, some inputs too, and what has no name of the model. */
static void look(rnl_quantizer *q, const rnl_value_info *infos, size_t count)
{
    float numbers[NUMBERS] = {-1.5f, 0, 0.25f, 3, 1e-30f, 2e20f};
    for (size_t i = 0; i < count; i++) {
        const int64_t first = i % 3 ? 2 : 1;
        const rnl_tensor tensor = {.name = infos[i].name,
                                   .dtype = RNL_F32,
                                   .rank = 2,
                                   .shape = {first, NUMBERS / 2},
                                   .data = numbers,
                                   .size_bytes = (size_t)first * NUMBERS / 2 * sizeof *numbers};
        if (rnl_quantizer_observe(q, &tensor, 1) != RNL_OK || rnl_quantizer_count(q, &tensor, 1) != RNL_OK)
            require_message(rnl_last_error()->status);
    }
}

/* Builds a model; what was built is read again, and its inputs and outputs are shown to the quantizer. */
static void build(rnl_quantizer *q, rnl_quantizer_form form, size_t only, bool is_looked_at)
{
    void *data;
    size_t bytes, count;
    rnl_graph *graph;
    const rnl_status status = rnl_quantizer_build(q, form, only, &data, &bytes);
    if (status != RNL_OK) {
        require(data == NULL && bytes == 0);
        require_message(status);
        return;
    }
    if (rnl_graph_load_memory(data, bytes, &graph) != RNL_OK) {
        fprintf(stderr, "form %d: %s\n", (int)form, rnl_last_error()->message);
        abort();
    }
    if (is_looked_at) {
        const rnl_value_info *infos = rnl_graph_inputs(graph, &count);
        look(q, infos, count);
        infos = rnl_graph_outputs(graph, &count);
        look(q, infos, count);
    }
    rnl_graph_release(graph);
    rnl_quantizer_free(data);
}

static void quantise(rnl_quantizer *q)
{
    size_t count;
    const rnl_quantizer_layer *layers = rnl_quantizer_layers(q, &count);
    require(count > 0);
    for (size_t i = 0; i < count; i++)
        require(layers[i].name != NULL && layers[i].op_type != NULL);
    build(q, RNL_QUANTIZER_INTEGERS, RNL_QUANTIZER_ALL, false); /* before anything was seen */
    build(q, RNL_QUANTIZER_FLOAT, RNL_QUANTIZER_ALL, true);
    build(q, RNL_QUANTIZER_INTEGERS, count - 1, false);
    rnl_quantizer_keep(q, 0, count > 1);
    build(q, RNL_QUANTIZER_FILE, RNL_QUANTIZER_ALL, false);
}

/* The file's size chooses the options, so that all of them are tried on models that differ little. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rnl_quantizer_options options = RNL_QUANTIZER_OPTIONS_INIT;
    rnl_quantizer *q;
    char path[64];
    const int file = memfd_create("model", 0);
    require(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    options.ranges = (rnl_quantizer_ranges)(size % 3);
    options.signed_activations = size / 3 % 2;
    const rnl_status status = rnl_quantizer_open(path, &options, &q);
    if (status == RNL_OK) {
        quantise(q);
    } else {
        require(q == NULL);
        require_message(status);
    }
    rnl_quantizer_release(q);
    close(file);
    return 0;
}
