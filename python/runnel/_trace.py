# SPDX-License-Identifier: Apache-2.0
"""Traces: when each command of a session ran, as a file that ui.perfetto.dev opens."""

from __future__ import annotations

import contextlib
import ctypes as c
import os
from typing import Any, Iterator, Optional, Union

from ._errors import FailedPrecondition, InvalidArgument
from ._library import Sole, is_forked, library

AUTOMATIC = 2**32 - 1  # RNL_TRACE_AUTOMATIC


class Trace(Sole):
    """What sessions do while `session.trace(trace)` holds.

        with runnel.Trace("out.json") as trace:
            session.trace(trace)
            session.run(None, {"x": array})

    The file is written when the block ends; `write` writes one at any time. Any thread. With `every` every N-th run of a
    session is recorded, its first one included, all of them with 1; without it a session's first five runs are, and then
    as many as cost at most 1% of its time. The others cost nothing.
    """

    def __init__(self, path: Optional[Union[str, os.PathLike]] = None, every: Optional[int] = None):
        self._trace = None
        if every is not None and (not isinstance(every, int) or not 1 <= every < AUTOMATIC):
            raise InvalidArgument(f"every is {every!r}; give a whole number from 1 on, or None")
        self._lib, self._path, handle = library(), path, c.c_void_p()
        self._lib.check(self._lib.rnl_trace_create(None, c.byref(handle)))
        self._trace = handle
        self._lib.rnl_trace_set_interval(handle, AUTOMATIC if every is None else every)

    def write(self, path: Union[str, os.PathLike]) -> None:
        """Writes what has ended by now. Raises NotFound, FailedPrecondition and the like where that cannot be."""
        self._lib.check(self._lib.rnl_trace_write(self._handle(), os.fsencode(path)))

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """A span of the calling thread's: `with trace.span("preprocess"):`."""
        start = self._lib.rnl_trace_now()
        try:
            yield
        finally:
            self._lib.rnl_trace_span(self._handle(), name.encode(), start)

    def close(self) -> None:
        """Sessions that are being traced hold it themselves."""
        if self._trace and not is_forked():
            self._lib.rnl_trace_release(self._trace)
        self._trace = None

    def _handle(self):
        if not self._trace:
            raise FailedPrecondition("the trace is closed")
        return self._trace

    @staticmethod
    def handle_of(trace: Any) -> Any:
        """Of a Trace; None of None."""
        if not isinstance(trace, (Trace, type(None))):
            raise InvalidArgument(f"trace is a {type(trace).__name__}; give a runnel.Trace, or None")
        return None if trace is None else trace._handle()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, kind, *_) -> None:
        try:
            if self._path is not None and kind is None:
                self.write(self._path)
        finally:
            self.close()

    def __del__(self):
        if getattr(self, "_trace", None):
            self.close()
