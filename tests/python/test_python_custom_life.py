# SPDX-License-Identifier: Apache-2.0
"""How long callbacks, and what they hold, live: as long as the C library may call them, and no longer."""

import concurrent.futures
import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy as np
from onnx import helper

from package import DEVICE, model
import runnel  # noqa: E402
from runnel import _callbacks  # noqa: E402

F32 = 1
MODEL = model([helper.make_node("Neg", ["x"], ["a"]),
               helper.make_node("Own", ["a"], ["b"], "own", domain="com.example", by=2.0),
               helper.make_node("Neg", ["b"], ["y"])],
              {"x": (F32, ["n"])}, {"y": (F32, ["n"])}, domains={"com.example": 1}).SerializeToString()
SOURCE = """
kernel void times(global const float *x, long x_at, global float *y, long y_at, float by, long n)
{
    const long i = get_global_id(0);
    if (i < n)
        y[y_at + i] = x[x_at + i] * by;
}
"""

EXIT = """
import os, sys, threading
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import test_python_custom_life as life
import runnel
owner = life.Owner()
session = runnel.Session(life.MODEL, life.DEVICE, registry=owner.registry("compute"))
x = life.vector(4)
session.run(None, {"x": x})
threading.Thread(target=lambda: [session.run(None, {"x": x}) for _ in range(50)]).start()
session.submit(None, {"x": x})
print("bye")
"""


def vector(size):
    return np.arange(1, size + 1, dtype=np.float32)


class Owner:
    """Has the callbacks, and whatever the test gives it."""

    def infer(self, node, x):
        return x

    def plan(self, node, x):
        return runnel.Launch("times", [x, node.outputs[0], np.float32(node.attributes["by"]), np.int64(x.size)], x.size,
                             source=SOURCE)

    def compute(self, node, x):
        return x * np.float32(node.attributes["by"])

    def registry(self, way):
        registry = runnel.Registry()
        registry.add("com.example", "Own", infer=self.infer, **{way: getattr(self, way)})
        return registry


class LifeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(DEVICE)

    @classmethod
    def tearDownClass(cls):
        cls.device.close()

    def open(self, owner, way="compute"):
        return runnel.Session(MODEL, self.device, registry=owner.registry(way))

    def check(self, session, size=5):
        np.testing.assert_array_equal(session.run(None, {"x": vector(size)})[0], vector(size) * 2)

    def gone(self, *references):
        for _ in range(100):  # the thread that ran a future lets go of it a little later
            gc.collect()
            if not any(reference() for reference in references):
                return
            time.sleep(0.01)
        self.assertEqual([reference() for reference in references], [None] * len(references))

    def test_with_the_session(self):
        for way in ("plan", "compute"):
            owner = Owner()
            owner.session = self.open(owner, way)
            session, held = owner.session, weakref.ref(owner)
            del owner.session, owner
            gc.collect()
            for size in (3, 5, 8):  # the registry and all else of ours is gone
                self.check(session, size)
            self.assertIsNotNone(held())
            session.close()
            del session
            self.gone(held)

    def test_circles(self):
        for way in ("plan", "compute"):
            owner = Owner()
            owner.session = self.open(owner, way)
            owner.array = vector(1000)
            self.check(owner.session)
            held = weakref.ref(owner), weakref.ref(owner.session), weakref.ref(owner.array)
            del owner
            self.gone(*held)

    def test_again_and_again(self):
        held, before = [], None
        for i in range(120):
            owner = Owner()
            with self.open(owner, ("plan", "compute")[i % 2]) as session:
                self.check(session)
                self.check(session, 2 + i % 7)
            held += [weakref.ref(owner), weakref.ref(session)]
            if i == 60:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        del owner, session
        self.gone(*held)
        self.assertEqual(len(_callbacks._bound), 0)
        if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # which keeps what is freed
            self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 16 << 10)

    def test_exceptions(self):
        """Nothing keeps them but who caught them; also where the library asked again and went on."""
        class Marked(runnel.FailedPrecondition):
            pass

        held = []

        def infer(node, x):
            if x.value is None or x.size == 3:
                error = Marked("not yet")
                held.append(weakref.ref(error))
                raise error
            return x

        owner = Owner()
        owner.infer = infer
        session = self.open(owner)
        for size in (2, 4):
            self.check(session, size)
        self.assertGreater(len(held), 0)
        self.gone(*held)
        with self.assertRaises(runnel.FailedPrecondition) as caught:
            session.run(None, {"x": vector(3)})
        self.assertIs(caught.exception.__cause__, held[-1]())
        del caught
        self.gone(*held)
        session.close()

    def test_failed_openings(self):
        held = []
        for given in (b"no model", MODEL[:-5], "/nowhere.onnx", 5):
            owner = Owner()
            with self.assertRaises(runnel.Error):
                runnel.Session(given, self.device, registry=owner.registry("plan"))
            held.append(weakref.ref(owner))
        del owner
        self.gone(*held)
        self.assertEqual(len(_callbacks._bound), 0)

    def test_arrays_that_are_kept(self):
        """They are copies: valid, and their own, behind the callback, the session and the device's memory."""
        kept = []

        def compute(node, x):
            kept.append((x, x.copy()))
            return x * 2

        owner = Owner()
        owner.compute = compute
        with self.open(owner) as session:
            for size in (3, 4, 1000, 4):
                self.check(session, size)
        gc.collect()
        for array, copy in kept:
            np.testing.assert_array_equal(array, copy)
            array[...] = 0

    def test_a_call_that_comes_too_late(self):
        for way in ("plan", "compute"):
            session = self.open(Owner(), way)
            self.check(session, 3)
            session._graph._bound.clear()
            gc.collect()
            with self.assertRaisesRegex(runnel.FailedPrecondition, "^the session was closed\nthe (infer|compute) callback"):
                session.run(None, {"x": vector(4)})
            session.close()

    def test_sessions_in_threads(self):
        held, lock = [], threading.Lock()

        def work(number):
            for i in range(6):
                owner = Owner()
                owner.session = self.open(owner, ("plan", "compute")[(i + number) % 2])
                self.check(owner.session, 1 + i)
                with lock:
                    held.append(weakref.ref(owner))
                if i % 2:
                    owner.session.close()  # else a circle, which any thread may collect
            gc.collect()
            return True

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertTrue(all(pool.map(work, range(4))))
        self.gone(*held)

    def test_one_registry_in_threads(self):
        owner = Owner()
        registry = owner.registry("compute")

        def work(number):
            with runnel.Session(MODEL, self.device, registry=registry) as session:
                registry.add("com.example", f"More{number}", infer=owner.infer, compute=owner.compute)
                for size in range(1, 9):
                    self.check(session, size)
            return True

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            self.assertTrue(all(pool.map(work, range(8))))

    def test_closing_while_a_callback_runs(self):
        entered, leave = threading.Event(), threading.Event()

        def compute(node, x):
            entered.set()
            leave.wait(60)
            return x * 2

        owner = Owner()
        owner.compute = compute
        session = self.open(owner)
        future = session.submit(None, {"x": vector(3)})
        self.assertTrue(entered.wait(60))
        closing = threading.Thread(target=session.close)
        closing.start()
        leave.set()
        closing.join(60)
        self.assertFalse(closing.is_alive())
        concurrent.futures.wait([future], 60)
        if future.exception():
            self.assertIsInstance(future.exception(), (runnel.Cancelled, runnel.FailedPrecondition))
        held = weakref.ref(owner)
        del session, owner, future, closing
        self.gone(held)

    def interrupted(self, call):
        """Whether an interrupt reaches who calls; Python drops one that comes while it runs a destructor."""
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            while timer.is_alive():
                call()
            return False
        except KeyboardInterrupt:
            return True
        finally:
            timer.join()

    def test_keyboard_interrupt(self):
        def compute(node, x):
            time.sleep(0.02)
            return x * 2

        owner = Owner()
        owner.compute = compute
        with self.open(owner) as session:
            for call in (lambda: session.run(None, {"x": vector(3)}), lambda: session.profile({"x": vector(3)}),
                         lambda: self.open(owner).close()):
                self.assertTrue(any(self.interrupted(call) for _ in range(4)))
                self.check(session)

    def test_far_down_a_stack(self):
        """Where Python would refuse to call another function the callbacks are called all the same."""
        owner = Owner()
        with self.open(owner) as session, concurrent.futures.ThreadPoolExecutor(1) as pool:
            def descend(more):
                return descend(more - 1) if more else session.run(None, {"x": vector(3)})[0]

            right = 0
            for depth in range(sys.getrecursionlimit() - 120, sys.getrecursionlimit(), 3):
                try:
                    np.testing.assert_array_equal(pool.submit(descend, depth).result(), vector(3) * 2)
                    right += 1
                except RecursionError:
                    pass
            self.assertGreater(right, 0)

    def test_exit_without_closing(self):
        done = subprocess.run([sys.executable, "-c", EXIT, os.path.abspath(__file__)], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip(), done.stderr), (0, "bye", ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
