# SPDX-License-Identifier: Apache-2.0
"""Every elementwise operator with one input, at every type that it has, on the device and on the host."""

import unittest

import edge_unary
import edges
import numpy as np
from edges import runnel

SHAPES = [(), (1,), (3,), (17,), (67,), (0, 3), (3, 5, 17), (2, 1, 3, 1, 5, 1, 1, 3)]


class EdgesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def check_rows(self, rows, dtype, arrays, constant):
        """All rows on all arrays, as one model."""
        batch = edges.Batch(constant=constant)
        places = [(row, x, batch.add(row.op_type, [x], row.output or dtype, row.domain, **row.attributes))
                  for row in rows for x in arrays]
        results = batch.run(self.device)
        may_flush = not constant and edges.flushes(self.device, dtype)
        for row, x, place in places:
            name = f"{row} of {dtype} on the {'host' if constant else 'device'}"
            with self.subTest(name):
                edges.check(self, name, results[place], row.reference_of(dtype), [x], row.units_of(dtype), may_flush,
                            row.zero_signs)

    def check_type(self, dtype):
        if not edges.has_type(self.device, dtype):
            self.skipTest(f"the device has no {dtype}")
        rows = edges.taken(edge_unary.ROWS, dtype)
        shaped = [edges.values(dtype, int(np.prod(shape)), seed=7).reshape(shape) for shape in SHAPES]
        self.check_rows(rows, dtype, [edges.values(dtype, 257)] + shaped, constant=False)
        self.check_rows(rows, dtype, [edges.values(dtype, 257, seed=1)], constant=True)


def add_tests():
    for dtype in edges.FLOATS + edges.INTEGERS + [edges.BOOL]:
        setattr(EdgesTest, f"test_{dtype}", lambda self, dtype=dtype: self.check_type(dtype))


add_tests()
if __name__ == "__main__":
    unittest.main(verbosity=2)
