#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether an item's result has the same bits alone and in batches, with `--deterministic` and without.

    tests/bench/same_bits.py build/release/runnel MODEL INPUT 3x224x224 [--device gpu] [--batches 1,2,3,7,8,16]

INPUT is the model's float32 input, whose first dimension counts items, and 3x224x224 the shape of one. Needs nothing but
Python. Ends with 1 when the bits differ with `--deterministic`.
"""

import argparse
import array
import ast
import os
import random
import subprocess
import sys
import tempfile

ITEMS = 16


def write_npy(path, shape, values):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values)


def read_npy(path):
    with open(path, "rb") as file:
        data = file.read()
    wide = data[6] > 1
    start = (12 if wide else 10) + int.from_bytes(data[8:12 if wide else 10], "little")
    return ast.literal_eval(data[12 if wide else 10:start].decode())["shape"], data[start:]


def run(options, items, batch, folder, deterministic):
    """{(output, item): its bytes} of a batch of these items."""
    path = os.path.join(folder, "in.npy")
    write_npy(path, [len(batch), *options.shape], b"".join(items[i] for i in batch))
    command = [options.runnel, "run", options.model, "-i", f"{options.input}={path}", "-o", os.path.join(folder, "out")]
    command += ["--device", options.device] if options.device else []
    command += ["--deterministic"] if deterministic else []
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    results = {}
    for name in os.listdir(os.path.join(folder, "out")):
        shape, data = read_npy(os.path.join(folder, "out", name))
        if not shape or shape[0] != len(batch):
            sys.exit(f"{name}: the first of its dimensions {shape} does not count {len(batch)} items")
        size = len(data) // len(batch)
        for at, item in enumerate(batch):
            results[name, item] = data[at * size:(at + 1) * size]
    return results


def compare(options, deterministic):
    random.seed(7)
    size = 1
    for side in options.shape:
        size *= side
    items = [array.array("f", (random.uniform(-1, 1) for _ in range(size))).tobytes() for _ in range(ITEMS)]
    first, differ, total = {}, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number, count in enumerate(options.batches):
            batch = random.sample(range(ITEMS), count) if number else [0]
            batches = [[i] for i in range(ITEMS)] if count == 1 else [batch]
            for one in batches:
                for key, data in run(options, items, one, folder, deterministic).items():
                    total += 1
                    differ += first.setdefault(key, data) != data
    print(f"{'deterministic' if deterministic else 'usual'}: {differ} of {total} results differ", flush=True)
    return differ


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runnel")
    parser.add_argument("model")
    parser.add_argument("input")
    parser.add_argument("shape", type=lambda text: [int(side) for side in text.split("x")])
    parser.add_argument("--device")
    parser.add_argument("--batches", default="1,2,3,7,8,16", type=lambda text: [int(one) for one in text.split(",")])
    options = parser.parse_args()
    compare(options, False)
    return 1 if compare(options, True) else 0


if __name__ == "__main__":
    sys.exit(main())
