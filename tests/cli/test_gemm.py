#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`runnel bench gemm` and `runnel tune gemm`: what they print and write; no time is judged."""

import glob
import json
import os
import unittest

import numpy as np

from command import CommandTest

QUICK = ("--repeat", "1", "--seconds", "0")
ROW = r"^ *(f32|f16|bf16|i8) +(\d+) +(\d+) +(\d+)  (\S+)( packed)?( \*)? +\d+\.\d\d +\d+\.\d +\d+\.\d +\d+% +\d+\.\d\d$"


def numpy_blas():
    """The OpenBLAS that numpy's package carries, or None."""
    folder = os.path.join(os.path.dirname(os.path.dirname(np.__file__)), "numpy.libs")
    found = glob.glob(os.path.join(folder, "*openblas*"))
    return found[0] if found else None


class GemmTest(CommandTest):
    def rows(self, result):
        lines = result.lines[result.lines.index("") + 2:]
        for line in lines:
            self.assertRegex(line, ROW)
        return lines

    def test_bench(self):
        result = self.succeed("bench", "gemm", *QUICK, "--shape", "8x48x24", "--shape", "3x5x7", "--blas", "none",
                              "--json", "out.json")
        self.assertRegex(result.lines[0], r"^device \d+:\d+ ")
        self.assertRegex(result.line("peak: "), r"^peak: \d+\.\d GFLOP/s, \d+\.\d GB/s ")
        rows = self.rows(result)
        with open(self.path("out.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(len(report["rows"]), len(rows))
        for size in ((8, 48, 24), (3, 5, 7)):
            same = [row for row in report["rows"] if (row["m"], row["n"], row["k"]) == size]
            self.assertEqual(sum(row["chosen"] for row in same), 1)
            self.assertIn("portable", [row["implementation"] for row in same])
            self.assertTrue(all(row["ns"] > 0 and row["call_ns"] > 0 and row["gflops"] > 0 for row in same))

    def test_types_and_packed(self):
        result = self.succeed("bench", "gemm", *QUICK, "--shape", "8x48x24", "--type", "bf16", "--type", "i8", "--packed",
                              "--implementation", "best", "--blas", "none")
        rows = self.rows(result)
        self.assertEqual(len(rows), 2)
        self.assertTrue(all(" packed * " in row for row in rows))

    @unittest.skipUnless(numpy_blas(), "numpy has another BLAS")
    def test_blas(self):
        result = self.succeed("bench", "gemm", *QUICK, "--shape", "8x48x24", env={"RUNNEL_BLAS": numpy_blas()})
        self.assertRegex(result.line("blas: "), "OpenBLAS")
        self.assertRegex(result.lines[-1], r" blas +\d")

    def test_no_blas(self):
        self.refuse("no_such_library.so", arguments=("bench", "gemm", *QUICK, "--shape", "8x8x8", "--blas",
                                                     "./no_such_library.so"))

    def test_tune(self):
        shape = ("--shape", "8x48x24")
        env = {"RUNNEL_CACHE_DIR": self.path("cache")}
        result = self.succeed("tune", "gemm", *shape, "--seconds", "0.01", "--json", "out.json", env=env)
        with open(self.path("out.json"), encoding="utf-8") as file:
            (best,) = json.load(file)
        self.assertRegex(result.lines[-1], rf"^ f32 +8 +48 +24  {best['implementation']} +\d+ +\d+\.\d\d +\d+\.\d$")
        again = self.succeed("bench", "gemm", *QUICK, *shape, "--implementation", "best", "--blas", "none", env=env)
        self.assertIn(f"  {best['implementation']} * ", again.lines[-1])

    def test_misuse(self):
        for command in ("bench", "tune"):
            for arguments, part in ((("--shape", "3x4"), "not MxNxK"), (("--shape", "0x1x1"), "not MxNxK"),
                                    (("--shape", "x"), "not MxNxK"), (("--type", "f65"), "--type f65"),
                                    (("word",), "one argument too many")):
                self.misuse(part, arguments=(command, "gemm", *arguments), command=command)
        self.misuse("8-bit integers", arguments=("tune", "gemm", "--type", "i8"), command="tune")


if __name__ == "__main__":
    unittest.main()
