# SPDX-License-Identifier: Apache-2.0
"""runnel: runs ONNX models on any OpenCL device.

    import runnel
    session = runnel.Session("model.onnx")                 # or onnxruntime.InferenceSession("model.onnx")
    outputs = session.run(None, {"x": array})

Errors are subclasses of runnel.Error; their text says all that is known.
"""

from ._device import Device, DeviceInfo, get_devices
from ._errors import (Cancelled, DataLoss, DeadlineExceeded, Error, FailedPrecondition, Internal, InvalidArgument,
                      NotFound, ResourceExhausted, Unavailable, Unimplemented)
from ._graph import ModelMeta, NodeArg, OperatorInfo, OperatorSupport, check_model, get_operators
from ._multi import DeviceShare, MultiSession
from ._multi import open as open  # not in __all__: `import *` leaves Python's own
from ._operator import Launch, Node, Scratch, TensorSpec
from ._options import PipelineOptions, SessionOptions, StepProfile
from ._pipeline import Pipeline, PipelineStage
from ._quantize import Quantization, QuantizedLayer, quantize
from ._registry import Registry
from ._session import Session
from ._trace import Trace

InferenceSession = Session

__version__ = "0.1.0"
__all__ = [
    "Cancelled", "DataLoss", "DeadlineExceeded", "Device", "DeviceInfo", "DeviceShare", "Error", "FailedPrecondition",
    "InferenceSession", "Internal", "InvalidArgument", "Launch", "ModelMeta", "MultiSession", "Node", "NodeArg",
    "NotFound", "OperatorInfo", "OperatorSupport", "Pipeline", "PipelineOptions", "PipelineStage", "Quantization",
    "QuantizedLayer", "Registry", "ResourceExhausted", "Scratch", "Session", "SessionOptions", "StepProfile",
    "TensorSpec", "Trace", "Unavailable", "Unimplemented", "check_model", "get_devices", "get_operators", "quantize",
]
