# SPDX-License-Identifier: Apache-2.0
"""What a whole process costs: the time to its first output, and its peak memory."""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import bench_models
import convert
import engines
from peer import Peer
import tables

STARTS = 7
HERE = os.path.dirname(os.path.abspath(__file__))


def command_of(engine, model, data, threads):
    """What to start, and whether a line that it prints is output."""
    if engine == "runnel":
        command = [os.path.join(os.environ["RUNNEL_BUILD"], "runnel"), "run", model, "-i", data]
        return command, lambda line: not line.startswith("device:")
    return [sys.executable, os.path.join(HERE, "start.py"), engine, model, data, str(threads)], is_output


def is_output(line):
    """And not what a library says."""
    return line.startswith("output ")


def read_once(path):
    """From now on the file is in the system's memory."""
    with open(path, "rb") as file:
        while file.read(1 << 20):
            pass


def time_to_output(command, is_output_line, threads, folder):
    """Milliseconds to the first line of output."""
    env = {**os.environ, **engines.environment(threads), "RUNNEL_CACHE_DIR": os.path.join(folder, "runnel"),
           "POCL_CACHE_DIR": os.path.join(folder, "pocl")}
    os.makedirs(env["POCL_CACHE_DIR"], exist_ok=True)
    cores = os.sched_getaffinity(0)
    engines.use_cores(threads)  # the child's too
    start, first = time.perf_counter(), None
    try:
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if first is None and is_output_line(line):
                    first = time.perf_counter()
            messages = process.stderr.read()
    finally:
        os.sched_setaffinity(0, cores)
    if process.returncode != 0 or first is None:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {messages.strip()[-300:]}")
    return (first - start) * 1e3


def start_row(options, name, model, data, threads):
    row = {"model": name, "batch": 1, "threads": threads, "second_ms": {}, "samples_ms": {}, "refused": {}}
    with tempfile.TemporaryDirectory() as folder:
        for engine in options.engines:
            try:
                command = command_of(engine, convert.model_for(engine, model, data, options.folder), data, threads)
                first = time_to_output(*command, threads, folder)
                samples = [time_to_output(*command, threads, folder) for _ in range(STARTS)]
            except RuntimeError as error:
                row["refused"][engine] = str(error)
                continue
            row["samples_ms"][engine] = samples
            row["second_ms"][engine] = statistics.median(samples)
            if engine == "runnel":
                row["first_ms"] = first
    return row


def compare_starts(options, rows):
    print(tables.start_head(options.engines), flush=True)
    for name in options.models:
        model, data = bench_models.prepare(name, 1, options.folder, engines.ort_outputs)
        read_once(model)
        for threads in options.threads:
            rows.append(start_row(options, name, model, data, threads))
            print(tables.start_line(rows[-1], options.engines), flush=True)


def peak_kib(engine, threads, model, data, times=3):
    """The least of three: what else the process does differs a little each time."""
    peaks = []
    for _ in range(times):
        with Peer(engine, threads, model, data) as peer:
            peaks.append(peer.hello["peak_kib"])
    return min(peaks)


def fill_caches(engine, threads, model, data):
    with Peer(engine, threads, model, data) as peer:
        peer.ask("save")


def empty(engine, options):
    """The model and input of a process that does next to nothing."""
    if engine == "runnel":
        return "none", "none"
    model, data = (os.path.join(options.folder, "trivial" + ending) for ending in (".onnx", ".npy"))
    if not os.path.exists(model):
        bench_models.save_trivial(model)
        np.save(data, np.zeros((1, 1, 4, 4), np.float32))
    return convert.model_for(engine, model, data, options.folder), data


def memory_row(options, name, model, data, threads):
    row = {"model": name, "batch": 1, "threads": threads, "engines": {}, "refused": {}}
    for engine in options.engines:
        try:
            path = convert.model_for(engine, model, data, options.folder)
            fill_caches(engine, threads, *empty(engine, options))
            fill_caches(engine, threads, path, data)
            base, peak = peak_kib(engine, threads, *empty(engine, options)), peak_kib(engine, threads, path, data)
        except RuntimeError as error:
            row["refused"][engine] = str(error)
            continue
        row["engines"][engine] = {"empty_mib": base / 1024, "peak_mib": peak / 1024, "above_mib": (peak - base) / 1024}
    return row


def compare_memory(options, rows):
    print(tables.memory_head(options.engines), flush=True)
    for name in options.models:
        model, data = bench_models.prepare(name, 1, options.folder, engines.ort_outputs)
        for threads in options.threads:
            rows.append(memory_row(options, name, model, data, threads))
            print(tables.memory_line(rows[-1], options.engines), flush=True)
