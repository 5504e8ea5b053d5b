# SPDX-License-Identifier: Apache-2.0
"""`pip install ./python` in a fresh environment: builds the wheel, which then runs a model without the source tree."""

import glob
import os
import subprocess
import sys
import tempfile
import unittest
import venv

from onnx import helper

from package import ROOT, model, relu

SCRIPT = """
import os, sys, numpy, runnel
assert runnel.__file__.startswith(sys.prefix), runnel.__file__
assert os.path.exists(os.path.join(os.path.dirname(runnel.__file__), "py.typed"))
worker = os.path.join(os.path.dirname(runnel.__file__), "runnel-rt", "compile_worker")
assert os.access(worker, os.X_OK), worker
x = numpy.arange(-4, 4, dtype=numpy.float32).reshape(2, 4)
got, = runnel.Session(sys.argv[1]).run(None, {"x": x})
assert (got == numpy.maximum(x, 0)).all()
registry = runnel.Registry()
registry.add("com.example", "Twice", infer=lambda node, x: x, compute=lambda node, x: x * 2)
got, = runnel.Session(sys.argv[2], registry=registry).run(None, {"x": x})
assert (got == x * 2).all()
print("well")
"""


# What is tested is the way into the wheel, not what the optimiser makes; a folder of its own, where no later build finds
# the flag.
BUILD = (f"build-dir={os.path.join(ROOT, 'build', 'python-test', '{wheel_tag}')}",
         "cmake.define.CMAKE_C_FLAGS_RELEASE=-O0 -DNDEBUG")


class WheelTest(unittest.TestCase):
    def pip(self, python, *arguments):
        done = subprocess.run([python, "-m", "pip", "--disable-pip-version-check", *arguments], capture_output=True,
                              text=True, timeout=240)
        if done.returncode and ("No matching distribution" in done.stderr or "onnection" in done.stderr):
            self.skipTest("PyPI cannot be reached: " + done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])

    def test_install(self):
        with tempfile.TemporaryDirectory() as folder:
            settings = [f"--config-settings={setting}" for setting in BUILD]
            self.pip(sys.executable, "wheel", "--no-deps", *settings, "-w", folder, os.path.join(ROOT, "python"))
            wheel, = glob.glob(os.path.join(folder, "*.whl"))
            self.assertRegex(os.path.basename(wheel), r"^runnel_cl-[0-9.]+-py3-none-linux_\w+\.whl$")
            home = os.path.join(folder, "home")
            venv.create(home, with_pip=True)
            python = os.path.join(home, "bin", "python")
            self.pip(python, "install", wheel)
            shape = {"x": (1, ["n", 4])}, {"y": (1, ["n", 4])}
            models = [os.path.join(folder, name) for name in ("relu.onnx", "twice.onnx")]
            for path, made in zip(models, (relu(), model(
                    [helper.make_node("Twice", ["x"], ["y"], domain="com.example")], *shape, domains={"com.example": 1}))):
                with open(path, "wb") as file:
                    file.write(made.SerializeToString())
            clean = {name: value for name, value in os.environ.items()
                     if name not in ("PYTHONPATH", "RUNNEL_LIBRARY_DIR", "LD_LIBRARY_PATH")}
            done = subprocess.run([python, "-c", SCRIPT, *models], capture_output=True, text=True, env=clean, cwd=folder,
                                  timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "well"), done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
