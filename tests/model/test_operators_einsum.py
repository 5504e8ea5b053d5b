# SPDX-License-Identifier: Apache-2.0
"""Einsum against numpy in float64: every form of equation, random ones, all types, sizes 0 and 1, NaN and infinities."""

import os
import sys
import unittest

import ml_dtypes
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402
import single_node  # noqa: E402

SIZES = dict(zip("abcdefghijABC", (3, 5, 2, 7, 4, 1, 3, 2, 5, 3, 2, 3, 1)))
# Letters have these sizes; a digit is a dimension under an ellipsis.
HAND = [
    ("ab->ba", "ab"), ("ab->", "ab"), ("ab->a", "ab"), ("aa", "aa"), ("aa->a", "aa"), ("aab->b", "aab"),
    ("a,a", "a", "a"), ("a,b->ab", "a", "b"), ("a,b->ba", "a", "b"), ("ab,bc", "ab", "bc"), ("ba,bc->ac", "ba", "bc"),
    ("ab,bc->ca", "ab", "bc"), ("abc,acd->abd", "abc", "acd"), ("ab,ab->ab", "ab", "ab"), ("ab,ab->", "ab", "ab"),
    ("abcd,aecd->acbe", "abcd", "aecd"), ("abc,dbe->aced", "abc", "dbe"), ("ab,cd->acbd", "ab", "cd"),
    ("ab,c->a", "ab", "c"), ("ab,bc,cd->ad", "ab", "bc", "cd"), ("ab,bc,cd,de->ae", "ab", "bc", "cd", "de"),
    ("a,ab,abc->abc", "a", "ab", "abc"), ("abc,bca,cab->", "abc", "bca", "cab"), ("aab,bb->a", "aab", "bb"),
    ("...ab->...ba", "12ab"), ("...", "123"), ("...ab,...bc", "12ab", "12bc"), ("a...b,b...->...a", "a12b", "b2"),
    ("...,...", "123", "23"), ("ab...->b...", "ab12"), ("...aa->...a", "12aa"), ("b...a", "b12a"),
    ("Ab,bC", "Ab", "bC"), ("bA", "bA"), (" a b , b c -> a c ", "ab", "bc"), ("f,fa->a", "f", "fa"),
    ("abcdefgh->hgfedcba", "abcdefgh"), ("abcdefgh,gh->abcdef", "abcdefgh", "gh"),
    ("abcdefg,abcdefh->abcdefgh", "abcdefg", "abcdefh"), (",ab->ab", "", "ab"), (",", "", ""), ("->", ""),
]


def shape_of(term):
    return tuple(SIZES[c] if c in SIZES else int(c) + 1 for c in term)


def random_equation(random):
    letters = list("abcdeg")
    terms = ["".join(random.choice(letters, random.integers(1, 4))) for _ in range(random.integers(1, 5))]
    used = sorted(set("".join(terms)))
    random.shuffle(used)
    return ",".join(terms) + "->" + "".join(used[: random.integers(0, len(used) + 1)]), *terms


class EinsumTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def check(self, equation, arrays, bound=1e-5):
        got = single_node.run(self.device, "Einsum", arrays, opset=28, equation=equation)
        self.assertEqual(got.dtype, arrays[0].dtype)
        kind = np.float64 if arrays[0].dtype.kind not in "iu" else arrays[0].dtype
        expected = np.asarray(np.einsum(equation, *[a.astype(kind) for a in arrays]))
        if arrays[0].dtype.kind in "iu":
            self.assertTrue(np.array_equal(got, expected), equation)
        else:
            single_node.close(self, got, expected, bound, f"{equation} of {arrays[0].dtype}")

    def arrays(self, random, terms, dtype=np.float32):
        return [np.asarray(random.uniform(-2, 2, shape_of(t))).astype(dtype) for t in terms]

    def test_forms(self):
        random = np.random.default_rng(1)
        for equation, *terms in HAND:
            self.check(equation, self.arrays(random, terms))

    def test_random(self):
        random = np.random.default_rng(2)
        for _ in range(30):
            equation, *terms = random_equation(random)
            self.check(equation, self.arrays(random, terms))

    def test_types(self):
        random = np.random.default_rng(3)
        for dtype, bound in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)):
            for equation, *terms in (("ab,bc", "ab", "bc"), ("ab,bc,cd->ad", "ab", "bc", "cd"), ("ab,c->a", "ab", "c")):
                self.check(equation, self.arrays(random, terms, dtype), bound)
        if self.device_has_f64():
            self.check("ab,bc", self.arrays(random, ("ab", "bc"), np.float64), 1e-14)
        for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
            info = np.iinfo(dtype)
            a, b = (random.integers(info.min, info.max, shape_of(t), dtype, endpoint=True) for t in ("ab", "bc"))
            self.check("ab,bc", [a, b])  # wraps
            self.check("ab->b", [a])
            self.check("ab,ab->ba", [a, a])

    def device_has_f64(self):
        try:
            single_node.run(self.device, "Add", [np.ones(1), np.ones(1)])
            return True
        except runnel.Failure:
            return False

    def test_sizes_of_0_and_1(self):
        one = np.ones((1, 3), np.float32)
        self.check("ab,ab->ab", [one, np.ones((4, 1), np.float32)])
        self.check("ab,bc->ac", [np.full((2, 1), 3, np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)])
        self.check("ab,a->b", [np.ones((1, 3), np.float32), np.arange(4, dtype=np.float32)])
        self.check("...a,...a->...", [np.ones((5, 1, 3), np.float32), np.ones((4, 3), np.float32)])
        for left, right in (((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0))):
            self.check("ab,bc", [np.ones(left, np.float32), np.ones(right, np.float32)])
        self.check("ab->a", [np.ones((3, 0), np.float32)])
        self.check("ab->b", [np.ones((3, 0), np.float32)])

    def test_special_values(self):
        a = np.array([[1, np.nan, 2], [np.inf, 1, 3], [4, 5, 6]], np.float32)
        b = np.array([[1, 2], [3, -np.inf], [0, 1]], np.float32)
        with np.errstate(invalid="ignore"):
            for equation, *operands in (("ab,bc", a, b), ("aa->a", a), ("ab->a", a), ("ab,bc->", a, b)):
                self.check(equation, operands)

    def test_refusals(self):
        a = np.ones((2, 3), np.float32)
        for equation, *operands in (("abc", a), ("a", a), ("ab,bc", a), ("ab", a, a), ("ab->aa", a), ("ab->c", a),
                                    ("a!", a), ("ab->a->b", a), ("ab,ab", a, np.ones((2, 4), np.float32)), ("", a),
                                    ("a...b...", a), ("aa", a), ("ab-", a), ("a.b", a)):
            with self.assertRaises(runnel.Failure, msg=equation) as caught:
                single_node.run(self.device, "Einsum", operands, opset=12, equation=equation)
            self.assertEqual(caught.exception.status, "INVALID_ARGUMENT", equation)
            self.assertIn("Einsum", caught.exception.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
