#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far a model is from its 8-bit copies, by `runnel quantize` and by onnxruntime's quantiser, both on onnxruntime.

    quantize_quality.py MODEL CALIBRATION_FOLDER TEST_FOLDER

Each folder has .npy files for the model's only input; errors are of the test folder's, relative: the root of the squared
error over the squared values of the first output. RUNNEL_COMMAND names the command (default build/release/runnel).
"""

import argparse
import glob
import logging
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

import quantize_models

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
COMMAND = os.environ.get("RUNNEL_COMMAND", os.path.join(ROOT, "build", "release", "runnel"))


def load(folder):
    return [np.load(path) for path in sorted(glob.glob(os.path.join(folder, "*.npy")))]


def first_outputs(path, arrays):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return [session.run(None, {name: array})[0].astype(np.float64) for array in arrays]


def relative_error(expected, got):
    noise = sum(((a - b) ** 2).sum() for a, b in zip(expected, got))
    return float(np.sqrt(noise / sum((a ** 2).sum() for a in expected)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "calibration", "test"):
        parser.add_argument(name)
    parser.add_argument("--ranges", default="minmax")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # the quantiser's advice
    tests = load(arguments.test)
    expected = first_outputs(arguments.model, tests)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "ours.onnx"), os.path.join(folder, "theirs.onnx")
        subprocess.run([COMMAND, "quantize", arguments.model, "--calibrate", arguments.calibration, "-o", ours,
                        "--ranges", arguments.ranges], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        onnx.checker.check_model(onnx.load(ours), full_check=True)
        name = onnxruntime.InferenceSession(arguments.model).get_inputs()[0].name
        quantize_models.static(arguments.model, theirs, name, load(arguments.calibration))
        errors = [relative_error(expected, first_outputs(path, tests)) for path in (ours, theirs)]
    print(f"runnel {errors[0]:.4f}, onnxruntime {errors[1]:.4f}, ratio {errors[0] / errors[1]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
