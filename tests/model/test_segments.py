# SPDX-License-Identifier: Apache-2.0
"""Shapes that depend on data, and control flow, against onnx.reference, onnxruntime and numpy."""

import ctypes
import os
import sys
import threading
import unittest

import numpy as np
import onnx
from onnx import parser
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
F, I, B = np.float32, np.int64, np.bool_
RANDOM = np.random.default_rng(5)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(F)


def onnxruntime_of(model):
    import onnxruntime
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


class Segments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(runnel.Library())

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def session(self, text, checked=True):
        model = parser.parse_model(text if text.startswith("<") else HEAD + text)
        if checked:
            onnx.checker.check_model(model)
        session = runnel.Session(self.device, model.SerializeToString())
        self.addCleanup(session.close)
        return model, session

    def compare(self, got, names, expected):
        for name, want in zip(names, expected):
            want = np.asarray(want)
            self.assertEqual((got[name].shape, got[name].dtype), (want.shape, want.dtype), name)
            np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-6, err_msg=name)

    def check(self, text, *feeds, other=False):
        """One session for all feeds, whose counts and shapes differ; `other`: against onnxruntime."""
        model, session = self.session(text)
        reference = onnxruntime_of(model) if other else ReferenceEvaluator(model)
        names = [o.name for o in model.graph.output]
        for feed in feeds:
            self.compare(session.run(feed), names, reference.run(None, feed))
        return session

    def fails(self, text, feed, status, *words):
        _, session = self.session(text, checked=False)
        with self.assertRaises(runnel.Failure) as caught:
            session.run(feed)
        self.assertEqual(caught.exception.status, status, caught.exception)
        for word in words:
            self.assertIn(word, caught.exception.message)
        return session


class ShapesFromData(Segments):
    def test_reshape_by_a_computed_shape(self):
        self.check("""g (float[N,M] x, float[K] w) => (float[A,B] y, float[N,M] t) {
            m = ReduceMax<keepdims=0>(w)  k = Cast<to=7>(m)
            minus = Constant<value_ints=[-1]>()  zero = Constant<value_ints=[0]>()
            k1 = Unsqueeze(k, zero)  s = Concat<axis=0>(k1, minus)
            t = Tanh(x)  r = Reshape(t, s)  y = Relu(r) }""",
                   *[{"x": floats(4, 6), "w": np.array([1, k], F)} for k in (2, 3, 2, 8, 24)])

    def test_computed_contents_of_many_operators(self):
        cases = {
            "Slice(x, k1, six, one)": 2, "Expand(one, sh)": 3, "Tile(x, sh)": 2, "Pad(x, pads)": 2,
            "ConstantOfShape(sh)": 2, "Range(k, limit, step)": 1, "Unsqueeze(x, k1)": 2, "ReduceSum(x, ax)": 2,
        }
        for call, k in cases.items():
            with self.subTest(call):
                result = "int64" if "(one" in call or "Range" in call else "float"
                self.check(f"""g (float[N,M] x, float[K] w) => ({result} y) {{
                    m = ReduceMax<keepdims=0>(w)  k = Cast<to=7>(m)
                    zero = Constant<value_ints=[0]>()  one = Constant<value_ints=[1]>()
                    six = Constant<value_ints=[6]>()  limit = Constant<value_int=9>()  step = Constant<value_int=2>()
                    k1 = Unsqueeze(k, zero)  sh = Concat<axis=0>(k1, one)  pads = Concat<axis=0>(sh, sh)
                    ax = Sub(k1, k1)
                    y = {call} }}""", *[{"x": floats(7, 6), "w": np.array([0, v], F)} for v in (1, k, 1)])

    def test_a_shape_in_device_memory(self):
        """Given in a buffer, it is read back; the same session takes it from the host too."""
        _, session = self.session("""g (float[N] x, int64[K] s) => (float y) {
            two = Constant<value_ints=[2]>()  t = Div(s, two)  r = Relu(x)  y = Reshape(r, t) }""")
        rt, buffer = session.library.rt, ctypes.c_void_p()
        rt.rnl_buffer_host.restype = ctypes.c_void_p
        session.check(rt.rnl_buffer_create(self.device.handle, 1, ctypes.c_size_t(16), ctypes.byref(buffer)))
        self.addCleanup(rt.rnl_buffer_release, buffer)
        x = np.ones(6, F)
        for shape in ((2, 3), (3, 2), (6, 1)):
            doubled = 2 * np.array(shape, I)
            ctypes.memmove(rt.rnl_buffer_host(buffer), doubled.ctypes.data, 16)
            given, wanted = (runnel.Tensor * 2)(), runnel.Tensor()
            given[0].name, given[0].dtype, given[0].rank, given[0].shape[0] = b"x", 1, 1, 6
            given[0].data, given[0].size_bytes = x.ctypes.data, x.nbytes
            given[1].name, given[1].dtype, given[1].rank, given[1].shape[0] = b"s", 7, 1, 2
            given[1].buffer, given[1].size_bytes = buffer, 16
            session.check(session.lib.rnl_session_run(session.session, given, ctypes.c_size_t(2),
                                                      ctypes.byref(wanted), ctypes.c_size_t(1)))
            self.assertEqual(tuple(wanted.shape[:2]), shape)
            self.assertEqual(session.run({"x": x, "s": doubled})["y"].shape, shape)

    def test_topk_and_resize_by_computed_numbers(self):
        self.check("""g (float[N,M] x, float[K] w) => (float y, int64 i) {
            m = ReduceMax(w)  k = Cast<to=7>(m)  y, i = TopK(x, k) }""",
                   *[{"x": floats(3, 9), "w": np.array([0, v], F)} for v in (1, 5)])
        self.check("""g (float[1,1,N,M] x, float[4] w) => (float y) {
            s = Relu(w)  e = Constant<value_floats=[0.0]>()
            y = Resize<mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric">(x, , s) }""",
                   *[{"x": floats(1, 1, 4, 6), "w": np.array([1, 1, a, b], F)} for a, b in ((2, 1), (1, 2), (3, 2))])

    def test_nonzero_then_gather(self):
        session = self.check("""g (float[N,M] x) => (int64[2,K] i, float[L] y, float[K2] z) {
            r = Relu(x)  i = NonZero(r)  t = Transpose(i)  p = GatherND(r, t)  y = Exp(p)
            z = ReduceSum<keepdims=0>(y) }""",
                             {"x": floats(5, 7)}, {"x": floats(5, 7)}, {"x": -np.ones((3, 2), F)},
                             {"x": floats(40, 30)}, {"x": np.ones((2, 2), F)}, {"x": np.zeros((0, 4), F)})
        got = session.run({"x": np.full((2, 2), np.nan, F)}, ["i"])
        self.assertEqual(got["i"].shape, (2, 4))

    def test_nonzero_of_what_is_known(self):
        self.check("""g (float[N,M] x) => (float[A,B] y) {
            s = Shape(x)  one = Constant<value_ints=[1]>()  c = ConstantOfShape(s)  e = Equal(c, c)
            n = NonZero(e)  r = ReduceMax(n, one)  f = Cast<to=1>(r)  y = Add(f, x) }""",
                   {"x": floats(1, 4)}, {"x": floats(2, 3)})

    def test_nonzero_of_all_types(self):
        for code, dtype in runnel.DTYPES.items():
            if code > 16:
                continue  # stored, not computed with
            with self.subTest(dtype):
                name = onnx.TensorProto.DataType.Name(code).lower()
                x = RANDOM.integers(0, 2, (3, 4, 5)).astype(dtype)
                if code in (1, 10, 11):
                    x[0, 0, :3] = [np.nan, np.inf, -0.0]
                _, session = self.session(f"g ({name}[A,B,C] x) => (int64 y) {{ y = NonZero(x) }}")
                np.testing.assert_array_equal(session.run({"x": x})["y"], np.array(np.nonzero(x)))

    def test_nonzero_of_a_scalar(self):
        _, session = self.session("g (float x) => (int64 y) { y = NonZero(x) }")
        self.assertEqual(session.run({"x": np.array(3, F)})["y"].shape, (0, 1))
        self.assertEqual(session.run({"x": np.array(0, F)})["y"].shape, (0, 0))

    def test_compress(self):
        for attribute, axis in (("", None), ("<axis=0>", 0), ("<axis=-1>", -1)):
            _, session = self.session(f"""g (float[N,M] x, float[K] w) => (float y) {{
                z = Constant<value_float=0.0>()  c = Greater(w, z)  r = Relu(x)
                p = Compress{attribute}(r, c)  y = Neg(p) }}""")
            for rows, count in ((4, 3), (3, 3), (5, 1), (4, 2)):
                x, w = floats(rows, 4), floats(count)
                expected = -np.compress(w > 0, np.maximum(x, 0), axis=axis)
                got = session.run({"x": x, "w": w})["y"]
                self.assertEqual(got.shape, expected.shape)
                np.testing.assert_array_equal(got, expected)
        self.fails("g (float[N] x, bool[K] c) => (float y) { y = Compress(x, c) }",
                   {"x": floats(2), "c": np.ones(3, B)}, "INVALID_ARGUMENT", "node 0 (Compress", "condition of shape 3")

    def test_unique(self):
        x = RANDOM.integers(-3, 3, (5, 4, 3)).astype(F)
        x[0, 0, :2] = np.inf, -0.0
        doubled = np.concatenate([x, x[::-1]], 0)
        for axis in (None, 0, 1, -1):
            attribute = "" if axis is None else f"axis={axis}"
            for ordered in (1, 0):
                comma = ", " if attribute else ""
                _, session = self.session(f"""g (float[N,M,K] a) => (float y, int64 f, int64 i, int64 c) {{
                    x = Identity(a)  y, f, i, c = Unique<{attribute}{comma}sorted={ordered}>(x) }}""")
                for data in (doubled, x, np.zeros((0, 2, 3), F) if axis == 0 else x):
                    y, f, i, c = np.unique(data, True, True, True, axis=axis)
                    if not ordered:
                        order = np.argsort(f)
                        y = np.take(y, order, axis if axis is not None else 0)
                        f, c = f[order], c[order]
                        i = np.argsort(order)[i]
                    got = session.run({"a": data})
                    self.compare(got, "yfic", (y, f.astype(I), i.reshape(-1).astype(I), c.astype(I)))

    def test_unique_of_integers_at_their_limits_and_nan(self):
        _, session = self.session("g (uint64[N] x) => (uint64 y, int64 f, int64 i, int64 c) "
                                  "{ y, f, i, c = Unique(x) }")
        x = np.array([2**64 - 1, 0, 2**63, 2**64 - 1, 2**53 + 1, 2**53], np.uint64)
        np.testing.assert_array_equal(session.run({"x": x})["y"], np.unique(x))
        _, session = self.session("g (float[N] x) => (float y) { y = Unique(x) }")
        x = np.array([np.nan, 1, np.nan, -np.inf], F)
        np.testing.assert_array_equal(session.run({"x": x})["y"], np.array([-np.inf, 1, np.nan], F))

    def test_non_max_suppression_against_onnxruntime(self):
        for centered in (0, 1):
            model, session = self.session(f"""g (float[B,N,4] boxes, float[B,C,N] scores, int64 most, float iou,
                                                 float least) => (int64[K,3] y) {{
                r = Relu(boxes)
                y = NonMaxSuppression<center_point_box={centered}>(r, scores, most, iou, least) }}""")
            other = onnxruntime_of(model)
            for boxes, most in ((1, 3), (17, 4), (60, 100), (0, 2), (9, 0)):
                corners = RANDOM.random((2, boxes, 4)).astype(F)
                scores = np.round(RANDOM.random((2, 3, boxes)), 1).astype(F)
                feed = {"boxes": corners, "scores": scores, "most": np.array(most, I), "iou": np.array(0.3, F),
                        "least": np.array(0.25, F)}
                np.testing.assert_array_equal(session.run(feed)["y"], other.run(None, feed)[0])

    def test_memory_of_the_callers(self):
        """What is too small is refused by name, and the next run works."""
        _, session = self.session("g (float[N] x) => (int64[1,K] y) { r = Relu(x) y = NonZero(r) }")
        x, room = np.ones(50, F), np.zeros(50, I)
        given, wanted = runnel.Tensor(), runnel.Tensor()
        given.name, given.dtype, given.rank, given.shape[0] = b"x", 1, 1, 50
        given.data, given.size_bytes = x.ctypes.data, x.nbytes
        for size, status in ((49 * 8, 3), (400, 0)):
            wanted.name, wanted.data, wanted.size_bytes = b"y", room.ctypes.data, size
            got = session.lib.rnl_session_run(session.session, ctypes.byref(given), ctypes.c_size_t(1),
                                              ctypes.byref(wanted), ctypes.c_size_t(1))
            self.assertEqual(got == 0, status == 0)
            if status:
                with self.assertRaisesRegex(runnel.Failure, "output 'y' needs 400 bytes, 392 were given"):
                    session.check(got)
        self.assertEqual(list(wanted.shape[:2]), [1, 50])
        np.testing.assert_array_equal(room, np.arange(50))


class Control(Segments):
    IF = """g (float[N,M] x, bool c) => (float y) {
        a = Relu(x)
        y = If (c) <then_branch = p () => (float[A,B] t) { t = Add(a, x) },
                    else_branch = q () => (float[C] u) { m = Constant<value_ints=[-1]>() u = Reshape(a, m) }> }"""

    def test_branches_of_different_shapes(self):
        x = floats(3, 4)
        self.check(self.IF, *[{"x": x, "c": np.array(c)} for c in (True, False, False, True)])

    def test_condition_on_the_device_and_several_outputs(self):
        self.check("""g (float[N] x) => (float y, int64 z, float s) {
            s = ReduceSum<keepdims=0>(x)  zero = Constant<value_float=0.0>()  c = Greater(s, zero)
            a, z = If (c) <then_branch = p () => (float[A] t, int64[K] i) { t = Neg(x) i = Shape(t) },
                           else_branch = q () => (float[A] t2, int64[K] i2) { t2 = Exp(x) i2 = Constant<value_ints=[7, 8]>() }>
            y = Sub(a, s) }""", {"x": np.ones(3, F)}, {"x": -np.ones(3, F)}, {"x": np.ones(5, F)})

    def test_pass_through(self):
        _, session = self.session("""g (float[N] x, bool c) => (float y, float w) {
            a = Relu(x)  w = If (c) <then_branch = p () => (float[A] x) { n = Neg(x) },
                                     else_branch = q () => (float[A] a) { n2 = Neg(x) }>
            y = Neg(w) }""", checked=False)
        x = floats(6)
        for c, want in ((True, x), (False, np.maximum(x, 0))):
            got = session.run({"x": x, "c": np.array(c)})
            np.testing.assert_array_equal(got["w"], want)
            np.testing.assert_array_equal(got["y"], -want)

    def test_constant_condition_and_captured_weights(self):
        self.check("""g (float[N,4] x) => (float y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, bool c = {1}> {
            t = Transpose(w)  r = Relu(x)
            y = If (c) <then_branch = p () => (float[A,B] m) { v = Transpose(t) m = MatMul(r, v) },
                        else_branch = q () => (float[A,B] m2) { m2 = Identity(x) }> }""",
                   {"x": floats(3, 4)}, {"x": floats(1, 4)})

    LOOP = """g (int64 n, bool c, float[N] x) => (float y, float z) {
        y, z = Loop (n, c, x) <body = b (int64 i, bool go, float[K] s) => (bool on, float[L] so, float[M] sc) {
            f = Cast<to=1>(i)  sc = Add(x, f)  so = Concat<axis=0>(s, sc)  on = Identity(go) }> }"""

    def test_growing_state(self):
        self.check(self.LOOP, *[{"n": np.array(n), "c": np.array(True), "x": floats(3)} for n in (3, 1, 12, 5)])

    def test_no_iteration(self):
        x = floats(3)
        _, session = self.session(self.LOOP)
        for n, c in ((0, True), (5, False), (-4, True)):
            got = session.run({"n": np.array(n), "c": np.array(c), "x": x})
            np.testing.assert_array_equal(got["y"], x)
            self.assertEqual((got["z"].shape, got["z"].dtype), ((0, 0), F))

    def test_forms_of_loop(self):
        """With and without a trip count and a condition; the condition ends it in the body."""
        body = """b (int64 i, bool go, float[K] s) => (bool on, float[K] so, int64 ci) {
            so = Add(s, s)  m = ReduceMax<keepdims=0>(so)  on = Less(m, limit)  ci = Identity(i) }"""
        for head in ("", "n", "n, c", ", c"):
            text = f"""g (int64 n, bool c, float limit, float[N] x) => (float y, int64 k) {{
                y, k = Loop ({head or ', '}, x) <body = {body}> }}"""
            if head in ("", "n"):
                text = text.replace("(n, x)", "(n, , x)").replace("(, , x)", "(, , x)")
            _, session = self.session(text, checked=False)
            for n, limit in ((3, 1e9), (50, 60)):
                if head in ("", ", c") and limit > 1e8:
                    continue
                x, count, y = np.ones(2, F), 0, np.ones(2, F)
                while count < (n if head.startswith("n") else 10**6):
                    y, count = y + y, count + 1
                    if not y.max() < limit:
                        break
                got = session.run({"n": np.array(n), "c": np.array(True), "limit": np.array(limit, F), "x": x})
                np.testing.assert_array_equal(got["y"], y)
                np.testing.assert_array_equal(got["k"], np.arange(count))

    def test_if_in_loop_in_if(self):
        self.check("""g (int64 n, bool c, float[N] x) => (float y) {
            t = Constant<value_bool=1>()
            y = If (c) <then_branch = p () => (float[A] w) {
                    w = Loop (n, t, x) <body = b (int64 i, bool go, float[K] s) => (bool on, float[L] so) {
                        two = Constant<value_int=2>()  m = Mod(i, two)  one = Constant<value_int=1>()  e = Equal(m, one)
                        so = If (e) <then_branch = o () => (float[O] a) { a = Add(s, x) },
                                     else_branch = v () => (float[O] b2) { f = Cast<to=1>(n) b2 = Mul(s, f) }>
                        on = Identity(go) }> },
                else_branch = q () => (float[A] u) { u = Neg(x) }> }""".replace(
                    "t = Constant<value_bool=1>()", "one0 = Constant<value_int=1>()  t = Cast<to=9>(one0)"),
                   *[{"n": np.array(n), "c": np.array(c), "x": floats(4)} for n, c in ((3, True), (1, False), (6, True))])

    def test_data_dependent_shapes_in_a_loop(self):
        self.check("""g (int64 n, float[N] x) => (float y, int64 k) {
            one = Constant<value_int=1>()  t = Cast<to=9>(one)
            y, k = Loop (n, t, x) <body = b (int64 i, bool go, float[K] s) => (bool on, float[L] so, int64 c) {
                h = Constant<value_float=0.1>()  d = Sub(s, h)  r = Relu(d)  nz = NonZero(r)  tr = Transpose(nz)
                so = GatherND(d, tr)  sh = Shape(so)  c = Identity(sh)  on = Identity(go) }> }""",
                   *[{"n": np.array(n), "x": RANDOM.random(9).astype(F)} for n in (1, 4, 12)])

    def test_scan_directions_and_axes(self):
        self.check("""g (float[M] s0, float[T,M] a, float[M,T] b) => (float s, float[T,M] y, float z) {
            s, y, z = Scan (s0, a, b) <num_scan_inputs = 2, scan_input_directions = [1, 0], scan_input_axes = [0, 1],
                scan_output_directions = [0, 1], scan_output_axes = [0, 1],
                body = g2 (float[M] p, float[M] u, float[M] v) => (float[M] q, float[M] o, float[M] w) {
                    q = Add(p, u)  o = Mul(q, v)  w = Sub(u, v) }> }""".replace("float[T,M] y", "float y"),
                   *[{"s0": floats(m), "a": floats(t, m), "b": floats(m, t)} for t, m in ((5, 3), (1, 4), (7, 3))], other=True)

    def test_scan_8_with_lengths(self):
        text = """<ir_version: 8, opset_import: ["" : 8]>
            g (int64[B] lens, float[B,M] s0, float[B,T,M] a) => (float[B,M] s, float[B,T,M] y) {
            s, y = Scan (lens, s0, a) <num_scan_inputs = 1, directions = [DIRECTION],
                body = g2 (float[M] p, float[M] u) => (float[M] q, float[M] o) { q = Add(p, u)  o = Identity(q) }> }"""
        for direction in (0, 1):
            _, session = self.session(text.replace("DIRECTION", str(direction)), checked=False)
            s0, a, lens = floats(3, 2), floats(3, 5, 2), np.array([5, 2, 3], I)
            y = np.zeros_like(a)
            for row, n in enumerate(lens):
                order = a[row, :n][::-1] if direction else a[row, :n]
                y[row, :n] = s0[row] + np.cumsum(order, 0)
            got = session.run({"lens": lens, "s0": s0, "a": a})
            np.testing.assert_allclose(got["y"], y, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(got["s"], np.stack([y[r, n - 1] for r, n in enumerate(lens)]), rtol=1e-5,
                                       atol=1e-6)

    def test_recurrent_network(self):
        """A GRU-like cell in the form that torch's script exporter writes: Loop over time, slices by Gather, If inside."""
        model, session = self.session("""g (float[T,B,8] x, float[B,8] h0) => (float[B,8] h, float y)
            <float[8,8] wx, float[8,8] wh, float[8] bias = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}> {
            s = Shape(x)  zero = Constant<value_int=0>()  n = Gather(s, zero)
            one = Constant<value_int=1>()  t = Cast<to=9>(one)
            h, ys = Loop (n, t, h0) <body = b (int64 i, bool go, float[B,8] p) => (bool on, float[B,8] q, float[B,8] o) {
                u = Gather(x, i)  two = Constant<value_int=2>()  m = Mod(i, two)  e = Equal(m, zero)
                a = MatMul(u, wx)  b2 = MatMul(p, wh)  ab = Add(a, b2)  abc = Add(ab, bias)
                q = If (e) <then_branch = th () => (float[B2,8] r) { r = Tanh(abc) },
                            else_branch = el () => (float[B2,8] r2) { r0 = Sigmoid(abc) r2 = Sub(r0, p) }>
                o = Identity(q)  on = Identity(go) }>
            y = Transpose<perm=[1,0,2]>(ys) }""".replace("float[8,8] wx, float[8,8] wh, ", ""
                                                        ).replace("float[B,8] h0)", "float[B,8] h0, float[8,8] wx, float[8,8] wh)"))
        for name in ("wx", "wh"):
            weight = onnx.numpy_helper.from_array(0.3 * floats(8, 8), name)
            model.graph.initializer.append(weight)
            del model.graph.input[-1]
        session = runnel.Session(self.device, model.SerializeToString())
        self.addCleanup(session.close)
        reference = onnxruntime_of(model)
        for t, b in ((5, 2), (9, 2), (3, 4)):
            feed = {"x": floats(t, b, 8), "h0": floats(b, 8)}
            self.compare(session.run(feed), ["h", "y"], reference.run(None, feed))

    def test_changing_data_builds_no_new_plans(self):
        _, session = self.session("""g (float[N] x) => (float y) {
            r = Relu(x)  i = NonZero(r)  z = Constant<value_ints=[0]>()  j = Squeeze(i, z)  p = Gather(r, j)
            y = ReduceSum<keepdims=0>(p) }""")
        x = np.ones(6, F)
        session.run({"x": x})
        built = session.model_stats().plans_built
        for sign in ((-1, 1, 1, 1, 1, 1), (1, -1, 1, 1, 1, 1)):
            got = session.run({"x": x * np.array(sign, F)})
            self.assertEqual(got["y"], 5)
        self.assertEqual(session.model_stats().plans_built, built + 1)  # for the new count alone


class Failures(Segments):
    def test_wrong_inside(self):
        session = self.fails("""g (float[N] x, bool c) => (float y) {
            y = If (c) <then_branch = p () => (float t) { k = Constant<value_ints=[2, -1]>() t = Reshape(x, k) },
                        else_branch = q () => (float u) { u = Neg(x) }> }""",
                             {"x": floats(3), "c": np.array(True)}, "INVALID_ARGUMENT",
                             "node 0 (Reshape", "then_branch", "node 0 (If")
        np.testing.assert_array_equal(session.run({"x": np.ones(3, F), "c": np.array(False)})["y"], -np.ones(3, F))

    def test_shapes_that_do_not_join(self):
        self.fails("""g (int64 n, float[N] x) => (float y, float z) {
            one = Constant<value_int=1>()  t = Cast<to=9>(one)
            y, z = Loop (n, t, x) <body = b (int64 i, bool go, float[K] s) => (bool on, float[L] so, float[M] sc) {
                so = Concat<axis=0>(s, x)  sc = Identity(s)  on = Identity(go) }> }""",
                   {"n": np.array(3), "x": floats(2)}, "INVALID_ARGUMENT", "iteration 1", "to be joined", "(Loop")

    def test_condition_of_two_elements(self):
        self.fails(Control.IF.replace("bool c)", "bool[K] c)"), {"x": floats(2, 2), "c": np.ones(2, B)},
                   "INVALID_ARGUMENT", "the condition has shape 2", "node 1 (If")

    def test_missing_names_and_wrong_counts(self):
        with self.assertRaises(runnel.Failure) as caught:
            self.session("""g (float[N] x, bool c) => (float y) {
                y = If (c) <then_branch = p () => (float t) { t = Neg(nowhere) },
                            else_branch = q () => (float u) { u = Neg(x) }> }""", checked=False)
        self.assertIn("reads 'nowhere', which nothing in the graph produces", caught.exception.message)
        for text, words in (
                ("y = If (c) <then_branch = p () => (float t) { t = Neg(x) }>", "its graph 'else_branch' is missing"),
                ("y = If (c) <then_branch = p (float k) => (float t) { t = Neg(x) }, "
                 "else_branch = q () => (float u) { u = Neg(x) }>", "its graph 'then_branch' has 1 inputs and needs 0"),
                ("y = Loop (, c, x) <body = p (int64 i, bool k) => (bool t) { t = Not(k) }>",
                 "its graph 'body' has 2 inputs and needs 3"),
                ("y = Scan (x) <num_scan_inputs = 2, body = p (float i) => (float t) { t = Neg(i) }>",
                 "'num_scan_inputs' is 2"),
                ("y = If (c) <then_branch = p () => (float t) { t = Frob(x) }, "
                 "else_branch = q () => (float u) { u = Blob(x) }>", "then_branch: node 0 (Frob '')")):
            with self.assertRaises(runnel.Failure) as caught:
                self.session(f"g (float[N] x, bool c) => (float y) {{ {text} }}", checked=False)
            self.assertEqual(caught.exception.status, "UNIMPLEMENTED")
            self.assertIn(words, caught.exception.message)
        self.assertIn("else_branch: node 0 (Blob '')", caught.exception.message)

    def test_endless_loop_is_cancelled(self):
        _, session = self.session("""g (float[N] x) => (float y) {
            y = Loop (, , x) <body = b (int64 i, bool go, float[K] s) => (bool on, float[K] so) {
                so = Neg(s)  on = Identity(go) }> }""", checked=False)
        timer = threading.Timer(0.5, lambda: session.lib.rnl_session_cancel(session.session))
        timer.start()
        with self.assertRaises(runnel.Failure) as caught:
            session.run({"x": floats(4)})
        timer.join()
        self.assertEqual(caught.exception.status, "CANCELLED")

    def test_profile_of_several_plans(self):
        """The steps of all plans, each plan's once."""
        _, session = self.session(Control.LOOP)
        counts = []
        for n in (2, 7):
            arrays = {"n": np.array(n), "c": np.array(True), "x": floats(3)}
            given = (runnel.Tensor * 3)()
            for slot, (name, array) in zip(given, arrays.items()):
                slot.name, slot.dtype, slot.rank = name.encode(), runnel.CODES[array.dtype], array.ndim
                slot.shape[: array.ndim] = array.shape
                slot.data, slot.size_bytes = array.ctypes.data, array.nbytes
            steps, found = ctypes.c_void_p(), ctypes.c_size_t()
            session.check(session.lib.rnl_session_profile(session.session, given, ctypes.c_size_t(3),
                                                          ctypes.byref(steps), ctypes.byref(found)))
            counts.append(found.value)
        # The state grows, so each iteration has a plan of its own; the shorter run's are a part of the longer one's.
        self.assertGreater(counts[0], 0)
        self.assertEqual(counts[0] % 2, 0)
        self.assertEqual(counts[1], counts[0] // 2 * 7)

    def test_nothing_leaks(self):
        _, session = self.session(Control.LOOP)
        feed = {"n": np.array(6), "c": np.array(True), "x": floats(5)}
        session.run(feed)
        before = self.device.stats().pool_in_use_bytes
        for _ in range(4):
            session.run(feed)
        self.assertEqual(self.device.stats().pool_in_use_bytes, before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
