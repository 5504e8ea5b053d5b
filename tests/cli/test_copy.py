# SPDX-License-Identifier: Apache-2.0
"""What the measurements of copies print and write; no time is judged."""

import json
import unittest

from command import CommandTest

COLUMNS = {f"{way}_{kind}" for way in ("to_device", "to_host") for kind in ("pageable", "pinned", "mapped")}


class CopyTest(CommandTest):
    def report(self):
        with open(self.path("out.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_bench(self):
        result = self.succeed("bench", "copy", "--repeat", "1", "--seconds", "0", "--json", "out.json", "--to", "0:0")
        self.assertRegex(result.lines[0], r"^device \d+:\d+ ")
        rows = self.report()["gigabytes_per_s"]
        there = [row for row in rows if "across_there" in row]
        here = [row for row in rows if "across_there" not in row]
        self.assertEqual([row["bytes"] for row in here], [4096 * 4 ** i for i in range(len(here))])
        self.assertEqual(len(here), len(there))
        for row in here:
            self.assertEqual(set(row), COLUMNS | {"bytes"})
        for row in there:
            self.assertEqual(set(row), {"bytes", "across_there", "across_back", "across_both"})
        for row in rows:
            self.assertTrue(all(value > 0 for value in row.values()))

    def test_tune(self):
        cache = {"RUNNEL_CACHE_DIR": self.path("cache")}
        self.succeed("tune", "copy", "--json", "out.json", env=cache)
        copies = self.report()["copies"]
        self.assertEqual({row["direction"] for row in copies}, {"to_device", "to_host"})
        for row in copies:
            self.assertEqual(row["best"], "direct")  # a CPU device
            self.assertGreater(row["direct"], 0)

    def test_usage(self):
        result = self.call("bench", "copy", "fast")
        self.assertEqual(result.code, 2)
        result = self.call("bench", "copy", "--to", "no such device", "--repeat", "1", "--seconds", "0")
        self.assertEqual(result.code, 1)
        self.assertIn("no OpenCL device matches 'no such device'", result.stderr)


if __name__ == "__main__":
    unittest.main()
