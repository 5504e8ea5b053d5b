# SPDX-License-Identifier: Apache-2.0
"""What a session is asked, and what it tells."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional, Union

from ._device import text
from ._errors import InvalidArgument


# As rnl_precision counts them.
PRECISIONS = {None: 0, "f32": 1, "bf16": 2}


@dataclasses.dataclass
class SessionOptions:
    """`plan_cache_bytes`: plans for earlier shapes that are kept, 0 for 64 MiB. `progress`: called with (name, done,
    total) for each program that is compiled or loaded, from the thread that opens or runs; it must not raise.
    `precision`: "f32", or "bf16": convolutions and products with constant weights multiply bfloat16 and add up in
    float32, where the device can; elsewhere there is a warning in the log, and float32. `deterministic`: an item's result
    has the same bits in each run, alone and in any batch. `weight_budget_bytes`: weights stay in host memory and are
    copied through so much device memory ahead of the steps that read them; 0 keeps them on the device."""

    plan_cache_bytes: int = 0
    progress: Optional[Callable[[str, int, int], None]] = None
    precision: Optional[str] = None
    deterministic: bool = False
    weight_budget_bytes: int = 0


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
    for name in ("plan_cache_bytes", "weight_budget_bytes"):
        size = getattr(options, name)
        if not isinstance(size, int) or not 0 <= size < 2**64:
            raise InvalidArgument(f"{name} is {size!r}")
    if options.progress is not None and not callable(options.progress):
        raise InvalidArgument("progress cannot be called")
    if not isinstance(options.precision, (str, type(None))) or options.precision not in PRECISIONS:
        raise InvalidArgument(f"precision is {options.precision!r}; it can be 'f32' or 'bf16'")
    if not isinstance(options.deterministic, bool):
        raise InvalidArgument(f"deterministic is {options.deterministic!r}; it can be True or False")
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
