# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it, making models and pictures.

RUNNEL_COMMAND  the command (default build/release/runnel)
"""

import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
COMMAND = os.environ.get("RUNNEL_COMMAND", os.path.join(ROOT, "build", "release", "runnel"))
PROGRESS = r"(?!runnel:)[a-z0-9_: ]+ \d+ of \d+(: |$)"  # a line every two seconds where there is no terminal
CODES = {
    "float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "uint16": TensorProto.UINT16,
    "int16": TensorProto.INT16, "int32": TensorProto.INT32, "int64": TensorProto.INT64, "bool": TensorProto.BOOL,
    "float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE, "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
}


class Result:
    """An ended run. stdout and stderr are text; progress lines are left out of `messages`."""

    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr
        self.lines = stdout.splitlines()
        self.messages = [line for line in stderr.splitlines() if not re.match(PROGRESS, line)]

    def line(self, start):
        """The one line of stdout that starts so."""
        found = [line for line in self.lines if line.startswith(start)]
        assert len(found) == 1, f"{len(found)} lines start with {start!r}:\n{self.stdout}\n{self.stderr}"
        return found[0]


class CommandTest(unittest.TestCase):
    """A temporary folder for each test, `self.folder`, and the command run in it."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="runnel-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def call(self, *arguments, env=None, without=(), **options):
        """Runs the command; `env` adds variables, `without` takes some away."""
        environment = {name: value for name, value in os.environ.items() if name not in without}
        environment.update(env or {})
        done = subprocess.run([COMMAND, *map(os.fspath, arguments)], cwd=self.folder, env=environment, timeout=300,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, **options)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def succeed(self, *arguments, **options):
        """It must end with 0 and say nothing on stderr but what it compiles."""
        result = self.call(*arguments, **options)
        self.assertEqual((result.code, result.messages), (0, []), result.stdout + result.stderr)
        return result

    def fail_with(self, code, *parts, arguments, **options):
        """It must end with this code and one message, a first line and then only indented ones, that holds `parts`."""
        result = self.call(*arguments, **options)
        self.assertEqual(result.code, code, result.stdout + result.stderr)
        self.assertTrue(result.messages, "no message")
        self.assertTrue(result.messages[0].startswith("runnel: "), result.stderr)
        for line in result.messages[1:]:
            self.assertRegex(line, r"^  \S", result.stderr)
        for part in parts:
            self.assertIn(part, "\n".join(result.messages), result.stderr)
        return result

    def refuse(self, *parts, arguments, **options):
        return self.fail_with(1, *parts, arguments=arguments, **options)

    def misuse(self, *parts, arguments, command="run", **options):
        result = self.fail_with(2, *parts, arguments=arguments, **options)
        hint = f"  try: runnel {command} --help" if command else "  try: runnel --help"
        self.assertEqual(result.messages[1:], [hint])
        self.assertEqual(result.stdout, "")
        return result

    def assert_no_files(self, folder):
        """Nothing at all below `folder`, or no such folder."""
        self.assertEqual([names for _, _, names in os.walk(folder) if names], [])

    # ---- models --------------------------------------------------------------------------------------------------

    def model(self, nodes, inputs, outputs, initializers=(), name="model.onnx", opset=17, **more):
        """inputs, outputs: (name, type, shape) each; writes the file and returns its path."""
        def info(row):
            return helper.make_tensor_value_info(row[0], CODES[row[1]], row[2])

        graph = helper.make_graph(nodes, "graph", [info(row) for row in inputs], [info(row) for row in outputs],
                                  [onnx.numpy_helper.from_array(array, key) for key, array in dict(initializers).items()])
        domains = [helper.make_opsetid("", opset)] + [helper.make_opsetid(key, 1) for key in more.get("domains", ())]
        model = helper.make_model(graph, opset_imports=domains, producer_name="tests",
                                  producer_version="1.2", ir_version=8)
        helper.set_model_props(model, more.get("metadata", {}))
        with open(self.path(name), "wb") as file:
            file.write(model.SerializeToString())
        return self.path(name)

    def relu(self, shape=(1, 4), dtype="float32", **more):
        """x -> Relu -> y."""
        names = more.pop("names", ("x", "y"))
        return self.model([helper.make_node("Relu", [names[0]], [names[1]])], [(names[0], dtype, shape)],
                          [(names[1], dtype, shape)], **more)

    def identity(self, dtype, shape, **more):
        """x -> Identity -> y."""
        return self.model([helper.make_node("Identity", ["x"], ["y"])], [("x", dtype, shape)], [("y", dtype, shape)],
                          **more)

    def sum_of(self, names, shapes, dtype="float32", **more):
        """One output, y: the sum of all inputs."""
        nodes = [helper.make_node("Add", list(names[:2]), ["y"])]
        return self.model(nodes, [(name, dtype, shape) for name, shape in zip(names, shapes)],
                          [("y", dtype, None)], **more)

    def outputs(self, *arguments, **options):
        """Runs with -o and returns {file name without .npy: array}."""
        self.succeed("run", *arguments, "-o", "out", **options)
        return {name[:-4]: np.load(self.path("out", name)) for name in sorted(os.listdir(self.path("out")))}


def png(samples):
    """A PNG file of [H,W] grey, or [H,W,2], [H,W,3], [H,W,4] samples of uint8 or uint16."""
    samples = samples if samples.ndim == 3 else samples[:, :, None]
    height, width, channels = samples.shape
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.astype(samples.dtype.newbyteorder(">")).tobytes() for row in samples)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, samples.dtype.itemsize * 8, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def resize(samples, height, width):
    """Bilinear with pixel centres at half-integers and repeated edges, in float64: [H,W,C]."""
    def taps(size, wanted):
        at = np.clip((np.arange(wanted) + 0.5) * size / wanted - 0.5, 0, size - 1)
        first = np.floor(at).astype(int)
        return first, np.minimum(first + 1, size - 1), at - first

    top, bottom, down = taps(samples.shape[0], height)
    left, right, across = taps(samples.shape[1], width)
    down, across = down[:, None, None], across[None, :, None]
    rows = samples[top] * (1 - down) + samples[bottom] * down
    return rows[:, left] * (1 - across) + rows[:, right] * across
