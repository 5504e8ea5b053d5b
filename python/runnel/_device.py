# SPDX-License-Identifier: Apache-2.0
"""Devices: listing and opening them."""

from __future__ import annotations

import contextlib
import ctypes as c
import dataclasses
import threading
import weakref
from typing import Iterator, List, Optional, Sequence, Union

from . import _structs as s
from ._errors import FailedPrecondition, InvalidArgument, NotFound
from ._library import Sole, device_library, is_forked, library

MOST_DEVICES = 64  # of a list
TYPES = ("cpu", "gpu", "accelerator", "other")


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """What a device is. Sizes in bytes; `id` is what `Session(device=…)` and `Device` take, and of a share that of the whole."""

    id: str
    type: str  # "cpu", "gpu", "accelerator" or "other"
    name: str
    vendor: str
    platform: str
    device_version: str
    driver_version: str
    opencl_c_version: str
    pci_bus_id: str  # empty when unknown
    numa_node: int  # -1 when unknown
    compute_units: int
    clock_mhz: int
    global_memory_bytes: int
    max_allocation_bytes: int
    local_memory_bytes: int
    max_work_group_size: int
    unified_memory: bool  # shared with the host: arrays are used where they lie
    is_default: bool  # what device=None takes when RUNNEL_DEVICE is unset
    emulated: bool
    has_fp64: bool
    has_fp16_arithmetic: bool
    has_images: bool
    whole_units: int  # of the device that a share is one of; else compute_units
    first_unit: int  # of a share: where it begins
    most_shares: int  # into how many "0:0/N" it can be divided, 1: not at all; 0 for an open device
    numa_shares: int  # into how many "0:0/numa"


def text(value: Optional[bytes]) -> str:
    return value.decode("utf-8", "replace") if value else ""


def _info(raw) -> DeviceInfo:
    given = {"id": f"{raw.platform_index}:{raw.device_index}", "type": TYPES[raw.type]}
    for field in dataclasses.fields(DeviceInfo):
        if field.name not in given:
            value = getattr(raw, field.name)
            given[field.name] = text(value) if isinstance(value, bytes) else value
    return DeviceInfo(**given)


def get_devices() -> List[DeviceInfo]:
    """The devices of all OpenCL platforms, in the platforms' order; empty where there is no platform."""
    lib, count = device_library(), c.c_size_t()
    room = 16
    while True:
        rows = (s.DeviceInfo * room)()
        try:
            lib.check(lib.rnl_device_list(rows, room, c.byref(count)))
        except NotFound:
            return []
        if count.value <= room:
            return [_info(rows[i]) for i in range(count.value)]
        room = count.value


class Device(Sole):
    """An open device: a context with its memory pool and its compiled programs. Sessions that share one share these.

    `spec` is "0:0" (platform:device), "gpu", "cpu", "accelerator", part of a device's, vendor's or platform's name, or a
    PCI bus id; None takes RUNNEL_DEVICE, else a GPU, then an accelerator, then a CPU. Behind it may stand a share of its
    compute units: "0:0/2" is one of two equal parts that nothing else here uses, nor another process's share if that can be
    had, "0:0/2.1" the second of them, "0:0/numa1" a NUMA node's. `compute_units`: so many threads of a CPU device, 0 all. `alone`: this process opens no other device,
    and has used none; then a share, or the threads, are this process's own (rnl_device_open_alone in runnel/rt.h). `memory_limit_bytes`, `memory_fraction`: at most that much, or that part, of the device's memory.

    Raises NotFound (the message lists what there is), InvalidArgument, or ResourceExhausted.
    """

    def __init__(self, spec: Optional[str] = None, *, compute_units: int = 0, memory_limit_bytes: int = 0,
                 pinned_limit_bytes: int = 0, memory_fraction: float = 0.0,
                 alone: bool = False):
        self._handle = c.c_void_p()
        self._lib = device_library()
        for name, value in (("compute_units", compute_units), ("memory_limit_bytes", memory_limit_bytes),
                            ("pinned_limit_bytes", pinned_limit_bytes), ("memory_fraction", memory_fraction)):
            if not 0 <= value < 2**(32 if name == "compute_units" else 64):
                raise InvalidArgument(f"{name} is {value}")
        if not isinstance(spec, (str, type(None))):
            raise InvalidArgument(f"spec is a {type(spec).__name__}; give None, or text such as 'gpu' or '0:0'")
        options = s.DeviceOptions(c.sizeof(s.DeviceOptions), compute_units, memory_limit_bytes, pinned_limit_bytes,
                                  memory_fraction, False)
        handle = c.c_void_p()
        open_device = self._lib.rnl_device_open_alone if alone else self._lib.rnl_device_open
        self._lib.check(open_device(spec.encode() if spec else None, c.byref(options), c.byref(handle)))
        self._handle = handle
        self.info: DeviceInfo = _info(self._lib.rnl_device_get_info(handle).contents)

    def handle(self):
        if not self._handle:
            raise FailedPrecondition("the device was closed")
        return self._handle

    def stats(self) -> dict:
        """Bytes of the memory pool, and how many programs were compiled, loaded from the cache, and kernels launched."""
        raw = s.DeviceStats()
        self._lib.rnl_device_get_stats(self.handle(), c.byref(raw))
        return {name: getattr(raw, name) for name, _ in raw._fields_}

    def close(self) -> None:
        """Lets go of the device. Sessions on it keep it open."""
        handle, self._handle = self._handle, c.c_void_p()
        if handle and not is_forked():
            self._lib.rnl_device_release(handle)

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<runnel.Device {self.info.id} {self.info.name}>" if self._handle else "<runnel.Device closed>"


_open_devices: "weakref.WeakValueDictionary[Optional[str], Device]" = weakref.WeakValueDictionary()
_lock = threading.Lock()


def shared_device(device: Union[None, str, Device]) -> Device:
    """Of one spec, one device for as long as a session uses it."""
    if isinstance(device, Device):
        device.handle()
        return device
    if device is not None and not isinstance(device, str):
        raise InvalidArgument(f"device is a {type(device).__name__}; give None, text such as 'gpu' or '0:0', or a "
                              "Device; runnel.open and runnel.Pipeline take several")
    library()
    with _lock:
        found = _open_devices.get(device or "")
        if found is None or not found._handle:
            found = _open_devices[device or ""] = Device(device)
        return found


Devices = Union[str, Device, Sequence[Union[str, Device]]]


@contextlib.contextmanager
def opened(device: Devices) -> "Iterator[c.Array[c.c_void_p]]":
    """The handles of what a list names, for as long as the block lasts: "gpu,cpu" or "all", or text and Devices."""
    lib, handles = device_library(), []
    given = device if isinstance(device, Sequence) and not isinstance(device, str) else [device]
    try:
        for each in given:
            if isinstance(each, Device):
                handles.append(lib.rnl_device_retain(each.handle()))
            elif isinstance(each, str):
                rows, count = (c.c_void_p * MOST_DEVICES)(), c.c_size_t()
                lib.check(lib.rnl_multi_open_devices(each.encode(), None, rows, MOST_DEVICES, c.byref(count)))
                handles += rows[:count.value]
            else:
                raise InvalidArgument(f"device lists a {type(each).__name__}; give text such as 'gpu' or '0:0', or a "
                                      "Device")
        if not 1 <= len(handles) <= MOST_DEVICES:
            raise InvalidArgument(f"device lists {len(handles)} devices; 1 to {MOST_DEVICES} are possible")
        yield (c.c_void_p * len(handles))(*handles)
    finally:
        for handle in handles:
            lib.rnl_device_release(handle)
