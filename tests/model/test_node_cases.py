# SPDX-License-Identifier: Apache-2.0
"""The node cases of ONNX's own backend test suite, for the operators that runnel has.

A case whose model the check refuses (an operator or type that is not implemented) is counted as refused, not as passed;
a wrong answer or a failure of a supported model fails the test.
"""

import collections
import os
import sys
import unittest

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import runnel  # noqa: E402

# Refusals that are not the check's: what a case needs that this release does not have.
REFUSED = ("UNIMPLEMENTED", "FAILED_PRECONDITION")
# Where onnxruntime differs from the reference, runnel follows onnxruntime: the aligned corner is the last whole pixel, not
# the fraction that the scale leaves over. A case that no longer differs fails the test.
DIFFERS = {"test_resize_downsample_scales_linear_align_corners", "test_resize_downsample_scales_cubic_align_corners"}


# A chain of f16 operators, each rounding its result: one unit in the last place of numbers between 0.5 and 1 more than
# the suite's own bound, which the reference's order of operations sets.
CHAINS = {"test_attention_4d_causal_fp16_expanded": 2.0**-11}
# The expected transform is numpy's in float32, which is off by this where the result, as runnel's, is 0: a unit in the
# last place of a sum of 45, divided by 10 as the inverse divides.
CHAINS.update(dict.fromkeys(("test_dft_inverse", "test_dft_inverse_opset19"), 2.0**-19 / 10))


def as_array(value):
    """An array of a tensor, a scalar or an array; None for what is no tensor of numbers."""
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    value = np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else None
    return value if value is not None and value.dtype in runnel.CODES else None


def difference(case, got, expected):
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{got.shape} instead of {expected.dtype}{expected.shape}"
    # bfloat16's bound is that of ONNX's own runner: two units in the last place.
    rtol = max(case.rtol, 2.0**-6) if got.dtype.name == "bfloat16" else case.rtol
    if "float" not in got.dtype.name:
        wrong = int((got != expected).sum())
        return f"{wrong} of {got.size} elements differ" if wrong else None
    atol = max(case.atol, CHAINS.get(case.name, 0))
    if np.allclose(got.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True):
        return None
    return f"max difference {np.nanmax(np.abs(got.astype(np.float64) - expected.astype(np.float64)))}"


def run_case(device, case):
    session = runnel.Session(device, case.model.SerializeToString())
    try:
        names = [i.name.decode() for i in session.infos("inputs")]
        for inputs, outputs in case.data_sets:
            feed = {name: as_array(value) for name, value in zip(names, inputs)}
            got = session.run(feed)
            for output, expected in zip(case.model.graph.output, outputs):
                found = difference(case, got[output.name], as_array(expected))
                if found:
                    return f"{output.name}: {found}"
    finally:
        session.close()
    return None


def supported_types(case):
    values = [v for inputs, outputs in case.data_sets for v in inputs + outputs]
    return all(as_array(v) is not None for v in values)


class NodeCaseTest(unittest.TestCase):
    def test_all(self):
        device = runnel.Device(runnel.Library())
        only = os.environ.get("RUNNEL_TEST_OPERATOR")
        counts, failures, refusals = collections.Counter(), [], collections.Counter()
        for case in collect_testcases(None):
            operators = {n.op_type for n in case.model.graph.node}
            if (only and only not in operators) or not supported_types(case):
                continue
            try:
                found = run_case(device, case)
            except runnel.Failure as failure:
                if failure.status in REFUSED:
                    refusals[",".join(sorted(operators))] += 1
                    counts["refused"] += 1
                    if os.environ.get("RUNNEL_TEST_SHOW"):
                        print("refused", case.name, failure)
                    continue
                found = str(failure)
            if case.name in DIFFERS:
                found = None if found else "no longer differs from the reference: take it off the list"
            counts["failed" if found else "passed"] += 1
            if found:
                failures.append(f"{case.name}: {found}")
        device.close()
        print(dict(counts))
        print("refused:", dict(refusals))
        self.assertEqual(failures, [], "\n" + "\n".join(failures))
        self.assertTrue(only or counts["passed"] > 500, "too few cases ran")


if __name__ == "__main__":
    unittest.main(verbosity=2)
