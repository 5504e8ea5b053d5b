# SPDX-License-Identifier: Apache-2.0
"""What the machine offers, or fails to: devices, drivers, caches, progress and the log."""

import csv
import json
import os
import pty
import re
import shutil
import subprocess
import unittest

import numpy as np
from onnx import helper

from command import COMMAND, CommandTest


class DeviceTest(CommandTest):
    def vendors(self, *libraries):
        """A folder with these drivers, for OCL_ICD_VENDORS."""
        os.makedirs(self.path("vendors"), exist_ok=True)
        for number, library in enumerate(libraries):
            self.write(f"vendors/{number}.icd", library.encode() + b"\n")
        return {"OCL_ICD_VENDORS": self.path("vendors")}

    def test_specs(self):
        model = self.relu()
        name, where = re.fullmatch(r"device: (.+) \((\d+:\d+)\)", self.succeed("run", model).lines[0]).groups()
        for spec in (where, name, name[:4], name[2:6].upper()):
            line = self.succeed("run", model, "--device", spec).lines[0]
            self.assertTrue(line.startswith("device: "), line)
        self.assertEqual(self.succeed("run", model, "--device", where).lines[0], f"device: {name} ({where})")
        self.assertEqual(self.succeed("run", model, env={"RUNNEL_DEVICE": where}).lines[0], f"device: {name} ({where})")

    def test_type(self):
        model = self.relu()
        if "cpu," in self.succeed("info").stdout:
            self.succeed("run", model, "--device", "cpu")

    def test_the_option_wins(self):
        self.succeed("run", self.relu(), "--device", "0:0", env={"RUNNEL_DEVICE": "no such device"})

    def test_no_such_device(self):
        model = self.relu()
        for spec in ("7:7", "no such device", "0:99", "x:y"):
            result = self.refuse(f"'{spec}'", arguments=["run", model, "--device", spec, "-o", "out"])
            self.assertEqual(result.stdout, "")
            self.refuse(f"'{spec}'", arguments=["run", model], env={"RUNNEL_DEVICE": spec})
        self.assert_no_files(self.path("out"))

    def test_no_platform(self):
        environment = self.vendors()
        for arguments in (["info"], ["info", "--json"], ["run", self.relu(), "-o", "out"]):
            result = self.refuse("no OpenCL platform", "install", arguments=arguments, env=environment)
            self.assertEqual((result.stdout, len(result.messages)), ("", 1))
        self.assert_no_files(self.path("out"))

    def test_driver_that_is_not_there(self):
        self.refuse("no OpenCL platform", arguments=["run", self.relu()], env=self.vendors("/nowhere/libdriver.so"))

    def test_platform_without_a_device(self):
        """Mesa's Clover, on a machine without a GPU of its own."""
        icd = "/etc/OpenCL/vendors/mesa.icd"
        if not os.path.exists(icd):
            self.skipTest("Clover is not installed (Debian: mesa-opencl-icd)")
        if "ASAN_OPTIONS" in os.environ:
            self.skipTest("Clover's initialiser does not work under the address sanitizer")
        with open(icd, encoding="utf-8") as file:
            environment = self.vendors(file.read().strip())
        if self.call("info", env=environment).code == 0:
            self.skipTest("Clover has a device here")
        for arguments in (["info"], ["run", self.relu(), "-o", "out"]):
            result = self.refuse("device", "install", arguments=arguments, env=environment)
            self.assertEqual((result.stdout, len(result.messages)), ("", 1))
        self.assert_no_files(self.path("out"))

    def test_shares(self):
        model = self.relu()
        device = json.loads(self.succeed("info", "--json").stdout)["devices"][0]
        spec = f"{device['platform_index']}:{device['device_index']}"
        self.succeed("run", model, "--device", spec, "--memory", "0.5")
        self.refuse("names no share", arguments=["run", model, "--device", spec + "/half"])
        self.refuse("from 0 to 1", arguments=["run", model, "--device", spec + "/2.2"])
        self.refuse(spec + "/99999", arguments=["run", model, "--device", spec + "/99999"])
        if device["shares"] > 1:
            units = device["compute_units"]
            result = self.succeed("run", model, "--device", spec + "/2.1")
            self.assertIn(f"{units - units // 2} of {units} compute units", result.line("device: "))
            self.succeed("run", model, "--device", spec + "/2")
            self.refuse("give one of them", arguments=["run", model, "--device", spec + "/2", "--threads", "1"])

    def test_threads(self):
        model = self.relu()
        self.succeed("run", model, "--threads", "1")
        self.refuse("65536", arguments=["run", model, "--threads", "65536"])

    def test_homeless(self):
        """No variable names a folder that can be written."""
        result = self.call("run", self.relu(), "-i", "zeros", "-o", "out",
                           without=("HOME", "XDG_CACHE_HOME", "RUNNEL_CACHE_DIR", "POCL_CACHE_DIR"))
        self.assertEqual(result.code, 0, result.stderr)
        self.assertLessEqual(len(result.messages), 1, result.stderr)
        result = self.call("run", self.relu(), "-i", "zeros", env={
            "HOME": "/proc/none", "XDG_CACHE_HOME": "", "POCL_CACHE_DIR": ""}, without=("RUNNEL_CACHE_DIR",))
        self.assertEqual(result.code, 0, result.stderr)


class CacheTest(CommandTest):
    def setUp(self):
        super().setUp()
        weights = {"w": np.arange(20, dtype=np.float32).reshape(4, 5), "b": np.ones(5, np.float32)}
        nodes = [helper.make_node("MatMul", ["x", "w"], ["t"]), helper.make_node("Add", ["t", "b"], ["u"]),
                 helper.make_node("Relu", ["u"], ["y"])]
        self.model_path = self.model(nodes, [("x", "float32", [3, 4])], [("y", "float32", [3, 5])], weights)
        self.x = np.random.default_rng(2).random((3, 4), np.float32) - np.float32(0.5)
        self.expected = np.maximum(self.x @ weights["w"] + weights["b"], 0)
        self.save("x.npy", self.x)

    def run_with(self, cache, warnings, **options):
        """Right whatever the cache folder is; returns the warnings, of which there must be so many."""
        environment = {"RUNNEL_CACHE_DIR": cache, **options.pop("env", {})}
        shutil.rmtree(self.path("out"), ignore_errors=True)
        result = self.call("run", self.model_path, "-i", "x.npy", "-o", "out", env=environment, **options)
        self.assertEqual(result.code, 0, result.stderr)
        self.assertEqual(len(result.messages), warnings, result.stderr)
        for line in result.messages:
            self.assertTrue(line.startswith("runnel: warning: "), line)
        np.testing.assert_allclose(np.load(self.path("out", "y.npy")), self.expected, rtol=1e-3, atol=1e-4)
        return result

    def filled(self):
        """A cache folder after one run."""
        cache = self.path("cache")
        os.mkdir(cache, 0o700)
        self.run_with(cache, 0)
        self.assertTrue(self.entries(cache), "nothing was cached")
        return cache

    @staticmethod
    def entries(cache):
        return [os.path.join(folder, name) for folder, _, names in os.walk(cache) for name in names]

    def compiled(self, cache):
        """What a run says of compiling, from its log."""
        result = self.call("run", self.model_path, "-i", "x.npy", "--verbose", env={"RUNNEL_CACHE_DIR": cache})
        self.assertEqual(result.code, 0, result.stderr)
        return int(re.search(r"(\d+) programs compiled", result.stderr)[1])

    def test_second_process_compiles_nothing(self):
        cache = self.filled()
        self.assertEqual(self.compiled(cache), 0)
        result = self.run_with(cache, 0)
        self.assertNotIn("compiling", result.stderr)

    def test_folder_is_made(self):
        self.run_with(self.path("new", "folder"), 0)
        self.assertTrue(self.entries(self.path("new", "folder")))

    def test_off(self):
        cache = self.path("never")
        self.run_with(cache, 0, env={"RUNNEL_CACHE": "off"})
        self.assertFalse(os.path.exists(cache))

    def test_read_only(self):
        """Below a file, and in /proc, not even root can write."""
        self.write("file", b"")
        for cache, named in ((self.path("file"), self.path("file")), (self.path("file", "cache"), self.path("file")),
                             ("/proc/runnel-cache", "/proc/runnel-cache"), ("/proc/self", "/proc/self")):
            self.assertIn(named, self.run_with(cache, 1).stderr)

    def test_full(self):
        preload = os.path.join(os.path.dirname(COMMAND), "libdisk_full.so")
        if not os.path.exists(preload):
            self.skipTest("a build with sanitizers has no library to preload")
        cache = self.path("cache")
        os.mkdir(cache, 0o700)
        result = self.run_with(cache, 1, env={"LD_PRELOAD": preload, "TEST_FULL_FOLDER": cache})
        self.assertIn("No space left on device", result.stderr)
        self.assertEqual(self.entries(cache), [])

    def test_corrupt(self):
        cache = self.filled()
        for path in self.entries(cache):
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) // 2)
                file.write(b"\xa5" * 16)
        self.run_with(cache, 0)
        self.assertEqual(self.compiled(cache), 0)  # what was bad has been replaced

    def test_truncated(self):
        cache = self.filled()
        for keep in (0, 3, 40, -1):
            for path in self.entries(cache):
                os.truncate(path, keep if keep >= 0 else os.path.getsize(path) - 1)
            self.run_with(cache, 0)

    def test_junk(self):
        cache = self.filled()
        for path in self.entries(cache):
            size = os.path.getsize(path)
            with open(path, "wb") as file:
                file.write(os.urandom(size))
        self.write("cache/stray", b"x" * 1000)
        os.mkdir(self.path("cache", "folder"))
        self.run_with(cache, 0)

    def test_swapped_entries(self):
        """A whole, sound file under another one's name."""
        cache = self.filled()
        files = [path for path in self.entries(cache)]
        if len(files) < 2:
            self.skipTest("one program only")
        contents = [open(path, "rb").read() for path in files]
        for path, content in zip(files, contents[1:] + contents[:1]):
            with open(path, "wb") as file:
                file.write(content)
        self.run_with(cache, 0)

    def test_foreign(self):
        """Somebody else's folder, or one that everybody may write, is not believed."""
        cache = self.filled()
        os.chmod(cache, 0o777)
        self.assertIn(cache, self.run_with(cache, 1).stderr)
        os.chmod(cache, 0o700)
        if os.geteuid() != 0:
            self.skipTest("only root can give a folder away")
        os.chown(cache, 12345, 12345)
        self.assertIn(cache, self.run_with(cache, 1).stderr)

    def test_links(self):
        cache = self.filled()
        for path in self.entries(cache):
            os.rename(path, path + ".real")
            os.symlink(path + ".real", path)
        self.run_with(cache, 0)


class ConsoleTest(CommandTest):
    def cold(self):
        return {"RUNNEL_CACHE_DIR": self.path("cache")}

    def test_progress_in_a_file(self):
        """At most a line every two seconds: a small model is the first line only."""
        result = self.call("run", self.relu(), env=self.cold())
        lines = [line for line in result.stderr.splitlines() if line.startswith("compiling ")]
        self.assertTrue(lines, result.stderr)
        self.assertRegex(lines[0], r"^compiling \d+ of \d+: \w+\.cl$")
        self.assertLessEqual(len(lines), 5)
        again = self.call("run", self.relu(), env=self.cold())
        self.assertEqual(again.stderr, "")

    def on_terminal(self, *arguments, env):
        """What a terminal gets on stderr."""
        ours, theirs = pty.openpty()
        with subprocess.Popen([COMMAND, *arguments], cwd=self.folder, env={**os.environ, **env}, stdout=subprocess.PIPE,
                              stderr=theirs, stdin=subprocess.DEVNULL) as process:
            os.close(theirs)
            data = b""
            while True:
                try:
                    piece = os.read(ours, 4096)
                except OSError:  # the other side is closed
                    break
                if not piece:
                    break
                data += piece
            process.stdout.read()
        os.close(ours)
        self.assertEqual(process.returncode, 0, data)
        return data.decode()

    def test_progress_on_a_terminal(self):
        text = self.on_terminal("run", self.relu(), env=self.cold())
        self.assertRegex(text, r"^compiling 1 of \d+: \w+\.cl")
        self.assertNotIn("\n", text)
        self.assertTrue(text.endswith("\r\x1b[K"), repr(text))
        self.assertEqual(self.on_terminal("run", self.relu(), env=self.cold()), "")

    def check_verbose(self, text):
        for pattern in (r"\d+ programs compiled, \d+ from the cache", r"arena \d+ bytes", r"weights \d+ bytes",
                        r"kernels launched"):
            self.assertRegex(text, pattern)
        self.assertTrue(all(line.startswith(("runnel: ", "compiling ")) for line in text.splitlines()), text)

    def test_verbose(self):
        for _ in range(2):
            result = self.call("run", self.relu(), "--verbose", env=self.cold())
            self.assertEqual(result.code, 0, result.stderr)
            self.check_verbose(result.stderr)
        self.check_verbose(self.call("run", self.relu(), env={"RUNNEL_VERBOSE": "1"}).stderr)
        for value in ("", "0"):
            self.assertEqual(self.call("run", self.relu(), env={"RUNNEL_VERBOSE": value}).stderr, "")

    def events(self, words, *arguments):
        """The lines of RUNNEL_VERBOSE, by their columns' names."""
        result = self.call("run", *arguments, env={**self.cold(), "RUNNEL_VERBOSE": words})
        lines = [line for line in result.messages if line.startswith("runnel_verbose,")]
        rows = list(csv.DictReader(lines))
        for row in rows:
            self.assertEqual((row["runnel_verbose"], len(row), None in row), ("runnel_verbose", 8, False), row)
            float(row["time_ms"])
        return result, rows

    def test_verbose_events(self):
        result, rows = self.events("all", self.relu())
        self.assertEqual(result.code, 0, result.stderr)
        kinds = {row["kind"] for row in rows}
        self.assertTrue({"dispatch", "build", "run"} <= kinds <= {"dispatch", "build", "run", "error"}, kinds)
        step = next(row for row in rows if row["kind"] == "dispatch")
        self.assertRegex(step["subject"], r"^\w+:\w+$")
        self.assertRegex(step["program"], r"^\w+\.cl -D")
        self.assertRegex(step["detail"], r"^Relu '.*': (\d+x?)+ -> (\d+x?)+$")
        launch = next(row for row in rows if row["kind"] == "run" and row["program"] == step["program"])
        self.assertRegex(launch["detail"], r"^\d+.* work-items in groups of \d+.*; 0: slot \d+ at \d+ of \d+ bytes;")
        self.assertGreater(float(launch["ms"]), 0)
        self.assertTrue(any(row["kind"] == "build" and row["program"] == step["program"] and float(row["ms"]) > 0
                            for row in rows))

    def test_verbose_words(self):
        _, rows = self.events("dispatch", self.relu())
        self.assertEqual({row["kind"] for row in rows}, {"dispatch"})
        result, rows = self.events("error", self.path("none.onnx"))
        self.assertNotEqual(result.code, 0)
        self.assertEqual([(row["kind"], row["subject"]) for row in rows[:1]], [("error", "NOT_FOUND")])
        result, rows = self.events("build,fun", self.relu())
        self.assertEqual({row["kind"] for row in rows}, {"build"})
        others = [line for line in result.messages if not line.startswith("runnel_verbose,")]
        self.assertEqual(len(others), 1, result.stderr)
        self.assertRegex(others[0], "RUNNEL_VERBOSE takes error, dispatch, build, run or all")

    def test_sync(self):
        """Each command is waited for, and the result is the same."""
        variables = {"RUNNEL_SYNC": "1", "RUNNEL_GUARD": "1"}
        self.assertEqual(self.succeed("run", self.relu(), "-i", "zeros", env=variables).lines[1:],
                         self.succeed("run", self.relu(), "-i", "zeros").lines[1:])

    def test_verbose_names_what_was_done(self):
        cold = self.call("run", self.relu(), "--verbose", env=self.cold()).stderr
        self.assertRegex(cold, r"chain\.cl")
        self.assertRegex(cold, r"compiled")
        warm = self.call("run", self.relu(), "--verbose", env=self.cold()).stderr
        self.assertRegex(warm, r"cache")
        self.assertRegex(warm, r"Relu|map")


if __name__ == "__main__":
    unittest.main()
