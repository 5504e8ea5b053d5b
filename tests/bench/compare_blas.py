#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares matrix products with numpy's OpenBLAS. Prints a table; --json writes the figures.

Each engine runs in a process of its own, on the same cores with as many threads, and is stopped while the other is
measured; they take turns, sample by sample. A sample is some milliseconds of products, back to back with one finish
(runnel) or one call after the other (numpy, whose calls wait); printed are medians. Behind them: products whose errors
may be bounded by norm (--normwise), 8-bit integers and bfloat16 against float32 of ours, CLBlast, and a single call with
its finish. It judges nothing.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys

from compare import machine
import engines
import gemm_engine

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SQUARES = [(n, n, n) for n in (256, 512, 1024, 2048)]
RESNET = [(3136, 64, 64), (3136, 256, 64), (784, 128, 512), (784, 512, 128), (196, 256, 1024), (196, 1024, 256),
          (49, 512, 2048), (49, 2048, 512), (3136, 64, 576), (784, 128, 1152), (196, 256, 2304), (49, 512, 4608)]
MINILM = [(128, 384, 384), (128, 1536, 384), (128, 384, 1536)]
SKINNY = [(m, n, k) for n, k in ((1000, 2048), (1536, 384), (384, 1536)) for m in (1, 2, 4, 8, 16)]
GROUPS = {"square": SQUARES, "resnet": RESNET, "minilm": MINILM, "skinny": SKINNY}


class Worker:
    """A process of gemm_engine.py, stopped except while it is asked something."""

    def __init__(self, name, threads):
        self.process = subprocess.Popen([sys.executable, gemm_engine.__file__, name, str(threads)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, **engines.environment(threads),
                                             "OPENBLAS_NUM_THREADS": str(threads)})
        self.hello = self._read()
        self.process.send_signal(signal.SIGSTOP)

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process ended with {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def ask(self, **command):
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            return self._read()
        finally:
            self.process.send_signal(signal.SIGSTOP)

    def close(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def measure(columns, options):
    """{title: seconds of a product} of [(title, worker, what to make)], sample by sample in turn."""
    seconds = {title: [] for title, _, _ in columns}
    known = {}
    for title, worker, what in columns:
        known[title] = worker.ask(do="make", **what)["made"]
        worker.ask(do="warm", what=known[title], seconds=options.warm)
    for _ in range(options.samples):
        for title, worker, _ in columns:
            seconds[title].append(worker.ask(do="sample", what=known[title], seconds=options.sample_ms * 1e-3)["seconds"])
    calls = {title: worker.ask(do="calls", what=known[title], count=options.calls)["seconds"]
             for title, worker, _ in columns}
    for title, worker, _ in columns:
        worker.ask(do="forget", what=known[title])
    return {title: statistics.median(values) for title, values in seconds.items()}, calls


def columns_of(shape, ours, theirs, options):
    size = dict(zip("mnk", shape))
    columns = [("blas", theirs, size), ("unpacked", ours, size), ("packed", ours, {**size, "packed": True})]
    if options.normwise:
        columns += [("normwise", ours, {**size, "normwise": True}),
                    ("normwise packed", ours, {**size, "normwise": True, "packed": True})]
    if "i8" in options.types:
        columns.append(("i8", ours, {**size, "type": "i8", "packed": True}))
    if "bf16" in options.types:
        columns.append(("bf16", ours, {**size, "type": "bf16", "packed": True}))
    if options.clblast:
        columns.append(("clblast", ours, {**size, "implementation": "clblast"}))
    return columns


def line_of(row):
    gflops = {title: 2e-9 * row["m"] * row["n"] * row["k"] / s for title, s in row["seconds"].items()}
    cells = [f"{row['m']}x{row['n']}x{row['k']}", f"{gflops['blas']:.1f}"]
    for title in ("unpacked", "packed"):
        cells += [f"{gflops[title]:.1f}", f"{gflops[title] / gflops['blas']:.2f}"]
    for title in ("normwise", "normwise packed"):
        cells.append(f"{gflops[title] / gflops['blas']:.2f}" if title in gflops else "")
    for title in ("i8", "bf16"):
        cells.append(f"{gflops[title] / gflops['packed']:.2f}" if title in gflops else "")
    cells.append(f"{gflops['packed'] / gflops['clblast']:.1f}" if "clblast" in gflops else "")
    cells += [f"{row['call_seconds'][title] * 1e6:.1f}" for title in ("blas", "packed")]
    return "| " + " | ".join(cells) + " |"


HEAD = ("| m x n x k | OpenBLAS GFLOP/s | unpacked | of OpenBLAS | packed | of OpenBLAS | normwise of OpenBLAS | packed | i8 / f32 | bf16 / f32 | "
        "f32 / CLBlast | a call of OpenBLAS us | of ours us |\n|" + " --- |" * 13)


def compare(options, rows):
    print(HEAD, flush=True)
    with Worker("runnel", options.threads) as ours, Worker("blas", options.threads) as theirs:
        for shape in options.shapes:
            seconds, calls = measure(columns_of(shape, ours, theirs, options), options)
            rows.append({**dict(zip("mnk", shape)), "threads": options.threads, "seconds": seconds,
                         "call_seconds": calls})
            print(line_of(rows[-1]), flush=True)
        return {"blas": theirs.hello["version"], "device": ours.hello["version"]}


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", default="square,resnet,minilm,skinny", metavar="A,B", help="of: " + ", ".join(GROUPS))
    parser.add_argument("--shape", action="append", metavar="MxNxK", help="this one instead; several times for several")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--types", default="i8,bf16", help="beside f32 (i8,bf16)")
    parser.add_argument("--normwise", action="store_true", help="too: products whose errors are bounded by norm")
    parser.add_argument("--clblast", action="store_true", help="too: it compiles for long")
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--sample-ms", type=float, default=30)
    parser.add_argument("--warm", type=float, default=0.2, help="seconds before the samples (0.2)")
    parser.add_argument("--calls", type=int, default=100, help="single calls (100)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), metavar="FOLDER")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    options.types = options.types.split(",")
    if options.shape:
        options.shapes = [tuple(int(size) for size in shape.split("x")) for shape in options.shape]
    else:
        options.shapes = [shape for group in options.groups.split(",") for shape in GROUPS[group]]
    return options


def main(arguments=None):
    options = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that stopped processes go too
    os.environ["RUNNEL_BUILD"] = os.path.abspath(options.build)
    rows, versions = [], {}
    try:
        versions = compare(options, rows)
    finally:
        if options.json and rows:
            report = {"machine": {**machine([]), **versions}, "rows": rows}
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(report, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
