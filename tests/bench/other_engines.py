# SPDX-License-Identifier: Apache-2.0
"""Engines that read the model as it is (OpenVINO, torch), or what convert.py made of it (MNN, ncnn).

Each computes in float32 unless it is told otherwise; what the model stores in 8 bits stays so.
"""

import numpy as np


class OpenVino:
    """`free`: in the precision that OpenVINO chooses on this machine."""

    def __init__(self, threads, free=False):
        import openvino

        self.version = openvino.__version__.split("-")[0]
        self.core = openvino.Core()
        self.options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
        if not free:
            self.options["INFERENCE_PRECISION_HINT"] = "f32"

    def open(self, path, array):
        model = self.core.read_model(path)
        model.reshape(list(array.shape))
        self.request = self.core.compile_model(model, "CPU", self.options).create_infer_request()
        self.feed = {0: array}

    def run(self):
        """The outputs stay in the request's memory."""
        return self.request.infer(self.feed, share_inputs=True, share_outputs=True)

    def results(self):
        return [np.array(value) for value in self.run().to_tuple()]


class Mnn:
    TYPES = {"float32": "Halide_Type_Float", "int64": "Halide_Type_Int", "int32": "Halide_Type_Int"}

    def __init__(self, threads):
        import MNN

        self.module, self.threads, self.version = MNN, threads, MNN.version()

    def open(self, path, array):
        module = self.module
        self.net = module.Interpreter(path)
        self.session = self.net.createSession({"backend": "CPU", "numThread": self.threads, "precision": "high"})
        self.input = self.net.getSessionInput(self.session)
        self.net.resizeTensor(self.input, tuple(array.shape))
        self.net.resizeSession(self.session)
        if array.dtype == np.int64:
            array = array.astype(np.int32)
        kind = getattr(module, self.TYPES[array.dtype.name])
        self.array = np.ascontiguousarray(array)
        self.given = module.Tensor(tuple(array.shape), kind, self.array, module.Tensor_DimensionType_Caffe)
        self.outputs = list(self.net.getSessionOutputAll(self.session).values())
        self.taken = [module.Tensor(tensor.getShape(), tensor.getDataType(), np.zeros(tensor.getShape(), np.float32),
                                    module.Tensor_DimensionType_Caffe) for tensor in self.outputs]

    def run(self):
        self.input.copyFrom(self.given)
        self.net.runSession(self.session)
        for output, taken in zip(self.outputs, self.taken):
            output.copyToHostTensor(taken)

    def results(self):
        self.run()
        return [np.array(taken.getNumpyData()).reshape(taken.getShape()) for taken in self.taken]


class Ncnn:
    """It knows no batch: one after the other, as its users do."""

    def __init__(self, threads):
        import ncnn

        self.module, self.version = ncnn, ncnn.__version__
        self.net = ncnn.Net()
        options = self.net.opt
        options.num_threads = threads
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        options.use_bf16_storage = False

    def open(self, path, array):
        self.net.load_param(path)
        self.net.load_model(path.removesuffix(".param") + ".bin")
        if array.dtype == np.int64:
            array = array.astype(np.int32)
        # Clones: a layer that works in place would write to, and free, memory that is not ncnn's.
        self.items = [self.module.Mat(np.ascontiguousarray(item)).clone() for item in array]
        self.inputs, self.outputs = list(self.net.input_names()), list(self.net.output_names())

    def run_item(self, item):
        extractor = self.net.create_extractor()
        extractor.input(self.inputs[0], item)
        found = []
        for name in self.outputs:
            status, value = extractor.extract(name)
            if status:
                raise RuntimeError(f"ncnn gives no {name}: {status}")
            found.append(value)
        return found

    def run(self):
        for item in self.items:
            self.run_item(item)

    def results(self):
        rows = [[np.array(value) for value in self.run_item(item)] for item in self.items]
        return [np.stack(values) for values in zip(*rows)]


class Torch:
    """The model's nodes as torch's modules (onnx2torch), traced, frozen and laid out for oneDNN."""

    def __init__(self, threads):
        import onnx2torch
        import torch

        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        self.module, self.convert, self.version = torch, onnx2torch.convert, torch.__version__.split("+")[0]

    def open(self, path, array):
        torch = self.module
        self.given = torch.from_numpy(np.ascontiguousarray(array))
        with torch.inference_mode():
            net = torch.jit.freeze(torch.jit.trace(self.convert(path).eval(), self.given))
            self.net = torch.jit.optimize_for_inference(net)

    def run(self):
        with self.module.inference_mode():
            return self.net(self.given)

    def results(self):
        found = self.run()
        return [value.numpy() for value in (found if isinstance(found, (list, tuple)) else [found])]


def make(name, threads):
    if name == "openvino-free":
        return OpenVino(threads, free=True)
    return {"openvino": OpenVino, "mnn": Mnn, "ncnn": Ncnn, "torch": Torch}[name](threads)
