# SPDX-License-Identifier: Apache-2.0
"""The operators of ai.onnx.ml against onnxruntime, and against numpy where that says nothing."""

import os
import sys
import unittest

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402


def model(op_type, arrays, version, attributes):
    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(op_type, names, ["y"], domain="ai.onnx.ml", **attributes)
    inputs = [helper.make_tensor_value_info(n, runnel.CODES[a.dtype], a.shape) for n, a in zip(names, arrays)]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)])
    graph.output[0].ClearField("type")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), dict(zip(names, arrays))


def forest(random, trees, depth, features, targets, dtype, member=False, missing=False):
    """Full trees with random thresholds; the attributes of TreeEnsemble."""
    nodes = {k: [] for k in ("featureids", "modes", "splits", "truenodeids", "falsenodeids", "trueleafs", "falseleafs",
                             "missing_value_tracks_true")}
    leaves, roots, members = [], [], []
    for _ in range(trees):
        base, count = len(nodes["modes"]), 2**depth - 1
        roots.append(base)
        for i in range(count):
            mode = 6 if member and i == 1 else int(random.integers(0, 6))
            nodes["featureids"].append(int(random.integers(0, features)))
            nodes["modes"].append(mode)
            nodes["splits"].append(float(random.integers(-2, 3)))
            nodes["missing_value_tracks_true"].append(int(missing and random.integers(0, 2)))
            if mode == 6:
                members += [-1.0, 0.0, 2.0, np.nan]
            for side, child in (("true", 2 * i + 1), ("false", 2 * i + 2)):
                leaf = child >= count
                nodes[f"{side}leafs"].append(int(leaf))
                nodes[f"{side}nodeids"].append(len(leaves) if leaf else base + child)
                if leaf:
                    leaves.append((float(random.standard_normal()), int(random.integers(0, targets))))
    code = runnel.CODES[np.dtype(dtype)]
    attributes = {f"nodes_{k}": v for k, v in nodes.items() if k not in ("modes", "splits")}
    attributes["nodes_modes"] = helper.make_tensor("m", TensorProto.UINT8, [len(nodes["modes"])], nodes["modes"])
    attributes["nodes_splits"] = helper.make_tensor("s", code, [len(nodes["splits"])], nodes["splits"])
    attributes["leaf_weights"] = helper.make_tensor("w", code, [len(leaves)], [w for w, _ in leaves])
    attributes.update(leaf_targetids=[t for _, t in leaves], tree_roots=roots, n_targets=targets)
    if members:
        attributes["membership_values"] = helper.make_tensor("v", code, [len(members)], members)
    return attributes


class MlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.random = np.random.default_rng(23)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def run_here(self, op_type, arrays, version, attributes):
        data, feed = model(op_type, arrays, version, attributes)
        session = runnel.Session(self.device, data)
        try:
            return session.run(feed)["y"]
        finally:
            session.close()

    def check(self, op_type, *arrays, version=3, expected=None, **attributes):
        got = self.run_here(op_type, arrays, version, attributes)
        if expected is None:
            data, feed = model(op_type, arrays, version, attributes)
            expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feed)[0]
        self.assertEqual(got.dtype, expected.dtype)
        self.assertEqual(got.shape, expected.shape)
        bound = 1e-10 if got.dtype == np.float64 else 2e-6
        np.testing.assert_allclose(got, expected, rtol=bound, atol=bound)

    def features(self, *shape, dtype=np.float32):
        return (self.random.standard_normal(shape) * 3).astype(dtype)

    def test_array_feature_extractor(self):
        for dtype in (np.float32, np.int64, np.int32):
            x = self.features(3, 5, dtype=dtype)
            self.check("ArrayFeatureExtractor", x, np.array([[4, 0, 4]]), expected=x[:, [4, 0, 4]])
        x = self.features(2, 3, 4)
        self.check("ArrayFeatureExtractor", x, np.array([1]), expected=x[..., [1]])
        self.check("ArrayFeatureExtractor", x[0, 0], np.array([1, 3]), expected=x[0, :1, [1, 3]].reshape(1, 2))

    def test_binarizer(self):
        x = np.array([[0.5, 1, 1.5, np.nan, np.inf, -np.inf]], np.float32)
        self.check("Binarizer", x, threshold=1.0, expected=np.array([[0, 0, 1, 0, 1, 0]], np.float32))
        x = self.features(3, 7, dtype=np.int64)
        self.check("Binarizer", x, threshold=0.5, expected=(x > 0.5).astype(np.int64))

    def test_scaler(self):
        for dtype in (np.float32, np.int64):
            x = self.features(3, 4, dtype=dtype)
            self.check("Scaler", x, offset=[1.0, -2.0, 0.5, 0.0], scale=[2.0, 0.1, 3.0, 1.0])
            self.check("Scaler", x, offset=[0.3], scale=[1.7])
        with self.assertRaises(runnel.Failure):
            self.check("Scaler", x, offset=[1.0, 2.0], scale=[1.0])

    def test_normalizer(self):
        x = self.features(4, 5)
        x[2] = 0
        for norm, size in (("MAX", np.abs(x).max(1)), ("L1", np.abs(x).sum(1)), ("L2", np.sqrt((x * x).sum(1)))):
            self.check("Normalizer", x, norm=norm, expected=x / np.maximum(size, 1e-30)[:, None])

    def test_linear_regressor(self):
        coefficients = [float(v) for v in self.features(6)]
        for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
            self.check("LinearRegressor", self.features(5, 3), coefficients=coefficients, intercepts=[0.5, -1.5],
                       targets=2, post_transform=transform)
        x = self.features(5, 6, dtype=np.int64)
        self.check("LinearRegressor", x, coefficients=coefficients,
                   expected=(x @ np.array(coefficients)[:, None]).astype(np.float32))
        with self.assertRaises(runnel.Failure):
            self.check("LinearRegressor", self.features(5, 3), coefficients=coefficients, targets=2,
                       post_transform="PROBIT")

    def both(self, op_type, x, version=3, **attributes):
        """Labels and scores here and by onnxruntime."""
        nodes = [helper.make_node(op_type, ["x"], ["label", "score"], domain="ai.onnx.ml", **attributes)]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", runnel.CODES[x.dtype], x.shape)],
                                  [helper.make_tensor_value_info("label", TensorProto.INT64, None),
                                   helper.make_tensor_value_info("score", TensorProto.FLOAT, None)])
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
        data = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
        session = runnel.Session(self.device, data)
        try:
            got = session.run({"x": x})
        finally:
            session.close()
        expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})
        return [got["label"], got["score"]], expected

    def test_linear_classifier(self):
        for classes, labels in ((1, [-7, 2**40]), (2, [5, 3]), (5, [9, -1, 4, 4, 0])):
            coefficients = [float(v) for v in self.features(3 * classes)]
            intercepts = [float(v) for v in self.features(classes)]
            for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
                for dtype in (np.float32, np.int64, np.float64):
                    got, expected = self.both("LinearClassifier", self.features(17, 3, dtype=dtype), post_transform=transform,
                                              coefficients=coefficients, intercepts=intercepts, classlabels_ints=labels)
                    np.testing.assert_array_equal(got[0], expected[0])
                    np.testing.assert_allclose(got[1], expected[1], rtol=2e-6, atol=2e-6)
                    self.assertEqual((got[0].dtype, got[1].dtype), (np.int64, np.float32))
        right = {"coefficients": [1.0] * 6, "intercepts": [0.0, 1.0], "classlabels_ints": [1, 2]}
        for wrong in ({"coefficients": [1.0]}, {"intercepts": [0.0]}, {"classlabels_ints": [1]}, {"post_transform": "PROBIT"}):
            with self.assertRaises(runnel.Failure):
                self.run_here("LinearClassifier", [self.features(5, 3)], 3, {**right, **wrong})
        strings = {"coefficients": [1.0] * 6, "intercepts": [0.0, 1.0], "classlabels_strings": ["a", "b"]}
        with self.assertRaisesRegex(runnel.Failure, "strings"):
            self.run_here("LinearClassifier", [self.features(5, 3)], 3, strings)
        label = self.run_here("LinearClassifier", [np.zeros((0, 3), np.float32)], 3, right)
        self.assertEqual((label.shape, label.dtype), ((0,), np.int64))

    def test_label_encoder(self):
        x = self.random.integers(-4, 9, (3, 1, 37))
        keys, values = [7, -3, 0, 2**62, 5], [10, 20, -(2**60), 40, 50]
        self.check("LabelEncoder", x, keys_int64s=keys, values_int64s=values, default_int64=-9)
        self.check("LabelEncoder", x, keys_int64s=keys, values_int64s=values)
        self.check("LabelEncoder", x, keys_int64s=keys, values_floats=[0.5, np.inf, -1.5, 2.0, np.nan], default_float=3.25)
        self.check("LabelEncoder", x[0, 0], version=2, keys_int64s=keys, values_floats=[0.5, 1.0, -1.5, 2.0, 4.0])
        self.check("LabelEncoder", np.array(7), version=2, keys_int64s=keys, values_int64s=values, expected=np.array(10))
        x = self.random.choice(np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, 1.5, 2.5], np.float32), (5, 41))
        keys = [np.nan, 2.5, 0.0, np.inf, -np.inf, 1e-45]
        table = dict(zip(keys[1:], range(1, 6)))
        expected = np.vectorize(lambda v: 0 if np.isnan(v) else table.get(np.float32(v), -1))(x)
        self.check("LabelEncoder", x, keys_floats=keys, values_int64s=list(range(6)),
                   expected=np.where(x == np.float32(1e-45), 5, expected))

    def test_label_encoder_of_tensors(self):
        kinds = [(TensorProto.INT16, np.int16), (TensorProto.INT32, np.int32), (TensorProto.INT64, np.int64),
                 (TensorProto.FLOAT, np.float32), (TensorProto.DOUBLE, np.float64)]
        keys, values = [3, 1, -2], [100, -7, 0]
        for key_code, key_type in kinds:
            for code, kind in kinds:
                x = self.random.integers(-3, 5, (7, 9)).astype(key_type)
                expected = np.select([x == k for k in keys], values, 55).astype(kind)
                self.check("LabelEncoder", x, version=4, keys_tensor=helper.make_tensor("k", key_code, [3], keys),
                           values_tensor=helper.make_tensor("v", code, [3], values),
                           default_tensor=helper.make_tensor("d", code, [1], [55]), expected=expected)

    def test_wrong_labels(self):
        x = np.zeros(3, np.int64)
        for wrong in ({"keys_int64s": [1, 2], "values_int64s": [1]}, {"keys_floats": [1.0], "values_int64s": [1]},
                      {"keys_int64s": [1]}, {"keys_int64s": [1], "values_strings": ["a"]},
                      {"keys_int64s": [1], "values_int64s": [2], "default_tensor": helper.make_tensor("d", 1, [1], [2.0])}):
            with self.assertRaises(runnel.Failure):
                self.run_here("LabelEncoder", [x], 4, wrong)

    def test_trees(self):
        for dtype in (np.float32, np.float64):
            for aggregate in (0, 1):
                attributes = forest(self.random, 7, 3, 5, 3, dtype)
                x = self.random.integers(-3, 4, (19, 5)).astype(dtype)
                self.check("TreeEnsemble", x, version=5, aggregate_function=aggregate, **attributes)

    def test_trees_with_sets_and_missing_values(self):
        attributes = forest(self.random, 4, 3, 4, 2, np.float32, member=True, missing=True)
        x = self.random.integers(-3, 4, (33, 4)).astype(np.float32)
        x[::5, 1] = np.nan
        self.check("TreeEnsemble", x, version=5, **attributes)

    def test_least_and_most(self):
        x = self.random.integers(-3, 4, (9, 4)).astype(np.float32)
        for targets, aggregate in ((1, 2), (1, 3), (3, 2), (3, 3)):
            attributes = forest(self.random, 3, 2, 4, targets, np.float32)
            self.check("TreeEnsemble", x, version=5, aggregate_function=aggregate, **attributes)

    def test_transformed_trees(self):
        """onnxruntime takes the numbers of softmax and the logistic function for each other."""
        attributes = forest(self.random, 3, 2, 4, 3, np.float32)
        x = self.random.integers(-3, 4, (9, 4)).astype(np.float32)
        scores = self.run_here("TreeEnsemble", [x], 5, attributes)
        powers = np.exp(scores)
        for transform, expected in ((1, powers / powers.sum(1, keepdims=True)), (2, 1 / (1 + 1 / powers))):
            self.check("TreeEnsemble", x, version=5, post_transform=transform, expected=expected, **attributes)

    def regressor(self, trees, depth, features, targets):
        """Full trees whose nodes come in any order, and leaves with up to two weights."""
        names = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
                 "missing_value_tracks_true")
        rows, weights = [], []
        modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
        for tree in range(trees):
            inner = 2**depth - 1
            for i in range(2 * inner + 1):
                leaf = i >= inner
                rows.append((tree, i + 3, int(self.random.integers(0, features)),
                             "LEAF" if leaf else modes[self.random.integers(0, 6)], float(self.random.integers(-2, 3)),
                             0 if leaf else 2 * i + 4, 0 if leaf else 2 * i + 5, int(self.random.integers(0, 2))))
                if leaf:
                    weights += [(tree, i + 3, int(t), float(self.random.standard_normal()))
                                for t in self.random.permutation(targets)[:2]]
        rows = [rows[i] for i in np.concatenate([t * (2**(depth + 1) - 1) + np.r_[0, 1 + self.random.permutation(
            2**(depth + 1) - 2)] for t in range(trees)])] # onnxruntime takes a tree's first node as its root
        attributes = {f"nodes_{name}": list(column) for name, column in zip(names, zip(*rows))}
        for name, column in zip(("treeids", "nodeids", "ids", "weights"), zip(*weights)):
            attributes[f"target_{name}"] = list(column)
        return {**attributes, "n_targets": targets}

    def test_tree_regressor(self):
        for aggregate, targets in (("SUM", 1), ("AVERAGE", 3), ("MIN", 2), ("MAX", 1)):
            attributes = self.regressor(5, 3, 4, targets)
            x = self.random.integers(-3, 4, (21, 4)).astype(np.float32)
            x[::6, 1] = np.nan
            self.check("TreeEnsembleRegressor", x, aggregate_function=aggregate, **attributes)
        self.check("TreeEnsembleRegressor", x, base_values=[0.75], **attributes)
        self.check("TreeEnsembleRegressor", x.astype(np.float64), **attributes)
        with self.assertRaises(runnel.Failure):
            self.run_here("TreeEnsembleRegressor", [x], 3, {**attributes, "post_transform": "LOGISTIC"})
        with self.assertRaises(runnel.Failure):
            self.run_here("TreeEnsembleRegressor", [x], 3, {**attributes, "target_nodeids":
                                                            [99] * len(attributes["target_nodeids"])})

    def test_wrong_trees(self):
        x = self.random.integers(-3, 4, (9, 4)).astype(np.float32)
        right = forest(self.random, 2, 2, 4, 2, np.float32)
        for name, value in (("tree_roots", [0, 6]), ("nodes_featureids", [0, 1, 2, 3, 4, 0]),
                            ("leaf_targetids", [0, 1, 0, 1, 0, 1, 0, 2]), ("nodes_truenodeids", [9] * 6),
                            ("nodes_falseleafs", [0, 1]), ("nodes_falsenodeids", [-1] * 6)):
            with self.subTest(name=name), self.assertRaises(runnel.Failure):
                self.run_here("TreeEnsemble", [x], 5, {**right, name: value})
        ring = {**right, "nodes_truenodeids": [0] * 6, "nodes_falsenodeids": [0] * 6, "nodes_trueleafs": [0] * 6,
                "nodes_falseleafs": [0] * 6}
        self.assertTrue((self.run_here("TreeEnsemble", [x], 5, ring) == 0).all())


if __name__ == "__main__":
    unittest.main(verbosity=2)
