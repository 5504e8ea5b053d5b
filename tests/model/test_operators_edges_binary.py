# SPDX-License-Identifier: Apache-2.0
"""Every elementwise operator with several inputs, at every type that it has, on the device and on the host."""

import unittest

import edge_binary
import edges
from edges import runnel

SIZE = 61  # its square is small enough for the host


class EdgesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def check_rows(self, rows, dtype, constant):
        batch = edges.Batch(constant=constant)
        cases = []
        for row in rows:
            for size in (SIZE, 3, 1) if row.op_type in ("Add", "Less", "Where") else (SIZE, 3):  # of 1 it is another kernel
                inputs = row.inputs(dtype, size)
                cases.append((row, [x for x in inputs if x is not None],
                              batch.add(row.op_type, inputs, row.output or dtype, row.domain, **row.attributes)))
        results = batch.run(self.device)
        for row, inputs, place in cases:
            name = f"{row} of {dtype} on the {'host' if constant else 'device'}"
            may_flush = not constant and any(edges.flushes(self.device, x.dtype) for x in inputs)
            with self.subTest(name):
                edges.check(self, name, results[place], row.reference_of(dtype), inputs, row.units_of(dtype), may_flush,
                            row.zero_signs)

    def check_type(self, dtype):
        if not edges.has_type(self.device, dtype):
            self.skipTest(f"the device has no {dtype}")
        rows = edges.taken(edge_binary.ROWS, dtype)
        self.check_rows(rows, dtype, constant=False)
        self.check_rows(rows, dtype, constant=True)


def add_tests():
    for dtype in edges.FLOATS + edges.INTEGERS + [edges.BOOL]:
        setattr(EdgesTest, f"test_{dtype}", lambda self, dtype=dtype: self.check_type(dtype))


add_tests()
if __name__ == "__main__":
    unittest.main(verbosity=2)
