#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`runnel bench launch` and `runnel tune launch`: what they print, write and remember; no time is judged."""

import json
import os
import unittest

from command import CommandTest

QUICK = ("--repeat", "1", "--seconds", "0")


class LaunchTest(CommandTest):
    def check_table(self, result):
        ways = ("rnl_stream_launch", "replay, enqueued", "replay, command buffer")
        rows = [line for line in result.lines if line.startswith(ways)]
        self.assertIn(len(rows), (2, 3))
        for row in rows:
            self.assertRegex(row, r"^\D+( +(\d+\.\d\d|-)){4}$")
        return len(rows)

    def test_bench(self):
        result = self.succeed("bench", "launch", *QUICK, "--json", "out.json")
        count = self.check_table(result)
        with open(self.path("out.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(len({row["way"] for row in report["rows"]}), count)
        self.assertGreaterEqual(len(report["rows"]), 4 * 2)
        self.assertTrue(all(row["us"] > 0 for row in report["rows"]))

    def test_tune_remembers(self):
        folder = self.path("cache")
        result = self.succeed("tune", "launch", *QUICK, env={"RUNNEL_CACHE_DIR": folder})
        self.check_table(result)
        self.assertRegex(result.lines[-1], r"^command lists are (enqueued|replayed by its command buffers) on this device")
        self.assertTrue(os.listdir(folder))

    def test_usage(self):
        self.misuse("one argument too many", arguments=["bench", "launch", "more"], command="bench")
        self.refuse("out", arguments=["bench", "launch", *QUICK, "--json", "missing/out.json"])


if __name__ == "__main__":
    unittest.main()
