# SPDX-License-Identifier: Apache-2.0
"""The picture of compare.py's times: a bar is runnel's speed as a multiple of onnxruntime's, a mark another engine's."""

from xml.sax.saxutils import escape

import tables

LEFT, RIGHT, TOP, BOTTOM, WIDTH = 190, 60, 84, 44, 900
BAR, GAP, GROUP = 13, 3, 12
INK, PALE, BASE = "#222222", "#d8d8d8", "onnxruntime"
BARS = {1: "#9ebcda", 2: "#4c78a8"}
OTHER_BAR = "#72b7b2"
MARKS = {"openvino": "#f2a33c", "mnn": "#d62728", "ncnn": "#2ca02c", "torch": "#8c564b"}


def text(x, y, words, anchor="start", size=12, weight="normal"):
    """With a white rim, since lines may run behind it."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
            f'fill="{INK}" stroke="white" stroke-width="3" paint-order="stroke">{escape(words)}</text>')


def line(x, y1, y2, color, dash=""):
    style = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x:.1f}" y1="{y1:.1f}" x2="{x:.1f}" y2="{y2:.1f}" stroke="{color}"{style}/>'


def mark(x, y, name):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{MARKS.get(name, INK)}" stroke="white"/>'


def speeds(row):
    """{engine: speed as a multiple of onnxruntime's} of a row that has both runnel's and onnxruntime's."""
    ours = row["speed"][BASE]
    return {"runnel": ours, **{name: ours / ratio for name, ratio in row["speed"].items() if name != BASE}}


def group_rows(rows):
    """[((model, batch), [rows by threads])], in the file's order."""
    groups = {}
    for row in rows:
        if BASE in row["speed"]:
            groups.setdefault((row["model"], row["batch"]), []).append(row)
    return [(key, sorted(group, key=lambda row: row["threads"])) for key, group in groups.items()]


def ticks(most):
    """Round steps, at most ten of them."""
    step = next(step for step in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1e9) if most / step <= 10)
    count = int(-(-most // step))
    return [index * step for index in range(count + 1)]


def axis(marks, scale, bottom):
    parts = []
    for value in marks:
        x = LEFT + value * scale
        parts.append(line(x, TOP, bottom, PALE))
        parts.append(text(x, bottom + 16, f"{value:g}", "middle", 11))
    parts.append(line(LEFT + scale, TOP - 4, bottom, INK))
    parts.append(text(LEFT + scale, TOP - 8, BASE, "middle", 11))
    return parts


def bars(groups, scale):
    parts, y = [], TOP + GROUP / 2
    for (model, batch), rows in groups:
        height = len(rows) * (BAR + GAP) - GAP
        parts.append(text(LEFT - 8, y + height / 2 + 4, f"{model}, batch {batch}", "end"))
        for row in rows:
            values = speeds(row)
            width = values.pop("runnel") * scale
            color = BARS.get(row["threads"], OTHER_BAR)
            parts.append(f'<rect x="{LEFT}" y="{y:.1f}" width="{width:.1f}" height="{BAR}" fill="{color}"/>')
            parts += [mark(LEFT + value * scale, y + BAR / 2, name) for name, value in values.items()]
            words = f"{row['engines']['runnel']['median_ms']:.2f} ms"
            furthest = max([width] + [value * scale for value in values.values()])
            parts.append(text(LEFT + furthest + 7, y + BAR - 3, words, size=10))
            y += BAR + GAP
        y += GROUP - GAP
    return parts


def legend(threads, names):
    parts, x = [], LEFT
    for count in threads:
        parts.append(f'<rect x="{x}" y="48" width="14" height="{BAR - 2}" fill="{BARS.get(count, OTHER_BAR)}"/>')
        parts.append(text(x + 18, 58, f"runnel, {count} thread{'s' if count > 1 else ''}", size=11))
        x += 116
    for name in names:
        parts += [mark(x + 6, 54, name), text(x + 16, 58, tables.title(name), size=11)]
        x += 76
    return parts


def draw(report):
    rows, machine = report["rows"], report["machine"]
    groups = group_rows(rows)
    shown = [row for _, group in groups for row in group]
    bottom = TOP + sum(len(group) * (BAR + GAP) - GAP + GROUP for _, group in groups)
    marks = ticks(max([1.5] + [value for row in shown for value in speeds(row).values()]))
    scale = (WIDTH - LEFT - RIGHT) / marks[-1]
    others = [name for name in machine["engines"] if name in MARKS and any(name in row["speed"] for row in shown)]
    where = f"the times are runnel's; {machine['date']}, {machine['cores']} cores ({machine['cpu']}), {BASE} {machine['versions'].get(BASE, '')}"
    parts = [text(12, 20, "Speed of runnel on pocl, and of other engines, as a multiple of onnxruntime's", size=14, weight="bold"),
             text(12, 38, where, size=11), *legend(sorted({row["threads"] for row in shown}), others),
             *axis(marks, scale, bottom), *bars(groups, scale)]
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom + BOTTOM - 16}" '
            f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>')
    return "\n".join([head, *parts, "</svg>", ""])
