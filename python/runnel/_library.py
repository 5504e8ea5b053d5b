# SPDX-License-Identifier: Apache-2.0
"""The C libraries: loading, signatures, statuses, and what a fork means."""

from __future__ import annotations

import ctypes as c
import os
import threading
from typing import Any

from . import _structs as s
from ._errors import Error, FailedPrecondition, make

POINTER = c.POINTER
PROGRESS = c.CFUNCTYPE(None, c.c_void_p, POINTER(s.Progress))
HANDLE, OUT = c.c_void_p, POINTER(c.c_void_p)
STATUS = c.c_int

_RUNTIME = {
    "rnl_last_error": (POINTER(s.Error),),
    "rnl_status_name": (c.c_char_p, c.c_int),
    "rnl_dtype_name": (c.c_char_p, c.c_int),
    "rnl_device_list": (STATUS, POINTER(s.DeviceInfo), c.c_size_t, POINTER(c.c_size_t)),
    "rnl_device_open": (STATUS, c.c_char_p, POINTER(s.DeviceOptions), OUT),
    "rnl_device_open_alone": (STATUS, c.c_char_p, POINTER(s.DeviceOptions), OUT),
    "rnl_device_retain": (c.c_void_p, HANDLE),
    "rnl_device_release": (None, HANDLE),
    "rnl_device_get_info": (POINTER(s.DeviceInfo), HANDLE),
    "rnl_device_get_stats": (None, HANDLE, POINTER(s.DeviceStats)),
    "rnl_trace_create": (STATUS, c.c_void_p, OUT),
    "rnl_trace_release": (None, HANDLE),
    "rnl_trace_set_interval": (None, HANDLE, c.c_uint32),
    "rnl_trace_write": (STATUS, HANDLE, c.c_char_p),
    "rnl_trace_now": (c.c_uint64,),
    "rnl_trace_span": (None, HANDLE, c.c_char_p, c.c_uint64),
}
_HOST = {
    "rnl_graph_load_with": (STATUS, c.c_char_p, HANDLE, OUT),
    "rnl_graph_load_memory_with": (STATUS, c.c_void_p, c.c_size_t, HANDLE, OUT),
    "rnl_graph_release": (None, HANDLE),
    "rnl_graph_inputs": (POINTER(s.ValueInfo), HANDLE, POINTER(c.c_size_t)),
    "rnl_graph_outputs": (POINTER(s.ValueInfo), HANDLE, POINTER(c.c_size_t)),
    "rnl_graph_metadata": (POINTER(s.Metadata), HANDLE, POINTER(c.c_size_t)),
    "rnl_graph_get_info": (None, HANDLE, POINTER(s.GraphInfo)),
    "rnl_graph_check": (STATUS, HANDLE, POINTER(POINTER(s.OperatorInfo)), POINTER(c.c_size_t)),
    "rnl_operator_list": (c.c_size_t, POINTER(s.OperatorSupport), c.c_size_t),
    "rnl_model_open": (STATUS, HANDLE, HANDLE, POINTER(s.ModelOptions), OUT),
    "rnl_model_release": (None, HANDLE),
    "rnl_model_get_stats": (None, HANDLE, POINTER(s.ModelStats)),
    "rnl_session_create": (STATUS, HANDLE, OUT),
    "rnl_session_release": (None, HANDLE),
    "rnl_session_run": (STATUS, HANDLE, POINTER(s.Tensor), c.c_size_t, POINTER(s.Tensor), c.c_size_t),
    "rnl_session_cancel": (None, HANDLE),
    "rnl_session_profile": (STATUS, HANDLE, POINTER(s.Tensor), c.c_size_t, POINTER(POINTER(s.StepProfile)),
                            POINTER(c.c_size_t)),
    "rnl_session_trace": (STATUS, HANDLE, HANDLE),
    "rnl_session_get_stats": (None, HANDLE, POINTER(s.SessionStats)),
    "rnl_session_take_output": (c.c_void_p, HANDLE, POINTER(s.Tensor)),
    "rnl_output_release": (None, c.c_void_p),
    "rnl_multi_open_devices": (STATUS, c.c_char_p, POINTER(s.DeviceOptions), POINTER(c.c_void_p), c.c_size_t,
                               POINTER(c.c_size_t)),
    "rnl_multi_open": (STATUS, HANDLE, POINTER(c.c_void_p), c.c_size_t, POINTER(s.MultiOptions), OUT),
    "rnl_multi_release": (None, HANDLE),
    "rnl_multi_check_split": (STATUS, HANDLE),
    "rnl_multi_run": (STATUS, HANDLE, POINTER(s.Tensor), c.c_size_t, POINTER(s.Tensor), c.c_size_t),
    "rnl_multi_run_split": (STATUS, HANDLE, POINTER(s.Tensor), c.c_size_t, POINTER(s.Tensor), c.c_size_t),
    "rnl_multi_trace": (None, HANDLE, HANDLE),
    "rnl_multi_cancel": (None, HANDLE, c.c_uint64),
    "rnl_multi_get_devices": (c.c_size_t, HANDLE, POINTER(s.MultiDevice), c.c_size_t),
    "rnl_pipeline_create": (STATUS, HANDLE, POINTER(c.c_void_p), c.c_size_t, POINTER(s.PipelineOptions), OUT),
    "rnl_pipeline_release": (None, HANDLE),
    "rnl_pipeline_get_stages": (c.c_size_t, HANDLE, POINTER(s.PipelineStage), c.c_size_t),
    "rnl_pipeline_run": (STATUS, HANDLE, POINTER(s.Tensor), c.c_size_t, POINTER(s.Tensor), c.c_size_t),
    "rnl_pipeline_trace": (None, HANDLE, HANDLE),
    "rnl_pipeline_cancel": (None, HANDLE),
    "rnl_quantizer_open": (STATUS, c.c_char_p, POINTER(s.QuantizerOptions), OUT),
    "rnl_quantizer_release": (None, HANDLE),
    "rnl_quantizer_layers": (POINTER(s.QuantizerLayer), HANDLE, POINTER(c.c_size_t)),
    "rnl_quantizer_keep": (None, HANDLE, c.c_size_t, c.c_bool),
    "rnl_quantizer_build": (STATUS, HANDLE, c.c_int, c.c_size_t, OUT, POINTER(c.c_size_t)),
    "rnl_quantizer_free": (None, c.c_void_p),
    "rnl_quantizer_observe": (STATUS, HANDLE, POINTER(s.Tensor), c.c_size_t),
    "rnl_quantizer_count": (STATUS, HANDLE, POINTER(s.Tensor), c.c_size_t),
    "rnl_quantizer_write": (STATUS, HANDLE, c.c_char_p),
    "rnl_registry_create": (STATUS, OUT),
    "rnl_registry_release": (None, HANDLE),
    "rnl_registry_add": (STATUS, HANDLE, POINTER(s.CustomOperator)),
    "rnl_custom_fail": (STATUS, STATUS, c.c_char_p),  # and what the format asks for
    "rnl_custom_attribute_name": (c.c_char_p, POINTER(s.CustomCall), c.c_size_t),
    "rnl_custom_attribute_type": (c.c_int, POINTER(s.CustomCall), c.c_char_p),
    "rnl_custom_int": (c.c_int64, POINTER(s.CustomCall), c.c_char_p, c.c_int64),
    "rnl_custom_float": (c.c_float, POINTER(s.CustomCall), c.c_char_p, c.c_float),
    "rnl_custom_string": (c.c_char_p, POINTER(s.CustomCall), c.c_char_p, c.c_char_p),
    "rnl_custom_ints": (POINTER(c.c_int64), POINTER(s.CustomCall), c.c_char_p, POINTER(c.c_size_t)),
    "rnl_custom_floats": (POINTER(c.c_float), POINTER(s.CustomCall), c.c_char_p, POINTER(c.c_size_t)),
    "rnl_custom_strings": (POINTER(c.c_char_p), POINTER(s.CustomCall), c.c_char_p, POINTER(c.c_size_t)),
    "rnl_custom_tensor": (c.c_bool, POINTER(s.CustomCall), c.c_char_p, POINTER(s.TensorDesc)),
    "rnl_custom_add_launch": (STATUS, c.c_void_p, POINTER(s.CustomLaunch)),
    "rnl_custom_scratch": (STATUS, c.c_void_p, c.c_size_t, POINTER(c.c_size_t)),
    "rnl_custom_device": (POINTER(s.DeviceInfo), c.c_void_p),
}


def _declare(library, signatures):
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


def _find(folder: str, name: str) -> str:
    for ending in (".so.0", ".so"):
        path = os.path.join(folder, name + ending)
        if os.path.exists(path):
            return path
    raise ImportError(f"runnel: {folder} holds no {name}.so (RUNNEL_LIBRARY_DIR names another folder)")


class Library:
    """Both libraries, with their functions as attributes. ctypes releases the GIL in every call."""

    def __init__(self):
        folder = os.environ.get("RUNNEL_LIBRARY_DIR") or os.path.dirname(os.path.abspath(__file__))
        runtime = c.CDLL(_find(folder, "librunnel-rt"))
        host = c.CDLL(_find(folder, "librunnel"))
        for library, signatures in ((runtime, _RUNTIME), (host, _HOST)):
            _declare(library, signatures)
            for name in signatures:
                setattr(self, name, getattr(library, name))

    def check(self, status: int) -> None:
        """Raises what a failed call left behind for this thread."""
        if status != 0:
            raise self.error(status)

    def error(self, status: int) -> Error:
        error = self.rnl_last_error().contents
        text = error.message.decode("utf-8", "replace")
        return make(self.rnl_status_name(status).decode(), text, error.native_code)


class Sole:
    """What owns something of the C library's: a copy would give it back once more."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a runnel.{type(self).__name__} can be neither copied nor pickled: open it where it is needed")


_lock = threading.Lock()
_library = None
_used = False  # an OpenCL call was made
_forked = False


def library() -> Library:
    """Loads the libraries at the first call."""
    global _library
    with _lock:
        if _library is None:
            _library = Library()
        return _library


def device_library() -> Library:
    """The same, for a call that needs a driver: in a fork of a process that has made one, drivers hang."""
    global _used
    check_fork()
    _used = True
    return library()


def check_fork() -> None:
    if _forked:
        raise FailedPrecondition("this process is a fork of one that had used runnel, and OpenCL drivers hang in one: "
                                 "start processes with multiprocessing's 'spawn', or before the first use")


def is_forked() -> bool:
    """Nothing may be released here either."""
    return _forked


def _after_fork():
    global _forked, _lock
    _forked = _forked or _used
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
