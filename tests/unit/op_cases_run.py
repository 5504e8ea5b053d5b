# SPDX-License-Identifier: Apache-2.0
"""Runs one node with onnxruntime, else with onnx's reference evaluator."""
import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)


def model_of(node, opset, inputs):
    values = []
    for name, x in zip(node.input, inputs):
        if name:
            code = helper.np_dtype_to_tensor_dtype(x.dtype)
            values.append(helper.make_tensor_value_info(name, code, list(x.shape)))
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "case", values, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8 if opset < 21 else 10
    return model


def with_onnxruntime(model, feed):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def with_reference(model, feed):
    return ReferenceEvaluator(model).run(None, feed)


def expected_outputs(node, opset, inputs):
    """One array for each output of the node; None when neither runs it."""
    feed = {name: x for name, x in zip(node.input, inputs) if name}
    model = model_of(node, opset, inputs)
    for run in (with_onnxruntime, with_reference):
        try:
            values = iter(run(model, feed))
        except Exception:  # pylint: disable=broad-except
            continue  # no kernel for the type, mostly
        return [np.asarray(next(values)) if name else None for name in node.output]
    return None
