# SPDX-License-Identifier: Apache-2.0
"""What a session is asked, and what it tells."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional, Union

from ._device import text
from ._errors import InvalidArgument


@dataclasses.dataclass
class SessionOptions:
    """`plan_cache_bytes`: plans for earlier shapes that are kept, 0 for 64 MiB. `progress`: called with (name, done,
    total) for each program that is compiled or loaded, from the thread that opens or runs; it must not raise."""

    plan_cache_bytes: int = 0
    progress: Optional[Callable[[str, int, int], None]] = None


def make_options(options: Union[None, SessionOptions, Mapping[str, Any]]) -> SessionOptions:
    if options is None:
        return SessionOptions()
    if isinstance(options, Mapping):
        unknown = set(options) - {field.name for field in dataclasses.fields(SessionOptions)}
        if unknown:
            raise InvalidArgument(f"there is no option {', '.join(sorted(map(repr, unknown)))}")
        options = SessionOptions(**options)
    if not isinstance(options, SessionOptions):
        raise InvalidArgument(f"options are a {type(options).__name__}; give a SessionOptions or a dict")
    size = options.plan_cache_bytes
    if not isinstance(size, int) or not 0 <= size < 2**64:
        raise InvalidArgument(f"plan_cache_bytes is {size!r}")
    if options.progress is not None and not callable(options.progress):
        raise InvalidArgument("progress cannot be called")
    return options


@dataclasses.dataclass(frozen=True)
class StepProfile:
    """One step of a run. `also`: other operators that the step does as well (" + Relu"). `flops` and `bytes` are what the
    operation needs at least. `device_clock` False: measured from outside, launching included."""

    node: str
    op_type: str
    also: str
    implementation: str
    file: str
    kernel: str
    time_ns: int
    flops: int
    bytes: int
    device_clock: bool


def step_profile(raw: Any) -> StepProfile:
    values = {field.name: getattr(raw, field.name) for field in dataclasses.fields(StepProfile)}
    return StepProfile(**{name: text(value) if isinstance(value, (type(None), type(b""))) else value
                          for name, value in values.items()})
