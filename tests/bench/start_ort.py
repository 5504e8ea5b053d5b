# SPDX-License-Identifier: Apache-2.0
"""The script that onnxruntime's user would write: start_ort.py MODEL INPUT THREADS. Prints a line an output."""

import sys

import numpy as np
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(sys.argv[3])
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
results = session.run(None, {session.get_inputs()[0].name: np.load(sys.argv[2])})
for info, array in zip(session.get_outputs(), results):
    print(f"output {info.name}: {array.dtype} {list(array.shape)} min {array.min()} max {array.max()}", flush=True)
