# SPDX-License-Identifier: Apache-2.0
"""A process that holds one engine and one model and measures when told: worker.py ENGINE THREADS MODEL INPUT OUTPUT.

Prints a line of JSON when ready and one for each command it reads: "warm SECONDS", "sample COUNT MILLISECONDS", "save" (for
later processes, the last one that it does), "quit".
"""

import json
import os
import sys
import time

import numpy as np

import engines

LIMIT_S = 1.0


def own_output():
    """What a library prints to standard output goes to standard error from now on."""
    channel = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    return channel


def answer(channel, **values):
    print(json.dumps(values), file=channel, flush=True)


def peak_kib():
    """Not ru_maxrss: that begins with what the parent had."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def run_for(engine, seconds):
    """Runs for at least that long: (runs, seconds that they took)."""
    runs, start = 0, time.perf_counter()
    while True:
        engine.run()
        runs += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return runs, elapsed


def sample(engine, count, milliseconds):
    """Fewer than `count` where they take long."""
    rows, total = [], 0.0
    while len(rows) < count and total < LIMIT_S:
        runs, elapsed = run_for(engine, milliseconds * 1e-3)
        rows.append(elapsed / runs)
        total += elapsed
    return rows


def serve(engine, channel):
    for line in sys.stdin:
        command, *numbers = line.split()
        if command == "warm":
            run_for(engine, float(numbers[0]))
            answer(channel, warm=True)
        elif command == "sample":
            answer(channel, seconds=sample(engine, int(numbers[0]), float(numbers[1])))
        elif command == "save":
            getattr(engine, "save", lambda: None)()
            answer(channel, saved=True)
        else:
            break


def main():
    name, threads, model, data, output = sys.argv[1:]
    channel = own_output()
    cores = engines.use_cores(int(threads))
    engine = engines.make(name, int(threads))
    if model == "none":
        engine.launch_trivial()
    else:
        engine.open(model, np.load(data))
        np.savez(output, *engine.results())
    answer(channel, engine=name, version=engine.version, cores=cores, pid=os.getpid(), peak_kib=peak_kib())
    serve(engine, channel)
    # Drivers have their own ideas of an orderly end; nothing is left to be saved.
    os._exit(0)


if __name__ == "__main__":
    main()
