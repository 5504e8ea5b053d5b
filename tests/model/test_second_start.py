# SPDX-License-Identifier: Apache-2.0
"""
The second process compiles nothing: it runs with a preloaded library that makes clCreateProgramWithSource fail, and
without the linker that pocl calls at the end of each compilation of its own.
"""

import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_models import ROOT, path_of  # noqa: E402

BUILD = os.environ.get("RUNNEL_BUILD", os.path.join(ROOT, "build", "release"))
CASES = {
    "magika": ["bytes=1x2048"],
    "ch_PP-OCRv4_rec_infer": ["x=1x3x48x64"],
    "squeezenet": [],
}


class SecondStartTest(unittest.TestCase):
    def run_model(self, name, cache, out, **environment):
        command = [os.path.join(BUILD, "runnel"), "run", path_of(name), "-o", out]
        for shape in CASES[name]:
            command += ["--shape", shape]
        env = dict(os.environ, RUNNEL_CACHE_DIR=cache, **environment)
        if os.environ.get("RUNNEL_TEST_DEVICE"):
            env["RUNNEL_DEVICE"] = os.environ["RUNNEL_TEST_DEVICE"]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)

    def test_nothing_is_compiled(self):
        preload = os.path.join(BUILD, "libno_compile.so")
        for name in CASES:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                cache = os.path.join(folder, "cache")
                first = self.run_model(name, cache, os.path.join(folder, "a"))
                self.assertEqual(first.returncode, 0, first.stderr)
                second = self.run_model(name, cache, os.path.join(folder, "b"), LD_PRELOAD=preload)
                self.assertEqual(second.returncode, 0, second.stderr)
                self.assertEqual(second.stderr, "", "the second start says something is wrong")
                files = sorted(os.listdir(os.path.join(folder, "a")))
                self.assertTrue(files)
                for file in files:
                    a, b = (np.load(os.path.join(folder, side, file)) for side in "ab")
                    np.testing.assert_array_equal(a, b)

    def test_our_cache_is_enough(self):
        """With nothing in pocl's own cache, no kernel is specialised again for the sizes of its first launch."""
        with tempfile.TemporaryDirectory() as folder:
            linked, cache = os.path.join(folder, "linked"), os.path.join(folder, "cache")
            os.mkdir(os.path.join(folder, "bin"))
            linker = os.path.join(folder, "bin", "ld")
            with open(linker, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\necho "$@" >>"{linked}"\nPATH=$OLD_PATH exec ld "$@"\n')
            os.chmod(linker, 0o755)
            path = os.path.dirname(linker) + os.pathsep + os.environ["PATH"]
            for turn in ("a", "b"):
                done = self.run_model("squeezenet", cache, os.path.join(folder, turn), PATH=path,
                                      OLD_PATH=os.environ["PATH"], POCL_CACHE_DIR=os.path.join(folder, "pocl-" + turn))
                self.assertEqual(done.returncode, 0, done.stderr)
                if turn == "a" and done.stdout.startswith(("device: pthread", "device: basic")):
                    self.assertTrue(os.path.exists(linked), "pocl has not called the linker")
                if os.path.exists(linked):
                    os.rename(linked, linked + "-" + turn)
            self.assertFalse(os.path.exists(linked + "-b"), "the second process has compiled")

    def test_the_preload_works(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_model("squeezenet", os.path.join(folder, "cache"), os.path.join(folder, "a"),
                                  LD_PRELOAD=os.path.join(BUILD, "libno_compile.so"))
            self.assertEqual(done.returncode, 1)
            self.assertIn("clCreateProgramWithSource", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
