# SPDX-License-Identifier: Apache-2.0
"""The Python package's structures and constants are those of the C headers, as a C compiler sees them."""

import ctypes
import os
import shutil
import subprocess
import tempfile
import unittest

from package import ROOT
from runnel import _errors, _structs, _types  # noqa: E402

INCLUDES = [os.path.join(ROOT, layer, "include") for layer in ("runtime", "host")]


def program():
    lines = ["#include <runnel/custom.h>", "#include <runnel/multi.h>", "#include <runnel/pipeline.h>",
             "#include <runnel/quantize.h>", "#include <stdio.h>", "int main(void)", "{"]
    for struct in _structs.ALL:
        lines.append(f'    printf("{struct.c_name} %zu\\n", sizeof({struct.c_name}));')
        for field, _ in struct._fields_:
            where = f"{struct.c_name}, {field}"
            lines.append(f'    printf("{struct.c_name}.{field} %zu %zu\\n", offsetof({where}), '
                         f"sizeof((({struct.c_name} *)0)->{field}));")
    for names, prefix in ((_structs.CUSTOM_ATTRIBUTES, "RNL_CUSTOM"), (_structs.CUSTOM_ARGS, "RNL_CUSTOM_ARG")):
        lines += [f'    printf("{prefix}_{name} %d\\n", {prefix}_{name});' for name in names]
    lines += ['    printf("RNL_MAX_RANK %d\\n", RNL_MAX_RANK);', '    printf("RNL_STATUS_COUNT %d\\n", RNL_STATUS_COUNT);',
              "#define X(name, code, bytes, text) printf(\"dtype %d %d\\n\", code, bytes);", "    RNL_DTYPE_LIST(X)",
              "    return 0;", "}"]
    return "\n".join(lines)


class LayoutTest(unittest.TestCase):
    def test_layout(self):
        compiler = shutil.which("cc") or self.skipTest("there is no C compiler")
        with tempfile.TemporaryDirectory() as folder:
            source, binary = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
            with open(source, "w", encoding="ascii") as file:
                file.write(program())
            subprocess.run([compiler, *[f"-I{path}" for path in INCLUDES], source, "-o", binary], check=True)
            printed = subprocess.run([binary], check=True, capture_output=True, text=True).stdout.splitlines()
        found = {line.rsplit(" ", 1)[0] if line.startswith("RNL") else line for line in printed}
        expected = set()
        for struct in _structs.ALL:
            expected.add(f"{struct.c_name} {ctypes.sizeof(struct)}")
            for field, _ in struct._fields_:
                where = getattr(struct, field)
                expected.add(f"{struct.c_name}.{field} {where.offset} {where.size}")
        self.assertEqual(sorted(expected - found), [], "the headers say otherwise")
        self.assertIn(f"RNL_MAX_RANK {_structs.MAX_RANK}", printed)
        self.assertIn(f"RNL_STATUS_COUNT {len(_errors.BY_STATUS) + 1}", printed)
        for names, prefix in ((_structs.CUSTOM_ATTRIBUTES, "RNL_CUSTOM"), (_structs.CUSTOM_ARGS, "RNL_CUSTOM_ARG")):
            for number, name in enumerate(names):
                self.assertIn(f"{prefix}_{name} {number}", printed)
        for line in printed:
            if line.startswith("dtype"):
                _, code, size = map(int, ["0", *line.split()[1:]])
                self.assertIn(code, _types.BY_CODE, "an element type that the package lacks")
                self.assertEqual(_types.BY_CODE[code].dtype.itemsize, size)


if __name__ == "__main__":
    unittest.main(verbosity=2)
