# SPDX-License-Identifier: Apache-2.0
"""What `plan` answers becomes launches of the C library's."""

from __future__ import annotations

import ctypes as c
import os
from typing import Any, Dict, List, Tuple

import numpy as np

from . import _structs as s
from ._operator import Launch, Node, Scratch, TensorSpec, indices

LOG = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(c.c_char), c.c_size_t)
INPUT, OUTPUT, SCRATCH, VALUE = (s.CUSTOM_ARGS.index(name) for name in ("INPUT", "OUTPUT", "SCRATCH", "VALUE"))


class WrongAnswer(Exception):
    """A callback answered what it cannot: one sentence."""


class Failed(Exception):
    """The C library failed, and has noted why."""

    def __init__(self, status: int):
        super().__init__(status)
        self.status = status


def _bytes(what: str, text: Any) -> bytes:
    if isinstance(text, (str, os.PathLike)):
        text = os.fsencode(text)
        if b"\0" not in text:
            return text
        raise WrongAnswer(f"{what} has a NUL in it")
    raise WrongAnswer(f"{what} is a {type(text).__name__}, not text")


def _texts(texts: List[bytes]) -> Any:
    return (c.c_char_p * len(texts))(*texts)


def _define(name: Any, value: Any) -> bytes:
    if value is None:
        return _bytes("a define", name)
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if not isinstance(value, (str, int, float, np.integer, np.floating)):
        raise WrongAnswer(f"the define {name} is a {type(value).__name__}; give a number, text, or None")
    return _bytes("a define", name) + b"=" + _bytes(f"the define {name}", str(value))


def _value(where: str, value: Any) -> np.ndarray:
    """A scalar or a vector as the kernel takes it."""
    if not isinstance(value, (np.generic, np.ndarray)):
        raise WrongAnswer(f"{where} is {value!r:.60}; give a tensor of the node's, a Scratch, or a numpy scalar, whose "
                          "type says how large it is (np.int32(5))")
    if value.dtype.kind not in "iuf" or value.dtype.itemsize > 8:
        raise WrongAnswer(f"{where} has numpy type {value.dtype}, which no kernel takes as a value")
    flat = np.atleast_1d(value)
    if flat.ndim != 1 or flat.size not in (1, 2, 3, 4, 8, 16):
        raise WrongAnswer(f"{where} has the shape {value.shape}; a vector has 2, 3, 4, 8 or 16 elements")
    if flat.size == 3:  # takes the room of 4
        flat = np.append(flat, flat.dtype.type(0))
    return np.ascontiguousarray(flat, flat.dtype.newbyteorder("="))


def _range(launch: Launch) -> "s.Range":
    try:
        sizes = indices(launch.global_size)
        group = (0,) * len(sizes) if launch.local_size is None else indices(launch.local_size)
    except TypeError as error:
        raise WrongAnswer(f"global_size {launch.global_size!r:.60} and local_size {launch.local_size!r:.60} have to be "
                          "whole numbers") from error
    if not 1 <= len(sizes) <= 3 or len(group) != len(sizes):
        raise WrongAnswer(f"global_size has {len(sizes)} dimensions and local_size {len(group)}: both have the same 1 to 3")
    if not all(0 <= size < 2**63 for size in sizes + group):
        raise WrongAnswer(f"global_size {sizes} and local_size {group} cannot be")
    if launch.local_size is not None and 0 in group:
        raise WrongAnswer(f"local_size {group} cannot be")
    ones = (1,) * (3 - len(sizes))
    return s.Range(len(sizes), sizes + ones, group + ones)


class Launches:
    """Adds launches to the plan of one node."""

    def __init__(self, lib: Any, plan: int, node: Node, max_inputs: int):
        self._lib, self._plan = lib, plan
        self._tensors = {id(spec): (INPUT, i) for i, spec in enumerate(node.inputs) if spec is not None}
        self._tensors.update((id(spec), (OUTPUT, i)) for i, spec in enumerate(node.outputs))
        self._scratch: Dict[int, Tuple[Scratch, int]] = {}
        self._absent = next((i for i, spec in enumerate(node.inputs) if spec is None), len(node.inputs))
        self._has_absent = self._absent < len(node.inputs) or (max_inputs < 2**32 - 1 and self._absent < max_inputs)

    def _scratch_index(self, scratch: Scratch) -> int:
        if id(scratch) not in self._scratch:
            index = c.c_size_t()
            if not 0 <= scratch.nbytes < 2**63:
                raise WrongAnswer(f"there is no {scratch}")
            self._check(self._lib.rnl_custom_scratch(self._plan, scratch.nbytes, c.byref(index)))
            self._scratch[id(scratch)] = scratch, index.value
        return self._scratch[id(scratch)][1]

    def _arg(self, where: str, given: Any, kept: List[Any]) -> "s.CustomArg":
        if isinstance(given, Scratch):
            return s.CustomArg(SCRATCH, self._scratch_index(given))
        if isinstance(given, TensorSpec):
            if id(given) not in self._tensors:
                raise WrongAnswer(f"{where} is a TensorSpec that is none of the node's inputs or outputs")
            return s.CustomArg(*self._tensors[id(given)])
        if given is None:
            if not self._has_absent:
                raise WrongAnswer(f"{where} is None, and no input of the node is left out")
            return s.CustomArg(INPUT, self._absent)
        value = _value(where, given)
        kept.append(value)
        return s.CustomArg(VALUE, 0, value.ctypes.data, value.nbytes)

    def _options(self, launch: Launch, kept: List[Any]) -> "s.KernelOptions":
        defines = _texts([_define(name, value) for name, value in dict(launch.defines).items()])
        given = launch.include_folders
        given = [given] if isinstance(given, (str, os.PathLike)) else given
        folders = _texts([_bytes("an include folder", folder) for folder in given])
        options = s.KernelOptions(struct_size=c.sizeof(s.KernelOptions), defines=defines, define_count=len(defines),
                                  include_folders=folders, include_folder_count=len(folders))
        if launch.build_options is not None:
            options.build_options = _bytes("build_options", launch.build_options)
        if launch.source_name is not None:
            options.source_name = _bytes("source_name", launch.source_name)
        kept += [defines, folders]
        return options

    def _raw(self, where: str, launch: Launch, kept: List[Any]) -> "s.CustomLaunch":
        name = _bytes(f"{where}: the kernel's name", launch.kernel)
        found = [self._arg(f"{where} ('{launch.kernel}'), argument {i}: it", given, kept)
                 for i, given in enumerate(launch.args)]
        args = (s.CustomArg * max(1, len(found)))(*found)
        raw = s.CustomLaunch(struct_size=c.sizeof(s.CustomLaunch), kernel=name, args=args, arg_count=len(found))
        if launch.source is not None:
            raw.source = _bytes(f"{where}: the source", launch.source)
        if launch.path is not None:
            raw.path = _bytes(f"{where}: the path", launch.path)
        raw.range = _range(launch)
        raw.flops, raw.bytes = launch.flops, launch.bytes
        kept += [args]
        return raw

    def _check(self, status: int) -> None:
        if status:
            raise Failed(status)

    def add(self, number: int, launch: Any) -> None:
        kept: List[Any] = []
        if not isinstance(launch, Launch):
            raise WrongAnswer(f"it gave {launch!r:.60} for launch {number}, and not a runnel.Launch")
        raw = self._raw(f"launch {number}", launch, kept)
        options = self._options(launch, kept)
        said: List[bytes] = []
        note = LOG(lambda _, text, length: said.append(text[:length]))
        if launch.log is not None:
            options.log = c.cast(note, c.c_void_p)
        raw.options = c.pointer(options)
        status = self._lib.rnl_custom_add_launch(self._plan, c.byref(raw))
        if said and launch.log is not None:
            launch.log(said[0].decode("utf-8", "replace"))
        self._check(status)
