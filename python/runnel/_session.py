# SPDX-License-Identifier: Apache-2.0
"""Sessions: a model on a device, and its runs."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import ctypes as c
import os
import threading
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

import numpy as np

from . import _structs as s
from ._device import Device, shared_device
from ._errors import FailedPrecondition, InvalidArgument, Unavailable
from ._graph import Graph, ModelMeta, NodeArg, OperatorInfo
from ._library import Sole, check_fork, device_library, is_forked
from ._options import SessionOptions, StepProfile, make_options, model_options, step_profile
from ._registry import Registry
from ._trace import Trace
from ._tensors import as_array, fill, hold, take

Feed = Mapping[str, Any]
Result = TypeVar("Result")
Self = TypeVar("Self", bound="Session")


class _Call:
    """One run: its tensors, with the arrays that they lie in, and where it stands, so that what stops it stops no other."""

    def __init__(self, inputs: Any, kept: List[Any], wanted: List[str]) -> None:
        self.inputs, self.kept, self.wanted = inputs, kept, wanted
        self.is_running = False
        self.is_wanted = True


def aside(function: Callable[[], Result]) -> Result:
    """Calls it in a thread of its own, and waits. For calls into C that call back: what Python raises where a callback
    begins, KeyboardInterrupt in the main thread or RecursionError far down a stack, would reach nobody."""
    with concurrent.futures.ThreadPoolExecutor(1, "runnel") as helper:
        future = submit(helper, function)
        return future.result() if future else function()


def submit(executor: concurrent.futures.Executor, function: Callable[..., Any], *given: Any) -> Any:
    """The future; None where the interpreter is ending, and starts no more of them."""
    try:
        return executor.submit(function, *given)
    except RuntimeError:
        return None


class Session(Sole):
    """A model on a device, shaped like onnxruntime.InferenceSession: `Session(path).run(None, {"x": array})`.

    `path_or_bytes`: an ONNX file's path, its bytes, or an onnx.ModelProto. `device`: see `Device`; sessions opened with
    the same text share one. `options`: a SessionOptions, or a dict of its fields. `registry`: a Registry of operators of
    one's own.

    May be used from several threads: runs take turns. To run at once, open a session for each thread.

    Raises NotFound (no such file or device), InvalidArgument or DataLoss (not a sound model), Unimplemented (operators
    or types that runnel does not have, all of them named), ResourceExhausted (the weights do not fit).
    """

    def __init__(self, path_or_bytes: Union[str, "os.PathLike[str]", bytes, Any],
                 device: Union[None, str, Device] = None,
                 options: Union[None, SessionOptions, Mapping[str, Any]] = None, *,
                 registry: Optional[Registry] = None):
        self._model, self._session = c.c_void_p(), c.c_void_p()
        self._executor: Optional[concurrent.futures.ThreadPoolExecutor] = None
        self._is_closed = False
        self._lock = threading.Lock()
        self._state = threading.Lock()
        self._lib = device_library()
        self._options = make_options(options)
        self._graph = Graph(path_or_bytes, registry)
        self._graph.check_supported()
        self._device = shared_device(device)
        if self._graph.has_callbacks:
            aside(self._open)
        else:
            self._open()
        _sessions.add(self)

    def _open(self) -> None:
        raw, self._progress = model_options(self._options)
        with self._graph.calls:
            self._graph.check(self._lib.rnl_model_open(self._graph.handle, self._device.handle(), c.byref(raw),
                                                       c.byref(self._model)))
        self._lib.check(self._lib.rnl_session_create(self._model, c.byref(self._session)))

    # ---- what the model is

    def get_inputs(self) -> List[NodeArg]:
        """The inputs, in the file's order, weights left out: name, shape (numbers and free dimensions' names), type."""
        return list(self._graph.inputs)

    def get_outputs(self) -> List[NodeArg]:
        """The outputs, in the file's order."""
        return list(self._graph.outputs)

    def get_modelmeta(self) -> ModelMeta:
        """Who made the file, and its own properties (custom_metadata_map)."""
        return self._graph.meta

    def get_operators(self) -> List[OperatorInfo]:
        """Each operator of the model, and how many nodes of it there are."""
        return self._graph.operators()

    @property
    def device(self) -> Device:
        """The device that the model is on."""
        return self._device

    # ---- running

    def run(self, output_names: Optional[Sequence[str]], input_feed: Feed, run_options: Any = None) -> List[np.ndarray]:
        """Runs the model: the outputs of these names, or of all (None), in that order.

        `input_feed`: an array for each input's name, of its type and of a shape that the model allows. Taken are numpy
        arrays, whatever lends its memory by DLPack on the CPU (torch tensors), and numbers and lists, which get the
        input's type. Arrays that are not contiguous, of the other byte order, or in a file (memmap) are copied first; on CPU devices others
        are used where they lie, and must not be written to meanwhile. The outputs are the caller's. `run_options` is
        there for onnxruntime's sake and must be None.

        Raises InvalidArgument (names, types, shapes), ResourceExhausted (memory), Internal (a driver's failure). After
        any failure the session works on. KeyboardInterrupt stops the run.
        """
        if run_options is not None:
            raise InvalidArgument("run_options must be None: this session has none")
        call = self._prepare(output_names, input_feed)
        if threading.current_thread() is not threading.main_thread() and not self._graph.has_callbacks:
            return self._run(call)
        # The main thread waits in Python, where a KeyboardInterrupt reaches it. For callbacks see `aside`.
        future = submit(self._get_executor(), self._run, call)
        if future is None:
            return self._run(call)
        try:
            return future.result()
        except BaseException:
            self._stop(call, future)
            raise

    def submit(self, output_names: Optional[Sequence[str]], input_feed: Feed) -> "concurrent.futures.Future":
        """Starts a run and returns a future of what `run` returns. Runs of a session follow each other in order.

        The arrays must not be written to before the future is done. The future's `cancel()` works until its run has
        begun. Raises InvalidArgument at once for what is no array; everything else is the future's.
        """
        return self._get_executor().submit(self._run, self._prepare(output_names, input_feed))

    async def run_async(self, output_names: Optional[Sequence[str]], input_feed: Feed) -> List[np.ndarray]:
        """`await session.run_async(...)`: as `run`. Cancelling the task stops the run."""
        call = self._prepare(output_names, input_feed)
        future = self._get_executor().submit(self._run, call)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._stop(call, None)
            raise

    def cancel(self) -> None:
        """Stops the run that is under way, which then raises Cancelled. No effect when nothing runs. Any thread."""
        with self._state:
            if self._session and not is_forked():
                self._lib.rnl_session_cancel(self._session)

    def profile(self, input_feed: Feed) -> List[StepProfile]:
        """Runs once and measures each step, in nanoseconds; gives no outputs. Raises as `run` does."""
        self._check_open()
        if self._graph.has_callbacks:
            return aside(lambda: self._profile(input_feed))
        return self._profile(input_feed)

    def _profile(self, input_feed: Feed) -> List[StepProfile]:
        rows, count = c.POINTER(s.StepProfile)(), c.c_size_t()
        with self._lock:
            self._check_open()
            given, kept = self._given(input_feed)
            with self._graph.calls:
                self._graph.check(self._lib.rnl_session_profile(self._session, given, len(kept), c.byref(rows),
                                                                c.byref(count)))
            return [step_profile(rows[i]) for i in range(count.value)]

    def trace(self, trace: Optional[Trace]) -> None:
        """From the next run on, what the session does is recorded in this trace; None: no longer."""
        self._check_open()
        with self._lock:
            self._check_open()
            self._lib.check(self._lib.rnl_session_trace(self._session, Trace.handle_of(trace)))

    def stats(self) -> Dict[str, int]:
        """Bytes of weights, plans and memory, plans built and evicted, programs, and steps of the last run."""
        self._check_open()
        with self._lock:
            self._check_open()
            model, session = s.ModelStats(), s.SessionStats()
            self._lib.rnl_model_get_stats(self._model, c.byref(model))
            self._lib.rnl_session_get_stats(self._session, c.byref(session))
        return {name: getattr(raw, name) for raw in (model, session) for name, _ in raw._fields_}

    def _given(self, feed: Feed):
        if not isinstance(feed, Mapping):
            raise InvalidArgument(f"inputs are a {type(feed).__name__}; give a dict of arrays by name")
        codes = self._graph.input_codes
        given, kept = (s.Tensor * max(1, len(feed)))(), []
        for slot, (name, value) in zip(given, feed.items()):
            if not isinstance(name, str):
                raise InvalidArgument(f"an input's name is {name!r}, which is no text")
            array = as_array(name, value, codes.get(name, 0))
            fill(slot, name, array)
            kept.append((array, hold(array)))
        return given, kept

    def _wanted(self, names: Optional[Sequence[str]]) -> List[str]:
        if isinstance(names, str):
            raise InvalidArgument(f"output_names is the text '{names}'; give a list of names")
        wanted = [arg.name for arg in self._graph.outputs] if names is None else list(names)
        for name in wanted:
            if not isinstance(name, str):
                raise InvalidArgument(f"an output's name is {name!r}, which is no text")
        return wanted

    def _prepare(self, output_names: Optional[Sequence[str]], feed: Feed) -> _Call:
        self._check_open()
        return _Call(*self._given(feed), self._wanted(output_names))

    def _run(self, call: _Call) -> List[np.ndarray]:
        names = list(dict.fromkeys(call.wanted))
        outputs = (s.Tensor * max(1, len(names)))()
        for slot, name in zip(outputs, names):
            slot.name = name.encode()
        with self._lock:
            self._begin(call)
            try:
                with self._graph.calls:
                    self._graph.check(self._lib.rnl_session_run(self._session, call.inputs, len(call.kept), outputs,
                                                                len(names)))
                arrays = {name: take(self._lib, self._session, slot) for slot, name in zip(outputs, names)}
            finally:
                with self._state:
                    call.is_running = False
        return [arrays[name] if call.wanted.index(name) == i else arrays[name].copy()
                for i, name in enumerate(call.wanted)]

    # ---- stopping

    def _begin(self, call: _Call) -> None:
        self._check_open()
        with self._state:
            if not call.is_wanted:
                raise Unavailable("the run was stopped before it began")
            call.is_running = True

    def _stop(self, call: _Call, future: Optional["concurrent.futures.Future"]) -> None:
        """Stops this run, and with a future waits until nothing uses its arrays any more."""
        while True:
            with self._state:
                call.is_wanted = False
                if call.is_running:
                    self._lib.rnl_session_cancel(self._session)
            if future is None or future.cancel() or concurrent.futures.wait([future], 0.01).done:
                return

    def _get_executor(self) -> concurrent.futures.ThreadPoolExecutor:
        with self._state:
            if self._executor is None:
                self._executor = concurrent.futures.ThreadPoolExecutor(1, "runnel")
            return self._executor

    def _check_open(self) -> None:
        check_fork()
        self._graph.check_outside()
        if self._is_closed:
            raise FailedPrecondition("the session was closed")

    def close(self) -> None:
        """Stops what runs, and gives the memory back. Outputs that were returned stay valid. May be called twice."""
        if is_forked():
            return
        self._graph.check_outside()
        with self._state:
            executor, self._executor, self._is_closed = self._executor, None, True
            if self._session:
                self._lib.rnl_session_cancel(self._session)
        if executor:
            executor.shutdown(wait=False)  # what waits there fails, since the session is closed
        with self._lock, self._state:
            session, self._session = self._session, c.c_void_p()
            model, self._model = self._model, c.c_void_p()
        self._lib.rnl_session_release(session)
        self._lib.rnl_model_release(model)
        self._graph.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_lib", None) and getattr(self, "_graph", None):
            self.close()

    def __repr__(self) -> str:
        return f"<runnel.Session {self._graph.meta.graph_name!r} on {self._device!r}>"


_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


def _close_all() -> None:
    """While Python still works: releasing the device saves the programs that were compiled."""
    if not is_forked():
        for session in list(_sessions):
            session.close()


atexit.register(_close_all)
