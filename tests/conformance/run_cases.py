# SPDX-License-Identifier: Apache-2.0
"""Runs cases through runnel.onnx_backend, in a process of its own that tells its results line by line.

    run_cases.py JOB JOBS FIRST [SUITE...]    every JOBS-th case from JOB on, those before FIRST left out
"""

import json
import os
import sys
import zlib

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from package import DEVICE  # noqa: E402
from cases import collect, operator_of  # noqa: E402
import runnel  # noqa: E402
from runnel import onnx_backend  # noqa: E402

# Cases whose expected values runnel does not meet, for a reason: they count neither as passed nor as failed, unless they are
# further away than this. A chain of f16 operators rounds each result: one unit in the last place of numbers between 0.5 and
# 1. The expected transforms are numpy's in float32, off by this where the result, as runnel's, is 0. The resized images follow
# onnxruntime, whose aligned corner is the last whole pixel, not the fraction that the scale leaves over.
DIFFERS = {"test_attention_4d_causal_fp16_expanded": 2.0**-11, "test_dft_inverse": 2.0**-19 / 10,
           "test_dft_inverse_opset19": 2.0**-19 / 10, "test_resize_downsample_scales_linear_align_corners": np.inf,
           "test_resize_downsample_scales_cubic_align_corners": np.inf}
# Here numpy's own random numbers are expected, which nobody else's generator gives: such a case differs, too, when types and
# shapes are right and what is drawn to be 0 or 1 is one of these, and fails when not.
RANDOM = ("test_bernoulli", "test_training_dropout")
REFUSALS = (runnel.Unimplemented, runnel.FailedPrecondition)


def is_random(case):
    return case.name.startswith(RANDOM) and "zero_ratio" not in case.name


def difference(case, got, expected, atol=None):
    """How the two differ, as text; None when they do not."""
    if isinstance(expected, list) or not isinstance(expected, (np.ndarray, np.generic)):
        return f"{type(expected).__name__} expected"
    expected = np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{got.shape} instead of {expected.dtype}{expected.shape}"
    if case.name.startswith("test_bernoulli") and not np.isin(got, (0, 1)).all():
        return "neither 0 nor 1"
    if atol == np.inf and is_random(case):
        return None
    # bfloat16's bound is that of ONNX's own runner: two units in the last place.
    rtol = max(case.rtol, 2.0**-6) if got.dtype.name == "bfloat16" else case.rtol
    if "float" not in got.dtype.name:
        wrong = int((got != expected).sum())
        return f"{wrong} of {got.size} elements differ" if wrong else None
    atol = case.atol if atol is None else atol
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    if np.allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True):
        return None
    return f"max difference {np.nanmax(np.abs(got - expected))}"


def run_case(case, device, atol=None):
    rep = onnx_backend.prepare(case.model.SerializeToString(), device)  # bytes: no case is refused by onnx's checker
    with rep.session:
        for inputs, outputs in case.data_sets():
            got = rep.run(inputs)
            if len(got) != len(outputs):
                return f"{len(got)} outputs instead of {len(outputs)}"
            for info, array, expected in zip(case.model.graph.output, got, outputs):
                found = difference(case, array, expected, atol)
                if found:
                    return f"{info.name}: {found}"
    return None


def judge(case, device):
    """("passed" | "differs" | "failed" | "refused", why)."""
    try:
        found = run_case(case, device)
        atol = np.inf if is_random(case) else DIFFERS.get(case.name)
        if found and atol is not None and not run_case(case, device, atol):
            return "differs", found
    except REFUSALS as error:
        return "refused", str(error)
    except runnel.Error as error:
        # A refusal of what is no tensor of numbers may come as a wrong argument.
        return ("refused" if case.rest() else "failed"), f"{error.status}: {error}"
    return ("failed" if found else "passed"), found or ""


def choose(cases, models):
    """The names of those to run: with RUNNEL_TEST_EACH=N the first case of each operator, and one in N of the others."""
    each, seen, names = int(os.environ.get("RUNNEL_TEST_EACH", "1")), set(), set()
    for case in cases:
        operator = case.suite + operator_of(case, models) if each > 1 and case.suite == "node" else case.suite
        if operator not in seen or zlib.crc32(case.name.encode()) % each == 0:
            names.add(case.name)
        seen.add(operator)
    return names


def main():
    job, jobs, first = map(int, sys.argv[1:4])
    only = os.environ.get("RUNNEL_TEST_OPERATOR")
    cases = collect(sys.argv[4:])
    models = {case.name: case for case in cases}
    chosen = choose(cases, models)
    device = runnel.Device(DEVICE)
    for index, case in enumerate(cases):
        if index % jobs != job or index < first or case.name not in chosen or (only and only not in case.operators()):
            continue
        print(json.dumps({"index": index, "name": case.name}), flush=True)
        verdict, why = judge(case, device)
        operator = operator_of(case, models) if case.suite in ("node", "expanded") else ""
        print(json.dumps({"index": index, "name": case.name, "suite": case.suite, "operator": operator,
                          "rest": case.rest(), "verdict": verdict, "why": why}), flush=True)
    device.close()


if __name__ == "__main__":
    main()
