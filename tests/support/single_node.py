# SPDX-License-Identifier: Apache-2.0
"""One node as a model, run on numpy arrays."""

import numpy as np
import runnel
from onnx import helper, numpy_helper


def model(op_type, inputs, attributes, opset, outputs=1, constants=(), channels_last=False):
    """A model's bytes. None among the inputs: left out. `constants`: which are initialisers. `channels_last`: the first
    input comes from a convolution that changes nothing, whose result lies in memory channel by channel."""
    nodes, names, declared, initializers = [], [], [], []
    for i, value in enumerate(inputs):
        names.append("" if value is None else f"x{i}")
        if value is None:
            continue
        if i in constants:
            initializers.append(numpy_helper.from_array(value, names[-1]))
        else:
            declared.append(helper.make_tensor_value_info(names[-1], runnel.CODES[value.dtype], value.shape))
    if channels_last:
        channels = inputs[0].shape[1]
        weight = np.eye(channels, dtype=inputs[0].dtype).reshape((channels, channels) + (1,) * (inputs[0].ndim - 2))
        initializers.append(numpy_helper.from_array(weight, "w"))
        nodes.append(helper.make_node("Conv", ["x0", "w"], ["turned"]))
        names[0] = "turned"
    results = [f"y{i}" for i in range(outputs)]
    nodes.append(helper.make_node(op_type, names, results, **attributes))
    graph = helper.make_graph(nodes, "node", declared, [helper.make_empty_tensor_value_info(n) for n in results],
                              initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return made.SerializeToString()


def run(device, op_type, inputs, opset=22, outputs=1, constants=(), channels_last=False, **attributes):
    """The node's outputs; one of them by itself."""
    inputs = [None if value is None else np.asarray(value) for value in inputs]
    session = runnel.Session(device, model(op_type, inputs, attributes, opset, outputs, constants, channels_last))
    try:
        feed = {f"x{i}": v for i, v in enumerate(inputs) if v is not None and i not in constants}
        got = session.run(feed)
    finally:
        session.close()
    results = [got[f"y{i}"] for i in range(outputs)]
    return results[0] if outputs == 1 else results


def close(case, got, expected, bound, what=""):
    """Shape, type and every element: |got - expected| <= bound * (largest finite magnitude + |expected|) / 2, NaN and
    infinities where they are expected."""
    case.assertEqual(got.shape, expected.shape, what)
    wide, reference = got.astype(np.float64), np.asarray(expected).astype(np.float64)
    finite = np.isfinite(reference)
    case.assertTrue(np.array_equal(wide[~finite], reference[~finite], equal_nan=True), what)
    if not finite.any():
        return
    scale = (np.abs(reference[finite]).max() + np.abs(reference[finite])) / 2
    error = np.abs(wide[finite] - reference[finite])
    case.assertTrue((error <= bound * np.maximum(scale, 1e-30)).all(), f"{what}: off by {error.max()}")
