#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares runnel with onnxruntime: the time of a run, or --start, or --memory. Prints a table; --json writes the figures.

Each engine runs in a process of its own, on the same cores with as many threads, and is stopped while the other is
measured; they take turns in several rounds, each after at least a second of the same work. Then each is timed with the
other one absent, and a row whose two ways differ by more than 5% is disturbed: it is measured again, and after some
tries the script says so and fails. It judges no time. Needs .venv (tools/test makes it) and the models (tools/fetch-models).
"""

import argparse
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys

import bench_models
import engines
from peer import Peer, same_results
import process_bench

SAMPLES, SAMPLE_MS, ROUNDS, WARM_S = 20, 50, 4, 1.0


def ort_outputs(path, array):
    """For checking copies of models."""
    engine = engines.make("onnxruntime", 1)
    engine.open(path, array)
    return engine.run()


def take_turns(peers):
    """{engine: seconds of each sample}."""
    seconds = {peer.engine: [] for peer in peers}
    for _ in range(ROUNDS):
        for peer in peers:
            seconds[peer.engine] += peer.measure(WARM_S, SAMPLES // ROUNDS, SAMPLE_MS)
    return seconds


def time_alone(engine, threads, model, data):
    with Peer(engine, threads, model, data) as peer:
        return peer.measure(WARM_S, SAMPLES, SAMPLE_MS)


def summary(seconds):
    ordered = sorted(seconds)
    return {"median_ms": statistics.median(ordered) * 1e3, "min_ms": ordered[0] * 1e3,
            "p90_ms": ordered[(len(ordered) * 9 + 9) // 10 - 1] * 1e3}


def measure_case(threads, model, data, tolerance):
    """One row: both engines, taking turns and alone."""
    row = {"disturbed": []}
    alone = {name: summary(time_alone(name, threads, model, data)) for name in engines.NAMES}
    with Peer(engines.NAMES[0], threads, model, data) as first, Peer(engines.NAMES[1], threads, model, data) as second:
        if first.hello["cores"] != second.hello["cores"]:
            raise RuntimeError(f"cores {first.hello['cores']} and {second.hello['cores']}")
        row["difference"] = same_results(second.results(), first.results())
        row["cores"] = first.hello["cores"]
        together = take_turns([first, second])
    for name in engines.NAMES:
        row[name] = {**summary(together[name]), "alone_ms": alone[name]["median_ms"]}
        if abs(row[name]["alone_ms"] / row[name]["median_ms"] - 1) > tolerance:
            row["disturbed"].append(name)
    row["ratio"] = row["runnel"]["median_ms"] / row["onnxruntime"]["median_ms"]
    return row


def measure_until_quiet(options, threads, model, data):
    for attempt in range(options.tries):
        row = measure_case(threads, model, data, options.tolerance)
        if not row["disturbed"]:
            break
    row["tries"] = attempt + 1
    return row


def time_line(row):
    ours, theirs = row["runnel"], row["onnxruntime"]
    notes = [f"disturbed: {', '.join(row['disturbed'])}"] if row["disturbed"] else []
    if row["difference"] > 1:
        notes.append("results differ")
    return (f"| {row['model']} | {row['batch']} | {row['threads']} | {theirs['median_ms']:.2f} | "
            f"{ours['median_ms']:.2f} | {row['ratio']:.2f} | {'; '.join(notes)} |")


TIME_HEAD = "| model | batch | threads | onnxruntime ms | runnel ms | ratio | |\n| --- | --- | --- | --- | --- | --- | --- |"


def compare_times(options, rows):
    """Prints the table row by row, and adds to `rows`."""
    print(TIME_HEAD, flush=True)
    for name in options.models:
        for batch in [batch for batch in bench_models.CASES[name][2] if batch in options.batches]:
            model, data = bench_models.prepare(name, batch, options.folder, ort_outputs)
            for threads in options.threads:
                row = measure_until_quiet(options, threads, model, data)
                rows.append({"model": name, "batch": batch, "threads": threads, **row})
                print(time_line(rows[-1]), flush=True)


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                  if line.startswith("model name")), platform.machine())
    git = subprocess.run(["git", "-C", bench_models.ROOT, "describe", "--always", "--dirty"], capture_output=True,
                         text=True, check=False)
    return {"date": datetime.date.today().isoformat(), "cpu": model, "cores": len(os.sched_getaffinity(0)),
            "system": platform.platform(), "revision": git.stdout.strip(),
            "command": " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:]]),
            "onnxruntime": engines.make("onnxruntime", 1).version}


def save(path, kind, rows):
    """Adds to what other kinds of measurement have written there."""
    report = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    report[kind] = {"machine": machine(), "rows": rows}
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def numbers(text):
    return [int(part) for part in text.split(",")]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--start", action="store_true", help="from a process's start to its first output")
    kinds.add_argument("--memory", action="store_true", help="peak memory above an empty process of the same engine")
    parser.add_argument("--models", default=None, metavar="A,B", help="of: " + ", ".join(bench_models.CASES))
    parser.add_argument("--batches", type=numbers, default=[1, 8], metavar="1,8")
    parser.add_argument("--threads", type=numbers, default=[1, 2], metavar="1,2")
    parser.add_argument("--tries", type=int, default=3, help="for a disturbed row (3)")
    parser.add_argument("--tolerance", type=float, default=0.05, help="between alone and taking turns (0.05)")
    parser.add_argument("--build", default=os.path.join(bench_models.ROOT, "build", "release"), metavar="FOLDER")
    parser.add_argument("--folder", default=os.path.join(bench_models.ROOT, "build", "bench-models"),
                        help="for copies of models (build/bench-models)")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    default = ["resnet50"] if options.memory else list(bench_models.CASES)
    options.models = options.models.split(",") if options.models else default
    unknown = [name for name in options.models if name not in bench_models.CASES]
    if unknown:
        parser.error(f"no model {unknown[0]}; there are {', '.join(bench_models.CASES)}")
    return options


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
            save(options.json, kind, rows)
    bad = [row for row in rows if row.get("disturbed") or row.get("difference", 0) > 1]
    for row in bad:
        print(f"{row['model']}, batch {row['batch']}, {row['threads']} threads: disturbed or different", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
