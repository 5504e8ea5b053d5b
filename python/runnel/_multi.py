# SPDX-License-Identifier: Apache-2.0
"""A model on several devices."""

from __future__ import annotations

import concurrent.futures
import ctypes as c
import dataclasses
import os
import threading
from typing import Any, List, Mapping, Optional, Sequence, Union

import numpy as np

from . import _structs as s
from ._device import Device, DeviceInfo, _info
from ._errors import InvalidArgument, Unavailable, Unimplemented
from ._graph import Graph
from ._library import PROGRESS, device_library, is_forked
from ._options import PRECISIONS, SessionOptions, make_options
from ._registry import Registry
from ._session import Session, _Call, _sessions, aside
from ._tensors import own
from ._trace import Trace

MOST_DEVICES = 64
CALLERS = 32  # runs that `submit` has under way at a time


@dataclasses.dataclass(frozen=True)
class DeviceShare:
    """What one of several devices has done. `share`: rows of the last batch that was split."""

    device: DeviceInfo
    is_lost: bool
    share: int
    requests: int
    failures: int
    requests_per_s: float
    rows_per_s: float


class MultiSession(Session):
    """A model on several devices: `open(path, device="gpu,cpu")`. Used as a Session, from any threads at the same time.

    Where the first dimension of all inputs and outputs is free, a run's batch is split over the devices by their measured
    speed; else the run goes to the device that will be done first. What fails on one device is done once more on another.
    """

    def __init__(self, path_or_bytes: Union[str, "os.PathLike[str]", bytes, Any], device: str,
                 options: Union[None, SessionOptions, Mapping[str, Any]] = None, *,
                 registry: Optional[Registry] = None):
        self._multi, self._devices = c.c_void_p(), []
        self._model, self._session = c.c_void_p(), c.c_void_p()
        self._executor: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._is_closed = False
        self._lock, self._state = threading.Lock(), threading.Lock()
        self._idle = threading.Condition(self._state)
        self._running = 0
        self._lib = device_library()
        self._options = make_options(options)
        self._graph = Graph(path_or_bytes, registry)
        self._graph.check_supported()
        if self._graph.has_callbacks:
            aside(lambda: self._open_on(device))
        else:
            self._open_on(device)
        _sessions.add(self)

    def _open_on(self, names: str) -> None:
        report = self._options.progress
        self._progress = PROGRESS(lambda _, row: report(row.contents.name.decode(), row.contents.done,
                                                        row.contents.total)) if report else None
        model = s.ModelOptions(struct_size=c.sizeof(s.ModelOptions), plan_cache_bytes=self._options.plan_cache_bytes,
                               progress=c.cast(self._progress, c.c_void_p) if self._progress else None,
                               precision=PRECISIONS[self._options.precision])
        model.deterministic = getattr(self._options, "deterministic", False)
        options = s.MultiOptions(struct_size=c.sizeof(s.MultiOptions), model=c.addressof(model))
        opened, count = (c.c_void_p * MOST_DEVICES)(), c.c_size_t()
        self._lib.check(self._lib.rnl_multi_open_devices(names.encode(), None, opened, MOST_DEVICES, c.byref(count)))
        try:
            with self._graph.calls:
                self._graph.check(self._lib.rnl_multi_open(self._graph.handle, opened, count.value, c.byref(options),
                                                           c.byref(self._multi)))
        finally:
            for handle in opened[:count.value]:
                self._lib.rnl_device_release(handle)
        self._is_split = self._lib.rnl_multi_check_split(self._multi) == 0

    @property
    def device(self) -> Device:
        raise Unimplemented("the model is on several devices: see shares()")

    def shares(self) -> List[DeviceShare]:
        """What each device has done, in the order of opening."""
        self._check_open()
        rows = (s.MultiDevice * MOST_DEVICES)()
        count = self._lib.rnl_multi_get_devices(self._multi, rows, MOST_DEVICES)
        return [DeviceShare(_info(self._lib.rnl_device_get_info(row.device).contents), row.is_lost, row.share, row.requests,
                            row.failures, row.requests_per_s, row.rows_per_s) for row in rows[:count]]

    def profile(self, input_feed: Any) -> Any:
        raise Unimplemented("a profile looks at one device: open a Session on it")

    def trace(self, trace: Optional[Trace]) -> None:
        """From the next run on, what the devices do is recorded in this trace, a track for each; None: no longer."""
        with self._state:
            self._check_open()
            self._lib.rnl_multi_trace(self._multi, trace._handle() if trace else None)

    def stats(self) -> Any:
        raise Unimplemented("the model is on several devices: see shares()")

    def _run(self, call: _Call) -> List[np.ndarray]:
        names = list(dict.fromkeys(call.wanted))
        outputs = (s.Tensor * max(1, len(names)))()
        for slot, name in zip(outputs, names):
            slot.name = name.encode()
        rows = [slot.shape[0] for slot in call.inputs[:len(call.kept)] if slot.rank]
        split = self._is_split and len(rows) == len(call.kept) and min(rows, default=0) > 1
        run = self._lib.rnl_multi_run_split if split else self._lib.rnl_multi_run
        with self._state:
            self._check_open()
            if not call.is_wanted:
                raise Unavailable("the run was stopped before it began")
            self._running += 1
        try:
            with self._graph.calls:
                self._graph.check(run(self._multi, call.inputs, len(call.kept), outputs, len(names)))
        finally:
            with self._state:
                self._running -= 1
                self._idle.notify_all()
        arrays = {name: own(self._lib, slot) for slot, name in zip(outputs, names)}
        return [arrays[name] if call.wanted.index(name) == i else arrays[name].copy()
                for i, name in enumerate(call.wanted)]

    def cancel(self) -> None:
        """Stops all runs that have begun, which then raise Cancelled."""
        with self._state:
            if self._multi and not is_forked():
                self._lib.rnl_multi_cancel(self._multi, 0)

    def _stop(self, call: _Call, future: Optional["concurrent.futures.Future"]) -> None:
        while True:
            call.is_wanted = False
            self.cancel()
            if future is None or future.cancel() or concurrent.futures.wait([future], 0.01).done:
                return

    def _get_executor(self) -> concurrent.futures.ThreadPoolExecutor:
        with self._state:
            if self._executor is None:
                self._executor = concurrent.futures.ThreadPoolExecutor(CALLERS, "runnel")
            return self._executor

    def close(self) -> None:
        """Stops what runs, and gives the memory back. Outputs that were returned stay valid. May be called twice."""
        if is_forked():
            return
        self._graph.check_outside()
        with self._state:
            executor, self._executor, self._is_closed = self._executor, None, True
            while self._running:
                self._lib.rnl_multi_cancel(self._multi, 0)
                self._idle.wait(0.01)
            multi, self._multi = self._multi, c.c_void_p()
        if executor:
            executor.shutdown(wait=False)
        self._lib.rnl_multi_release(multi)
        self._graph.close()

    def __repr__(self) -> str:
        return f"<runnel.MultiSession {self._graph.meta.graph_name!r}>"


def open(path_or_bytes: Union[str, "os.PathLike[str]", bytes, Any], device: Union[None, str, Sequence[str], Device] = None,
         options: Union[None, SessionOptions, Mapping[str, Any]] = None, *,
         registry: Optional[Registry] = None) -> Session:
    """A Session on one device, or a MultiSession where `device` lists several: "gpu,cpu", ["0:0", "1:0"], or "all"."""
    if not isinstance(device, (str, Device)) and isinstance(device, Sequence):
        if not all(isinstance(name, str) for name in device):
            raise InvalidArgument("device lists something that is no text; give names such as 'gpu' or '0:0'")
        device = ",".join(device)
    if isinstance(device, str) and ("," in device or device == "all"):
        return MultiSession(path_or_bytes, device, options, registry=registry)
    return Session(path_or_bytes, device, options, registry=registry)
