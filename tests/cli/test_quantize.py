# SPDX-License-Identifier: Apache-2.0
"""runnel quantize: the numbers in the file against float64, the file on onnxruntime and here, and what it refuses."""

import logging
import os
import resource
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from command import CommandTest

node = helper.make_node

with open("/proc/cpuinfo", encoding="ascii") as cpuinfo:
    # Without them onnxruntime, optimising, adds pairs of products of bytes in 16 bits, which saturate.
    HAS_VNNI = not {"avx512_vnni", "avx_vnni"}.isdisjoint(cpuinfo.read().split())


def normal(rng, *shape):
    return (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:], dtype=int) or 1)).astype(np.float32)


def run(model, feed, plain=True):
    """All outputs by name. Plain: a node at a time."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, feed)))


def all_values(path, feed):
    """Everything that the nodes compute."""
    model = onnx.load(path)
    own = {output.name for output in model.graph.output}
    names = [name for row in model.graph.node for name in row.output if name and name not in own]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return {**feed, **run(model.SerializeToString(), feed)}


def tensors(path):
    return {row.name: numpy_helper.to_array(row) for row in onnx.load(path).graph.initializer}


def kinds(path):
    return [row.op_type for row in onnx.load(path).graph.node]


class QuantizeTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(11)
        os.mkdir(self.path("sets"))

    def sets(self, count, *shape):
        arrays = [self.rng.normal(size=shape).astype(np.float32) for _ in range(count)]
        for i, array in enumerate(arrays):
            self.save(f"sets/{i}.npy", array)
        return arrays

    def network(self, **more):
        """Convolutions with a normalisation, an affine end, a bounded one and a depthwise one; a residual sum, a product."""
        r = self.rng
        weights = {"w0": normal(r, 16, 3, 3, 3), "s": r.uniform(0.5, 2, 16).astype(np.float32), "t": normal(r, 16),
                   "m": normal(r, 16), "v": r.uniform(0.5, 2, 16).astype(np.float32), "w1": normal(r, 16, 16, 1, 1),
                   "b1": normal(r, 16), "k": r.uniform(0.5, 2, (16, 1, 1)).astype(np.float32),
                   "w2": normal(r, 16, 1, 3, 3), "low": np.float32(0), "high": np.float32(1.5),
                   "w3": normal(r, 16, 10), "b3": normal(r, 10)}
        nodes = [node("Conv", ["x", "w0"], ["c0"], "first", pads=[1, 1, 1, 1]),
                 node("BatchNormalization", ["c0", "s", "t", "m", "v"], ["n0"]), node("Relu", ["n0"], ["r0"]),
                 node("MaxPool", ["r0"], ["p0"], kernel_shape=[3, 3], strides=[2, 2]),
                 node("Conv", ["p0", "w1", "b1"], ["c1"], "second"), node("Mul", ["c1", "k"], ["k1"]),
                 node("Add", ["k1", "p0"], ["a1"]), node("Relu", ["a1"], ["r1"]),
                 node("Conv", ["r1", "w2"], ["c2"], "third", group=16, pads=[1, 1, 1, 1]),
                 node("Clip", ["c2", "low", "high"], ["r2"]), node("GlobalAveragePool", ["r2"], ["g"]),
                 node("Flatten", ["g"], ["f"]), node("Gemm", ["f", "w3", "b3"], ["y"], "last")]
        return self.model(nodes, [("x", "float32", ["n", 3, 15, 13])], [("y", "float32", ["n", 10])], weights, **more)

    def quantize(self, model, *arguments):
        result = self.succeed("quantize", model, "--calibrate", "sets", "-o", "q.onnx", *arguments)
        onnx.checker.check_model(onnx.load(self.path("q.onnx")), full_check=True)
        return result

    # ---- the numbers ----------------------------------------------------------------------------------------------

    def check_scales(self, model, arrays, least, ranges=None):
        """Each QuantizeLinear's scale and zero point, by the values that onnxruntime computes."""
        seen = [all_values(model, {"x": array}) for array in arrays]
        there, checked = tensors(self.path("q.onnx")), 0
        for row in onnx.load(self.path("q.onnx")).graph.node:
            if row.op_type != "QuantizeLinear":
                continue
            source = row.input[0].replace("_quantized_float", "")
            source = "r0" if source == "p0" else source  # what is only moved keeps its scale
            values = np.concatenate([one[source].astype(np.float64).ravel() for one in seen])
            low, high = ranges(values) if ranges else (values.min(), values.max())
            low, high = min(low, 0), max(high, 0)
            scale, zero = there[row.input[1]], there[row.input[2]]
            self.assertEqual(zero.dtype, np.int8 if least else np.uint8)
            self.assertLess(abs(scale - (high - low) / 255), 1e-4 * scale, source)
            self.assertLess(abs(float(zero) - (least - low / ((high - low) / 255))), 0.5 + 0.02, source)
            checked += 1
        return checked

    def test_scales(self):
        model, arrays = self.network(), self.sets(3, 2, 3, 15, 13)
        for name, least in (("u8", 0), ("s8", -128)):
            self.quantize(model, "--activations", name)
            self.assertEqual(self.check_scales(model, arrays, least), 8)
        self.assertEqual(kinds(self.path("q.onnx")).count("BatchNormalization"), 0)

    def test_weights(self):
        """Signed, symmetric, by channel, with the normalisation and the factor folded in, in float64."""
        model = self.network()
        self.sets(2, 1, 3, 15, 13)
        self.quantize(model)
        old, new = tensors(model), tensors(self.path("q.onnx"))
        wide = {name: array.astype(np.float64) for name, array in old.items()}
        factor = wide["s"] / np.sqrt(wide["v"] + 1e-5)
        rows = {"n0": (wide["w0"] * factor[:, None, None, None], wide["t"] - wide["m"] * factor, 0, "x"),
                "k1": (wide["w1"] * wide["k"][..., None], wide["b1"] * wide["k"].ravel(), 0, "p0"),
                "c2": (wide["w2"], None, 0, "r1"), "y": (wide["w3"], wide["b3"], 1, "f")}
        for name, (weight, bias, axis, x) in rows.items():
            base = name + "_quantized_weight"
            others = tuple(i for i in range(weight.ndim) if i != axis)
            np.testing.assert_allclose(new[base + "_scale"], np.abs(weight).max(others) / 127, rtol=1e-5)
            self.assertFalse(new[base + "_zero"].any())
            shape = [-1 if i == axis else 1 for i in range(weight.ndim)]
            scale = new[base + "_scale"].astype(np.float64).reshape(shape)
            self.assertLess(np.abs(new[base] * scale - weight).max(), 0.5001 * scale.max())
            self.assertTrue((np.abs(new[base] - weight / scale) < 0.501).all())
            self.assertEqual(np.abs(new[base].astype(int)).max(), 127)
            if bias is None:
                self.assertNotIn(name + "_quantized_bias", new)
                continue
            unit = scale.ravel() * new[x + "_quantized_scale"].astype(np.float64)
            np.testing.assert_allclose(new[name + "_quantized_bias_scale"], unit, rtol=1e-6)
            self.assertTrue((np.abs(new[name + "_quantized_bias"] - bias / unit) < 0.51).all())
        self.assertFalse({"w0", "w1", "w2", "w3", "b1", "b3", "s", "t", "m", "v", "k"} & set(new))

    def layer_bound(self, weight, x, new, x_name, y_name, name, steps):
        """|error| <= sum of |w| * step of x / 2 + (|x| + step / 2) * step of w / 2, the bias's step, and the output's."""
        sx = float(new[x_name + "_quantized_scale"])
        sw = new[name + "_quantized_weight_scale"].astype(np.float64)
        bound = np.abs(weight).sum(0) * sx / 2 + (np.abs(x).sum(1, keepdims=True) + len(weight) * sx / 2) * sw / 2
        return bound + sx * sw / 2 + (float(new[y_name + "_quantized_scale"]) * steps if y_name else 0) + 1e-5

    def test_bound_of_a_layer(self):
        """One product and one 1x1 convolution, within what rounding can do at most, on onnxruntime and here."""
        weight, bias = normal(self.rng, 24, 20), normal(self.rng, 20)
        for kind in ("Gemm", "Conv"):
            shape = (9, 24) if kind == "Gemm" else (9, 24, 1, 1)
            numbers = weight if kind == "Gemm" else np.ascontiguousarray(weight.T).reshape(20, 24, 1, 1)
            model = self.model([node(kind, ["x", "w", "b"], ["y"])], [("x", "float32", shape)],
                               [("y", "float32", (9, 20, 1, 1)[:len(shape)])], {"w": numbers, "b": bias})
            x, = self.sets(1, *shape)
            expected = x.reshape(9, 24).astype(np.float64) @ weight + bias
            for activations in ("u8", "s8"):
                self.quantize(model, "--activations", activations)
                new = tensors(self.path("q.onnx"))
                bound = self.layer_bound(weight, x.reshape(9, 24), new, "x", "y" if kind == "Conv" else None, "y", 0.51)
                got = {"onnxruntime": run(self.path("q.onnx"), {"x": x})["y"],
                       "runnel": self.outputs("q.onnx", "-i", "sets/0.npy")["y"]}
                if HAS_VNNI:
                    got["fused"] = run(self.path("q.onnx"), {"x": x}, plain=False)["y"]
                for engine, values in got.items():
                    error = np.abs(values.reshape(9, 20) - expected)
                    self.assertTrue((error <= bound).all(), f"{kind} {activations} {engine}: {(error / bound).max()}")
                    self.assertGreater(error.max(), 1e-4, "it is not quantised")

    def test_against_onnxruntimes_quantiser(self):
        from onnxruntime.quantization import CalibrationDataReader, QuantType, quant_pre_process, quantize_static

        class Reader(CalibrationDataReader):
            def __init__(self, arrays):
                self.left = [{"x": array} for array in arrays]

            def get_next(self):
                return self.left.pop() if self.left else None

        model, arrays = self.network(), self.sets(4, 2, 3, 15, 13)
        self.quantize(model)
        logging.disable(logging.WARNING)  # the quantiser's advice
        self.addCleanup(logging.disable, logging.NOTSET)
        quant_pre_process(model, self.path("folded.onnx"), skip_symbolic_shape=True)
        quantize_static(self.path("folded.onnx"), self.path("theirs.onnx"), Reader(arrays), per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        errors = {}
        for name in ("q.onnx", "theirs.onnx"):
            pairs = [(run(model, {"x": x})["y"], run(self.path(name), {"x": x})["y"]) for x in arrays]
            errors[name] = np.sqrt(sum(((a - b) ** 2).sum() for a, b in pairs) / sum((a ** 2).sum() for a, _ in pairs))
        self.assertLess(errors["q.onnx"], errors["theirs.onnx"])
        self.assertLess(errors["q.onnx"], 0.05)

    def test_runs_on_integers_here(self):
        model, arrays = self.network(), self.sets(2, 1, 3, 15, 13)
        self.quantize(model)
        got = self.outputs("q.onnx", "-i", "sets/0.npy")["y"]
        np.testing.assert_allclose(got, run(self.path("q.onnx"), {"x": arrays[0]})["y"], rtol=0, atol=0.02)
        lines = self.succeed("info", "q.onnx", "--shape", "x=1x3x15x13", "--device", "cpu").lines
        self.assertFalse([line for line in lines if line.startswith("operator Conv") and " conv:" in line], lines)

    def test_ranges(self):
        """Percentile: what numpy cuts off, within a step of what is counted; mse: no worse than all, by counting errors."""
        model = self.model([node("MatMul", ["x", "w"], ["y"])], [("x", "float32", (20, 500))],
                           [("y", "float32", (20, 7))], {"w": normal(self.rng, 500, 7)})
        arrays = self.sets(3, 20, 500)
        for i, array in enumerate(arrays):
            array[0, 0] = 50 * (i - 1) # far out
            self.save(f"sets/{i}.npy", array)
        values = np.concatenate(arrays).ravel()
        bin_width = (values.max() - values.min()) / 2048
        self.quantize(model, "--ranges", "percentile", "--percentile", "99")
        low, high = np.percentile(values, [0.5, 99.5])
        new = tensors(self.path("q.onnx"))
        scale, zero = float(new["x_quantized_scale"]), float(new["x_quantized_zero"])
        self.assertLess(abs(scale * 255 - (high - low)), 2 * bin_width)
        self.assertLess(abs(-zero * scale - low), bin_width + scale / 2)

        def squared_error(new):
            scale, zero = float(new["x_quantized_scale"]), float(new["x_quantized_zero"])
            back = (np.clip(np.rint(values / scale) + zero, 0, 255) - zero) * scale
            return ((back - values) ** 2).sum()

        errors = {}
        for kind in ("minmax", "mse"):
            self.quantize(model, "--ranges", kind)
            errors[kind] = squared_error(tensors(self.path("q.onnx")))
        self.assertLess(errors["mse"], errors["minmax"])

    # ---- which layers ---------------------------------------------------------------------------------------------

    def test_kept_layers(self):
        model, arrays = self.network(), self.sets(2, 1, 3, 15, 13)
        result = self.quantize(model, "--keep", "second", "--keep", "last")
        self.assertIn("2 of 4 layers quantised", result.stdout)
        self.assertIn("(float32)", result.line([line for line in result.lines if "second" in line][0]))
        new = onnx.load(self.path("q.onnx"))
        made = {name: row.op_type for row in new.graph.node for name in row.output}
        of = {row.name: made.get(row.input[1]) for row in new.graph.node if row.op_type in ("Conv", "Gemm")}
        self.assertEqual(of, {"first": "DequantizeLinear", "second": None, "third": "DequantizeLinear", "last": None})
        self.assertEqual(run(self.path("q.onnx"), {"x": arrays[0]})["y"].shape, (1, 10))

    def test_error_limit(self):
        """A layer with one huge weight in its input's range costs most: it stays in float32, and the limit holds."""
        r = self.rng
        weights = {"k": np.ones(12, np.float32), "w0": normal(r, 12, 12), "w1": normal(r, 12, 12), "w2": normal(r, 12, 9)}
        weights["k"][0] = 3000
        weights["w1"][0] = 0
        model = self.model([node("MatMul", ["x", "w0"], ["a"], "good"), node("Mul", ["a", "k"], ["b"]),
                            node("MatMul", ["b", "w1"], ["c"], "bad"), node("Tanh", ["c"], ["d"]),
                            node("MatMul", ["d", "w2"], ["y"], "end")],
                           [("x", "float32", (8, 12))], [("y", "float32", (8, 9))], weights)
        arrays = self.sets(3, 8, 12)
        worst = float(self.quantize(model).line("output y:").split("relative ")[1].split(";")[0])
        self.assertGreater(worst, 0.1)
        result = self.quantize(model, "--max-error", "0.03")
        self.assertIn("2 of 3 layers quantised", result.stdout)
        self.assertIn("bad (float32)", result.stdout)
        pairs = [(run(model, {"x": x})["y"], run(self.path("q.onnx"), {"x": x})["y"]) for x in arrays]
        error = np.sqrt(sum(((a - b) ** 2).sum() for a, b in pairs) / sum((a ** 2).sum() for a, _ in pairs))
        self.assertLess(error, 0.031)
        said = float(result.line("output y:").split("relative ")[1].split(";")[0])
        self.assertLess(abs(said - error), 0.003)
        self.refuse("--max-error 1e-05: not reached with any layer quantised",
                    arguments=["quantize", model, "--calibrate", "sets", "--max-error", "0.00001"])

    # ---- other models ---------------------------------------------------------------------------------------------

    def test_older_opsets(self):
        """Attributes that became inputs: the float32 values are those of the file as it was."""
        r = self.rng
        nodes = [node("Pad", ["x"], ["p"], pads=[0, 0, 1, 1, 0, 0, 1, 1], value=0.5), node("Conv", ["p", "w"], ["c"]),
                 node("Clip", ["c"], ["b"], max=1.25), node("Slice", ["b"], ["s"], starts=[1, 0], ends=[6, 5], axes=[2, 3]),
                 node("Split", ["s"], ["s0", "s1"], axis=1, split=[3, 5]), node("ReduceSum", ["s0"], ["q"], axes=[2]),
                 node("Squeeze", ["q"], ["f"], axes=[2]), node("Unsqueeze", ["s1"], ["u"], axes=[0]),
                 node("Dropout", ["f"], ["d"], ratio=0.25), node("TopK", ["d"], ["t", "i"], axis=2, k=2),
                 node("Softmax", ["t"], ["y"], axis=2), node("Identity", ["u"], ["z"])]
        model = self.model(nodes, [("x", "float32", (2, 3, 9, 7))],
                           [("y", "float32", (2, 3, 2)), ("z", "float32", (1, 2, 5, 5, 5))],
                           {"w": normal(r, 8, 3, 3, 3)}, opset=9)
        x, = self.sets(1, 2, 3, 9, 7)
        self.quantize(model)
        self.assertEqual(onnx.load(self.path("q.onnx")).opset_import[0].version, 13)
        expected, got = run(model, {"x": x}), run(self.path("q.onnx"), {"x": x})
        here = self.outputs("q.onnx", "-i", "sets/0.npy")
        for name in ("y", "z"):
            self.assertLess(np.abs(expected[name] - got[name]).max(), 0.05, name)
            self.assertLess(np.abs(expected[name] - here[name]).max(), 0.05, name)
        model = self.model([node("MatMul", ["x", "w"], ["c"]), node("Softmax", ["c"], ["y"], "over")],
                           [("x", "float32", (2, 3, 6))], [("y", "float32", (2, 3, 4))], {"w": normal(r, 6, 4)}, opset=11)
        os.unlink(self.path("sets/0.npy"))
        self.sets(1, 2, 3, 6)
        self.refuse("opset 11", "Softmax 'over'", "unless it goes over the last dimension",
                    arguments=["quantize", model, "--calibrate", "sets"])

    def test_several_inputs_and_a_graph_within(self):
        """Sets are folders; an If reads a convolution's result, which is an output, too; unknown parts stay."""
        r = self.rng
        inner = [helper.make_graph([node(kind, ["c"], [kind + "_out"])], kind, [],
                                   [helper.make_tensor_value_info(kind + "_out", TensorProto.FLOAT, (1, 4, 5, 5))])
                 for kind in ("Relu", "Neg")]
        nodes = [node("Conv", ["a/b", "w"], ["c"], "layer", pads=[1, 1, 1, 1]),
                 node("If", ["flag"], ["y"], then_branch=inner[0], else_branch=inner[1])]
        nodes[0].doc_string = "kept"
        model = self.model(nodes, [("a/b", "float32", (1, 2, 5, 5)), ("flag", "bool", ())],
                           [("y", "float32", (1, 4, 5, 5)), ("c", "float32", (1, 4, 5, 5))],
                           {"w": normal(r, 4, 2, 3, 3)}, metadata={"classes": "a,b"})
        with open(model, "ab") as file:
            file.write(b"\xfa\x07\x03new")  # field 127, which no version of ONNX has
        for i in range(2):
            os.mkdir(self.path(f"sets/{i}"))
            self.save(f"sets/{i}/a_b.npy", r.normal(size=(1, 2, 5, 5)).astype(np.float32))
            self.save(f"sets/{i}/flag.npy", np.array(i == 0))
        self.quantize(model)
        new = onnx.load(self.path("q.onnx"))
        self.assertEqual([row.value for row in new.metadata_props], ["a,b"])
        self.assertIn("kept", [row.doc_string for row in new.graph.node])
        with open(self.path("q.onnx"), "rb") as file:
            self.assertIn(b"\xfa\x07\x03new", file.read())
        for i in range(2):
            feed = {"a/b": np.load(self.path(f"sets/{i}/a_b.npy")), "flag": np.array(i == 0)}
            expected, got = run(model, feed), run(self.path("q.onnx"), feed)
            here = self.outputs("q.onnx", "-i", f"a/b=sets/{i}/a_b.npy", "-i", f"flag=sets/{i}/flag.npy")
            for name in ("y", "c"):
                self.assertLess(np.abs(expected[name] - got[name]).max(), 0.05)
                self.assertLess(np.abs(expected[name] - here[name]).max(), 0.05)
        os.unlink(self.path("sets/1/flag.npy"))
        self.refuse("sets/1: no file for input 'flag'", arguments=["quantize", model, "--calibrate", "sets"])
        self.save("sets/2.npy", np.zeros(3, np.float32))
        os.rename(self.path("sets/1"), self.path("sets/.1"))
        self.refuse("sets/2.npy: the model has 2 inputs", arguments=["quantize", model, "--calibrate", "sets"])

    def test_weights_in_another_file(self):
        model = self.model([node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["a", "v"], ["b"], "kept"),
                            node("Add", ["b", "c"], ["y"])], [("x", "float32", (3, 40))], [("y", "float32", (3, 30))],
                           {"w": normal(self.rng, 40, 50), "v": normal(self.rng, 50, 30), "c": normal(self.rng, 3, 30)})
        x, = self.sets(1, 3, 40)
        expected = run(model, {"x": x})["y"]
        onnx.save(onnx.load(model), self.path("model.onnx"), save_as_external_data=True, location="data.bin",
                  size_threshold=0)
        self.quantize("model.onnx", "--keep", "kept")
        os.unlink(self.path("data.bin"))
        self.assertLess(np.abs(run(self.path("q.onnx"), {"x": x})["y"] - expected).max(), 0.05)

    def test_edges(self):
        """Zero weights, a channel of zeros with a huge bias, values that are always zero, Constant nodes, a shared weight."""
        w = normal(self.rng, 6, 5)
        w[:, 2] = 0
        constant = node("Constant", [], ["w"], value=numpy_helper.from_array(w))
        bias = np.array([0, 1e-9, 4e4, -1, 1], np.float32)
        model = self.model([constant, node("Gemm", ["x", "w", "b"], ["g"]), node("Mul", ["x", "nought"], ["n"]),
                            node("Gemm", ["n", "w", "b"], ["h"]), node("MatMul", ["x", "zeros"], ["m"]),
                            node("Add", ["g", "h"], ["s"]), node("Add", ["s", "m"], ["y"])],
                           [("x", "float32", (4, 6))], [("y", "float32", (4, 5))],
                           {"b": bias, "nought": np.float32(0), "zeros": np.zeros((6, 5), np.float32)})
        x, = self.sets(1, 4, 6)
        self.quantize(model)
        self.assertNotIn("Constant", kinds(self.path("q.onnx")))
        expected = run(model, {"x": x})["y"]
        for got in (run(self.path("q.onnx"), {"x": x})["y"], self.outputs("q.onnx", "-i", "sets/0.npy")["y"]):
            self.assertTrue((np.abs(got - expected) <= 0.05 + 1e-5 * np.abs(expected)).all(), got - expected)

    # ---- what it refuses -------------------------------------------------------------------------------------------

    def small(self, **more):
        """A product from x [2,6] to y."""
        return self.model([node("MatMul", ["x", "w"], ["y"], "product")], [("x", "float32", (2, 6))],
                          [("y", "float32", (2, 4))], {"w": normal(self.rng, 6, 4)}, **more)

    def refuse_sets(self, *parts, model=None):
        before = sorted(os.listdir(self.folder))
        result = self.refuse(*parts, arguments=["quantize", model or self.path("model.onnx"), "--calibrate", "sets",
                                                "-o", "q.onnx"])
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        self.assertLess(len(result.messages), 3, result.stderr)

    def test_refused_inputs(self):
        self.small()
        self.refuse_sets("calibration folder sets is empty")
        self.refuse("calibration folder nowhere: No such file or directory",
                    arguments=["quantize", "model.onnx", "--calibrate", "nowhere"])
        self.write("sets/a.npy", b"no array")
        self.refuse_sets("sets/a.npy: neither a .npy file nor a PNG or JPEG picture")
        self.save("sets/a.npy", np.zeros((2, 5), np.float32))
        self.refuse_sets("sets/a.npy: float32 [2,5] does not fit input 'x', which is float32 [2,6]")
        self.save("sets/a.npy", np.zeros((2, 6), np.float64))
        self.refuse_sets("sets/a.npy: float64 [2,6] does not fit input 'x'")
        for number, text in ((np.nan, "NaN"), (-np.inf, "infinite")):
            array = np.zeros((2, 6), np.float32)
            array[1, 1] = number
            self.save("sets/a.npy", array)
            self.refuse_sets(f"sets/a.npy: element 7 is {text}")
        self.save("sets/a.npy", np.full((2, 6), 3e38, np.float32))
        self.model([node("Mul", ["x", "k"], ["big"]), node("MatMul", ["big", "w"], ["y"])],
                   [("x", "float32", (2, 6))], [("y", "float32", (2, 4))],
                   {"w": normal(self.rng, 6, 4), "k": np.float32(10)})
        self.refuse_sets("value 'big' holds infinity at element 0", "running on sets/a.npy")

    def test_refused_models(self):
        self.sets(1, 2, 6)
        self.small()
        self.quantize("model.onnx")
        self.refuse_sets("q.onnx is quantised already: it has QuantizeLinear", model="q.onnx")
        self.refuse_sets("no layer that can be quantised", model=self.relu((2, 6), name="relu.onnx"))
        self.refuse_sets("opset 8, and quantising needs 9", model=self.small(opset=8, name="old.onnx"))
        self.refuse_sets("nothing.onnx", model="nothing.onnx")

    def test_refused_outputs(self):
        self.sets(1, 2, 6)
        model = self.small()
        os.symlink(model, self.path("link.onnx"))
        for output, *parts in (("model.onnx", "is the model itself"), ("link.onnx", "is the model itself"),
                               ("sets", "is a folder"), ("nowhere/q.onnx", "No such file or directory")):
            self.refuse(f"output {output}", *parts,
                        arguments=["quantize", "model.onnx", "--calibrate", "sets", "-o", output])
        self.assertEqual(sorted(os.listdir(self.folder)), ["link.onnx", "model.onnx", "sets"])

    def test_full_disk(self):
        """A limit on the size of files stands for a disk without room: no part of a model, and what was there stays."""
        self.sets(1, 2, 1600)
        self.model([node("MatMul", ["x", "w"], ["y"])], [("x", "float32", (2, 1600))], [("y", "float32", (2, 1500))],
                   {"w": normal(self.rng, 1600, 1500)})
        self.quantize("model.onnx")
        with open(self.path("q.onnx"), "rb") as file:
            before = file.read()
        self.refuse("cannot write q.onnx", arguments=["quantize", "model.onnx", "--calibrate", "sets", "-o", "q.onnx"],
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20)))
        with open(self.path("q.onnx"), "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(sorted(os.listdir(self.folder)), ["model.onnx", "q.onnx", "sets"])

    def test_usage(self):
        for parts, arguments in ((["--calibrate is missing"], []), (["--percentile needs --ranges percentile"],
                                 ["--calibrate", "sets", "--percentile", "99"]),
                                 (["--ranges all: neither"], ["--calibrate", "sets", "--ranges", "all"]),
                                 (["--max-error 2: not a number"], ["--calibrate", "sets", "--max-error", "2"]),
                                 (["--activations u4: neither"], ["--calibrate", "sets", "--activations", "u4"])):
            self.misuse(*parts, arguments=["quantize", "model.onnx", *arguments], command="quantize")
        self.sets(1, 2, 6)
        self.small()
        self.refuse("--keep other: no layer that can be quantised has this name",
                    arguments=["quantize", "model.onnx", "--calibrate", "sets", "--keep", "other"])


if __name__ == "__main__":
    unittest.main()
