# SPDX-License-Identifier: Apache-2.0
"""Operators of one's own in Python that are wrong: registrations, exceptions, answers, launches. Each is named, and the
session works on."""

import unittest

import ml_dtypes
import numpy as np
from onnx import helper

from package import DEVICE, model
import runnel  # noqa: E402

F32, COUNT = 1, 6
PLACE = "node 1 (com.example.Odd 'culprit')"
COPY = """
kernel void copy(global const float *x, long x_at, global float *y, long y_at, long n)
{
    const long i = get_global_id(0);
    if (i < n)
        y[y_at + i] = x[x_at + i];
}
"""


def like(node, x):
    return x


def odd(inputs=("a",), outputs=("y",)):
    nodes = [helper.make_node("Neg", ["x"], ["a"]),
             helper.make_node("Odd", inputs, outputs, "culprit", domain="com.example", size=2)]
    return model(nodes, {"x": (F32, ["n"])}, {"y": (F32, ["n"])}, domains={"com.example": 1})


def vector(size=COUNT):
    return np.arange(1, size + 1, dtype=np.float32)


def copy_launch(node, x, **changed):
    given = {"kernel": "copy", "args": [x, node.outputs[0], np.int64(x.size)], "global_size": x.size, "source": COPY}
    return runnel.Launch(**{**given, **changed})


class Picky(Exception):
    pass


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class WrongTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(DEVICE)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def open(self, infer=like, made=None, **how):
        registry = runnel.Registry()
        registry.add("com.example", "Odd", infer=infer, **{**({} if "plan" in how else {"compute": like}), **how})
        session = runnel.Session(made or odd(), self.device, registry=registry)
        self.addCleanup(session.close)
        return session

    def fails(self, kind, sentence, made=None, **how):
        """The first line is the sentence; the others name the callback, the operator and the node."""
        callback = next(name for name in ("compute", "plan", "infer") if name in how)
        session = self.open(made=made, **how)
        for _ in range(2):
            with self.assertRaises(kind) as caught:
                session.run(None, {"x": vector()})
            first, *rest = str(caught.exception).splitlines()
            self.assertRegex(first, sentence)
            self.assertIn(f"the {callback} callback of operator com.example.Odd", rest)
            self.assertIn(PLACE, rest)
        return caught.exception

    # ---- registrations

    def test_registrations(self):
        registry = runnel.Registry()
        good = {"domain": "com.example", "op_type": "Odd", "infer": like, "compute": like}
        for sentence, changed in (
                ("is to be of ai.onnx", {"domain": ""}), ("is to be of ai.onnx", {"domain": "ai.onnx"}),
                ("needs a name", {"op_type": ""}), ("control characters", {"op_type": "a\nb"}),
                ("name is 5, which is no name", {"op_type": 5}), ("domain is 'a.*b', which is no", {"domain": "a\0b"}),
                ("one that runnel has itself", {"domain": "com.microsoft", "op_type": "BiasGelu"}),
                ("of version 0", {"since_version": 0}), ("since_version is 1.5", {"since_version": 1.5}),
                ("2 to 1 inputs", {"inputs": (2, 1)}), ("inputs is -1", {"inputs": -1}), ("inputs is 'a", {"inputs": "a"}),
                ("inputs is \\(1, 2, 3\\)", {"inputs": (1, 2, 3)}), ("0 to 0 outputs", {"outputs": 0}),
                ("contents is \\[32\\]", {"contents": [32]}), ("contents is 1;", {"contents": 1}),
                ("no infer callback", {"infer": None}), ("infer cannot be called", {"infer": 5}),
                ("has neither", {"compute": None}), ("has both", {"plan": like}), ("compute cannot", {"compute": "f"})):
            with self.assertRaisesRegex(runnel.InvalidArgument, sentence):
                registry.add(**{**good, **changed})
        registry.add(**good)
        with self.assertRaisesRegex(runnel.InvalidArgument, "is in the registry already"):
            registry.add(**good)
        for given in ("registry", [registry], runnel.Registry):
            for call in (lambda: runnel.check_model(odd(), registry=given),
                         lambda: runnel.Session(odd(), self.device, registry=given),
                         lambda: runnel.open(odd(), ["0:0", "0:0"], registry=given)):
                with self.assertRaisesRegex(runnel.InvalidArgument, "give a runnel.Registry"):
                    call()

    # ---- exceptions

    def test_exceptions(self):
        for error, kind in ((Picky, runnel.Internal), (ValueError, runnel.InvalidArgument),
                            (NotImplementedError, runnel.Unimplemented), (MemoryError, runnel.ResourceExhausted),
                            (runnel.DataLoss, runnel.DataLoss), (StopIteration, runnel.Internal)):
            raised = []

            def raises(*_, error=error, raised=raised):
                raised.append(error("not this"))
                raise raised[-1]

            for how in ({"infer": raises}, {"plan": raises}, {"compute": raises}):
                caught = self.fails(kind, f"^{error.__name__}: not this$", **how)
                self.assertIs(caught.__cause__, raised[-1])
                frames, trace = [], caught.__cause__.__traceback__
                while trace:
                    frames.append(trace.tb_frame.f_code.co_name)
                    trace = trace.tb_next
                self.assertEqual(frames, ["raises"])

    def test_texts_of_exceptions(self):
        for error, text in ((Mute(), "Mute"), (ValueError(), "ValueError"), (ValueError("a\0b"), "ValueError: a b"),
                            (ValueError("\ud800"), r"ValueError: \?"), (ValueError("ü" * 5000), "ValueError: ü{700,800}")):
            def raises(*_):
                raise error

            self.assertIs(self.fails(runnel.Error, f"^{text}$", compute=raises).__cause__, error)

        def lines(*_):
            raise ValueError("first\nsecond %s %n")

        with self.assertRaisesRegex(runnel.InvalidArgument, "^ValueError: first\nsecond %s %n\nthe infer callback"):
            self.open(lines).run(None, {"x": vector()})

    def test_wrong_signatures(self):
        caught = self.fails(runnel.Internal, "^TypeError: .*2 were given", infer=lambda node: None)
        self.assertIsInstance(caught.__cause__, TypeError)

    def test_the_session_works_on(self):
        def compute(node, x):
            if x.size == 3:
                raise Picky("three")
            return x

        for session in (self.open(compute=compute), self.open(infer=lambda node, x: compute(node, x) if x.size == 3 else x)):
            for size in (2, 3, 4, 3, 2):
                if size != 3:
                    np.testing.assert_array_equal(session.run(None, {"x": vector(size)})[0], -vector(size))
                    continue
                with self.assertRaisesRegex(runnel.Internal, "Picky: three") as caught:
                    session.run(None, {"x": vector(size)})
                self.assertIsInstance(caught.exception.__cause__, Picky)
            with self.assertRaises(runnel.Internal) as caught:
                session.profile({"x": vector(3)})
            self.assertIsInstance(caught.exception.__cause__, Picky)
            with self.assertRaises(runnel.InvalidArgument) as caught:  # for another reason
                session.run(None, {"x": vector().astype(np.float64)})
            self.assertIsNone(caught.exception.__cause__)

    def test_what_is_no_error(self):
        for error in (KeyboardInterrupt(), SystemExit(3)):
            def raises(*_):
                raise error

            for session in (self.open(raises), self.open(compute=raises), self.open(plan=raises)):
                for run in (session.run, lambda *given: session.submit(*given).result()):
                    with self.assertRaises(type(error)):
                        run(None, {"x": vector()})

    def test_while_opening(self):
        def compute(node, x):
            raise Picky("a constant")

        nodes = [helper.make_node("Constant", [], ["a"], value_floats=[1.0, 2.0]),
                 helper.make_node("Odd", ["a"], ["b"], "culprit", domain="com.example"),
                 helper.make_node("Add", ["x", "b"], ["y"])]
        made = model(nodes, {"x": (F32, [2])}, {"y": (F32, [2])}, domains={"com.example": 1})
        with self.assertRaisesRegex(runnel.Internal, "^Picky: a constant\nthe compute callback") as caught:
            self.open(compute=compute, made=made)
        self.assertIsInstance(caught.exception.__cause__, Picky)

    def test_several_devices(self):
        registry = runnel.Registry()

        def infer(node, x):
            if x.shape[0] > 100:
                raise ValueError(f"{x.shape[0]} are too many")
            return x

        registry.add("com.example", "Odd", infer=infer, compute=like)
        made = model([helper.make_node("Odd", ["x"], ["y"], "culprit", domain="com.example")],
                     {"x": (F32, ["n"])}, {"y": (F32, [None])}, domains={"com.example": 1})
        with runnel.open(made, ["0:0", "0:0"], registry=registry) as session:
            for size in (4, 300, 8, 400):  # in parts, of which one at least is too large
                future = session.submit(None, {"x": vector(size)})
                if size < 100:
                    np.testing.assert_array_equal(future.result()[0], vector(size))
                    continue
                with self.assertRaisesRegex(runnel.InvalidArgument, "are too many"):
                    future.result()
                self.assertIsInstance(future.exception().__cause__, ValueError)

    # ---- answers

    def test_answers_of_infer(self):
        spec, many = runnel.TensorSpec, odd(outputs=("y", "z"))
        for answer, sentence in (
                (None, "^it gave None, and not a TensorSpec for each of 1 outputs$"),
                (np.float32, "^it gave <class 'numpy.float32'>, and not a TensorSpec"),
                ((np.float32, 3), "^it gave 2 outputs, and the node has 1$"), ([], "^it gave 0 outputs, and the node has 1$"),
                ([(3,)], r"^it gave \(3,\) for output 0, and not a TensorSpec$"),
                (spec(np.complex64, 3), "^it gave output 0 the numpy type complex64, which no tensor has$"),
                (spec("U3", 3), "^it gave output 0 the numpy type <U3, which no tensor has$"),
                (spec(np.int8, (2**70,)), "^it gave output 0 the impossible shape"),
                (spec(np.int8, (2**40, 2**40)), "^it gave output 0 the impossible shape"),
                (spec(np.float32, -2), "^it gave output 0 the impossible shape -2$"),
                (spec(np.float32, (1,) * 9), "^it gave output 0 9 dimensions; the most is 8$"),
                (spec(np.int8, COUNT), "^it gave output 0 .'y'. as int8 6, and the file declares float32"),
                (spec(np.float32, (2, 3)), "^it gave output 0 .'y'. as float32 2x3, and the file declares float32")):
            self.assertIsNone(self.fails(runnel.InvalidArgument, sentence, infer=lambda node, x: answer).__cause__)
        self.fails(runnel.InvalidArgument, "^it gave 1 outputs, and the node has 2$", many, infer=like, outputs=2)
        for shape, kind in ((1.5, TypeError), ("ab", TypeError), (None, TypeError)):
            with self.assertRaises(kind):
                spec(np.float32, shape)

    def test_answers_of_compute(self):
        for answer, sentence in (
                (None, "^it gave None for output 0, and not an array$"), (1.5, "^it gave 1.5 for output 0, and not"),
                ([1.0, 2.0], "^it gave 2 outputs, and the node has 1$"), ({}, "^it gave {} for output 0"),
                (vector().astype(np.float64), r"^it gave output 0 as float64 \(6,\), and infer said float32 \(6,\)$"),
                (vector(5), r"^it gave output 0 as float32 \(5,\), and infer said float32 \(6,\)$"),
                (vector().reshape(2, 3), r"^it gave output 0 as float32 \(2, 3\), and infer said"),
                (np.float32(1), r"^it gave output 0 as float32 \(\), and infer said"),
                (np.array(["a"] * 6), "^it gave output 0 as <U1"),
                (np.array([object()] * 6), "^it gave output 0 as object")):
            how = {"infer": like, "compute": lambda node, x: answer}
            self.assertIsNone(self.fails(runnel.InvalidArgument, sentence, **how).__cause__)
        swapped = vector().astype(">f4")  # another byte order is no other type
        np.testing.assert_array_equal(self.open(compute=lambda *_: swapped).run(None, {"x": vector()})[0], vector())
        spread = np.repeat(vector(), 2)[::2]
        np.testing.assert_array_equal(self.open(compute=lambda *_: spread).run(None, {"x": vector()})[0], vector())

    def test_answers_of_plan(self):
        for answer, sentence in ((None, "^it gave None, and not a runnel.Launch or a list"), ("copy", "^it gave 'copy', and"),
                                 ([5], "^it gave 5 for launch 0, and not a runnel.Launch$")):
            self.fails(runnel.InvalidArgument, sentence, plan=lambda node, x: answer)
        session = self.open(plan=lambda node, x: [])
        with self.assertRaisesRegex(runnel.InvalidArgument, "added no launch that has output 0"):
            session.run(None, {"x": vector()})

    # ---- launches

    def test_launches(self):
        other = runnel.TensorSpec(np.float32, COUNT)
        for sentence, change in (
                ("a launch needs a kernel's name and its source or its path", {"source": None}),
                ("a launch needs a kernel's name and its source or its path", {"path": "/nowhere"}),
                ("launch 0: the kernel's name is a int, not text", {"kernel": 5}),
                ("launch 0: the source has a NUL in it", {"source": "a\0b"}),
                ("launch 0: the path is a int", {"source": None, "path": 5}),
                ("build_options is a int, not text", {"build_options": 1}),
                ("the define N is a list; give a number, text, or None", {"defines": {"N": [1]}}),
                ("argument 2: it is 6; give a tensor", {"args": [0, 1, COUNT]}),
                ("argument 2: it is True; give a tensor", {"args": [0, 1, True]}),
                ("argument 2: it has numpy type bool", {"args": [0, 1, np.bool_(True)]}),
                ("argument 2: it has numpy type complex64", {"args": [0, 1, np.complex64(1)]}),
                ("argument 2: it has numpy type bfloat16", {"args": [0, 1, ml_dtypes.bfloat16(1)]}),
                (r"argument 2: it has the shape \(5,\); a vector has", {"args": [0, 1, np.zeros(5, np.int64)]}),
                (r"argument 2: it has the shape \(2, 2\)", {"args": [0, 1, np.zeros((2, 2), np.int64)]}),
                ("argument 0: it is a TensorSpec that is none of the node's", {"args": [other, 1, np.int64(6)]}),
                ("argument 0: it is None, and no input of the node is left out", {"args": [None, 1, np.int64(6)]}),
                ("it takes 5 arguments, and 4 are given", {"args": [0, 1]}),
                (r"there is no Scratch\(-1\)", {"args": [0, 1, runnel.Scratch(-1)]}),
                ("a range|4 dimensions", {"global_size": (1, 1, 1, 1)}), ("0 dimensions", {"global_size": ()}),
                ("global_size has 2 dimensions and local_size 1", {"global_size": (6, 1), "local_size": 1}),
                ("have to be whole numbers", {"global_size": 1.5}), ("cannot be$", {"global_size": -1}),
                (r"local_size \(0,\) cannot be", {"local_size": 0}), ("work-groups of at most", {"local_size": 2**30})):
            def plan(node, x, change=change):
                if "args" in change:
                    tensors = {0: x, 1: node.outputs[0]}
                    change = {"args": [tensors.get(arg, arg) if type(arg) is int else arg for arg in change["args"]]}
                return copy_launch(node, x, **change)

            self.fails(runnel.InvalidArgument, sentence, plan=plan)
        self.fails(runnel.NotFound, "nowhere", plan=lambda node, x: copy_launch(node, x, source=None, path="/nowhere"))
        self.fails(runnel.NotFound, "other", plan=lambda node, x: copy_launch(node, x, kernel="other"))
        self.fails(runnel.Internal, "^TypeError", plan=lambda node, x: copy_launch(node, x, defines=3))

    def test_a_source_that_does_not_compile(self):
        said = []

        def plan(node, x):
            return copy_launch(node, x, source="kernel void copy(global float *x) { x[0] = missing; }\n", source_name="bad.cl",
                               log=said.append)

        session = self.open(plan=plan)
        with self.assertRaisesRegex(runnel.InvalidArgument, "missing") as caught:
            session.run(None, {"x": vector()})
        self.assertIn("bad.cl", str(caught.exception))
        self.assertIn(PLACE, str(caught.exception))
        self.assertEqual(len(said), 1)
        self.assertIn("missing", said[0])

    # ---- what callbacks must not do

    def test_the_session_itself(self):
        for use in (lambda session: session.run(None, {"x": vector()}), lambda session: session.close(),
                    lambda session: session.profile({"x": vector()}), lambda session: session.stats(),
                    lambda session: session.submit(None, {"x": vector()})):
            session = None
            session = self.open(compute=lambda node, x: use(session))
            with self.assertRaisesRegex(runnel.FailedPrecondition, "a callback cannot use the session"):
                session.run(None, {"x": vector()})
            session.close()

    def test_what_is_borrowed(self):
        kept = []

        def infer(node, x):
            kept.append(node)
            return x

        session = self.open(infer, plan=lambda node, x: [kept.append(node), copy_launch(node, x)][1])
        np.testing.assert_array_equal(session.run(None, {"x": vector()})[0], -vector())
        session.close()
        self.assertEqual(len(kept), 2)
        for node in kept:
            self.assertIsNone(node.inputs[0].value)
            with self.assertRaisesRegex(runnel.FailedPrecondition, "while its callback runs"):
                node.attributes


if __name__ == "__main__":
    unittest.main(verbosity=2)
