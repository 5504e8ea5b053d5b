# SPDX-License-Identifier: Apache-2.0
"""A thousand widths of one model: few programs for all, a bounded plan cache, steady memory.

A width compiles nothing unless it needs a variant of a kernel that no width before it needed (a tile for short rows),
and packs no weights unless another way of doing a layer, which needs them in another order, is faster from it on.
"""

import ctypes as c
import os
import resource
import sys
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_models import path_of, runnel  # noqa: E402

LIMIT = 16 << 20


class WidthsTest(unittest.TestCase):
    def test_thousand_widths(self):
        device = runnel.Device(runnel.Library())
        session = runnel.Session(device, path_of("ch_PP-OCRv4_rec_infer"), plan_cache_bytes=LIMIT)
        for width in (320, 48, 101):
            session.run({"x": np.zeros((1, 3, 48, width), np.float32)})
        weights = session.model_stats().weight_bytes
        times, memory = [], []
        widths = range(32, 1032)
        for width in widths:
            tensor = runnel.Tensor(name=b"x", dtype=1, rank=4)
            tensor.shape[:4] = (1, 3, 48, width)
            session.check(session.lib.rnl_model_prepare(session.model, c.byref(tensor), c.c_size_t(1)))
            stats = session.model_stats()
            self.assertLessEqual(stats.plan_bytes, LIMIT)
            times.append(stats.last_plan_ns / 1e6)
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - stats.weight_bytes // 1024)
        self.assertGreater(stats.plans_evicted, 0)
        self.assertLessEqual(stats.program_count, 40, "too many programs for one model")
        self.assertLess(stats.weight_bytes, 2 * weights, "weights in too many orders")
        self.assertLess(memory[-1] - memory[len(memory) // 2], 8 << 10, "memory grows with the widths (KiB)")
        print(f"planning a width: median {np.median(times):.2f} ms, worst {max(times):.2f} ms; {stats.program_count} programs")
        session.close()
        device.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
