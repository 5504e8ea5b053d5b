#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check finds what it should find: each case is a small tree with one thing wrong, and one tree with nothing."""
import os
import subprocess
import sys
import tempfile
import unittest

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/check")
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
FORMAT = "BasedOnStyle: LLVM\nIndentWidth: 4\nBreakBeforeBraces: Linux\n"


def body(lines, head="int rnl_f(void)"):
    return SPDX + head + "\n{\n" + "    (void)0;\n" * (lines - 3) + "}\n"


KERNEL = "// SPDX-License-Identifier: Apache-2.0\n// check: -DT=float\n"
GOOD = {
    ".clang-format": FORMAT,
    "runtime/base/a.h": SPDX,
    "runtime/ops/a.c": SPDX + '#include "base/a.h"\n#include <CL/cl.h>\n' + body(60)[len(SPDX):],
    "host/model/b.c": SPDX + '#include "graph/b.h"\n#include "ops/a.h"\n#include <runnel/runnel.h>\n',
    "host/onnx/c.c": SPDX + '#include "onnx_fields.pb.h"\n/* clFinish() is not called here */\n',
    "tests/model/test_d.c": SPDX + '#include "support/e.h"\n#include <runnel/runnel.h>\n',
    "clkernels/f.cl": KERNEL + "kernel void f(global T *x)\n{\n    x[0] = 0;\n}\n",
    "tools/go": "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\necho \"$1\"\n",
    "tools/go.py": "#!/usr/bin/env python3\n# SPDX-License-Identifier: Apache-2.0\n",
}
MARK = "TO" + "DO"
# (rule, path, contents, part of the finding)
BAD = [
    ("layers", "runtime/base/x.c", SPDX + '#include "device/device.h"\n', "points right"),
    ("layers", "runtime/ops/x.c", SPDX + '#include "graph/graph.h"\n', "points right"),
    ("layers", "host/graph/x.c", SPDX + '#include "model/plan.h"\n', "points right"),
    ("layers", "host/graph/x.c", SPDX + '#include "graph.h"\n', "must be written with its layer"),
    ("layers", "host/graph/x.c", SPDX + "#include <CL/cl.h>\n", "no OpenCL here"),
    ("layers", "runtime/base/x.h", SPDX + "#include <hwloc/opencl.h>\n", "no OpenCL here"),
    ("layers", "runtime/ops/x.c", SPDX + "#include <runnel/runnel.h>\n", "stands to its right"),
    ("layers", "tools/x.c", SPDX + '#include "base/status.h"\n', "is internal"),
    ("layers", "examples/x/x.c", SPDX + '#include "graph/graph.h"\n', "is internal"),
    ("layers", "tests/model/test_x.c", SPDX + '#include "model/plan.h"\n', "is internal"),
    ("opencl_calls", "host/model/x.c", SPDX + "int f(void)\n{\n    return clFinish(0);\n}\n", "calls clFinish"),
    ("limits", "runtime/base/x.c", body(61), "61 lines: a function"),
    ("limits", "runtime/base/x.c", SPDX + "\n" * 500, "501 lines: a file"),
    ("limits", "clkernels/x.cl", KERNEL + "kernel void f(void) {\n" + ";\n" * 60 + "}\n", "62 lines: a function"),
    ("limits", "tools/x.py", "def f():\n" + "    pass\n" * 60, "61 lines: a function"),
    ("limits", "tools/x.sh", "f() {\n" + "    :\n" * 60 + "}\n", "62 lines: a function"),
    ("names", "host/graph/x.c", body(5, "int\nloose(void)"), "loose is neither static nor prefixed"),
    ("licence", "tools/x.py", "pass\n", "no SPDX"),
    ("licence", "runtime/base/x.c", "int a;\n", "no SPDX"),
    ("words", "docs/x.md", f"{MARK}: more\n", "unfinished"),
    ("format", "runtime/base/x.c", SPDX + "int  a;\n", "not formatted"),
    ("kernels", "clkernels/x.cl", KERNEL + "kernel void f(global T *x)\n{\n    x[0] = y;\n}\n", "does not compile with"),
    ("kernels", "clkernels/x.cl", KERNEL + "kernel void f(void)\n{\n    int unused;\n}\n", "unused variable"),
    ("kernels", "clkernels/x.cl", KERNEL.replace("// check", "// chuck"), "states no define set"),
    ("shell", "tools/x.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\necho $1\n", "SC2086"),
]


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, path, text):
        path = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def check(self, *arguments):
        done = subprocess.run([sys.executable, CHECK, "--root", self.folder.name, *arguments], capture_output=True,
                              text=True)
        return done.returncode, done.stdout + done.stderr

    def test_a_good_tree_passes(self):
        for path, text in GOOD.items():
            self.write(path, text)
        status, output = self.check()
        self.assertEqual(status, 0, output)
        self.assertIn("nothing found", output)

    def test_each_bad_thing_is_found_and_nothing_else(self):
        self.write(".clang-format", FORMAT)
        for rule, path, text, expected in BAD:
            with self.subTest(rule=rule, path=path, expected=expected):
                written = self.write(path, text)
                status, output = self.check(rule)
                self.assertEqual(status, 1, output)
                self.assertIn(expected, output)
                self.assertIn(", 1 found", output)
                os.unlink(written)

    def test_symbols(self):
        source = self.write("x.c", "int rnl_good(void) { return 0; }\nint loose(void) { return 0; }\n")
        for name in ("runnel", "runnel-rt"):
            subprocess.run(["cc", "-shared", "-fPIC", "-o", os.path.join(self.folder.name, f"lib{name}.so"), source],
                           check=True)
        status, output = self.check("symbols", "--build", self.folder.name)
        self.assertEqual(status, 1)
        self.assertIn("exports loose", output)
        self.assertIn(", 2 found", output)

    def test_a_missing_library_is_a_finding(self):
        status, output = self.check("symbols", "--build", self.folder.name)
        self.assertEqual(status, 1, output)

    def test_an_unknown_rule_is_refused(self):
        self.assertEqual(self.check("nonsense")[0], 2)


if __name__ == "__main__":
    unittest.main()
