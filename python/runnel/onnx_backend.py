# SPDX-License-Identifier: Apache-2.0
"""ONNX's backend interface (onnx.backend.base): `runnel.onnx_backend.prepare(model).run([array])`. Needs the package onnx."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._device import Device, shared_device
from ._errors import Error, InvalidArgument
from ._graph import check_model
from ._session import Session

ONNX_DEVICES = {"CPU": "cpu", "CUDA": "gpu"}


def _spec(device: Union[None, str, Device]) -> Union[None, str, Device]:
    """ONNX's "CPU" and "CUDA:1" become a type of device; everything else is what Session takes."""
    if not isinstance(device, str):
        return device
    return ONNX_DEVICES.get(device.split(":")[0], device)


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


class RunnelRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: Session):
        self.session = session
        self._names = [arg.name for arg in session.get_inputs()]
        self._result = namedtupledict("Outputs", [arg.name for arg in session.get_outputs()])

    def run(self, inputs: Any, **kwargs: Any) -> Tuple[Any, ...]:
        """The outputs, also by name: `run([array, …])` in the order of the model's inputs, or `run({name: array})`.

        Raises InvalidArgument for wrong inputs, and what Session.run raises.
        """
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, dict):
            if len(inputs) != len(self._names):
                raise InvalidArgument(f"{len(inputs)} inputs were given; the model has {len(self._names)}")
            inputs = dict(zip(self._names, inputs))
        feed = {name: _array(value) for name, value in inputs.items()}
        return self._result(*self.session.run(None, feed))


class RunnelBackend(Backend):
    """runnel as a backend of ONNX. A device is "CPU", "CUDA", or what runnel.Session takes ("0:0", part of a name)."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether runnel, with the operators of a `registry`, has all that the model needs."""
        try:
            return all(row.unsupported_count == 0 for row in check_model(model, registry=kwargs.get("registry")))
        except Error:
            return False

    @classmethod
    def prepare(cls, model: Union[onnx.ModelProto, bytes, str], device: Union[None, str, Device] = "CPU",
                **kwargs: Any) -> RunnelRep:
        """Opens the model on a device, with the operators of a `registry`. Raises Unimplemented, which names everything that
        it lacks, and NotFound."""
        if isinstance(model, onnx.ModelProto):
            super().prepare(model, "CPU")
        return RunnelRep(Session(model, _spec(device), registry=kwargs.get("registry")))

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: Union[None, str, Device] = "CPU",
                 outputs_info: Optional[Sequence[Tuple[Any, Tuple[int, ...]]]] = None,
                 **kwargs: Any) -> Tuple[Any, ...]:
        """Runs one node. `opset_version` is the newest, unless it is given; outputs_info (types, shapes) is not needed."""
        super().run_node(node, inputs, "CPU", outputs_info, **kwargs)
        values = list(inputs.values()) if isinstance(inputs, dict) else list(inputs)
        arrays = [np.asarray(_array(value)) for value in values]
        names = list(inputs) if isinstance(inputs, dict) else [name for name in node.input if name]
        typed = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                 for name, array in dict(zip(names, arrays)).items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        opset = helper.make_opsetid(node.domain, kwargs.get("opset_version", onnx.defs.onnx_opset_version())
                                    if not node.domain else 1)
        model = helper.make_model(helper.make_graph([node], "node", typed, outputs), opset_imports=[opset])
        with Session(onnx.shape_inference.infer_shapes(model), _spec(device)) as session:
            return RunnelRep(session).run(dict(zip(names, arrays)))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether such a device is there."""
        try:
            shared_device(_spec(device))
        except Error:
            return False
        return True


is_compatible = RunnelBackend.is_compatible
prepare = RunnelBackend.prepare
run_model = RunnelBackend.run_model
run_node = RunnelBackend.run_node
supports_device = RunnelBackend.supports_device
