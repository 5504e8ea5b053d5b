# SPDX-License-Identifier: Apache-2.0
"""Rows of the tables that compare.py prints and report.py writes."""

TITLES = {"mnn": "MNN", "openvino": "OpenVINO"}


def title(name):
    return TITLES.get(name, name)


def line(cells):
    return "| " + " | ".join(cells) + " |"


def head(cells):
    return line(cells) + "\n" + line(["---"] * len(cells))


def best(row):
    """(engine, how many times as fast as it runnel is) for the fastest of the others, or None."""
    return min(row["speed"].items(), key=lambda item: item[1], default=None)


def time_head(names):
    return head(["model", "batch", "threads", *(f"{title(name)} ms" for name in names), "against the best", ""])


def why(row, name):
    reason = row["refused"].get(name, "")
    if reason.startswith("other results"):
        return "wrong"
    return "no" if reason else ""


def time_line(row, names):
    cells = []
    for name in names:
        times = row["engines"].get(name)
        ratio = f" ({row['speed'][name]:.2f})" if name in row["speed"] else ""
        cells.append(f"{times['median_ms']:.2f}{ratio}" if times else why(row, name))
    fastest = best(row)
    notes = [f"disturbed: {', '.join(map(title, row['disturbed']))}"] if row["disturbed"] else []
    if row["differences"].get("runnel", 0) > 1:
        notes.append("runnel's results differ")
    return line([row["model"], str(row["batch"]), str(row["threads"]), *cells,
                 f"{fastest[1]:.2f} ({title(fastest[0])})" if fastest else "", "; ".join(notes)])


def start_head(names):
    return head(["model", "threads", *(f"{title(name)} ms" for name in names), "runnel, empty caches ms"])


def start_line(row, names):
    cells = [f"{row['second_ms'][name]:.0f}" if name in row["second_ms"] else "no" for name in names]
    first = row.get("first_ms")
    return line([row["model"], str(row["threads"]), *cells, "" if first is None else f"{first:.0f}"])


def memory_head(names):
    return head(["model", "threads", *(f"{title(name)} MiB" for name in names), "part of the best"])


def memory_line(row, names):
    above = {name: values["above_mib"] for name, values in row["engines"].items()}
    others = [value for name, value in above.items() if name != "runnel"]
    part = f"{above['runnel'] / min(others):.2f}" if others and "runnel" in above else ""
    return line([row["model"], str(row["threads"]), *(f"{above[name]:.0f}" if name in above else "no" for name in names), part])


def refusals(rows):
    """A line for each (engine, model) that did not run, with the reason."""
    reasons = {}
    for row in rows:
        for name, reason in row["refused"].items():
            reasons.setdefault((title(name), reason), []).append(row["model"])
    return [f"- {name}, {', '.join(dict.fromkeys(models))}: {reason}" for (name, reason), models in reasons.items()]


KINDS = {"time": (time_head, time_line), "start": (start_head, start_line), "memory": (memory_head, memory_line)}
