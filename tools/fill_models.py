#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the "light" models of the onnx package with seeded random weights.

A light model makes each weight with a ConstantOfShape node, so that every input gives one constant output. Here those
nodes become initialisers. The numbers come from a counter-based generator and exact float arithmetic: the same seed
gives the same file, byte for byte, on every machine.
"""
import argparse
import hashlib
import math
import os
import sys
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

# What the last Conv or Gemm is multiplied by, so that the logits spread over a few units: enough for the softmax to
# tell classes apart, not enough for one class to take it all.
LAST_LAYER_GAIN = {
    "alexnet": 1.2, "densenet121": 2.5, "inception_v1": 25.0, "inception_v2": 1.4, "resnet50": 2.0,
    "shufflenet": 3.5, "squeezenet": 6.0, "vgg19": 1.2, "zfnet512": 3.0,
}
BATCH_NORM_ROLES = {1: "scale", 2: "shift", 3: "shift", 4: "variance"}
MIN_DISTINCT = 900
PASSED = 0.341 + 0.159 / 4  # of a rectified signal: its variance, and its squared mean as far as filters see it


def consumers_of(graph):
    """Maps each value's name to the (node, input index) pairs that read it."""
    table = {}
    for node in graph.node:
        for index, name in enumerate(node.input):
            table.setdefault(name, []).append((node, index))
    return table


def role_of(name, consumers):
    """What a weight is for, by its reader: weight, bias, scale, shift, variance, or None for data that stays."""
    for node, index in consumers.get(name, []):
        if node.op_type in ("Conv", "Gemm"):
            return "weight" if index == 1 else "shift"
        if node.op_type == "BatchNormalization":
            return BATCH_NORM_ROLES[index]
        if node.op_type in ("Unsqueeze", "Reshape") and index == 0:
            return role_of(node.output[0], consumers)
        if node.op_type in ("Mul", "Add"):
            return "scale" if node.op_type == "Mul" else "shift"
    return None


def whole_numbers(name, seed, count):
    """`count` random integers of [0, 2^24), a function of (name, seed) alone."""
    key = zlib.crc32(name.encode()) + (seed << 32)
    bits = np.random.Philox(key=key).random_raw((count + 1) // 2).view(np.uint32)[:count]
    return (bits >> np.uint32(8)).view(np.int32)


def filters(name, shape, seed, gain):
    """Weights of a Conv or Gemm, with half of each filter's mean taken away.

    With all of it gone, what tells inputs apart outlives their mean, but rounding errors grow by a fifth in each layer
    (a rectified normal value has the variance 0.341 and the square 0.5: noise passes by the second, the signal by the
    first). With none gone, every input gives nearly the same output. Uniform on +-a has the variance a^2/3: the signal
    keeps its size through a layer when the weights have the variance 1/(PASSED fan_in).
    """
    numbers = whole_numbers(name, seed, int(np.prod(shape))).reshape(shape[0], -1)
    fan_in = numbers.shape[1]
    mean = numbers.sum(axis=1, keepdims=True, dtype=np.int64) // fan_in
    numbers -= ((mean + 2**23) // 2).astype(np.int32)
    bound = gain * math.sqrt(3 / (PASSED * fan_in))
    return numbers.astype(np.float32).reshape(shape) * np.float32(bound / 2**23)


def values_for(name, role, shape, seed, gain):
    if role == "weight":
        return filters(name, shape, seed, gain)
    low, high = {"scale": (0.8, 1.2), "shift": (-0.1, 0.1), "variance": (0.8, 1.2)}[role]
    unit = whole_numbers(name, seed, int(np.prod(shape))).astype(np.float32) * np.float32(2.0**-24)
    return (gain * (unit * np.float32(high - low) + np.float32(low))).astype(np.float32).reshape(shape)


def last_layer(graph):
    """The name of the last Conv's or Gemm's weight, looked for behind the Reshape that some models put in between."""
    producers = {output: node for node in graph.node for output in node.output}
    name = [node for node in graph.node if node.op_type in ("Conv", "Gemm")][-1].input[1]
    while name in producers and producers[name].op_type == "Reshape":
        name = producers[name].input[0]
    return name


def branch_gains(graph):
    """Factors that keep the signal's size where the plain rule would not, by weight name."""
    producers = {output: node for node in graph.node for output in node.output}

    def origin(name):
        node = producers.get(name)
        while node is not None and node.op_type not in ("Conv", "Gemm", "Relu"):
            node = producers.get(node.input[0])
        return node.op_type if node is not None else None

    gains = {}
    for node in graph.node:
        if node.op_type == "Conv" and origin(node.input[0]) == "Conv":
            gains[node.input[1]] = math.sqrt(PASSED)  # its input was not rectified: all of its variance is left
        if node.op_type == "Sum":
            sources = [producers.get(name) for name in node.input]
            ends = [s.input[1] for s in sources if s is not None and s.op_type == "BatchNormalization"]
            gains.update({name: 0.25 if len(ends) == 1 else 0.7 for name in ends})  # each sum adds variances
    return gains


def fill(model, name, seed):
    graph = model.graph
    consumers = consumers_of(graph)
    constants = {init.name: init for init in graph.initializer}
    generated = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    shapes = {node.output[0]: numpy_helper.to_array(constants[node.input[0]]).tolist() for node in generated}
    shapes.update({init.name: list(init.dims) for init in graph.initializer if init.data_type == onnx.TensorProto.FLOAT})
    gains = branch_gains(graph)
    gains[last_layer(graph)] = LAST_LAYER_GAIN[name]
    tensors = []
    for weight, shape in shapes.items():
        role = role_of(weight, consumers)
        if role is None:
            continue
        values = values_for(weight, role, shape, seed, gains.get(weight, 1.0))
        tensors.append(numpy_helper.from_array(values, weight))
    replaced = {tensor.name for tensor in tensors} | {node.input[0] for node in generated}
    kept = [init for init in graph.initializer if init.name not in replaced]
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    weights = replaced | {init.name for init in kept}
    inputs = [value for value in graph.input if value.name not in weights]
    for field, items in (("node", nodes), ("initializer", kept + tensors), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(items)
    model.ir_version = max(model.ir_version, 4)  # from here on an initialiser need not be an input too
    return model


def logits_name(graph):
    softmax = [node for node in graph.node if node.op_type == "Softmax"]
    return softmax[-1].input[0] if softmax else graph.output[0].name


def check(path):
    """Runs the model in onnxruntime on two random inputs; returns what it saw, or raises ValueError."""
    import onnxruntime
    model = onnx.load(path)
    name, output = logits_name(model.graph), model.graph.output[0].name
    if name != output:
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    source = session.get_inputs()[0]
    rows = []
    for seed in (0, 1):
        data = np.random.default_rng(seed).random(source.shape, dtype=np.float32)
        rows.append([value.ravel() for value in session.run([name, output], {source.name: data})])
    (logits, result), (other, _) = rows
    distinct, spread = len(np.unique(logits)), float(logits.std())
    change = float(np.abs(logits - other).max() / np.abs(logits).max())
    top = float(result.max()) if name != output else None
    report = f"{distinct} distinct values, spread {spread:.3g}, changes by {change:.2g} with the input"
    report += "" if top is None else f", top probability {top:.2g}"
    if not np.isfinite(logits).all() or distinct < MIN_DISTINCT or not 1 < spread < 4 or change < 0.04:
        raise ValueError(f"{path}: degenerate output: {report}")
    if top is not None and not 0.01 < top < 0.9:
        raise ValueError(f"{path}: degenerate softmax: {report}")
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source", help="a light_*.onnx file")
    parser.add_argument("destination", help="the file to write")
    parser.add_argument("--name", required=True, choices=sorted(LAST_LAYER_GAIN))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sha256", help="refuse to leave a file with another SHA-256")
    arguments = parser.parse_args()
    partial = f"{arguments.destination}.partial.{os.getpid()}"
    try:
        with open(partial, "wb") as file:
            file.write(fill(onnx.load(arguments.source), arguments.name, arguments.seed).SerializeToString())
        if arguments.sha256 and hashlib.sha256(open(partial, "rb").read()).hexdigest() != arguments.sha256:
            raise ValueError(f"{arguments.destination}: filled with other numbers than expected")
        print(f"{arguments.name}: {check(partial)}", flush=True)
        os.replace(partial, arguments.destination)
    except ValueError as error:
        sys.exit(f"fill_models: {error}")
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


if __name__ == "__main__":
    main()
