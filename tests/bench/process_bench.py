# SPDX-License-Identifier: Apache-2.0
"""What a whole process costs: the time to its first output, and its peak memory."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import bench_models
import engines
from peer import Peer

STARTS = 7
HERE = os.path.dirname(os.path.abspath(__file__))


def runnel_command(model, data):
    return [os.path.join(os.environ["RUNNEL_BUILD"], "runnel"), "run", model, "-i", data], "device:"


def ort_command(model, data, threads):
    return [sys.executable, os.path.join(HERE, "start_ort.py"), model, data, str(threads)], None


def time_to_output(command, skipped, threads, folder):
    """Milliseconds to the first line of output that does not begin with `skipped`, and to the end."""
    env = {**os.environ, **engines.environment(threads), "RUNNEL_CACHE_DIR": os.path.join(folder, "runnel"),
           "POCL_CACHE_DIR": os.path.join(folder, "pocl")}
    os.makedirs(env["POCL_CACHE_DIR"], exist_ok=True)
    cores = os.sched_getaffinity(0)
    engines.use_cores(threads)  # the child's too
    start, first = time.perf_counter(), None
    try:
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if first is None and not (skipped and line.startswith(skipped)):
                    first = time.perf_counter()
            messages = process.stderr.read()
    finally:
        os.sched_setaffinity(0, cores)
    end = time.perf_counter()
    if process.returncode != 0 or first is None:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {messages}")
    return (first - start) * 1e3, (end - start) * 1e3


def start_row(name, model, data, threads):
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = runnel_command(model, data), ort_command(model, data, threads)
        time_to_output(*theirs, threads, folder)  # what it reads is in the system's memory from now on
        cold = time_to_output(*ours, threads, folder)[0]
        rows = {"runnel": [], "onnxruntime": []}
        for _ in range(STARTS):
            rows["onnxruntime"].append(time_to_output(*theirs, threads, folder)[0])
            rows["runnel"].append(time_to_output(*ours, threads, folder)[0])
    medians = {key: statistics.median(values) for key, values in rows.items()}
    return {"model": name, "batch": 1, "threads": threads, "first_ms": cold, "second_ms": medians["runnel"],
            "onnxruntime_ms": medians["onnxruntime"], "samples_ms": rows,
            "behind_ms": medians["runnel"] - medians["onnxruntime"]}


def compare_starts(options, rows):
    print("| model | threads | onnxruntime ms | runnel ms | behind ms | runnel, empty caches ms |")
    print("| --- | --- | --- | --- | --- | --- |", flush=True)
    for name in options.models:
        model, data = bench_models.prepare(name, 1, options.folder, None)
        for threads in options.threads:
            row = start_row(name, model, data, threads)
            rows.append(row)
            print(f"| {name} | {threads} | {row['onnxruntime_ms']:.0f} | {row['second_ms']:.0f} | "
                  f"{row['behind_ms']:.0f} | {row['first_ms']:.0f} |", flush=True)


def peak_kib(engine, threads, model, data):
    """The least of three: what else the process does differs a little each time."""
    peaks = []
    for _ in range(3):
        with Peer(engine, threads, model, data) as peer:
            peaks.append(peer.hello["peak_kib"])
    return min(peaks)


def memory_row(name, batch, threads, options):
    model, data = bench_models.prepare(name, batch, options.folder, None)
    trivial = os.path.join(options.folder, "trivial.onnx")
    bench_models.save_trivial(trivial)
    small = os.path.join(options.folder, "trivial.npy")
    bench_models.np.save(small, bench_models.np.zeros(1, bench_models.np.float32))
    row = {"model": name, "batch": batch, "threads": threads}
    for engine, empty in (("onnxruntime", (trivial, small)), ("runnel", ("none", "none"))):
        peak_kib(engine, threads, model, data)  # fills the caches
        base, peak = peak_kib(engine, threads, *empty), peak_kib(engine, threads, model, data)
        row[engine] = {"empty_mib": base / 1024, "peak_mib": peak / 1024, "above_mib": (peak - base) / 1024}
    row["ratio"] = row["runnel"]["above_mib"] / row["onnxruntime"]["above_mib"]
    return row


def compare_memory(options, rows):
    print("| model | threads | onnxruntime: empty, peak, above MiB | runnel: empty, peak, above MiB | ratio |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    for name in options.models:
        for threads in options.threads:
            row = memory_row(name, 1, threads, options)
            rows.append(row)
            cells = [f"{row[e]['empty_mib']:.0f}, {row[e]['peak_mib']:.0f}, {row[e]['above_mib']:.0f}"
                     for e in ("onnxruntime", "runnel")]
            print(f"| {name} | {threads} | {cells[0]} | {cells[1]} | {row['ratio']:.2f} |", flush=True)
