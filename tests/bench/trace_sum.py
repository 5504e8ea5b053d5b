#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of its runs a trace accounts for: tests/bench/trace_sum.py FILE, as `runnel bench MODEL --trace FILE` wrote it."""

import json
import statistics
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(file)
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    runs = [event for event in slices if event["pid"] == 1 and event["name"] == "run"][1:]  # the first one compiles
    if not runs:
        sys.exit(f"{sys.argv[1]} holds no run behind the first: runnel bench MODEL --trace FILE, or run --repeat N")
    steps, waits = [], []
    for run in runs:
        start, end = run["ts"] - 5, run["ts"] + run["dur"] + 5  # by what clocks may be off
        inside = [event for event in slices if event["pid"] > 1 and start <= event["ts"] and
                  event["ts"] + event["dur"] <= end]
        steps.append(sum(event["dur"] for event in inside if event["cat"] != "wait") / run["dur"])
        waits.append(sum(event["dur"] for event in inside) / run["dur"])
    print(f"{len(runs)} runs of {statistics.median(run['dur'] for run in runs) / 1e3:.3f} ms: steps and copies are "
          f"{statistics.median(steps):.3f} of one, with waiting {statistics.median(waits):.3f}; "
          f"clocks within {trace['otherData']['clock_error_ns'] / 1e3:.1f} us")


if __name__ == "__main__":
    main()
