# SPDX-License-Identifier: Apache-2.0
"""The Python package with several threads, futures, await, interrupts and forks."""

import asyncio
import concurrent.futures
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

from package import DEVICE, find_slow, relu
import runnel  # noqa: E402

FORK = """
import os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
from package import DEVICE, relu
import runnel, numpy as np
x = np.ones((1, 4), np.float32)
session = runnel.Session(relu(), DEVICE)
session.run(None, {"x": x})
child = os.fork()
if child == 0:
    refused = 0
    for call in (lambda: session.run(None, {"x": x}), lambda: runnel.Session(relu(), DEVICE), runnel.get_devices,
                 lambda: runnel.Session(relu(), session.device), lambda: session.profile({"x": x})):
        try:
            call()
        except runnel.FailedPrecondition as error:
            refused += "fork" in str(error)
    session.close()
    del session
    sys.exit(40 + refused)  # through Python's and C's exit
status = os.waitpid(child, 0)[1]
assert os.waitstatus_to_exitcode(status) == 45, status
assert session.run(None, {"x": x})[0].sum() == 4
print("parent is well")
"""


class ThreadsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.device = runnel.Device(DEVICE)
        cls.session = runnel.Session(relu(), cls.device)
        found = find_slow(cls.device)
        cls.slow_model, cls.slow_x, cls.expected, cls.seconds = found.model, found.x, found.y, found.seconds
        cls.slow = runnel.Session(cls.slow_model, cls.device)
        cls.slow.run(None, {"x": cls.slow_x})  # compiles

    @classmethod
    def tearDownClass(cls):
        cls.slow.close()
        cls.session.close()
        cls.device.close()

    def works(self):
        np.testing.assert_array_equal(self.slow.run(None, {"x": self.slow_x})[0], self.expected)

    def test_one_session_in_many_threads(self):
        def work(number):
            for i in range(20):
                x = np.full((1 + (number + i) % 5, 4), number - 3.5 + i, np.float32)
                np.testing.assert_array_equal(self.session.run(None, {"x": x})[0], np.maximum(x, 0))
            return True

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            self.assertTrue(all(pool.map(work, range(6))))

    def test_other_threads_go_on(self):
        future = self.slow.submit(None, {"x": self.slow_x})
        count = 0
        while not future.done():
            count += 1
            time.sleep(0.001)
        self.assertGreater(count, 2)  # the GIL is free meanwhile
        np.testing.assert_array_equal(future.result()[0], self.expected)

    def test_futures(self):
        xs = [np.full((2, 4), i - 5, np.float32) for i in range(10)]
        futures = [self.session.submit(["y"], {"x": x}) for x in xs]
        for x, future in zip(xs, futures):
            np.testing.assert_array_equal(future.result(60)[0], np.maximum(x, 0))

    def test_await(self):
        async def both():
            xs = [np.full((2, 4), i - 1, np.float32) for i in range(3)]
            got = await asyncio.gather(*[self.session.run_async(None, {"x": x}) for x in xs])
            for x, (y,) in zip(xs, got):
                np.testing.assert_array_equal(y, np.maximum(x, 0))

        asyncio.run(both())

    def test_cancelled_task(self):
        async def impatient(attempt):
            task = asyncio.ensure_future(self.slow.run_async(None, {"x": self.slow_x}))
            await asyncio.sleep(self.seconds / 4 * 0.7**attempt)  # the run that was timed may have been a slow one
            if task.done():  # something else held this thread up
                return False
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return True

        self.assertTrue(any(asyncio.run(impatient(attempt)) for attempt in range(20)))
        self.works()

    def test_cancel(self):
        future = self.slow.submit(None, {"x": self.slow_x})
        while not future.done():
            self.slow.cancel()
            time.sleep(0.001)
        self.assertIsInstance(future.exception(), runnel.Cancelled)
        self.works()

    def test_keyboard_interrupt(self):
        for delay in (0, 0.001, min(0.05, self.seconds / 3)):
            timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                for _ in range(1000):
                    self.slow.run(None, {"x": self.slow_x})
            timer.join()
            self.works()

    def test_an_interrupt_stops_its_own_run_alone(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(lambda: [self.slow.run(None, {"x": self.slow_x})[0] for _ in range(3)])
            timer = threading.Timer(min(0.05, self.seconds / 3), os.kill, (os.getpid(), signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                for _ in range(1000):
                    self.slow.run(None, {"x": self.slow_x})
            timer.join()
            for got in other.result(60):
                np.testing.assert_array_equal(got, self.expected)

    def test_an_array_that_shrinks_meanwhile(self):
        x = self.slow_x.copy()
        future = self.slow.submit(None, {"x": x})
        if not future.done():
            with self.assertRaises(ValueError):
                x.resize((3, 3))  # numpy knows that its memory is in use
        np.testing.assert_array_equal(future.result()[0], self.expected)
        whole = np.concatenate([self.slow_x, self.slow_x])
        future = self.slow.submit(None, {"x": whole[:len(self.slow_x)]})
        if not future.done():
            with self.assertRaises(ValueError):
                whole.resize((3, 3), refcheck=False)
        np.testing.assert_array_equal(future.result()[0], self.expected)
        whole.resize((3, 3), refcheck=False)
        x = self.slow_x.copy()
        future = self.slow.submit(None, {"x": x})
        x.shape = (x.size,)
        np.testing.assert_array_equal(future.result()[0], self.expected)

    def test_a_file_that_shrinks(self):
        with tempfile.NamedTemporaryFile() as file:
            self.slow_x.tofile(file)
            file.flush()
            x = np.memmap(file.name, self.slow_x.dtype, "r", shape=self.slow_x.shape)
            np.testing.assert_array_equal(self.slow.run(None, {"x": x})[0], self.expected)
            future = self.slow.submit(None, {"x": x})
            os.truncate(file.name, 0)
            np.testing.assert_array_equal(future.result()[0], self.expected)
            for again in (x, x[::1, ::-1]):
                with self.assertRaisesRegex(runnel.InvalidArgument, "input 'x' lies in a file"):
                    self.slow.run(None, {"x": again})
        self.works()

    def test_close_while_it_runs(self):
        session = runnel.Session(self.slow_model, self.device)
        futures = [session.submit(None, {"x": self.slow_x}) for _ in range(3)]
        session.close()
        for future in futures:
            concurrent.futures.wait([future], 60)
            self.assertTrue(future.done())
            if not future.cancelled() and not future.exception():
                np.testing.assert_array_equal(future.result()[0], self.expected)

    def test_fork(self):
        done = subprocess.run([sys.executable, "-c", FORK, os.path.abspath(__file__)], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "parent is well"), done.stderr)

    def test_exit_without_closing(self):
        script = FORK.split("child =")[0] + "session.submit(None, {'x': x})\nprint('bye')\n"
        done = subprocess.run([sys.executable, "-c", script, os.path.abspath(__file__)], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip(), done.stderr), (0, "bye", ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
