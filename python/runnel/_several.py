# SPDX-License-Identifier: Apache-2.0
"""What models on several devices have in common: runs that are under way at the same time."""

from __future__ import annotations

import concurrent.futures
import ctypes as c
import os
import threading
from typing import Any, Callable, List, Optional, Union

import numpy as np

from . import _structs as s
from ._device import Device, Devices
from ._errors import Unavailable, Unimplemented
from ._graph import Graph
from ._library import device_library, is_forked
from ._options import SessionOptions
from ._registry import Registry
from ._session import Session, _Call, _sessions, aside
from ._tensors import own


class Several(Session):
    """A model on several devices. Each run that was submitted has a thread while it is under way, which holds its arrays."""

    _report = ""  # what says more of the devices
    _callers = 32  # runs that `submit` has under way at a time

    def __init__(self, path_or_bytes: Union[str, "os.PathLike[str]", bytes, Any], device: Devices,
                 options: SessionOptions, registry: Optional[Registry]):
        self._handle, self._model, self._session = c.c_void_p(), c.c_void_p(), c.c_void_p()
        self._executor: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._is_closed = False
        self._lock, self._state = threading.Lock(), threading.Lock()
        self._idle = threading.Condition(self._state)
        self._running = 0
        self._lib = device_library()
        self._graph = Graph(path_or_bytes, registry)
        self._graph.check_supported()
        if self._graph.has_callbacks:
            aside(lambda: self._open_on(device, options))
        else:
            self._open_on(device, options)
        _sessions.add(self)

    # ---- what the C library has for it

    def _open_on(self, device: Devices, options: Any) -> None:
        raise NotImplementedError

    def _function(self, call: _Call) -> Callable[..., int]:
        """What runs this."""
        raise NotImplementedError

    def _cancel(self) -> None:
        raise NotImplementedError

    def _release(self, handle: Any) -> None:
        raise NotImplementedError

    # ---- what is one device's

    @property
    def device(self) -> Device:
        raise Unimplemented(f"the model is on several devices: see {self._report}")

    def profile(self, input_feed: Any) -> Any:
        raise Unimplemented("a profile looks at one device: open a Session on it")

    def stats(self) -> Any:
        raise Unimplemented(f"the model is on several devices: see {self._report}")

    # ---- running

    def _run(self, call: _Call) -> List[np.ndarray]:
        names = list(dict.fromkeys(call.wanted))
        outputs = (s.Tensor * max(1, len(names)))()
        for slot, name in zip(outputs, names):
            slot.name = name.encode()
        with self._state:
            self._check_open()
            if not call.is_wanted:
                raise Unavailable("the run was stopped before it began")
            self._running += 1
            call.is_running = True
        try:
            with self._graph.calls:
                self._graph.check(self._function(call)(self._handle, call.inputs, len(call.kept), outputs, len(names)))
        finally:
            with self._state:
                call.is_running = False
                self._running -= 1
                self._idle.notify_all()
        arrays = {name: own(self._lib, slot) for slot, name in zip(outputs, names)}
        return [arrays[name] if call.wanted.index(name) == i else arrays[name].copy()
                for i, name in enumerate(call.wanted)]

    def cancel(self) -> None:
        """Stops all runs that have begun, which then raise Cancelled."""
        with self._state:
            if self._handle and not is_forked():
                self._cancel()

    def _stop(self, call: _Call, future: Optional["concurrent.futures.Future"]) -> None:
        """Only all runs can be stopped: beside others this one comes through, and nobody waits for what it gives."""
        while True:
            with self._state:
                call.is_wanted = False
                if call.is_running and self._running == 1:
                    self._cancel()
            if future is None or future.cancel() or concurrent.futures.wait([future], 0.01).done:
                return

    def _get_executor(self) -> concurrent.futures.ThreadPoolExecutor:
        with self._state:
            if self._executor is None:
                self._executor = concurrent.futures.ThreadPoolExecutor(self._callers, "runnel")
            return self._executor

    def close(self) -> None:
        """Stops what runs, and gives the memory back. Outputs that were returned stay valid. May be called twice."""
        if is_forked():
            return
        self._graph.check_outside()
        with self._state:
            executor, self._executor, self._is_closed = self._executor, None, True
            while self._running:
                self._cancel()
                self._idle.wait(0.01)
            handle, self._handle = self._handle, c.c_void_p()
        if executor:
            executor.shutdown(wait=False)
        self._release(handle)
        self._graph.close()

    def __repr__(self) -> str:
        return f"<runnel.{type(self).__name__} {self._graph.meta.graph_name!r}>"
