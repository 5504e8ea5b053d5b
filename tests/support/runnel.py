# SPDX-License-Identifier: Apache-2.0
"""The public C API through ctypes, as far as the tests need it: numpy arrays in and out."""

import ctypes as c
import os
import zlib

import ml_dtypes
import numpy as np

MAX_RANK = 8
EACH = int(os.environ.get("RUNNEL_TEST_EACH", "1"))  # of many cases one in so many runs


def chosen(name):
    """Whether a case runs: as if by chance, and the same in each run."""
    return zlib.crc32(name.encode()) % EACH == 0


# ONNX's codes. Elements of 4 and 2 bits take a byte each, here as in the library.
DTYPES = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
    10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64, 16: ml_dtypes.bfloat16,
    17: ml_dtypes.float8_e4m3fn, 18: ml_dtypes.float8_e4m3fnuz, 19: ml_dtypes.float8_e5m2,
    20: ml_dtypes.float8_e5m2fnuz, 21: ml_dtypes.uint4, 22: ml_dtypes.int4, 23: ml_dtypes.float4_e2m1fn,
    24: ml_dtypes.float8_e8m0fnu, 25: ml_dtypes.uint2, 26: ml_dtypes.int2,
}
CODES = {np.dtype(t): code for code, t in DTYPES.items()}


class Failure(Exception):
    """A call's status name and message."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("native_code", c.c_int32), ("length", c.c_uint32),
                ("lines_left_out", c.c_uint32), ("message", c.c_char * 4096)]


class ValueInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("dtype", c.c_int), ("rank", c.c_size_t), ("shape", c.c_int64 * MAX_RANK),
                ("dim_names", c.c_char_p * MAX_RANK)]


class Tensor(c.Structure):
    _fields_ = [("name", c.c_char_p), ("dtype", c.c_int), ("rank", c.c_size_t), ("shape", c.c_int64 * MAX_RANK),
                ("data", c.c_void_p), ("buffer", c.c_void_p), ("offset_bytes", c.c_size_t), ("size_bytes", c.c_size_t)]


class ModelOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("plan_cache_bytes", c.c_size_t), ("progress", c.c_void_p),
                ("progress_user", c.c_void_p), ("precision", c.c_int), ("deterministic", c.c_bool),
                ("weight_budget_bytes", c.c_size_t)]


class ModelStats(c.Structure):
    _fields_ = [("weight_bytes", c.c_size_t), ("plan_count", c.c_size_t), ("plan_bytes", c.c_size_t),
                ("plans_built", c.c_uint64), ("plans_evicted", c.c_uint64), ("last_plan_ns", c.c_uint64),
                ("program_count", c.c_size_t)]


class SessionStats(c.Structure):
    _fields_ = [("arena_bytes", c.c_size_t), ("arena_peak_bytes", c.c_size_t), ("step_count", c.c_size_t),
                ("weight_ring_bytes", c.c_size_t)]


class DeviceStats(c.Structure):
    _fields_ = [("pool_in_use_bytes", c.c_size_t), ("pool_reserved_bytes", c.c_size_t),
                ("pool_peak_bytes", c.c_size_t), ("pool_budget_bytes", c.c_size_t),
                ("programs_compiled", c.c_uint64), ("programs_loaded", c.c_uint64), ("kernels_launched", c.c_uint64)]


class Library:
    """librunnel.so of the build folder named by RUNNEL_BUILD (default build/release)."""

    def __init__(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        build = os.environ.get("RUNNEL_BUILD", os.path.join(root, "build", "release"))
        self.lib = c.CDLL(os.path.join(build, "librunnel.so"))
        self.rt = c.CDLL(os.path.join(build, "librunnel-rt.so"))
        self.rt.rnl_last_error.restype = c.POINTER(Error)
        self.rt.rnl_status_name.restype = c.c_char_p
        for name in ("inputs", "outputs"):
            getattr(self.lib, f"rnl_graph_{name}").restype = c.POINTER(ValueInfo)

    def check(self, status):
        if status != 0:
            error = self.rt.rnl_last_error().contents
            raise Failure(self.rt.rnl_status_name(status).decode(), error.message.decode(errors="replace"))


class Device:
    def __init__(self, library, spec=None):
        self.library = library
        self.handle = c.c_void_p()
        spec = spec if spec is not None else os.environ.get("RUNNEL_TEST_DEVICE")
        library.check(library.rt.rnl_device_open(spec.encode() if spec else None, None, c.byref(self.handle)))

    def stats(self):
        stats = DeviceStats()
        self.library.rt.rnl_device_get_stats(self.handle, c.byref(stats))
        return stats

    def close(self):
        self.library.rt.rnl_device_release(self.handle)
        self.handle = c.c_void_p()


class Session:
    """A graph, its model on a device, and one session."""

    def __init__(self, device, path_or_bytes, plan_cache_bytes=0, precision=0, weight_budget_bytes=0):
        self.library, self.lib = device.library, device.library.lib
        self.graph, self.model, self.session = c.c_void_p(), c.c_void_p(), c.c_void_p()
        try:
            if isinstance(path_or_bytes, bytes):
                self.memory = path_or_bytes  # must outlive the graph
                self.check(self.lib.rnl_graph_load_memory(self.memory, c.c_size_t(len(self.memory)),
                                                          c.byref(self.graph)))
            else:
                self.check(self.lib.rnl_graph_load(os.fsencode(path_or_bytes), c.byref(self.graph)))
            options = ModelOptions(c.sizeof(ModelOptions), plan_cache_bytes, None, None, precision, False,
                                   weight_budget_bytes)
            self.check(self.lib.rnl_model_open(self.graph, device.handle, c.byref(options), c.byref(self.model)))
            self.check(self.lib.rnl_session_create(self.model, c.byref(self.session)))
        except Failure:
            self.close()
            raise

    def check(self, status):
        self.library.check(status)

    def infos(self, which):
        count = c.c_size_t()
        rows = getattr(self.lib, f"rnl_graph_{which}")(self.graph, c.byref(count))
        return [rows[i] for i in range(count.value)]

    def model_stats(self):
        stats = ModelStats()
        self.lib.rnl_model_get_stats(self.model, c.byref(stats))
        return stats

    def ring_bytes(self):
        stats = SessionStats()
        self.lib.rnl_session_get_stats(self.session, c.byref(stats))
        return stats.weight_ring_bytes

    def run(self, inputs, names=None):
        """inputs: {name: array}; returns {output name: array}, copies."""
        arrays = {name: np.ascontiguousarray(a).reshape(np.shape(a)) for name, a in inputs.items()}
        names = names if names is not None else [info.name.decode() for info in self.infos("outputs")]
        given = (Tensor * max(1, len(arrays)))()
        for slot, (name, array) in zip(given, arrays.items()):
            slot.name, slot.dtype, slot.rank = name.encode(), CODES[array.dtype], array.ndim
            slot.shape[: array.ndim] = array.shape
            slot.data, slot.size_bytes = array.ctypes.data, array.nbytes
        wanted = (Tensor * max(1, len(names)))()
        for slot, name in zip(wanted, names):
            slot.name = name.encode()
        self.check(self.lib.rnl_session_run(self.session, given, c.c_size_t(len(arrays)), wanted,
                                            c.c_size_t(len(names))))
        return {name: self._copy(slot) for slot, name in zip(wanted, names)}

    @staticmethod
    def _copy(slot):
        dtype, shape = np.dtype(DTYPES[slot.dtype]), tuple(slot.shape[: slot.rank])
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return np.frombuffer(c.string_at(slot.data, size), dtype).reshape(shape).copy()

    def close(self):
        self.lib.rnl_session_release(self.session)
        self.lib.rnl_model_release(self.model)
        self.lib.rnl_graph_release(self.graph)
        self.session = self.model = self.graph = c.c_void_p()
