#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what compare_ort.py measured: plot.py IN.json OUT.svg. A bar is runnel's time as a part of onnxruntime's."""

import json
import sys
from xml.sax.saxutils import escape

LEFT, RIGHT, TOP, BOTTOM, WIDTH = 170, 120, 64, 44, 860
BAR, GAP, GROUP = 13, 3, 12
INK, PALE = "#222222", "#d8d8d8"
COLORS = {1: "#4c78a8", 2: "#f2a33c"}
OTHER_COLOR = "#72b7b2"


def text(x, y, words, anchor="start", size=12, weight="normal"):
    """With a white rim, since lines may run behind it."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{INK}" stroke="white" stroke-width="3" paint-order="stroke">{escape(words)}</text>')


def line(x, y1, y2, color, dash=""):
    style = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x:.1f}" y1="{y1:.1f}" x2="{x:.1f}" y2="{y2:.1f}" stroke="{color}"{style}/>'


def group_rows(rows):
    """[((model, batch), [rows by threads])], in the file's order."""
    groups = {}
    for row in rows:
        groups.setdefault((row["model"], row["batch"]), []).append(row)
    return [(key, sorted(group, key=lambda row: row["threads"])) for key, group in groups.items()]


def ticks(most):
    """Round steps, at most ten of them."""
    step = next(step for step in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1e9) if most / step <= 10)
    count = int(-(-most // step))
    return [index * step for index in range(count + 1)]


def axis(marks, scale, bottom):
    parts = []
    for mark in marks:
        x = LEFT + mark * scale
        parts.append(line(x, TOP, bottom, PALE))
        parts.append(text(x, bottom + 16, f"{mark:g}", "middle", 11))
    for mark, words in ((1, "onnxruntime"), (1.5, "1.5")):
        x = LEFT + mark * scale
        parts.append(line(x, TOP - 4, bottom, INK, "" if mark == 1 else "4 3"))
        parts.append(text(x, TOP - 8, words, "end" if mark == 1 else "start", 11))
    return parts


def bars(groups, scale):
    parts, y = [], TOP + GROUP / 2
    for (model, batch), rows in groups:
        height = len(rows) * (BAR + GAP) - GAP
        parts.append(text(LEFT - 8, y + height / 2 + 4, f"{model}, batch {batch}", "end"))
        for row in rows:
            width = row["ratio"] * scale
            color = COLORS.get(row["threads"], OTHER_COLOR)
            parts.append(f'<rect x="{LEFT}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" fill="{color}"/>')
            words = f"{row['ratio']:.2f} ({row['runnel']['median_ms']:.2f} ms)"
            parts.append(text(LEFT + width + 5, y + BAR - 3, words, size=10))
            y += BAR + GAP
        y += GROUP - GAP
    return parts


def legend(threads):
    parts = [text(WIDTH - 12, 20, "threads", "end", 11)]
    for index, count in enumerate(threads):
        y = 28 + index * 16
        parts.append(f'<rect x="{WIDTH - 42}" y="{y}" width="14" height="{BAR - 2}" fill="{COLORS.get(count, OTHER_COLOR)}"/>')
        parts.append(text(WIDTH - 12, y + 10, str(count), "end", 11))
    return parts


def draw(report):
    rows, machine = report["time"]["rows"], report["time"]["machine"]
    groups = group_rows(rows)
    bottom = TOP + sum(len(group) * (BAR + GAP) - GAP + GROUP for _, group in groups)
    marks = ticks(max([1.75] + [row["ratio"] for row in rows]))
    scale = (WIDTH - LEFT - RIGHT) / marks[-1]
    where = f"{machine['date']}, {machine['cores']} cores ({machine['cpu']}), onnxruntime {machine['onnxruntime']}"
    parts = [text(12, 20, "Time of a run: runnel on pocl, as a part of onnxruntime's", size=14, weight="bold"),
             text(12, 38, where, size=11), *legend(sorted({row["threads"] for row in rows})),
             *axis(marks, scale, bottom), *bars(groups, scale)]
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + BOTTOM - 16}" '
            f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>')
    return "\n".join([head, *parts, "</svg>", ""])


def main():
    if len(sys.argv) != 3:
        print("usage: plot.py IN.json OUT.svg", file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        picture = draw(json.load(file))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
