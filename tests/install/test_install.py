#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed tree, moved away from where it was installed: programs in C11 and C++17 are built against it, shared and
static, by CMake and by pkg-config, and run on a device. Headers stand alone, and no symbol is seen but runnel's.

RUNNEL_BUILD  the build folder that is installed (default build/release)
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
BUILD = os.environ.get("RUNNEL_BUILD", os.path.join(ROOT, "build", "release"))
MODEL = os.path.join(HERE, "..", "fixtures", "double.onnx")  # y = x + x
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C11, CXX17 = ["cc", "-std=c11"], ["c++", "-std=c++17", "-x", "c++"]


def call(*command, **changes):
    """Runs a command; its output. A failure shows all that it printed."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
                          env={**os.environ, **changes})
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def symbols(path, *options):
    return [line.split()[2] for line in call("nm", "--defined-only", *options, path).splitlines()
            if len(line.split()) == 3]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="runnel-install-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        first, cls.tree = os.path.join(cls.folder, "first"), os.path.join(cls.folder, "moved", "tree")
        call("cmake", "--install", BUILD, "--prefix", first)
        os.mkdir(os.path.dirname(cls.tree))
        os.rename(first, cls.tree)

    def installed(self, pattern):
        """The one path in the tree that a pattern matches."""
        found = glob.glob(os.path.join(self.tree, pattern), recursive=True)
        self.assertEqual(len(found), 1, f"{pattern}: {found}")
        return found[0]

    def pkg_config(self, *options):
        path = os.path.dirname(self.installed("**/runnel.pc"))
        return call("pkg-config", *options, PKG_CONFIG_PATH=path).split()

    def test_command(self):
        command = self.installed("bin/runnel")
        self.assertRegex(call(command, "run", MODEL), r"(?m)^y: +float32 \[1\] ")
        page = read(self.installed("**/man1/runnel.1"))
        names = set(re.findall(r"^(?:usage:)? +runnel ([a-z]+)", call(command, "--help"), re.M))
        self.assertGreater(len(names), 4)
        for name in names:
            self.assertIn(f".B runnel {name}", page)
        completion = "_runnel; echo ${COMPREPLY[@]}"
        script = self.installed("**/completions/runnel")
        words = call("bash", "-c", f". {script}; COMP_WORDS=({command} ''); COMP_CWORD=1; {completion}").split()
        self.assertLessEqual(names, set(words))
        words = call("bash", "-c", f". {script}; COMP_WORDS=({command} run --d); COMP_CWORD=2; {completion}").split()
        self.assertIn("--device", words)

    def test_what_compiles_beside_the_library(self):
        folder = os.path.dirname(self.installed("**/librunnel-rt.so"))
        self.assertTrue(os.access(os.path.join(folder, "runnel-rt", "compile_worker"), os.X_OK))

    def test_licences(self):
        for name in ("LICENSE", "LICENSE.nanopb"):
            self.assertTrue(os.path.getsize(self.installed(f"share/doc/**/{name}")))

    def test_nothing_names_its_place(self):
        folder = os.path.dirname(os.path.dirname(self.installed("**/librunnel.so")))
        for path in glob.glob(os.path.join(folder, "**", "*"), recursive=True):
            if path.endswith((".cmake", ".pc")):
                text = read(path)
                for place in (ROOT, BUILD, os.path.join(self.folder, "first")):
                    self.assertNotIn(place, text, path)
        for name in ("**/librunnel.so.0", "**/librunnel-rt.so.0", "bin/runnel"):
            run_path = re.search(r"R(?:UN)?PATH.*\[(.*)\]", call("readelf", "-d", self.installed(name)))[1]
            self.assertTrue(run_path.startswith("$ORIGIN"), run_path)
            self.assertNotIn(":", run_path)

    def test_names_of_the_libraries(self):
        for name in ("runnel", "runnel-rt"):
            library = self.installed(f"**/lib{name}.so")
            self.assertRegex(call("readelf", "-d", library), rf"SONAME.*\[lib{name}\.so\.0\]")
            self.assertRegex(os.path.realpath(library), rf"lib{name}\.so\.0\.\d+\.\d+$")

    def test_symbols(self):
        """The same functions from the shared as from the static libraries, and nothing else."""
        for name in ("runnel", "runnel-rt"):
            shared = symbols(self.installed(f"**/lib{name}.so"), "-D")
            static = symbols(self.installed(f"**/lib{name}.a"), "-g")
            self.assertGreater(len(shared), 20)
            self.assertEqual([symbol for symbol in shared if not symbol.startswith("rnl_")], [])
            self.assertEqual(sorted(shared), sorted(static))

    def test_loadable_at_run_time(self):
        """Of thread-local variables at a fixed place there is room for what the C library left spare, and no more."""
        for name in ("runnel", "runnel-rt"):
            self.assertNotIn("STATIC_TLS", call("readelf", "-d", self.installed(f"**/lib{name}.so")))

    def test_headers_alone(self):
        """Each header, and each _INIT macro in it, compiles by itself."""
        include = os.path.dirname(self.installed("include/runnel"))
        headers = sorted(glob.glob(os.path.join(self.tree, "include/runnel/*.h")))
        self.assertGreater(len(headers), 8)
        for header in headers:
            macros = re.findall(r"#define RNL_(\w+)_INIT\b", read(header))
            lines = [f"#include <runnel/{os.path.basename(header)}>"]
            lines += [f"void use_{name}(rnl_{name.lower()} *to);\nvoid use_{name}(rnl_{name.lower()} *to)\n{{\n"
                      f"    const rnl_{name.lower()} it = RNL_{name}_INIT;\n    *to = it;\n}}" for name in macros]
            source = os.path.join(self.folder, "alone.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            for compiler in (C11, CXX17, ["clang", "-std=c11"], ["clang", "-std=c++17", "-x", "c++"]):
                if shutil.which(compiler[0]):
                    call(*compiler, *WARNINGS, "-DCL_TARGET_OPENCL_VERSION=120", "-I", include, "-fsyntax-only", source)

    def test_pkg_config(self):
        for name, package, arguments in (("rt", "runnel-rt", []), ("runnel", "runnel", [MODEL])):
            source = os.path.join(HERE, "consumer", f"use_{name}.c")
            shared = self.pkg_config("--cflags", "--libs", package)
            shared.append("-Wl,-rpath," + self.pkg_config("--variable=libdir", package)[0])
            static = self.pkg_config("--static", "--cflags", "--libs", package)
            static = [re.sub(r"^-l(runnel.*)$", r"-l:lib\1.a", word) for word in static]
            for compiler in (C11, CXX17):
                for libraries in (shared, static):
                    program = os.path.join(self.folder, "by-pkg-config")
                    call(*compiler, *WARNINGS, source, "-x", "none", "-o", program, *libraries)
                    needed = re.findall(r"NEEDED.*librunnel", call("readelf", "-d", program))
                    self.assertEqual(bool(needed), libraries is shared)
                    call(program, *arguments)

    def test_cmake(self):
        build = os.path.join(self.folder, "consumer")
        call("cmake", "-S", os.path.join(HERE, "consumer"), "-B", build, "-G", "Ninja",
             f"-DCMAKE_PREFIX_PATH={self.tree}")
        call("ninja", "-C", build)
        for language in ("c", "cxx"):
            for kind in ("", "_static"):
                call(os.path.join(build, f"{language}_rt{kind}"))
                call(os.path.join(build, f"{language}_runnel{kind}"), MODEL)
        plugin = os.path.join(build, "libplugin.so")
        self.assertIn("NODELETE", call("readelf", "-d", plugin))
        self.assertNotIn("STATIC_TLS", call("readelf", "-d", plugin))
        for way in ("again", "exit-unreleased"):
            call(os.path.join(BUILD, "load_late"), plugin, MODEL, way)

    def test_cmake_refusals(self):
        cases = {"0.0 REQUIRED": "requested version", "0.2 REQUIRED": "requested version",
                 "REQUIRED COMPONENTS wings": "no component wings: shared or static"}
        for asked, reason in cases.items():
            folder = tempfile.mkdtemp(dir=self.folder)
            with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
                file.write("cmake_minimum_required(VERSION 3.16)\nproject(refused LANGUAGES NONE)\n"
                           f"find_package(runnel {asked})\n")
            with self.assertRaisesRegex(AssertionError, reason):
                call("cmake", "-S", folder, "-B", folder + "/build", "-G", "Ninja",
                     f"-DCMAKE_PREFIX_PATH={self.tree}")


if __name__ == "__main__":
    unittest.main()
