# SPDX-License-Identifier: Apache-2.0
"""Static quantisation: an 8-bit copy of a model's file, and what it costs."""

from __future__ import annotations

import ctypes as c
import dataclasses
import itertools
import math
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence, Union

import numpy as np

from . import _structs as s
from ._device import Device, shared_device, text
from ._errors import InvalidArgument
from ._graph import Graph
from ._library import device_library
from ._session import Session
from ._tensors import as_array, fill

_RANGES = ("minmax", "percentile", "mse")  # as rnl_quantizer_ranges counts them
_ACTIVATIONS = ("uint8", "int8")
_FLOAT, _INTEGERS = 0, 1  # of rnl_quantizer_form
_ALL = c.c_size_t(-1).value
_COMPARED = 32


@dataclasses.dataclass(frozen=True)
class QuantizedLayer:
    """A convolution or product with constant weights. `signal_to_noise`: of its output as the model goes on with it, with
    what the layers before it cost, in dB; infinite where nothing differs."""

    name: str
    op_type: str
    is_quantized: bool
    signal_to_noise: float


@dataclasses.dataclass(frozen=True)
class Quantization:
    """What a quantised model costs: its layers, in the file's order, and for each float32 output of the model the root
    of the squared error over the squared values."""

    layers: List[QuantizedLayer]
    relative_errors: Dict[str, float]


class _Sums:
    """Of the squares of what is expected, and of how far the other is off."""

    def __init__(self) -> None:
        self.signal = self.noise = 0.0

    def add(self, expected: np.ndarray, got: np.ndarray) -> None:
        wide = expected.astype(np.float64)
        self.signal += float(np.sum(wide * wide))
        self.noise += float(np.sum((got - wide) ** 2))

    def relative(self) -> float:
        if self.noise == 0:
            return 0.0
        return math.sqrt(self.noise / self.signal) if self.signal else math.inf

    def decibels(self) -> float:
        relative = self.relative()
        return -20 * math.log10(relative) if 0 < relative < math.inf else math.inf if relative == 0 else -math.inf


class _Quantizer:
    """rnl_quantizer, and the models that it builds."""

    def __init__(self, path: bytes, device: Device, options: Any):
        self.lib, self.device, self.handle = device_library(), device, c.c_void_p()
        self.lib.check(self.lib.rnl_quantizer_open(path, c.byref(options), c.byref(self.handle)))
        count = c.c_size_t()
        rows = self.lib.rnl_quantizer_layers(self.handle, c.byref(count))
        self.layers = [rows[i] for i in range(count.value)]

    def close(self) -> None:
        self.lib.rnl_quantizer_release(self.handle)

    def keep(self, names: Sequence[str]) -> None:
        known = [text(layer.name) for layer in self.layers]
        for name in names:
            if name not in known:
                raise InvalidArgument(f"keep: no layer that can be quantised is called {name!r}")
            for index in (i for i, other in enumerate(known) if other == name):
                self.lib.rnl_quantizer_keep(self.handle, index, True)

    def open(self, form: int) -> Session:
        data, size = c.c_void_p(), c.c_size_t()
        self.lib.check(self.lib.rnl_quantizer_build(self.handle, form, _ALL, c.byref(data), c.byref(size)))
        try:
            model = c.string_at(data, size.value)
        finally:
            self.lib.rnl_quantizer_free(data)
        return Session(model, self.device)

    def look(self, function: Callable[..., int], arrays: Mapping[str, np.ndarray]) -> None:
        slots = (s.Tensor * max(1, len(arrays)))()
        for slot, (name, array) in zip(slots, arrays.items()):
            fill(slot, name, array)
        self.lib.check(function(self.handle, slots, len(arrays)))


def _arrays(feed: Mapping[str, Any], codes: Mapping[str, int]) -> Dict[str, np.ndarray]:
    arrays = {name: as_array(name, value, codes.get(name, 0)) for name, value in feed.items()}
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise InvalidArgument(f"input '{name}' holds NaN or infinity")
    return arrays


def _feeds(given: Iterable[Any], session: Session) -> Iterator[Dict[str, np.ndarray]]:
    """Each with its number in front of what is wrong with it."""
    codes = session._graph.input_codes
    names = list(codes)
    for number, feed in enumerate(given):
        if not isinstance(feed, Mapping):
            if len(names) != 1:
                raise InvalidArgument(f"feeds[{number}] is a {type(feed).__name__}; give a dict of arrays by name: the "
                                      f"model has {len(names)} inputs")
            feed = {names[0]: feed}
        try:
            arrays = _arrays(feed, codes)
        except InvalidArgument as error:
            raise InvalidArgument(f"feeds[{number}]: {error}") from error
        yield arrays


def _compare(quantizer: _Quantizer, plain: Session, own: int, feeds: Iterable[Any]) -> List[_Sums]:
    """Of each output of `plain`: the model's own, and those of layers."""
    wanted = {layer.output for layer in quantizer.layers} | set(range(own))
    sums = [_Sums() for _ in plain.get_outputs()]
    with quantizer.open(_INTEGERS) as integers:
        for feed in itertools.islice(_feeds(feeds, plain), _COMPARED):
            for i, (expected, got) in enumerate(zip(plain.run(None, feed), integers.run(None, feed))):
                if i in wanted and expected.dtype == np.float32:
                    sums[i].add(expected, got)
    return sums


def quantize(model: Union[str, "os.PathLike[str]"], feeds: Iterable[Any], output: Union[str, "os.PathLike[str]"],
             device: Union[None, str, Device] = None, *, ranges: str = "minmax", percentile: float = 99.99,
             activations: str = "uint8", keep: Sequence[str] = ()) -> Quantization:
    """Writes an 8-bit copy of a model's file to `output`, as `runnel quantize` does, and says what that costs.

    `feeds`: inputs like those that the model will see, each a dict of arrays by name, or an array where the model has one
    input. They are gone through more than once; of an iterator that is used up all are kept. `ranges`: of the values
    between layers: "minmax", "percentile" (so many of 100 values lie inside) or "mse" (the least squared error).
    `activations`: "uint8" or "int8". `keep`: names of layers that stay float32. The costs are those of the first 32
    feeds.

    Raises InvalidArgument (feeds that do not fit, that hold NaN, or none), FailedPrecondition (the model is quantised
    already, or holds nothing that can be), NotFound (no such file or device). Where it raises, there is no new file.
    """
    if ranges not in _RANGES:
        raise InvalidArgument(f"ranges is {ranges!r}; give one of {', '.join(_RANGES)}")
    if activations not in _ACTIVATIONS:
        raise InvalidArgument(f"activations is {activations!r}; give one of {', '.join(_ACTIVATIONS)}")
    if isinstance(keep, str):
        raise InvalidArgument(f"keep is the text {keep!r}; give a list of names")
    path, target = os.fsencode(model), os.fsencode(output)
    if b"\0" in path + target:
        raise InvalidArgument("the path has a NUL in it")
    if os.path.exists(path) and os.path.exists(target) and os.path.samefile(path, target):
        raise InvalidArgument(f"output {os.fspath(output)!r} is the model itself")
    if iter(feeds) is feeds:
        feeds = list(feeds)
    options = s.QuantizerOptions(c.sizeof(s.QuantizerOptions), _RANGES.index(ranges), percentile, activations == "int8")
    quantizer = _Quantizer(path, shared_device(device), options)
    try:
        quantizer.keep(keep)
        graph = Graph(model)
        own = len(graph.outputs)
        graph.close()
        with quantizer.open(_FLOAT) as plain:
            return _quantize(quantizer, plain, own, feeds, ranges, target)
    finally:
        quantizer.close()


def _quantize(quantizer: _Quantizer, plain: Session, own: int, feeds: Iterable[Any], ranges: str,
              target: bytes) -> Quantization:
    lib, outputs = quantizer.lib, plain.get_outputs()
    for look in [lib.rnl_quantizer_observe] + ([lib.rnl_quantizer_count] if ranges != "minmax" else []):
        count = 0
        for count, feed in enumerate(_feeds(feeds, plain), 1):
            quantizer.look(look, feed)
            quantizer.look(look, dict(zip((arg.name for arg in outputs), plain.run(None, feed))))
        if not count:
            raise InvalidArgument("feeds is empty; give inputs like those that the model will see")
    sums = _compare(quantizer, plain, own, feeds)
    lib.check(lib.rnl_quantizer_write(quantizer.handle, target))
    return Quantization([QuantizedLayer(text(layer.name), text(layer.op_type), not layer.is_kept,
                                        sums[layer.output].decibels()) for layer in quantizer.layers],
                        {arg.name: total.relative() for arg, total in zip(outputs[:own], sums)
                         if arg.type == "tensor(float)"})
