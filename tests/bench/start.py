# SPDX-License-Identifier: Apache-2.0
"""The script that an engine's user would write: start.py ENGINE MODEL INPUT THREADS. Prints a line an output."""

import sys

import numpy as np

import engines

name, model, data, threads = sys.argv[1:]
engine = engines.make(name, int(threads))
engine.open(model, np.load(data))
for index, array in enumerate(engine.results()):
    print(f"output {index}: {array.dtype} {list(array.shape)} min {array.min()} max {array.max()}", flush=True)
