#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every example without arguments on the default device.

RUNNEL_BUILD  the folder with the programs (default build/release)
"""

import glob
import os
import re
import subprocess
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.environ.get("RUNNEL_BUILD", os.path.join(ROOT, "build", "release"))

# Without shared memory (RUNNEL_ARENA=off) the pool makes each buffer anew.
FOUND = 0 if os.environ.get("RUNNEL_ARENA") == "off" else 999

# A line that each prints.
LINES = {
    "custom_operator": r"^y = 0\.25 0 1\.5 -0\.5 -2 -4$",
    "command_list": r"after 500 replays the wave has come \d+ points far",
    "interop": r"3 squared twice is 81",
    "own_kernel": r"p\(0\.5\) = 0\.15625",
    "gemm": r"^packed, by gemm:\w+: differs by at most \de-\d+$",
    "pinned": r"24 pieces of 256 KiB through 3 pinned slots of .*: 0 wrong",
    "pool": rf"1000 allocations, {FOUND} found memory ready",
    "streams": r"12 batches of 65536 numbers on 3 streams: 0 wrong",
}


class ExamplesTest(unittest.TestCase):
    def test_all(self):
        programs = sorted(glob.glob(os.path.join(BUILD, "**", "example-*"), recursive=True))
        programs = [path for path in programs if os.path.isfile(path) and os.access(path, os.X_OK)]
        self.assertTrue(programs, f"no examples in {BUILD}")
        for path in programs:
            name = os.path.basename(path).removeprefix("example-")
            with self.subTest(name):
                result = subprocess.run([path], capture_output=True, text=True, timeout=120, cwd=ROOT)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, re.compile(LINES.get(name, r"."), re.MULTILINE))


if __name__ == "__main__":
    unittest.main()
