# SPDX-License-Identifier: Apache-2.0
"""A model on several devices, all of it on each."""

from __future__ import annotations

import ctypes as c
import dataclasses
import os
from typing import Any, Callable, List, Mapping, Optional, Sequence, Union

from . import _structs as s
from ._device import MOST_DEVICES, Device, DeviceInfo, Devices, _info, opened
from ._options import SessionOptions, make_options, model_options
from ._registry import Registry
from ._session import Session, _Call
from ._several import Several
from ._trace import Trace


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


class MultiSession(Several):
    """A model on several devices: `open(path, device="gpu,cpu")`. Used as a Session, from any threads at the same time.

    Where the first dimension of all inputs and outputs is free, a run's batch is split over the devices by their measured
    speed; else the run goes to the device that will be done first. What fails on one device is done once more on another.
    """

    _report = "shares()"

    def __init__(self, path_or_bytes: Union[str, "os.PathLike[str]", bytes, Any], device: Devices,
                 options: Union[None, SessionOptions, Mapping[str, Any]] = None, *,
                 registry: Optional[Registry] = None):
        super().__init__(path_or_bytes, device, make_options(options), registry)

    def _open_on(self, device: Devices, options: SessionOptions) -> None:
        model, self._progress = model_options(options)
        raw = s.MultiOptions(struct_size=c.sizeof(s.MultiOptions), model=c.addressof(model))
        with opened(device) as handles, self._graph.calls:
            self._graph.check(self._lib.rnl_multi_open(self._graph.handle, handles, len(handles), c.byref(raw),
                                                       c.byref(self._handle)))
        self._is_split = self._lib.rnl_multi_check_split(self._handle) == 0

    def shares(self) -> List[DeviceShare]:
        """What each device has done, in the order of opening."""
        rows = (s.MultiDevice * MOST_DEVICES)()
        with self._state:
            self._check_open()
            count = self._lib.rnl_multi_get_devices(self._handle, rows, MOST_DEVICES)
            return [DeviceShare(_info(self._lib.rnl_device_get_info(row.device).contents), row.is_lost, row.share,
                                row.requests, row.failures, row.requests_per_s, row.rows_per_s) for row in rows[:count]]

    def trace(self, trace: Optional[Trace]) -> None:
        """From the next run on, what the devices do is recorded in this trace, a track for each; None: no longer."""
        with self._state:
            self._check_open()
            self._lib.rnl_multi_trace(self._handle, Trace.handle_of(trace))

    def _function(self, call: _Call) -> Callable[..., int]:
        rows = [slot.shape[0] for slot in call.inputs[:len(call.kept)] if slot.rank]
        split = self._is_split and len(rows) == len(call.kept) and min(rows, default=0) > 1
        return self._lib.rnl_multi_run_split if split else self._lib.rnl_multi_run

    def _cancel(self) -> None:
        self._lib.rnl_multi_cancel(self._handle, 0)

    def _release(self, handle: Any) -> None:
        self._lib.rnl_multi_release(handle)


def open(path_or_bytes: Union[str, "os.PathLike[str]", bytes, Any], device: Union[None, Devices] = None,
         options: Union[None, SessionOptions, Mapping[str, Any]] = None, *,
         registry: Optional[Registry] = None) -> Session:
    """A Session on one device, or a MultiSession where `device` lists several: "gpu,cpu", ["0:0", "1:0"], or "all"."""
    if isinstance(device, Sequence) and not isinstance(device, str) and len(device) == 1:
        device = device[0]
    if isinstance(device, (str, Device, type(None))) and not (isinstance(device, str) and ("," in device or device == "all")):
        return Session(path_or_bytes, device, options, registry=registry)
    return MultiSession(path_or_bytes, device, options, registry=registry)
