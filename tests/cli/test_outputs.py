# SPDX-License-Identifier: Apache-2.0
"""What a run prints and writes: the device, one line an output, files, the K largest, latency."""

import os
import re
import resource
import unittest

import numpy as np
from onnx import helper

from command import CommandTest


class LinesTest(CommandTest):
    def line(self, array):
        """The line of output y for a model that passes `array` through."""
        model = self.identity(array.dtype.name, list(array.shape))
        return self.succeed("run", model, "-i", self.save("x.npy", array)).line("y: ")

    def test_device_comes_first(self):
        result = self.succeed("run", self.relu(), "-i", "zeros")
        self.assertRegex(result.lines[0], r"^device: .+ \(\d+:\d+\)$")
        self.assertEqual(len(result.lines), 2)

    def test_floats(self):
        array = np.array([[-1.5, 0.25, 8], [2, 3, 0.25]], np.float32)
        self.assertEqual(self.line(array), "y: float32 [2,3] min -1.5 max 8 mean 2")

    def test_integers_in_full(self):
        array = np.array([-(2**63), 2**53 + 1, 2**63 - 1], np.int64)
        self.assertRegex(self.line(array),
                         r"^y: int64 \[3\] min -9223372036854775808 max 9223372036854775807 mean 3\.00\d+e\+15$")
        self.assertEqual(self.line(np.array([2**64 - 1], np.uint64)).split(" mean")[0],
                         "y: uint64 [1] min 18446744073709551615 max 18446744073709551615")
        self.assertEqual(self.line(np.array([True, False])), "y: bool [2] min 0 max 1 mean 0.5")

    def test_scalar(self):
        self.assertEqual(self.line(np.array(3, np.float32)), "y: float32 [] min 3 max 3 mean 3")

    def test_not_a_number(self):
        array = np.array([np.nan, 1, 3, np.nan], np.float32)
        self.assertEqual(self.line(array), "y: float32 [4] min 1 max 3 mean 2 nan 2")
        self.assertEqual(self.line(array[:1]), "y: float32 [1] nan 1")
        self.assertEqual(self.line(np.array([np.inf, 0], np.float32)), "y: float32 [2] min 0 max inf mean inf")
        self.assertEqual(self.line(np.array([np.inf, -np.inf], np.float32)),
                         "y: float32 [2] min -inf max inf mean nan")

    def test_several_outputs_in_the_models_order(self):
        model = self.model([helper.make_node("Relu", ["x"], ["b"]), helper.make_node("Neg", ["x"], ["a"])],
                           [("x", "float32", [2])], [("b", "float32", [2]), ("a", "float32", [2])])
        result = self.succeed("run", model, "-i", self.save("x.npy", np.array([-1, 2], np.float32)))
        self.assertEqual(result.lines[1:], ["b: float32 [2] min 0 max 2 mean 1", "a: float32 [2] min -2 max 1 mean -0.5"])

    def test_hostile_name(self):
        model = self.relu(names=("x", "y\x1b[2J\nz"))
        result = self.succeed("run", model, "-i", "zeros", "-o", "out")
        self.assertEqual(len(result.lines), 2)
        self.assertNotIn("\x1b", result.stdout)
        self.assertRegex(os.listdir(self.path("out"))[0], r"^y[A-Za-z0-9._-]+z\.npy$")


class FileTest(CommandTest):
    def two_outputs(self, first, second):
        return self.model([helper.make_node("Relu", ["x"], [first]), helper.make_node("Neg", ["x"], [second])],
                          [("x", "float32", [2])], [(first, "float32", [2]), (second, "float32", [2])])

    def test_names(self):
        model = self.two_outputs("serving/default:0", "Aa-1._é")
        self.succeed("run", model, "-i", "zeros", "-o", "out")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["Aa-1.___.npy", "serving_default_0.npy"])

    def test_no_way_out_of_the_folder(self):
        self.succeed("run", self.two_outputs("../../up", ".."), "-i", "zeros", "-o", "out")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["...npy", ".._.._up.npy"])

    def test_same_file(self):
        self.refuse("'a/b'", "'a:b'", "a_b.npy", arguments=["run", self.two_outputs("a/b", "a:b"), "-o", "out"])
        self.assertFalse(os.path.exists(self.path("out")))

    def test_existing_folder_and_files(self):
        model = self.relu()
        os.mkdir(self.path("out"))
        self.write("out/other", b"stays")
        self.write("out/y.npy", b"goes")
        self.succeed("run", model, "-i", "zeros", "-o", self.path("out") + "/")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["other", "y.npy"])
        np.testing.assert_array_equal(np.load(self.path("out", "y.npy")), np.zeros((1, 4), np.float32))

    def test_readable_by_others(self):
        old = os.umask(0o022)
        self.addCleanup(os.umask, old)
        self.succeed("run", self.relu(), "-i", "zeros", "-o", "out")
        self.assertEqual(os.stat(self.path("out", "y.npy")).st_mode & 0o777, 0o644)

    def test_folder_that_cannot_be(self):
        model = self.relu()
        self.write("file", b"")
        for folder, reason in (("none/out", "No such file"), ("file", "not a folder"), ("file/out", "Not a directory"),
                               ("/proc/runnel-out", "/proc/runnel-out"), ("/sys/out", "/sys/out")):
            result = self.refuse(folder, reason, arguments=["run", model, "-i", "zeros", "-o", folder])
            self.assertEqual(len(result.messages), 1)

    def test_folder_that_may_not_be_written(self):
        if os.geteuid() == 0:
            self.skipTest("root may write anywhere")
        os.mkdir(self.path("out"), 0o555)
        self.refuse("out", "Permission denied", arguments=["run", self.relu(), "-o", "out"])
        self.refuse("out/in", "Permission denied", arguments=["run", self.relu(), "-o", "out/in"])

    def test_full_disk(self):
        """A limit on the size of files stands for a full disk: the second output does not fit."""
        model = self.model([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Relu", ["z"], ["b"])],
                           [("x", "float32", [64]), ("z", "float32", [2**21])],
                           [("a", "float32", [64]), ("b", "float32", [2**21])])
        self.succeed("run", model)  # caches are filled: the limit is not for them

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2**22, 2**22))

        options = {"preexec_fn": limit, "restore_signals": False}
        for folder in ("new", "old"):
            if folder == "old":
                os.mkdir(self.path(folder))
                self.write("old/a.npy", b"as it was")
            self.refuse("b.npy", "File too large", arguments=["run", model, "-o", folder], **options)
        self.assertFalse(os.path.exists(self.path("new")))
        self.assertEqual(os.listdir(self.path("old")), ["a.npy"])
        with open(self.path("old", "a.npy"), "rb") as file:
            self.assertEqual(file.read(), b"as it was")

    def test_nothing_is_written_when_the_run_fails(self):
        model = self.model([helper.make_node("Add", ["x", "z"], ["y"])],
                           [("x", "float32", ["n"]), ("z", "float32", ["m"])], [("y", "float32", None)])
        result = self.call("run", model, "--shape", "x=2", "--shape", "z=3", "-o", "out")
        self.assertEqual(result.code, 1, result.stderr)
        self.assert_no_files(self.path("out"))


class TopTest(CommandTest):
    def run_top(self, array, *options):
        model = self.identity(array.dtype.name, list(array.shape))
        result = self.succeed("run", model, "-i", self.save("x.npy", array), *options)
        return [line for line in result.lines if not line.startswith(("device:", "y:"))]

    def test_index(self):
        array = np.array([[0.5, 4, -1, 4, 2]], np.float32)
        self.assertEqual(self.run_top(array, "--top", "3"), ["top of y:", "  1. 1: 4", "  2. 3: 4", "  3. 4: 2"])

    def test_more_than_there_are(self):
        self.assertEqual(self.run_top(np.array([3, 9], np.int64), "--top", "5"), ["top of y:", "  1. 1: 9", "  2. 0: 3"])

    def test_labels(self):
        self.write("labels.txt", "cat\r\ndog, the\nbird".encode())
        array = np.array([1, 2, 3, 4], np.float32)
        self.assertEqual(self.run_top(array, "--top", "3", "--labels", "labels.txt"),
                         ["top of y:", "  1. 3: 4", "  2. bird: 3", "  3. dog, the: 2"])

    def test_samples(self):
        array = np.array([[[1], [2]], [[4], [3]]], np.float32)
        self.assertEqual(self.run_top(array, "--top", "1"),
                         ["top of y, sample 0:", "  1. 1: 2", "top of y, sample 1:", "  1. 0: 4"])

    def test_not_a_number(self):
        self.assertEqual(self.run_top(np.array([np.nan, 1], np.float32), "--top", "2"), ["top of y:", "  1. 1: 1"])

    def test_missing_labels(self):
        self.refuse("none.txt", "No such file",
                    arguments=["run", self.relu(), "--top", "1", "--labels", "none.txt"])
        self.refuse(self.folder, "Is a directory",
                    arguments=["run", self.relu(), "--top", "1", "--labels", self.folder])
        os.mkfifo(self.path("pipe"))
        self.refuse("pipe", "not a regular file",
                    arguments=["run", self.relu(), "--top", "1", "--labels", self.path("pipe")])


class RepeatTest(CommandTest):
    def test_latency(self):
        array = np.arange(4, dtype=np.float32).reshape(1, 4)
        result = self.succeed("run", self.relu(), "-i", self.save("x.npy", array), "--repeat", "20", "-o", "out")
        match = re.fullmatch(r"latency ms: min ([\d.]+), median ([\d.]+), p95 ([\d.]+)", result.lines[-1])
        self.assertTrue(match, result.stdout)
        low, middle, high = map(float, match.groups())
        self.assertTrue(0 < low <= middle <= high, result.lines[-1])
        np.testing.assert_array_equal(np.load(self.path("out", "y.npy")), array)

    def test_once(self):
        match = re.fullmatch(r"latency ms: min ([\d.]+), median ([\d.]+), p95 ([\d.]+)",
                             self.succeed("run", self.relu(), "--repeat", "1").lines[-1])
        self.assertEqual(len(set(match.groups())), 1)

    def test_not_asked_for(self):
        self.assertNotIn("latency", self.succeed("run", self.relu()).stdout)


if __name__ == "__main__":
    unittest.main()
