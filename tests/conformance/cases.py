# SPDX-License-Identifier: Apache-2.0
"""The cases of ONNX's backend suite, as the package onnx makes or carries them."""

import glob
import importlib.metadata
import os
import pickle
import re
import sys
import tempfile
import warnings
import zlib

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import DATA_DIR

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# What inference on tensors of numbers has no use for: counted, but not asked for.
TRAINING = {"Adagrad", "Adam", "Gradient", "Momentum"}
RESTS = ("strings", "sequences", "optional", "training")


class Case:
    """One model with inputs and expected outputs."""

    def __init__(self, suite, name, model, data_sets, rtol, atol):
        self.suite, self.name, self.rtol, self.atol = suite, name, rtol, atol
        self._model, self._data_sets = model, data_sets

    @property
    def model(self):
        if isinstance(self._model, str):
            self._model = onnx.load(self._model)
        return self._model

    def data_sets(self):
        """Pairs of inputs and outputs: arrays, lists of them, or None."""
        return [tuple([_plain(value) for value in values] for values in pair) for pair in
                (self._data_sets() if callable(self._data_sets) else self._data_sets)]

    def operators(self):
        return {node.op_type for node in self.model.graph.node}

    def rest(self):
        """What puts the case outside of what is asked for, "" when nothing does."""
        graph = self.model.graph
        infos = [*graph.input, *graph.output, *graph.value_info]
        kinds = {info.type.WhichOneof("value") for info in infos}
        domains = {node.domain for node in graph.node}
        operators = self.operators()
        if domains & {"ai.onnx.preview.training"} or operators & TRAINING or "training" in self.name:
            return "training"
        if "optional_type" in kinds or any(op.startswith("Optional") for op in operators):
            return "optional"
        if "sequence_type" in kinds or any("Sequence" in op for op in operators):
            return "sequences"
        if any(_is_text(info.type) for info in infos):
            return "strings"
        return ""


def _is_text(kind):
    return kind.WhichOneof("value") == "tensor_type" and kind.tensor_type.elem_type == onnx.TensorProto.STRING


def _plain(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _kept_file():
    """Where the node cases are kept: one file for what they depend on."""
    with open(os.path.abspath(__file__), "rb") as file:
        own = zlib.crc32(file.read())
    versions = "-".join(importlib.metadata.version(name) for name in ("onnx", "numpy", "ml_dtypes", "pillow"))
    return os.path.join(TOP, "build", f"conformance-{sys.version_info[1]}-{versions}-{own:08x}.pickle")


def _make_node_cases():
    """Tuples of name, model in bytes, data sets and bounds. The package computes all of them at once, in Python's loops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = collect_testcases(None)
    return [(case.name, case.model.SerializeToString(), case.data_sets, case.rtol, case.atol) for case in made]


def _keep(made, path):
    """In one step: tests run side by side."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
        with open(os.path.join(folder, "cases"), "wb") as file:
            pickle.dump(made, file, pickle.HIGHEST_PROTOCOL)
        os.replace(file.name, path)


def node_cases():
    """All implementations get the same ones, which are made where none are kept."""
    path = _kept_file()
    try:
        with open(path, "rb") as file:
            made = pickle.load(file)
    except (OSError, EOFError, pickle.UnpicklingError):
        made = _make_node_cases()
        _keep(made, path)
    for name, model, data_sets, rtol, atol in made:
        suite = "expanded" if "_expanded" in name else "node"
        yield Case(suite, name, onnx.load_from_string(model), data_sets, rtol, atol)


def operator_of(case, models):
    """The operator that a case is there for: that of the case which it expands, or the first one that the name has."""
    base = models.get(re.sub(r"_expanded(_ver\d+)?$", "", case.name), case)
    kinds = [node.op_type for node in base.model.graph.node]
    if len(set(kinds)) == 1:
        return kinds[0]
    plain = case.name.replace("_", "")
    named = [kind for kind in kinds if kind.lower() in plain]
    return max(named or kinds, key=lambda kind: (kind in named and len(kind), kinds.count(kind)))


def _load(path, kind):
    with open(path, "rb") as file:
        data = file.read()
    which = kind.WhichOneof("value")
    proto = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(which, onnx.TensorProto)()
    proto.ParseFromString(data)
    return proto


def _stored_sets(folder, model):
    for data in sorted(glob.glob(os.path.join(folder, "test_data_set*"))):
        pair = []
        for kind, infos in (("input", model.graph.input), ("output", model.graph.output)):
            count = len(glob.glob(os.path.join(data, f"{kind}_*.pb")))
            pair.append([_load(os.path.join(data, f"{kind}_{i}.pb"), infos[i].type) for i in range(count)])
        yield tuple(pair)


def stored_cases(suite):
    """simple, pytorch-operator, pytorch-converted: model and tensors lie in the package."""
    for folder in sorted(glob.glob(os.path.join(DATA_DIR, suite, "*", "model.onnx"))):
        folder = os.path.dirname(folder)
        model = onnx.load(os.path.join(folder, "model.onnx"))
        yield Case(suite, os.path.basename(folder), model, lambda f=folder, m=model: _stored_sets(f, m), 1e-3, 1e-7)


def _light_sets(path, model):
    """As ONNX's runner makes them: each input counts from 0 to 1; the answers lie beside the model."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = []
    for info in model.graph.input:
        if info.name not in weights:
            shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in info.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
    outputs = [_load(f"{path[:-5]}_output_{i}.pb", info.type) for i, info in enumerate(model.graph.output)]
    yield inputs, outputs


def light_cases():
    """Nine image classifiers without weights: a few ConstantOfShape nodes stand for them."""
    for path in sorted(glob.glob(os.path.join(DATA_DIR, "light", "*.onnx"))):
        model = onnx.load(path)
        rtol = 2e-3 if "densenet121" in path else 1e-3
        yield Case("light", os.path.basename(path)[:-5], model, lambda p=path, m=model: _light_sets(p, m), rtol, 1e-7)


SUITES = {"node": node_cases, "simple": lambda: stored_cases("simple"),
          "pytorch-operator": lambda: stored_cases("pytorch-operator"),
          "pytorch-converted": lambda: stored_cases("pytorch-converted"), "light": light_cases}


def collect(suites=()):
    """All cases, sorted by suite (node and expanded come together)."""
    return [case for name, make in SUITES.items() if not suites or name in suites for case in make()]
