# SPDX-License-Identifier: Apache-2.0
"""Large tables of which a run reads a few rows stay in the model's file, wherever in it they begin."""

import os
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

SMALL = bool(os.environ.get("RUNNEL_TEST_SMALL"))
BYTES = 5 << 20  # above what shares a block
INDICES = np.array([[0, 1, -1, 7], [5, 5, -3, 2]], np.int64)


def table_model(table, nodes, outputs, doc):
    graph = helper.make_graph(
        nodes, "tables", [helper.make_tensor_value_info("i", TensorProto.INT64, [None, None])],
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(table.dtype), None) for name in outputs],
        [numpy_helper.from_array(table, "table")])
    # What stands in front of the table moves it in the file.
    return helper.make_model(graph, producer_name="p" * doc, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class MappedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.device.close()
        cls.folder.cleanup()

    def run_file(self, model, indices=INDICES, **options):
        path = os.path.join(self.folder.name, "model.onnx")
        onnx.save_model(model, path, **options)
        session = runnel.Session(self.device, path)
        try:
            return session.run({"i": indices}), session.model_stats().weight_bytes
        finally:
            session.close()

    def table(self, dtype, columns):
        rows = BYTES // (columns * np.dtype(dtype).itemsize) + 1
        return np.random.default_rng(columns).integers(-99, 100, (rows, columns)).astype(dtype)

    def test_alignments_and_types(self):
        gather = helper.make_node("Gather", ["table", "i"], ["y"])
        weights = []
        for doc, dtype, columns in [(0, np.float32, 67), (1, np.float32, 64), (2, np.float32, 16), (3, np.float16, 33),
                                    (1, np.int8, 130), (1, np.float32, 15)][:2 if SMALL else None]:
            table = self.table(dtype, columns)
            got, used = self.run_file(table_model(table, [gather], ["y"], doc))
            np.testing.assert_array_equal(got["y"], table[INDICES], f"{doc} {dtype.__name__} {columns}")
            weights.append(used)
        # Where memory is shared, the tables take none; a row of 15 is too short.
        self.assertTrue(set(weights[:5]) == {0} or min(weights) > BYTES, weights)
        self.assertTrue(SMALL or weights[-1] > BYTES, weights)

    def test_in_files_of_its_own(self):
        table = self.table(np.float32, 65)
        got, _ = self.run_file(table_model(table, [helper.make_node("Gather", ["table", "i"], ["y"])], ["y"], 0),
                               save_as_external_data=True, location="table.bin", size_threshold=0)
        np.testing.assert_array_equal(got["y"], table[INDICES])

    def test_read_in_other_ways_too(self):
        table = self.table(np.float32, 64)
        got, _ = self.run_file(table_model(table, [
            helper.make_node("Gather", ["table", "i"], ["rows"]),
            helper.make_node("Relu", ["rows"], ["positive"]),
            helper.make_node("Concat", ["rows", "positive"], ["both"], axis=2),
            helper.make_node("Concat", ["rows", "positive"], ["behind"], axis=0),
            helper.make_node("ReduceMax", ["table"], ["most"], keepdims=0),
        ], ["both", "behind", "most"], 1))
        rows = table[INDICES]
        np.testing.assert_array_equal(got["both"], np.concatenate([rows, np.maximum(rows, 0)], 2))
        np.testing.assert_array_equal(got["behind"], np.concatenate([rows, np.maximum(rows, 0)], 0))
        self.assertEqual(got["most"], 99)

    def test_indices_out_of_range(self):
        """Nothing outside the table is read: the nearest row is taken."""
        table = self.table(np.float32, 64)
        far = np.array([[len(table), -len(table) - 1, 2**62, -2**63]], np.int64)
        got, _ = self.run_file(table_model(table, [helper.make_node("Gather", ["table", "i"], ["y"])], ["y"], 3), far)
        np.testing.assert_array_equal(got["y"], table[[[len(table) - 1, 0, len(table) - 1, 0]]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
