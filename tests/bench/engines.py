# SPDX-License-Identifier: Apache-2.0
"""One model on one engine, ready to run again and again: what a measured process imports, and nothing else."""

import ctypes as c
import os
import sys

import numpy as np

SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")
# Name -> what PyPI calls it. What OpenVINO chooses itself is a case of its own: bfloat16 where the CPU has it.
PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "mnn": "MNN", "ncnn": "ncnn", "torch": "torch"}
NAMES = ("runnel", *PACKAGES)


class OnnxRuntime:
    def __init__(self, threads):
        import onnxruntime

        self.module = onnxruntime
        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads = threads
        self.options.inter_op_num_threads = 1
        self.options.log_severity_level = 3
        # As its documentation asks for where results of 8-bit models must be right on processors without VNNI: else it adds
        # products in 16 bits, which saturate. Changes nothing elsewhere.
        self.options.add_session_config_entry("session.x64quantprecision", "1")
        self.version = onnxruntime.__version__
        self.threads = threads

    def open(self, path, array):
        self.session = self.module.InferenceSession(path, self.options, providers=["CPUExecutionProvider"])
        self.feed = {self.session.get_inputs()[0].name: array}

    def run(self):
        return self.session.run(None, self.feed)

    results = run


class Runnel:
    """pocl is told its number of threads by POCL_MAX_PTHREAD_COUNT, before it is loaded."""

    def __init__(self, threads, precision=0):
        sys.path.insert(0, SUPPORT)
        import runnel

        self.precision = precision

        self.binding = runnel
        self.library = runnel.Library()
        self.device = runnel.Device(self.library)
        self.version = "this tree"
        self.threads = threads
        self.session = None

    def open(self, path, array):
        binding = self.binding
        self.session = binding.Session(self.device, path, precision=self.precision)
        self.array = np.ascontiguousarray(array)
        self.inputs = (binding.Tensor * 1)()
        tensor = self.inputs[0]
        tensor.dtype, tensor.rank = binding.CODES[self.array.dtype], self.array.ndim
        tensor.shape[: self.array.ndim] = self.array.shape
        tensor.data, tensor.size_bytes = self.array.ctypes.data, self.array.nbytes
        self.names = [info.name for info in self.session.infos("outputs")]
        self.outputs = (binding.Tensor * len(self.names))()
        for slot, name in zip(self.outputs, self.names):
            slot.name = name
        self.call = self.session.lib.rnl_session_run
        self.arguments = (self.session.session, self.inputs, c.c_size_t(1), self.outputs, c.c_size_t(len(self.names)))

    def run(self):
        """The outputs stay in the session's memory, as a C program finds them."""
        status = self.call(*self.arguments)
        if status:
            self.library.check(status)
        return None

    def results(self):
        self.run()
        return [self.session._copy(slot) for slot in self.outputs]

    def save(self):
        """What was compiled, for the next process: it is saved when the device is released."""
        if self.session:
            self.session.close()
        self.device.close()

    def launch_trivial(self):
        """A context and one kernel of one work-item."""
        kernel, stream = c.c_void_p(), c.c_void_p()
        rt, check = self.library.rt, self.library.check
        source = b"kernel void trivial(int x) { (void)x; }"
        check(rt.rnl_stream_create(self.device.handle, c.byref(stream)))
        check(rt.rnl_kernel_create(self.device.handle, source, None, b"trivial", c.byref(kernel)))

        class Range(c.Structure):
            _fields_ = [("dimensions", c.c_uint32), ("global_", c.c_size_t * 3), ("local", c.c_size_t * 3)]

        class Argument(c.Structure):
            _fields_ = [("kind", c.c_int), ("size_bytes", c.c_size_t), ("value", c.c_void_p), ("buffer", c.c_void_p)]

        number = c.c_int32(1)
        one = (c.c_size_t * 3)(1, 1, 1)
        argument = Argument(0, 4, c.cast(c.byref(number), c.c_void_p), None)
        check(rt.rnl_stream_launch(stream, kernel, c.byref(Range(1, one, one)), c.byref(argument), c.c_size_t(1)))
        check(rt.rnl_stream_synchronize(stream))
        rt.rnl_kernel_release(kernel)
        rt.rnl_stream_release(stream)


def make(name, threads):
    if name == "runnel":
        return Runnel(threads)
    if name == "runnel-bf16":
        return Runnel(threads, precision=2)
    if name == "onnxruntime":
        return OnnxRuntime(threads)
    import other_engines

    return other_engines.make(name, threads)


def ort_outputs(path, array):
    """What is expected, and for checking copies of models."""
    engine = make("onnxruntime", 1)
    engine.open(path, array)
    return engine.run()


def environment(threads):
    """For a process that holds an engine: as many threads for each, on as many cores."""
    return {"POCL_MAX_PTHREAD_COUNT": str(threads), "OMP_NUM_THREADS": str(threads)}


def use_cores(threads):
    """Keeps this process on the first `threads` cores of those it may use; returns them."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cores)
    return cores
