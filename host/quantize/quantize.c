/* SPDX-License-Identifier: Apache-2.0 */
#include "quantize/edit.h"

#include "base/file.h"
#include "base/memory.h"
#include <string.h>

#define OLDEST_OPSET 9
#define DEFAULT_PERCENTILE 99.99

/* ---- opening --------------------------------------------------------------------------------------------------- */

static bool is_of_integers(const char *op_type)
{
    static const char *const starts[] = {
        "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinear", "MatMulInteger",        "ConvInteger",
        "QGemm",          "QAttention",       "MatMulNBits",           "QMoE",    "DynamicQuantizeMatMul"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(op_type, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

static rnl_status check(const rnl_quantizer *q)
{
    const rnl_operator_info *rows;
    size_t count;
    for (size_t i = 0; i < q->graph->node_count; i++)
        if (is_of_integers(q->graph->nodes[i].op_type))
            return FAIL(RNL_FAILED_PRECONDITION, "%s is quantised already: it has %s '%s'", q->path,
                        q->graph->nodes[i].op_type, q->graph->nodes[i].name);
    if (q->graph->info.opset < OLDEST_OPSET)
        return FAIL(RNL_UNIMPLEMENTED,
                    "%s has opset %d, and quantising needs %d: convert it first "
                    "(onnx.version_converter)",
                    q->path, (int)q->graph->info.opset, OLDEST_OPSET);
    return rnl_graph_check(q->graph, &rows, &count);
}

static rnl_status settle_options(rnl_quantizer *q, const rnl_quantizer_options *options)
{
    static const rnl_quantizer_options defaults = RNL_QUANTIZER_OPTIONS_INIT;
    q->options = defaults;
    if (options && options->struct_size != sizeof *options)
        return FAIL(RNL_INVALID_ARGUMENT, "the options' struct_size is %zu instead of %zu", options->struct_size,
                    sizeof *options);
    if (options)
        q->options = *options;
    if (q->options.percentile == 0)
        q->options.percentile = DEFAULT_PERCENTILE;
    if (!(q->options.percentile > 0 && q->options.percentile <= 100))
        return FAIL(RNL_INVALID_ARGUMENT, "the percentile is not between 0 and 100");
    return RNL_OK;
}

/* ---- what the runs are to show --------------------------------------------------------------------------------- */

static void want(rnl_quantizer *q, uint32_t index, uint32_t *places)
{
    if (places[index] == RNL_NO_VALUE && !q->values[index].is_input) {
        places[index] = (uint32_t)(q->own_count + q->shown_count);
        q->shown[q->shown_count++] = index;
    }
}

/* Where the graph's own outputs are. */
static void place_outputs(const rnl_quantizer *q, uint32_t *places)
{
    rnl_bytes rest = q->body;
    rnl_wire_field field, name;
    uint32_t place = 0;
    memset(places, 0xff, q->value_count * sizeof *places);
    while (rnl_wire_next(&rest, &field)) {
        if (field.number != RNL_PB_GRAPH_OUTPUT || !rnl_wire_find(field.contents, RNL_PB_VALUE_NAME, &name))
            continue;
        const uint32_t value = rnl_edit_find(q, (const char *)name.contents.data, name.contents.size);
        if (value != RNL_NO_VALUE)
            places[value] = place;
        place++;
    }
}

static rnl_status choose_shown(rnl_quantizer *q)
{
    uint32_t *places = NULL;
    TRY(rnl_zone_alloc(&q->zone, q->value_count, sizeof *q->shown, &q->shown));
    TRY(rnl_alloc(q->value_count, sizeof *places, &places));
    place_outputs(q, places);
    rnl_edit_plan(q, RNL_QUANTIZER_ALL);
    for (uint32_t i = 0; i < q->value_count; i++) {
        q->values[i].is_wanted = q->values[i].is_quantised;
        if (q->values[i].is_quantised)
            want(q, i, places);
    }
    for (size_t i = 0; i < q->layer_count; i++) {
        want(q, q->layers[i].end, places);
        q->infos[i].output = places[q->layers[i].end];
    }
    for (size_t i = 0; i < q->node_count; i++)
        if (!q->nodes[i].is_gone && rnl_edit_needs_rank(q, &q->nodes[i]))
            want(q, q->nodes[i].inputs[0], places);
    rnl_free(places);
    return RNL_OK;
}

static rnl_status read_all(rnl_quantizer *q)
{
    TRY(check(q));
    TRY(rnl_edit_read(q));
    for (size_t i = 0; i < q->value_count; i++)
        q->values[i].was_read = q->values[i].readers > 0;
    TRY(rnl_edit_find_layers(q));
    TRY(rnl_zone_alloc(&q->zone, q->value_count, 3, &q->marks));
    return choose_shown(q);
}

rnl_status rnl_quantizer_open(const char *path, const rnl_quantizer_options *options, rnl_quantizer **out_quantizer)
{
    rnl_status status = RNL_OK;
    rnl_quantizer *q = NULL;
    *out_quantizer = NULL;
    GOTO(rnl_alloc(1, sizeof *q, &q));
    GOTO(settle_options(q, options));
    GOTO(rnl_graph_load(path, &q->graph));
    GOTO(rnl_zone_text(&q->zone, path, strlen(path), &q->path));
    GOTO(read_all(q));
    *out_quantizer = q;
    q = NULL;
done:
    rnl_quantizer_release(q);
    return status;
}

void rnl_quantizer_release(rnl_quantizer *q)
{
    if (!q)
        return;
    rnl_graph_release(q->graph);
    rnl_names_free(&q->names);
    rnl_free(q->values);
    rnl_zone_free(&q->zone);
    rnl_free(q);
}

/* ---- layers and models ----------------------------------------------------------------------------------------- */

const rnl_quantizer_layer *rnl_quantizer_layers(const rnl_quantizer *q, size_t *out_count)
{
    *out_count = q->layer_count;
    return q->infos;
}

void rnl_quantizer_keep(rnl_quantizer *q, size_t layer, bool is_kept)
{
    if (layer < q->layer_count)
        q->infos[layer].is_kept = is_kept;
}

rnl_status rnl_quantizer_build(rnl_quantizer *q, rnl_quantizer_form form, size_t only, void **out_data,
                               size_t *out_bytes)
{
    rnl_text model = {0};
    *out_data = NULL;
    *out_bytes = 0;
    if (only != RNL_QUANTIZER_ALL && only >= q->layer_count)
        return FAIL(RNL_INVALID_ARGUMENT, "there is no layer %zu: the model has %zu", only, q->layer_count);
    rnl_edit_plan(q, form == RNL_QUANTIZER_FLOAT ? RNL_NO_LAYER : only);
    const rnl_status status = rnl_edit_emit(q, form, &model);
    if (status != RNL_OK) {
        rnl_text_free(&model);
        return rnl_error_add(status, "quantising %s", q->path);
    }
    *out_data = model.data;
    *out_bytes = model.length;
    return RNL_OK;
}

void rnl_quantizer_free(void *data)
{
    rnl_free(data);
}

rnl_status rnl_quantizer_write(rnl_quantizer *q, const char *path)
{
    void *data;
    size_t bytes;
    TRY(rnl_quantizer_build(q, RNL_QUANTIZER_FILE, RNL_QUANTIZER_ALL, &data, &bytes));
    const rnl_status status = rnl_file_write(path, data, bytes);
    rnl_free(data);
    return status;
}
