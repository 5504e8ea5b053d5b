# SPDX-License-Identifier: Apache-2.0
"""Finds the Python package in the source tree, with the libraries of the build folder named by RUNNEL_BUILD; small models."""

import os
import sys
import time
from types import SimpleNamespace

import numpy as np
from onnx import helper

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
os.environ.setdefault("RUNNEL_LIBRARY_DIR", os.environ.get("RUNNEL_BUILD", os.path.join(ROOT, "build", "release")))
sys.path.insert(0, os.path.join(ROOT, "python"))
DEVICE = os.environ.get("RUNNEL_TEST_DEVICE")


def model(nodes, inputs, outputs, initializers=(), opset=17, domains=None, **properties):
    """inputs, outputs: {name: (ONNX type, shape)}; domains: {name: version}."""
    infos = [[helper.make_tensor_value_info(name, *what) for name, what in values.items()]
             for values in (inputs, outputs)]
    made = helper.make_model(helper.make_graph(nodes, "small", *infos, list(initializers)), ir_version=10,
                             opset_imports=[helper.make_opsetid(*item) for item in {"": opset, **(domains or {})}.items()],
                             producer_name="tests")
    helper.set_model_props(made, properties)
    return made


def relu(kind=1):
    """y = max(x, 0) of any shape [n, 4]."""
    return model([helper.make_node("Relu", ["x"], ["y"])], {"x": (kind, ["n", 4])}, {"y": (kind, ["n", 4])}, color="rgb")


def slow(size, steps=200):
    """A chain of products: x, [size, size], times itself again and again, scaled down."""
    nodes = []
    for i in range(steps):
        nodes += [helper.make_node("MatMul", [f"v{i}" if i else "x", "x"], [f"p{i}"]),
                  helper.make_node("Tanh", [f"p{i}"], [f"v{i + 1}"])]
    return model(nodes, {"x": (1, [size, size])}, {f"v{steps}": (1, [size, size])})


def find_slow(device):
    """A model whose run takes a while on this device, so that others meet it under way: model, x, y, seconds of a run."""
    import runnel  # where it was found above

    for size in (128, 256, 384):
        made, x = slow(size), np.random.default_rng(1).standard_normal((size, size)).astype(np.float32) / size
        with runnel.Session(made, device) as session:
            y, = session.run(None, {"x": x})  # compiles
            times = [time.monotonic()]
            for _ in range(3):
                session.run(None, {"x": x})
                times.append(time.monotonic())
        seconds = min(after - before for before, after in zip(times, times[1:]))
        if seconds > 0.03:
            break
    return SimpleNamespace(model=made, x=x, y=y, seconds=seconds)
