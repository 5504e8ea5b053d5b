#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether two shares of a CPU device disturb each other: shares.py MODEL [MODEL] [--device SPEC] [--rounds N].

Model A runs on share SPEC/2.0 and model B on SPEC/2.1: each alone, then both at once; in one process with two sessions in
two threads, then in two processes. Each latency is set against the same model's alone in a process that may use half of
the cores only. Rounds are short and many, since machines have slow seconds: printed are the median latency of the rounds,
and the median of what a latency is of the same round's alone on half the cores.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
ALONE = "half the cores, alone"
NUMPY_TYPES = {"float": np.float32, "int64": np.int64, "int32": np.int32, "uint8": np.uint8, "bool": np.bool_}


def feed(session):
    rng = np.random.default_rng(1)
    made = {}
    for each in session.get_inputs():
        dtype = NUMPY_TYPES[each.type[len("tensor("):-1]]
        shape = [n if isinstance(n, int) and n > 0 else 1 if i == 0 else 64 for i, n in enumerate(each.shape)]
        made[each.name] = (rng.random(shape) * 2).astype(dtype)
    return made


class Runner:
    """One session that is run for a while when told."""

    def __init__(self, model, spec, alone):
        os.environ.setdefault("RUNNEL_LIBRARY_DIR", os.environ.get("RUNNEL_BUILD", os.path.join(ROOT, "build", "release")))
        import runnel  # pylint: disable=import-outside-toplevel
        self.device = runnel.Device(spec, alone=alone)
        self.session = runnel.Session(model, device=self.device)
        self.feed = feed(self.session)
        self.run_for(0.3)

    def run_for(self, seconds):
        self.times, end = [], time.perf_counter() + seconds
        while True:
            start = time.perf_counter()
            self.session.run(None, self.feed)
            now = time.perf_counter()
            self.times.append((now - start) * 1e3)
            if now >= end:
                return


def serve():
    """worker MODEL SPEC [MODEL SPEC]; a line "0 1.5" runs the first for 1.5 s, "01 1.5" both at once."""
    given = sys.argv[2:]
    runners = [Runner(model, spec, len(given) == 2) for model, spec in zip(given[::2], given[1::2])]
    print("ready", flush=True)
    for line in sys.stdin:
        which, seconds = line.split()
        chosen = [runners[int(digit)] for digit in which]
        threads = [threading.Thread(target=each.run_for, args=(float(seconds),)) for each in chosen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(json.dumps([statistics.median(each.times) for each in chosen]), flush=True)


class Worker:
    def __init__(self, *arguments, cores=None):
        command = [sys.executable, os.path.abspath(__file__), "worker", *arguments]
        limit = (lambda: os.sched_setaffinity(0, cores)) if cores else None
        # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=limit)
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"{' '.join(command)} did not start")

    def begin(self, which, seconds):
        print(which, seconds, file=self.process.stdin, flush=True)

    def end(self):
        return json.loads(self.process.stdout.readline())

    def measure(self, which, seconds):
        self.begin(which, seconds)
        return self.end()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def both(workers, seconds):
    for worker in workers:
        worker.begin("0", seconds)
    return [worker.end()[0] for worker in workers]


def measure(options, models):
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    spec = options.device
    halves = [Worker(models[k], spec, cores=set(cores[k * half:(k + 1) * half])) for k in (0, 1)]
    names = [f"{spec}/2.{k}" if options.numbered else f"{spec}/2" for k in (0, 1)]
    s = options.seconds
    values, ratios = {}, {}

    def round_of(**rows):
        alone = [halves[k].measure("0", s)[0] for k in (0, 1)]
        for name, measured in {ALONE: lambda: alone, **rows}.items():
            found = measured()
            values.setdefault(name, []).append(found)
            ratios.setdefault(name, []).append([found[k] / alone[k] for k in (0, 1)])

    # One after the other, since shares without a number are those that no other process has.
    one = Worker(models[0], names[0], models[1], names[1])
    for _ in range(options.rounds):
        round_of(**{"one process, alone": lambda: [one.measure(which, s)[0] for which in "01"],
                    "one process, both": lambda: one.measure("01", s)})
    one.close()
    two = [Worker(models[k], names[k]) for k in (0, 1)]
    for _ in range(options.rounds):
        round_of(**{"half the cores each, both": lambda: both(halves, s),
                    "two processes, alone": lambda: [each.measure("0", s)[0] for each in two],
                    "two processes, both": lambda: both(two, s)})
    for worker in [*halves, *two]:
        worker.close()
    return values, ratios


def main():
    if sys.argv[1:2] == ["worker"]:
        serve()
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--device", default="cpu", metavar="SPEC")
    parser.add_argument("--rounds", type=int, default=10, metavar="N")
    parser.add_argument("--seconds", type=float, default=0.12, metavar="S", help="of one figure in a round")
    parser.add_argument("--any", dest="numbered", action="store_false", help="SPEC/2, one that is free, not /2.K")
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("halves need two cores")
    models = (options.models * 2)[:2]
    values, ratios = measure(options, models)
    print(f"{'median ms, and times ' + ALONE:44}{'model A':>18}{'model B':>18}")
    for name, rows in values.items():
        columns = [(statistics.median(row[k] for row in rows), statistics.median(row[k] for row in ratios[name]))
                   for k in (0, 1)]
        print(f"{name:44}" + "".join(f"{ms:10.3f} ({ratio:4.2f})" for ms, ratio in columns))


if __name__ == "__main__":
    main()
