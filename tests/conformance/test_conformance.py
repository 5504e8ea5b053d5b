# SPDX-License-Identifier: Apache-2.0
"""ONNX's official backend suite: the node cases and their expanded forms, the simple, PyTorch and light models.

    test_conformance.py                          all suites; fails on a wrong answer, a crash, or too few passes
    test_conformance.py --suite light --jobs 2   one suite, two processes
    test_conformance.py --operator TopK --show   the cases with that operator, and why the others are refused
    test_conformance.py --write docs/operators.md   writes the table of operators

Passed, or refused by name (not supported), or failed; a few differ from what is expected, for a reason that run_cases.py
gives. RUNNEL_TEST_OPERATOR and RUNNEL_TEST_SHOW do what the options do.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import operator_table  # noqa: E402

# The least that passes, in percent of what is asked for (strings, sequences, optional and training left out).
FLOORS = {"node": 98.0, "expanded": 99.0, "simple": 100.0, "pytorch-operator": 100.0, "pytorch-converted": 100.0,
          "light": 100.0}
OPTIONS = None


def follow(process, on_line):
    """Reads a worker's lines; returns the case that was under way when it ended, None when none was."""
    under_way = None
    for line in process.stdout:
        row = json.loads(line)
        under_way = None if "verdict" in row else row
        if under_way is None:
            on_line(row)
    return under_way if process.wait() != 0 else None


def run_job(job, options, rows):
    """One worker after the other: where one dies, the case is a failure and the next worker goes on behind it."""
    first = 0
    while True:
        worker = subprocess.Popen([sys.executable, os.path.join(HERE, "run_cases.py"), str(job), str(options.jobs),
                                   str(first), *options.suite], stdout=subprocess.PIPE, text=True)
        died_in = follow(worker, rows.append)
        if worker.returncode == 0:
            return
        if died_in is None:
            raise RuntimeError(f"a worker ended with {worker.returncode} between two cases")
        rows.append({"index": died_in["index"], "name": died_in["name"], "suite": "node", "operator": "", "rest": "",
                     "verdict": "failed", "why": f"the process ended with {worker.returncode}"})
        first = died_in["index"] + 1


def run_all(options):
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(run_job, job, options, rows) for job in range(options.jobs)]:
            done.result()
    return sorted(rows, key=lambda row: row["index"])


def print_table(rows):
    """By suite, then by operator where not all passed."""
    suites, operators = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for row in rows:
        suites[row["suite"] + (f", {row['rest']}" if row["rest"] else "")][row["verdict"]] += 1
        if row["operator"]:
            operators[row["operator"]][row["verdict"]] += 1
    print(f"{'suite':32} passed  differ  failed  not supported")
    for name, counts in sorted(suites.items()):
        print(f"{name:32} {counts['passed']:6}  {counts['differs']:6}  {counts['failed']:6}  {counts['refused']:6}")
    left = {name: counts for name, counts in operators.items() if counts.total() > counts["passed"]}
    print(f"{len(operators) - len(left)} operators pass all of their node cases; of the others:")
    for name, counts in sorted(left.items()):
        print(f"  {name:30} {counts['passed']:6}  {counts['differs']:6}  {counts['failed']:6}  {counts['refused']:6}")


def counts_of(rows):
    """{operator: (passed, cases)} of the node suite."""
    counts = collections.defaultdict(lambda: [0, 0])
    for row in rows:
        if row["suite"] == "node":
            counts[row["operator"]][0] += row["verdict"] == "passed"
            counts[row["operator"]][1] += 1
    return {name: tuple(pair) for name, pair in counts.items()}


class ConformanceTest(unittest.TestCase):
    def check_rates(self, rows):
        for suite in {row["suite"] for row in rows}:
            asked = [row for row in rows if row["suite"] == suite and not row["rest"]]
            rate = 100 * sum(row["verdict"] == "passed" for row in asked) / max(1, len(asked))
            print(f"{suite}: {rate:.2f}% of {len(asked)} pass, the floor is {FLOORS[suite]}%")
            self.assertGreaterEqual(rate, FLOORS[suite], f"fewer cases of {suite} pass than before")

    def test_suites(self):
        rows = run_all(OPTIONS)
        if OPTIONS.show:
            for row in rows:
                if row["verdict"] == "refused":
                    print("refused", row["name"], row["why"])
        print_table(rows)
        failures = [f"{row['name']}: {row['why']}" for row in rows if row["verdict"] == "failed"]
        self.assertEqual(failures, [], "\n" + "\n".join(failures))
        if not OPTIONS.operator and os.environ.get("RUNNEL_TEST_EACH", "1") == "1":
            self.check_rates(rows)

    def test_table_of_operators(self):
        self.assertTrue(operator_table.is_fresh(), "docs/operators.md is stale: run this with --write docs/operators.md")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--suite", action="append", default=[], choices=["node", *sorted(set(FLOORS) - {"node", "expanded"})])
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--operator", default=os.environ.get("RUNNEL_TEST_OPERATOR"))
    parser.add_argument("--show", action="store_true", default=bool(os.environ.get("RUNNEL_TEST_SHOW")))
    parser.add_argument("--write", metavar="FILE", help="run the node cases and write the table of operators")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = parse()
    if OPTIONS.operator:
        os.environ["RUNNEL_TEST_OPERATOR"] = OPTIONS.operator
    if OPTIONS.write:
        OPTIONS.suite = ["node"]
        page = operator_table.text(counts_of(run_all(OPTIONS)))
        with open(OPTIONS.write, "w", encoding="utf-8") as out:
            out.write(page)
        sys.exit(0)
    unittest.main(argv=sys.argv[:1], verbosity=2)
