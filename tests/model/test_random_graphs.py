# SPDX-License-Identifier: Apache-2.0
"""Random graphs of 2 to 12 operators, drawn by hypothesis: the same results fused and unfused (RUNNEL_FUSE=off), and from
onnxruntime where that is installed and can run the graph.

    test_random_graphs.py                            300 graphs, always the same ones; one in RUNNEL_TEST_EACH
    test_random_graphs.py --graphs 10000 --jobs 16   the long run, in 16 processes
    test_random_graphs.py --seed 7                   other graphs
    test_random_graphs.py --replay FILE.onnx         one graph that was saved

A graph that fails is made smaller, printed, and saved with its inputs in build/random-graphs. What random_graph.py knows
to be exact must be equal; the rest has the bound of one operator, 1e-4 + 1e-3 * |expected|, which is not widened for
chains.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import sys
import time
import unittest

import hypothesis
import hypothesis.configuration
import numpy as np
import onnx
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from onnx import helper

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
import runnel  # noqa: E402
from random_graph import ALL, F32, F64, FLOATS, MAX_OPERATORS  # noqa: E402
from random_layers import Layers  # noqa: E402
from random_moves import Moves  # noqa: E402
from random_operators import Elementwise, Reductions  # noqa: E402
from random_quantised import Quantised  # noqa: E402

ABSOLUTE, RELATIVE = 1e-4, 1e-3
GRAPHS, CHUNK, SECONDS = 300, 50, 240
FOLDER = os.path.join(HERE, "..", "..", "build", "random-graphs")
hypothesis.configuration.set_hypothesis_home_dir(os.path.join(FOLDER, "..", "hypothesis"))


class Graph(Elementwise, Reductions, Quantised, Layers, Moves):
    def grow(self):
        self.kinds = [*self.elementwise_kinds(), *self.layer_kinds(), *self.reduction_kinds(), *self.move_kinds(),
                      *self.quantised_kinds()]
        shape = [self.pick(1, 2), self.pick(1, 3, 4, 7, 16, 18), self.pick(4, 5, 9), self.pick(3, 6, 8)]
        shape = shape[:self.pick(4, 4, 4, 3, 3, 2)]
        if self.chance(5):
            shape[self.upto(0, len(shape) - 1)] = 0
        self.input(F32, shape, self.chance(45))
        if self.chance(40):
            type = self.pick(F32, F32, *self.types)
            self.input(type, self.pick(tuple(shape), (3, 12), (2, 5, 8), ()), type not in FLOATS or self.chance(25))
        self.dynamic = self.chance(30)
        for _ in range(3 * MAX_OPERATORS):
            if self.draw(step(self)) == "end":
                break
        while len(self.nodes) < 2:
            self.add("Relu", self.order[0], grid=self.order[0].grid)
        return self


@st.composite
def step(draw, graph):
    """One operator, or the end; all numbers of operators are as likely. Its own strategy, so that it can be left out."""
    graph.draw, count = draw, len(graph.nodes)
    if count >= 2 and graph.grew and graph.upto(0, MAX_OPERATORS - count) == 0:
        return "end"
    graph.try_one(graph.pick(*graph.kinds))
    graph.grew = len(graph.nodes) > count
    return "more"


@st.composite
def graphs(draw, types):
    graph = Graph(draw, types).grow()
    graph.draw = draw
    graph.choose_outputs()
    return graph


class Independent(providers.HypothesisProvider):
    """Draws each graph anew. By itself hypothesis makes most of them by changing a few others a little."""


providers.AVAILABLE_PROVIDERS["independent"] = f"{__name__}.Independent"


class Runner:
    """A device, and what was found there."""

    def __init__(self, name):
        self.device = runnel.Device(runnel.Library())
        self.types = [t for t in ALL if t != F64 or self.has_doubles()]
        self.name, self.counts = name, collections.Counter()
        os.makedirs(FOLDER, exist_ok=True)

    def has_doubles(self):
        info = [helper.make_tensor_value_info(n, onnx.TensorProto.DOUBLE, [1]) for n in "xy"]
        graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "doubles", info[:1], info[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        try:
            self.run(model.SerializeToString(), {"x": np.ones(1)}, True)
            return True
        except runnel.Failure:
            return False

    def run(self, model, feed, fused):
        os.environ["RUNNEL_FUSE"] = "on" if fused else "off"
        try:
            session = runnel.Session(self.device, model)
            try:
                return session.run(feed)
            finally:
                session.close()
        finally:
            del os.environ["RUNNEL_FUSE"]

    def save(self, model, feed, name):
        path = os.path.join(FOLDER, f"{self.name}-{name}.onnx")
        onnx.save(model, path)
        np.savez(path[:-5] + ".npz", **{name: array.astype(np.float64) for name, array in feed.items()})
        return path

    def differences(self, model, feed):
        """As lines. Counts what came of it."""
        notes = {p.key: p.value for p in model.metadata_props}
        exact = set(notes["exact"].split())
        data = model.SerializeToString()
        try:
            fused, unfused = self.run(data, feed, True), self.run(data, feed, False)
        except runnel.Failure as failure:
            self.counts["refused"] += 1
            return [f"refused: {failure}"]
        pairs = [("fused", fused, "unfused", unfused)]
        expected = run_onnxruntime(data, feed) if not notes["empty"] else None
        if expected is not None:
            self.counts["onnxruntime"] += 1
            pairs += [("unfused", unfused, "onnxruntime", expected), ("fused", fused, "onnxruntime", expected)]
        found = [f"{a} against {b}, {name}: {text}" for a, left, b, right in pairs for name in right
                 if (text := difference(left[name], right[name], name in exact))]
        self.counts["differed" if found else "agreed"] += 1
        return found

    def check(self, seed, count):
        """So many graphs of a seed; the smallest one that fails, as text, or nothing."""
        failed, text = [], []

        @hypothesis.seed(seed)
        @hypothesis.settings(max_examples=count, derandomize=True, database=None, deadline=None, print_blob=False,
                             backend="independent", report_multiple_bugs=False,
                             suppress_health_check=list(hypothesis.HealthCheck),
                             phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink])
        @hypothesis.given(graphs(self.types))
        def agrees(graph):
            before = self.counts.copy()
            model, feed = graph.model(), graph.feed()
            self.save(model, feed, "running")
            found = self.differences(model, feed)
            if failed:
                self.counts = before  # it is being made smaller
            else:
                self.counts["graphs"] += 1
            if found:
                failed.append(True)
                path = self.save(model, feed, f"seed-{seed}")
                text[:] = [f"seed {seed}, saved as {os.path.relpath(path)}:", repr(graph), *found]
                raise AssertionError(found[0])

        try:
            agrees()
        except AssertionError:
            return "\n".join(text)
        finally:
            for end in (".onnx", ".npz"):
                os.remove(os.path.join(FOLDER, f"{self.name}-running{end}"))
        return ""

    def close(self):
        self.device.close()


def run_onnxruntime(model, feed):
    """Its results, or None when it is not there or cannot run the graph."""
    if onnxruntime is None:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
    except Exception:  # the types and sizes that it has no kernel for raise many kinds
        return None


def difference(got, expected, exact):
    """What is wrong with a result, or None."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype} {got.shape} instead of {expected.dtype} {expected.shape}"
    if exact or expected.dtype.kind in "iub":
        wrong = got != expected
        excess = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    else:
        with np.errstate(invalid="ignore"):
            excess = np.abs(got.astype(np.float64) - expected) - (ABSOLUTE + RELATIVE * np.abs(expected))
        excess = np.where((got == expected) | (np.isnan(got) & np.isnan(expected)), 0, excess)
        wrong = ~(excess <= 0)
    if not wrong.any():
        return None
    at = np.unravel_index(np.argmax(np.where(np.isnan(excess), np.inf, excess)), got.shape)
    return (f"{wrong.sum()} of {got.size} elements differ{' and must be equal' if exact else ''}, worst at "
            f"{tuple(map(int, at))}: {got[at]} instead of {expected[at]}")


# ---- many graphs

runner = None


def start(processes):
    """In each process of a long run: its own device, and its share of the processor."""
    global runner
    threads = str(max(1, (os.cpu_count() or 1) // processes))
    for name in ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT"):
        if processes > 1:
            os.environ.setdefault(name, threads)
    runner = Runner(f"process-{os.getpid()}")


def one_chunk(seed, count):
    before = runner.counts.copy()
    text = runner.check(seed, count)
    return text, runner.counts - before


def chunks(total, seed):
    """(seed, graphs) of each."""
    return [(1_000_000 * seed + first, min(CHUNK, total - first)) for first in range(0, total, CHUNK)]


def run_many(total, seed, jobs, seconds=None, show=print):
    """Returns the counts. Prints the graphs that fail, and the counts at the end."""
    begin, counts, waiting = time.monotonic(), collections.Counter(), chunks(total, seed)
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), start, (jobs,)) as pool:
        running = set()
        while waiting or running:
            late = seconds is not None and time.monotonic() - begin > seconds
            while waiting and len(running) < jobs and not late:
                running.add(pool.submit(one_chunk, *waiting.pop(0)))
            if not running:
                break
            ended, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in ended:
                text, found = future.result()
                counts += found
                if text:
                    show(text, flush=True)
    show(f"{counts['graphs']} graphs from seed {seed}: {counts['agreed']} agreed, {counts['differed']} differed, "
         f"{counts['refused']} refused, {counts['onnxruntime']} run by onnxruntime too, "
         f"{time.monotonic() - begin:.0f} s", flush=True)
    return counts


def replay(path):
    """A saved graph again."""
    model, one = onnx.load(path), Runner("replay")
    saved = np.load(path[:-5] + ".npz")
    types = {i.name: helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type) for i in model.graph.input}
    lines = one.differences(model, {name: saved[name].astype(type) for name, type in types.items()})
    print(onnx.printer.to_text(model.graph), *lines, "wrong" if lines else "agrees", sep="\n")
    one.close()
    return 1 if lines else 0


class RandomGraphTest(unittest.TestCase):
    def test_graphs(self):
        lines = []
        counts = run_many(GRAPHS // runnel.EACH, 0, 1, SECONDS, lambda text, flush: lines.append(text))
        print(lines[-1])
        self.assertEqual(counts["agreed"], counts["graphs"], "\n" + "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, metavar="N")
    parser.add_argument("--seed", type=int, metavar="S")
    parser.add_argument("--jobs", type=int, default=1, metavar="J")
    parser.add_argument("--seconds", type=float, metavar="T", help="begin none after T seconds")
    parser.add_argument("--replay", metavar="FILE")
    chosen, rest = parser.parse_known_args()
    if chosen.replay:
        sys.exit(replay(chosen.replay))
    if chosen.graphs or chosen.seed is not None or chosen.jobs > 1:
        totals = run_many(chosen.graphs or GRAPHS, chosen.seed or 0, chosen.jobs, chosen.seconds)
        sys.exit(0 if totals["agreed"] == totals["graphs"] else 1)
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
