#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of its runs a trace accounts for: tests/bench/trace_sum.py FILE, as `runnel bench MODEL --trace FILE` wrote it."""

import json
import statistics
import sys


def covered(slices):
    """The time that at least one of the slices takes."""
    total = end = 0
    for event in sorted(slices, key=lambda event: event["ts"]):
        start, stop = max(event["ts"], end), event["ts"] + event["dur"]
        total += max(0, stop - start)
        end = max(end, stop)
    return total


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
        host = [event for event in slices if event["pid"] == 1 and event["tid"] == run["tid"] and
                event["name"].startswith("copy ") and start <= event["ts"] <= end]
        steps.append(covered([event for event in inside if event["cat"] != "wait"] + host) / run["dur"])
        waits.append(covered(inside + host) / run["dur"])
    print(f"{len(runs)} runs of {statistics.median(run['dur'] for run in runs) / 1e3:.3f} ms: steps and copies are "
          f"{statistics.median(steps):.3f} of one, with waiting {statistics.median(waits):.3f}; "
          f"clocks within {trace['otherData']['clock_error_ns'] / 1e3:.1f} us")


if __name__ == "__main__":
    main()
