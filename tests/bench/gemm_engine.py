# SPDX-License-Identifier: Apache-2.0
"""A process that multiplies matrices when told: gemm_engine.py runnel|blas THREADS. A line of JSON in, a line out."""

import ctypes as c
import json
import os
import statistics
import sys
import time

import numpy as np

import engines

F32, U8, I8, I32, F16, BF16 = 1, 2, 3, 6, 10, 16  # rnl_dtype
TYPES = {"f32": (F32, F32, F32), "bf16": (BF16, BF16, BF16), "f16": (F16, F16, F16), "i8": (U8, I8, I32)}
BYTES = {F32: 4, U8: 1, I8: 1, I32: 4, F16: 2, BF16: 2}


class Desc(c.Structure):
    """rnl_gemm_desc."""

    _fields_ = ([("struct_size", c.c_size_t), ("order", c.c_int), ("transpose_a", c.c_bool), ("transpose_b", c.c_bool)]
                + [(name, c.c_int64) for name in ("m", "n", "k", "lda", "ldb", "ldc", "ld_residual")]
                + [(name, c.c_int) for name in ("a_type", "b_type", "c_type")]
                + [("alpha", c.c_float), ("beta", c.c_float), ("bias", c.c_int), ("residual", c.c_bool),
                   ("activation", c.c_int)]
                + [(name, c.c_int64) for name in ("batch", "stride_a", "stride_b", "stride_c", "stride_residual")]
                + [(name, c.c_int32) for name in ("a_zero", "b_zero", "c_zero")]
                + [("scale", c.c_float), ("implementation", c.c_char_p), ("accuracy", c.c_int)])


class Operands(c.Structure):
    """rnl_gemm_operands."""

    _fields_ = ([("struct_size", c.c_size_t)] + [(name, c.c_void_p) for name in "abc"]
                + [(name + "_offset", c.c_int64) for name in "abc"]
                + [(name, c.c_void_p) for name in ("packed_a", "packed_b", "bias", "residual")]
                + [("bias_offset", c.c_int64), ("residual_offset", c.c_int64), ("scales", c.c_void_p),
                   ("scales_offset", c.c_int64)]
                + [(name, c.c_void_p) for name in ("a_offsets", "b_offsets", "c_offsets", "residual_offsets", "alpha",
                                                   "beta")])


class Runnel:
    def __init__(self, threads):
        sys.path.insert(0, engines.SUPPORT)
        import runnel

        self.library = runnel.Library()
        self.device = runnel.Device(self.library)
        self.rt, self.check = self.library.rt, self.library.check
        self.stream = c.c_void_p()
        self.check(self.rt.rnl_stream_create(self.device.handle, c.byref(self.stream)))
        self.version = f"this tree, {threads} threads"
        self.enqueue = self.rt.rnl_stream_gemm

    def buffer(self, dtype, elements):
        """Filled with values around 1."""
        handle, count = c.c_void_p(), elements * BYTES[dtype]
        values = np.random.default_rng(1).standard_normal(elements, dtype=np.float32)
        data = {F32: lambda: values, F16: lambda: values.astype(np.float16),
                BF16: lambda: (values.view(np.uint32) >> 16).astype(np.uint16)}.get(
                    dtype, lambda: (values * 40).astype(np.int32 if dtype == I32 else np.int8))()
        data = np.ascontiguousarray(data)
        self.check(self.rt.rnl_buffer_create(self.device.handle, 0, c.c_size_t(count), c.byref(handle)))
        self.check(self.rt.rnl_stream_write(self.stream, handle, c.c_size_t(0), data.ctypes.data_as(c.c_void_p),
                                            c.c_size_t(count)))
        self.finish()
        return handle

    def make(self, m, n, k, type="f32", packed=False, implementation=None, normwise=False):
        a_type, b_type, c_type = TYPES[type]
        desc = Desc(struct_size=c.sizeof(Desc), m=m, n=n, k=k, a_type=a_type, b_type=b_type, c_type=c_type, alpha=1,
                    implementation=implementation.encode() if implementation else None, accuracy=int(normwise))
        gemm = c.c_void_p()
        self.check(self.rt.rnl_gemm_create(self.device.handle, c.byref(desc), c.byref(gemm)))
        buffers = self.buffer(a_type, m * k), self.buffer(b_type, k * n), self.buffer(c_type, m * n)
        operands = Operands(struct_size=c.sizeof(Operands), a=buffers[0], b=buffers[1], c=buffers[2])
        form = c.c_void_p()
        if packed:
            self.check(self.rt.rnl_stream_gemm_pack(self.stream, gemm, 1, c.byref(operands), c.byref(form)))
            operands.packed_b = form
        return {"gemm": gemm, "operands": operands, "at": c.byref(operands), "buffers": buffers, "packed": form}

    def start(self, it):
        status = self.enqueue(self.stream, it["gemm"], it["at"])
        if status:
            self.check(status)

    def finish(self):
        self.check(self.rt.rnl_stream_synchronize(self.stream))

    def forget(self, it):
        self.finish()
        self.rt.rnl_packed_release(it["packed"])
        self.rt.rnl_gemm_release(it["gemm"])
        for handle in it["buffers"]:
            self.rt.rnl_buffer_release(handle)


class Blas:
    """numpy's; its calls wait."""

    def __init__(self, threads):
        config = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        self.version = f"{config['name']} {config['version']}, numpy {np.__version__}, {threads} threads"

    def make(self, m, n, k):
        generator = np.random.default_rng(1)
        return (generator.standard_normal((m, k), dtype=np.float32), generator.standard_normal((k, n), dtype=np.float32),
                np.empty((m, n), np.float32))

    def start(self, it):
        np.matmul(it[0], it[1], out=it[2])

    def finish(self):
        pass

    def forget(self, it):
        pass


def run(engine, it, count):
    """Seconds of `count` products, back to back with one finish."""
    begin = time.perf_counter()
    for _ in range(count):
        engine.start(it)
    engine.finish()
    return time.perf_counter() - begin


def sample(engine, it, seconds):
    """As many products as take that long; seconds of one."""
    count = max(1, int(seconds / it["one"]))
    return run(engine, it["it"], count) / count


def warm(engine, it, seconds):
    end = time.perf_counter() + seconds
    run(engine, it["it"], 2)
    it["one"] = run(engine, it["it"], 1)
    while time.perf_counter() < end:
        count = max(1, int(0.02 / it["one"]))
        it["one"] = run(engine, it["it"], count) / count


def serve(engine):
    made = {}
    for line in sys.stdin:
        command = json.loads(line)
        do, what = command.pop("do"), command.pop("what", None)
        answer = {"done": True}
        if do == "make":
            what = len(made)
            made[what] = {"it": engine.make(**command)}
            answer = {"made": what}
        elif do == "warm":
            warm(engine, made[what], command["seconds"])
        elif do == "sample":
            answer = {"seconds": sample(engine, made[what], command["seconds"])}
        elif do == "calls":
            answer = {"seconds": statistics.median(run(engine, made[what]["it"], 1) for _ in range(command["count"]))}
        elif do == "forget":
            engine.forget(made[what].pop("it"))
        print(json.dumps(answer), flush=True)


def main():
    name, threads = sys.argv[1], int(sys.argv[2])
    engines.use_cores(threads)
    try:
        engine = Runnel(threads) if name == "runnel" else Blas(threads)
        print(json.dumps({"version": engine.version}), flush=True)
        serve(engine)
    except Exception as error:  # told to the one who asks
        print(json.dumps({"error": f"{name}: {error}"}), flush=True)
    # Drivers have their own ideas of an orderly end; nothing is left to be saved.
    os._exit(0)


if __name__ == "__main__":
    main()
