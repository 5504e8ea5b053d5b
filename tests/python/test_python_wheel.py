# SPDX-License-Identifier: Apache-2.0
"""`pip install ./python` in a fresh environment: builds the wheel, which then runs a model without the source tree."""

import glob
import os
import subprocess
import sys
import tempfile
import unittest
import venv

from package import ROOT, relu

SCRIPT = """
import sys, numpy, runnel
assert runnel.__file__.startswith(sys.prefix), runnel.__file__
x = numpy.arange(-4, 4, dtype=numpy.float32).reshape(2, 4)
got, = runnel.Session(sys.argv[1]).run(None, {"x": x})
assert (got == numpy.maximum(x, 0)).all()
print("well")
"""


class WheelTest(unittest.TestCase):
    def pip(self, python, *arguments):
        done = subprocess.run([python, "-m", "pip", "--disable-pip-version-check", *arguments], capture_output=True,
                              text=True, timeout=240)
        if done.returncode and ("No matching distribution" in done.stderr or "onnection" in done.stderr):
            self.skipTest("PyPI cannot be reached: " + done.stderr.strip().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])

    def test_install(self):
        with tempfile.TemporaryDirectory() as folder:
            self.pip(sys.executable, "wheel", "--no-deps", "-w", folder, os.path.join(ROOT, "python"))
            wheel, = glob.glob(os.path.join(folder, "*.whl"))
            self.assertRegex(os.path.basename(wheel), r"^runnel_cl-[0-9.]+-py3-none-linux_\w+\.whl$")
            home = os.path.join(folder, "home")
            venv.create(home, with_pip=True)
            python = os.path.join(home, "bin", "python")
            self.pip(python, "install", wheel)
            model = os.path.join(folder, "relu.onnx")
            with open(model, "wb") as file:
                file.write(relu().SerializeToString())
            clean = {name: value for name, value in os.environ.items()
                     if name not in ("PYTHONPATH", "RUNNEL_LIBRARY_DIR", "LD_LIBRARY_PATH")}
            done = subprocess.run([python, "-c", SCRIPT, model], capture_output=True, text=True, env=clean, cwd=folder,
                                  timeout=120)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "well"), done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
