# SPDX-License-Identifier: Apache-2.0
"""Help, version, and everything that is wrong with a command line: exit code 2 and one line that names it."""

import os
import subprocess
import unittest

from command import COMMAND, CommandTest


class UsageTest(CommandTest):
    def test_help(self):
        self.assertIn("runnel run MODEL", self.succeed("--help").stdout)
        self.assertIn("--repeat N", self.succeed("run", "--help").stdout)
        self.assertIn("--json", self.succeed("info", "--help").stdout)
        self.assertEqual(self.succeed("run", "-h").stdout, self.succeed("run", "--help").stdout)

    def test_help_names_every_option(self):
        text = self.succeed("run", "--help").stdout
        for option in ("-i", "-o", "--device", "--shape", "--repeat", "--top", "--labels", "--threads", "--memory", "--verbose",
                       "--size", "--mean", "--std", "--layout", "--color", "random", "zeros", ".npy"):
            self.assertIn(option, text)

    def test_version(self):
        self.assertRegex(self.succeed("--version").stdout, r"^runnel \d+\.\d+\.\d+\n$")

    def test_commands(self):
        self.misuse("no command given", arguments=[], command="")
        self.misuse("'walk'", arguments=["walk"], command="")
        self.misuse("--version takes no argument", arguments=["--version", "x"], command="")

    def test_info(self):
        self.misuse("'--yaml'", arguments=["info", "--yaml"], command="info")
        self.misuse("'b.onnx'", arguments=["info", "a.onnx", "b.onnx"], command="info")

    def test_operands(self):
        self.misuse("no model given", arguments=["run"])
        self.misuse("no model given", arguments=["run", "-i", "x=zeros"])
        self.misuse("'b.onnx'", arguments=["run", "a.onnx", "b.onnx"])

    def test_options(self):
        self.misuse("unknown option '--frobnicate'", arguments=["run", "m.onnx", "--frobnicate"])
        self.misuse("unknown option '-q'", arguments=["run", "m.onnx", "-q"])
        self.misuse("--verbose", "takes no value", arguments=["run", "m.onnx", "--verbose=2"])
        for option in ("-i", "-o", "--input", "--output", "--device", "--shape", "--repeat", "--top", "--labels",
                       "--threads", "--memory", "--size", "--mean", "--std", "--layout", "--color"):
            self.misuse(option, "missing", arguments=["run", "m.onnx", option])
        for option in ("-i", "-o", "--device", "--labels"):
            self.misuse("empty", arguments=["run", "m.onnx", option, ""])

    def test_bad_numbers(self):
        for option in ("--repeat", "--top", "--threads"):
            for value in ("0", "-1", "three", "1.5", "", "99999999999999999999"):
                self.misuse(option, arguments=["run", "m.onnx", "--labels", "l", option, value])
        for value in ("0", "0.0", "-0.5", "1.01", "nan", "inf", "half", "", "1e400"):
            self.misuse("--memory", "above 0 and up to 1", arguments=["run", "m.onnx", "--memory", value])
        for value in ("224", "224x", "0x5", "1x2x3", "-1x5", "a", "70000x1"):
            self.misuse("--size", value, arguments=["run", "m.onnx", "--size", value])
        for option in ("--mean", "--std"):
            for value in ("1,2", "1,2,3,4", "x", "nan", "", "1;2;3"):
                self.misuse(option, arguments=["run", "m.onnx", option, value])
        self.misuse("--std", "must not be 0", arguments=["run", "m.onnx", "--std", "1,0,1"])
        for value in ("x=", "x=1,2", "x=1x", "x=-1x3", "x=1x1x1x1x1x1x1x1x1", "abc"):
            self.misuse("--shape", value, arguments=["run", "m.onnx", "--shape", value])

    def test_choices(self):
        self.misuse("--layout chwn", "neither nchw nor nhwc", arguments=["run", "m.onnx", "--layout", "chwn"])
        self.misuse("--color cmyk", "neither rgb nor bgr", arguments=["run", "m.onnx", "--color", "cmyk"])

    def test_what_needs_the_model(self):
        model = self.relu()
        picture = ["--mean", "0.5"]
        self.misuse("given twice", arguments=["run", model, "-i", "x=zeros", "-i", "x=zeros"])
        self.misuse("'x' is given twice", arguments=["run", model, "-i", "x=zeros", "-i", "random"])
        self.misuse("'x' is given twice", arguments=["run", model, "-i", "zeros", "-i", "x=random:3"])
        self.misuse("'x'", "twice", arguments=["run", model, "--shape", "x=1x4", "--shape", "1x4"])
        self.misuse("source is missing", arguments=["run", model, "-i", "x="])
        self.misuse("seed", "random:abc", arguments=["run", model, "-i", "x=random:abc"])
        self.misuse("seed", "random:-1", arguments=["run", model, "-i", "random:-1"])
        self.misuse("--mean", "no input is a picture", arguments=["run", model, "-i", "x=zeros", *picture])
        self.misuse("--labels needs --top", arguments=["run", model, "--labels", "l"])

    def test_hostile_text(self):
        result = self.call("run", "m.onnx", "--\x1b[31mred\n")
        self.assertEqual(result.code, 2)
        self.assertNotIn("\x1b", result.stderr)

    def test_full_standard_output(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([COMMAND, "--help"], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60,
                                  env=os.environ)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output: No space left on device", done.stderr)


if __name__ == "__main__":
    unittest.main()
