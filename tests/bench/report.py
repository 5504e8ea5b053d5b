#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what compare.py measured into the document: report.py IN.json [docs/benchmarks.md]. The picture goes beside it (.svg)."""

import json
import os
import sys

import plot
import tables

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BEGIN, END = "<!-- from report.py: -->\n", "<!-- end of report.py's -->\n"
CAPTIONS = {
    "time": "**Runs**, medians in milliseconds; behind them how many times as fast as that engine runnel is.",
    "start": "**Start**, from the second one on, and runnel's first with empty caches.",
    "memory": "**Memory** above that of an empty process; *part of the best*: runnel's as a part of the least of the others.",
}


def section(kind, report):
    """One table, what it was measured with, and why an engine is not in a row."""
    rows, machine = report["rows"], report["machine"]
    names = machine["engines"]
    heads, lines = tables.KINDS[kind]
    versions = ", ".join(f"{tables.title(name)} {machine['versions'][name]}" for name in names if name in machine["versions"])
    parts = [CAPTIONS[kind], "", f"    {machine['command']}", "",
             f"{machine['date']}, {machine['cores']} cores ({machine['cpu']}), {versions}; runnel {machine['revision']} on pocl.",
             "", heads(names), *(lines(row, names) for row in rows), ""]
    reasons = tables.refusals(rows)
    return parts + (["Not measured:", "", *reasons, ""] if reasons else [])


def text(report):
    return "\n".join(line for kind in CAPTIONS if kind in report for line in section(kind, report[kind]))


def replace(document, words):
    before, rest = document.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{words}\n{END}{after}"


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: report.py IN.json [DOCUMENT.md]", file=sys.stderr)
        return 2
    path = sys.argv[2] if len(sys.argv) == 3 else os.path.join(ROOT, "docs", "benchmarks.md")
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    with open(path, encoding="utf-8") as file:
        document = replace(file.read(), text(report))
    with open(path, "w", encoding="utf-8") as file:
        file.write(document)
    if "time" in report:
        with open(path.removesuffix(".md") + ".svg", "w", encoding="utf-8") as file:
            file.write(plot.draw(report["time"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
