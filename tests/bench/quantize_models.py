# SPDX-License-Identifier: Apache-2.0
"""8-bit copies of models, by onnxruntime's tools with settings that suit x86: unsigned activations, signed weights."""

import os

import onnx
from onnx import version_converter
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process


OPSET = 17  # scales of channels came with 13


class Inputs(quantization.CalibrationDataReader):
    def __init__(self, name, arrays):
        self.rest = iter([{name: array} for array in arrays])

    def get_next(self):
        return next(self.rest, None)


def static(path, output, name, arrays):
    """QuantizeLinear and DequantizeLinear around each operator, ranges from `arrays`, a scale for each channel of weights."""
    folded = output + ".folded"
    try:
        model = onnx.load(path)
        onnx.save(version_converter.convert_version(model, max(model.opset_import[0].version, OPSET)), folded)
        quant_pre_process(folded, folded, skip_symbolic_shape=True)  # folds BatchNormalization
        fine = [node.name for node in onnx.load(folded).graph.node if node.op_type == "Softmax"]  # probabilities are small
        quantization.quantize_static(folded, output, Inputs(name, arrays), per_channel=True, nodes_to_exclude=fine,
                                     activation_type=quantization.QuantType.QUInt8,
                                     weight_type=quantization.QuantType.QInt8)
    finally:
        if os.path.exists(folded):
            os.unlink(folded)


def dynamic(path, output):
    """Activations get their scales when the model runs."""
    quantization.quantize_dynamic(path, output, per_channel=True, weight_type=quantization.QuantType.QInt8)
