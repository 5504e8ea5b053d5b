#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An operator of one's own in Python, com.example.Shrink, in a model that has it between two of ONNX's: once with a kernel
from a file, and once computed by numpy. custom_operator.onnx and custom_operator.cl lie beside this file."""

import os
import sys

import numpy as np
import runnel

FOLDER = os.path.dirname(os.path.abspath(__file__))


def infer(node, x):
    """What the output is: here as the input. Called while planning, for each set of shapes."""
    if x.dtype != np.float32:
        raise runnel.Unimplemented(f"it takes float32, not {x.dtype}")
    return x


def plan(node, x):
    """Which kernel makes it, with which arguments, over how many work-items."""
    limit = np.float32(node.attributes.get("limit", 0.5))
    return runnel.Launch("shrink", [x, node.outputs[0], limit, np.int64(x.size)], x.size,
                         path=os.path.join(FOLDER, "custom_operator.cl"), defines={"TYPE": "float"})


def compute(node, x):
    """The same on the host."""
    limit = np.float32(node.attributes.get("limit", 0.5))
    return np.sign(x) * np.maximum(np.abs(x) - limit, 0)


def run(x, **how):
    registry = runnel.Registry()
    registry.add("com.example", "Shrink", infer=infer, **how)
    with runnel.Session(os.path.join(FOLDER, "custom_operator.onnx"), registry=registry) as session:
        return session.run(None, {"x": x})[0] + 0  # Neg makes -0 of 0


def main():
    x = np.array([[1.25, 0.25, 2.5], [-1.5, -3, -5]], np.float32)
    y = run(x, plan=plan)
    print("y =", *(f"{value:g}" for value in y.flat))
    sys.exit(0 if np.array_equal(y, run(x, compute=compute)) else "numpy has other values")


if __name__ == "__main__":
    main()
