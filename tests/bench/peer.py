# SPDX-License-Identifier: Apache-2.0
"""Processes that take turns: while one is measured, the others are stopped."""

import json
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np

import engines

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")


class Peer:
    """A worker process, stopped except inside `awake`."""

    def __init__(self, engine, threads, model, data):
        self.folder = tempfile.TemporaryDirectory()
        self.output = os.path.join(self.folder.name, "outputs.npz")
        self.messages = os.path.join(self.folder.name, "messages")
        with open(self.messages, "wb") as messages:
            self.process = subprocess.Popen(
                [sys.executable, WORKER, engine, str(threads), model, data, self.output], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=messages, text=True, env={**os.environ, **engines.environment(threads)})
        self.engine = engine
        try:
            self.hello = self._read()
        except BaseException:
            self.close()
            raise
        self.process.send_signal(signal.SIGSTOP)

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self.engine} ended with {self.process.wait()}: {self._last_message()}")
        return json.loads(line)

    def _last_message(self):
        with open(self.messages, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return lines[-1][:200] if lines else "it said nothing"

    def ask(self, *command):
        """Lets the process go on for one command."""
        self.process.send_signal(signal.SIGCONT)
        try:
            self.process.stdin.write(" ".join(map(str, command)) + "\n")
            self.process.stdin.flush()
            return self._read()
        finally:
            self.process.send_signal(signal.SIGSTOP)

    def measure(self, warm, count, milliseconds):
        """Seconds of one run, `count` samples."""
        self.ask("warm", warm)
        return self.ask("sample", count, milliseconds)["seconds"]

    def results(self):
        with np.load(self.output) as arrays:
            return [arrays[key] for key in arrays.files]

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def part_of_largest(left, right):
    """The largest difference, as a part of the largest expected value."""
    parts = [np.abs(a.astype(np.float64) - b).max() / np.abs(b).max() for a, b in zip(left, right, strict=True) if b.size]
    return float(np.nan_to_num(max(parts, default=0.0), nan=np.inf))


def same_results(left, right):
    """The largest difference, as a part of what |difference| <= 1e-4 + 1e-3 * |expected| allows."""
    worst = 0.0
    for a, b in zip(left, right, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise ValueError(f"outputs {a.dtype} {a.shape} and {b.dtype} {b.shape}")
        a, b = a.astype(np.float64), b.astype(np.float64)
        if a.size:
            parts = np.where(a == b, 0, np.abs(a - b) / (1e-4 + 1e-3 * np.abs(b)))
            worst = max(worst, float(np.max(np.nan_to_num(parts, nan=np.inf))))
    return worst
