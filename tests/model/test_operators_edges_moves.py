# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements and compute nothing, bit for bit against numpy: each type that they take, with NaN of all kinds,
infinities, denormals, both zeros and the limits of integers among the elements, odd shapes, on the device and while planning."""

import os
import sys
import unittest

import numpy as np
from onnx import helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402
from edge_table import ALL, BOOL, F32, FLOATS, INTEGERS, STORED, Table, TableTest, elements  # noqa: E402

LEAST, MOST = -(2**63), 2**63 - 1


def ints(*values):
    return np.array(values, np.int64)


def depth_to_space(x, block, mode):
    n, c, h, w = x.shape
    if mode == "DCR":
        return x.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, -1, h * block, w * block)
    return x.reshape(n, c // block**2, block, block, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, -1, h * block, w * block)


def space_to_depth(x, block, mode):
    n, c, h, w = x.shape
    cut = x.reshape(n, c, h // block, block, w // block, block)
    return cut.transpose((0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)).reshape(n, -1, h // block, w // block)


def reversed_sequences(x, lengths):
    """Time first, batch second."""
    result = x.copy()
    for b, length in enumerate(lengths):
        result[:length, b] = x[:length, b][::-1]
    return result


class MovesTest(TableTest):
    def both(self, given, known, op_type, inputs, expected, constants=(), **attributes):
        """The node with data from outside, and with data that is known."""
        given.add(op_type, inputs, expected, constants=constants, **attributes)
        known.add(op_type, inputs, expected, constants=range(len(inputs)), **attributes)

    # ---- shapes, orders and parts ----

    def test_order_and_shape(self):
        def add(given, known, dtype, random):
            x, deep = elements(dtype, (3, 5, 7)), elements(dtype, (2, 1, 3, 1, 2, 3, 1, 5), 1)
            for perm in ((2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0)):
                self.both(given, known, "Transpose", [x], [x.transpose(perm)], perm=perm)
            self.both(given, known, "Transpose", [deep], [deep.transpose(5, 2, 7, 0, 4, 1, 3, 6)], perm=(5, 2, 7, 0, 4, 1, 3, 6))
            self.both(given, known, "Reshape", [x, ints(0, -1)], [x.reshape(3, 35)], (1,))
            self.both(given, known, "Flatten", [x], [x.reshape(15, 7)], axis=-1)
            self.both(given, known, "Squeeze", [deep, ints(1, -5)], [deep.reshape(2, 3, 2, 3, 1, 5)], (1,))
            self.both(given, known, "Unsqueeze", [x, ints(0, -1)], [x[None, ..., None]], (1,))
            self.both(given, known, "Identity", [x], [x])
            shape = np.array(x.shape, np.int64)
            self.both(given, known, "Shape", [x], [shape[-2:]], start=-2)
            self.both(given, known, "Size", [x], [np.array(105, np.int64)])
            self.both(given, known, "Expand", [x[:, :1], ints(2, 1, 5, 1)], [np.broadcast_to(x[:, :1], (2, 3, 5, 7))], (1,))
            self.both(given, known, "Tile", [x, ints(2, 1, 3)], [np.tile(x, (2, 1, 3))], (1,))

        self.check_types(ALL + STORED, add, tables=2)

    def test_parts(self):
        def add(given, known, dtype, random):
            x, y = elements(dtype, (3, 5, 7)), elements(dtype, (3, 2, 7), 1)
            self.both(given, known, "Concat", [x, y, x], [np.concatenate([x, y, x], 1)], axis=-2)
            self.both(given, known, "Split", [x, ints(1, 4, 0, 2)], [x[..., :1], x[..., 1:5], x[..., 5:5], x[..., 5:]], (1,), axis=2)
            self.both(given, known, "Split", [x], [x[:, :2], x[:, 2:4], x[:, 4:]], axis=1, num_outputs=3)
            for starts, ends, axes, steps, expected in (
                    (ints(-2, 6), ints(MOST, LEAST), ints(1, 2), ints(1, -2), x[:, -2:, 6::-2]),
                    (ints(MOST, LEAST), ints(LEAST, MOST), ints(0, 1), ints(-1, 3), x[::-1, ::3]),
                    (ints(1), ints(-1), ints(-1), ints(MOST), x[..., 1:2]), (ints(4), ints(2), ints(1), None, x[:, 4:2])):
                self.both(given, known, "Slice", [x, starts, ends, axes, steps], [expected], (1, 2, 3, 4))
            self.both(given, known, "Gather", [x, np.array([[2, -3], [-1, 0]], np.int32)], [x[[[2, 0], [2, 0]]]], (1,), axis=0)
            self.both(given, known, "Gather", [x, ints(-7, 6, 3)], [x[..., [0, 6, 3]]], axis=-1)
            wide = elements(dtype, (2, 8, 3, 5))
            for mode in ("DCR", "CRD"):
                given.add("DepthToSpace", [wide], [depth_to_space(wide, 2, mode)], blocksize=2, mode=mode)
                long = elements(dtype, (1, 3, 6, 9))
                given.add("SpaceToDepth", [long], [space_to_depth(long, 3, mode)], blocksize=3, mode=mode)

        self.check_types(ALL + STORED, add, tables=2)

    def test_pad(self):
        def add(given, known, dtype, random):
            x = elements(dtype, (3, 4, 5))
            pads, amounts = ints(1, 0, 2, 0, 3, 4), [(1, 0), (0, 3), (2, 4)]
            for value in elements(dtype, (3,)):
                expected = np.full((4, 7, 11), value, x.dtype)
                expected[1:, :4, 2:7] = x
                self.both(given, known, "Pad", [x, pads, np.array(value, x.dtype)], [expected], (1,))
            places = np.arange(x.size).reshape(x.shape)
            for mode in ("edge", "reflect", "wrap"):
                self.both(given, known, "Pad", [x, pads], [x.reshape(-1)[np.pad(places, amounts, mode=mode)]], (1,), mode=mode)
            self.both(given, known, "Pad", [x, ints(-1, 2, -2, 0), None, ints(2, 0)], [np.concatenate(
                [np.zeros((2, 4, 2), x.dtype), x[:, :, 1:3]])], (1, 3))

        self.check_types(ALL + STORED, add, tables=2)

    def test_places(self):
        def add(given, known, dtype, random):
            x = elements(dtype, (3, 4, 5))
            at = random.integers(-4, 4, (3, 7, 5))
            given.add("GatherElements", [x, at], [np.take_along_axis(x, at, 1)], axis=1)
            tuples = np.stack([random.integers(-3, 3, 6), random.integers(-4, 4, 6)], 1)
            given.add("GatherND", [x, tuples], [x[tuples[:, 0], tuples[:, 1]]])
            kept = np.array([False, True, True, False])
            self.both(given, known, "Compress", [x, kept], [x[:, 1:3]], axis=1)
            whole = elements(dtype, (7,)) if dtype == BOOL else x.reshape(-1)
            mask = random.integers(0, 2, whole.size - 2).astype(bool)
            self.both(given, known, "Compress", [whole, mask], [whole[: mask.size][mask]])
            zero = x == np.zeros(1, dtype)
            self.both(given, known, "NonZero", [x], [np.array(np.nonzero(~zero), np.int64)])
            for k in (-9, -1, 0, 2, LEAST, MOST):
                for upper in (0, 1):
                    bounded = int(np.clip(k, -9, 9))
                    keep = np.triu(np.ones((4, 5), bool), bounded) if upper else np.tril(np.ones((4, 5), bool), bounded)
                    given.add("Trilu", [x, np.array(k)], [np.where(keep, x, np.zeros(1, x.dtype))], constants=(1,),
                                  upper=upper)
            lengths = ints(4, 0, 1, 3, 2)
            y = elements(dtype, (4, 5, 3))
            given.add("ReverseSequence", [y, lengths], [reversed_sequences(y, lengths)], time_axis=0, batch_axis=1)
            given.add("CenterCropPad", [x, ints(5, 4, 3)], [np.pad(x[:, :, 1:4], ((1, 1), (0, 0), (0, 0)))],
                          constants=(1,))
            given.add("EyeLike", [x[0]], [np.eye(4, 5, 1, x.dtype)], k=1)
            given.add("ConstantOfShape", [ints(3, 2)], [np.broadcast_to(x[0, 0, :1], (3, 2))],
                          value=helper.make_tensor("v", runnel.CODES[dtype], [1], x[0, 0, :1].tobytes(), raw=True))

        self.check_types(ALL, add, tables=2)

    def test_one_hot(self):
        def add(given, dtype, random):
            for values in elements(dtype, (3, 2)):
                for kind in (np.int64, np.int32, np.float32):
                    at = np.array([[0, -5, 4], [5, -6, 2]], kind)
                    hot = np.where(at < 0, at + 5, at)[:, None] == np.arange(5)[None, :, None]
                    given.add("OneHot", [at, np.array(5), values], [np.where(hot, values[1], values[0])], constants=(1,),
                                  axis=1)

        self.check_types(FLOATS + INTEGERS, add)

    # ---- pixels that are copied ----

    def test_nearest(self):
        """Resize and Upsample to the nearest, by scales whose products are exact."""
        def add(given, dtype, random):
            x = elements(dtype, (2, 3, 5))
            at = np.floor(np.arange(10) / 2).astype(int), np.floor(np.arange(6) / 2).astype(int)
            expected = x[:, at[1]][:, :, at[0]]
            given.add("Resize", [x, None, np.array([1, 2, 2], np.float32)], [expected], constants=(2,), mode="nearest",
                          coordinate_transformation_mode="asymmetric", nearest_mode="floor")
            given.add("Resize", [x[None], None, None, ints(1, 2, 6, 10)], [expected[None]], constants=(3,), mode="nearest",
                          coordinate_transformation_mode="asymmetric", nearest_mode="floor")

        self.check_types(ALL, add)
        for opset in (9,):
            table = Table(opset)
            x = elements(F32, (1, 2, 3, 5))
            table.add("Upsample", [x, np.array([1, 1, 2, 3], np.float32)], [x.repeat(2, 2).repeat(3, 3)], constants=(1,))
            table.check(self, self.device)

    def test_grid_sample_nearest(self):
        """Grids that name pixels exactly: the corners are aligned, and 5 and 3 pixels lie at multiples of 1/2 and 1."""
        def add(given, dtype, random):
            x = elements(dtype, (2, 3, 3, 5))
            at = random.integers(0, [3, 5], (2, 4, 7, 2))
            grid = np.stack([at[..., 1] / 2 - 1, at[..., 0] - 1], -1).astype(np.float32)
            expected = np.stack([x[b][:, at[b, ..., 0], at[b, ..., 1]] for b in range(2)])
            given.add("GridSample", [x, grid], [expected], mode="nearest", align_corners=1)

        self.check_types(ALL, add)

    def test_old_opsets(self):
        """Types and attributes of old opsets."""
        table = Table(7)
        x = elements(F32, (3, 4, 5))
        table.add("Flatten", [x], [x.reshape(12, 5)], axis=2)
        table.add("Slice", [x], [x[1:, :, -2:]], starts=[1, -2], ends=[MOST, MOST], axes=[0, 2])
        table.add("Split", [x], [x[:, :1], x[:, 1:]], axis=1, split=[1, 3])
        table.add("Pad", [x], [np.pad(x, ((0, 0), (1, 0), (0, 2)), constant_values=np.inf)], pads=[0, 1, 0, 0, 0, 2],
                  value=float("inf"))
        table.add("Squeeze", [x[:1]], [x[0]], axes=[0])
        table.add("Unsqueeze", [x], [x[:, None]], axes=[1])
        table.add("Dropout", [x], [x], ratio=0.5)
        table.add("Upsample", [x[None]], [x[None].repeat(2, 3)], scales=[1.0, 1.0, 1.0, 2.0])
        table.check(self, self.device)
        table = Table(13)
        mask = np.ones(x.shape, bool)
        table.add("Dropout", [x, np.array(0.5, np.float32), np.array(False)], [x, mask], constants=(1, 2))
        table.check(self, self.device)


if __name__ == "__main__":
    unittest.main(verbosity=2)
