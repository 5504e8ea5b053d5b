# SPDX-License-Identifier: Apache-2.0
"""Files that are no models, broken ones and hostile ones: exit 1, one message that names the file or the thing."""

import os
import resource
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

from command import COMMAND, CommandTest

SECONDS, BYTES = 1, 200 * 2**20


def varint(number):
    data = b""
    while number > 127:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def field(number, payload):
    """A length-delimited field of a protobuf message."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def peak_bytes(arguments, folder):
    """Exit code, seconds of processor time (others may share the machine), and the largest resident size of a run."""
    child = os.posix_spawn(COMMAND, [COMMAND, *arguments], os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.path.join(folder, "messages"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)])
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


class BadModelTest(CommandTest):
    def refuse_both(self, path, *parts):
        """By `info` and by `run`, before anything is printed or written."""
        for arguments in (["info", path], ["info", "--json", path], ["run", path, "-o", "out"]):
            result = self.refuse(*parts, arguments=arguments)
            self.assertEqual(result.stdout, "")
            self.assertTrue(os.path.basename(path) in result.stderr, result.stderr)
        self.assert_no_files(self.path("out"))

    def edited(self, edit, name="bad.onnx", **more):
        """A sound MatMul-Add model, after `edit(model)`."""
        weights = {"w": np.ones((4, 5), np.float32), "b": np.ones(5, np.float32)}
        nodes = [helper.make_node("MatMul", ["x", "w"], ["t"], name="first"),
                 helper.make_node("Add", ["t", "b"], ["y"], name="second")]
        path = self.model(nodes, [("x", "float32", ["n", 4])], [("y", "float32", ["n", 5])], weights, name=name, **more)
        model = onnx.load(path)
        edit(model)
        return self.write(name, model.SerializeToString())

    def test_the_model_before_it_is_edited(self):
        path = self.edited(lambda model: None)
        self.succeed("run", path)

    def test_not_a_file(self):
        self.refuse_both("none.onnx", "none.onnx", "No such file")
        os.mkdir(self.path("dir.onnx"))
        self.refuse_both("dir.onnx", "dir.onnx")
        for path in ("/dev/null", "/dev/zero"):
            self.refuse_both(path, path)
        os.mkfifo(self.path("pipe.onnx"))
        self.refuse_both("pipe.onnx", "pipe.onnx")

    def test_empty(self):
        self.refuse_both(self.write("empty.onnx", b""), "empty.onnx")

    def test_other_files(self):
        for name, data in (("text.onnx", b"hello, this is text\n" * 50), ("elf.onnx", open(COMMAND, "rb").read(10000)),
                           ("png.onnx", b"\x89PNG\r\n\x1a\n" + bytes(100)), ("zero.onnx", bytes(1000)),
                           ("ones.onnx", b"\xff" * 1000), ("json.onnx", b'{"ir_version": 8}')):
            self.refuse_both(self.write(name, data))

    def test_truncated(self):
        with open(self.edited(lambda model: None), "rb") as file:
            whole = file.read()
        for size in sorted({1, 2, 5, len(whole) - 1, *np.linspace(6, len(whole) - 2, 25, dtype=int).tolist()}):
            self.write("cut.onnx", whole[:size])
            result = self.call("run", "cut.onnx", "-o", "out")
            if result.code == 0:  # cut between two fields that may be left out
                onnx.checker.check_model(self.path("cut.onnx"))
                continue
            self.assertEqual(result.code, 1, f"{size} of {len(whole)} bytes: {result.stderr}")
            self.assertTrue(result.messages[0].startswith("runnel: "), result.stderr)
            self.assertIn("cut.onnx", result.stderr)

    def test_no_graph(self):
        self.refuse_both(self.edited(lambda model: model.ClearField("graph")))

    def test_no_opset(self):
        self.refuse_both(self.edited(lambda model: model.ClearField("opset_import")))

    def test_opset_out_of_range(self):
        for opset in (0, -1, 29, 1000):
            self.refuse_both(self.edited(lambda model: setattr(model.opset_import[0], "version", opset)), str(opset))

    def test_missing_initializer(self):
        self.refuse_both(self.edited(lambda model: model.graph.initializer.pop(0)), "'w'")

    def test_cycle(self):
        def edit(model):
            model.graph.node[0].input[0] = "y"

        self.refuse_both(self.edited(edit))

    def test_output_nobody_makes(self):
        self.refuse_both(self.edited(lambda model: setattr(model.graph.output[0], "name", "nowhere")), "'nowhere'")

    def test_name_made_twice(self):
        def edit(model):
            model.graph.node[1].output[0] = "t"
            model.graph.output[0].name = "t"

        self.refuse_both(self.edited(edit), "'t'")

    def weight(self, **changes):
        def edit(model):
            weight = model.graph.initializer[0]
            for key, value in changes.items():
                weight.ClearField(key)
                if isinstance(value, list):
                    getattr(weight, key).extend(value)
                else:
                    setattr(weight, key, value)

        return self.edited(edit)

    def test_sizes_of_weights(self):
        for dims in ([-4, -5], [4, -5], [2**62, 4], [2**40, 2**40], [2**31], [4, 6], [4], [1] * 9):
            self.refuse_both(self.weight(dims=dims), "'w'")

    def test_types_of_weights(self):
        for data_type in (0, 99, 2**31 - 1, TensorProto.DOUBLE):
            self.refuse_both(self.weight(data_type=data_type), "'w'")
        strings = self.weight(data_type=TensorProto.STRING)
        self.refuse("'w'", "MatMul", "string", arguments=["info", strings])
        self.refuse("'w'", "MatMul", "string", arguments=["run", strings])

    def test_bytes_of_weights(self):
        self.refuse_both(self.weight(raw_data=b"123"), "'w'")
        self.refuse_both(self.weight(raw_data=bytes(4 * 5 * 4 + 1)), "'w'")

    def external(self, location, **more):
        def edit(model):
            weight = model.graph.initializer[0]
            weight.ClearField("raw_data")
            weight.data_location = TensorProto.EXTERNAL
            for key, value in {"location": location, **more}.items():
                weight.external_data.add(key=key, value=value)

        return self.edited(edit)

    def test_external_data(self):
        self.write("data.bin", np.full((4, 5), 2, np.float32).tobytes())
        x = self.save("x.npy", np.ones((1, 4), np.float32))
        got = self.outputs(self.external("data.bin"), "-i", x)["y"]
        np.testing.assert_array_equal(got, np.full((1, 5), 9, np.float32))

    def test_external_data_outside(self):
        secret = np.full((4, 5), 2, np.float32).tobytes()
        os.mkdir(self.path("models"))
        self.write("secret.bin", secret)
        self.write("models/data.bin", secret)
        os.symlink(self.path("secret.bin"), self.path("models", "link.bin"))
        os.symlink(self.folder, self.path("models", "up"))
        os.mkdir(self.path("models", "dir"))
        os.mkfifo(self.path("models", "pipe"))
        for location in ("../secret.bin", self.path("secret.bin"), "link.bin", "up/secret.bin", "none.bin", "dir", "pipe",
                         "", ".", "/dev/zero", "x/../../secret.bin"):
            os.replace(self.external(location), self.path("models", "bad.onnx"))
            self.refuse_both(self.path("models", "bad.onnx"))
        for more in ({"offset": "4"}, {"offset": "-4"}, {"length": "400"}, {"length": "4"}, {"offset": "9" * 30},
                     {"offset": "x"}, {"length": "-1"}):
            os.replace(self.external("data.bin", **more), self.path("models", "bad.onnx"))
            self.refuse_both(self.path("models", "bad.onnx"))

    def test_wrong_attribute(self):
        def edit(model):
            model.graph.node[0].op_type = "Transpose"
            model.graph.node[0].input.pop()
            model.graph.node[0].attribute.append(helper.make_attribute("perm", [5, -7]))

        result = self.call("run", self.edited(edit), "-o", "out")
        self.assertEqual(result.code, 1, result.stderr)
        self.assertIn("Transpose", result.stderr)
        self.assert_no_files(self.path("out"))

    def test_wrong_types_of_inputs(self):
        def edit(model):
            model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64

        result = self.call("run", self.edited(edit), "-o", "out")
        self.assertEqual(result.code, 1, result.stderr)
        self.assertTrue("MatMul" in result.stderr or "Add" in result.stderr, result.stderr)
        self.assert_no_files(self.path("out"))

    def test_wrong_shapes_inside(self):
        result = self.call("run", self.weight(dims=[5, 4]), "-o", "out")
        self.assertEqual(result.code, 1, result.stderr)
        self.assertIn("MatMul", result.stderr)
        self.assert_no_files(self.path("out"))

    def test_strings_that_are_not_text(self):
        def edit(model):
            data = model.SerializeToString().replace(b"first", b"f\xff\x1b[t")
            model.Clear()
            self.raw = data

        self.edited(edit)
        result = self.call("info", self.write("odd.onnx", self.raw))
        self.assertNotIn("\x1b", result.stdout + result.stderr)
        self.assertIn(result.code, (0, 1))

    def quickly(self, data):
        """Refused within the time and memory that hostile files may take."""
        path = self.write("hostile.onnx", data)
        code, took, peak = peak_bytes(["info", path], self.folder)
        with open(self.path("messages"), encoding="utf-8") as file:
            message = file.read()
        self.assertEqual(code, 1, message)
        self.assertIn("hostile.onnx", message)
        if "ASAN_OPTIONS" not in os.environ:
            self.assertLess(took, SECONDS, message)
            self.assertLess(peak, BYTES, message)

    HEAD = b"\x08\x08" + field(8, b"\x10\x11")  # ir_version 8, opset 17

    def test_deep_nesting(self):
        for depth in (100, 3000, 20000):
            graph = b""
            for _ in range(depth):  # a node with an attribute that is a graph
                graph = field(1, field(4, b"If") + field(5, field(1, b"then_branch") + field(6, graph)))
            self.quickly(self.HEAD + field(7, graph))

    def test_too_many_nodes(self):
        self.quickly(self.HEAD + field(7, field(1, b"") * 1_000_001))
        self.quickly(self.HEAD + field(7, field(1, field(1, b"x") + field(2, b"x") + field(4, b"Relu")) * 1_000_001))

    def test_many_dimensions(self):
        tensor = field(1, b"\x01" * 1_000_000) + b"\x10\x01" + field(8, b"w")
        self.quickly(self.HEAD + field(7, field(5, tensor)))

    def test_lengths_that_lie(self):
        for length in (2**31, 2**32 - 1, 2**63, 2**64 - 1):
            self.quickly(self.HEAD + varint(7 << 3 | 2) + varint(length) + b"abc")

    def test_endless_varint(self):
        self.quickly(self.HEAD + b"\xff" * 10000)

    def test_bit_flips(self):
        """None may crash or hang; what is still a model may run."""
        with open(self.edited(lambda model: None), "rb") as file:
            whole = file.read()
        rng = np.random.default_rng(9)
        for _ in range(60):
            data = bytearray(whole)
            for at in rng.integers(0, len(data), 3):
                data[at] ^= 1 << int(rng.integers(8))
            self.write("flip.onnx", bytes(data))
            result = self.call("info", "flip.onnx")
            self.assertIn(result.code, (0, 1), result.stderr)
            self.assertEqual(result.code == 0, not result.messages, result.stderr)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    unittest.main()
