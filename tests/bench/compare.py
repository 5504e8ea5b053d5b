#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares runnel with other engines: the time of a run, or --start, or --memory. Prints a table; --json writes the figures.

Each engine runs in a process of its own, on the same cores with as many threads, and is stopped while another one is
measured; they take turns in several rounds, each after some of the same work. What is compared is the ratio within a round;
a row whose rounds do not agree to 5% is disturbed: it is measured again, and after some tries the script says so and fails.
It judges no time. Run it with the Python of .venv-bench (tests/bench/setup makes it) or, against onnxruntime alone, of .venv.
"""

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import signal
import statistics
import subprocess
import sys

import numpy as np

import bench_models
import convert
import engines
from peer import Peer, part_of_largest, same_results
import process_bench
import tables

# Elements may differ by so many times 1e-4 + 1e-3 |expected|; MNN approximates exp and erf, and its Winograd rounds more.
ALLOWED = {"mnn": 10.0}
ALLOWED_LOW = 0.2  # in 8 bits and bfloat16: a part of the largest, since each rounding goes through all layers behind it


def judge(name, precision, results, expected):
    """The difference as a part of what is allowed; ValueError where shapes differ."""
    results = [got.reshape(right.shape) for got, right in zip(results, expected, strict=True)]
    if precision != "f32":
        return part_of_largest(results, expected) / ALLOWED_LOW
    return same_results(results, expected) / ALLOWED.get(name, 1.0)


def kind_of(name, precision):
    """What to start for an engine, or None where it has no such precision."""
    if precision == "bf16":
        return {"openvino": "openvino-free", "runnel": "runnel-bf16"}.get(name)
    return name


def open_peer(name, threads, model, data, options, precision):
    kind = kind_of(name, precision)
    if kind is None:
        raise RuntimeError("no bfloat16")
    return Peer(kind, threads, convert.model_for(kind, model, data, options.folder), data)


def open_peers(stack, threads, model, data, options, precision, expected):
    """Those that give the expected results: {engine: process}, {engine: difference}, {engine: why not}."""
    peers, differences, refused = {}, {}, {}
    for name in options.engines:
        try:
            peer = stack.enter_context(open_peer(name, threads, model, data, options, precision))
            differences[name] = judge(name, precision, peer.results(), expected)
        except (RuntimeError, ValueError) as error:
            refused[name] = str(error)
            continue
        if differences[name] <= 1:
            peers[name] = peer
        else:
            refused[name] = f"other results: {differences[name]:.2g} times what is allowed"
            peer.close()
    return peers, differences, refused


def take_turns(peers, options):
    """{engine: [seconds of each sample, by round]}."""
    for peer in peers.values():
        peer.ask("warm", options.warm)
    rounds = {name: [] for name in peers}
    for _ in range(options.rounds):
        for name, peer in peers.items():
            rounds[name].append(peer.measure(options.warm * 0.3, options.samples, options.sample_ms))
    return rounds


def summary(rounds):
    ordered = sorted(second for samples in rounds for second in samples)
    return {"median_ms": statistics.median(ordered) * 1e3, "min_ms": ordered[0] * 1e3,
            "p90_ms": ordered[(len(ordered) * 9 + 9) // 10 - 1] * 1e3}


def ratios(rounds, base):
    """How many times as fast as the other one, in each round."""
    return [statistics.median(theirs) / statistics.median(ours) for theirs, ours in zip(rounds, base)]


def disagree(values, tolerance):
    """Whether rounds differ, but for one in each direction where there are five."""
    ordered = sorted(values)
    inner = ordered[1:-1] if len(ordered) >= 5 else ordered
    return inner[-1] / inner[0] > 1 + tolerance


def measure_case(threads, model, data, options, precision, expected):
    """One row: all engines, taking turns."""
    with contextlib.ExitStack() as stack:
        peers, differences, refused = open_peers(stack, threads, model, data, options, precision, expected)
        cores = {tuple(peer.hello["cores"]) for peer in peers.values()}
        if len(cores) > 1:
            raise RuntimeError(f"different cores: {cores}")
        rounds = take_turns(peers, options)
    row = {"engines": {name: summary(rounds[name]) for name in rounds}, "refused": refused, "differences": differences,
           "disturbed": [], "speed": {}}
    base = rounds.get("runnel") or next(iter(rounds.values()), None)
    for name in rounds:
        each = ratios(rounds[name], base)
        if disagree(each, options.tolerance):
            row["disturbed"].append(name)
        if "runnel" in rounds and name != "runnel":
            row["speed"][name] = statistics.median(each)
    return row


def measure_until_quiet(options, *case):
    for attempt in range(options.tries):
        row = measure_case(*case)
        if not row["disturbed"]:
            break
    row["tries"] = attempt + 1
    return row


def compare_times(options, rows):
    """Prints the table row by row, and adds to `rows`."""
    print(tables.time_head(options.engines), flush=True)
    for name in options.models:
        case = bench_models.ALL_CASES[name]
        for batch in [batch for batch in case.batches if batch in options.batches]:
            model, data = bench_models.prepare(name, batch, options.folder, engines.ort_outputs)
            expected = engines.ort_outputs(model, np.load(data))
            for threads in options.threads:
                row = measure_until_quiet(options, threads, model, data, options, case.precision, expected)
                rows.append({"model": name, "batch": batch, "threads": threads, "precision": case.precision, **row})
                print(tables.time_line(rows[-1], options.engines), flush=True)


def versions():
    found = {}
    for name, package in engines.PACKAGES.items():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(package)
    return found


def machine(names):
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                  if line.startswith("model name")), platform.machine())
    git = subprocess.run(["git", "-C", bench_models.ROOT, "describe", "--always", "--dirty"], capture_output=True,
                         text=True, check=False)
    return {"date": datetime.date.today().isoformat(), "cpu": model, "cores": len(os.sched_getaffinity(0)),
            "system": platform.platform(), "revision": git.stdout.strip(),
            "command": " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]]), "engines": names, "versions": versions()}


def save(path, kind, rows, names):
    """Adds to what other kinds of measurement have written there."""
    report = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    report[kind] = {"machine": machine(names), "rows": rows}
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def numbers(text):
    return [int(part) for part in text.split(",")]


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--start", action="store_true", help="from a process's start to its first output")
    kinds.add_argument("--memory", action="store_true", help="peak memory above an empty process of the same engine")
    parser.add_argument("--peers", default=None, metavar="A,B", help="those that are installed of: " + ", ".join(engines.PACKAGES))
    parser.add_argument("--models", default=None, metavar="A,B", help="of: " + ", ".join(bench_models.ALL_CASES))
    parser.add_argument("--batches", type=numbers, default=[1, 8, 32], metavar="1,8,32")
    parser.add_argument("--threads", type=numbers, default=[1, 2], metavar="1,2")
    parser.add_argument("--tries", type=int, default=2, help="for a disturbed row (2)")
    parser.add_argument("--tolerance", type=float, default=0.05, help="between rounds (0.05)")
    parser.add_argument("--quick", action="store_true", help="a first look: short samples, no second try")
    parser.add_argument("--build", default=os.path.join(bench_models.ROOT, "build", "release"), metavar="FOLDER")
    parser.add_argument("--folder", default=os.path.join(bench_models.ROOT, "build", "bench-models"),
                        help="for models that are built, copied or converted (build/bench-models)")
    parser.add_argument("--json", metavar="FILE")
    return parser


def parse(arguments):
    parser = make_parser()
    options = parser.parse_args(arguments)
    cases = [name for name, case in bench_models.CASES.items() if case.precision != "bf16" or not (options.start or options.memory)]
    options.models = options.models.split(",") if options.models else cases
    peers = options.peers.split(",") if options.peers else list(versions())
    for name, known in [*((name, bench_models.ALL_CASES) for name in options.models), *((name, engines.PACKAGES) for name in peers)]:
        if name not in known:
            parser.error(f"no {name}; there are {', '.join(known)}")
    options.engines = ["runnel", *peers]
    options.rounds, options.samples, options.sample_ms, options.warm = (3, 3, 20, 0.2) if options.quick else (5, 4, 50, 1.0)
    options.tries = 1 if options.quick else options.tries
    options.folder = os.path.abspath(options.folder)
    return options


def bad_rows(rows):
    return [row for row in rows if row.get("disturbed") or row.get("differences", {}).get("runnel", 0) > 1]


def main(arguments=None):
    options = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that stopped processes go too
    os.environ["RUNNEL_BUILD"] = os.path.abspath(options.build)
    os.makedirs(options.folder, exist_ok=True)
    kind = "start" if options.start else "memory" if options.memory else "time"
    compare = {"start": process_bench.compare_starts, "memory": process_bench.compare_memory, "time": compare_times}[kind]
    rows = []
    try:
        compare(options, rows)
    finally:
        if options.json and rows:
            save(options.json, kind, rows, options.engines)
    for row in bad_rows(rows):
        print(f"{row['model']}, batch {row['batch']}, {row['threads']} threads: disturbed or different", file=sys.stderr)
    return 1 if bad_rows(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
