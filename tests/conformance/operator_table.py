# SPDX-License-Identifier: Apache-2.0
"""docs/operators.md: what runnel has, from the library itself, and how many of the official node cases pass."""

import collections
import os
import sys

from onnx import defs

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from package import ROOT  # noqa: E402
import runnel  # noqa: E402

PATH = os.path.join(ROOT, "docs", "operators.md")
FLOATS = ["float", "float16", "bfloat16", "double"]
SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
GROUPS = [("all", [*FLOATS, *SIGNED, *UNSIGNED, "bool"]), ("numbers", [*FLOATS, *SIGNED, *UNSIGNED]), ("floats", FLOATS),
          ("integers", [*SIGNED, *UNSIGNED]), ("signed integers", SIGNED), ("unsigned integers", UNSIGNED)]
NOTES = {
    "Constant": "a weight once the model is loaded; no strings",
    "Dropout": "what it drops in training mode are other random numbers than the official cases expect",
    "Resize": "the aligned corner is onnxruntime's: the last whole pixel",
    "Bernoulli": "the official cases expect numpy's own random numbers", "SpaceToDepth": "", "Identity": "",
}
WITHOUT_ROWS = {"Constant", "If", "Loop", "Scan"}
HEAD = """# Operators

Made by `tests/conformance/test_conformance.py --write docs/operators.md`; a test fails when it no longer says what the library
does. Opsets are those of the operator's domain, 7 to {newest} of ai.onnx. Types are the first input's: *floats* are float32, float16,
bfloat16 and float64 (where the device has it); *integers* those of 8 to 64 bits; *numbers* both; *all* numbers and bool. What
an operator takes of types, attributes and shapes beyond that is checked when a model is loaded: `runnel info MODEL` and
`runnel.check_model` name everything that stands against running it.
"""


def types_text(types):
    """The first of the groups that fits, and what is beyond it."""
    names = [name[len("tensor("):-1] for name in types]
    said = []
    for group, members in GROUPS:
        if set(members) <= set(names):
            said.append(group)
            names = [name for name in names if name not in members]
    return ", ".join(said + names)


def versions_text(rows):
    """Opsets with their types: "7–13 floats, …; 14– numbers"."""
    merged = []
    for row in rows:
        types = types_text(row.types)
        if merged and merged[-1][2] == types and merged[-1][1] + 1 == row.since:
            merged[-1][1] = row.until
        else:
            merged.append([row.since, row.until, types])
    newest = defs.onnx_opset_version()
    spans = [f"{since}–{'' if until >= newest or rows[0].domain else until}" for since, until, _ in merged]
    kinds = [types for _, _, types in merged]
    if len(set(kinds)) == 1:
        return ", ".join(spans), kinds[0]
    return ", ".join(spans), "; ".join(f"{span}: {kind}" for span, kind in zip(spans, kinds))


def have():
    """{(domain, operator): rows}"""
    rows = collections.defaultdict(list)
    for row in runnel.get_operators():
        rows[row.domain, row.op_type].append(row)
    return rows


def missing(found):
    """The operators of ai.onnx that runnel has not, as onnx's newest version lists them."""
    names = {schema.name for schema in defs.get_all_schemas() if schema.domain == "" and not schema.deprecated}
    return sorted(names - {name for domain, name in found if domain == ""} - WITHOUT_ROWS)


def text(counts=None):
    """The page. `counts`: {operator: (passed, cases)} of the official node cases."""
    found = have()
    lines = [HEAD.format(newest=defs.onnx_opset_version())]
    for domain in sorted({domain for domain, _ in found}):
        lines += [f"## {domain or 'ai.onnx'}", "", "| operator | opsets | types | cases | notes |", "| --- | --- | --- | --- | --- |"]
        names = {name for where, name in found if where == domain} | (WITHOUT_ROWS if not domain else set())
        for name in sorted(names):
            opsets, types = versions_text(found[domain, name]) if (domain, name) in found else ("7–", "")
            passed = "{}/{}".format(*counts[name]) if counts and name in counts and not domain else ""
            lines.append(f"| {name} | {opsets} | {types} | {passed} | {NOTES.get(name, '')} |")
        lines.append("")
    lines += ["## Not there", "", "Refused by name when a model is loaded: " + ", ".join(missing(found)) + ".", ""]
    return "\n".join(lines)


def without_counts(page):
    """A page's lines, the column of counts left out."""
    rows = [line.split("|") for line in page.splitlines()]
    return ["|".join(row[:4] + row[5:]) if len(row) == 7 else "|".join(row) for row in rows]


def is_fresh():
    """Whether the committed page says what the library does."""
    with open(PATH, encoding="utf-8") as file:
        return without_counts(file.read()) == without_counts(text())
