# SPDX-License-Identifier: Apache-2.0
"""A model cut into stages, each on a device of its own."""

from __future__ import annotations

import ctypes as c
import dataclasses
import os
from typing import Any, Callable, List, Mapping, Optional, Sequence, Union

from . import _structs as s
from ._device import MOST_DEVICES, DeviceInfo, Devices, _info, opened, text
from ._errors import InvalidArgument
from ._options import PipelineOptions, SessionOptions, make_pipeline_options, model_options
from ._registry import Registry
from ._session import _Call
from ._several import Several
from ._trace import Trace

DEFAULT_DEPTH = 2


@dataclasses.dataclass(frozen=True)
class PipelineStage:
    """What one stage of a pipeline is. Its nodes are `node_count` from `first_node` on, in the order of the run;
    `first_name` is the first one's, or its output's. `arena_bytes`: the memory between them. `crossing_bytes`: what comes
    from earlier stages, and `expected_ns` what the stage takes, for the inputs that the cut was made for; the latter was
    measured (`is_measured`) or guessed. `run_count`, `busy_ns`: batches so far, and the time of their runs in this stage,
    with copies."""

    device: DeviceInfo
    first_node: int
    node_count: int
    first_name: str
    weight_bytes: int
    arena_bytes: int
    crossing_bytes: int
    expected_ns: float
    is_measured: bool
    run_count: int
    busy_ns: int


class Pipeline(Several):
    """A model cut into stages, one on each device, which holds the weights of its own stage alone and works on one batch
    while the others are at other batches: `Pipeline(path, "0:0,0:1")`. Used as a Session, from any threads at the same
    time; `submit` keeps all stages busy.

    `device`: "0:0,1:0", ["0:0", "1:0"], Devices, or "all", as None; a device may come twice, and one that would only hold
    up the others gets no stage. `options`: a PipelineOptions, a SessionOptions, or a dict.

    Raises as Session does; FailedPrecondition where the model can be cut nowhere, or leaves dimensions free and the
    options have no `inputs`; ResourceExhausted where no cut fits the devices.
    """

    _report = "stages()"

    def __init__(self, path_or_bytes: Union[str, "os.PathLike[str]", bytes, Any], device: Optional[Devices] = None,
                 options: Union[None, PipelineOptions, SessionOptions, Mapping[str, Any]] = None, *,
                 registry: Optional[Registry] = None):
        super().__init__(path_or_bytes, "all" if device is None else device, make_pipeline_options(options), registry)

    def _open_on(self, device: Devices, options: PipelineOptions) -> None:
        model, self._progress = model_options(options)
        raw = s.PipelineOptions(struct_size=c.sizeof(s.PipelineOptions), depth=options.depth, estimate=options.estimate,
                                model=c.addressof(model), trace=Trace.handle_of(options.trace))
        kept: List[Any] = []
        if options.inputs is not None:
            raw.inputs, kept = self._given(options.inputs)
            raw.input_count = len(kept)
        with opened(device) as handles, self._graph.calls:
            raw.memory_bytes = _sizes(options.memory_bytes, len(handles))
            self._devices = [_info(self._lib.rnl_device_get_info(handle).contents) for handle in handles]
            self._graph.check(self._lib.rnl_pipeline_create(self._graph.handle, handles, len(handles), c.byref(raw),
                                                            c.byref(self._handle)))
        self._callers = (options.depth or DEFAULT_DEPTH) * len(self.stages()) + 1  # one waits for the next free place

    def stages(self) -> List[PipelineStage]:
        """What each stage is and has done, in their order."""
        rows = (s.PipelineStage * MOST_DEVICES)()
        with self._state:
            self._check_open()
            count = self._lib.rnl_pipeline_get_stages(self._handle, rows, MOST_DEVICES)
            return [self._stage(row) for row in rows[:count]]

    def _stage(self, row: Any) -> PipelineStage:
        given = {field.name: getattr(row, field.name) for field in dataclasses.fields(PipelineStage)}
        return PipelineStage(**{**given, "device": self._devices[row.device], "first_name": text(row.first_name)})

    def trace(self, trace: Optional[Trace]) -> None:
        """From the next batch on, what the stages do is recorded in this trace, a track for each; None: no longer."""
        with self._state:
            self._check_open()
            self._lib.rnl_pipeline_trace(self._handle, Trace.handle_of(trace))

    def _function(self, call: _Call) -> Callable[..., int]:
        return self._lib.rnl_pipeline_run

    def _cancel(self) -> None:
        self._lib.rnl_pipeline_cancel(self._handle)

    def _release(self, handle: Any) -> None:
        self._lib.rnl_pipeline_release(handle)


def _sizes(given: Optional[Sequence[int]], count: int) -> Any:
    if given is None:
        return None
    if len(given) != count:
        raise InvalidArgument(f"memory_bytes has {len(given)} sizes for {count} devices")
    return (c.c_uint64 * count)(*given)
